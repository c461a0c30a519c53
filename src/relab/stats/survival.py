"""How soon is a level reached, when some runs never reach it? Kaplan and Meier (1958), means up to a horizon.

A run that ends without reaching the level is censored: it would have taken longer than it was given. Its time is
not dropped (that flatters) nor taken as the budget without saying so.
"""

from __future__ import annotations

import math

import numpy as np

from relab.stats.student import Interval


def kaplan_meier(times: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times at which a run reached the level, and the share still not there after each."""
    times, reached = _clean(times, reached)
    steps = np.unique(times[reached])
    at_risk = (times[None, :] >= steps[:, None]).sum(1)
    events = ((times[None, :] == steps[:, None]) & reached[None, :]).sum(1)
    return steps, np.cumprod(1 - events / np.maximum(at_risk, 1))


def median_time(times: np.ndarray, reached: np.ndarray) -> float:
    """The first time by which half of the runs are there; infinite if fewer ever were."""
    steps, share = kaplan_meier(times, reached)
    there = steps[share <= 0.5 + 1e-12]
    return float(there[0]) if len(there) else math.inf


def restricted_mean(times: np.ndarray, reached: np.ndarray, horizon: float) -> float:
    """Mean time to the level, counted up to `horizon`: the area under the share not there yet."""
    steps, share = kaplan_meier(times, reached)
    inside = steps < horizon
    edges = np.concatenate([[0.0], steps[inside], [horizon]])
    return float(np.sum(np.diff(edges) * np.concatenate([[1.0], share[inside]])))


def common_horizon(*arms: tuple[np.ndarray, np.ndarray]) -> float:
    """The longest time up to which every arm's curve is known; an arm whose last run got there is known for ever."""
    limits = []
    for times, reached in arms:
        times, reached = _clean(times, reached)
        if not reached[times == times.max()].all():
            limits.append(float(times.max()))
    return min(limits) if limits else max(float(np.max(times)) for times, _ in arms)


def pseudo_times(times: np.ndarray, reached: np.ndarray, horizon: float) -> np.ndarray:
    """One number a run whose mean is the restricted mean: n θ - (n - 1) θ without the run (Andersen et al. 2003).

    Where every run not there by the horizon was watched up to it, this is min(time, horizon) exactly.
    """
    times, reached = _clean(times, reached)
    if (reached | (times >= horizon)).all():
        return np.minimum(times, horizon)
    n, keep = len(times), ~np.eye(len(times), dtype=bool)
    whole = restricted_mean(times, reached, horizon)
    without = np.array([restricted_mean(times[row], reached[row], horizon) for row in keep])
    return n * whole - (n - 1) * without


def time_difference(
    times_a: np.ndarray, reached_a: np.ndarray, times_b: np.ndarray, reached_b: np.ndarray, level: float = 0.95
) -> Interval:
    """Restricted mean time of b minus that of a, up to the common horizon."""
    from relab.stats.compare_means import difference

    horizon = common_horizon((times_a, reached_a), (times_b, reached_b))
    return difference(pseudo_times(times_a, reached_a, horizon), pseudo_times(times_b, reached_b, horizon), level)


def logrank_p(
    times_a: np.ndarray,
    reached_a: np.ndarray,
    times_b: np.ndarray,
    reached_b: np.ndarray,
    reps: int = 1999,
    seed: int = 0,
) -> float:
    """Permutation p of the log-rank statistic: could arms that do not differ look this different?"""
    times, reached = _clean(np.concatenate([times_a, times_b]), np.concatenate([reached_a, reached_b]))
    scores = logrank_scores(times, reached)
    n, rng = len(times_a), np.random.default_rng(seed)
    drawn = rng.permuted(np.tile(scores, (reps, 1)), axis=1)[:, :n].sum(1)
    observed = abs(scores[:n].sum())
    return float((1 + np.sum(np.abs(drawn) >= observed - 1e-9)) / (1 + reps))


def logrank_scores(times: np.ndarray, reached: np.ndarray) -> np.ndarray:
    """Each run's event minus its accumulated hazard; a group's sum is the log-rank O - E."""
    steps = np.unique(times[reached])
    at_risk = (times[None, :] >= steps[:, None]).sum(1)
    events = ((times[None, :] == steps[:, None]) & reached[None, :]).sum(1)
    hazard = np.concatenate([[0.0], np.cumsum(events / np.maximum(at_risk, 1))])
    return reached - hazard[np.searchsorted(steps, times, side="right")]


def _clean(times: np.ndarray, reached: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    times, reached = np.asarray(times, np.float64), np.asarray(reached, bool)
    if times.shape != reached.shape or not len(times) or not np.isfinite(times).all():
        raise ValueError(
            f"times need a finite number and a `reached` each, but got {times.tolist()} and {reached.tolist()}"
        )
    return times, reached
