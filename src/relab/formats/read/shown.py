"""What does relab call the metrics and settings of these runs? Both names side by side, per format."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from relab.base.near import nearest
from relab.base.places import printable
from relab.base.text import plural
from relab.config.views import flatten
from relab.formats.read import common
from relab.formats.read.source import FOREIGN
from relab.record import glossary

if TYPE_CHECKING:
    from relab.formats.read.find import Loaded

KEY = "foreign."


def mapping_text(runs: Iterable[Loaded]) -> str:
    """A table for people: their name -> relab's, for all runs of a format together."""
    by_format: dict[str, list[Loaded]] = {}
    for run in runs:
        by_format.setdefault(run.history.source, []).append(run)
    return "\n".join(line for name, loaded in by_format.items() for line in _format(name, loaded))


def _format(name: str, runs: list[Loaded]) -> list[str]:
    metrics: dict[str, dict[str, None]] = {}
    keys: dict[str, dict[str, None]] = {}
    for run in runs:
        history = run.history
        for theirs, ours in history.mapping.items():
            if theirs != ours:  # relab's own sums of the tool's rows have one name
                metrics.setdefault(theirs, {})[ours + _factor(history.factors.get(ours, 1.0))] = None
        kept = {key.removeprefix(KEY): key for key in flatten(history.config) if key.startswith(KEY)}
        for theirs, ours in (kept | history.keys).items():
            keys.setdefault(theirs, {})[ours] = None
    head = f"{name}: {plural(len(runs), 'run')}"
    if not metrics and not keys:
        return [f"{head}, with relab's own names"]
    return [head, *_steps(runs), *_table("metrics", metrics), *_table("settings", keys)]


def _steps(runs: list[Loaded]) -> list[str]:
    """Which column of a table counts the steps, and what; where none does, how to name one."""
    axes = {column: axis for run in runs for column, axis in run.history.counters.items()}
    lines = [f"    {_clean(column)}  -> {axis}" for column, axis in axes.items() if column]
    rows = ["    no column counts them, so rows are counted; --mapping NAME=step names one"] * ("" in axes)
    return ["  steps", *lines, *rows] if axes else []


def _factor(factor: float) -> str:
    return "" if factor == 1.0 else f"  (times {factor:g})"


def _table(title: str, names: dict[str, dict[str, None]]) -> list[str]:
    """relab's names first, then what has none; runs of one format may differ, as algorithms do."""
    if not names:
        return []
    width = min(max(len(name) for name in names), 50)
    ours_of = {name: " or ".join(sorted(ours, key=_is_foreign)) for name, ours in names.items()}
    order = sorted(ours_of, key=lambda name: (_is_foreign(ours_of[name])[0], name))
    ends = {name: _near(name) if title == "metrics" and _is_foreign(ours_of[name])[0] else "" for name in order}
    return [f"  {title}", *(f"    {_clean(name):{width}}  -> {_clean(ours_of[name])}{ends[name]}" for name in order)]


def _near(name: str) -> str:
    """For a name that is not known: the nearest of relab's, by its own or by another tool's name for it."""
    close = nearest(common.plain(name).rpartition("/")[2], [*glossary.METRICS, *common.KNOWN])
    return f"  (not known; the nearest is {common.KNOWN.get(close[0], close[0])})" if close else "  (not known)"


def _is_foreign(ours: str) -> tuple[bool, str]:
    return ours.startswith((FOREIGN, KEY)), ours


def _clean(text: str) -> str:
    """Names come from strangers' logs: no control characters reach the terminal."""
    return printable(text)[:200]
