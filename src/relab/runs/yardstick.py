"""What is a return held against? A random policy, the level that is called solved, the highest there can be.

The run's own record comes first (meta.spec), then the table of levels by the name of the environment.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from relab.base.documents import Document
from relab.base.numbers import is_number
from relab.config.views import flatten
from relab.record import levels
from relab.record.evaluations import Estimate, share_error
from relab.record.history import History

TOP = 0.95  # of the way from random to the highest return: this close to it is at it
MATTERS = 0.5  # standard deviations of random episodes: a smaller gain over random is no learning, however sure
SMALL = 0.02  # of the random return: the same, where its episodes do not differ


ROUNDING, SLACK = 1e-9, 0.01


@dataclass(frozen=True)
class Yardstick:
    """Levels of the task; what is not known is None, or NaN."""

    random: Estimate | None = None
    spread: float = 0.0  # standard deviation of single random episodes
    solved: float | None = None
    highest: float = math.nan
    lowest: float = math.nan
    choice: bool = True  # whether the policy can decide anything: some tiny environments have one action

    @property
    def matters(self) -> float:
        """How far above random a return must be to be worth a word."""
        return max(MATTERS * self.spread, SMALL * abs(self.random.mean)) if self.random else 0.0

    def share(self, mean: float) -> float:
        """How much of the way from random to the highest return; NaN where that is not known."""
        if self.random is None or not self.highest > self.random.mean:
            return math.nan
        return (mean - self.random.mean) / (self.highest - self.random.mean)

    def at_top(self, mean: float) -> bool:
        """Whether nothing is left to learn, as far as is known: solved, or nearly the highest return there is."""
        reached = self.share(mean) >= TOP or mean >= self.highest * (1 - ROUNDING)
        return reached or not self.choice or (self.solved is not None and mean >= self.solved)

    def fits(self, points: Sequence[Estimate]) -> bool:
        """Whether these can be returns of the environment: scaled or shaped rewards may lie outside of its bounds."""
        low, high = self.lowest - SLACK * abs(self.lowest), self.highest + SLACK * abs(self.highest)
        return not any(p.mean < low or p.mean > high for p in points)

    def opposite(self, points: Sequence[Estimate]) -> bool:
        """Whether all of them have the sign that no return of the environment has: another reward was trained on."""
        below = self.lowest >= 0 and all(p.mean < 0 for p in points)
        return below or (self.highest <= 0 and all(p.mean > 0 for p in points))


def yardstick_of(run: History, metric: str) -> Yardstick:
    """Of the metric that a run is judged by: a share ends at 1, a return where its environment says."""
    spec = run.meta.get("spec")
    spec = spec if isinstance(spec, dict) else {}
    if "success" in metric or "surviv" in metric:
        return Yardstick(random_success(spec) if "success" in metric else None, highest=1.0)
    random, spread = random_level(spec)
    lowest, highest = _bounds(spec)
    return Yardstick(random, spread, _solved(run, spec), highest, lowest, _has_choice(spec))


def random_success(spec: Document) -> Estimate | None:
    """The share of its episodes in which a random policy succeeds, where the environment is judged by that."""
    try:
        share, n = float(spec["random"]["success"]), int(spec["random"]["n"])
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
    return Estimate(0, share, share_error(share, n), n) if 0 <= share <= 1 and n > 0 else None


def random_level(spec: Document) -> tuple[Estimate | None, float]:
    """What a random policy earns, and the standard deviation of its episodes."""
    baseline = spec.get("random")
    try:
        mean, spread = float(baseline["return_mean"]), float(baseline.get("return_std") or 0)  # type: ignore[index,union-attr]
        n = max(int(baseline.get("n") or 1), 1)  # type: ignore[union-attr]
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
        return None, 0.0
    if not (math.isfinite(mean) and math.isfinite(spread)):
        return None, 0.0
    return Estimate(0, mean, spread / math.sqrt(n), n), spread


def _solved(run: History, spec: Document) -> float | None:
    env = spec.get("env") or flatten(run.config).get("env.name")
    return levels.solved(str(env)) if env else None


def _bounds(spec: Document) -> tuple[float, float]:
    """The lowest and the highest return: the worst and the best reward at each step up to the horizon, or at one.

    >>> _bounds({"reward_low": 1, "reward_high": 1, "horizon": 500})
    (1.0, 500.0)
    """
    low, high, horizon = (_number(spec.get(key)) for key in ("reward_low", "reward_high", "horizon"))
    highest = high * horizon if high >= 0 else high  # an episode may end after one step
    return (low * horizon if low < 0 else low), highest


def _number(value: Any) -> float:
    known = is_number(value)
    try:
        return float(value) if known else math.nan
    except OverflowError:
        return math.nan


def _has_choice(spec: Document) -> bool:
    action = spec.get("action")
    n = action.get("n") if isinstance(action, dict) and action.get("kind") == "discrete" else None
    counts = n if isinstance(n, list) else [n]
    return not all(type(x) is int and x <= 1 for x in counts)
