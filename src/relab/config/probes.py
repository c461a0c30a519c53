"""When does a run measure itself, and with how many samples? (The sections of `probes`; docs/probes.md.)"""

from __future__ import annotations

from dataclasses import dataclass, field

from relab.config.base import require_range


def at_least(probe: object, section: str, **lows: int) -> None:
    for name, low in lows.items():
        require_range(f"probes.{section}.{name}", getattr(probe, name), low)


def above_zero(probe: object, section: str, *names: str) -> None:
    for name in names:
        require_range(f"probes.{section}.{name}", getattr(probe, name), 0.0, open_="low")


@dataclass(frozen=True)
class Plateau:
    """Besides the schedule: a round of probes when the loss stands still."""

    enabled: bool = False  # whether a plateau asks for probes
    window: int = 20  # last iterations that are looked at
    z: float = 2.0  # it stands still while its slope over the window is under z standard errors
    cooldown: int = 20  # iterations until a plateau may ask again
    min_iter: int = 20  # iterations before which none is asked for

    def check(self) -> None:
        at_least(self, "plateau", window=3, cooldown=1, min_iter=0)
        above_zero(self, "plateau", "z")


@dataclass(frozen=True)
class Distribution:
    """How far do the two policies, and the states they visit, lie apart?"""

    enabled: bool = True  # whether it is asked
    samples: int = 4096  # steps under each policy
    action_samples: int = 64  # actions per state for the total variation

    def check(self) -> None:
        at_least(self, "distribution", samples=16, action_samples=1)


@dataclass(frozen=True)
class FixedPoint:
    """Where does the critic go, if the policies stay as they are?"""

    enabled: bool = True  # whether it is asked
    samples: int = 4096  # transitions under mu; stability uses the same
    k_mc: int = 4  # draws of the next action
    tol: float = 1e-9  # relative residual at which the solution counts as converged
    capped: bool = False  # also iterate as the studied program did: max_iters steps of alpha_w times the mean
    max_iters: int = 2000  # cap of that iteration
    capped_tol: float = 1e-7  # it has converged once a step is shorter than this

    def check(self) -> None:
        at_least(self, "fixed_point", samples=1, k_mc=1, max_iters=1)
        above_zero(self, "fixed_point", "tol", "capped_tol")


@dataclass(frozen=True)
class Stability:
    """Does one step of training shrink errors of the critic, in the slowest direction too?"""

    enabled: bool = True  # whether it is asked
    krylov: int = 16  # directions kept to find the extreme eigenvalues
    power_iters: int = 20  # steps of the power iteration that is shown for comparison

    def check(self) -> None:
        at_least(self, "stability", krylov=4, power_iters=1)


@dataclass(frozen=True)
class QKernel:
    """How do temporal differences at two times go together?"""

    enabled: bool = True  # whether it is asked
    trajectories: int = 0  # of the batch that enter; 0: all

    def check(self) -> None:
        at_least(self, "q_kernel", trajectories=0)


@dataclass(frozen=True)
class ValueVsRerun:
    """Does the critic believe what the policy earns?"""

    enabled: bool = True  # whether it is asked
    starts: int = 32  # worlds whose state is looked at, each somewhere in the policy's own first steps
    reruns: int = 16  # times that the policy goes on from each of them
    spread: int = 100  # steps over which the looked-at states are spread
    cap: int = 1_000  # steps of a rerun at most; fewer where the discount leaves less than a thousandth of what follows

    def check(self) -> None:
        at_least(self, "value_vs_rerun", starts=2, reruns=1, spread=1, cap=1)


@dataclass(frozen=True)
class ActionRanking:
    """Does the critic know which of several actions is better?"""

    enabled: bool = True  # whether it is asked
    starts: int = 32  # worlds whose state is looked at, each somewhere in the policy's own first steps
    spread: int = 40  # steps over which the looked-at states are spread
    actions: int = 5  # that are drawn in each of them
    truth: int = 32  # re-rollouts that tell what an action is worth, besides those that are shown beside the critic
    cut: int = 25  # steps of a re-rollout at most

    def check(self) -> None:
        at_least(self, "action_ranking", starts=2, spread=1, actions=2, truth=1, cut=1)


@dataclass(frozen=True)
class NoiseScales:
    """How much of what is missing is noise?"""

    enabled: bool = True  # whether it is asked
    scales: tuple[float, ...] = (0.0, 0.25, 0.5, 1.0, 2.0)  # of the policy's own noise: 0 is its mode
    episodes: int = 100  # first episodes at each of them

    def check(self) -> None:
        at_least(self, "noise_scales", episodes=1)
        for scale in self.scales:
            require_range("probes.noise_scales.scales", scale, 0)


@dataclass(frozen=True)
class DreamVsWorld:
    """Do dreams earn what the world pays?"""

    enabled: bool = True  # whether it is asked
    starts: int = 32  # worlds whose state is looked at, each somewhere in the policy's own first steps
    repeats: int = 16  # dreams, and walks through the world, from each of them
    spread: int = 100  # steps over which the looked-at states are spread

    def check(self) -> None:
        at_least(self, "dream_vs_world", starts=2, repeats=1, spread=1)


@dataclass(frozen=True)
class OpenLoop:
    """How well does the world model foresee what it does not see?"""

    enabled: bool = True  # whether it is asked
    walks: int = 32  # new episodes, which were never learned from
    context: int = 5  # steps that it sees before it must foresee
    ahead: int = 15  # steps that it foresees, told of the actions alone

    def check(self) -> None:
        at_least(self, "open_loop", walks=2, context=1, ahead=1)


@dataclass(frozen=True)
class Probes:
    """Measurements during training, from random streams of their own: metrics are the same bytes with and without."""

    every: int = 5  # iterations between two rounds; the last iteration has one as well; 0: the last one alone
    plateau: Plateau = field(default_factory=Plateau)  # when the loss stands still
    distribution: Distribution = field(default_factory=Distribution)  # of states, actions and ratios
    fixed_point: FixedPoint = field(default_factory=FixedPoint)  # of the critic
    stability: Stability = field(default_factory=Stability)  # of its update
    q_kernel: QKernel = field(default_factory=QKernel)  # of its errors
    value_vs_rerun: ValueVsRerun = field(default_factory=ValueVsRerun)  # of states, against what is earned from them
    action_ranking: ActionRanking = field(default_factory=ActionRanking)  # of the critic, against worlds run again
    noise_scales: NoiseScales = field(default_factory=NoiseScales)  # outcomes with less and more noise in the actions
    dream_vs_world: DreamVsWorld = field(default_factory=DreamVsWorld)  # returns of a world model
    open_loop: OpenLoop = field(default_factory=OpenLoop)  # its predictions

    def check(self) -> None:
        require_range("probes.every", self.every, 0)
