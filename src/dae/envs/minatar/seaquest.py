"""Seaquest: shoot fish and submarines, pick up divers, and surface for air before the oxygen runs out."""

from numba import njit

from dae.envs.minatar.rng import integer, uniform
from dae.envs.minatar.state import Field

CHANNELS = {
    "sub_front": (66, 135, 245),
    "sub_back": (40, 90, 170),
    "friendly_bullet": (255, 255, 255),
    "trail": (60, 75, 90),
    "enemy_bullet": (228, 87, 86),
    "enemy_fish": (120, 200, 80),
    "enemy_sub": (190, 100, 200),
    "oxygen_gauge": (120, 200, 230),
    "diver_gauge": (255, 205, 60),
    "diver": (255, 170, 90),
}
MINIMAL_ACTIONS = (0, 1, 2, 3, 4, 5)
MAX_OXYGEN = 200
SPAWN_SPEED = 20
DIVER_SPAWN_SPEED = 30
MOVE_INTERVAL = 5
SHOT_COOL_DOWN = 5
ENEMY_SHOT_INTERVAL = 10
DIVER_MOVE_INTERVAL = 5

# Room for all that can be alive at once. Fully ramped, an enemy spawns every step and crosses in 30, and a bullet flies
# for at most 10; friendly bullets and divers are rarer still.
BULLETS, DIVERS, ENEMIES, ENEMY_BULLETS = 4, 4, 48, 64
FIELDS = (
    Field("sub_x", 0, 9),
    Field("sub_y", 0, 8),
    Field("sub_to_right", 0, 1),
    Field("oxygen", 0, MAX_OXYGEN),
    Field("diver_count", -(2**30), 6),  # surfacing with six leaves -1, as in the package
    Field("surfaced", 0, 1),
    Field("shot_timer", 0, SHOT_COOL_DOWN),
    Field("spawn_speed", 1, SPAWN_SPEED),
    Field("spawn_timer", 0, SPAWN_SPEED),
    Field("diver_spawn_timer", 0, DIVER_SPAWN_SPEED),
    Field("move_speed", 2, MOVE_INTERVAL),
    Field("ramp_index", 0, 127),
    # Lists, oldest first: how many there are, and a row of numbers each.
    Field("n_bullets", 0, BULLETS),
    Field("n_enemy_bullets", 0, ENEMY_BULLETS),
    Field("n_fish", 0, ENEMIES),
    Field("n_subs", 0, ENEMIES),
    Field("n_divers", 0, DIVERS),
    Field("bullets", 0, 9, (BULLETS, 3)),  # x, y, to_right
    Field("enemy_bullets", 0, 9, (ENEMY_BULLETS, 3)),  # x, y, to_right
    Field("fish", 0, 9, (ENEMIES, 4)),  # x, y, to_right, move timer
    Field("subs", 0, ENEMY_SHOT_INTERVAL, (ENEMIES, 5)),  # x, y, to_right, move timer, shot timer
    Field("divers", 0, 9, (DIVERS, 4)),  # x, y, to_right, move timer
)


@njit
def reset(s):
    s.sub_x = 5
    s.sub_y = 0
    s.sub_to_right = 0
    s.oxygen = MAX_OXYGEN
    s.diver_count = 0
    s.surfaced = 1
    s.shot_timer = 0
    s.spawn_speed = s.spawn_timer = SPAWN_SPEED
    s.diver_spawn_timer = DIVER_SPAWN_SPEED
    s.move_speed = MOVE_INTERVAL
    s.ramp_index = 0
    s.n_bullets = s.n_enemy_bullets = s.n_fish = s.n_subs = s.n_divers = 0


@njit
def _remove(rows, n, index):
    """Take one row out of a list of n and close the gap."""
    for i in range(index, n - 1):
        for k in range(rows.shape[1]):
            rows[i, k] = rows[i + 1, k]
    return n - 1


@njit
def _find(rows, n, x, y):
    """The first row of a list of n that stands at (x, y), or -1."""
    for i in range(n):
        if rows[i, 0] == x and rows[i, 1] == y:
            return i
    return -1


@njit
def _row_is_taken(rows, n, y, to_right):
    """Whether something in row y moves the other way."""
    taken = False
    for i in range(n):
        taken |= rows[i, 1] == y and rows[i, 2] != to_right
    return taken


@njit
def _enter(rows, n, y, to_right, move_timer):
    """Append what enters row y from one side or the other to a list of n, if there is room."""
    if n == rows.shape[0]:
        return n
    rows[n, 0] = 0 if to_right else 9
    rows[n, 1] = y
    rows[n, 2] = to_right
    rows[n, 3] = move_timer
    return n + 1


