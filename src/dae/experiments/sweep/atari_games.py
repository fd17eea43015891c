"""The 49 Atari games of the paper."""

_NAMES = """
Alien Amidar Assault Asterix Asteroids Atlantis BankHeist BattleZone BeamRider Bowling Boxing Breakout
Centipede ChopperCommand CrazyClimber DemonAttack DoubleDunk Enduro FishingDerby Freeway Frostbite Gopher
Gravitar IceHockey Jamesbond Kangaroo Krull KungFuMaster MontezumaRevenge MsPacman NameThisGame Pitfall Pong
PrivateEye Qbert Riverraid RoadRunner Robotank Seaquest SpaceInvaders StarGunner Tennis TimePilot Tutankham
UpNDown Venture VideoPinball WizardOfWor Zaxxon"""

ATARI_IDS = tuple(f"ALE/{name}-v5" for name in _NAMES.split())
