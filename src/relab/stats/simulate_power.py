"""How often is a difference told that is there? The answer beside the best test that would be valid in its place.

A case is a shape of outcomes and how B differs. A test is valid for it if it calls a winner in at most alpha of the
cases where both arms are like A, like B, or half-way (for unequal spread: where only the spread differs). Candidates:
Welch's t, the permutation test of Welch's t, and, where outcomes are solve or fail, Barnard's exact test of rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from relab.stats import compare_means, humps, means, permutation
from relab.stats.simulate import DEALS, SEEDS, Cell, share_inside

KINDS = {"one look": 0.05, "first of open looks": 0.025}
OURS = ("answer", "before")
Rows = np.ndarray
Draw = Callable[[np.random.Generator, tuple[int, int], float], Rows]  # the last number: 0 is A, 1 is B
Test = Callable[[Rows, Rows, float], tuple[Rows, Rows]]  # (B is called better, B is called worse)


class Case(NamedTuple):
    """A shape of outcomes, how B differs, and where the two do not."""

    name: str
    b: str
    truth: float  # mean of B minus mean of A
    draw: Draw
    nulls: tuple[tuple[float, float], ...] = ((0.0, 0.0), (1.0, 1.0), (0.5, 0.5))
    rates: bool = False
    bounds: tuple[float, float] = humps.ANY  # what is known of them


def _spread(rng: np.random.Generator, size: tuple[int, int], at: float) -> Rows:
    """0: N(0, 1); 1: N(3, 3); -1: N(0, 3), which is not better than A."""
    return rng.normal(3.0 * max(at, 0.0), 1.0 + 2.0 * abs(at), size)


def _outliers(rng: np.random.Generator, size: tuple[int, int], at: float) -> Rows:
    """15 % of the runs vary five times as much as the others."""
    return 2 * at + rng.normal(size=size) * np.where(rng.random(size) < 0.15, 5.0, 1.0)


def _solved(low: float, high: float) -> Draw:
    """A run that solves it ends just below 1, one that fails just above 0."""

    def draw(rng: np.random.Generator, size: tuple[int, int], at: float) -> Rows:
        solved, off = rng.random(size) < low + at * (high - low), np.abs(0.05 * rng.normal(size=size))
        return np.where(solved, 1 - off, off)

    return draw


OFF = 0.05 * math.sqrt(2 / math.pi)  # how far a run ends from 1 or 0 on average


def _cut(mean: float) -> float:
    """The mean of N(mean, 1) cut at 1."""
    c, normal = 1 - mean, NormalDist()
    return mean * normal.cdf(c) - normal.pdf(c) + 1 - normal.cdf(c)


CASES = (
    Case("normal", "+ 1 sd", 1.0, lambda rng, size, at: rng.normal(at, 1.0, size)),
    Case("normal", "+ 2 sd", 2.0, lambda rng, size, at: rng.normal(2 * at, 1.0, size)),
    Case("solve / fail", ".2 to .9", 0.7 * (1 - 2 * OFF), _solved(0.2, 0.9), rates=True, bounds=(0.0, 1.0)),
    Case("solve / fail", ".5 to .95", 0.45 * (1 - 2 * OFF), _solved(0.5, 0.95), rates=True, bounds=(0.0, 1.0)),
    Case("solve / fail, bounds unknown", ".2 to .9", 0.7 * (1 - 2 * OFF), _solved(0.2, 0.9), rates=True),
    Case("ceiling", "half to nearly all at it", _cut(3.0) - _cut(1.0),
         lambda rng, size, at: np.minimum(rng.normal(1 + 2 * at, 1.0, size), 1.0), bounds=(-math.inf, 1.0)),
    Case("heavy tails", "+ 2", 2.0, lambda rng, size, at: rng.standard_t(3, size) + 2 * at),
    Case("unequal spread", "+ 3, 3 times the spread", 3.0, _spread, nulls=((0.0, -1.0),)),
    Case("outliers", "+ 2", 2.0, _outliers, nulls=((0.0, 0.0),)),
)  # fmt: skip


def table(reps: int, seed: int, seeds: Sequence[int] = SEEDS) -> list[Cell]:
    """For each case and n: the answer's power and A/A error, the former method's, and the best valid test's."""
    cells = []
    for i, case in enumerate(CASES):
        for n in seeds:
            for k, (kind, alpha) in enumerate(KINDS.items()):
                cells += _cells(case, n, kind, alpha, reps, np.random.default_rng([seed, 9, i, n, k]))
    return cells


