"""Which actions does Dreamer's actor draw, in the world and in dreams? Choices, or a Gaussian inside the box.

Drawn by uniform numbers that the caller brings, so that a row in the world draws from its own stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from relab.record.spec import Action
from relab.train.algos.dreamer.choices import Judge
from relab.train.algos.dreamer.equations import unimix

LEAST_STD, MOST_STD = 0.1, 1.0
LOG_2PI_E = math.log(2 * math.pi * math.e)


@dataclass(frozen=True)
class Actions:
    """The actor's outputs as a distribution. `sizes`: choices per component, empty for a Gaussian."""

    sizes: tuple[int, ...]
    dim: int
    mix: float  # share of the choices that is spread evenly

    @classmethod
    def of(cls, action: Action, mix: float) -> Actions:
        return cls(() if action.kind == "continuous" else action.n, action.dim, mix)

    @property
    def out_dim(self) -> int:
        return sum(self.sizes) or 2 * self.dim

    @property
    def in_dim(self) -> int:
        """Numbers by which the world model is told of an action."""
        return sum(self.sizes) or self.dim

    @property
    def draws(self) -> int:
        """Uniform numbers that a row needs."""
        return len(self.sizes) or 2 * self.dim

    def encode(self, action: Tensor) -> Tensor:
        """[..., dim] as it was drawn -> [..., in_dim]."""
        if not self.sizes:
            return action.float().clamp(-1, 1)
        return torch.cat([one_hot(action[..., i], n).float() for i, n in enumerate(self.sizes)], -1)

    def probs(self, out: Tensor) -> list[Tensor]:
        return [unimix(part, self.mix) for part in out.split(self.sizes, -1)]

    def gaussian(self, out: Tensor) -> tuple[Tensor, Tensor]:
        mean, wide = out.chunk(2, -1)
        return mean.tanh(), LEAST_STD + (MOST_STD - LEAST_STD) * torch.sigmoid(wide + 2.0)

    def draw(self, out: Tensor, uniform: Tensor) -> Tensor:
        """[..., dim] by uniform numbers [..., draws]; int64 choices, or float32 around the middle of the box."""
        if self.sizes:
            chosen = [(p.cumsum(-1) < uniform[..., i : i + 1]).sum(-1).clamp_(max=p.shape[-1] - 1)
                      for i, p in enumerate(self.probs(out))]  # fmt: skip
            return torch.stack(chosen, -1)
        mean, std = self.gaussian(out)
        radius, angle = uniform.chunk(2, -1)
        normal = (-2 * torch.log1p(-radius)).sqrt() * torch.cos(2 * math.pi * angle)
        return mean + std * normal

    def mode(self, out: Tensor) -> Tensor:
        if self.sizes:
            return torch.stack([part.argmax(-1) for part in out.split(self.sizes, -1)], -1)
        return self.gaussian(out)[0]

    def log_prob(self, out: Tensor, action: Tensor) -> Tensor:
        """ln pi(a|s): [..., out_dim], [..., dim] -> [...]."""
        return self.judge(out, action)[0]

    def judge(self, out: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
        """(ln pi(a|s), entropy): [..., out_dim], [..., dim] -> [...] each."""
        if self.sizes:
            logp, nats = Judge.apply(out, action, self.sizes, self.mix)
            return logp, nats
        mean, std = self.gaussian(out)
        log = -0.5 * ((action - mean) / std).square() - std.log() - 0.5 * math.log(2 * math.pi)
        return log.sum(-1), (0.5 * LOG_2PI_E + std.log()).sum(-1)
