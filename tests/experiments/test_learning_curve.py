"""The picture of how a run learned shows scores that there were."""

from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from matplotlib.figure import Figure

from dae.experiments.config import TrainConfig
from dae.experiments.training import summary
from dae.experiments.training.summary import draw_learning_curve, score_ranges
from dae.runs import Episodes, RunFolder
from dae.runs.evaluations import EvaluationLog


def played(n: int, until: int) -> Episodes:
    """Episodes of a game whose scores are mostly 0, never less, and now and then large."""
    rng = np.random.default_rng(n)
    frames = np.sort(rng.integers(1, until + 1, n))
    return Episodes(rng.choice([0.0, 0.0, 1.0, 40.0], n), frames, frames.astype(float), frames)


@pytest.mark.parametrize(("n", "bins"), [(1, 1), (45, 2), (3000, 50)])
def test_the_range_of_scores_in_each_part_is_that_of_its_episodes(n: int, bins: int) -> None:
    episodes = played(n, 10_000)
    middles, means, low, high = score_ranges(episodes, 10_000)
    edges = np.linspace(0, 10_000, bins + 1)
    parts = [episodes.scores[(start < episodes.frames) & (episodes.frames <= end)] for start, end in pairwise(edges)]
    seen = [part for part in parts if len(part)]
    assert middles.tolist() == [
        (start + end) / 2 for (start, end), part in zip(pairwise(edges), parts, strict=True) if len(part)
    ]
    np.testing.assert_allclose(means, [part.mean() for part in seen])
    np.testing.assert_allclose(low, [np.percentile(part, 10) for part in seen])
    np.testing.assert_allclose(high, [np.percentile(part, 90) for part in seen])
    assert low.min() >= 0, "no score is negative"


def test_the_picture_has_the_look_of_all_figures(tmp_path: Path) -> None:
    drawn: list[Figure] = []
    with patch.object(summary, "save_figure", lambda figure, _: drawn.append(figure)):
        settings = TrainConfig("MinAtar/Breakout-v1", advantage="dae", frames=500_000)
        draw_learning_curve(settings, RunFolder(tmp_path), played(2000, 500_000))
    (figure,) = drawn
    figure.draw_without_rendering()
    (axes,) = figure.axes
    assert axes.get_title() == "MinAtar/Breakout-v1 · DAE, baseline · seed 0"
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "100K", "200K", "300K", "400K", "500K"]
    assert axes.get_legend() is None, "it would cover the data"
    (legend,) = figure.legends
    assert legend.get_window_extent().y1 < axes.get_window_extent().y0
    assert axes.dataLim.y0 >= 0


def test_evaluations_are_in_the_picture_where_they_were_made(tmp_path: Path) -> None:
    log = EvaluationLog(tmp_path / "evaluations.csv", "MinAtar/Breakout-v1", None)
    for frames, score in ((100_000, 3.0), (200_000, 7.0)):
        log.add(frames, np.array([score - 1, score + 1]), np.array([10.0, 20.0]))
    log.close()
    drawn: list[Figure] = []
    with patch.object(summary, "save_figure", lambda figure, _: drawn.append(figure)):
        settings = TrainConfig("MinAtar/Breakout-v1", frames=500_000, tag="mine")
        draw_learning_curve(settings, RunFolder(tmp_path), played(2000, 500_000))
    (axes,) = drawn[0].axes
    assert axes.get_title() == "MinAtar/Breakout-v1 · DAE, baseline · mine · seed 0"
    (bars,) = axes.containers
    assert bars.get_label() == "evaluations, ± standard error"
    assert bars.lines[0].get_xydata().tolist() == [[100_000, 3.0], [200_000, 7.0]]
