"""Dreamer: a world model, and an actor-critic that learns in its dreams (DreamerV3, Hafner et al. 2023).

init() makes the state of a run; iterate() takes `steps` steps in every world and the updates that are due on the way.
learning.update is one of them; world_model.py, behaviour.py and equations.py hold what is computed, the files called
fast_... how that is done in little time; docs/algorithms/dreamer.md says what it means.
"""

from __future__ import annotations

import math
from typing import Any

from relab.base.streams import generator
from relab.config.base import require
from relab.config.dreamer import Dreamer
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import fast_dream, metrics
from relab.train.algos.dreamer.acting import Even, Learned, make_agent
from relab.train.algos.dreamer.collector import Collector, order_of
from relab.train.algos.dreamer.frames import ImageGathering
from relab.train.algos.dreamer.latents import Latents, Noting
from relab.train.algos.dreamer.learning import pace_of, rehearse, update
from relab.train.algos.dreamer.optimiser import LaProp
from relab.train.algos.dreamer.remote import Remote, RemoteImages
from relab.train.algos.dreamer.state import State, load_agent
from relab.train.algos.dreamer.surprise import Focus, Surprise
from relab.train.algos.gathering import Gathering, act_and_update
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.kernels import blas, pages
from relab.train.kernels.jit import compiled
from relab.train.rollout import Policy

__all__ = ["CLOCK", "WHOLE", "Even", "State", "borrowed", "close", "first_time", "follow_weights", "init", "iterate",
           "load_agent", "make_agent", "resets"]  # fmt: skip
CLOCK = "agent_steps"
WHOLE = True  # half of another run's world model would be worse than none
BETAS = (0.9, 0.999)


def follow_weights(s: State) -> None:
    """The networks were given another run's weights: the slow critic begins with them too."""
    s.agent.copy_weights()


def init(setup: Setup) -> State:
    cfg: Dreamer = setup.cfg
    check(setup)
    pages.keep()
    agent = make_agent(cfg, setup.env.spec, setup.seed, setup.device, setup.threads)
    rates = {"model": cfg.lr, "actor": cfg.lr_actor or cfg.lr, "critic": cfg.lr_critic or cfg.lr}
    gathering = gathers(setup).begin(setup, cfg.envs, cfg.replay, agent.head.action_buffer(1), agent.memory_dim)
    optimiser = LaProp(agent.params, rates, cfg.grad_clip, cfg.lr_warmup, BETAS)
    state = State(cfg, agent, optimiser, eq.ReturnScale(), gathering, setup.total,
                  generator(setup.seed, "minibatch"), generator(setup.seed, "noise"), Surprise(),
                  Focus(cfg.focus, cfg.focus_updates, cfg.focus_cooldown))  # fmt: skip
    if cfg.latents == "stored":
        state.latents = Latents.of(gathering.replay, cfg.deter, agent.model.latent)
    rehearse(state)
    if isinstance(gathering, Remote):
        prepare_remote(state, gathering, setup)
    return state


def gathers(setup: Setup) -> type[Gathering]:
    """How steps are kept: as images or as numbers, gathered here or elsewhere."""
    images, own = bool(setup.env.spec.obs_shape), setup.cfg.collector == "own"
    return (RemoteImages if images else Remote) if own else ImageGathering if images else Gathering


def prepare_remote(s: State, gathering: Remote, setup: Setup) -> None:
    """A collector that starts with the first step; a run that goes on draws other worlds than before."""

    def start(counts: Counts) -> Collector:
        order = order_of(setup, f"own/{counts.env_steps}", max(0, s.cfg.learning_starts - counts.agent_steps))
        return Collector.start(order, s.agent.collecting.flat.numpy(), s.cfg.queue)

    order_of(setup, "", 0)  # told now where it cannot work
    gathering.starts, gathering.noted = start, s.latents.note if s.latents is not None else None


def close(s: State) -> None:
    """The run is over, or interrupted: no process may stay behind."""
    if isinstance(s.gathering, Remote):
        s.gathering.close()


