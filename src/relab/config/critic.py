"""What can be set when a critic is fitted to a policy's episodes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from relab.config.base import require, require_range
from relab.config.ppo import PPO
from relab.config.shared import check_layers


@dataclass(frozen=True)
class Critic(PPO):
    """A critic is fitted to the returns of a policy that stays as it is; a pass over the data is an iteration."""

    NEEDS_START: ClassVar[str] = "the policy whose values are fitted"

    name: str = "critic"  # algorithm
    envs: int = 64  # parallel worlds; every tenth is held out
    steps: int = 200  # steps of each world, once
    minibatches: int = 20  # parts the data is cut into, one optimiser step each
    lr: float = 1e-3  # Adam's learning rate at the start; it falls to 0 over the passes
    gamma: float = 0.8  # discount per step
    hidden: tuple[int, ...] = (128, 128, 128)  # units per hidden layer of the policy: those of the start
    critic_hidden: tuple[int, ...] | None = None  # units per hidden layer of the critic; null: as `hidden`
    log_std: float | None = None  # the policy's log standard deviation is set to this; null: as it is
    reward_scale: float = 1.0  # rewards are multiplied by this: the unit of the values

    @property
    def updates(self) -> int:
        """Optimiser steps per iteration, which is one pass over the data: minibatches."""
        return self.minibatches

    def critic_layers(self) -> tuple[int, ...]:
        return self.hidden if self.critic_hidden is None else self.critic_hidden

    def check(self) -> None:
        super().check()
        require(self.rnn == "none", f"a critic is fitted without a recurrent layer, but `rnn` is {self.rnn}")
        require(self.optimizer == "adam", f"a critic is fitted by Adam, but `optimizer` is {self.optimizer}")
        require(self.envs >= 2, f"some worlds are held out, so that `envs` must be at least 2, but got {self.envs}")
        require_range("reward_scale", self.reward_scale, 0, open_="low")
        if self.log_std is not None:
            require_range("log_std", self.log_std, self.log_std_min, self.log_std_max)
        if self.critic_hidden is not None:
            check_layers(self.critic_hidden, "critic_hidden")
