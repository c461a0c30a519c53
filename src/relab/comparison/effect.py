"""By how much does B beat A, and does that settle it? Outcomes in; an interval, a verdict and the seeds needed out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relab import stats
from relab.comparison.outcomes import Outcome, sign_of
from relab.comparison.wording import NO, OPEN, WITHDRAWN, YES
from relab.stats import compare_means, means

LEAST = stats.LEAST  # seeds a variant: below, no interval has been shown to hold
Ends = tuple[float, float, float]  # delta, low, high


def grid_of(good: list[list[Outcome]]) -> float:
    """Steps between evaluations, where a level was reached between two of them."""
    steps = [x.grid for arm in good for x in arm if x.grid > 0]
    return float(np.mean(steps)) if steps else 0.0


def finite(arms: list[list[Outcome]], paired: bool) -> list[list[Outcome]]:
    """The runs that have a number; of pairs, those of which both have."""
    if paired:
        both = [pair for pair in zip(*arms, strict=True) if all(math.isfinite(x.value) for x in pair)]
        return [[pair[0] for pair in both], [pair[1] for pair in both]]
    return [[x for x in arm if math.isfinite(x.value)] for arm in arms]


def _verdict(delta: float, low: float, high: float, smallest: float) -> str:
    if low > 0 and delta >= smallest:
        return YES
    return NO if high < smallest else OPEN


@dataclass(frozen=True)
class Effect:
    """How two lists of outcomes become an interval."""

    at: str
    direction: str
    paired: bool
    level: float
    bounds: tuple[float, float] = (-math.inf, math.inf)

    @property
    def kind(self) -> str:
        by_at = {"success_rate": "rate", "first_step_reaching": "time"}
        return by_at.get(self.at, "paired" if self.paired else "mean")

    @property
    def sign(self) -> int:
        return sign_of(self.at, self.direction)

    def numbers(self, a: Sequence[Outcome], b: Sequence[Outcome]) -> list[np.ndarray]:
        """One number a run for the mean; times become pseudo-values up to the common horizon."""
        values = [np.array([x.value for x in arm], np.float64) for arm in (a, b)]
        if self.kind != "time" or not all(map(len, values)):
            return values
        times = _times([a, b])
        return [stats.pseudo_times(*arm, stats.common_horizon(*times)) for arm in times]

    def limits(self, good: Sequence[Sequence[Outcome]]) -> tuple[float, float]:
        """The lowest and highest of these numbers there can be: a run that does not reach the level has the horizon."""
        if self.kind == "rate":
            return 0.0, 1.0
        if self.kind != "time":
            return self.bounds
        late = all(map(len, good)) and not all(x.reached for arm in good for x in arm)
        return 0.0, stats.common_horizon(*_times(good)) if late else math.inf

    def interval(self, a: Sequence[Outcome], b: Sequence[Outcome]) -> Ends:
        """delta, low, high, + is better; ends only from five seeds on."""
        x, y = self.numbers(a, b)
        if not len(x) or not len(y):
            return math.nan, math.nan, math.nan
        if min(len(x), len(y)) < LEAST:
            return self.sign * float(y.mean() - x.mean()), math.nan, math.nan
        mid, low, high, *_ = self._unsigned(x, y, a, b)
        if self.kind != "time":  # no difference is larger than the range of what is possible
            most = self.bounds[1] - self.bounds[0]
            low, high = max(low, min(-most, mid)), min(high, max(most, mid))
        return (mid, low, high) if self.sign > 0 else (0.0 - mid, 0.0 - high, 0.0 - low)  # never -0

    def untold(self, good: list[list[Outcome]]) -> str:
        """Why these numbers cannot tell the arms apart, whatever their interval; empty where they may."""
        if min(map(len, good)) < LEAST:
            return ""
        x, y = (np.array([run.value for run in arm]) for arm in good)
        if self.kind == "time" and not any(run.reached for arm in good for run in arm):
            return "unreached"
        if self.kind == "time" and 0 < grid_of(good) >= abs(x.mean() - y.mean()):
            return "grid"
        if self.kind != "time" and self.sign > 0 and min(x.mean(), y.mean()) >= compare_means.full(self.bounds):
            return "ceiling"
        return "ties" if self.kind != "rate" and np.ptp(np.concatenate([x, y])) == 0 else ""

    def readings(self, arms: list[list[Outcome]], ends: Ends) -> dict[str, list[float]]:
        """Both ways to count runs that diverged: left out, and as the worst there can be (or was)."""
        everyone = [x for arm in arms for x in arm if math.isfinite(x.value)]
        if not everyone or not any(x.diverged for arm in arms for x in arm) or self.paired:
            return {}
        worst = self._worst(everyone)
        filled = [[worst if x.diverged else x for x in arm if x.diverged or math.isfinite(x.value)] for arm in arms]
        return {"left out": list(ends), "as the worst": list(self.interval(*filled))}

    def _worst(self, everyone: list[Outcome]) -> Outcome:
        """What a diverged run is worth: the worst there can be, where that is not known the worst seen."""
        worst = self._fill(everyone, -1)
        bound = self.bounds[0 if self.sign > 0 else 1]
        return replace(worst, value=bound) if self.kind != "time" and math.isfinite(bound) else worst

    def _unsigned(self, x: np.ndarray, y: np.ndarray, a: Sequence[Outcome], b: Sequence[Outcome]) -> stats.Interval:
        if self.kind == "rate":
            m, k = (np.array([run.episodes for run in arm], np.float64) for arm in (a, b))
            reach = stats.rate_difference(np.round(x * m), m, np.round(y * k), k, self.level)
            test = stats.difference(x, y, self.level, self.limits([a, b]))
            low, high = compare_means.decided(_ends(reach), _ends(test), np.asarray(reach.mid))
            return reach._replace(low=float(low), high=float(high))
        if self.kind == "paired":
            return stats.paired_difference(x, y, self.level)
        return stats.difference(x, y, self.level, self.limits([a, b]))

    def verdict(
        self, arms: list[list[Outcome]], ends: Ends, smallest: float, notes: list[str]
    ) -> tuple[str, list[Ends]]:
        """What the interval says, and every reading in which that holds: a yes or no must also hold with diverged runs
        as the worst, and if other runs without a number had gone against it. An open answer holds in none of these."""
        verdict = _verdict(*ends, smallest)
        everyone = [x for arm in arms for x in arm if math.isfinite(x.value)]
        if len(everyone) == len(arms[0]) + len(arms[1]):
            return verdict, [ends]
        if verdict == OPEN:
            return verdict, []
        adverse = (1, -1) if verdict == YES else (-1, 1)  # a good A and a bad B speak against a yes
        filled = [
            [
                x if math.isfinite(x.value) else self._worst(everyone) if x.diverged else self._fill(everyone, side)
                for x in arm
            ]
            for arm, side in zip(arms, adverse, strict=True)
        ]
        against = self.interval(filled[0], filled[1])
        if _verdict(*against, smallest) == verdict:
            return verdict, [ends, against]
        worst = any(x.diverged for arm in arms for x in arm)
        but = "with diverged ones as the worst" if worst else "if those had gone against it"
        notes.append(f"{WITHDRAWN} {verdict} without the runs that have no number, but not {but}")
        return OPEN, []

    def _fill(self, everyone: list[Outcome], side: int) -> Outcome:
        """The best (+1) or worst (-1) outcome seen in either arm; a level never reached is the worst time."""
        best = max(everyone, key=lambda x: (self.sign * x.value, x.reached))
        worst = min(everyone, key=lambda x: (self.sign * x.value, x.reached))
        if self.kind == "rate":
            return replace(best, value=1.0 if side > 0 else 0.0)
        return best if side > 0 else replace(worst, reached=worst.reached and self.kind != "time")

    def seeds_needed(
        self, good: list[list[Outcome]], smallest: float, delta: float, alpha: float | None
    ) -> tuple[int, int] | None:
        """Seeds a variant for a power of 0.8 at the next look: to tell the smallest effect from none, or, where the
        runs there are would do for that, to tell the delta seen from the bound that it is close to."""
        x, y = self.numbers(*good)
        n = max(len(x), len(y))
        if min(len(x), len(y)) < 2 or alpha is None:
            return None
        for effect in (smallest or abs(delta), delta if delta >= smallest else smallest - delta):
            if effect <= 0:
                continue
            pairs = self.kind == "paired"
            needed = stats.pairs_range(effect, y - x, alpha) if pairs else stats.seeds_range(effect, x, y, alpha)
            if needed and needed[1] > n:
                return max(needed[0], n + 1), needed[1]
        return None


def _ends(x: stats.Interval) -> means.Ends:
    return np.asarray(x.low), np.asarray(x.high)


def _times(arms: Sequence[Sequence[Outcome]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """(step, whether it got there) of each run."""
    return [(np.array([x.value for x in arm], np.float64), np.array([x.reached for x in arm], bool)) for arm in arms]
