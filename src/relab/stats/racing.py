"""Which arms of a race need no more seeds? Those that are behind a leader by more than chance.

An arm is dropped where a leader's lead over it is larger than t standard errors of a difference. t is that of 7 % on
one side, shared by all other arms and all looks (which depend on each other, so that less than 7 % is spent). The
spread is pooled over all arms, so that five seeds know it well; an arm that varies clearly more than the others is
judged by its own spread as well (Welch), at a fifth of the error, because five seeds know that badly. An arm that
failed more often drops none that failed less: what a failed run is worth is not known. So the best arm is hardly ever
dropped, whoever leads and however often one looks (docs/sweep.md has the numbers).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from relab.stats.student import f_quantile, t_quantile, t_quantiles

ALPHA = 0.07
ODD, CAUTION = 0.9, 0.2  # the quantile beyond which an arm varies more than the others; the share of ALPHA it then gets
STILL = 0.01  # of the largest number: the spread where no arm varies at all


class Lag(NamedTuple):
    """Each arm minus its leader (+ is better): estimate, half-width, and whether it is behind; per race and arm."""

    leader: np.ndarray  # the best of the arms that failed no more often than this one
    delta: np.ndarray
    half: np.ndarray
    behind: np.ndarray


class _Arms(NamedTuple):
    """What is known of each arm: numbers it has, their mean, squares around it, and whether they are enough."""

    n: np.ndarray
    mean: np.ndarray
    squares: np.ndarray
    enough: np.ndarray


def lag(
    x: np.ndarray, arms: int, looks: int, least: int = 5, alpha: float = ALPHA, failed: np.ndarray | None = None
) -> Lag:
    """x is [races, arms still running, seeds], larger is better, NaN where there is no number or no such arm any more.

    `arms` and `looks` are all there were and will be; `failed` counts the runs of each arm that failed, [races, arms].
    An arm with fewer than `least` numbers neither leads nor goes.
    """
    known = _known(x, least)
    leader = _leaders(known, np.zeros(x.shape[:2]) if failed is None else failed)
    delta = known.mean - _of(known.mean, leader)
    half = _half(known, leader, alpha / max(arms - 1, 1) / looks, _floor(x))
    return Lag(leader, delta, half, known.enough & _of(known.enough, leader) & (delta + half < 0))


def _known(x: np.ndarray, least: int) -> _Arms:
    n = np.isfinite(x).sum(-1)
    mean = np.where(np.isfinite(x), x, 0.0).sum(-1) / np.maximum(n, 1)
    squares = np.where(np.isfinite(x), (x - mean[..., None]) ** 2, 0.0).sum(-1)
    return _Arms(n, mean, np.where(n >= least, squares, 0.0), n >= least)


def _leaders(known: _Arms, failed: np.ndarray) -> np.ndarray:
    """For each arm the best of those that failed no more often."""
    may = failed[:, None, :] <= failed[:, :, None]
    return np.asarray(np.where(may & known.enough[:, None, :], known.mean[:, None, :], -np.inf).argmax(-1))


def _half(known: _Arms, leader: np.ndarray, alpha: float, floor: np.ndarray) -> np.ndarray:
    """t standard errors of the pooled spread; of their own if wider, where one of both varies more than the others."""
    counted, freedom = np.maximum(known.n, 1), np.where(known.enough, known.n - 1, 0)
    df = np.maximum(freedom.sum(-1), 1)
    pooled = known.squares.sum(-1) / df
    pooled = np.where(pooled > 0, pooled, floor)
    t = np.array([t_quantile(1 - alpha, int(each)) for each in df])
    half = t[:, None] * np.sqrt(pooled[:, None] * (1 / counted + 1 / _of(counted, leader)))
    own = known.squares / np.maximum(freedom, 1) / counted
    error, parts = own + _of(own, leader), own**2 / np.maximum(freedom, 1)
    welch = np.maximum(error**2 / np.maximum(parts + _of(parts, leader), 1e-300), 4.0)
    odd = _odd(known.squares, freedom)
    wide = t_quantiles(1 - CAUTION * alpha, welch) * np.sqrt(error)
    return np.where(odd | _of(odd, leader), np.maximum(half, wide), half)


def _odd(squares: np.ndarray, freedom: np.ndarray) -> np.ndarray:
    """Whether an arm varies more than the others together do, beyond what chance gives one arm in ten."""
    rest = squares.sum(-1, keepdims=True) - squares
    mine, others = np.maximum(freedom, 1), np.maximum(freedom.sum(-1, keepdims=True) - freedom, 1)
    most = [f_quantile(ODD, int(a), int(b)) for a, b in zip(mine.ravel(), others.ravel(), strict=True)]
    return squares / mine > np.reshape(most, mine.shape) * rest / others


def _floor(x: np.ndarray) -> np.ndarray:
    """The variance that arms are taken to have where none of them varies: few seeds that agree do not show there is
    none."""
    return (STILL * np.where(np.isfinite(x), np.abs(x), 0.0).max((-1, -2))) ** 2


def _of(x: np.ndarray, leader: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, leader, -1)


# ---- What a race saves


class Saving(NamedTuple):
    """Simulated races: the share of runs saved, and how often the best arm was dropped."""

    case: str
    arms: int
    saved: float
    lost: float


class Race(NamedTuple):
    """Means and spreads of the arms, the first being the best."""

    means: Callable[[int], np.ndarray]
    wide: int | None = None  # the arm that varies three times as much as the others

    def draw(self, rng: np.random.Generator, races: int, arms: int, seeds: int) -> np.ndarray:
        sd = np.where(np.arange(arms) == self.wide, 3.0, 1.0)
        return rng.normal(size=(races, arms, seeds)) * sd[:, None] + self.means(arms)[:, None]


def _ahead(lead: float) -> Callable[[int], np.ndarray]:
    return lambda k: -lead * (np.arange(k) > 0)


CASES = {
    "each 1 sd behind the one before": Race(lambda k: -np.arange(float(k))),
    "one best, all others 1 sd behind": Race(_ahead(1.0)),
    "two close (0.2 sd), others 1 sd behind": Race(lambda k: -np.array([0.0, 0.2, *[1.0] * (k - 2)])),
    "best is 3 times as wide, 0.5 sd ahead": Race(_ahead(0.5), wide=0),
    "another is 3 times as wide, all 0.5 sd behind": Race(_ahead(0.5), wide=1),
    "all alike": Race(lambda k: np.zeros(k)),
}


def savings(reps: int = 4000, seed: int = 0, sizes: tuple[int, ...] = (5, 8, 12, 15)) -> list[Saving]:
    """Normal arms, 15 seeds, looks at 5, 8 and 12."""
    rows = []
    for i, (case, race) in enumerate(CASES.items()):
        for k in (4, 8, 12):
            x = race.draw(np.random.default_rng([seed, i, k]), reps, k, sizes[-1])
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
