"""`dae explore`: the page and the data that it leaves, for every kind of agent, and what it refuses."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import dae
from dae.cli import main
from dae.experiments.training.run import train
from dae.runs import RunFolder
from tests.experiments.small import BREAKOUT, CARTPOLE, small

FEW = ["--episodes", "2", "--steps", "40", "--what-if", "2", "--rollouts", "10", "--horizon", "20", "--threads", "1"]


def trained(folder: Path, *words: str, of: list[str]) -> Path:
    config = small(folder, "--frames", "200", *words, of=of)
    assert train(config) == 0
    return config.folder


@pytest.fixture(scope="module")
def breakout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("breakout"), of=BREAKOUT)


@pytest.fixture(scope="module")
def explored(breakout: Path) -> Path:
    assert main(["explore", str(breakout.parent), *FEW, "--gif"]) == 0
    return breakout / "explore"


def test_the_numbers_are_those_of_the_agent(explored: Path, breakout: Path) -> None:
    found = json.loads((explored / "explore.json").read_text())
    assert (found["env"], found["source"], found["action_names"]) == (
        "MinAtar/Breakout-v1",
        "network",
        ["stay", "left", "right"],
    )
    run = dae.load_run(breakout)
    for k, episode in enumerate(found["episodes"]):
        env = run.make_env(1, 1000 + k)
        seen = [env.reset()]
        rewards = []
        for action in episode["actions"]:
            observation, reward, *_ = env.step(np.array([action]))
            seen.append(observation)
            rewards.append(float(reward[0]))
        credit = run.model.advantages(np.concatenate(seen[:-1]))
        np.testing.assert_allclose(episode["advantages"], credit.advantages, atol=1e-6)
        np.testing.assert_allclose(episode["values"], credit.values, atol=1e-6)
        np.testing.assert_allclose(episode["probabilities"], credit.probabilities, atol=1e-6)
        assert (episode["rewards"], episode["score"]) == (rewards, sum(rewards))
        assert episode["segments"][0]["return"] == pytest.approx(
            sum(run.model.gamma**t * reward for t, reward in enumerate(rewards))
        )
    assert sum(len(episode["truths"]) for episode in found["episodes"]) == 2
    rows = list(csv.DictReader((explored / "explore.csv").read_text().splitlines()))
    assert len(rows) == sum(len(episode["actions"]) for episode in found["episodes"])
    assert float(rows[0]["advantage stay"]) == pytest.approx(found["episodes"][0]["advantages"][0][0])


def test_a_clip_shows_the_first_episode(
    explored: Path, breakout: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert (explored / "episode.gif").read_bytes().startswith(b"GIF8")
    assert main(["explore", str(breakout), *FEW, "--gif", "--out", str(tmp_path)]) == 0
    first = json.loads((explored / "explore.json").read_text())["episodes"][0]
    assert f"{len(first['actions'])} steps, score {first['score']:g}" in capsys.readouterr().out
    for name in ("index.html", "explore.json", "explore.csv", "episode.gif"):  # the same again, wherever it lies
        assert (tmp_path / name).read_bytes() == (explored / name).read_bytes()


def test_an_agent_without_advantages_looks_one_step_ahead(tmp_path: Path) -> None:
    folder = trained(tmp_path, "--advantage", "gae", of=CARTPOLE)
    assert main(["explore", str(folder), *FEW]) == 0
    found = json.loads((folder / "explore" / "explore.json").read_text())
    assert found["source"] == "look-ahead"
    episode = found["episodes"][0]
    centred = (np.array(episode["probabilities"]) * np.array(episode["advantages"])).sum(1)
    np.testing.assert_allclose(centred, 0, atol=1e-5)
    assert episode["truths"]


def test_where_nothing_can_be_restored_the_rest_is_shown(
    breakout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dae.envs.minatar.family.MinAtar.can_be_restored", lambda self, env_id, **options: False)
    assert main(["explore", str(breakout), *FEW, "--out", str(tmp_path)]) == 0
    assert "other actions are not tried: MinAtar/Breakout-v1 cannot be restored exactly" in capsys.readouterr().err
    found = json.loads((tmp_path / "explore.json").read_text())
    assert found["source"] == "network"
    assert not any(episode["truths"] for episode in found["episodes"])


def test_a_report_links_to_the_page(breakout: Path, explored: Path, tmp_path: Path) -> None:
    runs = tmp_path / 'run "of" <mine>'
    shutil.copytree(breakout, runs / "a")
    assert main(["report", str(runs), "--out", str(tmp_path / "report")]) == 0
    page = (tmp_path / "report" / "index.html").read_text()
    address = "../run%20%22of%22%20%3Cmine%3E/a/explore/index.html"
    assert f'<a href="{address}">' in page
    assert RunFolder(runs / "a").explorer.read_bytes() == (explored / "index.html").read_bytes()


def test_mistakes_are_told_in_one_line(breakout: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    normalised = trained(tmp_path / "n", "--normalize-rewards", "yes", of=CARTPOLE)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "index.html").write_text("<p>my own page</p>")
    pendulum = trained(tmp_path, "--advantage", "gae", of=["Pendulum-v1", *CARTPOLE[1:]])
    capsys.readouterr()
    for words, said in (
        ([str(pendulum)], "the explorer shows Discrete ones"),
        ([str(normalised)], "was trained with normalised rewards"),
        ([str(breakout), "--out", str(tmp_path / "mine")], "is not a page of dae explore: choose another --out"),
        ([str(breakout), "--rollouts", "9"], "rollouts is 9: it must be an integer of at least 10"),
        ([str(breakout), "--best"], "has no best agent"),
        ([str(breakout), "--episodes", "0"], "episodes is 0"),
        ([str(tmp_path / "none")], "there is no folder"),
    ):
        assert main(["explore", *words]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert said in line
    assert not (pendulum / "explore").exists()
