"""What are Dreamer's networks made of? Layers of weights, a normalisation and SiLU, and plain outputs, by name.

`mlp` and `head` go to kernels where those can run (fast_layers.py); what stands here for torch is what they compute.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import layer_norm, linear, silu

from relab.train.algos.dreamer import fast_layers
from relab.train.kernels import blas
from relab.train.nets.networks import Params

Shapes = dict[str, tuple[int, ...]]
CUT = 2.0  # standard deviations at which first weights are cut
CUT_STD = 0.87962566  # of a normal that is cut there


class Weights(Params):
    """Parameters, and where each head lies among them. `fast`: kernels compute, which need a BLAS; else torch does."""

    def __init__(self, shapes: Shapes, fast: bool = blas.AVAILABLE):
        super().__init__(shapes)
        self.fast = fast
        self.places = fast_layers.offsets(self)
        self.layouts: dict[str, fast_layers.Layout] = {}

    def place(self, name: str) -> int:
        """Where a tensor begins in the flat vector."""
        return self.places[name]

    def layout(self, name: str) -> fast_layers.Layout:
        if name not in self.layouts:
            self.layouts[name] = fast_layers.layout(self, name)
        return self.layouts[name]


def layer_shapes(name: str, n_in: int, n_out: int) -> Shapes:
    return {f"{name}/weight": (n_out, n_in), f"{name}/scale": (n_out,), f"{name}/bias": (n_out,)}


def mlp_shapes(name: str, n_in: int, units: int, layers: int, n_out: int = 0) -> Shapes:
    """`layers` hidden layers, and a plain one of `n_out` numbers where there are any."""
    shapes: Shapes = {}
    for i in range(layers):
        shapes |= layer_shapes(f"{name}/{i}", n_in if i == 0 else units, units)
    return shapes | out_shapes(f"{name}/out", units, n_out) if n_out else shapes


def out_shapes(name: str, n_in: int, n_out: int) -> Shapes:
    return {f"{name}/weight": (n_out, n_in), f"{name}/bias": (n_out,)}


def init(params: Weights, rng: np.random.Generator, last: dict[str, float]) -> None:
    """Weights of variance 1 / inputs, cut at two deviations; scales 1, biases 0. `last`: factors of outputs."""
    for name, tensor in params.named.items():
        kind = name.rpartition("/")[2]
        if kind == "scale":
            tensor.detach().fill_(1.0)
        elif kind == "weight":
            inputs = tensor.shape[-1] if tensor.dim() < 4 else math.prod(tensor.shape[1:])  # of a convolution: a window
            drawn = np.clip(rng.standard_normal(tensor.shape), -CUT, CUT) / CUT_STD / math.sqrt(inputs)
            factor = last.get(name.removesuffix("/weight"), 1.0)
            tensor.detach().copy_(torch.from_numpy((factor * drawn).astype(np.float32)))


def norm(params: Weights, name: str, x: Tensor) -> Tensor:
    return layer_norm(x, x.shape[-1:], params[f"{name}/scale"], params[f"{name}/bias"])


def layer(params: Weights, name: str, x: Tensor) -> Tensor:
    return silu(norm(params, name, linear(x, params[f"{name}/weight"])))


def mlp(params: Weights, name: str, x: Tensor, layers: int) -> Tensor:
    """The hidden layers alone."""
    if params.fast:
        return computed(params, name, x)
    for i in range(layers):
        x = layer(params, f"{name}/{i}", x)
    return x


def computed(params: Weights, name: str, x: Tensor) -> Tensor:
    return fast_layers.Head.apply(x, params[f"{name}/0/weight"], params, params.layout(name))


def out(params: Weights, name: str, x: Tensor) -> Tensor:
    return linear(x, params[f"{name}/weight"], params[f"{name}/bias"])


def head(params: Weights, name: str, x: Tensor, layers: int) -> Tensor:
    """Hidden layers, then the outputs."""
    if params.fast:
        return computed(params, name, x)
    return out(params, f"{name}/out", mlp(params, name, x, layers))
