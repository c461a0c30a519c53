"""Do the intervals hold the truth as often as they say? Arms drawn from known shapes, many times.

The numbers in docs/statistics.md come from here, through `relab.commands.coverage`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from relab.stats import compare_means, looks, means, rates

SEEDS = (5, 8, 10, 15)  # seeds a variant
LOOKS = (5, 10, 20, 40)  # seeds a variant at each look that nobody declared
SIZES = (5, 8, 15)  # declared ones
DEALS = 4000  # of the permutation test; an answer takes 20,000, which tells no more (500 tell up to .04 less)
FAMILIES = (2, 4)  # variants that are compared with one control
EPISODES = 20  # a seed, for success rates
LEVEL, LEAST_COVER = 0.95, 0.93
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


class Shape(NamedTuple):
    """How one arm's outcomes are distributed over seeds, and its true mean."""

    draw: Draw
    mean: float


class Cell(NamedTuple):
    """One simulated number: a coverage, or the chance of calling a winner between arms that do not differ."""

    kind: str
    method: str
    a: str
    b: str
    n: int
    value: float
    reps: int
    mark: bool = False  # of a test that errs too often to be used

    @property
    def error(self) -> float:
        """Standard error of a simulated share, never taken as less than that of one miss."""
        p = min(max(self.value, 1 / self.reps), 1 - 1 / self.reps)
        return math.sqrt(p * (1 - p) / self.reps)


