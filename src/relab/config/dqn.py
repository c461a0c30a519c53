"""What can be set for DQN, and which numbers follow from it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from relab.config.base import require_range
from relab.config.replay import Replayed, check_replay


@dataclass(frozen=True)
class DQN(Replayed):
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
    dueling: bool = False  # two outputs, the value of the state and the advantage of each action: Q = V + A - mean(A)
    target_every: int = 100  # updates between two copies into the target network
    tau: float = 1.0  # share that is copied; 1 is a whole copy
    epsilon: float = 1.0  # share of random actions at the start
    epsilon_final: float = 0.05  # share of random actions in the end
    epsilon_until: float = 0.2  # share of total_steps at which the share of random actions has fallen to epsilon_final
    max_grad_norm: float = 10.0  # the gradient's norm is clipped to this
    hidden: tuple[int, ...] = (128, 128)  # units per hidden layer
    activation: Literal["relu", "tanh"] = "relu"  # nonlinearity of the hidden layers
    adam_eps: float = 1e-8  # Adam's epsilon

    def check(self) -> None:
        check_replay(self)
        require_range("max_grad_norm", self.max_grad_norm, 0, open_="low")
        for name in ("epsilon", "epsilon_final", "epsilon_until", "lr_final"):
            require_range(name, getattr(self, name), 0, 1)
        require_range("target_every", self.target_every, 1)