def resets(cfg: Any) -> str:
    """A collector of its own has no checkpoint."""
    return "the collector's worlds, which begin new episodes" if cfg.collector == "own" else ""


def borrowed(cfg: Any) -> tuple[str, ...]:
    """Dreams of a world model that nobody trained, and nobody ever will, teach nothing."""
    return ("model",) if cfg.mode == "behaviour" else ()


def check(setup: Setup) -> None:
    """ConfigError where nothing, or hardly anything, would be learned from."""
    cfg, steps = setup.cfg, setup.total - setup.cfg.learning_starts
    check_length(cfg.length, setup.env.spec.horizon)
    require(steps > 0, f"`learning_starts` = {cfg.learning_starts:,} must lie before the end of the run, but"
            f" total_steps is {setup.total:,}: nothing would be learned; lower it, or train longer")  # fmt: skip
    require(steps * cfg.updates_per_step >= 1, f"`updates_per_step` must make at least one update, but"
            f" {cfg.updates_per_step:g} for each of the {steps:,} steps after learning starts make"
            f" {steps * cfg.updates_per_step:.2g}; raise it, or train longer")  # fmt: skip
    require(cfg.replay_ratio >= 1, f"every step must be learned from at least once on average, but `updates_per_step` *"
            f" `sequences` * `length` = {cfg.updates_per_step:g} * {cfg.sequences} * {cfg.length} ="
            f" {cfg.replay_ratio:.3g} leave {math.exp(-cfg.replay_ratio):.0%} of the steps unused: the learner starves;"
            " raise one of them")  # fmt: skip
    updates = steps * cfg.updates_per_step
    require(cfg.warmup_updates < updates, f"`warmup_updates` = {cfg.warmup_updates:,} must leave updates for the actor,"
            f" but the run makes {updates:,.0f} of them; lower it, or train longer")  # fmt: skip
    require(cfg.mode != "full" or cfg.model_updates < updates, f"`model_updates` = {cfg.model_updates:,} must leave"
            f" more than one update for the actor, but the run makes {updates:,.0f} in all; lower it, or train longer"
            )  # fmt: skip
    low = cfg.lr_until * setup.total
    require(cfg.lr_final == 1 or low > cfg.learning_starts, "the step size must not have fallen before learning"
            f" begins, but it comes to {cfg.lr_final:g} of `lr` at step {low:,.0f} (`lr_until` {cfg.lr_until:g} of"
            f" {setup.total:,}), and `learning_starts` is {cfg.learning_starts:,}; train longer, or set lr_until=1"
            )  # fmt: skip


def check_length(length: int, horizon: int | None) -> None:
    """No sequence is longer than every episode: most of its rows would begin anew."""
    require(not horizon or length <= horizon + 1, "a sequence must not be longer than any episode, but `length` is"
            f" {length:,} rows and no episode has more than {(horizon or 0) + 1:,} (a time limit of {horizon or 0:,}"
            f" steps); set algo.length={(horizon or 0) + 1} or less")  # fmt: skip


def first_time() -> str:
    """What takes long before the first update on this machine; empty where it was done before."""
    if not blas.AVAILABLE or compiled(fast_dream.dream):
        return ""
    return "compiling the learner, once on this machine (about a minute of one core)"


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """`steps` steps of every world, with the updates that fall due on the way."""
    replay = s.gathering.replay
    before = replay.count
    made = act_and_update(s, watch, behaviour_of, update)
    if isinstance(s.gathering, Remote) and s.gathering.collector is not None:
        s.gathering.collector.send(s.agent.collecting.flat.numpy(), s.counts.updates)
    return metrics.of_iteration(s, made, pace_of(s), (replay.count - before) * replay.columns)


def behaviour_of(s: State) -> Policy:
    early = s.counts.agent_steps < s.cfg.learning_starts
    policy = Even(s.agent) if early else Learned(s.agent) if s.cfg.collects == "learned" else s.agent
    return policy if s.latents is None else Noting(policy, s.latents)
