"""The chain experiment: the batched program is the plain one, and it shows what the paper shows."""

import csv
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from dae import theory
from dae.cli import main
from dae.experiments.synthetic import run as run_module
from dae.experiments.synthetic.config import SyntheticConfig
from dae.experiments.synthetic.learners import ESTIMATORS, GROUP, Learners, Walks, grouped
from tests.experiments.synthetic.plain import PlainAgent

CPU = torch.device("cpu")
SMALL = SyntheticConfig(states=12, hidden=16, iterations=8)
WORDS = ["--states", "12", "--hidden", "16", "--iterations", "8"]


@pytest.mark.parametrize(("method", "policy_loss"), [*((name, "mean") for name in ESTIMATORS), ("dae", "sum")])
def test_every_step_equals_that_of_plain_modules_with_one_hot_inputs(method: str, policy_loss: str) -> None:
    config = replace(SMALL, policy_steps=2, policy_loss=policy_loss)
    learners = Learners(config, method, range(3), CPU)
    agents = [
        PlainAgent(
            config,
            method,
            learners.best[k],
            [(w[k], b[k, :, 0]) for w, b in zip(learners.critics.weights, learners.critics.biases, strict=True)],
        )
        for k in range(3)
    ]
    streams = [torch.Generator() for _ in agents]
    for stream, generator in zip(streams, learners._generators, strict=True):
        stream.set_state(generator.get_state())
    for _ in range(8):
        errors, returns = learners.iterate()
        for k, (agent, stream) in enumerate(zip(agents, streams, strict=True)):
            error, expected = agent.iterate(torch.rand(config.trajectories, config.states, generator=stream))
            assert float(errors[k]) == pytest.approx(error, rel=1e-4)
            assert float(returns[k]) == pytest.approx(expected, rel=1e-5)
            torch.testing.assert_close(learners.logits[k].T, agent.logits, rtol=1e-4, atol=1e-6)
            for layer, weights, biases in zip(
                agent.network[::2], learners.critics.weights, learners.critics.biases, strict=True
            ):
                torch.testing.assert_close(weights[k], layer.weight, rtol=1e-4, atol=1e-6)
                torch.testing.assert_close(biases[k, :, 0], layer.bias, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("states", [7, 128])
@pytest.mark.parametrize("method", ESTIMATORS)
def test_a_seed_does_not_know_of_others(method: str, states: int) -> None:
    config = replace(SMALL, states=states)
    alone = Learners(config, method, [25], CPU)
    among_others = Learners(config, method, range(20, 40), CPU)
    for _ in range(20):
        own, others = alone.iterate(), among_others.iterate()
        assert torch.equal(own[0][0], others[0][5])
        assert torch.equal(own[1][0], others[1][5])
    assert torch.equal(alone.logits[5], among_others.logits[5])


def test_seeds_train_together_only_within_their_group() -> None:
    assert grouped([0, 1, 18, 19, 20, 21, 45]) == [[0, 1], [18, 19], [20, 21], [45]]
    assert [len(seeds) for seeds in grouped(range(100))] == [20] * 5


def test_the_true_advantages_and_returns_are_those_of_the_theory() -> None:
    config = replace(SMALL, gamma=0.9)
    learners = Learners(config, "dae", [1], CPU)
    for _ in range(5):
        learners.iterate()
    walks = learners.walk()
    walks_of_one = walks.actions[1].numpy()
    policy = np.vstack([walks.probs[1].T.double().numpy(), [0.5, 0.5]])
    policy /= policy.sum(1, keepdims=True)
    mdp = theory.chain(config.states, gamma=0.9, best=learners.best[1].numpy())
    exact = theory.advantages(mdp, policy)[np.arange(config.states), walks_of_one]
    undiscounted = theory.chain(config.states, gamma=1.0, best=learners.best[1].numpy())
    expected = theory.state_values(undiscounted, policy)[0]

    learners.walk = lambda: walks
    learners.estimator.advantages = lambda *_: torch.tensor(exact, dtype=torch.float32).expand(GROUP, -1, -1)
    errors, returns = learners.iterate()
    assert float(errors[0]) == pytest.approx(0, abs=1e-12)
    assert float(returns[0]) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(("policy_loss", "expected"), [("mean", 125.98), ("sum", 127.12)])
def test_with_the_true_advantages_the_choice_of_the_loss_decides_the_return(policy_loss: str, expected: float) -> None:
    """The numbers were found by a program that shares nothing with this one."""
    learners = Learners(SyntheticConfig(policy_loss=policy_loss, hidden=8, critic_steps=1), "dae", range(10), CPU)

    def truth(walks: Walks, _: torch.Tensor) -> torch.Tensor:
        return walks.rewards - walks.probs.gather(1, learners.best[:, None])

    learners.estimator.loss = lambda _, outputs: 0 * outputs.sum()
    learners.estimator.advantages = truth
    for _ in range(1000):
        _, returns = learners.iterate()
    assert float(returns.mean()) == pytest.approx(expected, abs=0.02)


@pytest.fixture(scope="module")
def paper() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """The paper's settings with a smaller critic, two seeds and 300 iterations."""
    found = {}
    for method in ("dae", "gae"):
        learners = Learners(SyntheticConfig(hidden=96), method, range(2), CPU)
        curves = [learners.iterate() for _ in range(300)]
        found[method] = tuple(np.array([float(curve[k].mean()) for curve in curves]) for k in (0, 1))
    return found


def test_dae_finds_the_true_advantages_and_gae_does_not(paper: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    assert paper["dae"][0][-1] * 100 < paper["gae"][0][-1]


def test_gae_is_ahead_early_and_dae_later(paper: dict[str, tuple[np.ndarray, np.ndarray]]) -> None:
    lead = paper["gae"][1] - paper["dae"][1]
    assert lead[:100].max() > 1
    assert lead[-1] < -1


def table(folder: Path) -> list[dict[str, str]]:
    with (folder / "synthetic.csv").open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_command_writes_data_figures_and_a_summary(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["synthetic", "--seeds", "3", *WORDS, "--methods", *ESTIMATORS, "--out", str(tmp_path)]) == 0
    rows = table(tmp_path)
    assert len(rows) == 5 * 3 * 8
    assert {row["method"] for row in rows} == set(ESTIMATORS)
    assert all(np.isfinite(float(row["mse"])) for row in rows)
    for ending, start in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")):
        assert (tmp_path / f"synthetic.{ending}").read_bytes().startswith(start)
    told = (tmp_path / "summary.txt").read_text()
    assert told in capsys.readouterr().out
    assert max(map(len, told.splitlines())) <= 80
    of_dae = [float(row["mse"]) for row in rows if row["method"] == "dae" and row["iteration"] == "8"]
    lines = [line.split() for line in told.splitlines() if line.startswith("DAE ")]
    assert len(lines) == 2, "one line in the table of errors and one in that of returns"
    error = np.std(of_dae, ddof=1) / 3**0.5
    assert float(lines[0][1]) == pytest.approx(np.mean(of_dae), abs=error)
    assert float(lines[0][3]) == pytest.approx(error, rel=0.5)  # one significant digit
    with (tmp_path / "means.csv").open(newline="") as file:
        means = {(row["method"], row["iteration"]): row for row in csv.DictReader(file)}
    assert float(means["dae", "8"]["mse_mean"]) == pytest.approx(np.mean(of_dae), rel=1e-4)


@pytest.mark.parametrize("states", ["7", "16"])
def test_the_same_command_gives_the_same_files_and_more_seeds_are_added_to_them(tmp_path: Path, states: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    words = [*WORDS, "--states", states]
    assert main(["synthetic", "--seeds", "2", *words, "--methods", "gae", "--out", str(first)]) == 0
    kept = table(first)
    assert main(["synthetic", "--seeds", "22", *words, "--out", str(first)]) == 0
    assert main(["synthetic", "--seeds", "22", *words, "--out", str(second)]) == 0
    for name in ("synthetic.csv", "means.csv", "summary.txt", "synthetic.svg"):
        assert (first / name).read_bytes() == (second / name).read_bytes(), name
    assert [row for row in table(first) if row["method"] == "gae" and int(row["seed"]) < 2] == kept


def test_what_is_finished_survives_a_kill(tmp_path: Path) -> None:
    words = ["synthetic", "--seeds", "2", *WORDS, "--threads", "1", "--out", str(tmp_path / "killed")]
    killed_in_gae = (
        "import os, signal, sys, time; from dae.cli import main; from dae.experiments.synthetic import learners;"
        "learners.GAE.prepare = lambda *_: (time.sleep(1), os.kill(os.getpid(), signal.SIGKILL)); main(sys.argv[1:])"
    )
    result = subprocess.run([sys.executable, "-c", killed_in_gae, *words], check=False, capture_output=True)
    assert result.returncode == -9
    kept = table(tmp_path / "killed")
    assert {row["method"] for row in kept} == {"dae"}
    assert main(words) == 0
    assert main([*words[:-1], str(tmp_path / "whole")]) == 0
    assert table(tmp_path / "killed") == table(tmp_path / "whole")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--seeds", "0"], "seeds is 0: it must be an integer of at least 1"),
        (["--gamma", "1.5"], "gamma is 1.5: it must be in [0, 1]"),
        (["--critic-learning-rate", "nan"], "critic_learning_rate is nan: it must be a positive number"),
        (["--methods", "dae", "dae"], "it must be one or more, each named once"),
        (["--methods", "doe"], "doe"),
        (["--device", "tpu9"], "device is 'tpu9'"),
        (["--iterations", "9"], "different settings (iterations is 8 there and 9 here)"),
    ],
)
def test_a_mistake_gets_one_line_and_does_no_damage(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    start = ["synthetic", "--seeds", "1", *WORDS, "--out", str(tmp_path)]
    assert main(start) == 0
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "lock"}
    capsys.readouterr()
    assert main([*start, *words]) == 2
    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert message in told
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.name != "lock"} == before


