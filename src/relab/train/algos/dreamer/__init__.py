"""Dreamer: a world model, and an actor-critic that learns in its dreams (DreamerV3, Hafner et al. 2023).

init() makes the state of a run; iterate() takes `steps` steps in every world and the updates that are due on the way.
learning.update is one of them; world_model.py, behaviour.py and equations.py hold what is computed, the files called
fast_... how that is done in little time; docs/algorithms/dreamer.md says what it means.
"""

from __future__ import annotations

import numpy as np

from relab.base.streams import generator
from relab.config.base import require
from relab.config.dreamer import Dreamer
from relab.record.spec import Spec
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import fast_dream, metrics
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.learning import pace_of, rehearse, update
from relab.train.algos.dreamer.optimiser import LaProp
from relab.train.algos.dreamer.state import State, load_agent
from relab.train.algos.dreamer.surprise import Focus, Surprise
from relab.train.algos.gathering import Gathering, act_and_update
from relab.train.contract import Setup, Stopwatch
from relab.train.kernels import blas, pages
from relab.train.kernels.jit import compiled
from relab.train.kernels.rng import fill_uniform
from relab.train.rollout import Acted, Policy

__all__ = ["CLOCK", "State", "first_time", "follow_weights", "init", "iterate", "load_agent", "make_agent"]
CLOCK = "agent_steps"
BETAS = (0.9, 0.999)


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
    pages.keep()
    agent = make_agent(cfg, setup.env.spec, setup.seed, setup.device)
    rates = {"model": cfg.lr, "actor": cfg.lr_actor or cfg.lr, "critic": cfg.lr_critic or cfg.lr}
    gathering = Gathering.begin(setup, cfg.envs, cfg.replay, agent.head.action_buffer(1), agent.memory_dim)
    optimiser = LaProp(agent.params, rates, cfg.grad_clip, cfg.lr_warmup, BETAS)
    state = State(cfg, agent, optimiser, eq.ReturnScale(), gathering, setup.total,
                  generator(setup.seed, "minibatch"), generator(setup.seed, "noise"), Surprise(),
                  Focus(cfg.focus, cfg.focus_updates, cfg.focus_cooldown))  # fmt: skip
    rehearse(state)
    return state


def first_time() -> str:
    """What takes long before the first update on this machine; empty where it was done before."""
    if not blas.AVAILABLE or compiled(fast_dream.dream):
        return ""
    return "compiling the learner, once on this machine (half a minute)"


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """`steps` steps of every world, with the updates that fall due on the way."""
    replay = s.gathering.replay
    before = replay.count
    rows = act_and_update(s, watch, behaviour_of, update)
    return metrics.of_iteration(s, rows, pace_of(s), (replay.count - before) * replay.columns)


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
