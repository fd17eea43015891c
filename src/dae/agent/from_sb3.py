"""Agents that Stable-Baselines3 saved: their weights and settings carried over to an agent of ours."""

import io
import warnings
from typing import TYPE_CHECKING, Any, TypeVar

import torch
from stable_baselines3.common.save_util import load_from_zip_file
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import check_for_correct_spaces

from dae.agent.agent_file import Path
from dae.agent.networks import name_channels
from dae.agent.settings import choose_estimator
from dae.errors import InvalidValue, one_line
from dae.hyperparameters import SB3Settings, argument_of

if TYPE_CHECKING:
    from dae.agent.saving import SafeSaving

Self = TypeVar("Self", bound="SafeSaving")
_ARGUMENTS = (
    *(argument_of(field) for field in SB3Settings.__dataclass_fields__.values() if field.name != "anneal"),
    *("clip_range_vf", "target_kl", "use_sde", "sde_sample_freq", "policy_kwargs", "verbose", "seed"),
)


def load_from_sb3(
    cls: type[Self],
    path: Path,
    env: GymEnv | None,
    device: torch.device | str,
    custom_objects: dict[str, Any] | None,
    **kwargs: Any,
) -> Self:
    """Return an agent with the weights and settings of a file that `stable_baselines3.PPO.save` wrote.

    The file is unpickled: it can run code. Its optimizer goes on where the network is the same; an estimator's extra
    head, which the file does not have, starts fresh, and the optimizer with it.
    """
    name = "the file" if isinstance(path, io.IOBase) else str(path)
    data, weights, _ = load_from_zip_file(path, device=device, custom_objects=custom_objects)
    if data is None or not {"policy_class", "observation_space", "action_space", "n_epochs"} <= set(data):
        raise InvalidValue(f"{name} is not an agent of stable_baselines3.PPO")
    if env is not None:
        env = cls._wrap_env(env, data.get("verbose", 0))
        check_for_correct_spaces(env, data["observation_space"], data["action_space"])
    settings = {name: data[name] for name in _ARGUMENTS if name in data} | kwargs
    if "policy_kwargs" in settings:
        settings["policy_kwargs"] = name_channels(settings["policy_kwargs"], weights["policy"])  # type: ignore[arg-type]
    given = settings.pop("advantage", (custom_objects or {}).get("advantage"))
    advantage = given or choose_estimator(data["action_space"], data["policy_class"], settings.get("clip_range_vf"))
    model = cls(data["policy_class"], env, advantage=advantage, device=device, _init_setup_model=False, **settings)  # type: ignore[call-arg]
    model.observation_space, model.action_space = data["observation_space"], data["action_space"]
    model.n_envs = env.num_envs if env is not None else data.get("n_envs", 1)
    model._setup_model()
    before = {name for name in model.policy.state_dict() if name.startswith("critic_net.")}
    try:
        lacking, unknown = model.policy.load_state_dict(weights["policy"], strict=False)  # type: ignore[arg-type]
    except RuntimeError as error:
        raise InvalidValue(f"{name}: the weights belong to another network: {one_line(error)}") from error
    if unknown or set(lacking) != before:
        names = sorted({*unknown, *(set(lacking) - before)})
        raise InvalidValue(f"{name}: the weights belong to another network: {', '.join(names)}")
    if before:
        warnings.warn(
            f"{name} comes from Stable-Baselines3: the weights are its own, the head for advantage="
            f"{model.estimator.info.name!r} and the optimizer start fresh",
            stacklevel=3,
        )
    else:
        model.set_parameters({"policy.optimizer": weights["policy.optimizer"]}, exact_match=False)
    model.num_timesteps, model._n_updates = data.get("num_timesteps", 0), data.get("_n_updates", 0)
    return model
