"""The agent: networks, policies, rollout storage, advantage estimators, and the PPO that brings them together."""

from dae.agent.encoding import register
from dae.agent.estimators import ESTIMATORS, AdvantageEstimator, Estimate, register_estimator
from dae.agent.finite import NotFiniteError
from dae.agent.interface import Credit
from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.agent.policy import CnnPolicy, Heads, MlpPolicy, MultiInputPolicy
from dae.agent.ppo import PPO
from dae.agent.rollout import Batch, Rollout
from dae.catalog import EstimatorInfo

__all__ = [
    "ESTIMATORS",
    "PPO",
    "AdvantageEstimator",
    "AtariCNN",
    "Batch",
    "CnnPolicy",
    "Credit",
    "Estimate",
    "EstimatorInfo",
    "Heads",
    "ImpalaCNN",
    "MinAtarCNN",
    "MlpPolicy",
    "MultiInputPolicy",
    "NotFiniteError",
    "Rollout",
    "register",
    "register_estimator",
]
