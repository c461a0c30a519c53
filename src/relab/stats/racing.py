"""Which arms of a race need no more seeds? Those that are behind the leader by more than chance.

An arm is dropped where the leader's lead over it is larger than t standard errors of a difference. The spread is pooled
over all arms, so that five seeds know it well, and never taken as less than that of the two arms themselves. t is that
of 5 % on one side, shared by all other arms and all looks: so the best arm is hardly ever dropped, whoever leads and
however often one looks (docs/sweep.md has the numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from relab.stats.student import t_quantile

ALPHA = 0.05
STILL = 0.01  # of the largest number: the spread where no arm varies at all


class Lag(NamedTuple):
    """Each arm minus the leader (+ is better): estimate, half-width, and whether it is behind; per race and arm."""

    leader: np.ndarray
    delta: np.ndarray
    half: np.ndarray
    behind: np.ndarray


def lag(x: np.ndarray, arms: int, looks: int, least: int = 5, alpha: float = ALPHA) -> Lag:
    """x is [races, arms still running, seeds], larger is better, NaN where there is no number or no such arm any more.

    `arms` and `looks` are all there were and will be. An arm with fewer than `least` numbers neither leads nor goes.
    """
    n = np.isfinite(x).sum(-1)
    enough = n >= least
    counted = np.maximum(n, 1)
    mean = np.where(np.isfinite(x), x, 0.0).sum(-1) / counted
    squares = np.where(np.isfinite(x), (x - mean[..., None]) ** 2, 0.0).sum(-1)
    df = np.maximum(np.where(enough, n - 1, 0).sum(-1), 1)
    pooled = np.where(enough, squares, 0.0).sum(-1) / df
    leader = np.where(enough, mean, -np.inf).argmax(-1)
    delta = mean - _of(mean, leader)
    own = squares / np.maximum(n - 1, 1) / counted
    error = np.maximum(pooled[:, None] * (1 / counted + 1 / _of(counted, leader)), own + _of(own, leader))
    error = np.where(pooled[:, None] > 0, error, _floor(x)[:, None] * (1 / counted + 1 / _of(counted, leader)))
    t = np.array([t_quantile(1 - alpha / max(arms - 1, 1) / looks, int(each)) for each in df])
    half = t[:, None] * np.sqrt(error)
    behind = enough & _of(enough, leader) & (delta + half < 0)
    return Lag(leader, delta, half, behind)


def _floor(x: np.ndarray) -> np.ndarray:
    """The variance that arms are taken to have where none of them varies: few seeds that agree do not show there is
    none."""
    return (STILL * np.where(np.isfinite(x), np.abs(x), 0.0).max((-1, -2))) ** 2


def _of(x: np.ndarray, leader: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, leader[:, None], -1)


# ---- What a race saves


class Saving(NamedTuple):
    """Simulated races: the share of runs saved, and how often the best arm was dropped."""

    case: str
    arms: int
    saved: float
    lost: float


CASES: dict[str, Callable[[int], np.ndarray]] = {
    "each 1 sd behind the one before": lambda k: -np.arange(float(k)),
    "one best, all others 1 sd behind": lambda k: -1.0 * (np.arange(k) > 0),
    "two close (0.2 sd), others 1 sd behind": lambda k: -np.array([0.0, 0.2, *[1.0] * (k - 2)]),
    "all alike": lambda k: np.zeros(k),
}


def savings(reps: int = 4000, seed: int = 0, sizes: tuple[int, ...] = (5, 8, 12, 15)) -> list[Saving]:
    """Normal arms of one spread, 15 seeds, looks at 5, 8 and 12."""
    rows = []
    for i, (case, means) in enumerate(CASES.items()):
        for k in (4, 8, 12):
            rng = np.random.default_rng([seed, i, k])
            x = rng.normal(size=(reps, k, sizes[-1])) + means(k)[:, None]
            rows.append(Saving(case, k, *raced(x, sizes)))
    return rows


def raced(x: np.ndarray, sizes: tuple[int, ...]) -> tuple[float, float]:
    """(share of runs saved, share of races in which arm 0 was dropped) of [races, arms, seeds]."""
    running, runs, before = np.ones(x.shape[:2], bool), 0, 0
    for size in sizes:
        runs, before = runs + int(running.sum()) * (size - before), size
        if size < sizes[-1]:
            seen = np.where(running[..., None], x[..., :size], np.nan)
            running &= ~lag(seen, x.shape[1], len(sizes) - 1).behind
    return 1 - runs / x.size, float((~running[:, 0]).mean())
