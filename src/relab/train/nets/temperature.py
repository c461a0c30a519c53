"""How much is entropy worth? A fixed weight, or one that is learned so that the entropy comes to a target.

L = -ln alpha E[ln pi(a|s) + target] = ln alpha (entropy - target)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.train.nets.mlps import Adam

LARGEST = 80.0  # of ln alpha: beyond it nothing but the entropy counts, and float32 has no number for it


class Temperature:
    """The weight alpha of the entropy: fixed, or learned on its logarithm."""

    def __init__(self, fixed: float | None, target: float, eps: float):
        self.fixed, self.target = fixed, target
        self.log, self.adam = np.zeros(1, np.float32), Adam(1, eps)

    @property
    def alpha(self) -> float:
        return math.exp(min(float(self.log[0]), LARGEST)) if self.fixed is None else self.fixed

    def step(self, entropy: float, lr: float) -> float:
        """Towards the target: down where the entropy is above it. The loss before."""
        away = entropy - self.target
        loss = float(self.log[0]) * away
        self.adam.step(self.log, np.array([away], np.float32), lr)
        return loss

    def to_tree(self) -> Tree:
        return {"log": self.log, **self.adam.to_tree()}

    def load(self, tree: Mapping[str, Any]) -> None:
        self.log[:] = tree["log"]
        self.adam.load(tree)
