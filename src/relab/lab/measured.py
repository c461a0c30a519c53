"""How does a run become one number, and which number is better? What experiments, sweeps and loops declare alike."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from relab.comparison import outcomes
from relab.config.base import require

BEHIND = ("paired", "range", "budget")  # in a file the measure stands before the first of these


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One number per run, declared before the runs."""

    metric: str = "eval/return_det"
    at: str = "final"  # final | mean_last_m | first_step_reaching | success_rate
    last: int = 3  # m of mean_last_m
    level: float | None = None  # of first_step_reaching
    direction: str = "higher"  # higher | lower: which is better
    smallest_effect: float = 0.0  # in the metric's unit: smaller differences do not matter

    @property
    def sign(self) -> int:
        """+1 where a larger number is better; steps are better when fewer."""
        return outcomes.sign_of(self.at, self.direction)

    def check_measure(self) -> None:
        """What cannot be measured is an error before anything runs."""
        require(self.at in outcomes.AT, f"`at` must be one of {', '.join(outcomes.AT)}, but got {self.at!r}")
        require(
            self.direction in outcomes.DIRECTIONS, f"`direction` must be higher or lower, but got {self.direction!r}"
        )
        require(0 <= self.smallest_effect < math.inf, "`smallest_effect` must be a finite number of at least 0, but got"
                                                      f" {self.smallest_effect}")  # fmt: skip
        require(self.at != "first_step_reaching" or self.level is not None, "`at: first_step_reaching` needs a `level`")
        require(
            self.level is None or math.isfinite(self.level), f"`level` must be a finite number, but got {self.level}"
        )
        require(self.last >= 1, f"`last` must be at least 1, but got {self.last}")


MEASURE = tuple(each.name for each in fields(Measured))


def in_order(plan: type[Measured]) -> Sequence[str]:
    """The keys of a plan as its file has them: the measure in the middle, where it is read, and not first."""
    own = [each.name for each in fields(plan) if each.name not in MEASURE]
    place = min(own.index(name) for name in BEHIND if name in own)
    return [*own[:place], *MEASURE, *own[place:]]
