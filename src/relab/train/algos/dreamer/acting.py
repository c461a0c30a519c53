"""Who acts? The agent as the settings make it, or, before there is anything to learn from, one that draws evenly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from relab.base.streams import generator, world_seeds
from relab.config.base import require
from relab.config.dreamer import Dreamer
from relab.record.spec import Spec
from relab.train.algos.dreamer.agent import Agent
from relab.train.algos.dreamer.frames import ImageGathering
from relab.train.algos.gathering import Gathering
from relab.train.contract import Counts, Setup
from relab.train.device import is_cpu
from relab.train.envs.base import Env
from relab.train.kernels.crew import one_blas_thread
from relab.train.kernels.rng import fill_uniform, mix
from relab.train.rollout import Acted


def make_agent(cfg: Dreamer, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Agent:
    require(is_cpu(device), f"dreamer runs on the cpu, but `device` is {device}")
    one_blas_thread()  # threads of its own would spin, and change the last digits of sums
    return Agent(cfg, spec, generator(seed, "init"), threads)


class Even:
    """Acts before there is anything to learn from: every action is as likely, and nothing is remembered."""

    def __init__(self, agent: Agent):
        self.actions, self.memory_dim, self.to_env = agent.actions, agent.memory_dim, agent.to_env

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        drawn, sizes = np.empty((len(obs_BD), self.actions.dim)), self.actions.sizes
        fill_uniform(rng_B, drawn)
        action = (drawn * np.array(sizes)).astype(np.int64) if sizes else (2 * drawn - 1).astype(np.float32)
        return Acted(action, np.zeros(len(drawn), np.float32), memory_BM)


class Learned:
    """Acts with the weights that learn, where their average is what is evaluated."""

    def __init__(self, agent: Agent):
        self.agent, self.memory_dim, self.to_env = agent, agent.memory_dim, agent.to_env

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        return self.agent.act_by(self.agent.model, self.agent.behaviour, obs_BD, memory_BM, rng_B, n_mode)


@dataclass
class Acting:
    """What a collector's process needs of a run."""

    agent: Agent
    gathering: Gathering
    counts: Counts


def acting(setup: Setup, env: Env, stream: str) -> Acting:
    """Worlds and an agent that act, and a replay of two steps, in a process of their own."""
    cfg = setup.cfg
    here = replace(setup, env=env)
    agent = make_agent(cfg, env.spec, setup.seed, setup.device, setup.threads)
    rows = cfg.envs * env.spec.agents
    gathers = ImageGathering if env.spec.obs_shape else Gathering
    g = gathers.begin(here, cfg.envs, 2 * rows, agent.head.action_buffer(1), agent.memory_dim)
    g.worlds.reset(world_seeds(setup.seed, f"env/{stream}", cfg.envs))
    g.rng_B = mix(world_seeds(setup.seed, f"action/{stream}", rows))
    return Acting(agent, g, Counts())
