"""Scripted players that reach deep states: they read the package's game and name one of the six actions."""

from typing import Any

NOTHING, LEFT, UP, RIGHT, DOWN, FIRE = range(6)


def breakout(game: Any) -> int:
    """Stand where the ball will come down."""
    x, y, direction = game.ball_x, game.ball_y, game.ball_dir
    dx, dy = (1 if direction in (1, 2) else -1), (1 if direction >= 2 else -1)
    for _ in range(30):
        if dy > 0 and y >= 8:
            break
        x, y = x + dx, y + dy
        if x < 0 or x > 9:
            x, dx = min(max(x, 0), 9), -dx
        if y < 0 or (1 <= y <= 3 and game.brick_map[y, x]):
            y, dy = max(y, 0), -dy
            y += dy
    return LEFT if x < game.pos else RIGHT if x > game.pos else NOTHING


def freeway(game: Any) -> int:
    """Walk up, waiting where a car is about to pass."""
    ahead = [car for car in game.cars if car[1] == game.pos - 1]
    return NOTHING if ahead and abs(ahead[0][0] - 4) <= 1 else UP


def asterix(game: Any) -> int:
    """Flee from what comes close in this lane, else go for gold."""
    lane = game.entities[game.player_y - 1]
    if lane is not None and not lane[3] and abs(lane[0] - game.player_x) <= 2:
        for move, y in ((UP, game.player_y - 1), (DOWN, game.player_y + 1)):
            other = game.entities[y - 1] if 1 <= y <= 8 else None
            if 1 <= y <= 8 and (other is None or other[3] or abs(other[0] - game.player_x) > 2):
                return move
        return LEFT if lane[0] >= game.player_x else RIGHT
    return NOTHING


def seaquest(game: Any) -> int:
    """Collect divers, shoot what stands in the way, and surface with six of them or when the air gets thin."""
    if game.oxygen < 25 and game.diver_count > 0:
        return UP
    return stubborn_seaquest(game)


def stubborn_seaquest(game: Any) -> int:
    """The same, but down to the last breath unless there are six."""
    if game.diver_count >= 6:
        return UP
    for enemy in game.e_fish + game.e_subs:
        if enemy[1] == game.sub_y:
            facing = enemy[0] > game.sub_x
            if facing != game.sub_or:
                return RIGHT if facing else LEFT
            if game.shot_timer == 0:
                return FIRE
    below = [diver for diver in game.divers if diver[1] > 0]
    if below:
        x, y = min(below, key=lambda d: abs(d[0] - game.sub_x) + abs(d[1] - game.sub_y))[:2]
        if y != game.sub_y:
            return UP if y < game.sub_y else DOWN
        return LEFT if x < game.sub_x else RIGHT if x > game.sub_x else NOTHING
    return DOWN if game.sub_y < 4 else NOTHING


def space_invaders(game: Any) -> int:
    """Stay out of the column that a bullet reaches next, and fire at the nearest column of aliens."""
    columns = [x for x in range(10) if game.alien_map[:, x].any()]
    target = min(columns, key=lambda x: (abs(x - game.pos), -game.alien_map[:, x].sum()))
    wish = FIRE if target == game.pos else LEFT if target < game.pos else RIGHT
    moves = {wish: None, NOTHING: None, LEFT: None, RIGHT: None}
    for move in moves:
        x = max(0, game.pos - 1) if move == LEFT else min(9, game.pos + 1) if move == RIGHT else game.pos
        if not game.e_bullet_map[8, x]:
            return move
    return NOTHING


# Environment i is played by player i, modulo their number.
PLAYERS = {
    "asterix": [asterix],
    "breakout": [breakout],
    "freeway": [freeway],
    "seaquest": [seaquest, stubborn_seaquest],
    "space_invaders": [space_invaders],
}
