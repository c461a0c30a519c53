"""What was declared before the runs, and which runs answer it? --declare 'A>B', or an experiment's own cells."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.base.numbers import is_number
from relab.comparison import wording
from relab.config.base import require
from relab.runs.grouping import Run

DECLARED = re.compile(r"^\s*(?P<better>.+?)\s*>\s*(?P<worse>.+?)\s*$")
UP = 4  # folders above a run in which its experiment is looked for: EXPERIMENT/runs/CELL, of other tools deeper
ENDED = ("finished", "stopped")  # cells that nothing more comes to, as an experiment counts them


@dataclass(frozen=True)
class Protocol:
    """How an experiment compares its runs, as its answer.json says; what that leaves open is None."""

    metric: str | None
    at: str | None
    direction: str | None
    smallest_effect: float | None
    m: int | None
    reach: float | None
    paired: bool
    looks: Document  # variant -> seeds at its earlier looks
    declared: int | list[int] | None = None  # looks: how many, or at how many seeds each


@dataclass(frozen=True)
class Cell:
    """A run of an experiment, as its runs.json has it."""

    folder: Path
    variant: str
    status: str


@dataclass
class Plan:
    """What was declared: pairs (worse, better) by name, and how an experiment asks, where one does."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    source: str = "--declare"
    protocol: Protocol | None = None
    home: Path | None = None  # the experiment's folder
    cells: list[Cell] = field(default_factory=list)  # empty: every run below `home` is one

    def members(self, runs: Sequence[Run]) -> list[Run]:
        """Those of the runs that an experiment made; others that lie in its folder are none of its own."""
        if not self.cells:
            return [run for run in runs if self.home in _above(run)]
        folders = {cell.folder for cell in self.cells}
        return [run for run in runs if not folders.isdisjoint(_above(run))]

    def variant_of(self, run: Run) -> str:
        """The variant whose cell a run is; empty where that is not written down."""
        above = _above(run)
        return next((cell.variant for cell in self.cells if cell.folder in above), "")

    def ended(self, runs: Iterable[Run]) -> frozenset[Path]:
        """The folders of those that count as they ended, however long they are."""
        done = {cell.folder for cell in self.cells if cell.status in ENDED}
        return frozenset(
            run.history.folder for run in runs if run.state == "finished" or not done.isdisjoint(_above(run))
        )

    def whole(self, runs: Sequence[Run]) -> Plan | None:
        """What can be answered from these runs: pairs of which no cell that ended is left out; None where none can."""
        here = {folder for run in runs for folder in _above(run)}
        lacking = {cell.variant for cell in self.cells if cell.status in ENDED and cell.folder not in here}
        lacking &= {cell.variant for cell in self.cells if cell.folder.is_dir()}
        pairs = [pair for pair in self.pairs if lacking.isdisjoint(pair)]
        return Plan(pairs, self.source, self.protocol, self.home, self.cells) if pairs else None


def _above(run: Run) -> list[Path]:
    folder = run.history.folder.absolute()
    return [folder, *list(folder.parents)[:UP]]


def parse(declared: Sequence[str]) -> Plan:
    """ "A>B" claims that A is better than B."""
    matches = [DECLARED.match(text) for text in declared]
    for text, match in zip(declared, matches):
        require(match is not None, f"--declare takes 'A>B', A being the one said to be better, but got {text!r}")
    return Plan([(m["worse"], m["better"]) for m in matches if m])


def below(paths: Sequence[Path], runs: Sequence[Run]) -> list[Plan]:
    """What experiments declared whose runs lie below one path. Several paths are a question of their own."""
    return of_runs(runs) if len(paths) == 1 else []


def of_runs(runs: Sequence[Run]) -> list[Plan]:
    """The declared comparisons of all experiments that these runs are cells of, each answerable from them."""
    nearest: dict[Path, Plan | None] = {}
    for run in runs:
        for folder in _above(run):
            if folder not in nearest:
                nearest[folder] = of_experiment(folder)
            if nearest[folder] is not None:
                break
    plans = [plan.whole(own) for plan in nearest.values() if plan is not None and (own := plan.members(runs))]
    return [plan for plan in plans if plan is not None]


def of_experiment(folder: Path) -> Plan | None:
    """The comparisons of an experiment's answer.json; None where the folder has none that can be read."""
    body = _read(folder, "answer.json")
    rows = [row for row in _rows(body, "answers") if len(_names(row)) == 2]
    if not rows:
        return None
    names = [(str(a), str(b)) for a, b in map(_names, rows)]
    looks = body.get("looks", {})
    if not are_looks(looks):  # how often it was looked before is what an answer's level rests on
        return None
    protocol = _protocol(rows[0], looks)
    return Plan(names, f"experiment {folder.name}", protocol, folder, _cells(folder))


def are_looks(looks: Any) -> TypeGuard[dict[str, list[list[int]]]]:
    """Whether it is what answer.json keeps: variant -> seeds of both sides at each earlier answer, pooled ones with
    their sum.

    >>> are_looks({"B": [[5, 5], [5, 5, 10]]}), are_looks({"B": [[]]}), are_looks({"B": [["a", "b"]]}), are_looks(None)
    (True, False, False, False)
    """
    return isinstance(looks, dict) and all(
        isinstance(taken, list) and all(isinstance(n, list) and len(n) in (2, 3) and _are_counts(n) for n in taken)
        for taken in looks.values()
    )


def _are_counts(values: list[Any]) -> bool:
    return all(type(value) is int and value >= 0 for value in values)


def _protocol(row: Document, looks: Document) -> Protocol:
    def text(key: str) -> str | None:
        return value if isinstance(value := row.get(key), str) else None

    smallest, reach, last = (
        value if is_number(value := row.get(key)) else None for key in ("smallest_effect", "reach", "m")
    )
    return Protocol(
        text("metric"), text("at"), text("direction"), smallest, int(last) if last else None, reach,
        paired=str(row.get("method")).startswith(wording.WITHIN), looks=looks, declared=row.get("looks"),
    )  # fmt: skip


def _cells(folder: Path) -> list[Cell]:
    rows = [row for row in _rows(_read(folder, "runs.json"), "runs") if row.get("run")]
    return [Cell(folder / str(row["run"]), str(row.get("variant")), str(row.get("status"))) for row in rows]


def _names(row: Document) -> list[Any]:
    return names if isinstance(names := row.get("names"), list) else []


def _rows(body: Document, key: str) -> list[Document]:
    rows = body.get(key)
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _read(folder: Path, name: str) -> Document:
    try:
        return read_json(folder, name) if (folder / name).is_file() else {}
    except (RecordError, OSError):
        return {}
