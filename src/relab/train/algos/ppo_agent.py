"""How does a PPO policy act? Network, head and observation scale: all that evaluation, probes and video need."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from relab.base.documents import Tree
from relab.base.streams import generator
from relab.config.base import require
from relab.config.ppo import PPO
from relab.record.spec import Spec
from relab.train.collecting import Actor
from relab.train.device import is_cpu
from relab.train.kernels import blas
from relab.train.kernels.crew import Crew
from relab.train.nets import fastmlp, networks
from relab.train.nets.encoder import SMALLEST_SIDE
from relab.train.nets.heads import Head
from relab.train.nets.networks import Net
from relab.train.nets.normalise import Running
from relab.train.rollout import BLOCK, Acted


class Agent:
    """A policy that can act: network, head, observation scale. What evaluation, probes and video need, and no more."""

    def __init__(self, cfg: PPO, spec: Spec, rng: np.random.Generator, device: str = "cpu", threads: int = 1):
        self.cfg, self.spec, self.device = cfg, spec, device
        self.head = Head.of(spec.action, cfg.squash)
        self.net = Net(
            spec.obs_dim, self.head.out_dim, cfg.hidden, cfg.activation, spec.action.dim if self.head.gaussian else 0,
            cfg.rnn, cfg.rnn_size, encoded_image(cfg, spec), cfg.critic_layers(),
        )  # fmt: skip
        self.params = networks.init(self.net, rng, cfg.log_std_init, device)
        self.scale = Running(spec.obs_dim)
        self.memory_dim = self.net.memory_dim
        self.fast = is_cpu(device) and self.net.plain and blas.AVAILABLE
        self.crew, self.in_one_call = Crew(threads), True
        self.sizes, self.no_scale = np.array(self.head.sizes, np.int64), np.zeros(0, np.float32)
        if self.fast:
            self.layouts = {name: fastmlp.layout(self.net, name) for name in ("actor", "critic")}
            self.work = [fastmlp.workspace(BLOCK, *self.layouts.values()) for _ in range(threads)]

    def normalised(self, obs: np.ndarray) -> np.ndarray:
        return self.scale.apply(obs, self.cfg.obs_clip) if self.cfg.norm_obs else obs

    @property
    def log_std(self) -> np.ndarray:
        return self.params["log_std"].detach().cpu().numpy() if self.head.gaussian else np.zeros(0, np.float32)

    @torch.no_grad()
    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        obs, value = self.normalised(obs_BD), None
        if self.memory_dim:
            out, value, memory_BM = self.remember(obs, memory_BM)
        else:
            out = self.run("actor", obs)
        action, logp = self.head.action_buffer(len(obs)), np.empty(len(obs), np.float32)
        self.head.sample(out, self.log_std, rng_B, n_mode, action, logp)
        return Acted(action, logp, memory_BM, value)

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return self.head.to_env(action)

    def compiled(self) -> tuple[Actor, np.ndarray | None] | None:
        """This policy as data for collecting, and a Gaussian's log deviation; None where it is not so simple."""
        if not (self.fast and self.in_one_call):
            return None
        scaled = self.cfg.norm_obs and self.scale.count[0] > 0
        mean, std = self.scale.as_float32() if scaled else (self.no_scale, self.no_scale)
        actor = Actor(self.params.flat.numpy(), self.layouts["actor"], self.sizes, mean, std, scaled,
                      self.cfg.obs_clip, self.head.box, self.cfg.squash, self.work[0])  # fmt: skip
        return actor, self.log_std if self.head.gaussian else None

    @torch.no_grad()
    def run(self, name: str, obs: np.ndarray) -> np.ndarray:
        """Outputs [B, ·] of the feed-forward `actor` or `critic` for rows of (normalised) observations."""
        if not self.fast:
            return self.run_torch(networks.policy if name == "actor" else networks.value, obs)
        obs, layout, theta = np.ascontiguousarray(obs, np.float32), self.layouts[name], self.params.flat.numpy()
        out: np.ndarray = np.empty((len(obs), int(layout.sizes[-1])), np.float32)

        def work(worker: int) -> None:
            fastmlp.forward_blocks(worker, self.crew.size, BLOCK, theta, layout, obs, self.work[worker], out)

        self.crew.share(work, -(-len(obs) // BLOCK))
        return out

    def run_torch(self, net: Callable[[Net, networks.Params, Tensor], Tensor], obs: np.ndarray) -> np.ndarray:
        """The same by torch, `chunk` rows at a time: what convolutions make of an image is larger than the image."""
        pieces = torch.from_numpy(obs).split(self.cfg.chunk)
        outputs = [net(self.net, self.params, piece.to(self.device)).cpu().numpy() for piece in pieces]
        return np.concatenate(outputs).reshape(len(obs), -1)

    @torch.no_grad()
    def remember(self, obs: np.ndarray, memory: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """One step of a recurrent net: (policy outputs, values, memory after)."""
        x, m = torch.from_numpy(obs).to(self.device), torch.from_numpy(memory).to(self.device)
        out, v, m = networks.unroll(self.net, self.params, x[None], m, torch.zeros(1, len(obs), device=self.device))
        return out[0].cpu().numpy(), v[0].cpu().numpy(), m.cpu().numpy()

    def value(self, obs: np.ndarray, memory: np.ndarray) -> np.ndarray:
        """V(s) for rows of raw observations."""
        obs = self.normalised(obs)
        if self.memory_dim:
            return self.remember(obs, memory)[1]
        return self.run("critic", obs)[:, 0]


def load_agent(agent: Agent, tree: Tree) -> None:
    """The acting part of a checkpoint alone: weights and observation scale."""
    agent.params.load(tree["params"])
    agent.scale.load(tree["obs_scale"])


def make_agent(cfg: PPO, spec: Spec, seed: int, device: str = "cpu", threads: int = 1) -> Agent:
    agent = Agent(cfg, spec, generator(seed, "init"), device, threads)
    set_torch_threads(agent, threads)
    return agent


def set_torch_threads(agent: Agent, threads: int) -> None:
    """Plain nets on a CPU share rows out to threads of their own, so torch gets one; others use torch's.

    Deliberately: torch's own threads spin and can be many times slower on a busy machine.
    """
    torch.set_num_threads(1 if is_cpu(agent.device) and agent.net.plain else threads)


def encoded_image(cfg: PPO, spec: Spec) -> tuple[int, ...]:
    """The shape of the images that go through an encoder; empty where there is none."""
    fits = bool(spec.obs_shape) and min(spec.obs_shape[:2]) >= SMALLEST_SIDE
    require(fits or cfg.encoder != "conv", f"`encoder=conv` needs images of {SMALLEST_SIDE} x {SMALLEST_SIDE} pixels or"
            f" more, but {spec.env} observes {spec.seen}; try encoder=auto")  # fmt: skip
    return spec.obs_shape if fits and cfg.encoder != "none" else ()
