"""How do temporal differences at two times go together? The kernel K(t, u) = mean over trajectories of delta_t delta_u.

Its mean diagonal is the mean squared temporal difference, so that value and td_loss must agree to rounding. During
training it is that of the iteration's own batch; on a checkpoint, of a batch drawn for it.
"""

from __future__ import annotations

import math

import numpy as np

from relab.train.algos import tracking_ac as ac
from relab.train.probes.result import ProbeResult, error_of_mean
from relab.train.probes.tracking_round import TrackingRound


def q_kernel(at: TrackingRound) -> list[ProbeResult]:
    s = at.state
    own = s.batch is None
    batch = at.sample("q_kernel", s.agent.behaviour, s.cfg.batch) if own else s.batch
    if own:
        ac.appraise(s, batch, s.agent.w)
    delta_TB = batch.delta_TB
    chosen = delta_TB[:, : at.cfg.q_kernel.trajectories or delta_TB.shape[1]]
    T, B = chosen.shape
    kernel_TT = chosen @ chosen.T / B
    loss, whole = float(np.trace(kernel_TT) / T), float(np.square(delta_TB).mean())
    around = kernel_TT - np.outer(chosen.mean(1), chosen.mean(1))
    spread = math.sqrt(max(float(np.mean(np.diag(around)[:-1]) * np.mean(np.diag(around)[1:])), 1e-300))
    more = {
        "td_loss": whole, "rel_diff": abs(loss - whole) / max(whole, 1e-300), "trajectories": B, "horizon": T,
        "lag1": float(np.mean(np.diag(around, 1))) / spread,
        "top_share": float(np.linalg.eigvalsh(kernel_TT)[-1] / max(np.trace(kernel_TT), 1e-300)),
        "batch": "own" if own else "training",
    }  # fmt: skip
    return [
        ProbeResult("q_kernel", "td_loss_from_kernel", loss, error_of_mean(np.square(chosen)), T * B, "return²", more)
    ]
