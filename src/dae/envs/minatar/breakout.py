"""Breakout: keep the ball in play with the paddle and break three rows of bricks; a cleared wall is rebuilt."""

import numpy as np
from numba import njit

from dae.envs.minatar.rng import integer
from dae.envs.minatar.state import Field

CHANNELS = {"paddle": (66, 135, 245), "ball": (255, 255, 255), "trail": (110, 110, 120), "brick": (222, 120, 60)}
MINIMAL_ACTIONS = (0, 1, 3)
FIELDS = (
    Field("ball_x", 0, 9),
    Field("ball_y", 0, 8),
    Field("ball_direction", 0, 3),  # up-left, up-right, down-right, down-left
    Field("paddle", 0, 9),
    Field("last_x", 0, 9),
    Field("last_y", 0, 8),
    Field("strike", 0, 1),  # the ball hit a brick and has not left the wall since
    Field("bricks", 0, 1, (30,)),  # rows 1 to 3
)

# Indexed by direction: after a bounce off a side wall, off a horizontal surface, and back where it came from.
_OFF_SIDE = np.array([1, 0, 3, 2])
_OFF_FLAT = np.array([3, 2, 1, 0])
_BACK = np.array([2, 3, 0, 1])


@njit
def reset(s):
    from_right = integer(s, 2)
    s.ball_x = 9 if from_right else 0
    s.ball_y = 3
    s.ball_direction = 3 if from_right else 2
    s.paddle = 4
    s.last_x = s.ball_x
    s.last_y = s.ball_y
    s.strike = 0
    s.bricks[:] = 1


@njit
def step(s, action, ramping):
    reward = 0
    terminal = False
    if action == 1:
        s.paddle = max(0, s.paddle - 1)
    elif action == 3:
        s.paddle = min(9, s.paddle + 1)

    s.last_x, s.last_y = s.ball_x, s.ball_y
    direction = s.ball_direction
    x = s.ball_x + (1 if direction == 1 or direction == 2 else -1)
    y = s.ball_y + (1 if direction >= 2 else -1)
    touches_brick = False
    if x < 0 or x > 9:
        x = min(max(x, 0), 9)
        direction = _OFF_SIDE[direction]
    if y < 0:
        y = 0
        direction = _OFF_FLAT[direction]
    elif 1 <= y <= 3 and s.bricks[(y - 1) * 10 + x]:
        touches_brick = True
        if not s.strike:
            reward = 1
            s.strike = 1
            s.bricks[(y - 1) * 10 + x] = 0
            y = s.last_y
            direction = _OFF_FLAT[direction]
    elif y == 9:
        if not s.bricks.any():
            s.bricks[:] = 1
        if s.ball_x == s.paddle:
            direction = _OFF_FLAT[direction]
            y = s.last_y
        elif x == s.paddle:
            direction = _BACK[direction]
            y = s.last_y
        else:
            terminal = True
    if not touches_brick:
        s.strike = 0
    s.ball_x, s.ball_y, s.ball_direction = x, y, direction
    return reward, terminal


@njit
def observe(s, planes):
    planes[:] = 0
    planes[90 + s.paddle] = 1
    planes[100 + 10 * s.ball_y + s.ball_x] = 1
    planes[200 + 10 * s.last_y + s.last_x] = 1
    for i in range(30):
        planes[310 + i] = s.bricks[i]
