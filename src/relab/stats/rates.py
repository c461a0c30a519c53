"""How sure is a success rate? Episodes of one seed are alike: they count as fewer than they are.

Wilson (1927) for independent trials; for several episodes a seed the beta-binomial's design effect
1 + (m - 1) ρ shrinks the sample first; Newcombe (1998) joins two such intervals into one of the difference.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relab.stats.student import Interval, normal_quantile, t_quantile


class Clusters(NamedTuple):
    """A rate over seeds: what it is, how alike episodes of a seed are, how many independent ones they are worth."""

    rate: np.ndarray
    rho: np.ndarray  # correlation of two episodes of one seed, 0 to 1
    n_eff: np.ndarray  # between the number of seeds and the number of episodes


def wilson(successes: float, n: float, level: float = 0.95) -> Interval:
    """(p + z²/2n ± z sqrt(p (1 - p) / n + z²/4n²)) / (1 + z²/n), for independent trials."""
    if not 0 <= successes <= n or n < 1:
        raise ValueError(f"a rate needs 0 <= successes <= n and n >= 1, but got {successes} of {n}")
    low, high = score_ends(np.asarray(successes / n), np.asarray(n), normal_quantile(0.5 + level / 2))
    return Interval(successes / n, float(low), float(high), int(n), level)


def score_ends(p: np.ndarray, n: np.ndarray, z: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's ends for any quantile z."""
    mid, half = p + z * z / (2 * n), z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return np.maximum((mid - half) / (1 + z * z / n), 0.0), np.minimum((mid + half) / (1 + z * z / n), 1.0)


def clustered_rate(successes: np.ndarray, episodes: np.ndarray, level: float = 0.95) -> Interval:
    """Success rate from several episodes a seed (one entry a seed); n is the number of seeds."""
    hits, trials = _counts(successes, episodes)
    low, high = cluster_ends(clusters(hits, trials), len(hits), level)
    return Interval(float(hits.sum() / trials.sum()), float(low), float(high), len(hits), level)


def rate_difference(
    hits_a: np.ndarray, episodes_a: np.ndarray, hits_b: np.ndarray, episodes_b: np.ndarray, level: float = 0.95
) -> Interval:
    """Rate of b minus rate of a over clustered episodes, Newcombe's way."""
    a, b = _counts(hits_a, episodes_a), _counts(hits_b, episodes_b)
    low, high = rate_difference_ends(*a, *b, level)
    mid = float(b[0].sum() / b[1].sum() - a[0].sum() / a[1].sum())
    return Interval(mid, float(low), float(high), min(len(a[0]), len(b[0])), level)


def _counts(successes: np.ndarray, episodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    hits, trials = np.asarray(successes, np.float64), np.asarray(episodes, np.float64)
    if hits.shape != trials.shape or hits.size < 2 or not ((hits >= 0) & (hits <= trials) & (trials >= 1)).all():
        raise ValueError(
            "a clustered rate needs two or more seeds with 0 <= successes <= episodes each,"
            f" but got {hits.tolist()} of {trials.tolist()}"
        )
    return hits, trials


# ---- On rows of seeds (last axis)


def clusters(hits: np.ndarray, trials: np.ndarray) -> Clusters:
    """ρ by the analysis-of-variance estimator; with no failure or no success it cannot be seen and is taken as 1."""
    k, total = hits.shape[-1], trials.sum(-1)
    rate = hits.sum(-1) / total
    m = (total - (trials**2).sum(-1) / total) / (k - 1)
    between = (trials * (hits / trials - rate[..., None]) ** 2).sum(-1) / (k - 1)
    within = (hits * (1 - hits / trials)).sum(-1) / np.maximum(total - k, 1)
    spread = between + (m - 1) * within
    rho = np.where(spread > 0, (between - within) / np.where(spread > 0, spread, 1.0), 1.0)
    rho = np.clip(np.where((rate <= 0) | (rate >= 1), 1.0, rho), 0.0, 1.0)
    return Clusters(rate, rho, np.clip(total / (1 + (total / k - 1) * rho), k, total))


def cluster_ends(arm: Clusters, seeds: int, level: float) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's ends on the effective sample, with Student's quantile because ρ is estimated from few seeds."""
    return score_ends(arm.rate, arm.n_eff, t_quantile(0.5 + level / 2, seeds - 1))


def rate_difference_ends(
    hits_a: np.ndarray, trials_a: np.ndarray, hits_b: np.ndarray, trials_b: np.ndarray, level: float
) -> tuple[np.ndarray, np.ndarray]:
    """d - sqrt((p_b - l_b)² + (u_a - p_a)²), d + sqrt((u_b - p_b)² + (p_a - l_a)²)."""
    a, b = clusters(hits_a, trials_a), clusters(hits_b, trials_b)
    (low_a, high_a), (low_b, high_b) = (
        cluster_ends(arm, hits.shape[-1], level) for arm, hits in ((a, hits_a), (b, hits_b))
    )
    d = b.rate - a.rate
    low = d - np.hypot(b.rate - low_b, high_a - a.rate)
    return low, d + np.hypot(high_b - b.rate, a.rate - low_a)


def effective_episodes(successes: np.ndarray, episodes: np.ndarray) -> float:
    """How many independent episodes the clustered ones are worth."""
    return float(clusters(*_counts(successes, episodes)).n_eff)
