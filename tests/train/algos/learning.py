"""Train PPO in memory until something holds, for tests of learning."""

from __future__ import annotations

from typing import Any

import numpy as np

from relab.base.streams import world_seeds
from relab.config import registry
from relab.config.ppo import PPO
from relab.train import rollout
from relab.train.algos import ppo
from relab.train.contract import Setup


def make(
    name: str, seed: int = 0, total: int = 1_000_000, env_params: dict[str, Any] | None = None, **cfg: Any
) -> ppo.State:
    params = registry.env_params_class(name)(name=registry.resolve_env_name(name), **(env_params or {}))
    return ppo.init(Setup(registry.env_class(name)(params), PPO(**cfg), seed, total))


def learn(state: ppo.State, iterations: int) -> list[dict[str, float]]:
    rows = []
    for _ in range(iterations):
        ppo.collect(state)
        rows.append(ppo.update(state))
    return rows


def judge(state: ppo.State, episodes: int = 20, mode: str = "det") -> float:
    seeds = world_seeds(999, f"test/{state.counts.agent_steps}", episodes)
    return float(np.mean(rollout.evaluate(state.worlds.env, state.agent, seeds).returns(mode)))


def until(state: ppo.State, goal: float, every: int, most: int) -> float:
    """Learn until 20 deterministic episodes average `goal` or `most` iterations are done; the last average."""
    found = judge(state)
    for _ in range(most // every):
        if found >= goal:
            break
        learn(state, every)
        found = judge(state)
    return found
