"""Normalised scores against numbers worked by hand."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dae.report.cells import Cells, make_cells
from dae.report.normalising import normalise
from dae.report.reading import Result, read_results
from dae.runs import find_runs
from dae.runs.episodes import fill
from tests.report.folders import write_run

ASTERIX, BREAKOUT, FREEWAY = (f"MinAtar/{game}-v1" for game in ("Asterix", "Breakout", "Freeway"))


def run(root: Path, env: str, method: str, seed: int, scores: Sequence[float], frames: int = 1000, **more: str) -> None:
    """Write a run with one episode at the start, one in the middle and one at the end of its frames."""
    at = (5, frames // 2, frames)
    write_run(root, env, method, seed=seed, episodes=list(zip(scores, at, strict=True)), frames=frames, **more)


def read(root: Path) -> Cells:
    return make_cells(r for r in read_results(find_runs([root])) if isinstance(r, Result))[0]


def test_empty_bins_have_the_value_before_and_before_the_first_episode_the_first() -> None:
    nan = np.nan
    filled, complete_from = fill(np.array([[nan, 2, nan, 4, nan], [1, nan, nan, nan, 5]]))
    assert filled.tolist() == [[2, 2, 2, 4, 4], [1, 1, 1, 1, 5]]
    assert complete_from == 1


def test_a_worked_case(tmp_path: Path) -> None:
    # GAE begins at (0 + 2)/2 = 1 and ends at (10 + 12)/2 = 11 on Asterix, from 100 to 300 on Breakout.
    run(tmp_path, ASTERIX, "gae", 0, [0, 4, 10])
    run(tmp_path, ASTERIX, "gae", 1, [2, 6, 12])
    run(tmp_path, BREAKOUT, "gae", 0, [100, 200, 300])
    run(tmp_path, BREAKOUT, "gae", 1, [100, 200, 300])
    run(tmp_path, ASTERIX, "dae", 0, [1, 11, 21])  # 0, 1, 2
    run(tmp_path, ASTERIX, "dae", 1, [1, 6, 11])  # 0, ½, 1
    run(tmp_path, BREAKOUT, "dae", 0, [100, 300, 500])  # 0, 1, 2
    run(tmp_path, BREAKOUT, "dae", 1, [100, 300, 400])  # 0, 1, 1½
    found = normalise(read(tmp_path), "minatar", "gae")
    assert found is not None
    assert {env: (scale.start, scale.end) for env, scale in found.scales.items()} == {
        ASTERIX: (1, 11),
        BREAKOUT: (100, 300),
    }
    gae, dae = found.groups
    np.testing.assert_allclose(dae.curves[:, [0, 48, 49, 98, 99]], [[0, 0, 1, 1, 2], [0, 0, 0.75, 0.75, 1.25]])
    np.testing.assert_allclose(gae.curves[:, 99], [0.95, 1.05])
    # Last is the mean of all three episodes here: (1 + 11 + 21)/3 = 11 → 1, (100 + 300 + 500)/3 = 300 → 1; …
    np.testing.assert_allclose(dae.last, [[1, 1], [0.5, (800 / 3 - 100) / 200]])
    assert (dae.seeds, dae.frames, dae.complete_from, found.notes) == ((0, 1), 1000, 0, [])


def test_what_cannot_be_averaged_is_left_out_and_named(tmp_path: Path) -> None:
    for seed in range(2):
        run(tmp_path, ASTERIX, "gae", seed, [0, 4, 10])
        run(tmp_path, BREAKOUT, "gae", seed, [0, 5, 10])
        run(tmp_path, FREEWAY, "gae", seed, [7, 9, 7])  # does not improve
        run(tmp_path, ASTERIX, "dae", seed, [0, 4, 10])
        run(tmp_path, FREEWAY, "dae", seed, [0, 4, 10])
    run(tmp_path, BREAKOUT, "dae", 1, [0, 5, 20])
    run(tmp_path, BREAKOUT, "duel", 0, [0, 5, 20])
    run(tmp_path, ASTERIX, "duel", 0, [0, 5, 20], frames=5000)
    run(tmp_path, "MinAtar/Seaquest-v1", "dae", 0, [1, 2, 3])
    found = normalise(read(tmp_path), "minatar", "gae")
    assert found is not None
    gae, dae, duel = found.groups
    assert (gae.seeds, dae.seeds, duel.seeds) == ((0, 1), (1,), (0,))
    assert dae.environments == (ASTERIX, BREAKOUT)
    assert (duel.environments, duel.frames) == ((ASTERIX,), 5000)
    assert found.notes == [
        f"Left out because GAE does not improve there by more than its standard errors: {FREEWAY}.",
        "Left out because GAE was not run there with the baseline network: MinAtar/Seaquest-v1.",
        "DAE, baseline: 1 seed on all 2 environments; left out, not on all: 0.",
        "Duel, baseline: the reference has 1K frames on MinAtar/Asterix-v1, these runs 5K.",
        "Duel, baseline: MinAtar/Breakout-v1 is left out: its runs have 1K frames, others 5K.",
        "Duel, baseline: stands for 1 of 2 environments: MinAtar/Asterix-v1.",
        "Not all have the same seeds and frames: GAE, baseline: 2 seeds × 1K frames; DAE, baseline: 1 seed × 1K "
        "frames; Duel, baseline (1 of 2 environments): 1 seed × 5K frames.",
    ]


def test_a_reference_that_rises_only_within_its_noise_is_no_scale(tmp_path: Path) -> None:
    """Montezuma's Revenge: a difference of next to nothing would outweigh all other environments."""
    for seed, rise in enumerate((-1.0, 0.0, 1.5)):
        run(tmp_path, ASTERIX, "gae", seed, [5, 5, 5 + rise])
        run(tmp_path, BREAKOUT, "gae", seed, [5, 5, 8 + rise])
    found = normalise(read(tmp_path), "minatar", "gae")
    assert found is not None
    assert set(found.scales) == {BREAKOUT}
    assert ASTERIX in found.notes[0]


def test_without_the_reference_there_is_no_scale(tmp_path: Path) -> None:
    run(tmp_path, ASTERIX, "dae", 0, [0, 4, 10])
    assert normalise(read(tmp_path), "minatar", "gae") is None


def test_the_ablation_is_on_the_scale_of_indirect(tmp_path: Path) -> None:
    for method, end in (("indirect", 10), ("duel", 15), ("dae", 20), ("gae", 30)):
        run(tmp_path, ASTERIX, method, 0, [0, 4, end])
    found = normalise(read(tmp_path), "minatar", "indirect")
    assert found is not None
    assert [(group.method, group.curves[0, 99]) for group in found.groups] == [
        ("gae", 3.0),
        ("dae", 2.0),
        ("duel", 1.5),
        ("indirect", 1.0),
    ]
