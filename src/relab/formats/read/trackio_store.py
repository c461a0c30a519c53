"""trackio: a project's SQLite base, each run a run of its own; trackio is not needed.

Rows are JSON in the table `metrics` (as text or as bytes), settings in `configs`. A run is told apart by
`run_id`, in older bases by its name. The base is opened read-only; what a running program still keeps beside it in the
write-ahead log is not seen, and that is said.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.jsonl import RecordError
from relab.config.views import flatten
from relab.formats.read import settings_files, wandb_file
from relab.formats.read.databases import BROKEN, MAX_ROWS, databases, is_plain, opened, rows_outside
from relab.formats.read.jsonl_file import decode
from relab.formats.read.source import Listing, Source, problem, start
from relab.record.history import History

DEEP = True
TABLES = {"metrics": {"run_name", "step", "metrics"}, "configs": {"run_name", "config"}}  # table -> columns
UNREADABLE = "runs"  # stands for all runs of a base whose names cannot be read
LONGEST, SHORT = 100, 8  # characters of a name, of an id that tells two apart


def sniff(listing: Listing) -> bool:
    return bool(_bases(listing))


def sources(listing: Listing) -> list[Source]:
    paths = [listing.folder / name for name in _bases(listing)]
    return [Source("trackio", path, (path,), key) for path in paths for key in _keys(path)]


def _bases(listing: Listing) -> list[str]:
    return [name for name in databases(listing) if _is_project(listing.folder / name)]


def _is_project(path: Path) -> bool:
    try:
        with opened(path) as base:
            return all(columns <= _columns(base, name) for name, columns in TABLES.items())
    except BROKEN:
        return False


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    """Of a table whose cells are stored; a view or computed column could be anything."""
    kind = base.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if kind != ("table",) or not is_plain(base, table):
        return set()
    return {str(row[1]) for row in base.execute(f"PRAGMA table_info({table})")}


def _by(base: sqlite3.Connection) -> str:
    """The column that tells runs apart."""
    return "run_id" if all("run_id" in _columns(base, name) for name in TABLES) else "run_name"


# ---- Runs


def _keys(path: Path) -> list[str]:
    return list(_runs(path)) or [UNREADABLE]


def _runs(path: Path) -> dict[str, str]:
    about = path.stat()
    return _run_names(os.fspath(path), about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=4)
def _run_names(name: str, size: int, changed: int) -> dict[str, str]:
    """Key -> what the base calls the run; a name that two runs have gets the beginning of the id."""
    try:
        with opened(Path(name)) as base:
            by = _by(base)
            statement = "SELECT {0}, run_name FROM {1} GROUP BY {0} ORDER BY min(rowid) LIMIT {2}"
            rows = [row for name_ in TABLES for row in base.execute(statement.format(by, name_, MAX_ROWS))]
    except BROKEN:
        return {}
    ids = {str(run): str(called) for run, called in rows}
    words = {run: (called or "run").replace("/", "_")[:LONGEST] for run, called in ids.items()}
    twice = {word for word in words.values() if list(words.values()).count(word) > 1} if len(words) < 5000 else words
    return {f"{word}-{run[:SHORT]}" if word in twice else word: run for run, word in words.items()}


# ---- One of them


def read(source: Source) -> History:
    history, (path,) = start(source), source.files
    run = _runs(path).get(source.key)
    try:
        with opened(path) as base:
            by = _by(base)
            statement = f"SELECT step, metrics FROM metrics WHERE {by} = ? ORDER BY step, rowid LIMIT {MAX_ROWS}"
            rows = base.execute(statement, (run,)).fetchall()
            config_row = base.execute(f"SELECT config, run_name FROM configs WHERE {by} = ? LIMIT 1", (run,)).fetchone()
    except BROKEN as error:
        raise RecordError(f"{path.name} cannot be read: {error}") from None
    if run is None:
        raise RecordError(f"{path.name} cannot be read: it names no runs")
    wandb_file.columns(history, wandb_file.Rows.of(path.name, _rows(history, path, rows)))
    _settings(history, source, config_row)
    if outside := rows_outside(path):
        problem(history, path, outside)
    return history


def _rows(history: History, path: Path, rows: list[tuple[Any, Any]]) -> Iterator[Document]:
    bad = 0
    for step, content in rows:
        row = decode(_bytes(content))
        if row is None or type(step) is not int:
            bad += 1
        else:
            yield {key: value for key, value in row.items() if key != "_step"} | {"_step": step}
    if bad:
        problem(history, path, f"{bad} rows have no step or hold no JSON object; they were left out")


def _bytes(content: Any) -> bytes:
    return content if isinstance(content, bytes) else content.encode() if isinstance(content, str) else b""


def _settings(history: History, source: Source, config_row: tuple[Any, Any] | None) -> None:
    """The config without what trackio adds to it, which begins with an underscore."""
    document = decode(_bytes(config_row[0])) if config_row else {}
    if document is None:
        problem(history, source.path, "the config of this run is no JSON object")
    settings_files.use(history, source, flatten({k: v for k, v in (document or {}).items() if not k.startswith("_")}))
    facts = {
        "name": config_row and config_row[1],
        "created": (document or {}).get("_Created"),
        "group": (document or {}).get("_Group"),
    }
    history.meta |= {key: value for key, value in facts.items() if isinstance(value, str) and value}
