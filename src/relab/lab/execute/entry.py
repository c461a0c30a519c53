"""What waits in a queue? An entry: a file whose content never changes and whose name holds all that does.

waiting/0995-01763280000000000000-4f2a9c1d03be.0.json             priority, when it came, id, tries so far
running/0995-01763280000000000000-4f2a9c1d03be.0@HOST_….json      and who has claimed it

Names sort by priority, then by age. A change of state is one rename, of which only one of several callers can succeed.
"""

from __future__ import annotations

import re
import time
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from relab.base.documents import Document
from relab.base.jsonl import RecordError
from relab.config.base import require
from relab.lab.execute.executor import Needs
from relab.record import names

SCHEMA = 1
PRIORITIES = (-999, 999)
PATTERN = re.compile(r"(\d{4})-(\d{20})-([0-9a-f]{12})\.(\d{1,6})(?:@([A-Za-z0-9_-]+))?\.json")


class Name(NamedTuple):
    """The changing half of an entry."""

    priority: int
    came: int  # nanoseconds since 1970
    id: str
    tries: int = 0  # that began before this one
    worker: str = ""

    @property
    def file(self) -> str:
        owner = f"@{self.worker}" if self.worker else ""
        return f"{1000 - self.priority:04d}-{self.came:020d}-{self.id}.{self.tries}{owner}.json"

    @property
    def attempt(self) -> str:
        """This try, and no other."""
        return f"{self.id}.{self.tries}"


def parse(file: str) -> Name | None:
    """A file's name; None for what is no entry.

    >>> parse(Name(5, 17, "0" * 12, 2, "box_00_1_2").file)
    Name(priority=5, came=17, id='000000000000', tries=2, worker='box_00_1_2')
    """
    match = PATTERN.fullmatch(file)
    if match is None:
        return None
    return Name(1000 - int(match[1]), int(match[2]), match[3], int(match[4]), match[5] or "")


def new_name(priority: int) -> Name:
    low, high = PRIORITIES
    require(low <= priority <= high, f"`priority` must be {low} to {high}, but is {priority}")
    return Name(priority, time.time_ns(), names.new_id())


@dataclass(frozen=True)
class Entry:
    """The half that never changes."""

    words: tuple[str, ...]  # of relab (`train ppo ...`), or of a program
    relab: bool  # the words are for relab, whichever one the worker has
    cwd: str
    run: str | None = None  # the run folder that it makes, where that is known
    key: str | None = None  # two entries with one key ask for the same thing
    env: dict[str, str] = field(default_factory=dict)
    cores: int = 1
    memory_mb: float | None = None
    by: str = ""  # who submitted it

    @property
    def needs(self) -> Needs:
        return Needs(self.cores, self.memory_mb)

    @property
    def shown(self) -> str:
        return ("relab " if self.relab else "") + " ".join(self.words)

    @property
    def kind(self) -> str:
        """Entries that take about the same memory: alike but for seeds, names and bare numbers."""
        kept = [word for word in self.words if not re.fullmatch(r"(seed=)?-?\d+|\d{4}-\d\d-\d\d-.*", word)]
        return " ".join([str(self.relab), *kept])

    def to_json(self) -> Document:
        return {"schema": SCHEMA, **asdict(self)}


def from_json(row: Document, file: str) -> Entry:
    """What a file holds; an entry of a newer relab, or of nobody's, is said to be one."""
    if row.get("schema") != SCHEMA:
        raise RecordError(f"{file} has schema {row.get('schema')!r}, but this relab reads {SCHEMA}; use a newer one")
    try:
        values = {name: row[name] for name in Entry.__dataclass_fields__}
        words = tuple(str(word) for word in values.pop("words"))
        entry = Entry(words, **values)
    except (KeyError, TypeError) as error:
        raise RecordError(f"{file} is no entry of a queue: {error}") from None
    if not words or not isinstance(entry.cwd, str) or not isinstance(entry.env, dict) or type(entry.cores) is not int:
        raise RecordError(f"{file} is no entry of a queue: it has no words, no folder or no whole number of cores")
    return entry
