"""What can be set for SAC, and which numbers follow from it?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from relab.config.base import require, require_range
from relab.config.replay import Replayed, check_replay


@dataclass(frozen=True)
class SAC(Replayed):
    """Soft actor-critic (Haarnoja et al. 2018): twin critics, a tanh-Gaussian actor, a temperature that is learned."""

    name: str = "sac"  # algorithm
    envs: int = 1  # parallel worlds
    steps: int = 256  # steps of each world between two rows of metrics
    replay: int = 1_000_000  # transitions that are kept to learn from
    learning_starts: int = 1_000  # agent steps with evenly drawn actions before the first update
    updates_per_step: float = 1.0  # updates of critics, actor and temperature for each agent step
    minibatch: int = 256  # transitions of one update
    lr: float = 3e-4  # Adam's learning rate, the same for critics, actor and temperature
    gamma: float = 0.99  # discount per step
    n_step: int = 1  # rewards that are summed before the target networks' value is taken
    tau: float = 0.005  # share of the critics that is copied into the target networks after each update
    temperature: float | None = None  # weight of the entropy in the return; null: learned, starting from 1
    target_entropy: float | None = None  # entropy that the temperature is learned for, in nats; null: minus the number
    # of action components
    hidden: tuple[int, ...] = (256, 256)  # units per hidden layer, of the actor and of each critic
    activation: Literal["relu", "tanh"] = "relu"  # nonlinearity of the hidden layers
    adam_eps: float = 1e-8  # Adam's epsilon

    def check(self) -> None:
        check_replay(self)
        require_range("temperature", self.temperature or 0, 0)
        require(self.temperature is None or self.target_entropy is None, "`target_entropy` steers a temperature that is"
                f" learned, but `temperature` is fixed at {self.temperature}; set one of them to null")  # fmt: skip
