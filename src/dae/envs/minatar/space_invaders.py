"""Space Invaders: shoot the descending aliens before they land; a cleared wave is followed by a faster one."""

from numba import njit

from dae.envs.minatar.state import Field

CHANNELS = {
    "cannon": (66, 135, 245),
    "alien": (120, 200, 80),
    "alien_left": (120, 200, 80),
    "alien_right": (90, 180, 140),
    "friendly_bullet": (255, 255, 255),
    "enemy_bullet": (228, 87, 86),
}
MINIMAL_ACTIONS = (0, 1, 3, 5)
SHOT_COOL_DOWN = 5
ENEMY_MOVE_INTERVAL = 12
ENEMY_SHOT_INTERVAL = 10
FIELDS = (
    Field("cannon", 0, 9),
    Field("alien_direction", -1, 1),
    Field("move_interval", 6, ENEMY_MOVE_INTERVAL),
    Field("move_timer", 0, ENEMY_MOVE_INTERVAL),
    Field("alien_shot_timer", 0, ENEMY_SHOT_INTERVAL),
    Field("ramp_index", 0, 127),
    Field("shot_timer", 0, SHOT_COOL_DOWN),
    Field("aliens", 0, 1, (100,)),
    Field("friendly_bullets", 0, 1, (100,)),
    Field("enemy_bullets", 0, 1, (100,)),
)


@njit
def _fill_wave(s):
    for row in range(4):
        for column in range(2, 8):
            s.aliens[10 * row + column] = 1


@njit
def reset(s):
    s.cannon = 5
    s.friendly_bullets[:] = 0
    s.enemy_bullets[:] = 0
    s.aliens[:] = 0
    _fill_wave(s)
    s.alien_direction = -1
    s.move_interval = ENEMY_MOVE_INTERVAL
    s.move_timer = ENEMY_MOVE_INTERVAL
    s.alien_shot_timer = ENEMY_SHOT_INTERVAL
    s.ramp_index = 0
    s.shot_timer = 0


@njit
def _move_aliens(s):
    """Move sideways, or turn and come down at the edge; say whether they have landed."""
    edge = 0 if s.alien_direction < 0 else 9
    at_edge = False
    for row in range(10):
        at_edge |= s.aliens[10 * row + edge] != 0
    if not at_edge:
        # No alien stands in the column that is moved over the edge, so the planes can be moved as a whole.
        if s.alien_direction < 0:
            for i in range(99):
                s.aliens[i] = s.aliens[i + 1]
            s.aliens[99] = 0
        else:
            for i in range(99, 0, -1):
                s.aliens[i] = s.aliens[i - 1]
            s.aliens[0] = 0
        return False
    s.alien_direction = -s.alien_direction
    landed = False
    for column in range(10):
        last = s.aliens[90 + column]
        landed |= last != 0
        for row in range(9, 0, -1):
            s.aliens[10 * row + column] = s.aliens[10 * (row - 1) + column]
        s.aliens[column] = last
    return landed


@njit
def _lowest_alien(s, column):
    for row in range(9, -1, -1):
        if s.aliens[10 * row + column]:
            return 10 * row + column
    return -1


@njit
def _nearest_alien(s):
    """The lowest alien of the column nearest to the cannon, the left one of two equally near."""
    for distance in range(10):
        for column in (s.cannon - distance, s.cannon + distance):
            if 0 <= column <= 9:
                alien = _lowest_alien(s, column)
                if alien >= 0:
                    return alien
    return -1


@njit
def step(s, action, ramping):
    terminal = False
    if action == 5 and s.shot_timer == 0:
        s.friendly_bullets[90 + s.cannon] = 1
        s.shot_timer = SHOT_COOL_DOWN
    elif action == 1:
        s.cannon = max(0, s.cannon - 1)
    elif action == 3:
        s.cannon = min(9, s.cannon + 1)

    for i in range(90):
        s.friendly_bullets[i] = s.friendly_bullets[i + 10]
    for i in range(99, 9, -1):
        s.enemy_bullets[i] = s.enemy_bullets[i - 10]
    for i in range(10):
        s.friendly_bullets[90 + i] = 0
        s.enemy_bullets[i] = 0
    terminal |= s.enemy_bullets[90 + s.cannon] != 0

    terminal |= s.aliens[90 + s.cannon] != 0
    if s.move_timer == 0:
        s.move_timer = min(s.aliens.sum(), s.move_interval)
        terminal |= _move_aliens(s)
        terminal |= s.aliens[90 + s.cannon] != 0
    if s.alien_shot_timer == 0:
        s.alien_shot_timer = ENEMY_SHOT_INTERVAL
        shooter = _nearest_alien(s)
        if shooter >= 0:
            s.enemy_bullets[shooter] = 1

    reward = 0
    left = 0
    for i in range(100):
        killed = s.aliens[i] & s.friendly_bullets[i]
        reward += killed
        s.aliens[i] ^= killed
        s.friendly_bullets[i] ^= killed
        left += s.aliens[i]

    s.shot_timer = max(0, s.shot_timer - 1)
    s.move_timer -= 1
    s.alien_shot_timer -= 1
    if left == 0:
        if s.move_interval > 6 and ramping:
            s.move_interval -= 1
            s.ramp_index += 1
        _fill_wave(s)
    return reward, terminal


@njit
def observe(s, planes):
    planes[:] = 0
    planes[90 + s.cannon] = 1
    facing = 200 if s.alien_direction < 0 else 300
    for i in range(100):
        planes[100 + i] = s.aliens[i]
        planes[facing + i] = s.aliens[i]
        planes[400 + i] = s.friendly_bullets[i]
        planes[500 + i] = s.enemy_bullets[i]
