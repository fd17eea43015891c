"""Random states that play seldom reaches, written into our games and into the package's alike."""

from typing import Any

import numpy as np

from dae.envs.minatar import MinAtarBatch


def random_states(batch: MinAtarBatch, rng: np.random.Generator) -> np.ndarray:
    """States anywhere within their bounds, but such that both implementations can draw them."""
    states = batch.get_state()
    n = len(states)
    for field in batch.rules.FIELDS:
        states[field.name] = rng.integers(max(field.low, -3), field.high, size=(n, *field.shape), endpoint=True)
    _REPAIRS[batch.game](states, rng)
    return states


def _repair_asterix(states: np.ndarray, rng: np.random.Generator) -> None:
    states["present"] = rng.random(states["present"].shape) < rng.choice([0.5, 0.95, 1.0], size=(len(states), 1))


def _repair_breakout(states: np.ndarray, rng: np.random.Generator) -> None:
    states["bricks"] &= (rng.random(states["bricks"].shape) < rng.choice([0, 0.05, 0.9], size=(len(states), 1))).astype(
        np.int8
    )


def _repair_freeway(states: np.ndarray, rng: np.random.Generator) -> None:
    states["row"] = rng.integers(1, 10, len(states))
    states["car_speed"] = rng.integers(1, 6, states["car_speed"].shape) * rng.choice([-1, 1], states["car_speed"].shape)
    states["time_left"] = rng.choice([0, 1, 2, 500], len(states))


def _repair_seaquest(states: np.ndarray, rng: np.random.Generator) -> None:
    """Short lists of things in rows 1 to 8, none twice in the list, and the submarine's back within the picture."""
    states["sub_x"] = np.where(states["sub_to_right"], states["sub_x"].clip(1), states["sub_x"].clip(None, 8))
    states["oxygen"] = rng.choice([0, 1, 30, 200], len(states))
    states["diver_count"] = rng.integers(-2, 7, len(states))
    for i in range(len(states)):
        for name, most in (("bullets", 3), ("enemy_bullets", 8), ("fish", 8), ("subs", 8), ("divers", 3)):
            places = rng.permutation(80)[: rng.integers(0, most + 1)]
            rows = states[name][i]
            states[f"n_{name}"][i] = len(places)
            rows[: len(places), 0], rows[: len(places), 1] = places % 10, 1 + places // 10
            rows[:, 2] = rng.integers(0, 2, len(rows))
            if rows.shape[1] > 3:
                rows[:, 3] = rng.integers(0, 3, len(rows))
            if rows.shape[1] > 4:
                rows[:, 4] = rng.integers(0, 3, len(rows))


def _repair_space_invaders(states: np.ndarray, rng: np.random.Generator) -> None:
    states["alien_direction"] = rng.choice([-1, 1], len(states))
    density = rng.choice([0.02, 0.1, 0.5], size=(len(states), 1))
    for name in ("aliens", "friendly_bullets", "enemy_bullets"):
        states[name] = rng.random((len(states), 100)) < density
    states["aliens"][states["aliens"].sum(1) == 0, 42] = 1
    states["move_interval"] = rng.choice([6, 7, 12], len(states))
    last = np.arange(0, len(states), 3)  # in a third of the games the last alien is about to be shot
    place = rng.integers(20, 70, len(last))
    for name in ("aliens", "friendly_bullets", "enemy_bullets"):
        states[name][last] = 0
    states["aliens"][last, place] = states["friendly_bullets"][last, place + 10] = 1
    states["move_timer"][last] = 3


_REPAIRS = {
    "asterix": _repair_asterix,
    "breakout": _repair_breakout,
    "freeway": _repair_freeway,
    "seaquest": _repair_seaquest,
    "space_invaders": _repair_space_invaders,
}


def write(name: str, s: Any, game: Any) -> None:
    """Put one of our states into a game of the package."""
    _WRITERS[name](s, game)
    game.terminal = False


def _write_asterix(s: Any, game: Any) -> None:
    game.player_x, game.player_y = int(s["player_x"]), int(s["player_y"])
    for name in ("spawn_speed", "spawn_timer", "move_speed", "move_timer", "ramp_timer", "ramp_index"):
        setattr(game, name, int(s[name]))
    game.entities = [
        [int(s["x"][i]), i + 1, bool(s["to_right"][i]), bool(s["gold"][i])] if s["present"][i] else None
        for i in range(8)
    ]


def _write_breakout(s: Any, game: Any) -> None:
    game.ball_x, game.ball_y, game.ball_dir = int(s["ball_x"]), int(s["ball_y"]), int(s["ball_direction"])
    game.last_x, game.last_y, game.pos, game.strike = (
        int(s["last_x"]),
        int(s["last_y"]),
        int(s["paddle"]),
        bool(s["strike"]),
    )
    game.brick_map = np.zeros((10, 10))
    game.brick_map[1:4] = s["bricks"].reshape(3, 10)


def _write_freeway(s: Any, game: Any) -> None:
    game.pos, game.move_timer, game.terminate_timer = int(s["row"]), int(s["move_timer"]), int(s["time_left"])
    game.cars = [[int(s["car_x"][i]), i + 1, int(s["car_timer"][i]), int(s["car_speed"][i])] for i in range(8)]


def _write_seaquest(s: Any, game: Any) -> None:
    game.sub_x, game.sub_y, game.sub_or = int(s["sub_x"]), int(s["sub_y"]), bool(s["sub_to_right"])
    game.oxygen, game.diver_count, game.surface = int(s["oxygen"]), int(s["diver_count"]), bool(s["surfaced"])
    game.shot_timer, game.move_speed, game.ramp_index = int(s["shot_timer"]), int(s["move_speed"]), int(s["ramp_index"])
    game.e_spawn_speed, game.e_spawn_timer = int(s["spawn_speed"]), int(s["spawn_timer"])
    game.d_spawn_timer = int(s["diver_spawn_timer"])
    lists = {
        "bullets": "f_bullets",
        "enemy_bullets": "e_bullets",
        "fish": "e_fish",
        "subs": "e_subs",
        "divers": "divers",
    }
    for ours, theirs in lists.items():
        rows = s[ours][: s[f"n_{ours}"]].tolist()
        setattr(game, theirs, [[x, y, bool(to_right), *rest] for x, y, to_right, *rest in rows])


def _write_space_invaders(s: Any, game: Any) -> None:
    game.pos, game.alien_dir, game.shot_timer = int(s["cannon"]), int(s["alien_direction"]), int(s["shot_timer"])
    game.enemy_move_interval, game.alien_move_timer = int(s["move_interval"]), int(s["move_timer"])
    game.alien_shot_timer, game.ramp_index = int(s["alien_shot_timer"]), int(s["ramp_index"])
    for ours, theirs in (
        ("aliens", "alien_map"),
        ("friendly_bullets", "f_bullet_map"),
        ("enemy_bullets", "e_bullet_map"),
    ):
        setattr(game, theirs, s[ours].reshape(10, 10).astype(float))


_WRITERS = {
    "asterix": _write_asterix,
    "breakout": _write_breakout,
    "freeway": _write_freeway,
    "seaquest": _write_seaquest,
    "space_invaders": _write_space_invaders,
}
