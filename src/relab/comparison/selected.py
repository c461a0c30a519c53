"""Which seeds chose a sweep's winner? They flatter it, and are not pooled with those that had no part in the choice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.base.text import plural
from relab.record.state import group_key
from relab.runs.grouping import Run

FILE = "sweep.json"


class Choice(NamedTuple):
    """The winner's runs of a sweep, by the names of their folders."""

    choosing: frozenset[str]
    fresh: frozenset[str]


NONE = Choice(frozenset(), frozenset())


def unselected(runs: Sequence[Run]) -> tuple[list[Run], list[str]]:
    """The runs without those that chose a winner whose fresh seeds are among them, and what must be said of that.

    Runs that chose it and are there alone are kept: nobody pools them with others.
    """
    homes: dict[Path, list[Run]] = {}
    for run in runs:
        if (runs_folder := run.history.folder.resolve().parent).name == "runs":
            homes.setdefault(runs_folder.parent, []).append(run)
    gone, notes = set[int](), list[str]()
    for home, own in homes.items():
        flattering = _flattering(own, _choice(home))
        gone |= {id(run) for run in flattering}
        if flattering:
            count = plural(len(flattering), "run")
            notes.append(f"the winner of the sweep {home.name} counts by its fresh seeds: the {count} that chose it"
                         " flatter it, and are left out")  # fmt: skip
    return [run for run in runs if id(run) not in gone], notes


def _flattering(runs: Iterable[Run], choice: Choice) -> list[Run]:
    """Those that chose it, where fresh ones are there too: seeds of one config, and no seed on both sides."""
    choosing, fresh = ([run for run in runs if run.history.folder.name in names] for names in choice)
    configs = {group_key(run.history, run.name) for run in (*choosing, *fresh)}
    seeds, others = ({repr(run.seed) for run in side} for side in (choosing, fresh))
    return choosing if fresh and len(configs) == 1 and seeds.isdisjoint(others) else []


def _choice(home: Path) -> Choice:
    """None of a folder without a sweep that can be read, whose winner has no fresh seeds, or that lacks one of them."""
    try:
        winner = read_json(home, FILE)["winner"]
        choice = Choice(_names(winner["selection"]), _names(winner["fresh"]))
        return choice if all((home / "runs" / name).is_dir() for names in choice for name in names) else NONE
    except (RecordError, OSError, KeyError, TypeError, ValueError, AttributeError):
        return NONE


def _names(trial: Document) -> frozenset[str]:
    return frozenset(str(value["run"]) for value in trial["values"])