def _two_humps(share: float) -> Shape:
    def draw(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
        return (rng.random(size) < share) + 0.05 * rng.normal(size=size)

    return Shape(draw, share)


def _late(scale: float, horizon: float = 1.0) -> Shape:
    """Exponential times to a level, watched up to the horizon: exp(-horizon / scale) of the runs are censored."""
    return Shape(
        lambda rng, size: np.minimum(rng.exponential(scale, size), horizon), scale * (1 - math.exp(-horizon / scale))
    )


MEANS = {
    "normal": Shape(lambda rng, size: rng.normal(size=size), 0.0),
    "skewed": Shape(lambda rng, size: rng.lognormal(0.0, 0.8, size), math.exp(0.32)),
    "heavy tails": Shape(lambda rng, size: rng.standard_t(3, size), 0.0),
    "half fail": _two_humps(0.5),
    "a fifth fails": _two_humps(0.8),
    "wide": Shape(lambda rng, size: rng.normal(0.0, 3.0, size), 0.0),
    "ceiling": Shape(lambda rng, size: np.minimum(rng.normal(1.0, 1.0, size), 1.0), 1 - 1 / math.sqrt(2 * math.pi)),
    "solved": Shape(lambda rng, size: 1 + 0.02 * rng.normal(size=size), 1.0),
    "steady": Shape(lambda rng, size: math.exp(0.32) + 0.2 * rng.normal(size=size), math.exp(0.32)),  # as `skewed`
}
TIMES = {"5 % censored": _late(1 / 3), "30 % censored": _late(0.83), "70 % censored": _late(2.8)}
RATES = {
    "every seed 90 %": Shape(lambda rng, size: np.full(size, 0.9), 0.9),
    "every seed 98 %": Shape(lambda rng, size: np.full(size, 0.98), 0.98),
    "seeds around 80 %": Shape(lambda rng, size: rng.beta(8, 2, size), 0.8),
    "seeds all over": Shape(lambda rng, size: rng.beta(0.5, 0.5, size), 0.5),
    "a fifth of seeds fails": Shape(lambda rng, size: (rng.random(size) < 0.8) * 1.0, 0.8),
}
MEAN_PAIRS = [(name, name) for name in MEANS if name not in ("solved", "steady", "wide")] + [
    ("normal", "wide"),
    ("normal", "half fail"),
    ("skewed", "normal"),
    ("solved", "half fail"),
    ("solved", "skewed"),
    ("solved", "a fifth fails"),
    ("steady", "skewed"),
]
TIME_PAIRS = [
    *((name, name) for name in TIMES),
    ("5 % censored", "30 % censored"),
    ("5 % censored", "70 % censored"),
]
RATE_PAIRS = [(name, name) for name in RATES] + [
    ("every seed 98 %", "seeds around 80 %"),
    ("every seed 98 %", "seeds all over"),
    ("every seed 98 %", "a fifth of seeds fails"),
]
# Pairs whose tail five or ten seeds may not show at all: no interval made from the numbers alone can hold there.
UNSEEN = {("solved", "a fifth fails"), ("solved", "skewed"), ("steady", "skewed")}


def table(reps: int = 20_000, seed: int = 0, seeds: Sequence[int] = SEEDS) -> list[Cell]:
    """All cells; each row of arms has a random stream of its own, so adding one changes no other."""
    return [
        *mean_cells(reps, seed, seeds),
        *rate_cells(reps, seed, seeds),
        *look_cells(reps, seed),
        *family_cells(reps, seed, seeds),
    ]


def _streams(seed: int, part: int, pairs: list[tuple[str, str]], seeds: Sequence[int]) -> Iterator[tuple]:
    for i, (a, b) in enumerate(pairs):
        for n in seeds:
            yield a, b, n, np.random.default_rng([seed, part, i, n])


def share_inside(ends: means.Ends, truth: float) -> float:
    return float(np.mean((ends[0] <= truth + 1e-12) & (ends[1] >= truth - 1e-12)))


def mean_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """Differences of means, and of times up to the horizon; plain Welch beside what the answer uses."""
    cells = []
    for part, kind, shapes, pairs in ((0, "mean", MEANS, MEAN_PAIRS), (1, "time", TIMES, TIME_PAIRS)):
        for a, b, n, rng in _streams(seed, part, pairs, seeds):
            arms = shapes[a].draw(rng, (reps, n)), shapes[b].draw(rng, (reps, n))
            truth = shapes[b].mean - shapes[a].mean
            cells += [Cell(kind, way, a, b, n, share_inside(ends, truth), reps) for way, ends in both(*arms).items()]
    cells += [*ceiling_cells(reps, seed, seeds), *unequal_cells(reps, seed, seeds)]
    return [*cells, *improvement_cells(reps, seed, seeds)]


def both(a: np.ndarray, b: np.ndarray) -> dict[str, means.Ends]:
    """What the answer uses, and plain Welch beside it."""
    welch = means.plain(means.two_samples(a, b), LEVEL)
    return {"relab": compare_means.ends(a, b, LEVEL, DEALS), "plain Welch": welch}


def ceiling_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """Runs that solve it end within about 0.5 % of 1, which is known to be the highest value; the others about 0."""
    cells = []
    for a, b, n, rng in _streams(seed, 10, [("solved", "a fifth fails"), ("solved", "half fail")], seeds):
        rates_of = {"solved": 1.0, "a fifth fails": 0.8, "half fail": 0.5}
        arms = [_at_ceiling(rng, (reps, n), rates_of[name]) for name in (a, b)]
        shown = np.minimum(*(arm.mean(-1) for arm in arms)) < compare_means.full((0.0, 1.0))
        ends = compare_means.ends(arms[0][shown], arms[1][shown], LEVEL, DEALS, (0.0, 1.0))
        truth = (rates_of[b] - rates_of[a]) * (1 - 2 * 0.005 / math.sqrt(2 * math.pi))
        for way, value in (("relab", share_inside(ends, truth)), ("shown", float(shown.mean()))):
            cells.append(Cell("mean, ceiling known", way, a, b, n, value, reps))
    return cells


def _at_ceiling(rng: np.random.Generator, size: tuple[int, int], share: float) -> np.ndarray:
    return np.clip((rng.random(size) < share) + 0.005 * rng.normal(size=size), 0.0, 1.0)


def unequal_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """A has n seeds, B four times as many: seeds were added on one side, or a baseline is at hand."""
    cells = []
    pairs = [(name, name) for name in ("normal", "skewed", "a fifth fails", "ceiling")]
    for a, b, n, rng in _streams(seed, 7, [*pairs, ("skewed", "normal")], seeds):
        arms = MEANS[a].draw(rng, (reps, n)), MEANS[b].draw(rng, (reps, 4 * n))
        truth = MEANS[b].mean - MEANS[a].mean
        ways = both(*arms)
        cells += [Cell("mean, n and 4n", way, a, b, n, share_inside(ends, truth), reps) for way, ends in ways.items()]
    return cells


def improvement_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """P(B > A) of normal arms that lie 0, 1 and 2 standard deviations apart."""
    cells = []
    for i, gap in enumerate((0.0, 1.0, 2.0)):
        truth = NormalDist().cdf(gap / math.sqrt(2))
        for n in seeds:
            rng = np.random.default_rng([seed, 3, i, n])
            mid = means.improved(rng.normal(size=(reps, n)), rng.normal(gap, 1.0, (reps, n)))
            inside = share_inside(means.improvement_ends(mid, n, n, LEVEL), truth)
            cells.append(Cell("P(B > A)", "Newcombe score", "normal", f"normal + {gap:g} sd", n, inside, reps))
    return cells


def rate_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """Success rates, EPISODES a seed: the seeds' rates decide, Newcombe's clustered interval says how far."""
    cells = []
    for a, b, n, rng in _streams(seed, 4, RATE_PAIRS, seeds):
        hits = [rng.binomial(EPISODES, RATES[x].draw(rng, (reps, n))).astype(np.float64) for x in (a, b)]
        trials = np.full((reps, n), float(EPISODES))
        reach = rates.rate_difference_ends(hits[0], trials, hits[1], trials, LEVEL)
        shares = hits[0] / EPISODES, hits[1] / EPISODES
        test = compare_means.ends(*shares, LEVEL, DEALS, (0.0, 1.0))
        ends = compare_means.decided(reach, test, shares[1].mean(-1) - shares[0].mean(-1))
        inside = share_inside(ends, RATES[b].mean - RATES[a].mean)
        cells.append(Cell("success rate", "relab", a, b, n, inside, reps))
    return cells


def look_cells(reps: int, seed: int) -> list[Cell]:
    """Identical arms: does any look so far call a winner? n counts the looks."""
    cells = []
    each = tuple(range(SIZES[0], SIZES[-1] + 1))
    for i, name in enumerate(("normal", "skewed", "half fail", "ceiling", "heavy tails")):
        rng = np.random.default_rng([seed, 5, i])
        a, b = (MEANS[name].draw(rng, (reps, LOOKS[-1])) for _ in range(2))
        for method, sizes, levels in (
            ("5 % at each look", LOOKS, [0.05] * len(LOOKS)),
            ("halves", LOOKS, [looks.look_alpha(k + 1) for k in range(len(LOOKS))]),
            ("declared 5, 8, 15", SIZES, [looks.sized_alpha(SIZES[: k + 1], SIZES[-1]) for k in range(len(SIZES))]),
            ("declared one by one to 15", each, [looks.sized_alpha(each[: k + 1], each[-1]) for k in range(len(each))]),
        ):
            called = [winner(a, b, n, alpha) for n, alpha in zip(sizes, levels, strict=True)]
            shares = np.logical_or.accumulate(called).mean(1)
            cells += [Cell("looks", method, name, name, k + 1, float(share), reps) for k, share in enumerate(shares)]
    return cells


def winner(a: np.ndarray, b: np.ndarray, n: int, alpha: float) -> np.ndarray:
    """Whether the interval of the first n seeds leaves out 0."""
    low, high = compare_means.ends(a[:, :n], b[:, :n], 1 - alpha, DEALS)
    return (low > 0) | (high < 0)


def family_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """A control and 2 or 4 variants that are all alike: does any comparison with the control call a winner?"""
    cells = []
    for i, name in enumerate(("normal", "skewed", "half fail")):
        for k in FAMILIES:
            for n in seeds:
                rng = np.random.default_rng([seed, 8, i, k, n])
                control = MEANS[name].draw(rng, (reps, n))
                variants = [MEANS[name].draw(rng, (reps, n)) for _ in range(k)]
                for method, share in (("5 % shared", k), ("5 % for each", 1)):
                    called = np.any([winner(control, each, n, (1 - LEVEL) / share) for each in variants], axis=0)
                    cells.append(Cell("family", method, name, f"{k} alike", n, float(called.mean()), reps))
    return cells
