"""What do TensorBoard event files hold? A reader and a writer; neither needs TensorBoard.

tfrecords.py finds the records; each holds an Event message: 1 wall_time, 2 step, 3 file_version, 5 summary. A
summary has values: a tag with a number, or with a tensor and what a plug-in says about it.
"""

from __future__ import annotations

import os
import struct
import time
from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from relab.formats.read import protobuf as pb
from relab.formats.read.tb_batch import Batch, scalars
from relab.formats.read.tfrecords import FOOTER, Block, Scan, blocks, check, groups, pack, say_bad

# ---- What is found


class Other(NamedTuple):
    """A value that is no scalar: text, or what a plug-in stored."""

    tag: str
    step: int
    plugin: str
    content: bytes  # of the plug-in; for text, the text


class Single(NamedTuple):
    """A point that was read by itself."""

    record: int
    tag: bytes
    step: int
    wall: float
    value: float


@dataclass
class Series:
    """One tag: points in the order they were written."""

    steps: array[int] = field(default_factory=lambda: array("q"))
    walls: array[float] = field(default_factory=lambda: array("d"))
    values: array[float] = field(default_factory=lambda: array("d"))

    def add(self, steps: np.ndarray, walls: np.ndarray, values: np.ndarray) -> None:
        self.steps.frombytes(steps.tobytes())
        self.walls.frombytes(walls.tobytes())
        self.values.frombytes(values.tobytes())


@dataclass(kw_only=True)
class Events(Scan):
    """All of one file."""

    path: Path
    scalars: dict[str, Series] = field(default_factory=dict)
    others: list[Other] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)  # tags that hold no numbers or text (pictures, histograms)
    version: str = ""
    batches: list[Batch] = field(default_factory=list)  # of the block that is being read
    singles: list[Single] = field(default_factory=list)  # and its points that are in none of them
    record: int = 0  # the number of the record in that block


# ---- Reading


def read(path: str | os.PathLike[str], start: int = 0) -> Events:
    """Every scalar and text from an offset on; a torn tail, a bad checksum, a strange message are noted, not raised."""
    events = Events(path=Path(path), end=start)
    with open(path, "rb") as file:
        file.seek(start)
        for block in blocks(file, events):
            _block(block, events, np.arange(len(block.begins)))
    if events.more:
        events.notes.append(f"{events.more} more places could not be read")
    return events


def _block(block: Block, events: Events, numbers: np.ndarray, checked: bool = True) -> None:
    """Some records of a block: the common event (one scalar) with all others of its length, any other by its fields."""
    left, bad = np.zeros(len(block.begins), bool), list[int]()
    left[numbers] = True
    for group in groups(block, numbers):
        fitting = check(block, group, bad) if checked else group
        if len(fitting.rows):
            for batch in scalars(fitting.rows[:, :-FOOTER], fitting.numbers):
                events.batches.append(batch)
                left[batch.numbers] = False
    left[bad] = False
    say_bad(block, bad, events)
    for number in np.flatnonzero(left):
        events.record = int(number)
        _event(block.payload(events.record), events)
    _put_in_order(events)


def _put_in_order(events: Events) -> None:
    """The points of a block to their tags, in the order in which they were written."""
    batches = events.batches + ([_batch_of(events.singles)] if events.singles else [])
    events.batches, events.singles = [], []
    if not batches:
        return
    known: dict[bytes, int] = {}
    tags = [np.array([known.setdefault(name, len(known)) for name in batch.names])[batch.tags] for batch in batches]
    numbers, tag = np.concatenate([batch.numbers for batch in batches]), np.concatenate(tags)
    order = np.lexsort((numbers, tag))
    numbers, tag = numbers[order], tag[order]
    steps, walls, values = (
        np.concatenate([getattr(batch, name) for batch in batches])[order] for name in ("steps", "walls", "values")
    )
    bounds = np.searchsorted(tag, np.arange(len(known) + 1))
    parts = list(zip(known, bounds[:-1], bounds[1:], strict=True))
    for name, begin, end in sorted(parts, key=lambda part: numbers[part[1]]):  # tags as they first appear
        series = events.scalars.setdefault(_name(name), Series())
        series.add(steps[begin:end], walls[begin:end], values[begin:end])


