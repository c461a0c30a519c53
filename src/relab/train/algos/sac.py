"""SAC: an actor that is paid for staying random, and two critics of which the smaller counts (Haarnoja et al. 2018).

    y = r + gamma (min(Q1', Q2')(s', a') - alpha ln pi(a'|s')),   L_critic = E[(Q(s, a) - y)²] / 2
    L_actor = E[alpha ln pi(a|s) - min(Q1, Q2)(s, a)],   L_alpha = -ln alpha E[ln pi(a|s) + target entropy]

init() makes the state of a run; iterate() takes `steps` steps in every world and the updates that are due on the way.
Agent.act() is the only door for evaluation and probes: tanh of the mean in the mode, else drawn.
Details, metrics and benchmark: docs/algorithms/sac.md.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.base.streams import generator, get_state, set_state
from relab.config.base import require
from relab.config.sac import SAC
from relab.record.spec import Spec
from relab.train.algos.gathering import Gathering, act_and_update, require_vectors
from relab.train.algos.gathering import check_start as check
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.kernels.crew import Crew, one_blas_thread
from relab.train.kernels.jit import compile_note
from relab.train.kernels.rng import fill_uniform
from relab.train.nets import fastmlp
from relab.train.nets import soft_actor_critic as soft
from relab.train.nets.fastmlp import Layout
from relab.train.nets.heads import Head
from relab.train.nets.mlps import Adam, Networks, follow
from relab.train.nets.soft_actor_critic import Batch, Nets, Stats
from relab.train.nets.temperature import Temperature
from relab.train.replay import Replay, Rows
from relab.train.rollout import Acted, Policy

CLOCK = "agent_steps"
FIRST_ACTOR = 0.01  # scale of the actor's last weights: it begins with mean 0 and standard deviation 1 everywhere


class Agent:
    """Actor and critics; actions are in [-1, 1] until `to_env` scales them to the box."""

    memory_dim = 0

    def __init__(self, cfg: SAC, spec: Spec, rng: np.random.Generator):
        self.cfg, self.spec, self.head, self.dim = cfg, spec, Head.of(spec.action), spec.action.dim
        critic = (spec.obs_dim + self.dim, *cfg.hidden, 1)
        sizes = {"q1": critic, "q2": critic, "actor": (spec.obs_dim, *cfg.hidden, 2 * self.dim)}
        self.nets = Networks(sizes, cfg.activation, rng, last={"actor": FIRST_ACTOR})
        self.layouts = Nets(**self.nets.layouts)

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        rows = len(obs_BD)
        noise, action = np.empty((2, rows, self.dim), np.float32)
        logp = np.empty(rows, np.float32)
        soft.draw_noise(rng_B, n_mode, noise)
        soft.squash(self.outputs(self.layouts.actor, obs_BD), noise, action, logp)
        return Acted(action, logp, memory_BM)

    def outputs(self, net: Layout, x_BD: np.ndarray) -> np.ndarray:
        rows, x = len(x_BD), np.ascontiguousarray(x_BD, np.float32).reshape(-1)
        work = np.empty(rows * int(net.sizes[1:].sum()), np.float32)
        return fastmlp.forward(self.nets.flat, net, x, rows, work)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return self.head.to_env(action)

    def value(self, obs_BD: np.ndarray, memory_BM: np.ndarray) -> np.ndarray:
        """min(Q1, Q2) of the mode's action, for probes; it holds the entropy to come, as the critics do."""
        mode = np.tanh(self.outputs(self.layouts.actor, obs_BD)[:, : self.dim])
        x = np.concatenate((obs_BD, mode), axis=1)
        return np.minimum(self.outputs(self.layouts.q1, x), self.outputs(self.layouts.q2, x))[:, 0]


