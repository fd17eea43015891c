"""What a saved agent holds beyond plain data: schedules, and the classes that a file may name."""

from typing import Any, TypeVar

import torch
from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import CombinedExtractor, FlattenExtractor, NatureCNN
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule

from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.agent.policy import CnnPolicy, MlpPolicy, MultiInputPolicy
from dae.errors import InvalidValue
from dae.serialization import KINDS, Kind, NotData

Registered = TypeVar("Registered", bound=type)
REGISTERED: dict[str, type] = {
    cls.__name__: cls
    for cls in (
        *(MlpPolicy, CnnPolicy, MultiInputPolicy),
        *(ActorCriticPolicy, ActorCriticCnnPolicy, MultiInputActorCriticPolicy),
        *(FlattenExtractor, NatureCNN, CombinedExtractor, MinAtarCNN, AtariCNN, ImpalaCNN),
        *(torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.RMSprop),
        *(torch.nn.Tanh, torch.nn.ReLU, torch.nn.LeakyReLU, torch.nn.ELU, torch.nn.GELU, torch.nn.SiLU),
        *(torch.nn.Sigmoid, torch.nn.Softplus, torch.nn.Mish, torch.nn.Identity),
    )
}


def register(cls: Registered) -> Registered:
    """Let saved agents name this class (a features extractor, a policy, a layer), to be loaded without trusting files.

    Use it as a decorator, in the program that saves and in the one that loads.
    """
    known = REGISTERED.get(cls.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
        raise InvalidValue(f"the name {cls.__name__} is taken by {known.__module__}.{known.__qualname__}")
    REGISTERED[cls.__name__] = cls
    return cls


def _class_name(cls: type) -> tuple[str]:
    if REGISTERED.get(cls.__name__) is not cls:
        raise NotData(f"class {cls.__name__} is not registered")
    return (cls.__name__,)


def _class(name: str) -> Any:
    if name not in REGISTERED:
        raise InvalidValue(f"class {name!r} is not registered here; decorate it with dae.agent.register before loading")
    return REGISTERED[name]


KINDS |= {
    "class": Kind(type, _class_name, _class),
    "float-schedule": Kind(FloatSchedule, lambda v: (v.value_schedule,), FloatSchedule),
    "constant-schedule": Kind(ConstantSchedule, lambda v: (v.val,), ConstantSchedule),
    "linear-schedule": Kind(LinearSchedule, lambda v: (v.start, v.end, v.end_fraction), LinearSchedule),
}
