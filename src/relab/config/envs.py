"""Which environments exist, and which parameters does each take? (Light: the physics is imported when one is made.)"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from relab.base import limits
from relab.base.documents import Settings
from relab.config.base import require, require_range

PIXELS = (16, 512)  # sides of pictures that can be observed


def check_pixels(side: int | None) -> None:
    require(side is None or PIXELS[0] <= side <= PIXELS[1], f"`pixels` must be from {PIXELS[0]} to {PIXELS[1]} a side,"
            f" or null (none), but got {side}")  # fmt: skip


@dataclass(frozen=True)
class CartPole:
    """Balance a pole on a cart; +1 for each step it stands (Barto, Sutton, Anderson 1983; Gymnasium's CartPole-v1)."""

    name: str = "cartpole-v1"  # id with version
    horizon: int = 500  # time limit in steps; 0: none
    pixels: int | None = None  # side of the square grey pictures that are seen in place of the numbers; null: numbers

    def check(self) -> None:
        require_range("horizon", self.horizon, 0)
        check_pixels(self.pixels)


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
        require_range("agents", self.agents, 1, limits.AGENTS)
        require_range("horizon", self.horizon, 0)
        require_range("wolf_speed", self.wolf_speed, 0.0)
        require_range("storm", self.storm, 0.0, 1.0)


@dataclass(frozen=True)
class Fish:
    """A school in a round pond learns to keep out of the way of a ballistic predator; who is caught stays dead."""

    name: str = "fish-v1"  # id with version
    agents: int = 25  # slots for fish per school, at most 256
    fish: int = 0  # slots that are used, from the next reset of a school on; 0: all
    control: Literal["own", "shared"] = "own"  # every fish acts for itself, or one action, chosen by the next living
    # fish in turn, moves the whole school and earns its mean reward (one row per school)
    horizon: int = 500  # time limit in steps; 0: none
    time_limit: int = 0  # forced truncation after this many steps, which is not survival to the horizon; 0: none
    escape_boost: float = 0.0  # fish start outwards at 2 * this, within 15 degrees; 0: at U(0, 1) in any direction
    spare: bool = False  # no fish starts where it could die in the first step
    jitter: float = 0.0  # the predator starts within this distance of the centre
    pre_roll: int = 0  # steps the predator flies before the fish are put in
    pre_roll_angle: float = 17.0  # degrees: its heading turns by up to this in each of them
    pre_roll_speed: float = 0.0  # its speed is multiplied by 1 +- up to this in each of them
    headings: tuple[float, ...] = ()  # predator's first heading: from, to (degrees), weight, and again; empty: 0
    speeds: tuple[float, ...] = ()  # its speed at the start: from, to, weight, and again; empty: 1.5 and the flight
    starts: tuple[float, ...] = ()  # its velocity at the start, one of these pairs: vx, vy, vx, vy ...; empty: as above
    density_coef: float = 0.0  # reward lost per unit of crowding above `density_target`, before the factor 0.1
    density_target: float = 0.5  # crowding that costs nothing: neighbours within 2.0, over 6, at most 1
    divergence_coef: float = 0.0  # reward per unit of speed at which neighbours draw apart, before the factor 0.1

    @property
    def actors(self) -> int:
        """Rows per school that act: its slots, or one for all with `control=shared`."""
        return 1 if self.control == "shared" else self.agents

    def check(self) -> None:
        require_range("agents", self.agents, 1, 256)
        require_range("fish", self.fish, 0, self.agents)
        for name in ("horizon", "time_limit", "jitter", "pre_roll", "pre_roll_angle", "density_coef"):
            require_range(name, getattr(self, name), 0)
        for name in ("escape_boost", "pre_roll_speed", "density_target"):
            require_range(name, getattr(self, name), 0.0, 1.0)
        require_range("jitter", self.jitter, 0.0, 9.0)
        for name, size in (("headings", 3), ("speeds", 3), ("starts", 2)):
            self._check_groups(name, size)

    def _check_groups(self, name: str, size: int) -> None:
        numbers = getattr(self, name)
        require(len(numbers) % size == 0, f"`{name}` must be groups of {size} numbers, but got {len(numbers)} numbers")
        weights = numbers[2::3] if size == 3 else (1.0,)
        require(
            not numbers or (min(weights) >= 0 and sum(weights) > 0),
            f"the weights of `{name}` (every third number) must be at least 0, one above it, but got {list(weights)}",
        )


@dataclass(frozen=True)
class Drones:
    """A swarm of quadrotors that hovers, races through rings, or carries boxes; a drone that is lost restarts alone."""

    name: str = "drones-v1"  # id with version
    task: Literal["pick_place", "hover", "race", "hover_race"] = (
        "pick_place"  # hover_race: each world draws one of both
    )
    agents: int = 8  # drones per world, at most 256
    horizon: int = 1024  # time limit in ticks of 0.05 s, shared by a world's drones; 0: none
    rings: int = 5  # of a race, the same for all drones of a world
    size: tuple[float, float] = (0.1, 0.4)  # metres: each drone's is drawn between these
    spread: float = 0.1  # mass, inertia, thrust, drag ... of each drone are multiplied by 1 +- up to this
    collision: Literal["costs", "ends"] = "costs"  # a neighbour within 1 m costs 1 either way; ends: drones that touch
    # (nearer than both arms are long) are lost
    ring_hit: Literal["ends", "costs"] = (
        "ends"  # what a ring that is hit does to a race; costs: as much as an end does,
    )
    # and the drone flies on (PufferLib's newest drones do so; its older ones end)
    guide: float = 1.0  # weight of a reward for every metre of the way and for standing still at the target; 0: only
    # what the published experiments pay for

    def check(self) -> None:
        require_range("agents", self.agents, 1, 256)
        require_range("guide", self.guide, 0.0, 100.0)
        require_range("horizon", self.horizon, 0)
        require_range("rings", self.rings, 1, 100)
        require_range("spread", self.spread, 0.0, 0.5)
        for each in self.size:
            require_range("size", each, 0.02, 2.0)
        require(self.size[0] <= self.size[1], f"`size` must be the smallest and the largest, but got {list(self.size)}")


@dataclass(frozen=True)
class Torus:
    """An adventurer on a torus picks goblets, good and bad, while a ghost chases him; it goes on for ever."""

    name: str = "torus-v1"  # id with version
    p_mix: float = 0.05  # chance per step that the whole state is drawn anew
    clip_action: bool = False  # each component of the velocity is cut to +- v_max
    v_max: float = 0.4  # largest velocity along an axis; used with clip_action alone
    dt: float = 0.05  # seconds per step, on a torus of size 1
    noise: float = 0.01  # standard deviation of a step's noise, of the adventurer and of the ghost
    ghost_speed: float = 0.3  # of the ghost, per second
    plus: float = 0.5  # chance that a goblet is a good one
    horizon: int = 200  # steps after which an evaluation cuts an episode (a truncation); 0: never

    def check(self) -> None:
        require_range("p_mix", self.p_mix, 0.0, 1.0)
        require_range("plus", self.plus, 0.0, 1.0)
        for name in ("v_max", "dt"):
            require_range(name, getattr(self, name), 0.0, open_="low")
        require_range("noise", self.noise, 0.0)
        require_range("ghost_speed", self.ghost_speed, 0.0)
        require_range("horizon", self.horizon, 0)


@dataclass(frozen=True)
class PickCube:
    """A Panda arm grasps a cube, carries it to a goal in the air and holds still (after ManiSkill's PickCube)."""

    name: str = "pickcube-v1"  # id with version
    reward: Literal["sparse", "dense"] = "sparse"  # 1 on success, or shaped: near the cube, grasped, near the goal
    success: Literal["ends", "cuts"] = "ends"  # an episode: nothing is earned after it (terminated), or what the critic
    # expects there counts (truncated); a dense reward that ends makes it pay to put success off
    horizon: int = 50  # time limit in steps; 0: none
    threads: int = 0  # of the physics; 0: as many as the run's `threads`; results do not depend on it

    def check(self) -> None:
        require_range("horizon", self.horizon, 0)
        require_range("threads", self.threads, 0, 256)


@dataclass(frozen=True)
class PickCubeGantry(PickCube):
    """As pickcube, with the gripper on three slides (x, y, z) in place of an arm: learned in a quarter of the steps."""

    name: str = "pickcube-gantry-v1"  # id with version


@dataclass(frozen=True)
class Gym:
    """Any Gymnasium environment by its id: `env=gym:Acrobot-v1`."""

    name: str = "gym:Acrobot-v1"  # "gym:" and the id Gymnasium knows it by ("module:Id-v0" imports the module first)
    kwargs: Settings = field(default_factory=dict)  # passed on to gymnasium.make
    horizon: int = -1  # time limit in steps; -1: the one it is registered with; 0: none
    pixels: int | None = None  # side of square pictures, drawn by itself, that are seen in place of what it shows

    def check(self) -> None:
        check_pixels(self.pixels)
        require(self.name.startswith("gym:") and len(self.name) > 4, f"`name` must be gym:ID, but got {self.name!r}")
        require_range("horizon", self.horizon, -1)
        require(
            "render_mode" not in self.kwargs, "`kwargs` must not hold render_mode; rgb_array is used where there is one"
        )


# name: (params class, env class), both as "module:attr" and imported when used
ENVS: dict[str, tuple[str, str]] = {
    "cartpole-v1": ("relab.config.envs:CartPole", "relab.train.envs.cartpole:CartPole"),
    "pendulum-v1": ("relab.config.envs:Pendulum", "relab.train.envs.pendulum:Pendulum"),
    "ladder-value-v1": ("relab.config.envs:LadderValue", "relab.train.envs.ladder:Value"),
    "ladder-backprop-v1": ("relab.config.envs:LadderBackprop", "relab.train.envs.ladder:Backprop"),
    "ladder-discount-v1": ("relab.config.envs:LadderDiscount", "relab.train.envs.ladder:Discount"),
    "ladder-policy-v1": ("relab.config.envs:LadderPolicy", "relab.train.envs.ladder:Policy"),
    "ladder-both-v1": ("relab.config.envs:LadderBoth", "relab.train.envs.ladder:Both"),
    "herd-v1": ("relab.config.envs:Herd", "relab.train.envs.herd:Herd"),
    "fish-v1": ("relab.config.envs:Fish", "relab.train.envs.fish:Fish"),
    "drones-v1": ("relab.config.envs:Drones", "relab.train.envs.drones:Drones"),
    "torus-v1": ("relab.config.envs:Torus", "relab.train.envs.torus:Torus"),
    "pickcube-v1": ("relab.config.envs:PickCube", "relab.train.envs.pickcube:PickCube"),
    "pickcube-gantry-v1": ("relab.config.envs:PickCubeGantry", "relab.train.envs.pickcube:PickCubeGantry"),
}
GYM = ("relab.config.envs:Gym", "relab.train.envs.gym_bridge:Gym")  # for every name that begins with "gym:"
