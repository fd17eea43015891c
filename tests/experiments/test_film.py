"""Films: whole episodes, and numbers beside the pictures that are the agent's own."""

import dataclasses
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium as gym
import imageio_ffmpeg
import numpy as np
import pytest
from PIL import Image, ImageDraw

import dae
from dae.envs import family_of
from dae.experiments.config import TrainConfig, parse
from dae.experiments.film import Film, record_episode
from dae.experiments.film.episode import Episode, Moment, Still, Thinned, Thought, _think, play_episode
from dae.experiments.film.panel import Frames
from dae.experiments.playing import steps_of_an_episode

WORLD = "Counting-v0"


class Counting(gym.Env):
    """An episode of `length` steps whose picture is as bright as the step; every tenth step pays 1, the last one 5."""

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012
    observation_space = gym.spaces.Box(0, 1000, (1,))
    action_space = gym.spaces.Discrete(3)

    def __init__(self, length: int, render_mode: str | None = None) -> None:
        self.length, self.render_mode = length, render_mode
        self.canvas = np.zeros((20, 30, 3), np.uint8)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.time = 0
        self.canvas[:] = 0
        return np.zeros(1, np.float32), {}

    def step(self, action: int) -> Any:
        self.time += 1
        self.canvas[:] = self.time
        ended = self.time == self.length
        reward = 5.0 if ended else float(self.time % 10 == 0)
        return np.full(1, self.time / 100, np.float32), reward, ended, False, {}

    def render(self) -> Any:
        return self.canvas  # the same array each time, as of some environments


@pytest.fixture(autouse=True)
def world() -> Iterator[None]:
    gym.register(WORLD, Counting, kwargs={"length": 150}, disable_env_checker=True)
    yield
    del gym.registry[WORLD]


def settings() -> TrainConfig:
    return parse([WORLD, "--preset", "quick"])


def agent(advantage: str = "dae", env: str = WORLD) -> dae.PPO:
    return dae.PPO("MlpPolicy", dae.make_vec_env(env, 1), advantage=advantage, n_steps=8, batch_size=8, seed=1)


def play(most_moments: int, longest: int = 1000) -> Episode:
    env = dae.make_vec_env(WORLD, 1, render_mode="rgb_array")
    return play_episode(agent(), settings().family, env, greedy=False, longest=longest, most_moments=most_moments)


# Which steps are shown. ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [2, 7, 8])
def test_thinning_keeps_every_nth_and_fills_at_least_half_of_the_room(most: int) -> None:
    for n in range(1, 200):
        kept: Thinned[int] = Thinned(most)
        for index in range(n):
            if kept.keeps(index):
                kept.items.append(index)
            assert len(kept.items) <= most
        assert kept.items == list(range(0, n, kept.stride))
        assert kept.stride == 1 or len(kept.items) > most / 2 - 1


@pytest.mark.parametrize(("room", "stride"), [(200, 1), (150, 1), (149, 2), (20, 8)])
def test_the_whole_episode_is_shown_with_its_scores(room: int, stride: int) -> None:
    episode = play(room)
    assert (episode.steps, episode.score, episode.stride, episode.ended) == (150, 14 + 5, stride, True)
    assert [m.step for m in episode.moments] == sorted({*range(1, 151, stride), 150})
    for moment in episode.moments:
        assert moment.score == (moment.step - 1) // 10
        assert moment.still.image().getpixel((3, 3)) == (moment.step - 1,) * 3, "the picture before the step"


def test_pictures_are_kept_small() -> None:
    still = Still.of(np.zeros((4000, 6000, 3), np.uint8))
    assert still.size == (480, 320)
    assert len(still.content) < 10_000


# What is written beside them. ----------------------------------------------------------------------------------------


class Text(NamedTuple):
    text: str
    colour: tuple[int, int, int]
    box: tuple[float, float, float, float]


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[Text]:
    """All texts as they are drawn, and where."""
    texts: list[Text] = []
    draw = ImageDraw.ImageDraw.text

    def spy(self: ImageDraw.ImageDraw, at: Any, text: str, fill: Any, font: Any, anchor: str = "la") -> None:
        if text:
            texts.append(Text(text, fill, self.textbbox(at, text, font, anchor)))
        draw(self, at, text, fill, font, anchor)

    monkeypatch.setattr(ImageDraw.ImageDraw, "text", spy)
    return texts


