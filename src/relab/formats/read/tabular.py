"""Which runs are in the table files (CSV, JSON lines) of a folder, and what is one of them like?

One file is one run: named by its folder where the file's name says nothing (progress.csv), else by the file. Files
named for their part in a run (train.csv and eval.csv) are one run together. A file whose `seed` or `run` column has
several values holds a run per value.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from relab.base import limits
from relab.base.contexts import holding
from relab.base.documents import Settings
from relab.base.jsonl import Problem
from relab.formats.read import settings_files, table
from relab.formats.read.source import Listing, Source, start
from relab.formats.read.table import Table
from relab.logger import known_settings
from relab.record.history import History

MAX_BYTES = limits.ROWS
JUDGING = ("eval", "evaluation", "evaluations", "test", "evals")
PARTS = ("train", "training", "progress", "metrics", "log", "logs", "losses", "result", "results", "history", "stats",
         "learning_curve", "learning_curves", *JUDGING)  # fmt: skip
Load = Callable[[Path], Table]
Stamp = tuple[str, int, int]  # a file: path, bytes, time of its last change
Parse = Callable[[Iterable[bytes], str], Table]


@dataclass
class Splits:
    """Which runs each file holds, as it was read before and as it is now: telling that takes reading all of a file."""

    before: dict[Stamp, list[str]] = field(default_factory=dict)
    now: dict[Stamp, list[str]] = field(default_factory=dict)

    def keys(self, path: Path, load: Load) -> list[str]:
        about = path.stat()
        stamp = (os.fspath(path), about.st_size, about.st_mtime_ns)
        self.now[stamp] = self.before[stamp] if stamp in self.before else list(table.split(load(path)))
        return self.now[stamp]


_splits: ContextVar[Splits | None] = ContextVar("splits", default=None)


def remembering(splits: Splits) -> AbstractContextManager[None]:
    """Inside, files that are as they were are not read to find out which runs they hold."""
    return holding(_splits, splits)


def runs(listing: Listing, names: Sequence[str], load: Load) -> list[Source]:
    paths = tuple(listing.folder / name for name in names)
    stems = [path.stem.lower() for path in paths]
    if len(set(stems)) == len(stems) and all(stem in PARTS for stem in stems):
        return [Source("", listing.folder, paths)] if len(paths) > 1 else _in_file(listing.folder, paths[0], load)
    return [run for path in paths for run in _in_file(path, path, load)]


def _in_file(place: Path, path: Path, load: Load) -> list[Source]:
    """One run per value of the columns that tell runs apart."""
    keys = (_splits.get() or Splits()).keys(path, load)
    return [Source("", place if len(keys) == 1 else path, (path,), key) for key in keys]


def read(source: Source, load: Load) -> History:
    history = start(source)
    facts: dict[str, object] = {}
    own: Settings = {}
    for path in source.files:
        cells = load(path)
        rows = table.split(cells).get(source.key, []) if source.key else range(len(cells.lines))
        mine = cells.rows(rows)
        facts |= table.facts(mine)
        own |= cells.settings
        judging = len(source.files) > 1 and path.stem.lower() in JUDGING
        table.fill(history, mine, prefix="eval/" if judging else "")
    settings_files.use(history, source, _joined(settings_files.beside(history, source), own), facts)
    return history


def _joined(beside: Settings, own: Settings) -> Settings:
    """Settings of a file beside the log and of the log itself, which counts more where both say the same."""
    ours = set(known_settings(own).values())
    again = {key for key, meant in known_settings(beside).items() if meant in ours}
    return {key: value for key, value in beside.items() if key not in again} | own


def load(path: Path, parse: Parse) -> Table:
    """The file's cells; a file is asked for by every run in it, hence the cache."""
    about = path.stat()
    return _load(os.fspath(path), about.st_size, about.st_mtime_ns, parse)


@lru_cache(maxsize=4)
def _load(name: str, size: int, changed: int, parse: Parse) -> Table:
    path = Path(name)
    cells = parse(limits.blocks(path, MAX_BYTES), path.name)
    if size > MAX_BYTES:
        cells.problems.append(Problem(path.name, None, f"only the first {MAX_BYTES} of {size} bytes were read"))
    return cells