class Even:
    """Acts before there is anything to learn from: every action in [-1, 1] is as likely."""

    memory_dim = 0

    def __init__(self, agent: Agent):
        self.dim, self.to_env = agent.dim, agent.to_env

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        drawn = np.empty((len(obs_BD), self.dim))
        fill_uniform(rng_B, drawn)
        return Acted((2 * drawn - 1).astype(np.float32), np.full(len(drawn), -self.dim * math.log(2)), memory_BM)


@dataclass
class State:
    """All that a SAC run needs to go on; the replay lies in the record's data."""

    cfg: SAC
    agent: Agent
    target: np.ndarray  # the slow copies of the critics
    adam: Adam
    temperature: Temperature
    gathering: Gathering
    draw: np.random.Generator  # which transitions are learned from
    noise: np.random.Generator  # of the actions in updates
    room: soft.Room
    crew: Crew
    counts: Counts = field(default_factory=Counts)

    @property
    def replay(self) -> Replay:
        return self.gathering.replay

    def to_tree(self) -> Tree:
        return {
            "params": self.agent.nets.named,
            "target": {"flat": self.target},
            "adam": self.adam.to_tree(),
            "temperature": self.temperature.to_tree(),
            **self.gathering.to_tree(),
            "draw": get_state(self.draw),
            "noise": get_state(self.noise),
            "counts": vars(self.counts),
        }

    def load(self, tree: Tree) -> None:
        load_agent(self.agent, tree)
        self.target[:] = tree["target"]["flat"]
        self.adam.load(tree["adam"])
        self.temperature.load(tree["temperature"])
        self.gathering.load(tree)
        set_state(self.draw, tree["draw"])
        set_state(self.noise, tree["noise"])
        self.counts = Counts(**tree["counts"])


def load_agent(agent: Agent, tree: Tree) -> None:
    """The acting part of a checkpoint alone."""
    agent.nets.load(tree["params"])


