"""The paper's networks as Stable-Baselines3 features extractors: MinAtar, Atari, and the deep residual one."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
import torch
from gymnasium import spaces
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import Tensor, nn

from dae.errors import InvalidValue

ATARI_TRUNKS = {
    "code": (32, 64, 64),  # the authors' parameter files, and Stable-Baselines3's `CnnPolicy` (Nature 2015)
    "paper": (32, 32, 32),  # the paper's figure
}


class _ConvolutionalExtractor(BaseFeaturesExtractor):
    """A convolutional trunk, flattened, and one hidden layer; subclasses build the trunk."""

    def __init__(self, observation_space: gym.Space[object], hidden: int, width: float) -> None:
        if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 3:
            raise InvalidValue(f"{type(self).__name__} needs observations of shape (C, H, W), not {observation_space}")
        if not width > 0:
            raise InvalidValue(f"width is {width!r}: it must be positive")
        super().__init__(observation_space, round(hidden * width))
        self.trunk = self._make_trunk(observation_space.shape[0], width)
        with torch.no_grad():
            flat = self.trunk(torch.zeros(1, *observation_space.shape)).numel()
        self.hidden = nn.Sequential(nn.Linear(flat, self.features_dim), nn.ReLU())

    def _make_trunk(self, channels: int, width: float) -> nn.Sequential:
        raise TypeError(f"{type(self).__name__} does not define its trunk")

    def forward(self, observations: Tensor) -> Tensor:
        # Channels last is the layout that convolutions are fastest in, on CPUs and GPUs: docs/performance.md.
        maps: Tensor = self.trunk(observations.contiguous(memory_format=torch.channels_last))
        features: Tensor = self.hidden(maps.permute(0, 2, 3, 1).flatten(1))  # in the order they lie in memory
        return features


class MinAtarCNN(_ConvolutionalExtractor):
    """Two 3x3 convolutions of 32 channels and a hidden layer of 256; `width` multiplies all (the paper's wide: 4)."""

    def __init__(self, observation_space: gym.Space[object], width: float = 1) -> None:
        super().__init__(observation_space, 256, width)

    def _make_trunk(self, channels: int, width: float) -> nn.Sequential:
        n = round(32 * width)
        return nn.Sequential(nn.Conv2d(channels, n, 3), nn.ReLU(), nn.Conv2d(n, n, 3), nn.ReLU())


class AtariCNN(_ConvolutionalExtractor):
    """Convolutions 8x8/4, 4x4/2 and 3x3/1 and a hidden layer of 512; `width` multiplies all (the paper's wide: 2).

    `channels` are three numbers, or "code" (32, 64, 64, of the authors' parameter files) or "paper" (32, 32, 32, of the
    paper's figure).
    """

    def __init__(
        self,
        observation_space: gym.Space[object],
        width: float = 1,
        channels: str | tuple[int, int, int] = "code",
    ) -> None:
        if isinstance(channels, str):
            if channels not in ATARI_TRUNKS:
                raise InvalidValue(f"channels={channels!r} is not known; choose {' or '.join(ATARI_TRUNKS)}")
            channels = ATARI_TRUNKS[channels]
        self._channels = channels
        super().__init__(observation_space, 512, width)

    def _make_trunk(self, channels: int, width: float) -> nn.Sequential:
        a, b, c = (round(n * width) for n in self._channels)
        return nn.Sequential(
            nn.Conv2d(channels, a, 8, stride=4),
            nn.ReLU(),
            nn.Conv2d(a, b, 4, stride=2),
            nn.ReLU(),
            nn.Conv2d(b, c, 3),
            nn.ReLU(),
        )


def name_channels(policy_kwargs: dict[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Any]:
    """Return a policy's arguments with the channels of Atari's network, as the weights have them.

    An agent that was saved without naming them may have those of the paper's figure, once the default.
    """
    options = policy_kwargs.get("features_extractor_kwargs") or {}
    of_atari = policy_kwargs.get("features_extractor_class") is AtariCNN and isinstance(options, dict)
    if not of_atari or "channels" in options:
        return policy_kwargs
    first, second = (weights.get(f"features_extractor.trunk.{layer}.bias") for layer in (0, 2))
    as_wide = first is not None and second is not None and first.shape == second.shape
    return policy_kwargs | {"features_extractor_kwargs": options | {"channels": "paper" if as_wide else "code"}}


class _Residual(nn.Module):
    """x + α f(x) with a learnable α that starts at 0 (SkipInit): the block starts as the identity."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.branch = nn.Sequential(
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
        )
        self.scale = nn.Parameter(torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        y: Tensor = x + self.scale * self.branch(x)
        return y


class ImpalaCNN(_ConvolutionalExtractor):
    """The paper's deep network: IMPALA's residual blocks with 64, 128 and 128 channels, and a hidden layer of 512."""

    def __init__(self, observation_space: gym.Space[object], width: float = 1) -> None:
        super().__init__(observation_space, 512, width)

    def _make_trunk(self, channels: int, width: float) -> nn.Sequential:
        layers: list[nn.Module] = []
        for n in (round(64 * width), round(128 * width), round(128 * width)):
            layers += [nn.Conv2d(channels, n, 3, padding=1), nn.MaxPool2d(3, stride=2, padding=1)]
            layers += [_Residual(n), _Residual(n)]
            channels = n
        return nn.Sequential(*layers, nn.ReLU())
