"""Which environments exist, and which parameters does each take? (Light: the physics is imported when one is made.)"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from relab.configs.base import require, require_range


@dataclass(frozen=True)
class CartPole:
    """Balance a pole on a cart; +1 for each step it stands (Barto, Sutton, Anderson 1983; Gymnasium's CartPole-v1)."""

    name: str = "cartpole-v1"  # id with version
    horizon: int = 500  # time limit in steps; 0: none

    def check(self) -> None:
        require_range("horizon", self.horizon, 0)


@dataclass(frozen=True)
class Pendulum:
    """Swing a pendulum up and hold it with little torque (Gymnasium's Pendulum-v1)."""

    name: str = "pendulum-v1"  # id with version
    horizon: int = 200  # time limit in steps; 0: none

    def check(self) -> None:
        require_range("horizon", self.horizon, 0)


@dataclass(frozen=True)
class LadderValue:
    """One step, one action, reward 1: can the critic learn a constant?"""

    name: str = "ladder-value-v1"  # id with version


@dataclass(frozen=True)
class LadderBackprop:
    """One step, one action, observation +1 or -1 is the reward: can the critic learn from what it sees?"""

    name: str = "ladder-backprop-v1"  # id with version


@dataclass(frozen=True)
class LadderDiscount:
    """Two steps, observation 0 then 1, reward 1 at the end: does the value come back in time, discounted?"""

    name: str = "ladder-discount-v1"  # id with version


@dataclass(frozen=True)
class LadderPolicy:
    """One step, action 1 pays +1 and action 0 pays -1: does the policy move towards what pays?"""

    name: str = "ladder-policy-v1"  # id with version


@dataclass(frozen=True)
class LadderBoth:
    """One step, the action that agrees with the observation's sign pays +1, the other -1: do both learn together?"""

    name: str = "ladder-both-v1"  # id with version


@dataclass(frozen=True)
class Herd:
    """Sheep walk to a pasture and graze until they are fed; a wolf catches those it reaches."""

    name: str = "herd-v1"  # id with version
    agents: int = 3  # sheep per world
    agent_reset: Literal["alone", "with_world"] = "with_world"  # a sheep that ends restarts at once, or with its world
    action: Literal["continuous", "discrete"] = (
        "continuous"  # velocity in [-1, 1]^2, or stay / right / up / left / down
    )
    horizon: int = 100  # time limit in world steps; 0: none
    wolf_speed: float = 0.015  # metres per step; a sheep does at most 0.05 along each axis; 0: the wolf stands still
    storm: float = 0.0  # chance per step that a storm ends the world for all (a truncation of the env's own)

    def check(self) -> None:
        require_range("agents", self.agents, 1)
        require_range("horizon", self.horizon, 0)
        require_range("wolf_speed", self.wolf_speed, 0.0)
        require_range("storm", self.storm, 0.0, 1.0)


@dataclass(frozen=True)
class Gym:
    """Any Gymnasium environment by its id: `env=gym:Acrobot-v1`."""

    name: str = "gym:Acrobot-v1"  # "gym:" and the id Gymnasium knows it by ("module:Id-v0" imports the module first)
    kwargs: dict[str, Any] = field(default_factory=dict)  # passed on to gymnasium.make
    horizon: int = -1  # time limit in steps; -1: the one it is registered with; 0: none

    def check(self) -> None:
        require(self.name.startswith("gym:") and len(self.name) > 4, f"`name` must be gym:ID, but got {self.name!r}")
        require_range("horizon", self.horizon, -1)
        require(
            "render_mode" not in self.kwargs, "`kwargs` must not hold render_mode; rgb_array is used where there is one"
        )


# name: (params class, env class), both as "module:attr" and imported when used
ENVS: dict[str, tuple[str, str]] = {
    "cartpole-v1": ("relab.configs.envs:CartPole", "relab.envs.cartpole:CartPole"),
    "pendulum-v1": ("relab.configs.envs:Pendulum", "relab.envs.pendulum:Pendulum"),
    "ladder-value-v1": ("relab.configs.envs:LadderValue", "relab.envs.ladder:Value"),
    "ladder-backprop-v1": ("relab.configs.envs:LadderBackprop", "relab.envs.ladder:Backprop"),
    "ladder-discount-v1": ("relab.configs.envs:LadderDiscount", "relab.envs.ladder:Discount"),
    "ladder-policy-v1": ("relab.configs.envs:LadderPolicy", "relab.envs.ladder:Policy"),
    "ladder-both-v1": ("relab.configs.envs:LadderBoth", "relab.envs.ladder:Both"),
    "herd-v1": ("relab.configs.envs:Herd", "relab.envs.herd:Herd"),
}
GYM = ("relab.configs.envs:Gym", "relab.envs.gym_bridge:Gym")  # for every name that begins with "gym:"
