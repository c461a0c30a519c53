"""What can be set for DQN, and which numbers follow from it?"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from relab.base import limits
from relab.config.base import require, require_range


@dataclass(frozen=True)
class DQN:
    """Deep Q-learning (Mnih et al. 2015), double (van Hasselt et al. 2016), n-step, dueling as an option."""

    name: str = "dqn"  # algorithm
    envs: int = 4  # parallel worlds
    steps: int = 64  # steps of each world between two rows of metrics
    replay: int = 100_000  # transitions that are kept to learn from
    learning_starts: int = 1_000  # agent steps before the first update
    updates_per_step: float = 0.25  # optimiser steps for each agent step
    minibatch: int = 64  # transitions of one optimiser step
    lr: float = 1e-3  # Adam's learning rate
    lr_final: float = 1.0  # share of lr that is left at total_steps, reached linearly
    gamma: float = 0.99  # discount per step
    n_step: int = 1  # rewards that are summed before the target network's value is taken
    double: bool = True  # the online network chooses the next action, the target network says what it is worth
    dueling: bool = False  # Q = V + A - mean(A)
    target_every: int = 100  # updates between two copies into the target network
    tau: float = 1.0  # share that is copied; 1 is a whole copy
    epsilon: float = 1.0  # share of random actions at the start
    epsilon_final: float = 0.05  # share of random actions in the end
    epsilon_until: float = 0.2  # share of total_steps at which it has fallen to that
    max_grad_norm: float = 10.0  # the gradient's norm is clipped to this
    hidden: tuple[int, ...] = (128, 128)  # units per hidden layer
    activation: Literal["relu", "tanh"] = "relu"  # nonlinearity of the hidden layers
    adam_eps: float = 1e-8  # Adam's epsilon

    @property
    def batch(self) -> int:
        """World rows of one iteration: envs * steps."""
        return self.envs * self.steps

    @property
    def horizon(self) -> float:
        """Steps ahead that the discount still sees: 1 / (1 - gamma)."""
        return 1 / (1 - self.gamma) if self.gamma < 1 else math.inf

    @property
    def replay_ratio(self) -> float:
        """How often a transition is learned from, on average: updates_per_step * minibatch."""
        return self.updates_per_step * self.minibatch

    def check(self) -> None:
        check_replay(self)
        require_range("tau", self.tau, 0, 1, open_="low")
        for name in ("epsilon", "epsilon_final", "epsilon_until", "lr_final"):
            require_range(name, getattr(self, name), 0, 1)
        require_range("target_every", self.target_every, 1)


def check_replay(cfg: DQN) -> None:
    """What every method with a replay needs to hold."""
    for name in ("envs", "steps", "replay", "minibatch", "n_step"):
        require_range(name, getattr(cfg, name), 1)
    require_range("learning_starts", cfg.learning_starts, 0)
    for name in ("lr", "updates_per_step", "max_grad_norm", "adam_eps"):
        require_range(name, getattr(cfg, name), 0, open_="low")
    require_range("gamma", cfg.gamma, 0, 1)
    widest = max(cfg.hidden, default=1)
    require(min(cfg.hidden, default=1) >= 1, f"each of `hidden` must be at least 1, but got {list(cfg.hidden)}")
    require(widest <= limits.WIDTH, f"a layer of `hidden` must have at most {limits.WIDTH:,} units, but got {widest:,};"
            " use fewer")  # fmt: skip
    require(cfg.replay <= limits.REPLAY, f"`replay` must be at most {limits.REPLAY:,} transitions, but got"
            f" {cfg.replay:,}")  # fmt: skip
    require(cfg.replay >= cfg.minibatch, f"`replay` must hold a minibatch, but got replay = {cfg.replay:,} and"
            f" minibatch = {cfg.minibatch:,}")  # fmt: skip
    require(cfg.replay >= cfg.envs * (cfg.n_step + 1), f"`replay` must hold n_step + 1 = {cfg.n_step + 1} steps of"
            f" every world, but got replay = {cfg.replay:,} and envs = {cfg.envs:,}")  # fmt: skip
    require(cfg.learning_starts <= cfg.replay, "`learning_starts` must not exceed `replay`, which could never hold as"
            f" much, but got learning_starts = {cfg.learning_starts:,} and replay = {cfg.replay:,}")  # fmt: skip
