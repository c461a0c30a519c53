"""How far do the two policies, and the states they visit, lie apart?

value: MMD^2 between observations under mu and under pi (RBF kernel, width by the median heuristic; the V-statistic,
which is positive even between equal distributions); noise: jackknife over groups of trajectories. Beside it the shift
of the mean, KL(pi, mu) in closed form, total variation by draws, the ratios of mu's own actions. A number ending in
_error is the standard error of the one before it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from relab.base.documents import Document
from relab.base.streams import generator
from relab.train.algos import fourier
from relab.train.algos import tracking_ac as ac
from relab.train.kernels.crew import Crew
from relab.train.probes.result import ProbeResult, error_of_mean
from relab.train.probes.tracking_round import TrackingRound, flat

GROUPS = 8  # of trajectories, for the jackknife
BLOCK = 512  # rows whose kernel values stay in cache
WIDTH_POINTS = 300  # for the median distance


def distribution(at: TrackingRound) -> list[ProbeResult]:
    s, cfg = at.state, at.cfg.distribution
    mu = at.sample("mu", s.agent.behaviour, cfg.samples)
    pi = at.sample("pi", s.agent, cfg.samples)
    draws = generator(s.seed, f"probe/distribution/{at.iteration}")
    width = median_width(flat(mu.obs_TBD[:-1]), flat(pi.obs_TBD[:-1]), draws)
    mmd2, noise = mmd(mu.obs_TBD[:-1], pi.obs_TBD[:-1], width, s.crew)
    more = {"mmd_sigma": width, "mean_shift": float(np.linalg.norm(mean_obs(mu) - mean_obs(pi)))}
    more |= actions(at, mu, cfg.action_samples, draws) | ratios(mu.rho_TB, float(mu.bound_TB.mean()))
    return [ProbeResult("distribution", "mmd2", mmd2, noise, mu.rho_TB.size, "", more)]


def mean_obs(batch: ac.Batch) -> np.ndarray:
    return flat(batch.obs_TBD[:-1]).mean(0, dtype=np.float64)


def median_width(x: np.ndarray, y: np.ndarray, draws: np.random.Generator) -> float:
    """sqrt(median |x - y|^2 / 2) over some points of each."""
    a, b = (each[draws.integers(0, len(each), WIDTH_POINTS)].astype(np.float64) for each in (x, y))
    return math.sqrt(max(float(np.median(np.square(a[:, None] - b[None]).sum(-1))) / 2.0, 1e-12))


def mmd(x_TBD: np.ndarray, y_TBD: np.ndarray, width: float, crew: Crew) -> tuple[float, float]:
    """MMD^2 and its jackknife error, from sums of the kernel between groups of trajectories."""
    groups = min(GROUPS, x_TBD.shape[1], y_TBD.shape[1])
    (x, in_x), (y, in_y) = ((torch.from_numpy(flat(each)), members(each, groups)) for each in (x_TBD, y_TBD))
    pairs = ((x, in_x, x, in_x), (y, in_y, y, in_y), (x, in_x, y, in_y))
    sums = np.array([kernel_sums(*pair, 0.5 / width**2, crew) for pair in pairs])
    sizes = np.array([in_x.sum(0).numpy(), in_y.sum(0).numpy()], np.float64)
    whole = combine(sums, sizes, np.ones(groups, bool))
    without = np.array([combine(sums, sizes, np.arange(groups) != g) for g in range(groups)])
    return whole, float(np.sqrt((groups - 1) / groups * np.square(without - without.mean()).sum()))


def members(x_TBD: np.ndarray, groups: int) -> torch.Tensor:
    """float32[T B, G]: 1 where a row belongs to the group; trajectory b is in group b mod G."""
    world = np.tile(np.arange(x_TBD.shape[1]), x_TBD.shape[0])
    return torch.from_numpy((world[:, None] % groups == np.arange(groups)).astype(np.float32))


def kernel_sums(x: torch.Tensor, in_x: torch.Tensor, y: torch.Tensor, in_y: torch.Tensor, c: float, crew: Crew) -> Any:
    """float64[G, G]: sums of exp(-c |x - y|^2) over the pairs of two groups, a block of rows at a time."""
    y2, starts = y.square().sum(1), range(0, len(x), BLOCK)
    total = torch.zeros((len(starts), in_x.shape[1], in_y.shape[1]), dtype=torch.float64)

    def work(k: int) -> None:
        for row in range(k, len(starts), crew.size):
            i = starts[row]
            part, mine, begin = (
                x[i : i + BLOCK],
                in_x[i : i + BLOCK],
                i if x is y else 0,
            )  # x with itself: half is enough
            square = torch.addmm(y2[None, begin:] + part.square().sum(1, keepdim=True), part, y[begin:].T, alpha=-2.0)
            values = square.clamp_(min=0.0).mul_(-c).exp_()
            total[row] = (mine.T @ (values @ in_y[begin:])).double()
            if x is y:
                total[row] += (mine.T @ (values[:, len(part) :] @ in_y[begin + len(part) :])).double().T

    crew.share(work, len(starts))
    return total.sum(0).numpy()


def combine(sums: np.ndarray, sizes: np.ndarray, keep: np.ndarray) -> float:
    xx, yy, xy = (part[np.ix_(keep, keep)].sum() for part in sums)
    n, m = sizes[0, keep].sum(), sizes[1, keep].sum()
    return float(xx / n**2 + yy / m**2 - 2.0 * xy / (n * m))


def actions(at: TrackingRound, mu: ac.Batch, draws_per_state: int, draws: np.random.Generator) -> Document:
    """KL(pi, mu) in closed form, and the total variation 1/2 E_pi |1 - mu / pi|, over the states under mu."""
    agent, cfg = at.state.agent, at.state.cfg
    m_pi, m_mu = agent.mean(mu.psi_TBP), agent.behaviour.mean(mu.psi_TBP)
    gap2 = np.square(m_pi - m_mu).sum(-1)
    share = (cfg.sigma_pi / cfg.sigma_mu) ** 2
    kl = share - 1.0 - math.log(share) + gap2 / (2.0 * cfg.sigma_mu**2)
    noise = draws.standard_normal((*m_pi.shape[:2], draws_per_state, fourier.ACTION))
    a = m_pi[:, :, None] + cfg.sigma_pi * noise
    inverse = np.exp(
        ac.log_density(a, m_mu[:, :, None], cfg.sigma_mu) - ac.log_density(a, m_pi[:, :, None], cfg.sigma_pi)
    )
    tv = 0.5 * np.abs(1.0 - inverse).mean(-1)
    return {"action_kl": float(kl.mean()), "action_kl_error": error_of_mean(kl), "action_tv": float(tv.mean()),
            "action_tv_error": error_of_mean(tv), "mean_gap2": float(gap2.mean()), "mean_gap2_max": float(gap2.max()),
            "action_samples": draws_per_state}  # fmt: skip


def ratios(rho_TB: np.ndarray, clipped: float) -> Document:
    rho, square = rho_TB.reshape(-1), np.square(rho_TB)
    p95, p99 = np.quantile(rho, (0.95, 0.99))
    return {"rho_mean": float(rho.mean()), "rho_mean_error": error_of_mean(rho_TB), "rho2_mean": float(square.mean()),
            "rho2_mean_error": error_of_mean(square), "rho_min": float(rho.min()), "rho_max": float(rho.max()),
            "rho_p95": float(p95), "rho_p99": float(p99), "rho_clipped_share": clipped,
            "ess_share": float(rho.sum() ** 2 / (rho.size * square.sum()))}  # fmt: skip
