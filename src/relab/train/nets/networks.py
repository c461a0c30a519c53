"""What do the networks compute? Parameters as one flat vector with named views, and two small architectures on it.

Feed-forward: two separate MLPs, `actor` and `critic`.  Recurrent: one `body` MLP, a GRU, LSTM or minGRU cell
(scans.py), two linear heads.
Where images are observed, both see the features of one `encoder` (encoder.py) in place of the pixels.
All functions are pure: (net, params, inputs) -> outputs, differentiable by torch. The hand-derived twin: fastmlp.py.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import linear

from relab.base import limits
from relab.config.base import require
from relab.train.nets import encoder, scans


@dataclass(frozen=True)
class Net:
    """The architecture: everything needed to lay out the parameters."""

    obs_dim: int
    out_dim: int  # policy outputs: logits, or means of a Gaussian
    hidden: tuple[int, ...] = (64, 64)
    activation: str = "tanh"
    log_std_dim: int = 0  # state-independent log standard deviations of a Gaussian policy
    rnn: str = "none"
    rnn_size: int = 64
    image: tuple[int, ...] = ()  # (height, width, channels) that the encoder looks at; empty: there is none
    critic_hidden: tuple[int, ...] | None = None  # layers of a feed-forward critic; None: as `hidden`

    @property
    def plain(self) -> bool:
        """Is it two MLPs and nothing else? Those have a hand-derived twin."""
        return self.rnn == "none" and not self.image

    def layers(self, name: str) -> tuple[int, ...]:
        """Hidden layers of the feed-forward `actor` or `critic`."""
        return self.hidden if name == "actor" or self.critic_hidden is None else self.critic_hidden

    @property
    def seen_dim(self) -> int:
        """Numbers that the first layer behind the encoder sees: its features, or the observation."""
        return encoder.layers(self.image).features if self.image else self.obs_dim

    @property
    def memory_dim(self) -> int:
        """Numbers of memory per row: the hidden state, and the cell state beside it for an LSTM."""
        return {"none": 0, "lstm": 2 * self.rnn_size}.get(self.rnn, self.rnn_size)


def _makers(shapes: Mapping[str, tuple[int, ...]]) -> str:
    """The settings that the number of weights comes from: the critic's own where its largest layer is alone in size."""
    name, shape = max(shapes.items(), key=lambda item: math.prod(item[1]))
    alone = name.startswith("critic/") and shapes.get(name.replace("critic/", "actor/", 1)) != shape
    return "the layers of `critic_hidden`" if alone else "`hidden`, `rnn_size` and what it observes"


class Params:
    """Named tensors that are views of one flat vector, so that optimiser, norms and copies are single calls."""

    def __init__(self, shapes: Mapping[str, tuple[int, ...]], device: str = "cpu"):
        size = sum(math.prod(shape) for shape in shapes.values())
        require(size <= limits.WEIGHTS, f"an agent must have at most {limits.WEIGHTS:,} weights, but"
                f" {_makers(shapes)} make {size:,}; use smaller layers, or observe less")  # fmt: skip
        self.flat = torch.zeros(size, device=device)
        self.grad = torch.zeros(size, device=device)
        self.named = split(self.flat, shapes)
        self.grads = split(self.grad, shapes)
        for name, tensor in self.named.items():
            tensor.requires_grad_()
            tensor.grad = self.grads[name]  # autograd adds into the flat gradient, in place

    def __getitem__(self, name: str) -> Tensor:
        return self.named[name]

    def load(self, values: Mapping[str, np.ndarray]) -> None:
        """Copy values in by name, all or none; a missing name or another shape is an error with both shapes."""
        for name, tensor in self.named.items():
            if name not in values:
                have = ", ".join(sorted(values))
                raise KeyError(f"parameter `{name}` is missing from the checkpoint; it has: {have}")
            if tuple(values[name].shape) != tuple(tensor.shape):
                raise ValueError(
                    f"parameter `{name}` has shape {tuple(tensor.shape)} by the config,"
                    f" but the checkpoint holds {tuple(values[name].shape)}; `hidden`, `rnn_size`, `encoder` or the env"
                    " changed"
                )
        for name, tensor in self.named.items():
            tensor.detach().copy_(torch.from_numpy(np.ascontiguousarray(values[name])))


def split(flat: Tensor, shapes: Mapping[str, tuple[int, ...]]) -> dict[str, Tensor]:
    views, at = {}, 0
    for name, shape in shapes.items():
        n = int(np.prod(shape))
        views[name] = flat[at : at + n].view(shape)
        at += n
    return views


def mlp_shapes(prefix: str, sizes: tuple[int, ...]) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {}
    for i, (n_in, n_out) in enumerate(pairwise(sizes)):
        shapes[f"{prefix}/{i}/weight"], shapes[f"{prefix}/{i}/bias"] = (n_out, n_in), (n_out,)
    return shapes


def shapes(net: Net) -> dict[str, tuple[int, ...]]:
    """Name -> shape of every parameter, in the order of the flat vector."""
    parts, body = encoder.shapes(net.image) if net.image else {}, (net.seen_dim, *net.hidden)
    if net.rnn == "none":
        parts |= mlp_shapes("actor", (*body, net.out_dim))
        parts |= mlp_shapes("critic", (net.seen_dim, *net.layers("critic"), 1))
    else:
        parts |= mlp_shapes("body", body) | cell_shapes(net, body[-1])
        parts |= mlp_shapes("actor", (net.rnn_size, net.out_dim)) | mlp_shapes("critic", (net.rnn_size, 1))
    if net.log_std_dim:
        parts["log_std"] = (net.log_std_dim,)
    return parts


