"""How are the tables read back that `relab convert --to csv` wrote? Names, axes and settings are relab's own already.

The folder holds conversion.json, wide/RUN.csv and wide/RUN.yaml of each run, and long.csv, which says all of it again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.config.base import ConfigError
from relab.formats.read import settings_files, table
from relab.formats.read.source import FOREIGN, Listing, Source, problem, put, start
from relab.formats.read.table import Table
from relab.record import glossary
from relab.record.history import History

MARK, WIDE, LONG = "conversion.json", "wide", "long.csv"
STEP_END = "/step"  # of a column of steps, where a metric has the axis' name


def says_again(listing: Listing, name: str) -> bool:
    """Whether a file repeats what the tables in wide/ hold."""
    return name == LONG and listing.has(MARK, WIDE) and bool(_conversion(listing.folder))


def is_own(path: Path) -> bool:
    """Whether a table has relab's names: one of wide/, whose conversion did not ask for the tool's own."""
    return path.parent.name == WIDE and _conversion(path.parent.parent).get("names") == "relab"


def _conversion(folder: Path) -> Document:
    try:
        document = read_json(folder, MARK)
    except (RecordError, OSError):
        return {}
    return document if document.get("to") == "csv" else {}


def read(source: Source, cells: Table) -> History:
    history = start(source)
    history.problems += cells.problems
    axes = {name: name.removesuffix(STEP_END) for name in cells.names if name.removesuffix(STEP_END) in glossary.AXES}
    rows = {axis: table.numbers(cells.cells[name]) for name, axis in axes.items()}
    for name in cells.names:
        if name not in axes:
            _add(history, name, table.numbers(cells.cells[name]), rows)
    _settings(history, source)
    _recover(history, source.files[0])
    settings_files.name_parts(history)
    settings_files.group_by_name(history, source, history.config)
    return history


def _add(history: History, name: str, read: table.Numbers, rows: dict[str, table.Numbers]) -> None:
    """The column at the steps of the one axis that its rows have."""
    ours = name[1:] if name.startswith("'") else name  # so that no spreadsheet takes it for a formula
    known = {ours: (ours if ours in glossary.METRICS else FOREIGN + ours, 1.0)}
    for axis, steps in rows.items():
        _, i, j = np.intersect1d(read.at, steps.at, assume_unique=True, return_indices=True)
        put(history, ours, steps.values[j].astype(np.int64), read.values[i], axis, known)


def _settings(history: History, source: Source) -> None:
    path = source.files[0].with_suffix(".yaml")
    try:
        flat = settings_files.read_settings(path) if path.is_file() and not path.is_symlink() else {}
    except (RecordError, ConfigError, OSError, UnicodeDecodeError, RecursionError) as error:
        problem(history, path, str(error), getattr(error, "line", None))
        return
    for key, value in flat.items():
        _set(history.config, key, value)


def _set(config: Document, key: str, value: Any) -> None:
    """`algo.lr` two deep; below `foreign` a key keeps its points."""
    group, point, last = key.partition(".")
    if not point:
        config[key] = value
    elif isinstance(inner := config.setdefault(group, {}), dict):
        inner[last] = value


def _recover(history: History, path: Path) -> None:
    """The run is still another tool's."""
    runs = _conversion(path.parent.parent).get("runs")
    same = (
        [run for run in runs if isinstance(run, dict) and run.get("as") == path.stem] if isinstance(runs, list) else []
    )
    kind = str(same[0].get("format")) if same else history.source
    history.source, history.meta["converted"] = kind, {"format": kind}
