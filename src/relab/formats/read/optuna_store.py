"""Optuna studies in SQLite files and journals: each trial is a run, with its parameters and intermediate values.

What the objective measures is not written there, so its values stay foreign/value and foreign/intermediate_value.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from relab.base.documents import Document, Settings
from relab.base.jsonl import Problem, RecordError, read_start, shorten
from relab.base.numbers import to_int
from relab.formats.read import settings_files
from relab.formats.read.databases import BROKEN, DATABASES, MAX_ROWS, SQLITE, connect, is_plain, opened, rows_outside
from relab.formats.read.jsonl_file import decode
from relab.formats.read.settings_files import parse_json
from relab.formats.read.source import Listing, Source, put, start
from relab.record.history import History

DEEP = True
JOURNALS = (".log", ".journal", ".jsonl")
MAX_BYTES = 1 << 28
STATES = {"COMPLETE": "finished", "RUNNING": "running", "PRUNED": "finished", "FAIL": "failed", "WAITING": "waiting"}
NUMBERED = ("RUNNING", "COMPLETE", "PRUNED", "FAIL", "WAITING")  # as journals write them
CREATE_STUDY, CREATE_TRIAL, SET_PARAM, SET_STATE, SET_STEP = 0, 4, 5, 6, 7  # operations in a journal


@dataclass
class Trial:
    """One trial, whichever storage it came from."""

    study: str
    number: int
    state: str = "RUNNING"
    params: Settings = field(default_factory=dict)
    steps: dict[int, float] = field(default_factory=dict)
    values: list[float] = field(default_factory=list)


@dataclass
class Store:
    """All trials of a file by their key, and what could not be read."""

    trials: dict[str, Trial] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def add(self, trial: Trial) -> None:
        self.trials[f"{trial.study}/trial={trial.number}"] = trial


def sniff(listing: Listing) -> bool:
    return any(_is_store(listing, name) for name in listing.files)


def _is_store(listing: Listing, name: str) -> bool:
    if name.endswith(DATABASES):
        return listing.start_of(name, len(SQLITE)) == SQLITE and _has_tables(listing.folder / name)
    return name.endswith(JOURNALS) and listing.start_of(name, 16).startswith(b'{"op_code":')


def sources(listing: Listing) -> list[Source]:
    """One per trial that has begun; a file that cannot be read is one source, so that its error is seen."""
    runs = []
    for name in listing.files:
        if _is_store(listing, name):
            path = listing.folder / name
            trials = {key: trial for key, trial in load(path).trials.items() if trial.state != "WAITING"}
            runs += [Source("optuna", path, (path,), key) for key in trials or [""]]
    return runs


def read(source: Source) -> History:
    history = start(source)
    store = load(source.files[0])
    history.problems += store.problems
    trial = store.trials.get(source.key)
    if trial is None:
        return history
    settings_files.use(history, source, trial.params)
    history.meta |= {"status": STATES.get(trial.state, "unknown"), "study": trial.study, "trial": trial.number}
    steps = sorted(trial.steps)
    if steps:
        put(history, "intermediate_value", steps, [trial.steps[step] for step in steps], "iteration")
    if trial.state == "PRUNED":
        last = {"step": steps[-1] if steps else 0, "axis": "iteration"}
        history.events.append({**last, "kind": "stop", "reason": "the study pruned the trial"})
    for i, value in enumerate(trial.values):
        put(history, "value" if i == 0 else f"value_{i}", [steps[-1] if steps else 0], [value], "iteration")
    return history


def load(path: Path) -> Store:
    about = path.stat()
    return _load(os.fspath(path), about.st_size, about.st_mtime_ns)


@lru_cache(maxsize=4)
def _load(name: str, size: int, changed: int) -> Store:
    path = Path(name)
    return _sqlite(path) if path.name.endswith(DATABASES) else _journal(path)


def param(value: Any, distribution: Any, file: str) -> Any:
    """A parameter as it was meant: storages keep numbers, of a choice its place in the list."""
    try:
        document = parse_json(str(distribution).encode(), file)
    except RecordError:
        return value
    inner = document.get("attributes")
    choices = inner.get("choices") if isinstance(inner, dict) else None
    if isinstance(choices, list) and isinstance(value, (int, float)) and 0 <= value < len(choices):
        return choices[int(value)]
    whole = isinstance(value, float) and value.is_integer() and str(document.get("name", "")).startswith("Int")
    count = to_int(value) if whole else None
    return value if count is None else count


# ---- SQLite


def _has_tables(path: Path) -> bool:
    statement = (
        "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name IN ('studies', 'trials', 'trial_params')"
    )
    try:
        with closing(connect(path)) as database:
            return bool(database.execute(statement).fetchone() == (3,))
    except BROKEN:
        return False


def _sqlite(path: Path) -> Store:
    store = Store()
    if outside := rows_outside(path):
        store.problems.append(Problem(path.name, None, outside))
    try:
        with opened(path) as database:
            _tables(database, store, path.name)
    except BROKEN as error:
        store.problems.append(Problem(path.name, None, f"the database cannot be read: {error}"))
    return store


def _tables(database: sqlite3.Connection, store: Store, file: str) -> None:
    trials: dict[Any, Trial] = {}
    columns = "trial_id, number, trials.study_id, state, study_name"
    for key, number, _, state, study in _rows(database, "trials", columns, "JOIN studies USING (study_id)"):
        trials[key] = Trial(str(study), _whole(number, len(trials)), str(state))
    for key, name, value, distribution in _rows(
        database, "trial_params", "trial_id, param_name, param_value, distribution_json"
    ):
        if key in trials:
            trials[key].params[str(name)] = param(value, distribution, file)
    step_columns = "trial_id, step, intermediate_value, intermediate_value_type"
    for key, step, value, kind in _rows(database, "trial_intermediate_values", step_columns):
        if key in trials and isinstance(step, int):
            trials[key].steps[step] = _value(value, kind)
    for key, _, value, kind in _rows(database, "trial_values", "trial_id, objective, value, value_type"):
        if key in trials:
            trials[key].values.append(_value(value, kind))
    for trial in trials.values():
        store.add(trial)


def _rows(database: sqlite3.Connection, table: str, columns: str, more: str = "") -> Iterator[tuple[Any, ...]]:
    """Of tables only: a view could run anything."""
    kind = database.execute("SELECT type FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    if kind == ("table",):
        if not is_plain(database, table):
            raise sqlite3.Error(f"the table {table} has columns that are computed, not stored")
        yield from database.execute(f"SELECT {columns} FROM {table} {more} ORDER BY 1, 2 LIMIT {MAX_ROWS}")


def _whole(value: Any, otherwise: int) -> int:
    return value if isinstance(value, int) else otherwise


def _value(value: Any, kind: Any) -> float:
    """SQLite has no infinity: the type says it."""
    named = {"INF_POS": float("inf"), "INF_NEG": float("-inf")}
    if kind in named:
        return named[kind]
    return float(value) if isinstance(value, (int, float)) else float("nan")


# ---- Journals


def _journal(path: Path) -> Store:
    store, studies, trials, counts = Store(), list[str](), list[Trial](), dict[str, int]()
    lines = read_start(path, MAX_BYTES).split(b"\n")
    problems = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                _replay(_object(line), studies, trials, counts, path.name)
            except (KeyError, IndexError, TypeError, ValueError, OverflowError, AttributeError) as error:
                what = (
                    "the last line is cut" if number == len(lines) else f"no operation: {type(error).__name__} {error}"
                )
                problems.append(Problem(path.name, number, what[:200]))
    store.problems = shorten(problems, path.name)
    for trial in trials:
        store.add(trial)
    return store


def _object(line: bytes) -> Document:
    row = decode(line)
    if row is None:
        raise ValueError("not a JSON object")
    return row


def _replay(row: Document, studies: list[str], trials: list[Trial], counts: dict[str, int], file: str) -> None:
    """One operation; ids are the order in which things were made."""
    code = row["op_code"]
    if code == CREATE_STUDY:
        studies.append(str(row["study_name"]))
    elif code == CREATE_TRIAL:
        study = studies[_index(row["study_id"])]
        trial = Trial(study, counts.get(study, 0))
        counts[study] = trial.number + 1
        trials.append(trial)  # its number stands, even if the rest of the line cannot be read
        _template(trial, row, file)
    elif code in (SET_PARAM, SET_STATE, SET_STEP):
        _change(trials[_index(row["trial_id"])], row, file)


def _template(trial: Trial, row: Document, file: str) -> None:
    """A trial that was queued, or added with its results, says all of it at once."""
    kinds = row.get("distributions") or {}
    trial.params = {str(name): param(value, kinds.get(name), file) for name, value in (row.get("params") or {}).items()}
    steps = (row.get("intermediate_values") or {}).items()
    trial.steps = {_step(step): float(value) for step, value in steps}
    if "state" in row:
        trial.state = NUMBERED[_index(row["state"])]
        trial.values = _values(row)


def _values(row: Document) -> list[float]:
    values = row.get("values") or ([row["value"]] if row.get("value") is not None else [])
    return [float(value) for value in values]


def _index(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise ValueError(f"{value!r} is no id")
    return value


def _step(value: Any) -> int:
    step = to_int(value)
    if step is None:
        raise ValueError(f"{value!r:.40} is no step")
    return step


def _change(trial: Trial, row: Document, file: str) -> None:
    if row["op_code"] == SET_PARAM:
        trial.params[str(row["param_name"])] = param(row["param_value_internal"], row["distribution"], file)
    elif row["op_code"] == SET_STEP:
        trial.steps[_step(row["step"])] = float(row["intermediate_value"])
    else:
        trial.state = NUMBERED[_index(row["state"])]
        trial.values = _values(row)
