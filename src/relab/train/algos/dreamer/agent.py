"""How does Dreamer act in the world? It remembers, infers the latent state from what it sees, and asks its actor.

A row's memory is (h, z, last action); all zero at the start of an episode, as `rollout` makes it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from relab.config.base import require
from relab.config.dreamer import Dreamer
from relab.record.spec import Spec
from relab.train.algos.dreamer import behaviour, equations, images, layers, world_model
from relab.train.algos.dreamer.actions import Actions
from relab.train.algos.dreamer.behaviour import ACTOR, CRITIC, Behaviour
from relab.train.algos.dreamer.fast_layers import SHARES
from relab.train.algos.dreamer.layers import Weights
from relab.train.algos.dreamer.world_model import MODEL, Start, WorldModel
from relab.train.kernels.crew import Crew
from relab.train.kernels.rng import fill_uniform, mix
from relab.train.nets.heads import Head
from relab.train.rollout import Acted

WIDEST = float(torch.expm1(torch.tensor(20.0, dtype=torch.float64)))  # symexp(20), where nothing bounds rewards
# scale of the first outputs
FIRST = {f"{MODEL}/reward/out": 0.0, f"{CRITIC}/out": 0.0, f"{ACTOR}/out": 0.01, f"{images.DECODER}/out": 0.01}


def support_of(cfg: Dreamer, spec: Spec) -> equations.Support:
    """The numbers that rewards and values may have; ConfigError where the setting is below what there can be."""
    bounds = [abs(x) for x in (spec.reward_low, spec.reward_high) if x is not None and np.isfinite(x)]
    largest = equations.value_bound(max(bounds), cfg.gamma) if len(bounds) == 2 else None
    if cfg.support is None:
        limit = max(1.0, largest) if largest is not None else WIDEST
    else:
        limit = cfg.support
        require(largest is None or limit >= largest * (1 - 1e-6), "`support` must reach the largest value that a state"
                f" can have, but it is {limit:g} and a reward of {max(bounds, default=0):g} at gamma = {cfg.gamma:g}"
                f" makes up to {largest:g}: every larger one would be learned as {limit:g}; raise `support` (null: what"
                " the environment allows), or lower `gamma`")  # fmt: skip
    return equations.Support.of(-limit, limit, cfg.bins, cfg.spacing)


class Agent:
    """World model, actor and critic: what evaluation, probes and films need."""

    def __init__(self, cfg: Dreamer, spec: Spec, rng: np.random.Generator, threads: int = 1):
        self.cfg, self.spec, self.head = cfg, spec, Head.of(spec.action)
        self.actions = Actions.of(spec.action, cfg.unimix)
        feature, support = cfg.deter + cfg.stoch * cfg.classes, support_of(cfg, spec)
        image = images.image_of(spec, cfg.filters)
        shapes = world_model.shapes(cfg, spec.obs_dim, self.actions, image)
        shapes |= behaviour.shapes(cfg, feature, self.actions)
        crew = Crew(min(threads, SHARES))
        self.params, self.slow = Weights(shapes, crew=crew), Weights(behaviour.critic_shapes(cfg, feature), crew=crew)
        layers.init(self.params, rng, FIRST)
        self.units = torch.tensor([[0.0], [1.0]]).repeat(1, spec.obs_dim) if cfg.norm_obs else None
        self.model = WorldModel(cfg, spec.obs_dim, self.actions, self.params, support, image, self.units)
        self.behaviour = Behaviour(cfg, self.actions, self.params, self.slow, support)
        self.acting = self.params if cfg.acting_rate == 1 else Weights(shapes, crew=crew)
        self.sees = WorldModel(cfg, spec.obs_dim, self.actions, self.acting, support, image, self.units)
        self.chooses = Behaviour(cfg, self.actions, self.acting, self.slow, support)
        self.copy_weights()
        self.memory_dim = feature + self.actions.in_dim

    def copy_weights(self) -> None:
        """Whatever follows the weights begins with them: the slow critic, and the weights that act."""
        self.slow.flat.copy_(self.params.flat[-self.slow.flat.numel() :])
        self.acting.flat.copy_(self.params.flat)

    def measure(self, obs_ND: np.ndarray) -> None:
        """Numbers are seen in units of their spread here; one that never changes keeps its own."""
        assert self.units is not None
        seen = torch.from_numpy(np.asarray(obs_ND, np.float32))
        self.units[0], spread = seen.mean(0), seen.std(0)
        self.units[1] = torch.where(spread > 0, spread, torch.ones_like(spread))

    @torch.no_grad()
    def follow(self, updates: int) -> None:
        """The weights that act take a share of the new ones over; the first ones count no more than any other."""
        if self.acting is not self.params:
            self.acting.flat.lerp_(self.params.flat, max(self.cfg.acting_rate, 1 / (updates + 1)))

    @property
    def collecting(self) -> Weights:
        """The weights that act in training."""
        return self.params if self.cfg.collects == "learned" else self.acting

    def act(self, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray, n_mode: int = 0) -> Acted:
        return self.act_by(self.sees, self.chooses, obs_BD, memory_BM, rng_B, n_mode)

    @torch.no_grad()
    def act_by(
        self, sees: WorldModel, chooses: Behaviour, obs_BD: np.ndarray, memory_BM: np.ndarray, rng_B: np.ndarray,
        n_mode: int = 0,
    ) -> Acted:  # fmt: skip
        uniform = np.empty((len(obs_BD), self.cfg.stoch + self.actions.draws))
        fill_uniform(rng_B, uniform)
        fill_uniform(streams_of(obs_BD[:n_mode]), uniform[:n_mode])
        u = torch.from_numpy(uniform.astype(np.float32))
        h, z = self.infer(sees, obs_BD, memory_BM, u[:, : self.cfg.stoch])
        feature = torch.cat((h, z), -1)
        out = chooses.policy(feature)
        action = self.actions.draw(out, u[:, self.cfg.stoch :])
        action[:n_mode] = self.actions.mode(out[:n_mode])
        action = action if self.actions.sizes else action.clamp_(-1, 1)  # the box ends there
        memory = torch.cat((feature, self.actions.encode(action)), -1)
        logp = self.actions.log_prob(out, action)
        return Acted(action.numpy(), logp.numpy(), memory.numpy(), chooses.value(feature).numpy())

    def infer(self, m: WorldModel, obs_BD: np.ndarray, memory_BM: np.ndarray, u_BS: Tensor) -> tuple[Tensor, Tensor]:
        """Memory and latents in this state."""
        sizes = (self.cfg.deter, self.model.latent, self.actions.in_dim)
        h, z, action = torch.from_numpy(np.asarray(memory_BM, np.float32)).split(sizes, -1)
        seen = m.see(torch.from_numpy(np.asarray(obs_BD, np.float32)))[None]
        keep = torch.ones(1, len(obs_BD))
        h, z, _ = (x[0] for x in m.scan(seen, m.effect(action)[None], keep, u_BS[None], Start(h, z)))
        return h, z

    def to_env(self, action: np.ndarray) -> np.ndarray:
        return self.head.to_env(action)

    @torch.no_grad()
    def value(self, obs_BD: np.ndarray, memory_BM: np.ndarray) -> np.ndarray:
        """The critic's word, with latents as `det` draws them, for probes."""
        uniform = np.empty((len(obs_BD), self.cfg.stoch))
        fill_uniform(streams_of(obs_BD), uniform)
        h, z = self.infer(self.sees, obs_BD, memory_BM, torch.from_numpy(uniform.astype(np.float32)))
        return self.chooses.value(torch.cat((h, z), -1)).numpy()


def streams_of(obs_BD: np.ndarray) -> np.ndarray:
    """A stream for each row that follows from what is seen alone.

    Actions can be the likeliest ones, latents cannot: all at their likeliest is a state that is hardly ever drawn, of
    which neither memory nor actor have learned anything. So `det` draws them, the same ones wherever the same is seen.
    """
    bits = np.ascontiguousarray(obs_BD, np.float32).view(np.uint32).astype(np.uint64)
    return mix((bits * mix(np.arange(bits.shape[1]))).sum(-1))
