"""Which of the indexed runs does somebody mean? By name, settings, tag, state; copies are seen as one."""

from __future__ import annotations

import fnmatch
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from relab.base.text import plural
from relab.base.documents import Settings
from relab.base.errors import NotFoundError
from relab.config.base import ConfigError, require
from relab.config.coerce import scalar
from relab.runs.index import Index
from relab.base.near import hint
from relab.base.numbers import is_number
from relab.base.places import run_state

STATES = ("running", "finished", "interrupted", "failed", "stale", "ended", "unknown")
FIELDS = {"seed": "seed", "steps": "steps", "outcome": "outcome", "size": "size", "name": "name", "env": "env",
          "algo": "algo", "id": "id", "format": "format", "episodes": "episodes", "age": "age(sign)"}  # fmt: skip
SORTS = ("age", "name", "outcome", "size", "steps", "seed", "env", "state")
WORD = re.compile(r"([A-Za-z_][\w./-]*?)\s*(!=|<=|>=|=|<|>)\s*(.+)", re.S)
UNITS = {"kB": 1e3, "MB": 1e6, "GB": 1e9, "s": 1, "min": 60, "h": 3600, "d": 86400, "w": 604800}


class Filter(NamedTuple):
    """`key op value`, e.g. algo.lr<1e-3."""

    key: str
    op: str
    value: str

    def holds(self, value: Any) -> bool:
        """Whether a value is as asked; numbers are compared as numbers, and a missing value is never so."""
        if value is None and self.value != "null":
            return self.op == "!="
        if self.op in ("=", "!="):
            return self._equal(value) is (self.op == "=")
        try:
            a, b = float(value), number(self.value)
        except (TypeError, ValueError):
            return False
        return {"<": a < b, ">": a > b, "<=": a <= b, ">=": a >= b}[self.op]

    def _equal(self, value: Any) -> bool:
        target = scalar(self.value)
        if is_number(value):
            return is_number(target) and float(value) == float(target)
        if isinstance(value, str):
            return value == self.value or re.fullmatch(re.escape(self.value) + r"-v\d+", value) is not None
        return str(value).replace(" ", "") == self.value.replace(" ", "") or value is target


@dataclass(frozen=True)
class Query:
    """What is to be listed."""

    match: str | None = None
    filters: Sequence[Filter] = ()
    tags: Sequence[str] = ()
    state: str | None = None
    starred: bool = False
    archived: bool = False  # the archived ones instead of the others
    sort: str = "age"
    limit: int = 0  # 0: all


class ListedRun(NamedTuple):
    """A run as the index has it, and what follows from that: its state, its folder, where its copies are."""

    rowid: int  # in the index, until it is brought up to date
    name: str
    key: str  # which run where one file holds many
    format: str
    id: str
    env: str
    algo: str
    seed: Any
    sign: float  # of life, the last one
    created: float
    parent: str
    steps: int | None
    planned: float | None
    metric: str
    verdict: str  # in the word of runs.verdict; empty where only the last evaluation was looked at
    outcome: float | None
    error: float | None
    episodes: int | None
    low: float  # the least and the most that the outcome can be at all
    high: float
    size: int
    config: int  # the number of its settings in the index: seeds share it
    named: int  # whether its name, and not its settings, says which runs it belongs to
    note: str
    star: int
    archived: int
    problem: str
    tags: list[str]
    state: str
    path: str  # of its folder, or of its file where one holds many
    copies: list[str]

    @property
    def folder(self) -> Path:
        return Path(self.path)  # made when it is asked for: of a hundred thousand runs a page shows a hundred


FOLLOWS = ("tags", "state", "path", "copies")  # the fields that are no columns, or not as they are
COLUMNS = ", ".join([*(name for name in ListedRun._fields if name not in FOLLOWS), "tags", "status", "path"])


@dataclass
class Listed:
    """Some runs, and how many there are in all."""

    rows: list[ListedRun] = field(default_factory=list)
    total: int = 0


