"""How is another tool's SQLite file opened? Read-only, without a lock, and nothing in it is computed."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from relab.formats.read.source import Listing

SQLITE = b"SQLite format 3\0"
DATABASES = (".db", ".sqlite", ".sqlite3")
MAX_ROWS = 2_000_000
MAX_CELL = 1 << 24  # bytes
BROKEN = (sqlite3.Error, OverflowError, UnicodeDecodeError)  # messages about a broken schema may be no text


def databases(listing: Listing) -> list[str]:
    """The files of a folder that are databases, by name and first bytes."""
    return [name for name in listing.ending(*DATABASES) if listing.start_of(name, len(SQLITE)) == SQLITE]


def connect(path: Path) -> sqlite3.Connection:
    """Read-only, and as if nobody wrote: no lock, no file beside it."""
    database = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro&immutable=1", uri=True)
    database.execute("PRAGMA trusted_schema = OFF")
    database.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MAX_CELL)
    return database


@contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The same for as long as it is needed; bytes that are no text are replaced."""
    with closing(connect(path)) as database:
        database.text_factory = lambda data: data.decode("utf-8", "replace")
        yield database


def is_plain(database: sqlite3.Connection, table: str) -> bool:
    """Whether all columns are stored: a generated one, or a virtual table, makes gigabytes of a few bytes."""
    hidden = database.execute("SELECT max(hidden) FROM pragma_table_xinfo(?)", (table,)).fetchone()[0]
    definition = database.execute("SELECT sql FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return hidden == 0 and not str(definition and definition[0]).upper().startswith("CREATE VIRTUAL")


def rows_outside(path: Path) -> str:
    """What a program that still runs has not yet moved into the database, which cannot be seen without writing."""
    log = path.with_name(path.name + "-wal")
    held = log.is_file() and log.stat().st_size > 0
    return f"{log.name} holds rows that are not in the base yet; they were not read" if held else ""
