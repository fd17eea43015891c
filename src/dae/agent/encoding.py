"""What a saved agent holds beyond plain data: schedules, and the classes that a file may name."""

from typing import Any

import torch
from stable_baselines3.common.policies import ActorCriticCnnPolicy, ActorCriticPolicy, MultiInputActorCriticPolicy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, CombinedExtractor, FlattenExtractor, NatureCNN
from stable_baselines3.common.utils import ConstantSchedule, FloatSchedule, LinearSchedule

from dae.agent.networks import AtariCNN, ImpalaCNN, MinAtarCNN
from dae.agent.policy import CnnPolicy, MlpPolicy, MultiInputPolicy
from dae.errors import InvalidValue
from dae.serialization import KINDS, Kind, NotData

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


def register(extractor: type[BaseFeaturesExtractor]) -> type[BaseFeaturesExtractor]:
    """Let saved agents name this features extractor, so that they can be loaded without trusting the file.

    Use it as a decorator, in the program that saves and in the one that loads.
    """
    known = REGISTERED.get(extractor.__name__)
    if known is not None and (known.__module__, known.__qualname__) != (extractor.__module__, extractor.__qualname__):
        raise InvalidValue(f"the name {extractor.__name__} is taken by {known.__module__}.{known.__qualname__}")
    REGISTERED[extractor.__name__] = extractor
    return extractor


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
