"""`dae variation`, end to end: what it keeps, what it measures, and that it continues after whatever stops it."""

import csv
import json
import os
import shutil
import signal
import zipfile
from pathlib import Path

import numpy as np
import pytest

import dae
from dae.agent import PPO
from dae.cli import main
from dae.envs.minatar.family import MinAtar
from dae.experiments.config import TrainConfig
from dae.experiments.monte_carlo import Simulator, action_values
from dae.experiments.variation import config as config_module, estimate, study
from dae.experiments.variation.config import parse
from dae.experiments.variation.keeping import Keeper, Kept, Places
from dae.experiments.variation.values import Measuring
from dae.runs import RunFolder, State
from tests.experiments.small import weights_hash
from tests.processes import Fork

SMALL = ["--iterations", "3", "--states", "6", "--rollouts", "3", "--horizon", "20", "--threads", "1"]
TRAINING = ["--settings", "actors=4", "steps=16", "batch_size=32", "epochs=2", "frames=256", "checkpoint_seconds=0"]


@pytest.fixture(autouse=True)
def _quick_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimate, "_SECONDS", 0.0)
    monkeypatch.setattr(MinAtar, "simulated_at_once", 16)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study that nothing disturbed."""
    out = tmp_path_factory.mktemp("whole")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(estimate, "_SECONDS", 0.0)
        assert main(words(out)) == 0
    return out


def words(out: Path, *more: str, game: str = "CartPole-v1") -> list[str]:
    return ["variation", game, *SMALL, *TRAINING, "--out", str(out), *more]


def contents(folder: Path) -> dict[str, bytes]:
    """All that a study wrote, but the clock: of agents their weights, of the run nothing."""
    found = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if path.suffix == ".zip":
            found[name] = zipfile.ZipFile(path).read("policy.safetensors") if zipfile.is_zipfile(path) else b""
        elif path.is_file() and "run/" not in name and path.name not in ("lock", "settings.json"):
            found[name] = path.read_bytes()
    return found


def test_a_study_leaves_its_files_and_says_what_they_show(
    tmp_path: Path, whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = whole / "CartPole-v1"
    for part in ("agents", "states", "values"):
        assert [path.stem for path in sorted((folder / part).iterdir())] == ["0000", "0001", "0002"]
    with (folder / "variation.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["f"], row["iteration"]) for row in rows] == [("A", "1"), ("A", "2"), ("Q", "1"), ("Q", "2")]
    # The paper's statistic from the files alone.
    returns, probabilities = (
        np.stack([np.load(folder / "values" / f"{i:04d}.npz")[name] for i in range(3)]).astype(float)
        for name in ("returns", "probabilities")
    )
    q = returns.mean(-1)
    a = q - (probabilities * q).sum(-1, keepdims=True)
    for row in rows:
        i, f = int(row["iteration"]), {"A": a, "Q": q}[row["f"]]
        quartiles = np.quantile(np.abs(f[i] - f[i - 1]), [0.25, 0.5, 0.75])
        told = [float(row[name]) for name in ("lower_quartile", "median", "upper_quartile")]
        assert told == pytest.approx(quartiles, rel=1e-4, abs=1e-9)
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["settings"]["game"] == "CartPole-v1"
    assert summary["rms_without_noise"]["verdict"] in ("A moved less than Q", "A moved more than Q", "cannot be told")
    # The same command draws again, and does nothing else.
    before = contents(whole)
    capsys.readouterr()
    assert main(words(whole)) == 0
    told = capsys.readouterr().out
    assert told.startswith("nothing is left to train or to play\n")
    assert "playing" not in told
    assert f"γ^20 is {0.99**20:.2g}" in told
    assert contents(whole) == before


def test_the_training_stops_early_and_can_be_continued_to_what_it_would_have_been(whole: Path, tmp_path: Path) -> None:
    folder = RunFolder(whole / "CartPole-v1" / "run")
    assert folder.read_status().state is State.STOPPED
    assert folder.checkpoints.newest_frames() == 2 * 4 * 16, "the update after the last rollout was not needed"
    copy = tmp_path / "run"
    shutil.copytree(folder.path, copy)
    assert main(["train", "--resume", str(copy), "--threads", "1", "--no-pictures"]) == 0
    plain = [word.replace("=", " ") for word in TRAINING[1:]]
    options = [part for word in plain for part in (f"--{word.split()[0].replace('_', '-')}", word.split()[1])]
    apart = ["--threads", "1", "--no-pictures", "--finishing", "no", "--out", str(tmp_path / "plain")]
    assert main(["train", "CartPole-v1", *options, *apart]) == 0
    assert weights_hash(RunFolder(copy)) == weights_hash(
        RunFolder(tmp_path / "plain" / "CartPole-v1" / "dae-baseline" / "seed-0")
    )


class Witness(Keeper):
    """Also remembers what the actors saw."""

    seen: list[np.ndarray] = []  # noqa: RUF012 (one study a test)

    def after_rollout(self, agent: PPO) -> None:
        self.seen.append(agent.rollout_buffer.observations.numpy().copy())
        super().after_rollout(agent)


@pytest.mark.parametrize("game", ["CartPole-v1", "Breakout"])
def test_states_are_what_the_drawn_actors_saw_before_they_acted(
    game: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Witness.seen = []
    monkeypatch.setattr(study, "Keeper", Witness)
    config = parse(words(tmp_path, "--states", "40", game=game)[1:])
    plan = config.plans[0]
    with study.Study(plan).opened():
        assert study.Study(plan).train() == 0
    places = Places.drawn(40, 3, 16, 4, 0)
    states = Kept(plan.folder, 3).load_states(places)
    env = dae.make_vec_env(plan.env, 5)
    simulator = Simulator(dae.PPO("MlpPolicy", env, advantage="dae"), env)
    seen = np.stack(Witness.seen)  # (iterations, actors, steps, ...)
    assert seen.shape[:3] == (3, 4, 16)
    expected = seen[places.iterations, places.actors, places.steps]
    np.testing.assert_array_equal(simulator.observe(states), expected)
    assert len(np.unique(expected.reshape(40, -1), axis=0)) > 10


def test_places_are_drawn_uniformly_and_once() -> None:
    every = Places.drawn(24, 2, 3, 4, seed=5)
    assert sorted(zip(every.iterations, every.steps, every.actors, strict=True)) == [
        (i, t, k) for i in range(2) for t in range(3) for k in range(4)
    ]
    counts = np.zeros((2, 3, 4))
    for seed in range(600):
        some = Places.drawn(4, 2, 3, 4, seed)
        counts[some.iterations, some.steps, some.actors] += 1
    assert counts.sum() == 2400
    assert ((counts - 100) ** 2 / 100).sum() < 24 + 4 * np.sqrt(2 * 24)  # chi-squared with 23 degrees of freedom


def test_values_are_those_of_the_agents_in_the_files(whole: Path) -> None:
    folder = whole / "CartPole-v1"
    states = Kept(folder, 3).load_states(Places.drawn(6, 3, 16, 4, 0))
    env = dae.make_vec_env("CartPole-v1", 4)
    seed = int(np.random.SeedSequence((0, 0)).generate_state(1)[0])
    for policy in range(3):
        agent = dae.PPO.load(folder / "agents" / f"{policy:04d}.zip")
        expected = action_values(Simulator(agent, env), states, rollouts=3, horizon=20, gamma=0.99, seed=seed)
        found = np.load(folder / "values" / f"{policy:04d}.npz")
        np.testing.assert_allclose(found["returns"], expected.returns, rtol=1e-6)
        np.testing.assert_allclose(found["cut"], expected.cut.mean(-1), rtol=1e-6)
        assert found["lengths"].max() <= 20


def test_policies_share_random_numbers_only_if_they_are_to() -> None:
    env = dae.make_vec_env("MinAtar/Breakout-v1", 4)
    simulator = Simulator(dae.PPO("CnnPolicy", env, advantage="dae", seed=0), env)
    states = simulator.take(range(4))
    shared, own = (
        [
            Measuring(states, 4, 60, 0.99, 0, share_random_numbers).measure(simulator, policy, lambda ended: None)
            for policy in (0, 1)
        ]
        for share_random_numbers in (True, False)
    )
    np.testing.assert_array_equal(shared[0].returns, shared[1].returns)
    assert np.any(own[0].returns != own[1].returns)


# Continuing. ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "by", "code"), [("save_agent", signal.SIGKILL, -9), ("save_states", signal.SIGTERM, 143)]
)
def test_a_study_that_is_stopped_in_its_training_ends_as_if_it_had_not_been(
    at: str, by: int, code: int, tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = getattr(Kept, at)
    out, log = tmp_path / "out", tmp_path / "log"

    def stop(self: Kept, iteration: int, *more: object) -> None:
        if iteration == 2:
            os.kill(os.getpid(), by)
        plain(self, iteration, *more)

    with monkeypatch.context() as patch:
        patch.setattr(Kept, at, stop)
        assert Fork(lambda: main(words(out)), log).wait() == code
    if by == signal.SIGTERM:
        told = "stopped by SIGTERM; it continues at frame 128 with: the same command"
        assert log.read_text().splitlines()[-1] == told
    assert not (out / "CartPole-v1" / "values").exists()
    assert main(words(out)) == 0
    assert contents(out) == contents(whole)


def test_a_study_that_is_stopped_between_policies_goes_on_with_the_next(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = Measuring.measure
    measured = []

    def stop(self: Measuring, simulator: Simulator, iteration: int, watch: object) -> object:
        if iteration == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        measured.append(iteration)
        return plain(self, simulator, iteration, watch)  # type: ignore[arg-type]

    log = tmp_path / "log"
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(Measuring, "measure", stop)
        assert Fork(lambda: main(words(out)), log).wait() == 143
    assert (
        log.read_text().splitlines()[-1] == "stopped by SIGTERM; what is finished is kept. The same command continues."
    )
    assert [path.name for path in (out / "CartPole-v1" / "values").iterdir()] == ["0000.npz"]
    monkeypatch.setattr(Measuring, "measure", lambda *given: (measured.append(given[2]), plain(*given))[1])
    assert main(words(out)) == 0
    assert measured == [1, 2]
    assert contents(out) == contents(whole)


@pytest.fixture
def copy(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "copy"))


def test_damaged_values_are_measured_again(copy: Path, whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values = copy / "CartPole-v1" / "values"
    flipped = bytearray((values / "0001.npz").read_bytes())
    flipped[300] ^= 1
    (values / "0001.npz").write_bytes(flipped)
    (values / "0002.npz").write_bytes((values / "0000.npz").read_bytes())
    assert main(words(copy)) == 0
    told = capsys.readouterr().err.splitlines()
    assert "0001.npz cannot be used (Bad CRC-32" in told[0]
    assert "0002.npz cannot be used (it was measured with another policy" in told[1]
    assert all(line.endswith("it is measured again") for line in told)
    assert contents(copy) == contents(whole)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("states/0001.npz", b"PK nothing", "states/0001.npz cannot be used ("),
        ("agents/0002.zip", b"PK nothing", "agents/0002.zip cannot be used ("),
        ("agents/0001.zip", None, "has no agent or no states of iteration 1, and its training has passed it"),
        ("settings.json", b"{", "settings.json cannot be read"),
        ("settings.json", None, "is there, but no settings.json of a study: choose another --out"),
    ],
)
def test_what_cannot_be_made_again_is_refused_in_one_line(
    name: str, content: bytes | None, message: str, copy: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = copy / "CartPole-v1" / name
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    before = contents(copy)
    assert main(words(copy)) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1 + told.count("measuring how")
    assert message in told
    assert contents(copy) == before


# The command line. ---------------------------------------------------------------------------------------------------


def test_presets_give_the_paper_s_numbers_and_options_replace_them() -> None:
    paper, some = parse(["Breakout", "--preset", "paper"]), parse(["breakout", "--preset", "paper", "--states", "7"])
    assert (paper.iterations, paper.states, paper.rollouts, paper.horizon) == (50, 1024, 128, 512)
    assert not paper.share_random_numbers
    assert parse(["Breakout"]).share_random_numbers
    assert (some.states, some.rollouts) == (7, 128)
    training: TrainConfig = some.plans[0].training
    assert (training.env, training.actors, training.frames) == ("MinAtar/Breakout-v1", 1024, 10_000_000)
    assert training.advantage == "dae"
    few = parse(["Breakout", "--settings", "epochs=2"]).plans[0].training
    assert (few.actors, few.epochs, few.correction) == (128, 2, 0), "the paper's DAE, with fewer actors"
    assert parse(["Breakout", "--settings", "actors=8"]).plans[0].training.actors == 8


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["Brakout"], "environment 'Brakout' is not known; did you mean"),
        (["Pendulum-v1"], "Pendulum-v1 has the actions Box(-2.0, 2.0, (1,), float32): they must be Discrete"),
        (["CartPole-v1", "--states", "1K"], "--states"),
        (["CartPole-v1", *TRAINING, "--iterations", "2", "--states", "129"], "states is 129: it must be at most 128"),
        (["CartPole-v1", *TRAINING, "--iterations", "5", "--states", "4"], "iterations is 5: it must be at most 4"),
        (["Breakout", "--rollouts", "1"], "rollouts is 1: it must be an integer of at least 2"),
        (["Breakout", "--settings", "advantage=gae"], "advantage has an option of its own, or is set for each run"),
        (["Breakout", "--preset", "slow"], "--preset is 'slow': it must be one of quick, paper"),
        ([], "dae variation needs one more word: game of MinAtar, such as Breakout"),
    ],
)
def test_a_mistake_gets_one_line(
    given: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["variation", *given, "--out", str(tmp_path / "out")]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert message in told
    assert not (tmp_path / "out").exists()


def test_other_settings_in_the_same_folder_are_refused(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(whole)
    assert main(words(whole, "--rollouts", "4")) == 2
    assert "different settings (rollouts is 3 there and 4 here)" in capsys.readouterr().err
    assert contents(whole) == before


def test_a_dry_run_says_how_long_it_takes_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeyed = words(tmp_path / "out", "--dry-run", game="Breakout")
    assert main(monkeyed) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0].startswith("Breakout: training 192 frames at ")
    assert "; 162 rollouts of at most 20 steps at " in told[0]
    assert told[1].startswith("at most ")
    assert not (tmp_path / "out").exists()


def test_all_games_are_shown_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    games = {env: name for env, name in config_module._games().items() if name in ("Breakout", "SpaceInvaders")}
    assert list(config_module._games().values()) == ["Asterix", "Breakout", "Freeway", "Seaquest", "SpaceInvaders"]
    monkeypatch.setattr(config_module, "_games", lambda: games)
    (tmp_path / "summary.txt").write_text("mine")
    assert main(words(tmp_path, "--iterations", "2", game="all")) == 2
    assert "summary.txt is there, but no study of these games" in capsys.readouterr().err
    assert (tmp_path / "summary.txt").read_text() == "mine"
    (tmp_path / "summary.txt").unlink()
    assert main(words(tmp_path, "--iterations", "2", game="all")) == 0
    lines = (tmp_path / "summary.txt").read_text().splitlines()
    assert [line.split()[0] for line in lines if line][1:3] == ["Breakout", "SpaceInvaders"]
    assert {"Breakout", "SpaceInvaders", "variation.png", "variation.svg", "variation.pdf"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert (tmp_path / "SpaceInvaders" / "variation.csv").exists()
    assert "all 2 games together" in capsys.readouterr().out
