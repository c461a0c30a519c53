"""What if runs of one folder name the return of training differently? The mean of the last 100 episodes and the mean of
an iteration's episodes are one height, so that each run is compared by its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relab.record import glossary
from relab.runs.grouping import Run

TRAINED = tuple(name for name in glossary.RETURNS if not name.startswith("eval/"))


def under_one_name(runs: Sequence[Run], requested: str | None = None) -> tuple[list[Run], list[str]]:
    """The runs, of which those that have another return of training alone are copies under the name that most have; and
    what must be said of them."""
    have = {name: [run for run in runs if _has(run, name)] for name in TRAINED}
    ours = requested if requested in TRAINED else max(TRAINED, key=lambda name: len(have[name]))
    if (requested and requested not in TRAINED) or not have[ours]:
        return list(runs), []
    named = [_named(run, ours) for run in runs]
    moved = [run for run, copy in zip(runs, named) if copy is not run]
    if not moved:
        return named, []
    theirs = ", ".join(dict.fromkeys(_other(run, ours) for run in moved))
    some = ", ".join(run.name for run in moved[:3]) + (f" and {len(moved) - 3} more" if len(moved) > 3 else "")
    return named, [f"{some}: {theirs} stands for {ours}, which is not logged there; both are returns of training"]


def _has(run: Run, name: str) -> bool:
    return name in run.history.columns and bool(len(run.history.columns[name].values))


def _other(run: Run, name: str) -> str:
    return next((other for other in TRAINED if other != name and _has(run, other)), "")


def _named(run: Run, name: str) -> Run:
    other = "" if _has(run, name) else _other(run, name)
    if not other:
        return run
    history = run.history
    columns = {**history.columns, name: history.columns[other]}
    axes = {**history.axes, **({name: history.axes[other]} if other in history.axes else {})}
    return replace(run, history=replace(history, columns=columns, axes=axes))
