"""From settings to an environment and an agent."""

import contextlib
from dataclasses import replace
from typing import Any

import torch
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from dae.agent import PPO, networks
from dae.agent.frames import stack_size
from dae.agent.reference import ReferencePPO
from dae.agent.rollout import Rollout, require_memory
from dae.agent.settings import check_observations, falling
from dae.catalog import describe
from dae.envs import make_vec_env
from dae.errors import UserError
from dae.experiments.config import TrainConfig
from dae.experiments.devices import require_device
from dae.experiments.normalization import normalized
from dae.runs import RunSettings
from dae.text import plural


def share_of(config: TrainConfig, processes: int) -> TrainConfig:
    """Return the settings of one of several processes that train together: its actors and its part of a minibatch."""
    if processes > 1 and config.implementation == "sb3":
        raise UserError(f"implementation is 'sb3': it trains in one process, not in {processes}")
    if processes > 1 and (config.normalize_observations or config.normalize_rewards):
        raise UserError(f"normalize_… is True: it needs one process that sees all environments, not {processes}")
    for name, number in (("actors", config.actors), ("batch_size", config.batch_size)):
        if number % processes:
            raise UserError(f"{name} is {number}: it must be a multiple of the {processes} processes that share it")
    length = min(config.row_length or config.steps, config.steps)
    rows = config.batch_size // length
    in_rows = describe(config.advantage).batching == "trajectories"
    if in_rows and processes > 1 and (rows == 0 or rows % processes):
        raise UserError(
            f"batch_size is {config.batch_size}: for advantage {config.advantage!r} and {processes} processes it must "
            f"hold a multiple of {processes} rows of {plural(length, 'step')}, such as {processes * length}"
        )
    return replace(config, actors=config.actors // processes, batch_size=config.batch_size // processes)


def make_env(settings: RunSettings) -> VecEnv:
    """Make the actors' environments; ids, spaces and missing packages are refused here, before anything is written.

    So are numbers of actors whose rollouts do not fit into memory: one environment shows how large they would be.
    """
    require_device(settings.device)
    with contextlib.closing(make_vec_env(settings.env, 1, settings.seed, **settings.env_options)) as one:
        actions, info = one.action_space, describe(settings.advantage)
        if not info.accepts(actions):
            raise UserError(
                f"{settings.env} has the actions {actions}, and advantage {settings.advantage!r} needs "
                f"{' or '.join(info.action_spaces)} ones, because it sums over all of them; use --advantage gae"
            )
        check_observations(one.observation_space)
        shown = PPO._wrap_env(one)  # as the agent sees it
        rollout = Rollout(
            settings.steps,
            settings.actors,
            shown.observation_space,
            actions,
            torch.device("cpu"),
            has_head=True,
            n_stack=stack_size(shown),
        )
    require_memory(str(rollout), rollout.nbytes + settings.actors * settings.family.bytes_per_env)
    return normalized(settings, make_vec_env(settings.env, settings.actors, settings.seed, **settings.env_options))


def make_model(settings: RunSettings, env: VecEnv) -> PPO:
    """Make the agent that these settings describe."""
    policy, policy_kwargs = _network(settings, env.observation_space)
    return agent_class(settings)(
        policy,
        env,
        advantage=settings.advantage,
        policy_kwargs=policy_kwargs,
        seed=settings.seed,
        device=settings.device,
        **settings.arguments(falling),
    )


def agent_class(settings: RunSettings) -> type[PPO]:
    """Return the implementation of PPO that these settings name."""
    return ReferencePPO if settings.implementation == "sb3" else PPO


def _network(settings: RunSettings, observation_space: spaces.Space[Any]) -> tuple[str, dict[str, Any]]:
    network = settings.family.network(settings.network, observation_space, settings.atari_trunk)
    kwargs: dict[str, Any] = {"share_features_extractor": not settings.separate_networks}
    if network.extractor is not None:
        kwargs["features_extractor_class"] = getattr(networks, network.extractor)
        kwargs["features_extractor_kwargs"] = dict(network.extractor_options)
    if network.net_arch is not None:
        extra = settings.extra_mlp and network.extractor is not None
        kwargs["net_arch"] = [64, 64] if extra else list(network.net_arch)
    return network.policy, kwargs
