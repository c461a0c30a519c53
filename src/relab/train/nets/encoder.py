"""What does a network see in an image? Convolutions, then one dense layer, a ReLU behind each.

36 x 36 pixels or more: the convolutions of DQN (Mnih et al. 2015), 512 features. Fewer, down to 3 x 3: the one
convolution that was chosen for grids of 10 x 10 (MinAtar, Young and Tian 2019), 128 features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import conv2d, linear


class Conv(NamedTuple):
    """One convolution without padding."""

    filters: int
    size: int
    stride: int


class Layers(NamedTuple):
    convs: tuple[Conv, ...]
    features: int  # units of the dense layer


LARGE = Layers((Conv(32, 8, 4), Conv(64, 4, 2), Conv(64, 3, 1)), 512)
SMALL = Layers((Conv(16, 3, 1),), 128)
LARGE_SIDE, SMALLEST_SIDE = 36, 3  # the shorter side from which on they fit


def layers(image: tuple[int, ...]) -> Layers:
    """The layers for images of (height, width, channels)."""
    return LARGE if min(image[:2]) >= LARGE_SIDE else SMALL


def shapes(image: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    """Name -> shape of the encoder's parameters: encoder/0 and so on, the dense layer last."""
    (*sides, channels), (convs, features) = image, layers(image)
    parts: dict[str, tuple[int, ...]] = {}
    for i, conv in enumerate(convs):
        parts[f"encoder/{i}/weight"] = (conv.filters, channels, conv.size, conv.size)
        parts[f"encoder/{i}/bias"] = (conv.filters,)
        sides, channels = [(side - conv.size) // conv.stride + 1 for side in sides], conv.filters
    parts[f"encoder/{len(convs)}/weight"] = (features, math.prod(sides) * channels)
    return parts | {f"encoder/{len(convs)}/bias": (features,)}


def encode(image: tuple[int, ...], params: Mapping[str, Tensor], obs: Tensor) -> Tensor:
    """Flat images [..., height * width * channels] -> features [..., features]."""
    x, convs = obs.reshape(-1, *image).permute(0, 3, 1, 2), layers(image).convs
    for i, conv in enumerate(convs):
        x = torch.relu(conv2d(x, params[f"encoder/{i}/weight"], params[f"encoder/{i}/bias"], conv.stride))
    last = f"encoder/{len(convs)}"
    x = torch.relu(linear(x.flatten(1), params[f"{last}/weight"], params[f"{last}/bias"]))
    return x.reshape(*obs.shape[:-1], -1)
