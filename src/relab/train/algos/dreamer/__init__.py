"""Dreamer: a world model, and an actor-critic that learns in its dreams (DreamerV3, Hafner et al. 2023).

init() makes the state of a run; iterate() takes `steps` steps in every world and the updates that are due on the way;
update() is one of them: draw sequences, run the model over them, dream from every row, step once down all losses.
world_model.py, behaviour.py and equations.py hold what is computed; docs/algorithms/dreamer.md what it means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from relab.base.streams import generator, get_state, set_state
from relab.config.base import require
from relab.config.dreamer import Dreamer
from relab.record.spec import Spec
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import sequences
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.behaviour import Dream
from relab.train.algos.dreamer.optimiser import LaProp
from relab.train.algos.dreamer.world_model import Batch, Course
from relab.train.algos.gathering import Gathering, due
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.kernels.rng import fill_uniform
from relab.train.rollout import Acted, Policy

CLOCK = "agent_steps"
BETAS = (0.9, 0.999)


@dataclass
class State:
    """All that a Dreamer run needs to go on; the replay lies in the record's data."""

    cfg: Dreamer
    agent: Agent
    optimiser: LaProp
    scale: eq.ReturnScale
    gathering: Gathering
    total: int
    draw: np.random.Generator  # which sequences are learned from
    noise: np.random.Generator  # latents and actions in updates
    counts: Counts = field(default_factory=Counts)

    def to_tree(self) -> dict[str, Any]:
        return {
            "params": {name: p.detach() for name, p in self.agent.params.named.items()},
            "slow": {"flat": self.agent.slow.flat},
            "optimiser": self.optimiser.to_tree(),
            "return_scale": self.scale.to_tree(),
            **self.gathering.to_tree(),
            "draw": get_state(self.draw),
            "noise": get_state(self.noise),
            "counts": vars(self.counts),
        }

    def load(self, tree: dict[str, Any]) -> None:
        load_agent(self.agent, tree)
        self.optimiser.load(tree["optimiser"])
        self.scale.load(tree["return_scale"])
        self.gathering.load(tree)
        set_state(self.draw, tree["draw"])
        set_state(self.noise, tree["noise"])
        self.counts = Counts(**tree["counts"])


def load_agent(agent: Agent, tree: dict[str, Any]) -> None:
    agent.params.load(tree["params"])
    agent.slow.flat.copy_(torch.from_numpy(tree["slow"]["flat"]))


def follow_weights(s: State) -> None:
    """The networks were given another run's weights: the slow critic begins with them too."""
    s.agent.copy_critic()