@njit
def _spawn_enemy(s):
    to_right = 1 if uniform(s) < 1 / 2 else 0
    is_sub = uniform(s) < 1 / 3
    y = 1 + integer(s, 8)
    if _row_is_taken(s.subs, s.n_subs, y, to_right) or _row_is_taken(s.fish, s.n_fish, y, to_right):
        return
    if is_sub:
        s.n_subs = _enter(s.subs, s.n_subs, y, to_right, s.move_speed)
        s.subs[s.n_subs - 1, 4] = ENEMY_SHOT_INTERVAL
    else:
        s.n_fish = _enter(s.fish, s.n_fish, y, to_right, s.move_speed)


@njit
def _spawn_diver(s):
    to_right = 1 if uniform(s) < 1 / 2 else 0
    y = 1 + integer(s, 8)
    s.n_divers = _enter(s.divers, s.n_divers, y, to_right, DIVER_MOVE_INTERVAL)


@njit
def _act(s, action):
    if action == 5 and s.shot_timer == 0:
        if s.n_bullets < BULLETS:
            s.bullets[s.n_bullets, 0] = s.sub_x
            s.bullets[s.n_bullets, 1] = s.sub_y
            s.bullets[s.n_bullets, 2] = s.sub_to_right
            s.n_bullets += 1
        s.shot_timer = SHOT_COOL_DOWN
    elif action == 1:
        s.sub_x = max(0, s.sub_x - 1)
        s.sub_to_right = 0
    elif action == 3:
        s.sub_x = min(9, s.sub_x + 1)
        s.sub_to_right = 1
    elif action == 2:
        s.sub_y = max(0, s.sub_y - 1)
    elif action == 4:
        s.sub_y = min(8, s.sub_y + 1)


@njit
def _move_bullets(s):
    """Move friendly bullets; each hits at most one enemy, fish before submarines."""
    reward = 0
    for i in range(s.n_bullets - 1, -1, -1):
        x, y = s.bullets[i, 0] + (1 if s.bullets[i, 2] else -1), s.bullets[i, 1]
        fish, sub = _find(s.fish, s.n_fish, x, y), _find(s.subs, s.n_subs, x, y)
        if fish >= 0:
            s.n_fish = _remove(s.fish, s.n_fish, fish)
            reward += 1
        elif sub >= 0:
            s.n_subs = _remove(s.subs, s.n_subs, sub)
            reward += 1
        if fish >= 0 or sub >= 0 or x < 0 or x > 9:
            s.n_bullets = _remove(s.bullets, s.n_bullets, i)
        else:
            s.bullets[i, 0] = x
    return reward


@njit
def _move_divers(s):
    for i in range(s.n_divers - 1, -1, -1):
        x, y = s.divers[i, 0], s.divers[i, 1]
        gone = picked = x == s.sub_x and y == s.sub_y and s.diver_count < 6
        if not picked:
            if s.divers[i, 3] == 0:
                s.divers[i, 3] = DIVER_MOVE_INTERVAL
                x += 1 if s.divers[i, 2] else -1
                picked = x == s.sub_x and y == s.sub_y and s.diver_count < 6
                gone = picked or x < 0 or x > 9
                if not gone:
                    s.divers[i, 0] = x
            else:
                s.divers[i, 3] -= 1
        if picked:
            s.diver_count += 1
        if gone:
            s.n_divers = _remove(s.divers, s.n_divers, i)


@njit
def _move_enemy(s, rows, n, i):
    """Move fish or submarine i of a list of n where it stands; return its x, how many are left, reward and terminal."""
    x, y = rows[i, 0], rows[i, 1]
    terminal = x == s.sub_x and y == s.sub_y
    reward = 0
    if rows[i, 3] > 0:
        rows[i, 3] -= 1
        return x, n, reward, terminal
    rows[i, 3] = s.move_speed
    x += 1 if rows[i, 2] else -1
    if x < 0 or x > 9:
        return x, _remove(rows, n, i), reward, terminal
    rows[i, 0] = x
    if x == s.sub_x and y == s.sub_y:
        return x, n, reward, True
    bullet = _find(s.bullets, s.n_bullets, x, y)
    if bullet >= 0:
        s.n_bullets = _remove(s.bullets, s.n_bullets, bullet)
        n = _remove(rows, n, i)
        reward = 1
    return x, n, reward, terminal