def make_agent(cfg: SAC, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Agent:
    other = "algo=dqn, or algo=ppo" if spec.action.kind == "discrete" and not spec.obs_shape else "algo=ppo"
    require(spec.action.kind == "continuous", f"sac needs continuous actions, but {spec.env} has {spec.action.kind}"
            f" ones; try {other}")  # fmt: skip
    open_ends = int((~Head.of(spec.action).box[0]).sum())
    require(open_ends == 0, f"sac needs actions between two finite bounds, but {open_ends} of the {spec.action.dim}"
            f" components of {spec.env} have none; bound them in the environment, or try algo=ppo")  # fmt: skip
    require_vectors("sac", spec, device)
    one_blas_thread()
    return Agent(cfg, spec, generator(seed, "init"))


def first_time() -> str:
    return compile_note(soft.learn)


def init(setup: Setup) -> State:
    cfg: SAC = setup.cfg
    agent = make_agent(cfg, setup.env.spec, setup.seed, setup.device)
    check(setup)
    gathering = Gathering.begin(setup, cfg.envs, cfg.replay, np.zeros((1, agent.dim), np.float32))
    wanted = -float(agent.dim) if cfg.target_entropy is None else cfg.target_entropy
    weights = agent.nets.flat
    state = State(cfg, agent, weights[agent.nets.part("q1", "q2")].copy(), Adam(weights.size, cfg.adam_eps),
                  Temperature(cfg.temperature, wanted, cfg.adam_eps), gathering, generator(setup.seed, "minibatch"),
                  generator(setup.seed, "noise"), soft.room(cfg.minibatch, agent.layouts, weights.size),
                  Crew(min(setup.threads, soft.SHARES)))  # fmt: skip
    rehearse(state)
    return state


def rehearse(s: State) -> None:
    """Compile what learns, on copies: at the first update, long after the word of it, the run would seem to hang."""
    own = {name: copy.deepcopy(getattr(s, name)) for name in ("agent", "target", "adam", "temperature", "noise")}
    learn(replace(s, **own, counts=Counts()), Rows(*np.zeros((2, s.cfg.minibatch), np.int64)))


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """`steps` steps of every world, with the updates that fall due on the way."""
    before = s.agent.nets.flat.copy()
    return metrics_of(s, act_and_update(s, watch, behaviour, update), before)


def behaviour(s: State) -> Policy:
    return Even(s.agent) if s.counts.agent_steps < s.cfg.learning_starts else s.agent


def update(s: State) -> tuple[Stats, float, float]:
    """One step of critics, actor, temperature and slow copies -> what it looked like, alpha, the temperature's loss."""
    return learn(s, s.replay.uniform(s.draw, s.cfg.minibatch, ahead=s.cfg.n_step - 1))


def learn(s: State, rows: Rows) -> tuple[Stats, float, float]:
    cfg, alpha, replay = s.cfg, s.temperature.alpha, s.replay
    total, discount, last = targets(replay, rows, cfg)
    batch = Batch(replay.gather(rows, "obs"), replay.gather(rows, "action"), total, discount,
                  replay.gather(last, "next_obs"), replay.gather(last, "terminated"))  # fmt: skip
    noise = s.noise.standard_normal((2, cfg.minibatch, s.agent.dim), np.float32)
    stats = np.empty(len(Stats._fields))
    of: Any = (s.agent.nets.flat, s.target, s.adam.m, s.adam.v, s.agent.layouts, batch, noise, alpha,
               s.adam.count(cfg.lr), s.room, stats)  # fmt: skip
    soft.learn(*of) if s.crew.size == 1 else soft.learn_by(s.crew, *of)
    s.counts.updates += 1
    seen = Stats(*stats)
    loss = adjust_temperature(s, seen.entropy) if cfg.temperature is None else math.nan
    follow_critics(s)
    return seen, alpha, loss


def targets(replay: Replay, rows: Rows, cfg: SAC) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Return, discount behind it and the row whose successor it bootstraps from."""
    return replay.n_step(rows, cfg.n_step, cfg.gamma)


def adjust_temperature(s: State, entropy: float) -> float:
    return s.temperature.step(entropy, s.cfg.lr)


def follow_critics(s: State) -> None:
    follow(s.target, s.agent.nets.flat[: s.target.size], s.cfg.tau)


def follow_weights(s: State) -> None:
    """The networks were given another run's weights: the slow copies of the critics begin with them too."""
    s.target[:] = s.agent.nets.flat[: s.target.size]


def metrics_of(s: State, seen: list[tuple[Stats, float, float]], before: np.ndarray) -> dict[str, float]:
    metrics = s.gathering.metrics(s.counts)
    metrics |= {"optim/lr": s.cfg.lr, "optim/adam_steps": s.adam.updates, "optim/temperature": s.temperature.alpha}
    metrics["optim/param_norm"] = float(np.linalg.norm(s.agent.nets.flat))
    if not seen:
        return metrics
    stats, moved = np.array([stats for stats, _, _ in seen]), s.agent.nets.flat - before
    mean, most = Stats(*stats.mean(0)), Stats(*stats.max(0))
    norms = np.hypot(stats[:, -2], stats[:, -1])
    metrics |= {
        "value/critic_loss": mean.critic_loss, "value/td_error": mean.td_error, "value/q_mean": mean.q_mean,
        "value/target_mean": mean.target_mean, "value/target_max": most.target_max, "value/after_end": most.after_end,
        "policy/actor_loss": mean.actor_loss, "policy/entropy": mean.entropy, "policy/std_mean": mean.std_mean,
        "policy/std_max": most.std_max, "optim/grad_norm": norms.mean(), "optim/grad_norm_max": norms.max(),
        "data/batch": len(seen) * s.cfg.minibatch, "optim/step_rms": math.sqrt(float(np.square(moved).mean())),
        "optim/step_max": np.abs(moved).max(), "optim/temperature": float(np.mean([alpha for _, alpha, _ in seen])),
    }  # fmt: skip
    if s.cfg.temperature is None:
        metrics["optim/temperature_loss"] = float(np.mean([loss for _, _, loss in seen]))
    return {name: float(x) for name, x in metrics.items()}
