"""An episode as a film: what the agent saw beside what it thought of each action."""

from dae.experiments.film.recording import Film as Film, make_visible as make_visible, record_episode as record_episode
from dae.experiments.film.writing import CannotRecord as CannotRecord
