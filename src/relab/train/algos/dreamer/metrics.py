"""What is written of an update? The model's losses against their floors, its latents, and what dreams were like."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import layers, marks
from relab.train.algos.dreamer.behaviour import ACTOR, CRITIC, Dream
from relab.train.algos.dreamer.optimiser import PARTS
from relab.train.algos.dreamer.state import State
from relab.train.algos.dreamer.world_model import MODEL, Batch, Course

DORMANT = 40  # times less active than the mean of its layer
SELDOM = 50  # updates between two looks at what costs more
LATENTS = 8  # updates between two looks at the latents: looking takes as long as a third of the model's update


@torch.no_grad()
def of_model(s: State, batch: Batch, course: Course, mean: dict[str, Tensor]) -> dict[str, float]:
    valid, weight = batch.valid, batch.valid.sum()

    def average(x: Tensor) -> float:
        return float((x * valid).sum() / weight)

    row = {f"model/{name}_loss": float(x) for name, x in mean.items()}
    row |= {"model/loss": sum(row.values()), "data/padding": float(1 - valid.mean())} | marks.of_model(batch, course)
    if s.counts.updates % LATENTS:
        return row
    floor = average(s.agent.model.support.floor(batch.reward) * batch.earned)
    return row | {
        "model/kl": average(eq.kl(course.post, course.prior)),
        "model/reward_excess": row["model/reward_loss"] - floor,
        "model/prior_entropy": average(torch.special.entr(course.prior).sum((-2, -1))),
        "model/post_entropy": average(torch.special.entr(course.post).sum((-2, -1))),
        "model/agreement": average((course.prior.argmax(-2) == course.post.argmax(-2)).float().mean(-1)),
    }  # fmt: skip


@torch.no_grad()
def of_dreams(s: State, dream: Dream, scale: float) -> dict[str, float]:
    support = s.agent.behaviour.support
    return {
        "model/imag_reward": float(dream.reward[1:].mean()), "model/imag_reward_std": float(dream.reward[1:].std()),
        "model/imag_return": float(dream.returns.mean()),
        "model/imag_continue": float(dream.goes_on[1:].mean()),
        "model/imag_survival": float(dream.goes_on[1:].prod(0).mean()),
        "value/mean": float(dream.value.mean()), "value/std": float(dream.value.std()),
        "value/clamped": float(support.outside(dream.returns).float().mean()), "value/return_scale": scale,
        "value/support_top": support.high,
    }  # fmt: skip


def seldom(s: State, batch: Batch, course: Course, dream: Dream) -> dict[str, float]:
    """What costs more than a glance."""
    return (
        {
            "value/critic_excess": critic_excess(s, batch, dream),
            "optim/dormant_share": dormant_share(s, course.feature.detach()),
            "value/return_residual": marks.return_residual(s, dream),
            "value/pull_due": marks.pull_due(s, batch, course, dream),
            "model/post_memory": marks.memory_share(s, batch, course),
        }
        | marks.of_actions(batch)
        | marks.of_mixes(s, batch, course)
    )


def critic_excess(s: State, batch: Batch, dream: Dream) -> float:
    """The critic's loss on dreams above the entropy of its targets, each dream weighed as it is learned from."""
    support, weight = s.agent.behaviour.support, dream.weight[:-1] * batch.valid.flatten()
    excess = support.loss(dream.logits[:-1].detach(), dream.returns) - support.floor(dream.returns)
    return float((weight * excess).sum() / weight.sum().clamp(min=1e-8))


@torch.no_grad()
def dormant_share(s: State, feature: Tensor) -> float:
    """Share of hidden units of actor and critic whose mean activation is under a fortieth of their layer's."""
    shares = []
    for name in (ACTOR, CRITIC):
        x = feature
        for i in range(s.cfg.layers):
            x = layers.layer(s.agent.params, f"{name}/{i}", x)
            size = x.abs().mean(tuple(range(x.dim() - 1)))
            shares.append(float((size < size.mean() / DORMANT).float().mean()))
    return float(np.mean(shares))


def of_iteration(s: State, rows: list[dict[str, float]], pace: float, arrived: int) -> dict[str, float]:
    """Means over the updates of this iteration beside what was gathered; `arrived`: rows that reached the replay."""
    row = s.gathering.metrics(s.counts)
    row["data/replay_ratio"] = len(rows) * s.cfg.minibatch / max(arrived, 1)
    row["optim/actor_updates"] = float(s.optimiser.updates[PARTS.index(ACTOR)])
    row |= {"optim/lr": step_size(s, pace), "optim/param_norm": float(torch.linalg.vector_norm(s.agent.params.flat))}
    row |= s.surprise.metrics() | {"model/focus": float(s.focus.on)}
    names = dict.fromkeys(name for each in rows for name in each)
    return row | {name: float(np.mean([each[name] for each in rows if name in each])) for name in names}


def step_size(s: State, pace: float) -> float:
    """Of the world model, or of the actor where that one learns and the model does not; warmed up so far."""
    part, rate = (ACTOR, s.cfg.lr_actor or s.cfg.lr) if s.cfg.mode == "behaviour" else (MODEL, s.cfg.lr)
    return rate * pace * s.optimiser.warmth(part)
