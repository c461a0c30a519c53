"""How much of a file is read? Never more than its reader's limit; a larger file is an error that says size and limit.

Files that hold rows (JSON lines, CSV, event files) are read up to their limit and the rest is reported; files that mean
nothing in part (settings, JSON, YAML) are refused whole. docs/reliability.md lists every limit.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from relab.base.enclosed import open_file, open_plain

SETTINGS = 4_000_000  # bytes of a file of settings, or of one that a person writes
YAML = 1_000_000  # bytes of a YAML file: a parser in Python takes seconds for each million
JSON = 1 << 25  # bytes of a JSON file; in memory it takes up to 25 times as much
TEXT = 16_000_000  # bytes of a log that people read: notes, the output of a command
ROWS = 1 << 29  # bytes of a file of rows that become columns: 8 for each number
KEPT = 1 << 27  # bytes of a file of rows that stay as they are, at ten times their size
LINE = 1 << 24  # bytes of a line in a file of rows
TRAVELS = 1 << 31  # bytes that go to a machine which shares no folder, all at once and in memory
BLOCK = 1 << 20  # bytes read at a time

# Settings that memory is laid out by, whoever wrote the config: checked before anything is.
WEIGHTS = 1 << 28  # weights of an agent's networks: 1 GB, and four times as much while they learn
WIDTH = 1 << 16  # units of a layer; a thousand rows of them are computed at a time
FEATURES = 1 << 20  # features of a linear agent
BATCH = 1 << 26  # agent rows of an iteration
REPLAY = 1 << 30  # transitions of a replay
CHUNK = 1 << 20  # rows of one forward and backward pass
EPISODES = 1_000_000  # episodes of an evaluation, all played side by side
AGENTS = 1 << 16  # agents of a world


class TooLargeError(OSError):
    """A file beyond the limit of its reader."""


def read_bytes(
    path: str | bytes | os.PathLike[str], most: int, remedy: str = "is this the right file?", plain: bool = False
) -> bytes:
    """A whole file; TooLargeError, before anything is read, where it has more than `most` bytes.

    `plain`: a file of a run folder, where a link is an OSError and not a way out.
    """
    with open_plain(path) if plain else open_file(path) as file:
        data = file.read(_size(os.fstat(file.fileno()).st_size, path, most, remedy) + 1)
        if len(data) > most:  # it grew, or is a device that has no size
            _size(len(data), path, most, remedy)
        return data


def read_text(path: str | os.PathLike[str], most: int, encoding: str = "utf-8", errors: str = "strict") -> str:
    return read_bytes(path, most).decode(encoding, errors)


def read_end(path: str | os.PathLike[str], most: int) -> bytes:
    """The last bytes of a file that may be of any size."""
    with open_file(path) as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - most))
        return file.read(most)


def _size(size: int, path: str | bytes | os.PathLike[str], most: int, remedy: str) -> int:
    if size > most:
        name = Path(os.fsdecode(path)).name
        raise TooLargeError(f"{name} has {size:,} bytes, and no more than {most:,} are read; {remedy}")
    return size


class Line(NamedTuple):
    """One line, without its line break."""

    number: int  # from 1
    data: bytes | None  # None where it is longer than is read
    last: bool  # no line break follows; empty in a file that ends as it should


def lines(path: str | os.PathLike[str], most: int = ROWS, longest: int = LINE) -> Iterator[Line]:
    """The lines in the first `most` bytes of a file; what a line holds beyond `longest` bytes is never kept."""
    yield from split(blocks(path, most), longest)


def split(chunks: Iterable[bytes], longest: int = LINE) -> Iterator[Line]:
    """The lines in blocks of bytes that follow each other."""
    number, parts, held = 1, [b""], 0  # of the line that is not over yet
    for block in chunks:
        first, *rest = block.split(b"\n")
        held += len(first)
        parts = [*parts, first] if held <= longest else []
        for line in rest:
            yield Line(number, b"".join(parts) if held <= longest else None, False)
            number, parts, held = number + 1, [line], len(line)
    yield Line(number, b"".join(parts) if held <= longest else None, True)


def blocks(path: str | os.PathLike[str], most: int = ROWS, block: int = BLOCK) -> Iterator[bytes]:
    """The first `most` bytes of a file, a few at a time; whoever watches hears how far it is."""
    with open(path, "rb") as file:
        size, done = min(os.fstat(file.fileno()).st_size, most), 0
        while done < most and (data := file.read(min(block, most - done))):
            report(done, size, os.fsdecode(path))
            done += len(data)
            yield data


# ---- Progress

Heard = Callable[[int, int, str], None]  # bytes done, of how many, the file
_watchers: list[Heard] = []


@contextlib.contextmanager
def watched(heard: Heard) -> Iterator[None]:
    """Inside, `heard` is told how far a file is that is read."""
    _watchers.append(heard)
    try:
        yield
    finally:
        _watchers.remove(heard)


def report(done: int, size: int, path: str) -> None:
    for heard in _watchers:
        heard(done, size, path)