def _batch_of(singles: list[Single]) -> Batch:
    records, tags, steps, walls, values = zip(*singles, strict=True)
    names = list(dict.fromkeys(tags))
    where = {name: n for n, name in enumerate(names)}
    integers = (np.array(column, np.int64) for column in (records, [where[tag] for tag in tags], steps))
    numbers, tag_numbers, step_numbers = integers
    return Batch(numbers, names, tag_numbers, step_numbers, np.array(walls, float), np.array(values, float))


# ---- One event


def _event(data: bytes, events: Events) -> None:
    try:
        _any_event(data, events)
    except (pb.MalformedError, struct.error, UnicodeError) as error:
        events.note(f"an event could not be read: {error}")


TAIL = struct.Struct("<f")
WALL = struct.Struct("<d")


@lru_cache(maxsize=1 << 16)
def _name(tag: bytes) -> str:
    return tag.decode("utf-8", "replace")


def _add(events: Events, tag: bytes, step: int, wall: float, value: float) -> None:
    events.singles.append(Single(events.record, tag, step, wall, value))


def _any_event(data: bytes, events: Events) -> None:
    wall, step, summaries = 0.0, 0, []
    for number, value in pb.fields(data):
        if number == 1:
            wall = pb.double(value)
        elif number == 2 and isinstance(value, int):
            step = pb.signed(value)
        elif number == 3:
            events.version = pb.text(value)
        elif number == 5:
            summaries.append(pb.message(value))
    for summary in summaries:
        for number, value in pb.fields(summary):
            if number == 1:
                _value(pb.message(value), step, wall, events)


def _value(data: bytes, step: int, wall: float, events: Events) -> None:
    """Summary.Value: 1 tag, 2 simple_value, 8 tensor, 9 metadata; 4 to 7 are pictures, sounds and histograms."""
    tag, scalar, tensor, plugin, content = b"", None, None, "", b""
    for number, value in pb.fields(data):
        if number == 1:
            tag = pb.message(value)
        elif number == 2:
            scalar = pb.single(value)
        elif number == 8:
            tensor = pb.message(value)
        elif number == 9:
            plugin, content = _plugin(pb.message(value))
    if plugin == "hparams":
        events.others.append(Other(_name(tag), step, plugin, content))
    elif scalar is not None:
        _add(events, tag, step, wall, scalar)
    elif tensor is not None:
        _tensor_value(tag, tensor, plugin, step, wall, events)
    else:
        _skip(events, tag)


def _skip(events: Events, tag: bytes) -> None:
    events.skipped[_name(tag)] = events.skipped.get(_name(tag), 0) + 1


def _plugin(metadata: bytes) -> tuple[str, bytes]:
    """SummaryMetadata{1 plugin_data{1 name, 2 content}}."""
    name, content = "", b""
    for number, value in pb.fields(metadata):
        for inner, part in pb.fields(pb.message(value)) if number == 1 else ():
            if inner == 1:
                name = pb.text(part)
            elif inner == 2:
                content = pb.message(part)
    return name, content


TYPES = {1: "<f4", 2: "<f8", 3: "<i4", 4: "u1", 5: "<i2", 6: "i1", 9: "<i8", 10: "?", 19: "<f2"}  # DataType -> numpy


def _tensor_value(tag: bytes, tensor: bytes, plugin: str, step: int, wall: float, events: Events) -> None:
    kind, numbers, texts = 0, np.zeros(0), []
    for number, value in pb.fields(tensor):
        if number == 1 and isinstance(value, int):
            kind = value
        elif number == 8:
            texts.append(pb.message(value))
        elif number in (4, 5, 6, 7, 10, 11, 13):
            numbers = _numbers(number, kind, value)
    if kind == 7:
        events.others.append(Other(_name(tag), step, plugin or "text", b"\n".join(texts)))
    elif numbers.size == 1:
        _add(events, tag, step, wall, float(numbers[0]))
    else:
        _skip(events, tag)


