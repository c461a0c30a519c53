"""What does DreamerV3 compute? Its equations as flat functions (Hafner et al. 2023), tested against hand numbers.

Time runs along the first axis. Row t of a sequence holds what was seen at t and the reward that arrived with it, so the
reward of leaving row t is reward_{t+1}, and whether row t + 1 exists as a place to go on from is continue_{t+1}.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import two_hot
from relab.train.kernels.jit import njit


def symlog(x: Tensor) -> Tensor:
    """sign(x) ln(1 + |x|): large numbers shrink, small ones stay."""
    return torch.sign(x) * torch.log1p(torch.abs(x))


def symexp(x: Tensor) -> Tensor:
    """The inverse of symlog: sign(x) (e^|x| - 1)."""
    return torch.sign(x) * torch.expm1(torch.abs(x))


@dataclass(frozen=True)
class Support:
    """The numbers that a two-hot head can say: `bins` of them from -limit to limit, even in symlog or on the line.

    A head's mean is the sum of its probabilities times these numbers, so that nothing beyond them can be said.
    """

    values: Tensor  # [bins], ascending

    @classmethod
    def of(cls, low: float, high: float, bins: int, spacing: str = "symlog") -> Support:
        if spacing == "linear":
            return cls(torch.linspace(low, high, bins))
        ends = symlog(torch.tensor([low, high], dtype=torch.float64))
        return cls(symexp(torch.linspace(float(ends[0]), float(ends[1]), bins, dtype=torch.float64)).float())

    @property
    def low(self) -> float:
        return float(self.values[0])

    @property
    def high(self) -> float:
        return float(self.values[-1])

    def neighbours(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """([..., 2] bins below and above x, [..., 2] the weights that make x of them); beyond an end, all on it."""
        x = x.clamp(self.low, self.high)
        above = torch.searchsorted(self.values, x.contiguous(), right=True).clamp_(1, len(self.values) - 1)
        low, high = self.values[above - 1], self.values[above]
        share = (x - low) / (high - low)
        return torch.stack((above - 1, above), -1), torch.stack((1 - share, share), -1)

    def two_hot(self, x: Tensor) -> Tensor:
        """[..., bins]: the two neighbours of x share its weight, so that the mean is x."""
        bins, weights = self.neighbours(x)
        return torch.zeros(*x.shape, len(self.values)).scatter_(-1, bins, weights)

    def floor(self, x: Tensor) -> Tensor:
        """The entropy of two_hot(x), below which no cross-entropy to it can fall: [...] -> [...]."""
        return entropy_of(self.neighbours(x)[1])

    def loss(self, logits: Tensor, *targets: Tensor, weights: tuple[float, ...] = (1.0,)) -> Tensor:
        """-sum_k weight_k sum two_hot(target_k) ln softmax(logits): [..., bins], [...] each -> [...]."""
        return two_hot.Loss.apply(logits, torch.stack(targets), self.values.numpy(), np.array(weights, np.float32))

    def mean(self, logits: Tensor) -> Tensor:
        """What the head says, without a gradient: [..., bins] -> [...]."""
        flat, out = logits.detach().contiguous(), torch.empty(logits.shape[:-1])
        two_hot.means(flat.numpy().reshape(-1), out.numel(), self.values.numpy(), out.numpy().reshape(-1))
        return out

    def outside(self, x: Tensor) -> Tensor:
        """Which targets lie beyond an end, and are therefore learned as that end."""
        return (x < self.low) | (x > self.high)


def entropy_of(target: Tensor) -> Tensor:
    """-sum p ln p: the floor below which the cross-entropy to such a target cannot fall."""
    return torch.special.entr(target).sum(-1)


def unimix(logits: Tensor, share: float, dim: int = -1) -> Tensor:
    """Probabilities of the softmax along `dim`, of which `share` is spread evenly, so that none is 0."""
    probs = logits.softmax(dim)
    return probs if share == 0 else torch.add(share / logits.shape[dim], probs, alpha=1 - share)


# Latent variables are [..., classes, S]: torch's softmax along a short last axis takes 25 times as long.


def sample(probs: Tensor, uniform: Tensor) -> Tensor:
    """One-hot draws [..., classes, S] by uniform numbers [..., S]; gradients pass straight to the probabilities."""
    with torch.no_grad():
        ends = probs.cumsum(-2)
        ends[..., -1, :] = 1.0  # rounding may leave it below the largest uniform number
        reached = (ends > uniform.unsqueeze(-2)).to(probs.dtype)
        hot = torch.diff(reached, dim=-2, prepend=torch.zeros_like(reached[..., :1, :]))
    return hot + (probs - probs.detach()) if probs.requires_grad else hot


def kl(p: Tensor, q: Tensor) -> Tensor:
    """KL(p || q) of independent categoricals, summed over them: probabilities [..., classes, S] -> [...] in nats."""
    return (p * (p.log() - q.log())).sum((-2, -1))


def free_bits(nats: Tensor, floor: float) -> Tensor:
    """max(nats, floor) for every row: below the floor nothing is gained, and no gradient flows."""
    return nats.clamp(min=floor)


def straight_free_bits(nats: Tensor, floor: float) -> Tensor:
    """The same number with the gradient of `nats` below the floor too."""
    return nats + (floor - nats).clamp(min=0).detach()


def lambda_returns(reward_T: Tensor, live_T: Tensor, value_T: Tensor, lam: float | Tensor) -> Tensor:
    """R_t = r_{t+1} + live_{t+1} ((1 - lam) v_{t+1} + lam R_{t+1}),  R at the last row = v there.

    All arguments [T, ...] and `live` the discount times the probability to go on; the result has rows 0 to T - 2.
    Where `lam` is a tensor, its row t + 1 says how far R_{t+1} is trusted: 0 at the last row of an episode.
    """
    trust = lam if isinstance(lam, Tensor) else torch.full_like(reward_T, lam)
    parts = [x.contiguous().numpy().reshape(len(x), -1) for x in (reward_T, live_T, value_T, trust)]
    out = np.empty((len(reward_T) - 1, parts[0].shape[1]), np.float32)
    returns_back(*parts, out)  # type: ignore[call-arg]
    return torch.from_numpy(out).view(-1, *reward_T.shape[1:])


@njit(cache=True, nogil=True)
def returns_back(reward_TN, live_TN, value_TN, trust_TN, out_TN):
    T, N = reward_TN.shape
    for i in range(N):
        R = value_TN[T - 1, i]
        for t in range(T - 2, -1, -1):
            trust = trust_TN[t + 1, i]
            R = reward_TN[t + 1, i] + live_TN[t + 1, i] * ((1 - trust) * value_TN[t + 1, i] + trust * R)
            out_TN[t, i] = R


@dataclass
class ReturnScale:
    """How far do returns lie apart? A running 5th to 95th percentile, at least 1: what advantages are divided by."""

    low: float = 0.0
    high: float = 0.0
    weight: float = 0.0  # of what has been seen, so that the first returns count whole
    rate: float = 0.01
    least: float = 1.0

    def update(self, returns: Tensor) -> None:
        low, high = torch.quantile(returns.flatten(), torch.tensor([0.05, 0.95])).tolist()
        self.low += self.rate * (low - self.low)
        self.high += self.rate * (high - self.high)
        self.weight += self.rate * (1 - self.weight)

    @property
    def value(self) -> float:
        span = (self.high - self.low) / self.weight if self.weight else 0.0
        return max(self.least, span)

    def to_tree(self) -> dict[str, float]:
        return {"low": self.low, "high": self.high, "weight": self.weight}

    def load(self, tree: dict[str, float]) -> None:
        self.low, self.high, self.weight = (float(tree[name]) for name in ("low", "high", "weight"))


def value_bound(reward: float, gamma: float) -> float:
    """The largest value there can be where every step may pay `reward`: reward / (1 - gamma)."""
    return reward / (1 - gamma) if gamma < 1 else math.inf
