"""On which scale do observations and rewards reach the networks? Running mean and variance, kept in checkpoints."""

from __future__ import annotations

import numpy as np

from relab.train.kernels.jit import njit


class Running:
    """Mean and variance of all rows seen so far (parallel update of Chan et al. 1979), in float64."""

    def __init__(self, dim: int):
        self.mean, self.var, self.count = np.zeros(dim), np.ones(dim), np.zeros(1)

    def update(self, rows: np.ndarray) -> None:
        n = len(rows)
        if n == 0:
            return
        mean, var = rows.mean(0, dtype=np.float64), rows.var(0, dtype=np.float64)
        total = self.count[0] + n
        gap = mean - self.mean
        spread = self.var * self.count[0] + var * n + gap**2 * self.count[0] * n / total
        self.mean, self.var, self.count = self.mean + gap * n / total, spread / total, np.array([total])

    def apply(self, rows: np.ndarray, clip: float) -> np.ndarray:
        """(rows - mean) / std, clipped to +-clip; unchanged before the first update."""
        if self.count[0] == 0:
            return rows
        mean, std = self.as_float32()
        scaled = (rows - mean) / std
        return np.clip(scaled, -clip, clip, out=scaled)

    def as_float32(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard deviation as they are applied."""
        return self.mean.astype(np.float32), np.sqrt(self.var + 1e-8).astype(np.float32)

    def to_tree(self) -> dict[str, np.ndarray]:
        return {"mean": self.mean, "var": self.var, "count": self.count}

    def load(self, tree: dict[str, np.ndarray]) -> None:
        self.mean, self.var, self.count = tree["mean"].copy(), tree["var"].copy(), tree["count"].copy()


@njit(cache=True)
def discounted_sums(r_TB, ended_TB, gamma, sum_B):
    """R_t = gamma R_{t-1} + r_t per row, restarted after an episode's end; `sum_B` carries over to the next batch.

    Its standard deviation is the scale by which rewards are divided, so that returns are of order one.
    """
    out_TB = np.empty_like(r_TB)
    for t in range(r_TB.shape[0]):
        for b in range(r_TB.shape[1]):
            sum_B[b] = gamma * sum_B[b] + r_TB[t, b]
            out_TB[t, b] = sum_B[b]
            if ended_TB[t, b]:
                sum_B[b] = 0.0
    return out_TB
