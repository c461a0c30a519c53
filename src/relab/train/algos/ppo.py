"""PPO: clipped policy gradient (Schulman et al. 2017).

    L = -E[min(r A, clip(r, 1-eps, 1+eps) A)] + c_v E[(V - G)²] / 2 - c_e E[H]

init() makes the state of a run, iterate() acts for one batch and learns from it; Agent.act() (ppo_agent.py) is the only
door for evaluation and probes. Details, metrics and benchmark: docs/algorithms/ppo.md.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.base.streams import generator, get_state, set_state, world_seeds
from relab.config import registry
from relab.config.ppo import PPO
from relab.train import rollout
from relab.train.algos import ppo_metrics
from relab.train.algos.episode_metrics import episode_metrics, recent_returns
from relab.train.algos.ppo_agent import Agent, load_agent, make_agent
from relab.train.algos.ppo_learner import FastLearner, Pace, SequenceLearner, Steps, TorchLearner, ppo_epochs
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.device import is_cpu
from relab.train.envs.base import Worlds
from relab.train.kernels import ahead
from relab.train.kernels.ahead import Ahead
from relab.train.kernels.jit import compile_note, compiled
from relab.train.nets import fastmlp, losses, mlps, optim, returns
from relab.train.nets.losses import Batch, Coefs
from relab.train.nets.normalise import Running, discounted_sums
from relab.train.rollout import Trajectory

CLOCK = "agent_steps"
LEARNER, COLLECTOR = "learner", "collector"  # parts that are compiled ahead


@dataclass
class State:
    """All that a PPO run needs to go on, and nothing that it does not."""

    cfg: PPO
    agent: Agent
    worlds: Worlds
    traj: Trajectory
    cursor: rollout.Cursor
    adam: Any  # mlps.Adam, torch's twin on other devices than the CPU, or another optimiser of torch's
    learner: FastLearner | TorchLearner | SequenceLearner
    shuffle: np.random.Generator
    reward_scale: Running
    reward_sums: np.ndarray  # discounted reward sum per row, for the reward scale
    total_steps: int
    lr: float
    counts: Counts = field(default_factory=Counts)
    ahead: Ahead | None = None  # what still compiles, the first time on a machine
    recent: deque[float] = field(default_factory=recent_returns)
    setup: Setup | None = None  # what other ranks are made of
    team: Any = None  # ppo_ranks.Team, from the first iteration on, where several processes train

    def to_tree(self) -> Tree:
        """The state as a tree of arrays and plain numbers, for a checkpoint."""
        cursor = {"memory": self.cursor.memory_BM, "fresh": self.cursor.fresh_B, "rng": self.cursor.rng_B}
        return {
            "params": {name: t.detach() for name, t in self.agent.params.named.items()},
            "adam": self.adam.to_tree(),
            "worlds": self.worlds.snapshot(),
            "cursor": cursor,
            "obs_scale": self.agent.scale.to_tree(),
            "reward_scale": self.reward_scale.to_tree(),
            "reward_sums": self.reward_sums,
            "shuffle": get_state(self.shuffle),
            "counts": vars(self.counts),
            "recent": list(self.recent),
            "lr": self.lr,
        }

    def load(self, tree: Tree) -> None:
        close(self)
        load_agent(self.agent, tree)
        self.adam.load(tree["adam"])
        self.worlds.restore(tree["worlds"])
        self.cursor = rollout.Cursor(*(tree["cursor"][k].copy() for k in ("memory", "fresh", "rng")))
        self.reward_scale.load(tree["reward_scale"])
        self.reward_sums = tree["reward_sums"].copy()
        set_state(self.shuffle, tree["shuffle"])
        self.counts = Counts(**tree["counts"])
        self.recent.extend(tree["recent"])
        self.lr = tree["lr"]


def first_time() -> str:
    return compile_note(fastmlp.forward_blocks)


def init(setup: Setup) -> State:
    state = build(setup)
    state.setup = setup
    state.ahead = compile_ahead(state)
    return state


def check(setup: Setup) -> None:
    if setup.cfg.ranks > 1:
        from relab.train.algos import ppo_ranks

        ppo_ranks.check(setup)


def close(s: State) -> None:
    """End the other ranks, where there are any."""
    if s.team is not None:
        team, s.team = s.team, None
        team.close()


def compile_ahead(s: State) -> Ahead | None:
    """On a machine without kernels: a second process for those that learn, then for the one that collects."""
    collector = getattr(s.worlds.env, "collect", None)
    if not s.agent.fast or (compiled(ppo_epochs) and (not collector or compiled(registry.load(collector)))):
        return None
    name, like = s.worlds.env.name, "pendulum-v1" if s.agent.head.gaussian else "cartpole-v1"
    return ahead.start("relab.train.algos.ppo:compile_parts", name if name in registry.env_names() else like)


def compile_parts(env_name: str) -> Iterator[str]:
    """What a run needs after its first evaluation: the learner, from rows of nothing, then the collector."""
    env, cfg = registry.env_class(env_name)(), PPO(envs=2, steps=4, hidden=(4,))
    learn_from_nothing(cfg, make_agent(cfg, env.spec, 0))
    yield LEARNER
    if hasattr(env, "collect"):
        collect(build(Setup(env, cfg, 0, 1)))
    yield COLLECTOR


def learn_from_nothing(cfg: PPO, agent: Agent, n: int = 4) -> None:
    """One step of the learner alone, without the kernels that act and judge: the run compiles those meanwhile."""
    learner, numbers = make_learner(cfg, agent), [np.zeros(n, np.float32) for _ in range(5)]
    if isinstance(learner, FastLearner):
        learner.load(Batch(agent.head.action_buffer(n), *numbers), np.zeros((n, agent.spec.obs_dim), np.float32))
        coefs = Coefs(cfg.clip, np.inf, cfg.value_coef, cfg.ent_coef, 0.0)
        adam = mlps.Adam(agent.params.flat.numel(), cfg.adam_eps)
        order_EN, step = np.arange(n)[None], pace(cfg, adam, cfg.lr)
        learner.compile_backwards(order_EN[0], coefs, step, adam)
        learner.epochs(order_EN, cut_evenly(n, 1), coefs, step, adam)


def build(setup: Setup) -> State:
    env, cfg, seed = setup.env, setup.cfg, setup.seed
    agent = make_agent(cfg, env.spec, seed, setup.device, setup.threads)
    worlds = Worlds(env, cfg.envs)
    worlds.reset(world_seeds(seed, "env", cfg.envs))
    if cfg.stagger and worlds.horizon:
        worlds.book.tick[:] = np.arange(cfg.envs) * worlds.horizon // cfg.envs
    rows = cfg.envs * env.spec.agents
    cursor = rollout.start(worlds, agent, world_seeds(seed, "action", rows))
    traj = Trajectory.allocate(cfg.steps, env.spec, cfg.envs, agent.head.action_buffer(1), agent.memory_dim)
    return State(
        cfg, agent, worlds, traj, cursor, make_adam(cfg, agent), make_learner(cfg, agent),
        generator(seed, "minibatch"), Running(1), np.zeros(rows), setup.total, cfg.lr,
    )  # fmt: skip


def make_adam(cfg: PPO, agent: Agent) -> mlps.Adam | optim.Adam | optim.Muon:
    flat = agent.params.flat
    if cfg.optimizer == "muon":
        return optim.Muon(agent.params, cfg.adam_eps, cfg.momentum, cfg.weight_decay)
    if cfg.optimizer == "adamw":
        return optim.Adam(flat, cfg.adam_eps, decay=cfg.weight_decay)
    return mlps.Adam(flat.numel(), cfg.adam_eps) if is_cpu(agent.device) else optim.Adam(flat, cfg.adam_eps)


def make_learner(cfg: PPO, agent: Agent) -> FastLearner | TorchLearner | SequenceLearner:
    if agent.memory_dim:
        return SequenceLearner(agent.net, agent.head, agent.params, cfg.chunk, cfg.bptt)
    if agent.fast:
        return FastLearner(agent.net, agent.head, agent.params, cfg.chunk, agent.crew)
    return TorchLearner(agent.net, agent.head, agent.params, cfg.chunk)


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """Act for one batch, and learn from it."""
    if s.cfg.ranks > 1:
        call_ranks(s)
    with watch("collect"):
        collect(s)
    env, act = s.traj.env_s, s.traj.act_s
    if env:
        watch.within = {"env_s": env, "act_s": act, "copy_s": max(watch.seconds["collect"] - env - act, 0.0)}
    with watch("update"):
        return update(s)


def call_ranks(s: State) -> None:
    """The other ranks do this iteration too; before the first one they are begun."""
    if s.team is None:
        from relab.train.algos import ppo_ranks

        assert s.setup is not None
        s.team = ppo_ranks.begin(s, s.setup)
    s.team.go_on()


def collect(s: State) -> None:
    """Act for one batch."""
    s.agent.in_one_call = s.ahead is None or s.ahead.ready(COLLECTOR)
    if s.team is not None:
        s.team.collect(s)
        return
    rollout.collect(s.worlds, s.agent, s.traj, s.cursor, s.counts.env_steps // s.worlds.n)


def update(s: State) -> dict[str, float]:
    """Judge the batch and learn from it. Returns the metrics of the iteration."""
    lr, ent_coef = scheduled(s)
    metrics = count(s)
    batch, facts = appraise(s)
    if s.ahead is not None:
        s.ahead.ready(LEARNER, wait=True)
    before = s.agent.params.flat.clone()
    metrics |= facts | learn(s, batch, lr, ent_coef) | ppo_metrics.step_size(s.agent.params.flat, before)
    if s.cfg.norm_obs:  # after learning: the ratio must start at 1 on the batch that the old scale saw
        obs = s.traj.obs_TBD.reshape(-1, s.traj.obs_TBD.shape[-1])
        s.agent.scale.update(obs[s.traj.alive_TB.reshape(-1)])
    return metrics


def scheduled(s: State) -> tuple[float, float]:
    """Learning rate and entropy coefficient now: linear in the share of the budget that is used."""
    used = min(1.0, s.counts.agent_steps / s.total_steps)
    c = s.cfg
    if c.lr_schedule == "linear":
        s.lr = c.lr * (1 + used * (c.lr_final - 1))
    ent = c.ent_coef if c.ent_coef_final is None else c.ent_coef + used * (c.ent_coef_final - c.ent_coef)
    return s.lr, ent


def count(s: State) -> dict[str, float]:
    """Move the counters on by one batch; what the batch's episodes earned."""
    c, traj = s.counts, s.traj
    c.iteration += 1
    c.agent_steps += int(traj.alive_TB.sum())
    c.env_steps += traj.reward_TB.shape[0] * s.worlds.n
    metrics: dict[str, float] = {"data/env_steps": c.env_steps, "data/iteration": c.iteration}
    metrics |= {"data/alive": float(traj.alive_TB.mean()), "data/batch": int(traj.alive_TB.sum())}
    metrics |= episode_metrics(traj.episodes, s.agent.spec, c, s.recent)
    metrics["data/episodes"] = c.episodes
    return metrics


