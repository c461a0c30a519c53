"""What does the world model see in an image, and what does it draw of its state? Convolutions down to 4 x 4, and back.

The first takes every fourth pixel with a window of 8, each further one halves the side. The decoder is the same the
other way, its last layer paints patches of 4 x 4. Pixels lie between 0 and 1; the loss is their squared error, summed:

    L = |x̂ - x|²

Means over pixels would let the loss of a pole a few pixels wide vanish among empty ones.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

from torch import Tensor
from torch.nn.functional import conv2d, conv_transpose2d, group_norm, linear, silu

from relab.config.base import require
from relab.record.spec import Spec
from relab.train.algos.dreamer.layers import Shapes, Weights, out, out_shapes

GRID = 4  # side of what the convolutions end with
FIRST, NEXT, PATCH = 8, 4, 4  # sides of the windows: of the first convolution, of the others, and painted at once
ENCODER, DECODER = "model/image_encoder", "model/image_decoder"


class Image(NamedTuple):
    """Sizes of the image and of the convolutions."""

    side: int
    channels: int
    filters: int  # of the first convolution; the others have twice as many

    @property
    def halvings(self) -> int:
        """Convolutions behind the first."""
        return int(math.log2(self.side // PATCH // GRID))

    @property
    def depths(self) -> list[int]:
        """Channels behind each convolution."""
        return [self.filters, *[2 * self.filters] * self.halvings]

    @property
    def seen(self) -> int:
        """Numbers that the encoder makes of an image."""
        return self.depths[-1] * GRID * GRID


def image_of(spec: Spec, filters: int) -> Image | None:
    """The image that is observed, or None; ConfigError for one whose sides the convolutions do not fit."""
    if not spec.obs_shape:
        return None
    high, wide, channels = spec.obs_shape
    halves = high >= PATCH * GRID and high & (high - 1) == 0
    require(high == wide and halves, f"dreamer sees square images whose side is 16, 32, 64 or 128, but {spec.env}"
            f" observes {spec.seen}; `env.pixels=64` asks cartpole and gym: environments for such, algo=ppo sees"
            " images of any size")  # fmt: skip
    return Image(high, channels, filters)


def shapes(image: Image, feature: int) -> Shapes:
    """Name -> shape of encoder and decoder."""
    parts: Shapes = {}
    for i, (n_in, n_out) in enumerate(zip((image.channels, *image.depths), image.depths)):
        size = FIRST if i == 0 else NEXT
        parts |= layer(f"{ENCODER}/{i}", (n_out, n_in, size, size), n_out)
    parts |= layer(f"{DECODER}/grid", (image.seen, feature), image.seen)
    up = image.depths[::-1]
    for i, (n_in, n_out) in enumerate(pairwise(up)):
        parts |= layer(f"{DECODER}/{i}", (n_in, n_out, NEXT, NEXT), n_out)
    return parts | out_shapes(f"{DECODER}/out", up[-1], PATCH * PATCH * image.channels)


def layer(name: str, weight: tuple[int, ...], n_out: int) -> Shapes:
    return {f"{name}/weight": weight, f"{name}/scale": (n_out,), f"{name}/bias": (n_out,)}


def active(params: Weights, name: str, x: Tensor) -> Tensor:
    """Each image normalised as a whole, then SiLU."""
    return silu(group_norm(x, 1, params[f"{name}/scale"], params[f"{name}/bias"]))


def encode(image: Image, params: Weights, obs: Tensor) -> Tensor:
    """Flat images [..., side * side * channels] -> [..., seen]."""
    x = obs.reshape(-1, image.side, image.side, image.channels).permute(0, 3, 1, 2).contiguous()
    for i in range(len(image.depths)):
        weight = params[f"{ENCODER}/{i}/weight"]
        x = conv2d(x, weight, stride=PATCH, padding=2) if i == 0 else conv2d(x, weight, stride=2, padding=1)
        x = active(params, f"{ENCODER}/{i}", x)
    return x.reshape(*obs.shape[:-1], image.seen)


def decode(image: Image, params: Weights, feature: Tensor) -> Tensor:
    """[..., F] -> flat images of numbers that are meant to lie between 0 and 1."""
    x = active(params, f"{DECODER}/grid", linear(feature.flatten(0, -2), params[f"{DECODER}/grid/weight"]))
    x = x.view(len(x), -1, GRID, GRID)
    for i in range(image.halvings):
        x = conv_transpose2d(x, params[f"{DECODER}/{i}/weight"], stride=2, padding=1)
        x = active(params, f"{DECODER}/{i}", x)
    return painted(image, out(params, f"{DECODER}/out", x.permute(0, 2, 3, 1))).reshape(*feature.shape[:-1], -1)


def painted(image: Image, patches: Tensor) -> Tensor:
    """[N, side / 4, side / 4, 4 * 4 * channels] -> images, patch beside patch (as a convolution it takes longer)."""
    grid = image.side // PATCH
    parts = patches.reshape(-1, grid, grid, PATCH, PATCH, image.channels)
    return parts.transpose(2, 3).reshape(-1, image.side * image.side * image.channels)