@dataclass
class ListedGroup:
    """Runs that share the values of some settings."""

    values: Settings
    runs: int = 0
    finished: int = 0
    n: int = 0  # runs with an outcome, and below of these the mean, the lowest and the highest
    mean: float | None = None
    low: float | None = None
    high: float | None = None
    best: str | None = None  # name of the run with the highest
    metrics: list[str] = field(default_factory=list)

    def add(self, name: str, status: str, metric: str, outcome: float | None) -> None:
        self.runs += 1
        self.finished += status == "finished"
        if outcome is None:
            return
        if self.high is None or outcome > self.high:
            self.high, self.best = outcome, name
        self.low = outcome if self.low is None else min(outcome, self.low)
        self.n += 1
        self.mean = (self.mean or 0.0) + outcome  # the sum, until all are there
        if metric not in self.metrics:
            self.metrics.append(metric)

    def summed(self) -> ListedGroup:
        """The group when all runs are there."""
        return replace(self, mean=(self.mean or 0.0) / self.n if self.n else None, metrics=sorted(self.metrics))


def parse_filter(word: str) -> Filter | None:
    """algo.lr=3e-4 -> Filter; None where the word is no such thing.

    >>> parse_filter("algo.lr<=3e-4")
    Filter(key='algo.lr', op='<=', value='3e-4')
    """
    match = WORD.fullmatch(word)
    return Filter(match[1], match[2], match[3]) if match else None


def number(text: str) -> float:
    """A number, with a unit of bytes or of time if it has one: 3e-4, 100MB, 7d."""
    match = re.fullmatch(r"(.*?[0-9.])\s*([a-zA-Z]+)", text)
    if match and match[2] in UNITS:
        return float(match[1]) * UNITS[match[2]]
    return float(text)


def state(status: str, sign: float, format: str, now: float | None = None) -> str:
    """As folders.state_of has it, from what the index keeps."""
    at = time.time() if now is None else now
    return run_state(status, format == "relab", lambda: at - sign)


# ---- Selecting


def select(index: Index, query: Query) -> Listed:
    where, values = _where(index, query)
    (total,) = index.db.execute(f"SELECT COUNT(*) FROM runs WHERE {where}", values).fetchone()
    tail = f" ORDER BY {_order(index, query.sort)}" + (f" LIMIT {int(query.limit)}" if query.limit else "")
    if query.limit:  # sort the numbers of the rows alone: whole rows would be copied about
        return Listed(_by_rowid(index, numbers(index, query)), total)
    rows = index.db.execute(f"SELECT {COLUMNS} FROM runs WHERE {where}{tail}", values).fetchall()
    return Listed(_finished(index, rows), total)


def numbers(index: Index, query: Query) -> list[int]:
    """The rowids of the chosen runs in their order; of 100,000 runs in a tenth of the time that the runs take."""
    where, values = _where(index, query)
    tail = f" ORDER BY {_order(index, query.sort)}" + (f" LIMIT {int(query.limit)}" if query.limit else "")
    return [number for (number,) in index.db.execute(f"SELECT rowid FROM runs WHERE {where}{tail}", values)]


def _by_rowid(index: Index, order: Sequence[int]) -> list[ListedRun]:
    """Whole rows, in the order of their numbers as given."""
    rows = {}
    for start in range(0, len(order), 500):
        marks = ",".join(map(str, order[start : start + 500]))
        for number, *row in index.db.execute(f"SELECT rowid, {COLUMNS} FROM runs WHERE rowid IN ({marks})"):
            rows[number] = row
    return _finished(index, [rows[number] for number in order])


def _where(index: Index, query: Query) -> tuple[str, list[Any]]:
    _functions(index, query)
    parts: list[str] = ["shown = 1", "archived = ?"]
    values: list[Any] = [query.archived]
    if query.match:
        parts.append("matches(name)")
    for tag in query.tags:
        parts.append("' ' || tags || ' ' LIKE ? ESCAPE '!'")
        values.append("% " + re.sub(r"([!%_])", r"!\1", tag) + " %")
    if query.state:
        parts.append("state(status, sign, format) = ?")
        values.append(query.state)
    if query.starred:
        parts.append("star = 1")
    for i, each in enumerate(query.filters):
        if each.key in FIELDS:
            parts.append(f"holds{i}({FIELDS[each.key]})")
    if settings := [each for each in query.filters if each.key not in FIELDS]:
        _pick(index, settings)
        parts.append("picked(config)")
    return " AND ".join(parts), values


