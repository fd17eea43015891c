"""From settings to an environment and an agent."""

from dataclasses import replace
from typing import Any

import gymnasium as gym
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.utils import LinearSchedule
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO
from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.envs import make_vec_env
from dae.experiments.config import TrainConfig
from dae.runs import RunProblem


def share_of(config: TrainConfig, processes: int) -> TrainConfig:
    """Return the settings of one of several processes that train together: its actors and its part of a minibatch."""
    for name, number in (("actors", config.actors), ("batch_size", config.batch_size)):
        if number % processes:
            raise RunProblem(f"{name} is {number}: it must be a multiple of the {processes} processes that share it")
    rows = config.batch_size // config.steps
    if config.advantage != "gae" and processes > 1 and (rows == 0 or rows % processes):
        raise RunProblem(
            f"batch_size is {config.batch_size}: for advantage {config.advantage!r} and {processes} processes it must "
            f"hold a multiple of {processes} rows of {config.steps} steps, such as {processes * config.steps}"
        )
    return replace(config, actors=config.actors // processes, batch_size=config.batch_size // processes)


def make_env(config: TrainConfig) -> VecEnv:
    """Make the actors' environments; ids, spaces and missing packages are refused here, before anything is written."""
    try:
        env = make_vec_env(config.env, config.actors, seed=config.seed)
    except (ValueError, gym.error.Error):
        raise
    except Exception as error:
        raise RunProblem(f"{config.env} cannot be made: {type(error).__name__}: {error}") from error
    if not isinstance(env.action_space, spaces.Discrete) and config.advantage != "gae":
        raise RunProblem(
            f"{config.env} has the actions {env.action_space}, and advantage {config.advantage!r} needs discrete ones, "
            "because it sums over all of them; use --advantage gae"
        )
    return env


def make_model(config: TrainConfig, env: VecEnv) -> PPO:
    """Make the agent that these settings describe."""

    def scheduled(start: float) -> Any:
        return LinearSchedule(start, 0.0, 1.0) if config.anneal else start

    policy, policy_kwargs = _network(config, env.observation_space)
    return PPO(
        policy,
        env,
        advantage=config.advantage,
        learning_rate=scheduled(config.learning_rate),
        clip_range=scheduled(config.clip_range),
        n_steps=config.steps,
        batch_size=config.batch_size,
        n_epochs=config.epochs,
        gamma=config.gamma,
        gae_lambda=config.gae_lambda,
        ent_coef=config.ent_coef,
        vf_coef=config.critic_coef,
        max_grad_norm=config.max_grad_norm,
        normalize_advantage=config.normalize,
        kl_coef=config.kl_coef,
        bootstrap_truncations=config.bootstrap_truncations,
        torch_compile=config.torch_compile,
        policy_kwargs=policy_kwargs,
        seed=config.seed,
        device=config.device,
    )


def _network(config: TrainConfig, observation_space: spaces.Space[Any]) -> tuple[str, dict[str, Any]]:
    kwargs: dict[str, Any] = {"share_features_extractor": not config.separate_networks}
    if isinstance(observation_space, spaces.Dict):
        if config.network != "baseline":
            raise RunProblem(f"network {config.network!r} is not for {config.env}, whose observations have parts")
        return "MultiInputPolicy", kwargs
    shape = observation_space.shape or ()
    if len(shape) != 3:
        width = 256 if config.network == "wide" else 64
        return "MlpPolicy", kwargs | {"net_arch": [width, width]}
    wide = config.network == "wide"
    extractor: type[BaseFeaturesExtractor]
    options: dict[str, Any]
    if config.domain == "minatar":
        extractor, options = MinAtarCNN, {"width": 4 if wide else 1}
    elif config.network == "deep":
        extractor, options = ImpalaCNN, {}
    else:
        extractor, options = AtariCNN, {"width": 2 if wide else 1, "channels": config.atari_trunk}
    net_arch = [64, 64] if config.extra_mlp else []
    return "CnnPolicy", kwargs | {
        "features_extractor_class": extractor,
        "features_extractor_kwargs": options,
        "net_arch": net_arch,
    }