def cell_shapes(net: Net, inputs: int) -> dict[str, tuple[int, ...]]:
    gates = {"gru": 3, "lstm": 4, "mingru": 2}[net.rnn] * net.rnn_size
    if net.rnn == "mingru":  # its gates do not look at the memory
        return {"rnn/input": (gates, inputs), "rnn/input_bias": (gates,)}
    parts: dict[str, tuple[int, ...]] = {"rnn/input": (gates, inputs), "rnn/hidden": (gates, net.rnn_size)}
    return parts | {"rnn/input_bias": (gates,), "rnn/hidden_bias": (gates,)}


def init(net: Net, rng: np.random.Generator, log_std: float = 0.0, device: str = "cpu") -> Params:
    """Orthogonal weights, zero biases: gain sqrt(2) inside, 0.01 for the policy's last layer, 1 for the value's."""
    params = Params(shapes(net), device)
    last = {f"actor/{depth(net, 'actor')}/weight": 0.01, f"critic/{depth(net, 'critic')}/weight": 1.0}
    for name, tensor in params.named.items():
        if tensor.dim() > 1:  # a filter is a row: all that it looks at
            gain = last.get(name, 1.0 if name.startswith("rnn") else 2.0**0.5)
            rows = orthogonal(rng, len(tensor), tensor[0].numel()) * gain
            tensor.detach().copy_(torch.from_numpy(rows).view_as(tensor))
        elif name == "log_std":
            tensor.detach().fill_(log_std)
    return params


def depth(net: Net, prefix: str) -> int:
    """Index of the last layer of `actor` or `critic`."""
    return max(int(name.split("/")[1]) for name in shapes(net) if name.startswith(prefix))


def orthogonal(rng: np.random.Generator, rows: int, cols: int) -> np.ndarray:
    """A matrix with orthonormal rows or columns, whichever are fewer (QR of a Gaussian, signs made unique)."""
    q, r = np.linalg.qr(rng.standard_normal((max(rows, cols), min(rows, cols))))
    q = q * np.sign(np.diag(r))
    return (q if rows >= cols else q.T).astype(np.float32)


def mlp(params: Params, prefix: str, x: Tensor, layers: int, activation: str, last_linear: bool = True) -> Tensor:
    act = torch.tanh if activation == "tanh" else torch.relu
    for i in range(layers):
        x = linear(x, params[f"{prefix}/{i}/weight"], params[f"{prefix}/{i}/bias"])
        if i + 1 < layers or not last_linear:
            x = act(x)
    return x


def seen(net: Net, params: Params, obs: Tensor) -> Tensor:
    """What the first layers see: [..., obs_dim] -> [..., seen_dim]."""
    return encoder.encode(net.image, params.named, obs) if net.image else obs


def policy(net: Net, params: Params, obs: Tensor) -> Tensor:
    """Policy outputs of a feed-forward net: [..., obs_dim] -> [..., out_dim]."""
    return mlp(params, "actor", seen(net, params, obs), len(net.hidden) + 1, net.activation)


def value(net: Net, params: Params, obs: Tensor) -> Tensor:
    """State values of a feed-forward net: [..., obs_dim] -> [...]."""
    return mlp(params, "critic", seen(net, params, obs), len(net.layers("critic")) + 1, net.activation).squeeze(-1)


def both(net: Net, params: Params, obs: Tensor) -> tuple[Tensor, Tensor]:
    """`policy` and `value` of the same rows, encoded once."""
    x = seen(net, params, obs)
    out, v = (mlp(params, name, x, len(net.layers(name)) + 1, net.activation) for name in ("actor", "critic"))
    return out, v.squeeze(-1)


def unroll(
    net: Net, params: Params, obs_TBD: Tensor, memory_BM: Tensor, fresh_TB: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Run a recurrent net over time: (policy outputs [T,B,·], values [T,B], memory after the last step [B,M]).

    `fresh_TB` marks the first step of an episode: the memory is cleared before it.
    """
    x_TBH = mlp(params, "body", seen(net, params, obs_TBD), len(net.hidden), net.activation, last_linear=False)
    keep_TB1 = 1.0 - fresh_TB.unsqueeze(-1).to(x_TBH.dtype)
    if net.rnn == "mingru":
        h_TBH = scans.min_gru(linear(x_TBH, params["rnn/input"], params["rnn/input_bias"]), memory_BM, keep_TB1)
        memory_BM = h_TBH[-1]
    else:
        h_TBH, memory_BM = recur(net, params, x_TBH, memory_BM, keep_TB1)
    return mlp(params, "actor", h_TBH, 1, ""), mlp(params, "critic", h_TBH, 1, "").squeeze(-1), memory_BM


def recur(net: Net, params: Params, x_TBH: Tensor, memory_BM: Tensor, keep_TB1: Tensor) -> tuple[Tensor, Tensor]:
    """A cell step by step: (hidden states [T,B,H], memory after the last step)."""
    hidden = []
    for x_BH, keep_B1 in zip(x_TBH, keep_TB1):
        memory_BM = cell(net, params, x_BH, memory_BM * keep_B1)
        hidden.append(memory_BM[:, : net.rnn_size])
    return torch.stack(hidden), memory_BM


def cell(net: Net, params: Params, x: Tensor, memory: Tensor) -> Tensor:
    weights = (params["rnn/input"], params["rnn/hidden"], params["rnn/input_bias"], params["rnn/hidden_bias"])
    if net.rnn == "gru":
        return torch.gru_cell(x, memory, *weights)
    h, c = torch.lstm_cell(x, list(memory.split(net.rnn_size, dim=1)), *weights)
    return torch.cat((h, c), dim=1)
