"""Do dreams earn what the world pays? Discounted rewards of a few steps, dreamed and real, from the same states.

value: mean over states of (dreamed - real); above 0 the dreams promise more than the world keeps, and a policy that
learns from them may do worse while they say better. noise: standard error over worlds. Both go on under the policy as
it is, with sampled actions, for as many steps as a dream of the run has; nothing is bootstrapped on either side.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relab.base.streams import generator
from relab.train import rollout
from relab.train.algos.dreamer.agent import Agent
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Round
from relab.train.probes.value_vs_rerun import States, correlation, limit_of, mean, per_world, visited


def dream_vs_world(at: Round) -> list[ProbeResult]:
    cfg, agent = at.cfg.dream_vs_world, at.state.agent
    states, rng = visited(at, agent, cfg.starts, cfg.spread, "dream_vs_world"), stream(at)
    dreamed_B, survival_H = dreamed_returns(agent, states, cfg.repeats, rng)
    again = real_returns(at, agent, states, cfg.repeats, rng)
    real_B, agents = again.return_BK.mean(1), at.env.spec.agents
    gap_N = per_world(dreamed_B - real_B, agents)
    living = np.isfinite(real_B)
    more: dict[str, Any] = {
        "dreamed_mean": mean(dreamed_B[living]), "real_mean": mean(real_B[living]), "steps": agent.cfg.imagine,
        "correlation": correlation(dreamed_B[living], real_B[living]), "dreamed_survival": survival_H[-1],
        "survival_first": survival_H[0], "survival_middle": survival_H[len(survival_H) // 2],
        "real_survival": mean(again.capped_BK[living]), "sim_steps": states.sim_steps + again.sim_steps,
    }  # fmt: skip
    noise = float(gap_N.std(ddof=1) / math.sqrt(len(gap_N))) if len(gap_N) > 1 else math.nan
    return [ProbeResult("dream_vs_world", "dream_gap", mean(gap_N), noise, len(gap_N), "return", more)]


def stream(at: Round) -> np.random.Generator:
    return generator(at.seed, f"probe/dream_vs_world/{at.iteration}")


@torch.no_grad()
def dreamed_returns(agent: Agent, states: States, k: int, rng: np.random.Generator) -> tuple[np.ndarray, list[float]]:
    """(mean over k dreams from each state, share of dreams that go on to each of their steps)."""
    cfg, rows = agent.cfg, len(states.obs_BD)
    uniform = lambda *shape: torch.from_numpy(rng.random(shape, np.float32))  # noqa: E731
    again = np.repeat(states.obs_BD, k, 0), np.repeat(states.memory_BM, k, 0)
    h, z = agent.infer(agent.sees, *again, uniform(rows * k, cfg.stoch))
    noise = uniform(cfg.imagine, rows * k, cfg.stoch + agent.actions.draws)
    feature, _ = agent.behaviour.imagine(agent.model, torch.cat((h, z), -1), noise)
    reward, goes_on = agent.model.earned(feature)
    total = discounted(reward, goes_on, cfg.gamma).view(rows, k).mean(1)
    return total.double().numpy(), torch.cumprod(goes_on[1:], 0).mean(1).tolist()


def discounted(reward: Tensor, goes_on: Tensor, gamma: float) -> Tensor:
    """sum_t r_t prod_{0 < k < t} gamma c_k: [H + 1, N] each -> [N]; the first rows are where the dreams begin."""
    reach = torch.cat((torch.ones_like(goes_on[:1]), torch.cumprod(gamma * goes_on[1:-1], 0)))
    return (reach * reward[1:]).sum(0)


def real_returns(at: Round, agent: Agent, states: States, k: int, rng: np.random.Generator) -> rollout.Reruns:
    limit = limit_of(at, agent.cfg.gamma)
    return rollout.rerun(at.env, agent, states.snapshots, k, rng, agent.cfg.gamma, agent.cfg.imagine, states.memory_BM,
                         limit)  # fmt: skip
