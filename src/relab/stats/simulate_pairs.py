"""How often are pairs told apart, and do their intervals hold? The answer beside tests that might stand in its place.

A seed gives both variants the same part of their outcome, drawn from the same shape as each one's own part: half of the
variance is shared. B is better by `EFFECT` standard deviations of a variant's own part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from relab.stats import means, pairs
from relab.stats.simulate import MEANS, SEEDS, Cell, share_inside

KIND, ALPHA, EFFECT = "pairs", 0.025, 1.5
SPREAD = {"normal": 1.0, "skewed": 1.31, "heavy tails": 1.73, "half fail": 0.5, "ceiling": 0.58}


def table(reps: int, seed: int, seeds: Sequence[int] = SEEDS) -> list[Cell]:
    """For each shape and n, at the first of open looks."""
    return [
        cell
        for i, name in enumerate(SPREAD)
        for n in seeds
        for cell in _cells(name, n, reps, np.random.default_rng([seed, 2, i, n]))
    ]


def _cells(name: str, n: int, reps: int, rng: np.random.Generator) -> list[Cell]:
    a, b, shared = (MEANS[name].draw(rng, (reps, n)) for _ in range(3))
    a, b, better = a + shared, b + shared, EFFECT * SPREAD[name]
    power, error = _power(a, b + better), _power(a, b)
    limit = ALPHA + 3 * math.sqrt(ALPHA * (1 - ALPHA) / reps)
    best = max(power[way] for way in power if way != "answer" and error[way] <= limit)
    rows = {
        "A/A error": error["answer"],
        "coverage": share_inside(pairs.ends(a, b + better, 1 - ALPHA), better),
        **power,
        "share of the best": min(power["answer"] / max(best, 1e-9), 1.0),
    }
    effect = f"+ {EFFECT:g} sd"
    return [Cell(KIND, way, name, effect, n, value, reps, error.get(way, 0.0) > limit) for way, value in rows.items()]


def _power(a: np.ndarray, b: np.ndarray) -> dict[str, float]:
    """How often each test tells a difference, either way."""
    plain = means.plain(means.one_sample(b - a), 1 - ALPHA)
    ways = {
        "answer": _leaves_out_0(pairs.ends(a, b, 1 - ALPHA)),
        "before": _leaves_out_0(means.widened(means.one_sample(b - a), 1 - ALPHA)),
        "Student": _leaves_out_0(plain),
        "flipped signs": pairs.flipped(b - a) <= ALPHA,
    }
    return {way: float(called.mean()) for way, called in ways.items()}


def _leaves_out_0(ends: means.Ends) -> np.ndarray:
    return np.asarray((ends[0] > 0) | (ends[1] < 0))
