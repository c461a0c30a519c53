"""Do the intervals hold the truth as often as they say? Arms drawn from known shapes, many times.

The numbers in docs/statistics.md come from here, through `relab.commands.coverage`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from relab.stats import means, planning, rates

SEEDS = (5, 10, 20)  # seeds a variant
LOOKS = (5, 10, 20, 40)  # seeds a variant at each look
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
    "ceiling": Shape(lambda rng, size: np.minimum(rng.normal(1.0, 1.0, size), 1.0), 1 - 1 / math.sqrt(2 * math.pi)),
    "solved": Shape(lambda rng, size: 1 + 0.02 * rng.normal(size=size), 1.0),
}
TIMES = {"5 % censored": _late(1 / 3), "30 % censored": _late(0.83), "70 % censored": _late(2.8)}
RATES = {
    "every seed 90 %": Shape(lambda rng, size: np.full(size, 0.9), 0.9),
    "every seed 98 %": Shape(lambda rng, size: np.full(size, 0.98), 0.98),
    "seeds around 80 %": Shape(lambda rng, size: rng.beta(8, 2, size), 0.8),
    "seeds all over": Shape(lambda rng, size: rng.beta(0.5, 0.5, size), 0.5),
    "a fifth of seeds fails": Shape(lambda rng, size: (rng.random(size) < 0.8) * 1.0, 0.8),
}
MEAN_PAIRS = [(name, name) for name in MEANS if name != "solved"] + [
    ("normal", "half fail"),
    ("skewed", "normal"),
    ("solved", "half fail"),
    ("solved", "skewed"),
    ("solved", "a fifth fails"),
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
UNSEEN = {("solved", "a fifth fails"), ("solved", "skewed")}


def table(reps: int = 20_000, seed: int = 0, seeds: Sequence[int] = SEEDS) -> list[Cell]:
    """All cells; each row of arms has a random stream of its own, so adding one changes no other."""
    return [
        *mean_cells(reps, seed, seeds),
        *rate_cells(reps, seed, seeds),
        *look_cells(reps, seed),
        *family_cells(reps, seed, seeds),
        *power_cells(reps, seed, seeds),
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
            estimates = means.two_samples(shapes[a].draw(rng, (reps, n)), shapes[b].draw(rng, (reps, n)))
            truth = shapes[b].mean - shapes[a].mean
            for method, ends in (("widened Welch", means.widened), ("plain Welch", means.plain)):
                cells.append(Cell(kind, method, a, b, n, share_inside(ends(estimates, LEVEL), truth), reps))
    cells += unequal_cells(reps, seed, seeds)
    return [*cells, *paired_cells(reps, seed, seeds), *improvement_cells(reps, seed, seeds)]


def unequal_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """A has n seeds, B four times as many: seeds were added on one side, or a baseline is at hand."""
    cells = []
    pairs = [(name, name) for name in ("normal", "skewed", "a fifth fails", "ceiling")]
    for a, b, n, rng in _streams(seed, 7, [*pairs, ("skewed", "normal")], seeds):
        arms = MEANS[a].draw(rng, (reps, n)), MEANS[b].draw(rng, (reps, 4 * n))
        truth = MEANS[b].mean - MEANS[a].mean
        ways = {"widened Welch": means.widened(means.careful(*arms), LEVEL)}
        ways["plain Welch"] = means.plain(means.two_samples(*arms), LEVEL)
        cells += [Cell("mean, n and 4n", way, a, b, n, share_inside(ends, truth), reps) for way, ends in ways.items()]
    return cells


def paired_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """Pairs that share half of their variance."""
    cells = []
    for name, _, n, rng in _streams(seed, 2, [("normal", "normal"), ("skewed", "skewed")], seeds):
        a, b, both = (MEANS[name].draw(rng, (reps, n)) for _ in range(3))
        inside = share_inside(means.widened(means.one_sample(b + both - (a + both)), LEVEL), 0.0)
        cells.append(Cell("paired", "widened t of pairs", name, name, n, inside, reps))
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
    """Success rates, EPISODES a seed."""
    cells = []
    for a, b, n, rng in _streams(seed, 4, RATE_PAIRS, seeds):
        hits = [rng.binomial(EPISODES, RATES[x].draw(rng, (reps, n))).astype(np.float64) for x in (a, b)]
        trials = np.full((reps, n), float(EPISODES))
        ends = rates.rate_difference_ends(hits[0], trials, hits[1], trials, LEVEL)
        inside = share_inside(ends, RATES[b].mean - RATES[a].mean)
        cells.append(Cell("success rate", "clustered Newcombe", a, b, n, inside, reps))
    return cells


def look_cells(reps: int, seed: int) -> list[Cell]:
    """Identical arms, looked at after 5, 10, 20 and 40 seeds: does any look call a winner? n counts the looks."""
    cells = []
    for i, name in enumerate(("normal", "skewed", "half fail")):
        rng = np.random.default_rng([seed, 5, i])
        a, b = (MEANS[name].draw(rng, (reps, LOOKS[-1])) for _ in range(2))
        for method, declared in (("spent", None), ("5 % at each look", 1)):
            called = np.zeros(reps, bool)
            for look, n in enumerate(LOOKS, 1):
                alpha = planning.look_alpha(look if declared is None else 1, declared)
                low, high = means.widened(means.two_samples(a[:, :n], b[:, :n]), 1 - alpha)
                called |= (low > 0) | (high < 0)
                cells.append(Cell("looks", method, name, name, look, float(called.mean()), reps))
    return cells


def family_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """A control and 2 or 4 variants that are all alike: does any comparison with the control call a winner?"""
    cells = []
    for i, name in enumerate(("normal", "skewed", "half fail")):
        for k in FAMILIES:
            for n in seeds:
                rng = np.random.default_rng([seed, 8, i, k, n])
                control = MEANS[name].draw(rng, (reps, n))
                comparisons = [means.two_samples(control, MEANS[name].draw(rng, (reps, n))) for _ in range(k)]
                for method, share in (("5 % shared", k), ("5 % for each", 1)):
                    ends = [means.widened(each, 1 - (1 - LEVEL) / share) for each in comparisons]
                    called = np.any([(low > 0) | (high < 0) for low, high in ends], axis=0)
                    cells.append(Cell("family", method, name, f"{k} alike", n, float(called.mean()), reps))
    return cells


def power_cells(reps: int, seed: int, seeds: Sequence[int]) -> list[Cell]:
    """Normal arms, B better by 1, 1.5, 2 and 3 standard deviations: how often does the interval lie above 0?"""
    cells = []
    for i, gap in enumerate((1.0, 1.5, 2.0, 3.0)):
        for n in seeds:
            rng = np.random.default_rng([seed, 6, i, n])
            estimates = means.two_samples(rng.normal(size=(reps, n)), rng.normal(gap, 1.0, (reps, n)))
            ways = {"widened, 95 %": (means.widened, 0.95), "widened, first look": (means.widened, 0.975)}
            for method, (ends, level) in {**ways, "plain Welch, 95 %": (means.plain, 0.95)}.items():
                above = float(np.mean(ends(estimates, level)[0] > 0))
                cells.append(Cell("power", method, "normal", f"normal + {gap:g} sd", n, above, reps))
    return cells
