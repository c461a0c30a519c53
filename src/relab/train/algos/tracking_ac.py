"""Off-policy actor-critic on two time scales whose behaviour policy tracks the target policy ("deadly triad" study).

    mu = N(m_mu, sigma_mu^2 I), pi = N(m_pi, sigma_pi^2 I), m = theta^T psi / sqrt(P), Q_w = w.phi / sqrt(N)
    rho = min(pi / mu, clip),  delta = r + gamma mean_k Q_w(s', a'_k ~ pi) - Q_w(s, a)
    w        += alpha_w  sum rho delta phi / (sqrt(B) T)
    theta_pi += alpha_pi sum rho delta psi (a - m_pi)^T / (sigma_pi^2 sqrt(P)) / (sqrt(B) T)
    theta_mu <- (1 - beta) theta_mu + beta theta_pi,  then both into the ball of radius theta_radius

Every draw comes from a stream named after its purpose and its iteration, so that a setting shifts no other's draws and
a run's whole future is w, theta_pi, theta_mu and the count. Details, metrics and benchmark:
docs/algorithms/tracking_ac.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.base.streams import generator, world_seeds
from relab.config.base import require
from relab.config.tracking_ac import TrackingAC
from relab.record.spec import Spec
from relab.train import rollout
from relab.train.algos import fourier
from relab.train.contract import Counts, Setup, Stopwatch
from relab.train.device import is_cpu
from relab.train.envs.base import Worlds
from relab.train.kernels.crew import Crew
from relab.train.kernels.rng import fill_normal
from relab.train.rollout import Acted, Trajectory

CLOCK = "agent_steps"
NOTHING = np.zeros(0)


class Policy:
    """N(theta^T psi(o) / sqrt(P), sigma^2 I): what acts, in training, evaluation and probes."""

    memory_dim = 0

    def __init__(self, actor: fourier.Actor, theta_PA: np.ndarray, sigma: float, squash: bool = False):
        self.actor, self.theta_PA, self.sigma, self.squash = actor, theta_PA, sigma, squash

    def mean(self, psi_BP: np.ndarray) -> np.ndarray:
        """float64[B, 2]: the mean action, from features."""
        rows, size = psi_BP.shape[:-1], psi_BP.shape[-1]
        mean_BA = np.empty((math.prod(rows), fourier.ACTION))
        fourier.mean_rows(psi_BP.reshape(-1, size), np.ascontiguousarray(self.theta_PA.T), mean_BA)
        return mean_BA.reshape(*rows, fourier.ACTION)

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        noise = np.empty((len(obs_BD), fourier.ACTION))
        fill_normal(rng_B, noise)
        noise[:n_mode] = 0.0
        action = self.mean(fourier.psi(self.actor, obs_BD)) + self.sigma * noise
        return Acted(action, log_density(noise, np.zeros(2), 1.0) - 2 * math.log(self.sigma), memory_BM)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return seen(action, self.squash)


class Agent(Policy):
    """All that is learned, and the fixed random features; it acts with the target policy."""

    def __init__(self, cfg: TrackingAC, spec: Spec, seed: int):
        self.cfg, self.spec = cfg, spec
        self.critic = fourier.make_critic(seed, cfg.feature_dim)
        self.teacher_N = fourier.make_teacher(seed, cfg.feature_dim, cfg.teacher_scale)
        self.w, theta_pi, self.theta_mu = first_parameters(cfg, seed)
        actor = fourier.make_actor(seed, cfg.actor_feature_dim, cfg.psi_clip)
        super().__init__(actor, theta_pi, cfg.sigma_pi, cfg.squash_action)

    @property
    def theta_pi(self) -> np.ndarray:
        return self.theta_PA

    @property
    def behaviour(self) -> Policy:
        return Policy(self.actor, self.theta_mu, self.cfg.sigma_mu, self.cfg.squash_action)

    def params(self) -> dict[str, np.ndarray]:
        return {"w": self.w, "theta_pi": self.theta_pi, "theta_mu": self.theta_mu}


def first_parameters(cfg: TrackingAC, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """w, theta_pi, theta_mu: each from a stream of its own, so that an offset changes theta_mu and nothing else."""
    shape = (cfg.actor_feature_dim, fourier.ACTION)
    w = cfg.w_init_scale * generator(seed, "w").standard_normal(cfg.feature_dim)
    theta = cfg.theta_init_scale * generator(seed, "theta").standard_normal(shape)
    return w, theta, theta + cfg.theta_mu_offset_scale * generator(seed, "offset").standard_normal(shape)


@dataclass
class Batch:
    """One iteration's trajectories under mu, and what was computed from them."""

    obs_TBD: np.ndarray  # T + 1 rows
    action_TBA: np.ndarray  # as drawn
    next_TBKA: np.ndarray  # draws of pi in s'
    psi_TBP: np.ndarray  # features of s, T rows
    score_TBA: np.ndarray  # a - m_pi
    rho_TB: np.ndarray  # clipped
    bound_TB: np.ndarray  # where the clip did bind
    reward_TB: np.ndarray
    delta_TB: np.ndarray
    grad_N: np.ndarray  # sum rho delta phi
    events: np.ndarray  # sums of the four channels, per trajectory