def _functions(index: Index, query: Query) -> None:
    """What SQL asks Python: age, state, the pattern and comparisons of this query."""
    now = time.time()
    index.db.create_function("age", 1, lambda sign: now - sign)
    index.db.create_function("state", 3, lambda status, sign, format: state(status, sign, format, now))
    if query.match:
        try:
            pattern = re.compile(query.match)
        except re.error as error:
            raise ConfigError(f"`--match` must be a regular expression, but {query.match!r}: {error}") from None
        index.db.create_function("matches", 1, lambda name: pattern.search(name) is not None)
    for i, each in enumerate(query.filters):
        if each.op not in ("=", "!="):
            _check_number(each)
        index.db.create_function(f"holds{i}", 1, each.holds)


def _check_number(each: Filter) -> None:
    try:
        number(each.value)
    except ValueError:
        raise ConfigError(f"`{each.key}{each.op}{each.value}`: {each.op} needs a number (also 100MB, 7d)") from None


def _pick(index: Index, filters: Sequence[Filter]) -> None:
    """picked(config): whether all of these hold for a set of settings. Nothing is written: who looks whether the index
    has changed must not find that somebody asked."""
    every = list(index.settings())
    keys = set().union(*(flat for _, flat in every))
    conditions = [(full_key(each.key, keys), each) for each in filters]
    picked = {n for n, flat in every if all(key in flat and each.holds(flat[key]) for key, each in conditions)}
    index.db.create_function("picked", 1, picked.__contains__)


def full_key(key: str, keys: set[str]) -> str:
    """A setting's dotted key from its end, or by another tool's name for it: lr, learning_rate -> algo.lr.

    An unknown one is an error that names the nearest.
    """
    if key in keys or not keys:
        return key
    from relab.config.layers import fitting_keys

    ends = sorted(fitting_keys(key, keys))
    require(len(ends) <= 1, f"`{key}` means {len(ends)} settings: {', '.join(ends[:5])}; write more of it")
    if not ends:
        every = [*keys, *FIELDS]
        raise ConfigError(f"no run here has a setting `{key}`{hint(key, every)}")
    return ends[0]


def _order(index: Index, sort: str) -> str:
    key = sort.removeprefix("-")
    back = sort.startswith("-")
    down = (key in ("age", "outcome", "size", "steps")) is not back  # newest, best, biggest, longest first
    columns = {"age": "sign", "state": "state(status, sign, format)", **{k: k for k in SORTS[1:-1]}}
    if key not in columns:
        keys = full_key(key, set().union(*(flat for _, flat in index.settings())))
        columns[key] = f"setting(config, '{keys}')" if re.fullmatch(r"[\w./-]+", keys) else "name"
        lookup = {n: flat.get(keys) for n, flat in index.settings()}
        index.db.create_function("setting", 2, lambda n, _: _sortable(lookup.get(n)))
    column = columns[key]
    return f"{column} IS NULL, {column} {'DESC' if down else 'ASC'}, name"


def _sortable(value: Any) -> Any:
    return value if isinstance(value, (int, float, str)) or value is None else str(value)


def _finished(index: Index, rows: Iterable[Sequence[Any]]) -> list[ListedRun]:
    """Rows of COLUMNS with what follows from them: state, path, tags as a list, where the copies are."""
    copies: dict[str, list[str]] = {}
    for id_, path in index.db.execute("SELECT id, path FROM runs WHERE shown = 0"):
        copies.setdefault(id_, []).append(os.fsdecode(path).lstrip("/"))
    now, runs = time.time(), []
    sign, format, id_at = (ListedRun._fields.index(name) for name in ("sign", "format", "id"))
    for *row, tags, status, path in rows:
        alike = sorted(copies.get(row[id_at], [])) if row[id_at] else []
        follows = (tags.split(), state(status, row[sign], row[format], now), os.fsdecode(index.base + path), alike)
        runs.append(ListedRun._make((*row, *follows)))
    return runs