def make_agent(cfg: Dreamer, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Agent:
    require(not spec.obs_shape, f"dreamer learns from vectors so far, but {spec.env} observes {spec.seen}; try"
            " algo=ppo, which has an encoder for images")  # fmt: skip
    require(device == "cpu", f"dreamer runs on the cpu, but `device` is {device}")
    return Agent(cfg, spec, generator(seed, "init"))


def init(setup: Setup) -> State:
    cfg: Dreamer = setup.cfg
    require(cfg.learning_starts < setup.total, f"`learning_starts` = {cfg.learning_starts:,} must lie before the end of"
            f" the run, but total_steps is {setup.total:,}: nothing would be learned")  # fmt: skip
    agent = make_agent(cfg, setup.env.spec, setup.seed, setup.device)
    rates = {"model": cfg.lr, "actor": cfg.lr_actor or cfg.lr, "critic": cfg.lr_critic or cfg.lr}
    gathering = Gathering.begin(setup, cfg.envs, cfg.replay, agent.head.action_buffer(1), agent.memory_dim)
    optimiser = LaProp(agent.params, rates, cfg.grad_clip, cfg.lr_warmup, BETAS)
    return State(cfg, agent, optimiser, eq.ReturnScale(), gathering, setup.total,
                 generator(setup.seed, "minibatch"), generator(setup.seed, "noise"))  # fmt: skip


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """`steps` steps of every world, with the updates that fall due on the way."""
    rows: list[dict[str, float]] = []
    for _ in range(s.cfg.steps):
        with watch("collect"):
            s.gathering.step(behaviour_of(s), s.counts)
        with watch("update"):
            for _ in range(due(s.counts, s.cfg.learning_starts, s.cfg.updates_per_step)):
                rows.append(update(s))
    return metrics_of(s, rows)


def behaviour_of(s: State) -> Policy:
    early = s.counts.agent_steps < s.cfg.learning_starts
    return Even(s.agent) if early else s.agent


class Even:
    """Acts before there is anything to learn from: every action is as likely, and nothing is remembered."""

    def __init__(self, agent: Agent):
        self.actions, self.memory_dim, self.to_env = agent.actions, agent.memory_dim, agent.to_env

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        drawn, sizes = np.empty((len(obs_BD), self.actions.dim)), self.actions.sizes
        fill_uniform(rng_B, drawn)
        action = (drawn * np.array(sizes)).astype(np.int64) if sizes else (2 * drawn - 1).astype(np.float32)
        return Acted(action, np.zeros(len(drawn), np.float32), memory_BM)


# ---- Learning


def update(s: State) -> dict[str, float]:
    """One step of the world model, and of actor and critic where it is their turn."""
    cfg, agent = s.cfg, s.agent
    batch = drawn_batch(s)
    course = agent.model.observe(batch, uniform(s, cfg.length, cfg.batch, cfg.stoch))
    losses = agent.model.losses(batch, course)
    mean = {name: (x * batch.valid).sum() / batch.valid.sum() for name, x in losses.items()}
    total = torch.stack(list(mean.values())).sum()
    row = model_metrics(batch, course, mean)
    if behaves(s):
        loss, more = behaviour_loss(s, batch, course)
        total, row = total + loss, row | more
    total.backward()
    row["optim/grad_norm"] = s.optimiser.step(pace(s))
    agent.behaviour.follow()
    s.counts.updates += 1
    return row


def drawn_batch(s: State) -> Batch:
    rows = sequences.draw(s.gathering.replay, s.draw, s.cfg.batch, s.cfg.length, s.cfg.ends)
    tensors = [torch.from_numpy(x) for x in rows]
    tensors[1] = s.agent.actions.encode(tensors[1])
    return Batch(*tensors)


def uniform(s: State, *shape: int) -> Tensor:
    return torch.from_numpy(s.noise.random(shape, np.float32))


def behaves(s: State) -> bool:
    n = s.counts.updates
    return n >= s.cfg.warmup_updates and n % s.cfg.model_updates == 0


def share_done(s: State) -> float:
    return min(1.0, s.counts.agent_steps / s.total)


def pace(s: State) -> float:
    """What is left of the step size."""
    return 1 - (1 - s.cfg.lr_final) * share_done(s)


def entropy_weight(s: State) -> float:
    start, end = s.cfg.entropy, s.cfg.entropy_final
    return start if end is None else end + (start - end) * 0.5 * (1 + math.cos(math.pi * share_done(s)))


def behaviour_loss(s: State, batch: Batch, course: Course) -> tuple[Tensor, dict[str, float]]:
    """Actor and critic on dreams, the critic on real rewards as well."""
    cfg, b = s.cfg, s.agent.behaviour
    noise = uniform(s, cfg.imagine, cfg.length * cfg.batch, cfg.stoch + s.agent.actions.draws)
    dream = b.dream(s.agent.model, course, batch, noise)
    if cfg.norm_return:
        s.scale.update(dream.returns)
    scale = s.scale.value if cfg.norm_return else 1.0
    valid = batch.valid.flatten()
    count = valid.sum() * cfg.imagine
    actor, nats, advantage = b.actor_loss(dream, scale, entropy_weight(s))
    critic = dream.weight[:-1] * b.critic_loss(dream.feature[:-1], dream.returns)
    loss, row = (actor * valid).sum() / count + (critic * valid).sum() / count, {}
    if cfg.replay_critic:
        real = b.replay_returns(batch, dream)
        counted = batch.valid[:-1] * batch.valid[1:] * (1 - batch.last[:-1])
        replayed = (b.critic_loss(course.feature[:-1], real) * counted).sum() / counted.sum().clamp(min=1)
        loss, row = loss + cfg.replay_critic * replayed, {"value/replay_loss": float(replayed.detach())}
    return loss, row | behaviour_metrics(s, dream, actor, critic, nats, advantage, scale)


# ---- Metrics


@torch.no_grad()
def model_metrics(batch: Batch, course: Course, mean: dict[str, Tensor]) -> dict[str, float]:
    valid, weight = batch.valid, batch.valid.sum()

    def average(x: Tensor) -> float:
        return float((x * valid).sum() / weight)

    row = {f"model/{name}_loss": float(x) for name, x in mean.items()}
    return row | {
        "model/loss": sum(row.values()), "model/kl": average(eq.kl(course.post, course.prior)),
        "model/prior_entropy": average(torch.special.entr(course.prior).sum((-2, -1))),
        "model/post_entropy": average(torch.special.entr(course.post).sum((-2, -1))),
        "data/padding": float(1 - valid.mean()),
    }  # fmt: skip


@torch.no_grad()
def behaviour_metrics(
    s: State, dream: Dream, actor: Tensor, critic: Tensor, nats: Tensor, advantage: Tensor, scale: float
) -> dict[str, float]:
    outside = s.agent.behaviour.support.outside(dream.returns)
    return {
        "policy/actor_loss": float(actor.mean()), "value/critic_loss": float(critic.mean()),
        "policy/entropy": float(nats.mean()), "model/imag_reward": float(dream.reward[1:].mean()),
        "model/imag_return": float(dream.returns.mean()), "model/imag_continue": float(dream.goes_on[1:].mean()),
        "value/mean": float(dream.value.mean()), "value/clamped": float(outside.float().mean()),
        "value/return_scale": scale, "data/advantage_std": float(advantage.std()),
    }  # fmt: skip


def metrics_of(s: State, rows: list[dict[str, float]]) -> dict[str, float]:
    """Means over the updates of this iteration beside what was gathered."""
    metrics = s.gathering.metrics(s.counts)
    metrics |= {
        "optim/lr": s.cfg.lr * pace(s),
        "optim/param_norm": float(torch.linalg.vector_norm(s.agent.params.flat)),
    }
    names = dict.fromkeys(name for row in rows for name in row)
    return metrics | {name: float(np.mean([row[name] for row in rows if name in row])) for name in names}
