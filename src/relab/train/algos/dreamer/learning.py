"""What happens in one update? Draw sequences, run the model over them, dream from every row, step down all losses.

Which parts learn: all of them; the model alone (mode=model, and while it warms up); actor and critic alone, in dreams
of a model that stays as it is (mode=behaviour). A part that does not learn is not touched, its momentum neither.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from relab.train.algos.dreamer import frames, marks, metrics, sequences
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.behaviour import Dream
from relab.train.algos.dreamer.frames import ImageGathering
from relab.train.algos.dreamer.latents import Recalled
from relab.train.algos.dreamer.sequences import Sequences
from relab.train.algos.dreamer.state import State
from relab.train.algos.dreamer.world_model import Batch, Course


class Turn(NamedTuple):
    """How large a step each part takes in an update; 0: none."""

    model: float
    actor: float
    critic: float


def update(s: State) -> dict[str, float]:
    """One update of the parts whose turn it is."""
    turn = turn_of(s)
    if s.agent.units is not None and s.counts.updates == 0:
        s.agent.measure(first_rows(s))
    rows, recalled = drawn(s)
    loss, row = losses_of(s, batch_of(s.agent, rows), turn, recalled)
    if loss.requires_grad:
        loss.backward()
    if "value/pull_due" in row:
        row["value/pull"] = marks.pull(s)
    row |= {"model/focus": float(s.focus.on), "model/updates_each": float(model_updates(s))}
    row["optim/grad_norm"] = s.optimiser.step(turn._asdict())
    if turn.critic:
        s.agent.behaviour.follow()
    s.agent.follow(s.counts.updates)
    s.focus.note(s.surprise)
    s.counts.updates += 1
    return row


def first_rows(s: State) -> np.ndarray:
    """What was seen before the first update [rows, D]."""
    replay = s.gathering.replay
    rows = replay.ring[: min(replay.count, replay.slots)]
    return rows["obs"][rows["alive"]]


def drawn(s: State) -> tuple[Sequences, Recalled | None]:
    """Sequences, and what was remembered before them where that is kept."""
    g, cfg = s.gathering, s.cfg
    mix = sequences.Mix(cfg.ends, cfg.recent, cfg.recent_steps)
    starts = sequences.starts(g.replay, s.draw, cfg.sequences, cfg.length, mix)
    if isinstance(g, ImageGathering):
        rows = frames.filled(g, starts, cfg.length)
    else:
        rows = sequences.filled(g.replay, starts, cfg.length)
    return s.latents.recall(starts, rows) if s.latents is not None else (rows, None)


def batch_of(agent: Agent, rows: Sequences) -> Batch:
    tensors = [torch.from_numpy(x) for x in rows]
    tensors[1] = agent.actions.encode(tensors[1])
    return Batch(*tensors)


def turn_of(s: State) -> Turn:
    cfg, n, pace = s.cfg, s.counts.updates, pace_of(s)
    learns = cfg.mode != "model" and n >= cfg.warmup_updates and n % model_updates(s) == 0 and s.focus.lets_learn()
    if cfg.pause_kl is not None and s.surprise.kl > cfg.pause_kl:
        learns = False
    behaviour = learns * pace / (1 + cfg.surprise_scale * s.surprise.smoothed)
    return Turn(pace * (cfg.mode != "behaviour"), behaviour, behaviour)


def model_updates(s: State) -> int:
    """Updates of the model for each one of actor and critic: all that are set, or fewer once its loss falls no more."""
    most, bar = s.cfg.model_updates, s.cfg.settles
    return most if bar is None else 1 + round((most - 1) * min(1.0, s.surprise.fall / bar))


def pace_of(s: State) -> float:
    """What is left of the step size."""
    share = min(1.0, s.share_done / s.cfg.lr_until)
    fallen = share if s.cfg.lr_shape == "line" else 0.5 * (1 - math.cos(math.pi * share))
    return 1 - (1 - s.cfg.lr_final) * fallen


def entropy_weight(s: State) -> float:
    start, end = s.cfg.entropy, s.cfg.entropy_final
    return start if end is None else end + (start - end) * 0.5 * (1 + math.cos(math.pi * s.share_done))


def losses_of(s: State, batch: Batch, turn: Turn, recalled: Recalled | None = None) -> tuple[Tensor, dict[str, float]]:
    """The loss of all parts whose turn it is, and the row of metrics."""
    with torch.set_grad_enabled(bool(turn.model)):
        noise = s.uniform(s.cfg.length, s.cfg.sequences, s.cfg.stoch)
        course = s.agent.model.observe(batch, noise, recalled.start if recalled else None)
        mean = {name: average(x, batch.valid) for name, x in s.agent.model.losses(batch, course).items()}
    if recalled is not None:
        recalled.refresh(course)
    total, row = torch.stack(list(mean.values())).sum(), metrics.of_model(s, batch, course, mean)
    s.surprise.note({name: float(x.detach()) for name, x in mean.items()})
    if not turn.actor:
        return total, row
    dream = dream_of(s, batch, course)
    loss, more = behaviour_loss(s, batch, course, dream)
    return (total + loss if turn.model else loss), row | more


def average(x: Tensor, weight: Tensor) -> Tensor:
    return (x * weight).sum() / weight.sum()


def dream_of(s: State, batch: Batch, course: Course) -> Dream:
    cfg = s.cfg
    noise = s.uniform(cfg.imagine, cfg.length * cfg.sequences, cfg.stoch + s.agent.actions.draws)
    dream = s.agent.behaviour.dream(s.agent.model, course, batch, noise)
    if cfg.norm_return:
        s.scale.update(dream.returns)
    return dream


def behaviour_loss(s: State, batch: Batch, course: Course, dream: Dream) -> tuple[Tensor, dict[str, float]]:
    """Actor and critic on dreams, the critic on real rewards as well."""
    cfg, b = s.cfg, s.agent.behaviour
    scale, valid = s.scale.value if cfg.norm_return else 1.0, batch.valid.flatten().expand(cfg.imagine, -1)
    actor, nats, advantage = b.actor_loss(dream, scale, entropy_weight(s))
    ones = dream.hot.first(dream.returns.numel())
    critic = dream.weight[:-1] * b.critic_loss(dream.logits[:-1], dream.feature[:-1], dream.returns, ones)
    loss, row = average(actor, valid) + average(critic, valid), metrics.of_dreams(s, dream, scale)
    row |= {"policy/actor_loss": float(actor.detach().mean()), "value/critic_loss": float(critic.detach().mean()),
            "policy/entropy": float(nats.detach().mean()), "data/advantage_std": float(advantage.std())}  # fmt: skip
    if s.counts.updates % metrics.SELDOM == 0:
        row |= metrics.seldom(s, batch, course, dream)
    if cfg.replay_critic:
        replayed = replay_loss(s, batch, course, dream)
        loss, row["value/replay_loss"] = loss + cfg.replay_critic * replayed, float(replayed.detach())
    return loss, row


def replay_loss(s: State, batch: Batch, course: Course, dream: Dream) -> Tensor:
    """The critic on real rewards; rows after which nothing came are left out."""
    b, feature = s.agent.behaviour, course.feature[:-1]
    counted = batch.valid[:-1] * batch.valid[1:] * (1 - batch.last[:-1])
    loss = b.critic_loss(b.critic(feature), feature.detach(), b.replay_returns(batch, dream))
    return (loss * counted).sum() / counted.sum().clamp(min=1)


def rehearse(s: State) -> None:
    """Compile what learns, on rows of zeros and with streams of its own: the first update would seem to hang."""
    ring, shape = s.gathering.replay.ring, (s.cfg.length, s.cfg.sequences)
    rows = sequences.blank(ring, *shape)
    rows.valid[:] = 1.0
    course = s.agent.model.observe(batch_of(s.agent, rows), torch.zeros(*shape, s.cfg.stoch))
    noise = torch.zeros(1, shape[0] * shape[1], s.cfg.stoch + s.agent.actions.draws)
    dream = s.agent.behaviour.dream(s.agent.model, course, batch_of(s.agent, rows), noise)
    loss = s.agent.behaviour.critic_loss(dream.logits[:-1], dream.feature[:-1], dream.returns).sum()
    (loss + course.h.sum()).backward()
    s.agent.params.grad.zero_()
