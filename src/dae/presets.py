"""What a preset stands for: the paper's settings for an estimator, and what the preset changes for a family."""

from typing import Any

from dae.catalog import describe
from dae.envs import family_of
from dae.hyperparameters import as_settings


def preset_settings(env: str, advantage: str, preset: str) -> dict[str, Any]:
    """Return the settings of a run that differ from a run's defaults."""
    return as_settings(describe(advantage).paper) | dict(family_of(env).preset(preset))
