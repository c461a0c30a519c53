"""A small tracking actor-critic for the tests: the same code, few features and steps."""

from __future__ import annotations

from typing import Any

from relab.config.tracking_ac import TrackingAC
from relab.train.algos import tracking_ac as ac
from relab.train.contract import Setup
from relab.train.envs.torus import Torus

SMALL: dict[str, Any] = {"trajectories": 4, "horizon": 15, "feature_dim": 40, "actor_feature_dim": 12}


def make(seed: int = 0, threads: int = 1, **settings: Any) -> ac.State:
    cfg = TrackingAC(**{**SMALL, "theta_mu_offset_scale": 0.3, **settings})
    cfg.check()
    return ac.init(Setup(Torus(), cfg, seed, 1, threads=threads))


def iterate(s: ac.State, n: int) -> list[dict[str, float]]:
    found = []
    for _ in range(n):
        ac.collect(s)
        found.append(ac.update(s))
    return found
