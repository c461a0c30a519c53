"""Which actions does a policy's output mean? Categorical choices or a Gaussian: sampling, log-probability, entropy.

Raw actions are what the policy drew and what the learner sees; `to_env` turns them into what the environment gets.
A Gaussian acts in units of half the action range: raw -1 and 1 are the ends of the box, so a standard deviation of 1
means the same in every environment. Sampling runs row by row from the row's own random stream.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.record.spec import Action
from relab.train.kernels.jit import njit
from relab.train.kernels.rng import normal_pair, uniform

LOG_2PI = math.log(2 * math.pi)


class Box(NamedTuple):
    """Per component of a continuous action, in float64: ends must not round outwards. Empty for choices."""

    bounded: np.ndarray  # has two finite bounds
    middle: np.ndarray
    half: np.ndarray  # of the range
    low: np.ndarray
    high: np.ndarray


@dataclass(frozen=True)
class Head:
    """The action distribution of one environment. `sizes`: choices per component, empty for a Gaussian."""

    sizes: tuple[int, ...]
    dim: int
    squash: bool = False
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()

    @classmethod
    def of(cls, action: Action, squash: bool = False) -> Head:
        if action.kind == "continuous":
            return cls((), action.dim, squash, action.low, action.high)
        return cls(action.n, action.dim)

    @property
    def gaussian(self) -> bool:
        return not self.sizes

    @property
    def out_dim(self) -> int:
        return self.dim if self.gaussian else sum(self.sizes)

    @property
    def max_entropy(self) -> float:
        """ln of the number of joint choices; a Gaussian has no maximum."""
        return math.inf if self.gaussian else sum(math.log(n) for n in self.sizes)

    def action_buffer(self, *shape: int) -> np.ndarray:
        return np.zeros((*shape, self.dim), np.float32 if self.gaussian else np.int64)

    def sample(
        self, out: np.ndarray, log_std: np.ndarray, rng: np.ndarray, n_mode: int, action: np.ndarray, logp: np.ndarray
    ) -> None:
        """Draw actions into `action`, their log-probabilities into `logp`; the first `n_mode` rows take the mode."""
        if self.gaussian:
            sample_gaussian(out, log_std, rng, n_mode, action, logp)
        else:
            sample_categorical(out, np.array(self.sizes), rng, n_mode, action, logp)

    def to_env(self, raw: np.ndarray) -> np.ndarray:
        """Raw action -> the environment's units: clipped to the box, or squashed into it by tanh.

        A component without two finite bounds has no range to be a unit: its raw action counts as it is.
        """
        if not self.gaussian:
            return raw
        action = np.empty(raw.shape, np.float32)
        rows = np.ascontiguousarray(raw, np.float32).reshape(-1, self.dim)
        unit_to_box(rows, self.box, self.squash, action.reshape(-1, self.dim))
        return action

    @cached_property
    def box(self) -> Box:
        low, high = np.array(self.low, np.float64), np.array(self.high, np.float64)
        bounded = np.isfinite(low) & np.isfinite(high)
        start, end = np.where(bounded, low, -1.0), np.where(bounded, high, 1.0)
        return Box(bounded, start / 2 + end / 2, end / 2 - start / 2, low, high)

    def log_prob(self, out: Tensor, log_std: Tensor | None, action: Tensor) -> Tensor:
        """ln pi(a|s) of raw actions, differentiable: out [..., out_dim], action [..., dim] -> [...].

        Squashing needs no correction: the change of volume is the same under old and new policy and leaves the ratio.
        """
        if self.gaussian:
            assert log_std is not None
            z = (action - out) * torch.exp(-log_std)
            return -0.5 * z.square().sum(-1) - log_std.sum() - 0.5 * self.dim * LOG_2PI
        parts = [b.log_softmax(-1).gather(-1, action[..., i : i + 1]) for i, b in enumerate(out.split(self.sizes, -1))]
        return torch.cat(parts, -1).sum(-1)

    def entropy(self, out: Tensor, log_std: Tensor | None) -> Tensor:
        """Entropy in nats per row; of the Gaussian before clipping or squashing."""
        if self.gaussian:
            assert log_std is not None
            return (log_std.sum() + 0.5 * self.dim * (1 + LOG_2PI)).expand(out.shape[:-1])
        logs = [block.log_softmax(-1) for block in out.split(self.sizes, -1)]
        return torch.stack([-(lp.exp() * lp).sum(-1) for lp in logs]).sum(0)


@njit(cache=True, nogil=True)
def sample_gaussian(mean_BK, log_std_K, rng_B, n_mode, action_BK, logp_B):
    B, K = mean_BK.shape
    for b in range(B):
        logp = -0.5 * K * LOG_2PI
        first, second = 0.0, 0.0
        for k in range(K):
            if b >= n_mode and k % 2 == 0:  # two for the price of one
                first, second = normal_pair(rng_B, b)
            z = first if k % 2 == 0 else second
            action_BK[b, k] = mean_BK[b, k] + np.exp(log_std_K[k]) * z
            logp -= 0.5 * z * z + log_std_K[k]
        logp_B[b] = logp


@njit(cache=True, nogil=True)
def unit_to_box(raw_BK, box, squash, action_BK):
    """Units of half the range into the box: cut at its ends, or squashed by tanh where there are two of them."""
    for b in range(raw_BK.shape[0]):
        for k in range(raw_BK.shape[1]):
            unit: float = np.float64(raw_BK[b, k])
            if squash and box.bounded[k]:
                unit = math.tanh(unit)
            x = box.middle[k] + box.half[k] * unit
            x = box.low[k] if x < box.low[k] else x  # NaN stays NaN
            action_BK[b, k] = box.high[k] if x > box.high[k] else x


@njit(cache=True, nogil=True)
def sample_categorical(logits_BK, sizes, rng_B, n_mode, action_BC, logp_B):
    """Inverse-CDF sampling per component: the first choice whose cumulative probability exceeds a uniform draw."""
    for b in range(logits_BK.shape[0]):
        at, logp = 0, 0.0
        for c in range(sizes.size):
            top, best = -np.inf, 0
            for j in range(sizes[c]):
                if logits_BK[b, at + j] > top:
                    top, best = logits_BK[b, at + j], j
            total = 0.0
            for j in range(sizes[c]):
                total += np.exp(logits_BK[b, at + j] - top)
            choice = best
            if b >= n_mode:
                left = uniform(rng_B, b) * total
                for j in range(sizes[c]):
                    choice = j
                    left -= np.exp(logits_BK[b, at + j] - top)
                    if left < 0.0:
                        break
            action_BC[b, c] = choice
            logp += logits_BK[b, at + choice] - top - np.log(total)
            at += sizes[c]
        logp_B[b] = logp
