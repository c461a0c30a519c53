"""What is measured of one variant of a task? Its mean over seeds, the curve's area, time to a level, peak and noise."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from relab.base.documents import Document, Settings
from relab.comparison.numbers import Peak


@dataclass(frozen=True)
class Mean:
    """Over seeds, with an interval; its ends are NaN where there are too few of them."""

    mid: float
    low: float
    high: float
    n: int


@dataclass(frozen=True)
class Area:
    """The mean height of the curves between two steps, over the runs that span them."""

    start: float
    end: float
    mean: float
    n: int

    def to_dict(self) -> dict[str, float]:
        return {"from": self.start, "to": self.end, "mean": self.mean, "n": self.n}


@dataclass(frozen=True)
class Threshold:
    """How soon a level was reached; runs that never did are censored where they ended."""

    level: float
    reached: int
    n: int
    median: float
    until: float
    source: str  # what tells that the level was reached


@dataclass(frozen=True)
class Noise:
    """How much of the spread between seeds is the evaluation's own noise."""

    error: float
    spread: float
    share: float


@dataclass(frozen=True)
class Variant:
    """A row of the table; `better` is the share of pairs in which it beats the reference, with its ends."""

    label: str
    runs: int
    sources: list[str]
    mean: Mean
    values: list[float]
    seeds: list[int | None]
    reached: list[bool]
    diverged: int
    settings: Settings
    area: Area
    threshold: Threshold | None
    peak: Peak | None
    noise: Noise | None
    better: list[float] | None

    def to_dict(self) -> Document:
        return {**asdict(self), "area": self.area.to_dict(), "peak": self.peak and self.peak._asdict()}
