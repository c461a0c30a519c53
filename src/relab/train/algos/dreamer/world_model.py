"""What will the world do? A recurrent state-space model: a memory h and categorical latents z (Hafner et al. 2023).

    h_t = core(h_{t-1}, z_{t-1}, a_{t-1}),   posterior z_t ~ q(z | h_t, x_t),   prior ẑ_t ~ p(z | h_t)
    L = reconstruction + reward + continue + dyn max(1, KL[sg q || p]) + rep max(1, KL[q || sg p])

In a dream the prior takes the posterior's place. Names of tensors: T time, B sequences.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits, linear, pad, silu

from relab.config.dreamer import Dreamer
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import fast_scan, images, layers
from relab.train.algos.dreamer.actions import Actions
from relab.train.algos.dreamer.fast_scan import Core, Start
from relab.train.algos.dreamer.images import Image
from relab.train.algos.dreamer.layers import Shapes, Weights
from relab.train.algos.dreamer.one_hot import NONE, Hot

MODEL = "model"
REWARD_LAYERS = 1  # of the heads of reward and continuation
ONE = 1  # constant beside the numbers that are seen: the first layer is normalised, without it x and 2 x look alike


class Batch(NamedTuple):
    """sequences.Sequences as tensors; actions as the model is told of them."""

    obs: Tensor
    action: Tensor
    reward: Tensor
    fresh: Tensor
    earned: Tensor
    terminal: Tensor
    last: Tensor
    valid: Tensor


class Course(NamedTuple):
    """What the model made of a batch: memory and latents in every row, and the distributions they came from."""

    h: Tensor  # [T, B, deter]
    z: Tensor  # [T, B, stoch * classes]
    post: Tensor  # [T, B, classes, stoch]
    prior: Tensor

    @property
    def feature(self) -> Tensor:
        return torch.cat((self.h, self.z), -1)


@dataclass(frozen=True)
class WorldModel:
    """The architecture and its parameters; all methods are pure."""

    cfg: Dreamer
    obs_dim: int
    actions: Actions
    params: Weights
    support: eq.Support  # of rewards
    image: Image | None = None  # what is seen, where it is one
    units: Tensor | None = None  # [2, D]: mean and spread of what is seen, where numbers are

    @property
    def latent(self) -> int:
        return self.cfg.stoch * self.cfg.classes

    @property
    def feature_dim(self) -> int:
        return self.cfg.deter + self.latent

    # ---- One step

    def effect(self, action: Tensor) -> Tensor:
        """What an action adds to the layer in front of the memory; made for all steps at once where they are known."""
        return linear(action, self.params[f"{MODEL}/action/weight"])

    def core(self, h: Tensor, z: Tensor, action: Tensor) -> Tensor:
        """The memory after (z, action), `action` as `effect` makes it."""
        p = self.params
        x = silu(layers.norm(p, f"{MODEL}/input", linear(z, p[f"{MODEL}/input/weight"]) + action))
        gates = self.gates_in_blocks(h, x) if self.cfg.core == "blocks" else self.gates(h, x)
        reset, candidate, update = gates.chunk(3, -1)
        candidate = torch.tanh(torch.sigmoid(reset) * candidate)
        return torch.lerp(h, candidate, torch.sigmoid(update - 1.0))  # it begins by keeping most of what it has

    def gates(self, h: Tensor, x: Tensor) -> Tensor:
        name = f"{MODEL}/gates"
        return layers.norm(self.params, name, linear(torch.cat((x, h), -1), self.params[f"{name}/weight"]))

    def gates_in_blocks(self, h: Tensor, x: Tensor) -> Tensor:
        """Every block of the memory sees x, a summary of all blocks, and itself."""
        p, G, name = self.params, self.cfg.blocks, f"{MODEL}/blocks"
        whole = layers.layer(p, f"{name}/whole", h)
        own = h.unflatten(-1, (G, -1))
        shared = torch.cat((whole, x), -1).unsqueeze(-2).expand(*own.shape[:-1], -1)
        inside = torch.einsum("...gi,goi->...go", torch.cat((own, shared), -1), p[f"{name}/inside/weight"]).flatten(-2)
        inside = silu(layers.norm(p, f"{name}/inside", inside)).unflatten(-1, (G, -1))
        gates = torch.einsum("...gi,goi->...go", inside, p[f"{name}/gates/weight"])
        reset, candidate, update = gates.chunk(3, -1)  # of every block
        return torch.cat((reset.flatten(-2), candidate.flatten(-2), update.flatten(-2)), -1) + p[f"{name}/gates/bias"]

    def probs(self, logits: Tensor) -> Tensor:
        return eq.unimix(logits.unflatten(-1, (self.cfg.classes, self.cfg.stoch)), self.cfg.unimix, -2)

    def prior(self, h: Tensor) -> Tensor:
        return self.probs(layers.head(self.params, f"{MODEL}/prior", h, 1))

    def posterior(self, h: Tensor, seen: Tensor) -> Tensor:
        """`seen`: what the observation adds, as `see` makes it."""
        p, name = self.params, f"{MODEL}/posterior"
        x = silu(layers.norm(p, name, linear(h, p[f"{name}/weight"]) + seen))
        return self.probs(layers.out(p, f"{name}/out", x))

    def see(self, obs: Tensor) -> Tensor:
        p = self.params
        if self.image is not None:
            return linear(images.encode(self.image, p, obs), p[f"{MODEL}/seen/weight"])
        numbers = pad(self.target(obs), (0, ONE), value=1.0)
        return linear(layers.mlp(p, f"{MODEL}/encoder", numbers, self.cfg.layers), p[f"{MODEL}/seen/weight"])

    # ---- A batch

    def observe(self, batch: Batch, uniform: Tensor, start: Start | None = None) -> Course:
        """Run over real rows; `uniform` [T, B, stoch] draws the latents. `start`: what was remembered before them."""
        keep = 1 - batch.fresh
        effect = self.effect(batch.action * keep.unsqueeze(-1))
        h, z, post = self.scan(self.see(batch.obs), effect, keep, uniform, start or self.blank(keep.shape[1]))
        return Course(h, z, post, self.prior(h))

    def blank(self, rows: int) -> Start:
        return Start(torch.zeros(rows, self.cfg.deter), torch.zeros(rows, self.latent))

    def scan(self, seen: Tensor, effect: Tensor, keep: Tensor, uniform: Tensor, start: Start) -> tuple[Tensor, ...]:
        """(memory, latents, their posterior) of every step [T, B, ...]; `keep` is 0 where an episode begins."""
        if self.fast_core is not None:
            h, z, post = fast_scan.Scan.apply(seen, effect, keep, uniform, start, self.params, self.fast_core)
            return h, z, post.unflatten(-1, (self.cfg.classes, self.cfg.stoch))
        (h, z), steps = start, []
        for t, keep_t in enumerate(keep.unsqueeze(-1)):
            h = self.core(h * keep_t, z * keep_t, effect[t])
            post = self.posterior(h, seen[t])
            z = eq.sample(post, uniform[t]).flatten(-2)
            steps.append((h, z, post))
        return tuple(torch.stack(parts) for parts in zip(*steps))

    @cached_property
    def fast_core(self) -> Core | None:
        """The recurrent part as the kernels take it, where they can."""
        cfg = self.cfg
        if cfg.core != "gru" or not self.params.fast:
            return None
        return fast_scan.core_of(self.params, cfg.deter, cfg.hidden, cfg.classes, cfg.stoch, cfg.unimix, MODEL)

    def reward(self, feature: Tensor, hot: Hot = NONE) -> Tensor:
        """Logits of the reward that arrived with this state."""
        return layers.head(self.params, f"{MODEL}/reward", feature, REWARD_LAYERS, hot)

    def goes_on(self, feature: Tensor, hot: Hot = NONE) -> Tensor:
        """Logit of the probability that the episode is not over in this state."""
        return layers.head(self.params, f"{MODEL}/continue", feature, REWARD_LAYERS, hot).squeeze(-1)

    def earned(self, feature: Tensor, hot: Hot = NONE) -> tuple[Tensor, Tensor]:
        """(reward that arrives with each state, probability that the episode is not over in it)."""
        return self.support.mean(self.reward(feature, hot)), torch.sigmoid(self.goes_on(feature, hot))

    def predict(self, h: Tensor, z: Tensor, action: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
        """Memory and latents after an action [B, in_dim], without looking."""
        h = self.core(h, z, self.effect(action))
        return h, eq.sample(self.prior(h), uniform).flatten(-2)

    def decode(self, feature: Tensor) -> Tensor:
        """The observation as `target` has it: an image, or numbers in symlog."""
        if self.image is not None:
            return images.decode(self.image, self.params, feature)
        return layers.head(self.params, f"{MODEL}/decoder", feature, self.cfg.layers)

    def target(self, obs: Tensor) -> Tensor:
        """What the decoder is to say."""
        if self.image is not None:
            return obs
        return eq.symlog(obs if self.units is None else (obs - self.units[0]) / self.units[1])

    def obs_loss(self, obs: Tensor, feature: Tensor) -> Tensor:
        error = (self.decode(feature) - self.target(obs)).square().sum(-1)
        return error if self.image is not None else 0.5 * error

    def losses(self, batch: Batch, course: Course) -> dict[str, Tensor]:
        """Name -> [T, B], before weights and masks."""
        cfg, feature = self.cfg, course.feature
        floor = eq.free_bits if cfg.free_bits == "clamp" else eq.straight_free_bits
        return {
            "obs": cfg.obs_scale * self.obs_loss(batch.obs, feature),
            "reward": self.support.loss(self.reward(feature), batch.reward) * batch.earned,
            "continue": binary_cross_entropy_with_logits(self.goes_on(feature), 1 - batch.terminal, reduction="none"),
            "dyn": cfg.dyn_scale * floor(eq.kl(course.post.detach(), course.prior), cfg.free_nats),
            "rep": cfg.rep_scale * floor(eq.kl(course.post, course.prior.detach()), cfg.free_nats),
        }


def shapes(cfg: Dreamer, obs_dim: int, actions: Actions, image: Image | None = None) -> Shapes:
    """Name -> shape of every parameter of the model."""
    latent, m = cfg.stoch * cfg.classes, MODEL
    feature, seen = cfg.deter + latent, cfg.units if image is None else image.seen
    parts = layers.mlp_shapes(f"{m}/encoder", obs_dim + ONE, cfg.units, cfg.layers) if image is None else {}
    parts |= {f"{m}/seen/weight": (cfg.hidden, seen), f"{m}/action/weight": (cfg.hidden, actions.in_dim)}
    parts |= layers.layer_shapes(f"{m}/input", latent, cfg.hidden)
    parts |= block_shapes(cfg) if cfg.core == "blocks" else layers.layer_shapes(f"{m}/gates", cfg.hidden + cfg.deter,
                                                                             3 * cfg.deter)  # fmt: skip
    parts |= layers.mlp_shapes(f"{m}/prior", cfg.deter, cfg.hidden, 1, latent)
    parts |= layers.layer_shapes(f"{m}/posterior", cfg.deter, cfg.hidden)
    parts |= layers.out_shapes(f"{m}/posterior/out", cfg.hidden, latent)
    parts |= (layers.mlp_shapes(f"{m}/decoder", feature, cfg.units, cfg.layers, obs_dim) if image is None
              else images.shapes(image, feature))  # fmt: skip
    parts |= layers.mlp_shapes(f"{m}/reward", feature, cfg.units, REWARD_LAYERS, cfg.bins)
    return parts | layers.mlp_shapes(f"{m}/continue", feature, cfg.units, REWARD_LAYERS, 1)


def block_shapes(cfg: Dreamer) -> Shapes:
    name, G, own = f"{MODEL}/blocks", cfg.blocks, cfg.deter // cfg.blocks
    parts = layers.layer_shapes(f"{name}/whole", cfg.deter, cfg.hidden)
    parts |= {f"{name}/inside/weight": (G, own, own + 2 * cfg.hidden), f"{name}/inside/scale": (cfg.deter,),
              f"{name}/inside/bias": (cfg.deter,)}  # fmt: skip
    return parts | {f"{name}/gates/weight": (G, 3 * own, own), f"{name}/gates/bias": (3 * cfg.deter,)}