def _numbers(number: int, kind: int, value: pb.Value) -> np.ndarray:
    """tensor_content, or one of the typed lists (packed, or a single number of its own)."""
    if isinstance(value, int):
        return np.array([pb.signed(value)], np.float64)
    form = {5: "<f4", 6: "<f8"}.get(number) or TYPES.get(kind, "")
    if number in (7, 10, 11, 13):  # packed varints
        if len(value) > 10:
            return np.zeros(2)
        return np.array([pb.signed(pb.varint(value, 0, len(value))[0])], np.float64)
    if not form or len(value) % np.dtype(form).itemsize:
        return np.zeros(0)
    return np.frombuffer(value, form).astype(np.float64)


# ---- Only the ends: does one file go on where another stops?


class Ends(NamedTuple):
    """Steps at both ends of a file."""

    first: int
    last: int
    interval: int  # between the first two different steps
    tags: frozenset[str]  # of those records
    began: float = 0.0  # when the first and the last of them were written
    ended: float = 0.0


def ends(path: Path, some: int = 200) -> Ends | None:
    """First and last step of a file's scalars from its first and last records; None where they hold none."""
    try:
        return _ends(path, some)
    except OSError:
        return None


def _ends(path: Path, some: int) -> Ends | None:
    head, tail = Events(path=path), Events(path=path)
    with open(path, "rb") as file:
        visited, end = 0, Block(b"", 0)
        for block in blocks(file, head):
            size = len(block.begins)
            _block(block, head, np.arange(min(max(some - visited, 0), size)), checked=False)
            visited += size
            end = block if size else end
    _block(end, tail, np.arange(max(len(end.begins) - some, 0), len(end.begins)), checked=False)
    first = sorted({step for series in head.scalars.values() for step in series.steps})
    last = [series.steps[-1] for series in tail.scalars.values()]
    tags = frozenset(head.scalars) | frozenset(tail.scalars)
    interval = first[1] - first[0] if len(first) > 1 else 0
    if not first or not last:
        return None
    began, ended = (min(s.walls[0] for s in head.scalars.values()), max(s.walls[-1] for s in tail.scalars.values()))
    return Ends(first[0], max(last), interval, tags, began, ended)


# ---- Writing


class Writer:
    """Append scalars and texts to a new event file that TensorBoard shows."""

    def __init__(self, folder: str | os.PathLike[str], wall: float | None = None, suffix: str = "relab.0"):
        Path(folder).mkdir(parents=True, exist_ok=True)
        begin = time.time() if wall is None else wall
        self.path = Path(folder) / f"events.out.tfevents.{int(begin)}.{suffix}"
        self._file = open(self.path, "xb")  # noqa: SIM115 - open as long as the writer is
        self._record(b"\x09" + WALL.pack(begin) + pb.put_bytes(3, b"brain.Event:2"))

    def scalar(self, tag: str, value: float, step: int, wall: float | None = None) -> None:
        number = pb.put_bytes(1, tag.encode()) + b"\x15" + TAIL.pack(value)
        self._event(pb.put_bytes(1, number), step, wall)

    def text(self, tag: str, content: str, step: int = 0, wall: float | None = None) -> None:
        metadata = pb.put_bytes(9, pb.put_bytes(1, pb.put_bytes(1, b"text")))
        tensor = b"\x08\x07" + pb.put_bytes(2, pb.put_bytes(2, b"\x08\x01")) + pb.put_bytes(8, content.encode())
        self._event(pb.put_bytes(1, pb.put_bytes(1, tag.encode()) + metadata + pb.put_bytes(8, tensor)), step, wall)

    def _event(self, summary: bytes, step: int, wall: float | None) -> None:
        when = time.time() if wall is None else wall
        self._record(b"\x09" + WALL.pack(when) + b"\x10" + pb.put_varint(step) + pb.put_bytes(5, summary))

    def _record(self, payload: bytes) -> None:
        self._file.write(pack(payload))

    def flush(self) -> None:
        """So that a reader beside it sees what was written."""
        self._file.flush()

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