@dataclass
class State:
    """All that a run needs to go on; the worlds begin anew in every iteration."""

    cfg: TrackingAC
    agent: Agent
    worlds: Worlds
    traj: Trajectory
    seed: int
    crew: Crew
    counts: Counts = field(default_factory=Counts)
    batch: Batch | None = None  # of the last iteration

    def to_tree(self) -> Tree:
        return {"params": self.agent.params(), "counts": vars(self.counts)}

    def load(self, tree: Tree) -> None:
        load_agent(self.agent, tree)
        self.counts = Counts(**tree["counts"])


def load_agent(agent: Agent, tree: Tree) -> None:
    agent.w, agent.theta_PA, agent.theta_mu = (tree["params"][k].copy() for k in ("w", "theta_pi", "theta_mu"))


def make_agent(cfg: TrackingAC, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Agent:
    require(spec.env.startswith("torus"), f"tracking_ac reads the torus's events from its observation, but env is"
                                          f" {spec.env}; try env=torus")  # fmt: skip
    require(is_cpu(device), f"tracking_ac runs on the cpu, but `device` is {device}")
    return Agent(cfg, spec, seed)


def init(setup: Setup) -> State:
    env, cfg, seed = setup.env, setup.cfg, setup.seed
    agent = make_agent(cfg, env.spec, seed, setup.device)
    worlds = Worlds(env, cfg.trajectories, time_limit=None)
    traj = Trajectory.allocate(cfg.horizon, env.spec, cfg.trajectories, np.zeros((1, fourier.ACTION)), 0)
    return State(cfg, agent, worlds, traj, seed, Crew(setup.threads))


def iterate(s: State, watch: Stopwatch) -> dict[str, float]:
    """B trajectories under mu, and one step of all three parameters."""
    with watch("collect"):
        collect(s)
    with watch("update"):
        return update(s)


# ---- Acting


def collect(s: State) -> None:
    """B trajectories of T steps under mu, each from a fresh state."""
    s.batch = sample(s, s.agent.behaviour, f"{s.counts.iteration}", s.worlds, s.traj)


def sample(s: State, policy: Policy, stream: str, worlds: Worlds, traj: Trajectory) -> Batch:
    """Trajectories of a policy from the streams of that name, with ratios and next actions; no learning."""
    cfg, agent, (T, B) = s.cfg, s.agent, traj.reward_TB.shape
    worlds.reset(world_seeds(s.seed, f"env/{stream}", B))
    rollout.collect(worlds, policy, traj, rollout.start(worlds, policy, world_seeds(s.seed, f"action/{stream}", B)))
    obs_TBD = np.concatenate((traj.obs_TBD, worlds.obs.reshape(1, B, -1)))
    psi_TBP = fourier.psi(agent.actor, obs_TBD.reshape((T + 1) * B, -1)).reshape(T + 1, B, -1)
    m_mu, m_pi = agent.behaviour.mean(psi_TBP), agent.mean(psi_TBP)
    noise = generator(s.seed, f"next/{stream}").standard_normal((T, B, cfg.k_mc, fourier.ACTION))
    action = traj.action_TBK.copy()
    log_rho = log_density(action, m_pi[:T], cfg.sigma_pi) - log_density(action, m_mu[:T], cfg.sigma_mu)
    rho, clip = np.exp(log_rho), math.inf if cfg.rho_clip is None else cfg.rho_clip
    return Batch(
        obs_TBD, action, m_pi[1:, :, None] + cfg.sigma_pi * noise, psi_TBP[:T], action - m_pi[:T],
        np.minimum(rho, clip), rho > clip, traj.reward_TB.astype(np.float64), np.zeros((T, B)), NOTHING,
        worlds.book.info.reshape(B, -1).copy(),
    )  # fmt: skip


def log_density(action: np.ndarray, mean: np.ndarray, sigma: float) -> np.ndarray:
    """ln N(a; m, sigma^2 I_2) without its constant; equal policies give the same bits."""
    return -0.5 * np.square((action - mean) / sigma).sum(-1) - 2.0 * math.log(sigma)


def seen(action: np.ndarray, squash: bool) -> np.ndarray:
    """What the world and the critic see of a drawn action; ratios are those of the draw."""
    return np.tanh(action) if squash else action


# ---- Learning


def update(s: State) -> dict[str, float]:
    """One step of critic, target policy and behaviour policy. Returns the metrics of the iteration."""
    cfg, agent, batch, c = s.cfg, s.agent, s.batch, s.counts
    assert batch is not None, "collect comes before update"
    c.iteration += 1
    c.agent_steps += cfg.batch
    c.env_steps += cfg.batch
    c.updates += 1
    appraise(s, batch, agent.w)
    before = agent.params()
    agent.w = critic_step(agent.w, batch.grad_N, cfg)
    agent.theta_PA = agent.theta_pi + cfg.alpha_pi * policy_gradient(batch, cfg) / root_steps(cfg)
    agent.theta_mu = (1.0 - cfg.beta) * agent.theta_mu + cfg.beta * agent.theta_pi
    agent.theta_PA, agent.theta_mu = (projected(theta, cfg.theta_radius) for theta in (agent.theta_pi, agent.theta_mu))
    return metrics_of(s, batch, before)


def appraise(s: State, batch: Batch, w: np.ndarray) -> None:
    """Rewards, temporal differences and the critic's sum, for the given w: all of it in one pass."""
    cfg, critic = s.cfg, s.agent.critic
    B = batch.rho_TB.shape[1]
    grad_BN = np.empty((B, cfg.feature_dim))
    teacher = s.agent.teacher_N if cfg.reward == "teacher" else NOTHING
    shown = [np.ascontiguousarray(seen(x, cfg.squash_action), np.float32) for x in (batch.action_TBA, batch.next_TBKA)]
    reward_TB = batch.reward_TB.copy()
    rows: Any = (s.crew.size, batch.obs_TBD, *shown, batch.rho_TB, reward_TB, teacher, w, *critic, cfg.gamma,
                 batch.reward_TB, batch.delta_TB, grad_BN)  # fmt: skip

    def work(worker: int) -> None:
        fourier.temporal(worker, *rows)

    s.crew.share(work, B)
    batch.grad_N = grad_BN.sum(0)  # world after world, whoever computed them


def root_steps(cfg: TrackingAC) -> float:
    return math.sqrt(cfg.trajectories) * cfg.horizon


def critic_step(w: np.ndarray, grad_N: np.ndarray, cfg: TrackingAC) -> np.ndarray:
    return w + cfg.alpha_w * grad_N / root_steps(cfg)


def policy_gradient(batch: Batch, cfg: TrackingAC) -> np.ndarray:
    """sum rho delta psi (a - m_pi)^T / (sigma_pi^2 sqrt(P)), float64[P, 2]."""
    size = batch.psi_TBP.shape[-1]
    pull = (batch.rho_TB * batch.delta_TB)[..., None] * batch.score_TBA
    sum_AP = np.zeros((fourier.ACTION, size))
    fourier.pull_rows(batch.psi_TBP.reshape(-1, size), pull.reshape(-1, fourier.ACTION), sum_AP)
    return sum_AP.T / (cfg.sigma_pi**2 * math.sqrt(size))


def projected(theta: np.ndarray, radius: float) -> np.ndarray:
    """The nearest point of the ball; a point inside stays as it is."""
    norm = float(np.linalg.norm(theta))
    return theta * (radius / norm) if norm > radius else theta


# ---- What it looks like


def tracking_gap(agent: Agent) -> float:
    """|theta_pi - theta_mu|^2 / P."""
    return float(np.square(agent.theta_pi - agent.theta_mu).sum() / len(agent.theta_mu))


def metrics_of(s: State, batch: Batch, before: dict[str, np.ndarray]) -> dict[str, float]:
    cfg, agent, c, rho = s.cfg, s.agent, s.counts, batch.rho_TB
    moved = {name: float(np.linalg.norm(x - before[name])) for name, x in agent.params().items()}
    metrics = {
        "value/td_loss": np.square(batch.delta_TB).mean(), "value/w_norm": np.linalg.norm(agent.w),
        "value/w_step": moved["w"], "value/teacher_error": np.square(agent.w - agent.teacher_N).mean(),
        "policy/rho2_mean": np.square(rho).mean(), "policy/rho_mean": rho.mean(), "policy/rho_min": rho.min(),
        "policy/rho_max": rho.max(), "policy/rho_clipped_share": batch.bound_TB.mean(),
        "policy/ess_share": rho.sum() ** 2 / (rho.size * np.square(rho).sum()),
        "policy/tracking_gap": tracking_gap(agent), "policy/theta_step": moved["theta_pi"],
        "data/reward_mean": batch.reward_TB.mean(), "data/reward_std": batch.reward_TB.std(),
        "optim/lr": cfg.alpha_w, "optim/step_scale": cfg.step_scale, "optim/param_norm": param_norm(agent),
        "data/iteration": c.iteration, "data/env_steps": c.env_steps, "data/batch": rho.size,
    }  # fmt: skip
    metrics |= {f"env/{ch.name}": batch.events[:, k].mean() for k, ch in enumerate(agent.spec.channels)}
    return {name: float(x) for name, x in metrics.items()}


def param_norm(agent: Agent) -> float:
    return math.sqrt(sum(float(np.square(x).sum()) for x in agent.params().values()))
