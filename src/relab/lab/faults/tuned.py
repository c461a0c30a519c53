"""What stands in a seam's place when a fault is planted in fine-tuning? Each takes the original and spoils it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from relab.base.documents import Document
from relab.train.algos.finetune import policies
from relab.train.rollout import PlayedEpisodes

OTHER = "shipped:pickcube-gantry@57344"  # a policy of the same kind, from an earlier step of the same pre-training
ROUNDS = 4  # most episodes that a world ends within the time of one


def acted_by_another(gather: Callable[..., Any]) -> Callable[..., Any]:
    """Another policy acts; its actions are learned from as if they were the learner's own."""

    def other(worlds: Any, policy: Any, *rest: Any, **more: Any) -> Any:
        return gather(worlds, policies.load(OTHER, worlds.env.spec, Path(), "planted"), *rest, **more)

    return other


def for_free(reruns: Callable[..., Any]) -> Callable[..., Any]:
    """The steps of re-rollouts are counted nowhere."""
    return lambda *args: reruns(*args)._replace(sim_steps=0)


def of_a_half(loss: Callable[[Tensor, float], Tensor]) -> Callable[[Tensor, float], Tensor]:
    """V is the mean of Q, whatever expectile is set."""
    return lambda diff, tau: loss(diff, 0.5)


def begun_again(evaluate: Callable[..., PlayedEpisodes]) -> Callable[..., PlayedEpisodes]:
    """Worlds play for the time of one whole episode and begin anew after each end: quick ends are counted twice."""

    def again(env: Any, policy: Any, seeds: np.ndarray, *args: Any, **more: Any) -> PlayedEpisodes:
        kept: dict[str, list[Document]] = {}
        spent: dict[str, np.ndarray] = {}
        steps = 0
        for turn in range(ROUNDS):
            played = evaluate(env, policy, seeds + np.uint64(turn * 1_000_003), *args, **more)
            steps += played.sim_steps
            for mode, episodes in played.episodes.items():
                time = spent.setdefault(mode, np.zeros(len(seeds)))
                time += [episode["length"] for episode in episodes]
                kept.setdefault(mode, []).extend(e for e, t in zip(episodes, time) if t <= env.spec.horizon)
        return PlayedEpisodes(kept, steps)

    return again