def appraise(s: State) -> tuple[Batch, dict[str, float]]:
    """Values, advantages and targets of the batch, as [T, B] arrays; and what they look like before normalisation."""
    traj, cfg, agent = s.traj, s.cfg, s.agent
    T, B, D = traj.obs_TBD.shape
    if not agent.memory_dim:
        traj.value_TB[:] = agent.value(traj.obs_TBD.reshape(T * B, D), traj.memory_TBM).reshape(T, B)
    vn_TB = successor_values(s)
    r_TB = scaled_rewards(s) if cfg.norm_return else traj.reward_TB
    adv_TB = advantages(s, r_TB, vn_TB)
    target_TB, alive = adv_TB + traj.value_TB, traj.alive_TB
    facts = ppo_metrics.batch_metrics(adv_TB[alive], target_TB[alive], traj.value_TB[alive], traj.reward_TB[alive])
    facts |= ppo_metrics.saturation(agent.head, traj) | ppo_metrics.scale_metrics(cfg, s.reward_scale, agent.scale)
    if cfg.norm_adv:
        adv_TB = standardised(adv_TB, alive)
    delta_TB = r_TB + cfg.gamma * vn_TB - traj.value_TB
    facts |= ppo_metrics.end_metrics(traj, vn_TB) | ppo_metrics.surprise_metrics(traj, adv_TB, delta_TB)
    return Batch(traj.action_TBK, traj.logp_TB, adv_TB, target_TB, traj.value_TB, alive.astype(np.float32)), facts


