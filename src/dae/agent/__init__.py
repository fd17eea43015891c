"""The agent: networks, policies, rollout storage, advantage estimators, and the PPO that brings them together."""

from dae.agent.encoding import register as register
from dae.agent.estimators import (
    ESTIMATORS as ESTIMATORS,
    AdvantageEstimator as AdvantageEstimator,
    Estimate as Estimate,
    register_estimator as register_estimator,
)
from dae.agent.finite import NotFiniteError as NotFiniteError
from dae.agent.interface import Credit as Credit
from dae.agent.networks import AtariCNN as AtariCNN, ImpalaCNN as ImpalaCNN, MinAtarCNN as MinAtarCNN
from dae.agent.policy import (
    CnnPolicy as CnnPolicy,
    Heads as Heads,
    MlpPolicy as MlpPolicy,
    MultiInputPolicy as MultiInputPolicy,
)
from dae.agent.ppo import PPO as PPO
from dae.agent.rollout import Batch as Batch, Rollout as Rollout
from dae.catalog import EstimatorInfo as EstimatorInfo
