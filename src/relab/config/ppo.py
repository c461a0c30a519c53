"""What can be set for PPO, and which numbers follow from it?"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from relab.base import limits
from relab.config.base import require, require_numbers, require_range
from relab.config.shared import Collected, Discounted, check_layers

LrSchedule = Literal["constant", "linear", "adaptive_kl"]


@dataclass(frozen=True)
class PPO(Discounted, Collected):
    """Clipped policy gradient (Schulman et al. 2017), with GAE or Monte-Carlo advantages."""

    name: str = "ppo"  # algorithm
    envs: int = 64  # parallel worlds
    steps: int = 32  # steps of each world between updates
    stagger: bool = False  # clocks of the worlds are spread over the time limit at the start, so that a batch holds all
    # ages of episodes; the first episode of each world is cut shorter
    epochs: int = 4  # passes over a batch
    minibatches: int = 4  # parts a batch is cut into, one optimiser step each
    lr: float = 3e-4  # Adam's learning rate at the start
    lr_schedule: LrSchedule = "constant"  # linear: falls to lr * lr_final at total_steps; adaptive_kl: divided by 1.5
    # when an update's KL exceeds 2 * target_kl, multiplied by 1.5 when it is under target_kl / 2
    lr_final: float = 0.0  # share of lr that is left at the end of the linear schedule
    gamma: float = 0.99  # discount per step
    lam: float = 0.95  # GAE's lambda: 0 is one-step TD, 1 is Monte-Carlo with a baseline
    advantage: Literal["gae", "monte_carlo"] = "gae"  # monte_carlo: return minus value, bootstrapped where cut
    clip: float = 0.2  # the ratio pi_new / pi_old is clipped to 1 +- clip
    clip_value: float | None = None  # value predictions may move this far from the old ones; null: no clipping
    ent_coef: float = 0.0  # weight of the entropy bonus at the start
    ent_coef_final: float | None = None  # weight at total_steps, reached linearly; null: constant
    value_coef: float = 0.5  # weight of the value loss
    max_grad_norm: float = 0.5  # the gradient's global norm is clipped to this
    target_kl: float | None = None  # the epochs of an iteration end once the KL exceeds 1.5 times this; null: never
    norm_adv: bool = True  # advantages of a whole batch get mean 0 and standard deviation 1
    norm_obs: bool = False  # observations are divided by running statistics, which checkpoints hold
    norm_return: bool = False  # rewards are divided by the running standard deviation of the discounted return
    obs_clip: float = 10.0  # normalised observations are clipped to +- this
    hidden: tuple[int, ...] = (64, 64)  # units per hidden layer, the same for policy and value
    activation: Literal["tanh", "relu"] = "tanh"  # nonlinearity of the hidden layers
    encoder: Literal["auto", "none", "conv"] = "auto"  # conv: images pass convolutions, which policy and value share,
    # before the hidden layers; none: pixels are numbers like others; auto: conv where images are observed
    rnn: Literal["none", "gru", "lstm", "mingru"] = "none"  # recurrent layer behind the hidden ones
    rnn_size: int = 64  # units of the recurrent layer
    bptt: int = 16  # steps of back-propagation through time; divides `steps`
    log_std_init: float = 0.0  # Gaussian policies: log standard deviation at the start
    log_std_min: float = -5.0  # lower clamp of the log standard deviation
    log_std_max: float = 2.0  # upper clamp of the log standard deviation
    squash: bool = False  # Gaussian policies: actions pass a tanh into [low, high] instead of being clipped
    chunk: int = 1024  # rows per forward and backward pass, so that they stay in cache; changes speed, hardly results
    optimizer: Literal["adam", "adamw", "muon"] = "adam"  # adamw: Adam with `weight_decay`; muon: matrices move along
    # their orthogonalised momentum (learning rates of 0.003 to 0.03 are usual), everything else by Adam at lr / 10
    weight_decay: float = 0.0  # adamw and muon: share of each weight that a step takes away, times lr
    momentum: float = 0.95  # muon's
    adam_eps: float = 1e-5  # Adam's epsilon
    ranks: int = 1  # processes that train one run together, each with its share of the worlds
    backend: Literal["gloo", "nccl"] = "gloo"  # what their gradients go by; nccl: between GPUs

    @property
    def minibatch(self) -> int:
        """World rows of one optimiser step: batch / minibatches."""
        return self.batch // self.minibatches

    @property
    def updates(self) -> int:
        """Optimiser steps per iteration: epochs * minibatches."""
        return self.epochs * self.minibatches

    def critic_layers(self) -> tuple[int, ...]:
        """Units per hidden layer of the value network."""
        return self.hidden

    def compiled_ahead(self) -> tuple[str, str] | None:
        """What a second process compiles for a first run on a machine: a generator of parts, and the kernel that tells
        whether that was done before; None where torch learns."""
        return ("relab.train.algos.ppo:compile_parts", "ppo_learner.ppo_epochs") if self.rnn == "none" else None

    def check(self) -> None:
        self._check_sizes()
        self._check_ranges()
        self._check_together()

    def _check_sizes(self) -> None:
        for name in ("envs", "steps", "epochs", "minibatches", "rnn_size", "bptt", "chunk"):
            require_range(name, getattr(self, name), 1)
        check_layers(self.hidden)
        check_layers([self.rnn_size], "rnn_size")
        weights = self._fewest_weights()
        require(weights <= limits.WEIGHTS, f"`hidden` and `rnn_size` must make networks of at most"
                f" {limits.WEIGHTS:,} weights, but got hidden = {list(self.hidden)!s:.80}: {weights:,} even for one"
                " observed number; use fewer or smaller layers")  # fmt: skip
        require(self.chunk <= limits.CHUNK, f"`chunk` must be at most {limits.CHUNK:,} rows, but got {self.chunk:,}")

    def _fewest_weights(self) -> int:
        """The fewest weights that policy and value can have together: those for one observed number, one action."""
        layers = sum((before + 1) * after for before, after in pairwise((1, *self.hidden, 1)))
        if self.rnn == "none":
            return 2 * layers
        gates, inputs = {"gru": 3, "lstm": 4, "mingru": 2}[self.rnn], (self.hidden or (1,))[-1]
        return layers + gates * self.rnn_size * (inputs + (0 if self.rnn == "mingru" else self.rnn_size))

    def _check_ranges(self) -> None:
        for name in ("lr", "clip", "max_grad_norm", "obs_clip", "adam_eps"):
            require_range(name, getattr(self, name), 0, open_="low")
        for name in ("gamma", "lam", "lr_final"):
            require_range(name, getattr(self, name), 0, 1)
        require_range("value_coef", self.value_coef, 0)
        require_range("weight_decay", self.weight_decay, 0)
        require_range("momentum", self.momentum, 0, 1, open_="high")
        require(self.weight_decay == 0 or self.optimizer != "adam", "`weight_decay` needs `optimizer=adamw` or muon,"
                f" but got weight_decay = {self.weight_decay:g} and adam")  # fmt: skip
        for name in ("clip_value", "target_kl"):
            if getattr(self, name) is not None:
                require_range(name, getattr(self, name), 0, open_="low")
        require_numbers(self, limits=("clip", "clip_value", "target_kl", "max_grad_norm", "obs_clip"))

    def _check_together(self) -> None:
        require(
            self.batch % self.minibatches == 0,
            f"`envs * steps` must divide by `minibatches`, but got {self.envs} * {self.steps} = {self.batch}"
            f" and minibatches = {self.minibatches}",
        )
        require_range("ranks", self.ranks, 1)
        require(self.envs % self.ranks == 0, f"`ranks` must divide `envs`, but got envs = {self.envs} and ranks ="
                f" {self.ranks}")  # fmt: skip
        require(self.ranks == 1 or self.name == "ppo", f"`ranks` is for ppo, but the algorithm is {self.name}")
        require(self.batch > 1 or not self.norm_adv, "`norm_adv` needs a batch of at least 2 rows, but got 1")
        if self.rnn != "none":
            require(
                self.steps % self.bptt == 0,
                f"`bptt` must divide `steps`, but got steps = {self.steps} and bptt = {self.bptt}",
            )
            self._check_segments()
        require(
            self.log_std_min <= self.log_std_init <= self.log_std_max,
            "`log_std_min <= log_std_init <= log_std_max` must hold, but got"
            f" {self.log_std_min:g}, {self.log_std_init:g}, {self.log_std_max:g}",
        )
        require(
            self.lr_schedule != "adaptive_kl" or self.target_kl is not None,
            "`lr_schedule=adaptive_kl` needs a `target_kl`, but got null; try target_kl=0.01",
        )

    def _check_segments(self) -> None:
        segments = self.batch // self.bptt
        fits = next(k for k in range(min(self.minibatches, segments), 0, -1) if segments % k == 0)
        require(
            segments % self.minibatches == 0,
            "with a recurrent layer, `envs * steps / bptt` must divide by `minibatches`, but got"
            f" {self.envs} * {self.steps} / {self.bptt} = {segments} and minibatches = {self.minibatches};"
            f" try minibatches={fits}",
        )