def _cells(case: Case, n: int, kind: str, alpha: float, reps: int, rng: np.random.Generator) -> list[Cell]:
    ways = tests(case.rates, case.bounds)
    arms = case.draw(rng, (reps, n), 0.0), case.draw(rng, (reps, n), 1.0)
    power = {name: float(test(*arms, alpha)[0].mean()) for name, test in ways.items()}
    worst = dict.fromkeys(ways, 0.0)
    for low, high in case.nulls:
        alike = case.draw(rng, (reps, n), low), case.draw(rng, (reps, n), high)
        for name, test in ways.items():
            worst[name] = max(worst[name], float(np.logical_or(*test(*alike, alpha)).mean()))
    limit = alpha + 3 * math.sqrt(alpha * (1 - alpha) / reps)
    others = [name for name in ways if name not in OURS]
    least = min(worst[name] for name in others)  # where none is valid, the one that errs least
    best = max(power[name] for name in others if worst[name] <= max(limit, least))
    varied = np.ptp(np.concatenate(arms, -1), -1) > 0  # there is no interval where all runs came to one number
    held = share_inside(compare_means.ends(arms[0][varied], arms[1][varied], 1 - alpha, DEALS, case.bounds), case.truth)
    rows = {
        "A/A error": worst["answer"],
        "coverage": held,
        **power,
        "share of the best": min(power["answer"] / best, 1.0),
    }
    return [
        Cell(kind, name, case.name, case.b, n, value, reps, worst.get(name, 0.0) > limit)
        for name, value in rows.items()
    ]


def tests(rates: bool, bounds: tuple[float, float]) -> dict[str, Test]:
    ways: dict[str, Test] = {"answer": _answer(bounds), "before": _before, "Welch": _welch, "permutation": _deals}
    return {**ways, **({"Barnard": _rates} if rates else {})}


def _answer(bounds: tuple[float, float]) -> Test:
    def test(a: Rows, b: Rows, alpha: float) -> tuple[Rows, Rows]:
        low, high = compare_means.ends(a, b, 1 - alpha, DEALS, bounds)
        return low > 0, high < 0

    return test


def _before(a: Rows, b: Rows, alpha: float) -> tuple[Rows, Rows]:
    """The interval that relab had up to 0.1: Welch's widened by Hall's correction."""
    low, high = means.widened(means.two_samples(a, b), 1 - alpha)
    return low > 0, high < 0


def _welch(a: Rows, b: Rows, alpha: float) -> tuple[Rows, Rows]:
    low, high = means.plain(means.two_samples(a, b), 1 - alpha)
    return low > 0, high < 0


def _deals(a: Rows, b: Rows, alpha: float) -> tuple[Rows, Rows]:
    lowest, highest = permutation.critical(a, b, alpha, DEALS)
    seen = _seen(a, b)
    return seen > highest, seen < lowest


def _seen(a: Rows, b: Rows) -> Rows:
    estimate = means.two_samples(a, b)
    constant = estimate.var < 1e-24
    flat = np.where(np.abs(estimate.mid) > 1e-12, np.sign(estimate.mid) * permutation.FAR, 0.0)
    return np.where(constant, flat, estimate.mid / np.sqrt(np.where(constant, 1.0, estimate.var)))


def _rates(a: Rows, b: Rows, alpha: float) -> tuple[Rows, Rows]:
    p = _table(a.shape[-1])[(a > 0.5).sum(-1), (b > 0.5).sum(-1)] <= alpha
    more = (b > 0.5).sum(-1) > (a > 0.5).sum(-1)
    return p & more, p & ~more


@lru_cache(maxsize=16)
def _table(n: int) -> Rows:
    return humps.barnard(n, n)
