"""Plain types that every part of relab shares: what an environment is like, seen from outside."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from relab.base.documents import Document

ActionKind = Literal["discrete", "multi_discrete", "continuous"]
AgentReset = Literal["alone", "with_world"]
Reducer = Literal["sum", "mean", "last", "max", "min"]
Outcome = Literal["return", "success"]


@dataclass(frozen=True)
class Action:
    """One agent's action: `n` choices per component (discrete kinds) or a box [low, high] (continuous)."""

    kind: ActionKind
    dim: int  # components: 1 for discrete
    n: tuple[int, ...] = ()  # choices per component; empty for continuous
    low: tuple[float, ...] = ()  # continuous bounds, one per component
    high: tuple[float, ...] = ()


@dataclass(frozen=True)
class Channel:
    """A number the environment reports each step beside the reward, reduced to one number per episode."""

    name: str
    unit: str = ""
    reducer: Reducer = "sum"
    quantile: float | None = None  # logged: this quantile over the episodes where it is above 0; None: the mean of all

    @property
    def metric(self) -> str:
        """What it is logged as, after `env/`."""
        return self.name if self.quantile is None else f"{self.name}_p{100 * self.quantile:g}"


@dataclass(frozen=True)
class Spec:
    """All that a reader of the record must know about the environment; written to meta.json as `spec`."""

    env: str  # id with version, e.g. cartpole-v1
    obs_dim: int
    action: Action
    agents: int = 1  # slots per world; fixed
    horizon: int | None = None  # time limit in world steps; None: no limit
    agent_reset: AgentReset = "with_world"
    channels: tuple[Channel, ...] = ()
    ends: tuple[str, ...] = ("running", "time_limit")  # names of the end codes; 0 is "not ended", 1 the time limit
    success_ends: tuple[str, ...] = ()  # ends that count as success; empty: success is unknown
    success_channel: str = ""  # a channel that is above 0 at the end of an episode that succeeded, whatever its end
    outcome: Outcome = "return"  # what its policies are judged by; a shaped reward may pay most where nothing succeeds
    reward_low: float | None = None  # bounds of one step's reward, where known
    reward_high: float | None = None
    observes_time: bool = False  # the observation tells how much time is left
    timeout_is_terminal: bool = False  # the task itself ends at the horizon (no bootstrap is due)
    renders: bool = False
    obs_shape: tuple[int, ...] = ()  # (height, width, channels) of an observation that is an image; empty for others

    @property
    def knows_success(self) -> bool:
        """Does it say which episodes succeeded?"""
        return bool(self.success_ends or self.success_channel)

    @property
    def seen(self) -> str:
        """What one observation is, in words."""
        return f"images of {' x '.join(map(str, self.obs_shape))}" if self.obs_shape else f"{self.obs_dim} numbers"

    def to_dict(self) -> Document:
        return asdict(self)