def test_a_frame_shows_what_the_agent_thinks(written: list[Text]) -> None:
    episode, model = play(20), agent()
    frames = Frames(episode)
    assert len(frames) == len(episode.moments) + 1
    frames[2]  # steps 1, 9, 17
    texts = [text.text for text in written]
    credit = model.advantages(np.full((1, 1), 0.16, np.float32))
    largest = max(abs(m.thought.advantages).max() for m in episode.moments if m.thought.advantages is not None)
    assert {"step 17 of 150", "every 8th step", "score 1", "+1", f"value {credit.values[0]:.2f}"} <= set(texts)
    for action in range(3):
        at = texts.index(str(action))
        assert texts[at + 1] == f"{credit.probabilities[0, action]:.2f}"
        assert float(texts[at + 2]) == pytest.approx(credit.advantages[0, action], abs=0.006)
    (scale,) = (text for text in texts if text.startswith("bars: "))
    assert float(scale.rpartition("±")[2]) == pytest.approx(largest, abs=0.006)
    names = {text.text: text.colour for text in written if text.text in ("0", "1", "2")}
    taken = str(int(episode.moments[2].thought.action))
    assert [name for name, colour in names.items() if list(names.values()).count(colour) == 1] == [taken]


def test_the_last_frame_has_the_final_score(written: list[Text]) -> None:
    Frames(play(20))[-1]
    assert {"step 150 of 150", "every 8th step, the episode has ended", "score 19", "+5"} <= {t.text for t in written}


def test_an_episode_that_does_not_end_says_what_part_is_shown(written: list[Text]) -> None:
    episode = play(20, longest=40)
    assert (episode.steps, episode.ended) == (40, False)
    Frames(episode)[-1]
    assert {"step 40 of the first 40", "every 2nd step, the episode goes on"} <= {t.text for t in written}


def frame_of(thought: Thought, names: list[str]) -> Image.Image:
    """The last frame of a film with one moment."""
    moment = Moment(64, Still.of(np.zeros((210, 160, 3), np.uint8)), -1234.56, thought)
    return Frames(Episode([moment], names, 10_000, 0.0, 64, ended=False))[1]


ATARI = ["UP", "DOWN", "NOOP", *(f"UPRIGHTFIRE{k}" for k in range(15))]


@pytest.mark.parametrize("names", [["left"], ATARI, [f"open the {k}th of all doors" for k in range(1000)]], ids=len)
@pytest.mark.parametrize("modelled", [True, False])
def test_many_and_long_names_fit(names: list[str], modelled: bool, written: list[Text]) -> None:
    n = len(names)
    probabilities = np.random.default_rng(0).dirichlet(np.ones(n)).astype(np.float32)
    least = int(probabilities.argmin())
    advantages = -12_345 * probabilities if modelled else None
    frame = frame_of(Thought(-98_765.43, probabilities, advantages, np.array(least)), names)
    for text in written:
        assert frame.width - 330 <= text.box[0] < text.box[2] <= frame.width, text
        assert 0 <= text.box[1] < text.box[3] <= frame.height, text
    for one, other in combinations(written, 2):
        apart = one.box[2] <= other.box[0] or other.box[2] <= one.box[0]
        assert apart or one.box[3] <= other.box[1] + 1 or other.box[3] <= one.box[1] + 1, (one, other)
    texts = [text.text for text in written]
    assert any(names[least].startswith(text.rstrip("…")) for text in texts), "the one that was taken"
    assert any(text.endswith("18 of 1000 actions") for text in texts) == (n == 1000)
    assert ("Â" in texts) == modelled


