"""May a change be kept? A few seeds first, fresh seeds then, and an error that is shared by all that is ever proposed.

Whoever tries twenty changes that do nothing and keeps what looks better keeps one by luck; the lucky number then is
what the next ones are held against. So:
- `share`: the error of one proposal. A block of them shares four fifths of the whole, the next block four fifths of
  what is left, and so on: the chance of any keep by luck stays below the whole, however long it goes on.
- `first_look`: few seeds say whether more are worth their time. Nothing is kept by them, so that nothing is spent.
- `decide`: fresh seeds of the change against runs of the present best that had no part in choosing it. It is kept if
  the interval of the project's answers (compare_means) leaves out 0 at that error, if the difference is beyond the
  noise floor (what two groups of this size differ by, the spread pooled over all runs, kept or not), and if it
  matters. Half of its error goes to a first decision; where that cannot tell and the change is still ahead, as many
  fresh seeds again are paid for, and the other half decides by all of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from relab.stats import compare_means
from relab.stats.student import t_quantile

FIRST = 0.8  # of the error that is left goes to the next block of proposals
WORTH = 0.5  # standard errors by which the first seeds must be ahead to be worth more
AHEAD = 2.0  # standard errors by which fresh seeds that cannot tell must be ahead to be worth as many again
FLAT = 1e-9  # of the largest number: a spread below this is none
ANY = (-math.inf, math.inf)


def share(k: int, block: int, error: float = 0.05) -> float:
    """The error of proposal k (from 1): the shares add up to less than `error`, whatever k goes to.

    >>> round(share(1, 20), 6), round(share(20, 20), 6), round(share(21, 20), 6)
    (0.002, 0.002, 0.0004)
    """
    if k < 1 or block < 1:
        raise ValueError(f"proposals and blocks count from 1, but got k = {k} and block = {block}")
    return error * FIRST * (1 - FIRST) ** ((k - 1) // block) / block


def by_chance(tests: Sequence[int], block: int, error: float = 0.05) -> float:
    """How many keeps are expected at most among these proposals if none of them does anything."""
    return math.fsum(share(k, block, error) for k in tests)


LOOKS = 2  # decisions about a proposal at most: each may spend half of its share


class Spread(NamedTuple):
    """The standard deviation between seeds, pooled over all groups of runs, and on how many it rests."""

    sd: float
    freedom: int


def pooled(groups: Sequence[np.ndarray]) -> Spread:
    """Within groups, of every run there is: kept ones alone would vary too little.

    >>> pooled([np.array([1.0, 3.0]), np.array([5.0, 7.0])])
    Spread(sd=1.4142135623730951, freedom=2)
    """
    good = [np.asarray(x, np.float64)[np.isfinite(x)] for x in groups]
    freedom = sum(len(x) - 1 for x in good if len(x) > 1)
    squares = sum(float(((x - x.mean()) ** 2).sum()) for x in good if len(x) > 1)
    return Spread(math.sqrt(squares / freedom) if freedom else math.nan, freedom)


def standard_error(base: np.ndarray, mine: np.ndarray) -> float:
    """Of the difference of two means, each side by its own spread: a change may vary far more than the base."""
    return math.sqrt(sum(float(np.var(x, ddof=1)) / len(x) for x in (base, mine) if len(x) > 1))


def floor(spread: Spread, n: int, m: int, alpha: float) -> float:
    """What two groups of n and m alike runs differ by with a chance of `alpha`, on one side."""
    if not spread.freedom:
        return math.inf
    return t_quantile(1 - alpha, spread.freedom) * spread.sd * math.sqrt(1 / n + 1 / m)


class FirstLook(NamedTuple):
    """Whether more seeds are worth their time."""

    go_on: bool
    delta: float
    error: float  # standard error of delta, by the pooled spread


def first_look(base: np.ndarray, first: np.ndarray, spread: Spread, smallest: float = 0.0) -> FirstLook:
    """Larger is better. Without a known spread every change that is ahead goes on."""
    delta = float(np.mean(first) - np.mean(base))
    error = spread.sd * math.sqrt(1 / len(base) + 1 / len(first)) if spread.freedom else 0.0
    return FirstLook(delta > 0 and delta >= max(WORTH * error, smallest / 2), delta, error)


class Decision(NamedTuple):
    """Fresh seeds of a change against the present best; + is better."""

    keep: bool
    delta: float
    low: float
    high: float
    floor: float
    alpha: float  # one-sided
    reason: str  # a key of REASONS


def ahead(decision: Decision, error: float, smallest: float) -> bool:
    """Whether more seeds may still tell: it is ahead by two standard errors or more, and by what matters."""
    return not decision.keep and decision.delta >= max(AHEAD * error, smallest) and decision.delta > 0


REASONS = {
    "kept": "its interval lies above 0, it is beyond the noise floor, and it matters",
    "noise": "its interval holds 0 or less: it may be no better",
    "floor": "it is not beyond what runs that are alike differ by",
    "small": "it is better by less than the smallest effect that matters",
    "few": "fewer than two seeds a side: nothing can be told",
}


def decide(
    base: np.ndarray, fresh: np.ndarray, alpha: float, spread: Spread, smallest: float = 0.0,
    bounds: tuple[float, float] = ANY,
) -> Decision:  # fmt: skip
    """Larger is better; every number is finite (a failed run counts as the worst, which the caller knows)."""
    delta = float(np.mean(fresh) - np.mean(base)) if len(base) and len(fresh) else math.nan
    if min(len(base), len(fresh)) < 2:
        return Decision(False, delta, math.nan, math.nan, math.inf, alpha, "few")
    low, high = _interval(base, fresh, 1 - 2 * alpha, bounds)
    level = floor(spread, len(base), len(fresh), alpha)
    reason = _reason(delta, low, level, smallest)
    return Decision(reason == "kept", delta, low, high, level, alpha, reason)


def _interval(base: np.ndarray, fresh: np.ndarray, level: float, bounds: tuple[float, float]) -> tuple[float, float]:
    every = np.concatenate([base, fresh])
    if np.ptp(every) <= FLAT * max(1.0, float(np.abs(every).max())):
        return 0.0, 0.0  # all runs came to one number
    low, high = compare_means.ends(np.asarray(base)[None], np.asarray(fresh)[None], level, bounds=bounds)
    return float(low[0]), float(high[0])


def _reason(delta: float, low: float, level: float, smallest: float) -> str:
    if not low > 0:
        return "noise"
    if delta <= level:
        return "floor"
    return "small" if delta < smallest else "kept"
