"""What still fits into the time of a call? As many runs as will be done by then, by what the slowest so far took.

A run that is begun and does not fit makes the call longer than its user has allowed. A set of seeds is begun as far as
it fits: what is done stays, and the next call does the rest.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from relab.base.text import duration, plural
from relab.lab.experiment import cells as runs
from relab.lab.experiment.cells import Cell
from relab.lab.sweep.cost import seconds_of

SAMPLE = 20  # finished runs that are looked at


class OutOfTime(Exception):  # noqa: N818 - what was asked for, and no error
    """What is next would not be done in time."""


@dataclass
class Allowance:
    """The time of one call; None is all the time there is."""

    seconds: float | None = None
    guess: float | None = None  # seconds of a run before one has finished
    judging: float = 0.0  # seconds of the deciding evaluation, a run: the longest so far
    began: float = field(default_factory=time.monotonic)

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        return math.inf if self.seconds is None else max(self.seconds - self.spent, 0.0)

    def fitting(self, todo: Sequence[Cell], known: Sequence[Cell], at_once: int) -> list[Cell]:
        """As many of these as will be done in time; OutOfTime where that is none. `known`: runs that may be timed."""
        if self.seconds is None:
            return list(todo)
        one = self.one(known)
        if one is None:  # nobody knows yet what a run takes: the first ones tell
            return list(todo[:at_once]) if self.left > 0 else self.stop(todo, "nobody knows yet how long")
        rounds = int(self.left / one) if one > 0 else len(todo)
        return list(todo[: rounds * at_once]) or self.stop(todo, f"up to {duration(one)} each")

    def one(self, known: Sequence[Cell]) -> float | None:
        """Seconds of a run and of what judges it, as the slowest of the last ones took."""
        took = [seconds_of(cell) for cell in [cell for cell in known if runs.settled(cell)][-SAMPLE:]]
        return max(took) + self.judging if took else self.guess

    def stop(self, todo: Sequence[Cell], each: str) -> list[Cell]:
        left = f"{duration(self.left)} of {duration(self.seconds or 0.0)} are left"
        raise OutOfTime(f"{plural(len(todo), 'run')} to go before the next decision ({each}), and {left}: none is begun"
                        " that may not fit; call it again to go on")  # fmt: skip

    def judged(self, cells: int, seconds: float) -> None:
        self.judging = max(self.judging, seconds / max(cells, 1))
