"""Asterix: move among eight lanes, collect gold and avoid everything else."""

from numba import njit

from dae.envs.minatar.rng import integer, uniform
from dae.envs.minatar.state import Field

CHANNELS = {"player": (66, 135, 245), "enemy": (228, 87, 86), "trail": (90, 90, 100), "gold": (255, 205, 60)}
MINIMAL_ACTIONS = (0, 1, 2, 3, 4)
RAMP_INTERVAL = 100
SPAWN_SPEED = 10
MOVE_INTERVAL = 5
FIELDS = (
    Field("player_x", 0, 9),
    Field("player_y", 1, 8),
    Field("spawn_speed", 1, SPAWN_SPEED),
    Field("spawn_timer", 0, SPAWN_SPEED),
    Field("move_speed", 1, MOVE_INTERVAL),
    Field("move_timer", 0, MOVE_INTERVAL),
    Field("ramp_timer", -1, RAMP_INTERVAL),
    Field("ramp_index", 0, 127),
    Field("present", 0, 1, (8,)),  # the entity of slot i moves in row i + 1
    Field("x", 0, 9, (8,)),
    Field("to_right", 0, 1, (8,)),
    Field("gold", 0, 1, (8,)),
)


@njit
def reset(s):
    s.player_x = s.player_y = 5
    s.spawn_speed = s.spawn_timer = SPAWN_SPEED
    s.move_speed = s.move_timer = MOVE_INTERVAL
    s.ramp_timer = RAMP_INTERVAL
    s.ramp_index = 0
    s.present[:] = 0
    s.x[:] = 0
    s.to_right[:] = 0
    s.gold[:] = 0


@njit
def _spawn(s):
    to_right = uniform(s) < 1 / 2
    gold = uniform(s) < 1 / 3
    free = 8 - s.present.sum()
    if free == 0:
        return
    skip = integer(s, free)
    for i in range(8):
        if not s.present[i]:
            if skip == 0:
                s.present[i] = 1
                s.x[i] = 0 if to_right else 9
                s.to_right[i] = to_right
                s.gold[i] = gold
                return
            skip -= 1


@njit
def _meet(s, i):
    """What the player and entity i do to each other where they stand: reward, terminal."""
    if not (s.present[i] and s.x[i] == s.player_x and s.player_y == i + 1):
        return 0, False
    if s.gold[i]:
        s.present[i] = 0
        return 1, False
    return 0, True


@njit
def step(s, action, ramping):
    reward = 0
    terminal = False
    if s.spawn_timer == 0:
        _spawn(s)
        s.spawn_timer = s.spawn_speed

    if action == 1:
        s.player_x = max(0, s.player_x - 1)
    elif action == 3:
        s.player_x = min(9, s.player_x + 1)
    elif action == 2:
        s.player_y = max(1, s.player_y - 1)
    elif action == 4:
        s.player_y = min(8, s.player_y + 1)

    for i in range(8):
        earned, caught = _meet(s, i)
        reward += earned
        terminal |= caught
    if s.move_timer == 0:
        s.move_timer = s.move_speed
        for i in range(8):
            if s.present[i]:
                x = s.x[i] + (1 if s.to_right[i] else -1)
                if 0 <= x <= 9:
                    s.x[i] = x
                else:
                    s.present[i] = 0
                earned, caught = _meet(s, i)
                reward += earned
                terminal |= caught

    s.spawn_timer -= 1
    s.move_timer -= 1
    if ramping and (s.spawn_speed > 1 or s.move_speed > 1):
        if s.ramp_timer >= 0:
            s.ramp_timer -= 1
        else:
            if s.move_speed > 1 and s.ramp_index % 2:
                s.move_speed -= 1
            if s.spawn_speed > 1:
                s.spawn_speed -= 1
            s.ramp_index += 1
            s.ramp_timer = RAMP_INTERVAL
    return reward, terminal


@njit
def observe(s, planes):
    planes[:] = 0
    planes[10 * s.player_y + s.player_x] = 1
    for i in range(8):
        if s.present[i]:
            row = 10 * (i + 1)
            planes[(300 if s.gold[i] else 100) + row + s.x[i]] = 1
            back = s.x[i] - 1 if s.to_right[i] else s.x[i] + 1
            if 0 <= back <= 9:
                planes[200 + row + back] = 1
