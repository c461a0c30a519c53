"""What is the result of a sweep made of? Numbers only: sweep.json holds them, terminal and page print them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Protocol

from relab.base.documents import Document, Settings

SCHEMA = 1


class Span(Protocol):
    """Whatever has an interval."""

    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


# ---- Trials


@dataclass(frozen=True)
class RunValue:
    """The number that one run contributes; NaN where it has none, and `note` says why."""

    seed: int | None
    value: float
    run: str
    reached: bool
    note: str


@dataclass(frozen=True)
class TrialResult:
    """A point over its seeds."""

    trial: str
    point: Settings
    n: int  # runs with a number
    planned: int
    mean: float
    low: float
    high: float
    values: list[RunValue]
    dropped: Document | None  # in the race, as trials.json says it

    @property
    def failed(self) -> int:
        return sum(each.note.startswith("failed") for each in self.values)


@dataclass(frozen=True)
class Incomplete:
    """A trial with fewer numbers than seeds."""

    trial: str
    n: int
    planned: int
    why: list[str]


# ---- Axes


@dataclass(frozen=True)
class LevelMean:
    """One value of an axis, averaged over the others."""

    level: Any
    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Widest:
    """The two values of an axis that lie furthest apart."""

    from_: Any
    to: Any
    delta: float
    low: float
    high: float


@dataclass(frozen=True)
class AxisEffect:
    """What an axis does; `bound` is the change up to which it is inert."""

    axis: str
    levels: list[LevelMean]
    widest: Widest | None
    most: float
    noise: float
    noise_from: str
    bound: float
    verdict: str


@dataclass(frozen=True)
class Crossing:
    """By how much one axis changes what another does."""

    axes: list[str]
    at: list[list[Any]] | None
    delta: float
    low: float
    high: float
    most: float
    verdict: str


# ---- Which truly differ, and the winner


@dataclass(frozen=True)
class Gap:
    """A trial minus the best one, + is better."""

    trial: str
    delta: float
    low: float
    high: float
    n: list[int]
    verdict: str  # worse | better | cannot tell


@dataclass(frozen=True)
class Differences:
    """Every trial against the best, at a level that holds over all pairs and looks."""

    level: float
    look: int
    pairs: int
    against_best: list[Gap]
    clear_pairs: int | None  # None where there are too many pairs to compare


@dataclass(frozen=True)
class Bias:
    """By how much the choice flattered the winner."""

    delta: float
    low: float
    high: float
    n: list[int]
    level: float


@dataclass(frozen=True)
class Winner:
    """The best trial on the seeds that chose it, and on fresh ones."""

    trial: str
    point: Settings
    selection: TrialResult
    fresh: TrialResult | None
    bias: Bias | None


@dataclass(frozen=True)
class Analysis:
    """Everything that a sweep says."""

    question: str
    metric: str
    at: str
    direction: str
    smallest_effect: float
    method: str
    axes: dict[str, list[Any]]
    seeds: list[int]
    trials: list[TrialResult]
    effects: list[AxisEffect]
    interactions: list[Crossing]
    binned: list[str]
    incomplete: list[Incomplete]
    failed: dict[str, str]
    differ: Differences
    winner: Winner | None
    notes: list[str]
    text: str  # the answer in words

    def to_json(self) -> Document:
        return {"schema": SCHEMA, **asdict(self, dict_factory=_plain)}


def _plain(pairs: Iterable[tuple[str, Any]]) -> Document:
    return {name.rstrip("_"): value for name, value in pairs}  # `from` is a word of Python's
