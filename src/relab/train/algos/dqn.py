"""DQN: Q-learning with a replay and a slow copy of the network (Mnih et al. 2015).

    y = r + ... + gamma^(n-1) r' + gamma^n Q_target(s', argmax_a Q(s', a)),   L = E[huber(Q(s, a) - y)]

init() makes the state of a run; iterate() takes `steps` steps in every world and the updates that are due on the way.
Agent.act() is the only door for evaluation and probes: greedy in the mode, epsilon-greedy where it samples.
Details, metrics and benchmark: docs/algorithms/dqn.md.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field, replace

import numpy as np

from relab.base.documents import Tree
from relab.base.streams import generator, get_state, set_state
from relab.base.text import plural
from relab.config.base import require
from relab.config.dqn import DQN
from relab.record.spec import Spec
from relab.train.algos.gathering import Gathering, act_and_update, require_vectors
from relab.train.algos.gathering import check_start as check
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.kernels.crew import one_blas_thread
from relab.train.kernels.jit import compile_note, njit
from relab.train.kernels.rng import integer, uniform
from relab.train.nets import fastmlp, q_learning
from relab.train.nets.mlps import Adam, Networks, follow
from relab.train.nets.q_learning import QStats
from relab.train.replay import Replay, Rows
from relab.train.rollout import Acted

CLOCK = "agent_steps"


class Agent:
    """The Q network, and how much it explores."""

    memory_dim = 0
    value_of = "det"  # what its `value` says is that of greedy actions

    def __init__(self, cfg: DQN, spec: Spec, rng: np.random.Generator):
        self.cfg, self.spec, self.choices = cfg, spec, spec.action.n[0]
        sizes = (spec.obs_dim, *cfg.hidden, self.choices + cfg.dueling)
        self.nets = Networks({"q": sizes}, cfg.activation, rng)
        self.net = self.nets.layouts["q"]
        self.epsilon = cfg.epsilon

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        rows, out_BK = len(obs_BD), self.outputs(obs_BD)
        action, logp = np.empty((rows, 1), np.int64), np.empty(rows, np.float32)
        explore(out_BK, self.choices, self.epsilon, rng_B, n_mode, action, logp)
        return Acted(action, logp, memory_BM)

    def outputs(self, obs_BD: np.ndarray) -> np.ndarray:
        rows, x = len(obs_BD), np.ascontiguousarray(obs_BD, np.float32).reshape(-1)
        work = np.empty(rows * int(self.net.sizes[1:].sum()), np.float32)
        return fastmlp.forward(self.nets.flat, self.net, x, rows, work)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return action

    def value(self, obs_BD: np.ndarray, memory_BM: np.ndarray) -> np.ndarray:
        """V(s) = max_a Q(s, a), for probes."""
        out_BK = self.outputs(obs_BD)
        q = out_BK[:, : self.choices]
        mean = out_BK[:, self.choices] - q.mean(1) if self.cfg.dueling else 0.0
        return np.asarray(q.max(1) + mean)


@njit(cache=True)
def explore(out_BK, choices, epsilon, rng_B, n_mode, action_B1, logp_B):
    """Epsilon-greedy; the first `n_mode` rows are greedy. Every row draws the same numbers, whatever it chooses."""
    for b in range(out_BK.shape[0]):
        best = 0
        for k in range(1, choices):
            if out_BK[b, k] > out_BK[b, best]:
                best = k
        chosen = best
        if b >= n_mode:
            draw, other = uniform(rng_B, b), integer(rng_B, b, choices)
            chosen = other if draw < epsilon else best
        action_B1[b, 0] = chosen
        share = epsilon / choices
        logp_B[b] = np.log(share + (1.0 - epsilon if chosen == best else 0.0)) if b >= n_mode else 0.0


@dataclass
class State:
    """All that a DQN run needs to go on; the replay lies in the record's data."""

    cfg: DQN
    agent: Agent
    target: np.ndarray  # the slow copy of the network
    adam: Adam
    gathering: Gathering
    draw: np.random.Generator  # which transitions are learned from
    total: int
    room: q_learning.Room
    counts: Counts = field(default_factory=Counts)

    @property
    def replay(self) -> Replay:
        return self.gathering.replay

    def to_tree(self) -> Tree:
        return {
            "params": self.agent.nets.named,
            "target": {"flat": self.target},
            "adam": self.adam.to_tree(),
            **self.gathering.to_tree(),
            "draw": get_state(self.draw),
            "counts": vars(self.counts),
            "epsilon": self.agent.epsilon,
        }

    def load(self, tree: Tree) -> None:
        load_agent(self.agent, tree)
        self.target[:] = tree["target"]["flat"]
        self.adam.load(tree["adam"])
        self.gathering.load(tree)
        set_state(self.draw, tree["draw"])
        self.counts = Counts(**tree["counts"])


def load_agent(agent: Agent, tree: Tree) -> None:
    """The acting part of a checkpoint alone."""
    agent.nets.load(tree["params"])
    agent.epsilon = float(tree["epsilon"])


