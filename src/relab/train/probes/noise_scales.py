"""How much of what is missing is noise? Success (or return) of the policy with its own noise, less of it, and more.

A Gaussian policy acts as mean + scale x (draw - mean): 0 is the mode, 1 the policy as it is. Worlds and draws are the
same at every scale, so that the differences are paired. value: the outcome at scale 1; `more` has all of them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from relab.base.streams import world_seeds
from relab.record.evaluations import evaluation
from relab.train import rollout
from relab.train.envs.base import Worlds
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Round
from relab.train.rollout import Acted


class Scaled:
    """A policy whose draws lie `scale` times as far from its mode."""

    def __init__(self, policy: Any, scale: float):
        self.policy, self.scale, self.memory_dim = policy, scale, policy.memory_dim

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        mode = self.policy.act(obs_BD, memory_BM, rng_B, len(obs_BD)).action.copy()  # draws nothing
        acted = self.policy.act(obs_BD, memory_BM, rng_B, n_mode)
        acted.action = (mode + self.scale * (acted.action - mode)).astype(mode.dtype)
        return acted

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return self.policy.to_env(action)


def noise_scales(at: Round) -> list[ProbeResult]:
    cfg, agent, spec = at.cfg.noise_scales, at.state.agent, at.env.spec
    if spec.action.kind != "continuous":  # a choice has no noise to scale
        return []
    seeds = world_seeds(at.seed, f"probe/noise_scales/{at.iteration}", cfg.episodes)
    worlds, levels = Worlds(at.env, cfg.episodes), {}
    for scale in cfg.scales:
        played = rollout.evaluate(at.env, Scaled(agent, scale), seeds, modes=("sampled",), worlds=worlds)
        row = {"step": at.step, "mode": "sampled", "episodes": played.episodes["sampled"]}
        level = evaluation(row, spec.outcome)
        levels[scale] = (level.mean, level.se) if level else (math.nan, math.nan)
    more: dict[str, Any] = {f"{spec.outcome}_{scale:g}": mean for scale, (mean, _) in levels.items()}
    more |= {"sim_steps": worlds.sim_steps}
    mean, error = levels.get(1.0, (math.nan, math.nan))
    return [ProbeResult("noise_scales", f"{spec.outcome}_as_it_is", mean, error, cfg.episodes, spec.outcome, more)]