def advantages(s: State, r_TB: np.ndarray, vn_TB: np.ndarray) -> np.ndarray:
    """How much better each step was than expected, before normalisation."""
    traj, cfg = s.traj, s.cfg
    if cfg.advantage == "gae":
        return returns.gae(r_TB, traj.value_TB, vn_TB, traj.ended_TB, cfg.gamma, cfg.lam)
    return returns.discounted(r_TB, vn_TB, traj.ended_TB, cfg.gamma) - traj.value_TB


def standardised(adv_TB: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Mean 0 and standard deviation 1 over the batch's living rows."""
    return (adv_TB - adv_TB[alive].mean()) / (adv_TB[alive].std() + 1e-8)


def successor_values(s: State) -> np.ndarray:
    """V(s_{t+1}): 0 after termination; after a cut by time the value of the observation that was left behind."""
    traj, agent, cut_is_end = s.traj, s.agent, s.agent.spec.timeout_is_terminal
    B = traj.reward_TB.shape[1]
    memory = np.where(s.cursor.fresh_B[:, None], 0, s.cursor.memory_BM).astype(np.float32)
    last_B = agent.value(s.worlds.obs.reshape(B, -1).copy(), memory)
    vn_TB = np.concatenate((traj.value_TB[1:], last_B[None]))
    for t, rows, obs, memory in [] if cut_is_end else traj.final:
        vn_TB[t, rows] = agent.value(obs, memory)
    vn_TB[traj.ended_TB if cut_is_end else traj.terminated_TB] = 0.0
    return vn_TB


def scaled_rewards(s: State) -> np.ndarray:
    """Rewards over the running standard deviation of the discounted return, clipped to +-10."""
    traj = s.traj
    sums_TB = discounted_sums(traj.reward_TB, traj.ended_TB, s.cfg.gamma, s.reward_sums)
    s.reward_scale.update(sums_TB[traj.alive_TB][:, None])
    return np.clip(traj.reward_TB / np.sqrt(s.reward_scale.var[0] + 1e-8), -10, 10).astype(np.float32)


def learn(s: State, batch: Batch, lr: float, ent_coef: float) -> dict[str, float]:
    """Epochs of minibatch steps on one batch, ended early when the policy has moved past target_kl."""
    cfg, (n, obs_max) = s.cfg, load_batch(s, batch)
    coefs = Coefs(cfg.clip, np.inf if cfg.clip_value is None else cfg.clip_value, cfg.value_coef, ent_coef, 0.0)
    order_EN = np.array([s.shuffle.permutation(n) for _ in range(cfg.epochs)])
    cuts = cut_evenly(n, min(cfg.minibatches, n))
    alone = s.team is None and isinstance(s.adam, mlps.Adam)
    fast = s.learner if isinstance(s.learner, FastLearner) and alone else None
    if fast and fast.takes_whole(int(np.diff(cuts).max())):
        steps = fast.epochs(order_EN, cuts, coefs, pace(s.cfg, s.adam, lr), s.adam)
    else:
        steps = epochs(s, batch, order_EN, cuts, coefs, lr)
    s.counts.updates += int((~steps.stopped).sum())
    now = {"optim/lr": lr, "optim/ent_coef": ent_coef}
    counts = {"data/updates": s.counts.updates, "optim/adam_steps": s.adam.updates}
    metrics = ppo_metrics.learning_metrics(cfg, s.agent.head, s.agent.log_std, steps, now, counts)
    metrics["data/obs_max"] = obs_max
    if cfg.lr_schedule == "adaptive_kl":
        s.lr = adapted(lr, metrics["policy/kl"], cfg.target_kl or 0.01)
    return metrics


def cut_evenly(n: int, parts: int) -> np.ndarray:
    """Where `parts` parts of n rows begin, and where the last one ends; the first are a row longer where it must be."""
    return np.arange(parts + 1) * (n // parts) + np.minimum(np.arange(parts + 1), n % parts)


def pace(cfg: PPO, adam: Any, lr: float) -> Pace:
    b1, b2 = adam.betas
    max_kl = np.inf if cfg.target_kl is None else 1.5 * cfg.target_kl
    return Pace(lr, b1, b2, adam.eps, cfg.max_grad_norm, max_kl, cfg.log_std_min, cfg.log_std_max)


def epochs(s: State, batch: Batch, order_EN: np.ndarray, cuts: np.ndarray, coefs: Coefs, lr: float) -> Steps:
    """Step by step, for every engine: what FastLearner.epochs does in one call."""
    steps, at = Steps.allocate(len(order_EN) * (len(cuts) - 1)), 0
    for epoch, order in enumerate(order_EN):
        for rows in np.split(order, cuts[1:-1]):
            steps.epoch[at] = epoch
            take_step(s, batch, rows, coefs, lr, steps, at)
            at += 1
            if steps.stopped[at - 1]:
                return steps.first(at)
    return steps.first(at)


def load_batch(s: State, batch: Batch) -> tuple[int, float]:
    """Hand the batch to the learner: how many samples it has (rows that are alive, or segments), largest |input|."""
    traj, obs = s.traj, s.agent.normalised(s.traj.obs_TBD.reshape(-1, s.traj.obs_TBD.shape[-1]))
    if s.agent.memory_dim:
        s.learner.load(batch, obs.reshape(traj.obs_TBD.shape), traj.memory_TBM, traj.fresh_TB)
        return batch.adv.size // s.cfg.bptt, ppo_metrics.largest(obs[traj.alive_TB.reshape(-1)])
    alive = traj.alive_TB.reshape(-1)
    keep = slice(None) if alive.all() else alive
    flat, obs = Batch(*(np.ascontiguousarray(x.reshape(-1, *x.shape[2:])[keep]) for x in batch)), obs[keep]
    s.learner.load(flat, np.ascontiguousarray(obs), traj.memory_TBM, traj.fresh_TB)
    return len(flat.adv), ppo_metrics.largest(obs)


def take_step(s: State, batch: Batch, rows: np.ndarray, coefs: Coefs, lr: float, steps: Steps, at: int) -> None:
    """One minibatch, into row `at` of the steps."""
    params, limits = s.agent.params, pace(s.cfg, s.adam, lr)
    weight = segment_rows(batch, rows, s.cfg.bptt) if s.agent.memory_dim else len(rows)
    sums, steps.ratio_max[at] = gradient(s, rows, coefs._replace(scale=1.0 / max(weight, 1)))
    steps.sums[at] = sums
    d_log_std = params.grads["log_std"].cpu().numpy() if s.agent.head.gaussian else np.zeros(0, np.float32)
    steps.push[at] = losses.entropy_push(d_log_std, sums, coefs.ent_coef)
    steps.bias[at] = ppo_metrics.critic_bias(s.agent.net, params, s.cfg.value_coef)
    theta, grad = (x.numpy() if isinstance(s.adam, mlps.Adam) else x for x in (params.flat, params.grad))
    if sums[3] / max(sums[7], 1) > limits.max_kl:
        steps.norm[at], steps.stopped[at] = s.adam.norm(grad), True
        return
    steps.norm[at] = s.adam.step(theta, grad, lr, limits.max_norm)
    if s.agent.head.gaussian:  # projected, not clamped in the forward pass, where a gradient would die at the bound
        params["log_std"].detach().clamp_(limits.log_std_min, limits.log_std_max)


def gradient(s: State, rows: np.ndarray, coefs: Coefs) -> tuple[np.ndarray, float]:
    """Of a minibatch, into params.grad; where there are several ranks, the sum of what each makes of its part."""
    if s.team is None:
        return s.learner.gradient(rows, coefs)
    mine = s.team.mine(rows)
    if len(mine):
        return s.team.total(s.agent.params.grad, *s.learner.gradient(mine, coefs))
    s.agent.params.grad.zero_()
    return s.team.total(s.agent.params.grad, np.zeros(len(losses.STATS)), 0.0)


def segment_rows(batch: Batch, rows: np.ndarray, bptt: int) -> float:
    """How many of the steps in these segments were acted by a living agent."""
    B = batch.mask.shape[1]
    return float(batch.mask.reshape(-1, bptt, B).sum(1).reshape(-1)[rows].sum())


def adapted(lr: float, kl: float, target: float) -> float:
    """KL above twice the target: lr / 1.5; under half of it: lr * 1.5; kept in [1e-5, 1e-2]."""
    if kl > 2 * target:
        return max(1e-5, lr / 1.5)
    return min(1e-2, lr * 1.5) if 0 < kl < target / 2 else lr
