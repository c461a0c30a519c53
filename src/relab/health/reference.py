"""Where does a run lie among healthy ones? A shipped table of features of healthy runs, and exact tail probabilities.

The table holds one row for each run that reached its task's level (benchmarks/peers/reference_table.py makes it anew;
features only, no logs). A cell is one tool, task and setting: runs of a cell are alike, so that a cell counts once. A
tail probability of p then means: of runs from cells like these, at most a share p is as far out or further. It is no
promise for runs that are unlike all of them, which is why the number of cells is always told beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal

import orjson

from relab.base.documents import Document
from relab.base.jsonl import RecordError
from relab.health.features import FEATURES, METRICS, Key
from relab.stats import conformal

SCHEMA = 2  # 1 had no scores
FILE = "reference_table.json"
ALGOS = ("ppo", "a2c", "dqn", "sac", "td3")
KINDS = ("discrete", "continuous")
FEWEST = 8  # cells under which the table has no opinion
Side = Literal["high", "low", "both"]


@dataclass(frozen=True)
class HealthyRun:
    """One row of the table."""

    algo: str
    kind: str  # of the actions: discrete, continuous
    cell: str  # tool, task and setting
    numbers: dict[Key, float]
    score: float = 0.0  # how strange it is to healthy runs of other tasks (outside.py)

    @property
    def task(self) -> str:
        return self.cell.split()[1]


@dataclass(frozen=True)
class Healthy:
    """What healthy runs show of one feature."""

    low: float  # of the share of them that was wanted
    high: float
    least: float  # of all of them
    most: float
    runs: int
    cells: int

    def times(self, factor: float) -> Healthy:
        """The same in other units."""
        low, high, least, most = (factor * end for end in (self.low, self.high, self.least, self.most))
        return Healthy(low, high, least, most, self.runs, self.cells)

    def beyond(self, value: float) -> float:
        """How far a value is outside of all of them, in widths of what they span; 0 inside."""
        width = max(self.most - self.least, 1e-12)
        return max(self.least - value, value - self.most, 0.0) / width


@cache
def table() -> tuple[HealthyRun, ...]:
    """The shipped table, read once and only when somebody asks."""
    return parse(files("relab.health").joinpath(FILE).read_bytes())


def parse(data: bytes) -> tuple[HealthyRun, ...]:
    raw = orjson.loads(data)
    if raw.get("schema") != SCHEMA:
        raise RecordError(f"the table of healthy runs has schema {raw.get('schema')}, but this relab reads {SCHEMA}")
    return tuple(_run(row) for row in raw["runs"])


def _run(row: Document) -> HealthyRun:
    numbers = {
        Key(metric, feature): value
        for metric, values in row["metrics"].items()
        for feature, value in zip(FEATURES, values, strict=True)
        if value is not None
    }
    return HealthyRun(row["algo"], row["kind"], row["cell"], numbers, row["score"])


def dump(runs: list[HealthyRun], made: Document) -> bytes:
    """The table as it is shipped: features in the order of FEATURES, four digits each, null for what is not known."""
    ordered = sorted(runs, key=lambda run: (run.algo, run.kind, run.cell))
    lines = b",\n".join(orjson.dumps(_row(run)) for run in ordered)
    head = orjson.dumps({"schema": SCHEMA, "features": list(FEATURES), "made": made})[:-1]
    return head + b',"runs":[\n' + lines + b"\n]}\n"


def _row(run: HealthyRun) -> Document:
    return {"algo": run.algo, "kind": run.kind, "cell": run.cell, "score": _digits(run.score),
            "metrics": _rounded(run.numbers)}  # fmt: skip


def _rounded(numbers: dict[Key, float]) -> dict[str, list[float | None]]:
    logged = [metric for metric in METRICS if any(key.metric == metric for key in numbers)]
    return {metric: [_digits(numbers.get(Key(metric, feature))) for feature in FEATURES] for metric in logged}


def _digits(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


# ---- Questions


@cache
def interval(algo: str, kind: str | None, key: Key, share: float = 0.9, task: str = "") -> Healthy | None:
    """The range of a feature among healthy runs of an algorithm; None where the table has too few cells.

    `kind` None: the kind of action is not known, and runs of both count. `task`: only runs of this one.
    """
    known = _known(algo, kind, key, task)
    if known is None:
        return None
    values, cells = known
    low, high = conformal.healthy_range(values, share, cells)
    return Healthy(low, high, min(values), max(values), len(values), len(set(cells)))


def tail_probability(algo: str, kind: str | None, key: Key, value: float, side: Side = "both") -> float | None:
    """The share of healthy runs, at most, that are as far out as `value` or further; None with too few cells."""
    known = _known(algo, kind, key)
    if known is None:
        return None
    tail = {"high": conformal.tail_above, "low": conformal.tail_below, "both": conformal.tail_both}[side]
    return tail(value, *known)


@cache
def _known(algo: str, kind: str | None, key: Key, task: str = "") -> tuple[list[float], list[str]] | None:
    some = [run for run in table() if run.algo == algo and kind in (None, run.kind) and task in ("", run.task)]
    rows = [run for run in some if key in run.numbers]
    cells = [run.cell for run in rows]
    return ([run.numbers[key] for run in rows], cells) if len(set(cells)) >= FEWEST else None