# ---- Groups


def groups(index: Index, query: Query, keys: Sequence[str]) -> list[ListedGroup]:
    """Runs that share the values of some settings: how many, how many finished, their last outcomes."""
    where, values = _where(index, query)
    for apart in ("env", "algo"):  # a mean over two environments says nothing of either, nor one over two algorithms
        if not {apart, f"{apart}.name"} & set(keys):
            count = f"SELECT COUNT(DISTINCT {apart}) FROM runs WHERE {where}"
            keys = [*keys, apart] if index.db.execute(count, values).fetchone()[0] > 1 else keys
    every = dict(index.settings())
    setting_keys = set().union(*every.values())
    columns = [FIELDS.get(key, "config") for key in keys]
    full = [key if key in FIELDS else full_key(key, setting_keys) for key in keys]
    by_values: dict[tuple[str, ...], ListedGroup] = {}
    statement = f"SELECT name, status, metric, outcome, {', '.join(columns)} FROM runs WHERE {where}"
    by_cells: dict[tuple[Any, ...], ListedGroup] = {}  # the same group by what the index holds: seeds share a config
    for name, status, metric, outcome, *cells in index.db.execute(statement, values):
        group = by_cells.get(tuple(cells))
        if group is None:
            values_of = [cell if key in FIELDS else every[cell].get(key) for key, cell in zip(full, cells)]
            fresh = ListedGroup(dict(zip(full, values_of)))
            group = by_cells[tuple(cells)] = by_values.setdefault(tuple(map(repr, values_of)), fresh)
        group.add(name, status, metric, outcome)
    return sorted((group.summed() for group in by_values.values()), key=_best_first)


def _best_first(group: ListedGroup) -> tuple[bool, float, str]:
    return group.mean is None, -(group.mean or 0.0), repr(group.values)


# ---- One run by its name


def find(index: Index, word: str) -> list[ListedRun]:
    """The runs that a word means: a name or a unique part of one, an id or its start, a pattern with * or ?."""
    every = [Named(*row) for row in index.db.execute("SELECT rowid, name, id FROM runs WHERE shown = 1 ORDER BY name")]
    if re.search(r"[*?\[]", word) and not any(run.name == word for run in every):
        matches = [run for run in every if any(fnmatch.fnmatchcase(n, word) for n in (run.name, run.last))]
        if not matches:
            raise NotFoundError(f"no run below {index.root} is named like {word} ({plural(len(every), 'run')} there)")
    else:
        matches = [_only(index, word, every)]
    return _by_rowid(index, [run.rowid for run in matches])


class Named(NamedTuple):
    rowid: int
    name: str
    id: str

    @property
    def last(self) -> str:
        return self.name.rpartition("/")[2]


def _only(index: Index, word: str, every: list[Named]) -> Named:
    tests: list[Callable[[Named], bool]] = [
        lambda run: run.name == word,
        lambda run: run.last == word,
        lambda run: len(word) >= 4 and run.id.startswith(word.lower()),
        lambda run: word in run.name,
    ]
    for test in tests:
        matches = [run for run in every if test(run)] if word else []
        if len(matches) == 1:
            return matches[0]
        if matches:
            some = ", ".join(run.name for run in matches[:5]) + (" ..." if len(matches) > 5 else "")
            raise NotFoundError(f"`{word}` means {len(matches)} runs below {index.root}: {some}; write more of the name")
    close = hint(word, [run.name for run in every[:1000]], "; the nearest is {}", marks="/")
    raise NotFoundError(f"no run `{word}` below {index.root} ({plural(len(every), 'run')} there){close}")


def iso(seconds: float) -> str | None:
    """UTC seconds as text; None where there are none."""
    import datetime

    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat(timespec="seconds") if seconds else None
    except (OverflowError, OSError, ValueError):
        return None