def make_agent(cfg: DQN, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Agent:
    one = spec.action.kind == "discrete" and len(spec.action.n) == 1
    other = "algo=sac, or algo=ppo" if spec.action.kind == "continuous" and not spec.obs_shape else "algo=ppo"
    require(one, f"dqn needs one discrete choice per step, but an action of {spec.env} is {spec.action.kind} and has"
            f" {plural(spec.action.dim, 'component')}; try {other}")  # fmt: skip
    require_vectors("dqn", spec, device)
    one_blas_thread()
    return Agent(cfg, spec, generator(seed, "init"))


def first_time() -> str:
    return compile_note(q_learning.q_gradient)


def init(setup: Setup) -> State:
    cfg: DQN = setup.cfg
    agent = make_agent(cfg, setup.env.spec, setup.seed, setup.device)
    check(setup)
    gathering = Gathering.begin(setup, cfg.envs, cfg.replay, np.zeros((1, 1), np.int64))
    adam, draw = Adam(agent.nets.flat.size, cfg.adam_eps), generator(setup.seed, "minibatch")
    room = q_learning.room(cfg.minibatch, agent.net)
    state = State(cfg, agent, agent.nets.flat.copy(), adam, gathering, draw, setup.total, room)
    rehearse(state)
    return state


def rehearse(s: State) -> None:
    """Compile what learns, on copies: at the first update, long after the word of it, the run would seem to hang."""
    copies = replace(s, agent=copy.deepcopy(s.agent), target=s.target.copy(), adam=copy.deepcopy(s.adam),
                     counts=Counts())  # fmt: skip
    learn(copies, Rows(*np.zeros((2, s.cfg.minibatch), np.int64)))
    copy_target(copies)


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """`steps` steps of every world, with the updates that fall due on the way."""
    before = s.agent.nets.flat.copy()
    return metrics_of(s, act_and_update(s, watch, behaviour, update), before)


def behaviour(s: State) -> Agent:
    s.agent.epsilon = exploration(s.cfg, s.counts.agent_steps / s.total)
    return s.agent


def exploration(cfg: DQN, used: float) -> float:
    """Share of random actions when that share of the run is over: a straight line down, then constant."""
    fallen = min(1.0, used / cfg.epsilon_until) if cfg.epsilon_until else 1.0
    return cfg.epsilon + fallen * (cfg.epsilon_final - cfg.epsilon)


def update(s: State) -> tuple[QStats, float]:
    """One optimiser step on a minibatch -> what it looked like, the gradient's norm."""
    return learn(s, s.replay.uniform(s.draw, s.cfg.minibatch, ahead=s.cfg.n_step - 1))


def learn(s: State, rows: Rows) -> tuple[QStats, float]:
    cfg, net = s.cfg, s.agent.net
    total, discount, last = targets(s.replay, rows, cfg)
    grad, stats = np.empty_like(s.target), np.empty(6)
    q_learning.q_gradient(
        s.agent.nets.flat, s.target, net, s.replay.gather(rows, "obs"), s.replay.gather(rows, "action")[:, 0], total,
        discount, s.replay.gather(last, "next_obs"), s.replay.gather(last, "terminated"), cfg.double, cfg.dueling,
        *s.room, grad, stats,
    )  # fmt: skip
    norm = s.adam.step(s.agent.nets.flat, grad, learning_rate(s), cfg.max_grad_norm)
    s.counts.updates += 1
    if s.counts.updates % cfg.target_every == 0:
        copy_target(s)
    return QStats(*stats), norm


def targets(replay: Replay, rows: Rows, cfg: DQN) -> tuple[np.ndarray, np.ndarray, Rows]:
    """Return, discount behind it and the row whose successor it bootstraps from."""
    return replay.n_step(rows, cfg.n_step, cfg.gamma)


def copy_target(s: State) -> None:
    follow(s.target, s.agent.nets.flat, s.cfg.tau)


def follow_weights(s: State) -> None:
    """The network was given another run's weights: the slow copy begins with them too."""
    s.target[:] = s.agent.nets.flat


def learning_rate(s: State) -> float:
    used = min(1.0, s.counts.agent_steps / s.total)
    return s.cfg.lr * (1 + used * (s.cfg.lr_final - 1))


def metrics_of(s: State, seen: list[tuple[QStats, float]], before: np.ndarray) -> dict[str, float]:
    metrics = s.gathering.metrics(s.counts)
    metrics |= {"policy/exploration": s.agent.epsilon, "optim/lr": learning_rate(s), "optim/adam_steps": s.adam.updates}
    metrics["optim/param_norm"] = float(np.linalg.norm(s.agent.nets.flat))
    if not seen:
        return metrics
    stats, norms = np.array([stats for stats, _ in seen]), np.array([norm for _, norm in seen])
    moved = s.agent.nets.flat - before
    mean = QStats(*stats.mean(0))
    metrics |= {
        "value/critic_loss": mean.loss, "value/td_error": mean.td_error, "value/q_mean": mean.q_mean,
        "value/target_mean": mean.target_mean, "value/target_max": stats[:, 4].max(),
        "value/after_end": stats[:, 5].max(), "optim/grad_norm": norms.mean(), "optim/grad_norm_max": norms.max(),
        "optim/grad_clipped_share": (norms > s.cfg.max_grad_norm).mean(), "data/batch": len(seen) * s.cfg.minibatch,
        "optim/step_rms": math.sqrt(float(np.square(moved).mean())), "optim/step_max": np.abs(moved).max(),
    }  # fmt: skip
    return {name: float(x) for name, x in metrics.items()}
