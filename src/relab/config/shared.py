"""What follows from settings that several algorithms share, and what must hold for them?

Plain classes, not dataclasses: their annotations name the settings that an algorithm's own config class declares.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relab.base import limits
from relab.config.base import require


class Discounted:
    gamma: float

    @property
    def horizon(self) -> float:
        """Steps ahead that the discount still sees: 1 / (1 - gamma)."""
        return 1 / (1 - self.gamma) if self.gamma < 1 else math.inf


class Collected:
    envs: int
    steps: int

    @property
    def batch(self) -> int:
        """World rows of one iteration: envs * steps."""
        return self.envs * self.steps


def check_layers(hidden: Sequence[int], name: str = "hidden") -> None:
    widest = max(hidden, default=1)
    require(min(hidden, default=1) >= 1, f"each of `{name}` must be at least 1, but got {list(hidden)}")
    require(widest <= limits.WIDTH, f"a layer of `{name}` must have at most {limits.WIDTH:,} units, but got {widest:,};"
            " use fewer")  # fmt: skip