@pytest.mark.parametrize(
    ("action", "lines"),
    [([0.5, -1.0], ["+0.50", "-1.00"]), ([2, 0], ["2", "0"]), ([7] * 30, ["7"] * 17 + ["and 13 more"])],
)
def test_actions_of_several_numbers_are_written(action: list[float], lines: list[str], written: list[Text]) -> None:
    frame = frame_of(Thought(1.0, None, None, np.array(action)), [])
    assert [text.text for text in written][-len(lines) - 1 :] == ["action", *lines]
    assert written[-1].box[3] <= frame.height


@pytest.mark.parametrize("advantage", ["dae", "gae"])
def test_what_masks_forbid_has_no_probability(advantage: str) -> None:
    env = dae.make_vec_env(WORLD, 1)
    model = agent(advantage)
    (step,) = steps_of_an_episode(model, env, greedy=False, longest=1, look=lambda: np.zeros((1, 1, 3), np.uint8))
    forbidding = dataclasses.replace(step, masks=np.array([[True, False, True]]))
    free, masked = (_think(model, taken, enumerable=True).probabilities for taken in (step, forbidding))
    assert free is not None
    np.testing.assert_allclose(masked, free * [1, 0, 1] / (free[0] + free[2]), rtol=1e-5)


# The files. ----------------------------------------------------------------------------------------------------------


def test_a_gif_has_every_frame_and_stays_at_the_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dae.experiments.film.recording.MOST_FRAMES", 20)
    film = record_episode(agent(), settings(), tmp_path / "film.gif", seed=0)
    assert film == Film(tmp_path / "film.gif", 150, 19.0, 8, ended=True)
    with Image.open(film.path) as gif:
        assert gif.n_frames == 19 + 1 + 1, "every eighth step, the last step, the final score"
        assert gif.size == (480 + 330, 360)
        for k, duration in ((0, 80), (-1 % gif.n_frames, 1500)):
            gif.seek(k)
            assert gif.info["duration"] == duration
    assert list(tmp_path.iterdir()) == [film.path]


def test_an_mp4_stays_at_the_last_frame(tmp_path: Path) -> None:
    film = record_episode(agent("gae"), settings(), tmp_path / "film.mp4", seed=0, longest=5)
    frames, _ = imageio_ffmpeg.count_frames_and_secs(str(film.path))
    assert frames == 5 + 1 + 18


@pytest.mark.parametrize(
    ("film", "text"),
    [
        (Film(Path(), 1, 0.0, 1, ended=True), "1 step, score 0; the film shows all, 12 steps per second"),
        (
            Film(Path(), 2501, -1.25, 8, ended=True),
            "2,501 steps, score -1.25; the film shows every 8th, 96 steps per second",
        ),
        (
            Film(Path(), 10_000, 24.0, 32, ended=False),
            "the first 10,000 steps, score 24 so far; the film shows every 32nd, 384 steps per second",
        ),
    ],
)
def test_a_film_says_what_it_shows(film: Film, text: str) -> None:
    assert str(film) == text


def test_drawing_without_a_screen_prints_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "XDG_RUNTIME_DIR", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    config = parse(["CartPole-v1", "--preset", "quick"])
    record_episode(agent(env="CartPole-v1"), config, tmp_path / "film.gif", seed=0, longest=2)
    assert capfd.readouterr() == ("", "")


def test_the_film_of_a_minatar_game_ends_with_the_state_in_which_it_ended(written: list[Text]) -> None:
    env = dae.make_vec_env("MinAtar/Breakout-v1", 1, render_mode="rgb_array")
    model = dae.PPO("CnnPolicy", env, seed=0)
    steps: list[Any] = []
    step = env.step_wait
    env.step_wait = lambda: steps.append(step()) or steps[-1]  # type: ignore[method-assign, func-returns-value]
    episode = play_episode(model, family_of("MinAtar/Breakout-v1"), env, greedy=False, longest=1000, most_moments=1000)
    assert episode.ended
    assert episode.last is not None
    ended = env.batch.render(steps[-1][3][0]["terminal_observation"][None])[0]
    assert episode.last == Still.of(ended)
    assert episode.last != episode.moments[-1].still
    Frames(episode)[-1]
    assert not any(t.text.startswith(("value", "π")) for t in written), "nothing is done in it any more"