@njit
def _move_subs(s):
    """Move enemy submarines and let them shoot; one that is hit while it moves still fires if its time has come."""
    reward = 0
    terminal = False
    for i in range(s.n_subs - 1, -1, -1):
        y, to_right, shot_timer = s.subs[i, 1], s.subs[i, 2], s.subs[i, 4]
        before = s.n_subs
        x, s.n_subs, earned, caught = _move_enemy(s, s.subs, s.n_subs, i)
        reward += earned
        terminal |= caught
        if s.n_subs == before:
            s.subs[i, 4] = shot_timer - 1 if shot_timer > 0 else ENEMY_SHOT_INTERVAL
        if shot_timer == 0 and 0 <= x <= 9 and s.n_enemy_bullets < ENEMY_BULLETS:
            s.enemy_bullets[s.n_enemy_bullets, 0] = x
            s.enemy_bullets[s.n_enemy_bullets, 1] = y
            s.enemy_bullets[s.n_enemy_bullets, 2] = to_right
            s.n_enemy_bullets += 1
    return reward, terminal


@njit
def _move_enemy_bullets(s):
    terminal = False
    for i in range(s.n_enemy_bullets - 1, -1, -1):
        x, y = s.enemy_bullets[i, 0], s.enemy_bullets[i, 1]
        terminal |= x == s.sub_x and y == s.sub_y
        x += 1 if s.enemy_bullets[i, 2] else -1
        if x < 0 or x > 9:
            s.n_enemy_bullets = _remove(s.enemy_bullets, s.n_enemy_bullets, i)
        else:
            s.enemy_bullets[i, 0] = x
            terminal |= x == s.sub_x and y == s.sub_y
    return terminal


@njit
def _move_fish(s):
    reward = 0
    terminal = False
    for i in range(s.n_fish - 1, -1, -1):
        _, s.n_fish, earned, caught = _move_enemy(s, s.fish, s.n_fish, i)
        reward += earned
        terminal |= caught
    return reward, terminal


@njit
def _surface(s, ramping):
    """Refill the oxygen for a diver; six of them earn what oxygen was left."""
    reward = 0
    s.surfaced = 1
    if s.diver_count == 6:
        s.diver_count = 0
        reward = s.oxygen * 10 // MAX_OXYGEN
    s.oxygen = MAX_OXYGEN
    s.diver_count -= 1
    if ramping and (s.spawn_speed > 1 or s.move_speed > 2):
        if s.move_speed > 2 and s.ramp_index % 2:
            s.move_speed -= 1
        if s.spawn_speed > 1:
            s.spawn_speed -= 1
        s.ramp_index += 1
    return reward


@njit
def step(s, action, ramping):
    return play(s, action, ramping, 0)


@njit
def play(s, action, ramping, empty):
    """Play a step; the game ends when the oxygen is down to `empty`."""
    if s.spawn_timer == 0:
        _spawn_enemy(s)
        s.spawn_timer = s.spawn_speed
    if s.diver_spawn_timer == 0:
        _spawn_diver(s)
        s.diver_spawn_timer = DIVER_SPAWN_SPEED
    _act(s, action)

    reward = _move_bullets(s)
    _move_divers(s)
    earned, terminal = _move_subs(s)
    reward += earned
    terminal |= _move_enemy_bullets(s)
    earned, caught = _move_fish(s)
    reward += earned
    terminal |= caught

    s.spawn_timer = max(0, s.spawn_timer - 1)
    s.diver_spawn_timer = max(0, s.diver_spawn_timer - 1)
    s.shot_timer = max(0, s.shot_timer - 1)
    terminal |= s.oxygen <= empty
    if s.sub_y > 0:
        s.oxygen -= 1
        s.surfaced = 0
    elif not s.surfaced:
        if s.diver_count == 0:
            terminal = True
        else:
            reward += _surface(s, ramping)
    return reward, terminal


@njit
def _show(planes, channel, rows, n):
    """Draw a list into its channel, with the trails behind."""
    for i in range(n):
        x, row = rows[i, 0], 10 * rows[i, 1]
        planes[100 * channel + row + x] = 1
        back = x - 1 if rows[i, 2] else x + 1
        if 0 <= back <= 9:
            planes[300 + row + back] = 1


@njit
def observe(s, planes):
    planes[:] = 0
    row = 10 * s.sub_y
    planes[row + s.sub_x] = 1
    back = s.sub_x - 1 if s.sub_to_right else s.sub_x + 1
    if 0 <= back <= 9:
        planes[100 + row + back] = 1
    for i in range(s.n_bullets):
        planes[200 + 10 * s.bullets[i, 1] + s.bullets[i, 0]] = 1
    for i in range(s.n_enemy_bullets):
        planes[400 + 10 * s.enemy_bullets[i, 1] + s.enemy_bullets[i, 0]] = 1
    _show(planes, 5, s.fish, s.n_fish)
    _show(planes, 6, s.subs, s.n_subs)
    _show(planes, 9, s.divers, s.n_divers)
    for x in range(max(0, s.oxygen) * 10 // MAX_OXYGEN):
        planes[790 + x] = 1
    for x in range(max(0, 9 - s.diver_count), 9):
        planes[890 + x] = 1