def test_a_folder_from_before_a_setting_existed_goes_on(tmp_path: Path) -> None:
    words = ["synthetic", *WORDS, "--out", str(tmp_path)]
    assert main([*words, "--seeds", "1"]) == 0
    described = tmp_path / "settings.json"
    described.write_text("\n".join(line for line in described.read_text().splitlines() if "policy_loss" not in line))
    assert main([*words, "--seeds", "2"]) == 0
    assert len(table(tmp_path)) == 2 * 2 * 8
    assert main([*words, "--policy-loss", "sum"]) == 2


def test_a_table_without_its_settings_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["synthetic", "--seeds", "1", *WORDS, "--out", str(tmp_path)]
    assert main(words) == 0
    (tmp_path / "settings.json").unlink()
    before = (tmp_path / "synthetic.csv").read_bytes()
    assert main([*words, "--iterations", "9"]) == 2
    assert "exists without its settings.json" in capsys.readouterr().err
    assert (tmp_path / "synthetic.csv").read_bytes() == before


def test_a_signal_while_the_figure_is_drawn_ends_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_module, "draw", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    try:
        assert main(["synthetic", "--seeds", "1", *WORDS, "--out", str(tmp_path)]) == 143
    finally:  # a process that was told to stop ignores more of it, which this one shall not
        signal.signal(signal.SIGTERM, before[0])
        signal.signal(signal.SIGINT, before[1])
    assert "stopped by SIGTERM; finished seeds are kept" in capsys.readouterr().out


def test_a_torn_table_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["synthetic", "--seeds", "1", *WORDS, "--out", str(tmp_path)]
    assert main(words) == 0
    content = (tmp_path / "synthetic.csv").read_text()
    (tmp_path / "synthetic.csv").write_text(content[: len(content) // 2])
    assert main(words) == 2
    assert "was damaged or changed" in capsys.readouterr().err
