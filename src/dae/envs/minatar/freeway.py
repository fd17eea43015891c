"""Freeway: cross eight lanes of cars as often as possible before the time is up."""

from numba import njit

from dae.envs.minatar.rng import integer, uniform
from dae.envs.minatar.state import Field

CHANNELS = {
    "chicken": (255, 221, 87),
    "car": (228, 87, 86),
    "speed1": (60, 60, 90),
    "speed2": (70, 85, 120),
    "speed3": (80, 115, 150),
    "speed4": (90, 145, 180),
    "speed5": (100, 175, 210),
}
MINIMAL_ACTIONS = (0, 2, 4)
PLAYER_SPEED = 3
TIME_LIMIT = 2500
FIELDS = (
    Field("row", 0, 9),
    Field("move_timer", 0, PLAYER_SPEED),
    Field("time_left", 0, TIME_LIMIT),
    Field("car_x", 0, 9, (8,)),  # the car of lane i drives in row i + 1
    Field("car_timer", 0, 5, (8,)),
    Field("car_speed", -5, 5, (8,)),  # frames per move minus one; negative drives left
)


@njit
def _randomize_cars(s):
    for i in range(8):
        s.car_timer[i] = 1 + integer(s, 5)
    for i in range(8):
        s.car_speed[i] = s.car_timer[i] if uniform(s) > 0.5 else -s.car_timer[i]


@njit
def reset(s):
    _randomize_cars(s)
    s.car_x[:] = 0
    s.row = 9
    s.move_timer = PLAYER_SPEED
    s.time_left = TIME_LIMIT


@njit
def step(s, action, ramping):
    reward = 0
    if action == 2 and s.move_timer == 0:
        s.move_timer = PLAYER_SPEED
        s.row = max(0, s.row - 1)
    elif action == 4 and s.move_timer == 0:
        s.move_timer = PLAYER_SPEED
        s.row = min(9, s.row + 1)
    if s.row == 0:
        reward = 1
        _randomize_cars(s)
        s.row = 9

    for i in range(8):
        if s.car_x[i] == 4 and s.row == i + 1:
            s.row = 9
        if s.car_timer[i] == 0:
            s.car_timer[i] = abs(s.car_speed[i])
            x = s.car_x[i] + (1 if s.car_speed[i] > 0 else -1)
            s.car_x[i] = 9 if x < 0 else 0 if x > 9 else x
            if s.car_x[i] == 4 and s.row == i + 1:
                s.row = 9
        else:
            s.car_timer[i] -= 1

    s.move_timer = max(0, s.move_timer - 1)
    s.time_left -= 1
    return reward, s.time_left < 0


@njit
def observe(s, planes):
    planes[:] = 0
    planes[10 * s.row + 4] = 1
    for i in range(8):
        x, speed = s.car_x[i], s.car_speed[i]
        planes[100 + 10 * (i + 1) + x] = 1
        back = x - 1 if speed > 0 else x + 1
        back = 9 if back < 0 else 0 if back > 9 else back
        planes[100 * (1 + abs(speed)) + 10 * (i + 1) + back] = 1
