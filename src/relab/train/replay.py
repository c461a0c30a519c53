"""Which steps does a run learn from again? The last ones in memory, and all of them as append-only files of its record.

A slot is one step of all columns (worlds x agents): fields of fixed size, one after another. In memory slots form a
ring; on disk slot k lies at a fixed place of data/NAME/SEGMENT.rows, beside data/NAME/fields.json, which is all that
another program needs to read them (docs/record.md). Checkpoints hold how many slots there were, never the slots.

    replay = setup.data.replay("replay", capacity=1_000_000, columns=8, fields={"obs": ((4,), np.float32), ...})
    replay.add(obs=obs_BD, ...)                      one slot
    rows = replay.uniform(rng, 256)                  (slot, column) pairs; gather(rows, "obs")
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import stat
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np

from relab.base import limits
from relab.base.documents import Document
from relab.base.enclosed import NO_LINK, NO_WAIT, open_plain, own, subfolder
from relab.base.jsonl import encode, write_atomic, writing
from relab.config.base import ConfigError, require
from relab.train.kernels.jit import njit

FOLDER = "data"  # of a run, for what checkpoints do not copy
SEGMENT_BYTES = 1 << 24  # of a file, about
FIELDS = "fields.json"
SCHEMA = 1
SEGMENT = re.compile(r"[0-9]{8}\.rows")
TRIES = 100  # rounds of drawing rows whose agent was alive

Fields = Mapping[str, tuple[tuple[int, ...], Any]]  # name -> (shape of one row, dtype)


class DataError(ValueError):
    """Rows on the disk that are not those that the run wrote."""


class Rows(NamedTuple):
    """Which rows were drawn: slots (as counted since the start) and columns."""

    slot: np.ndarray
    column: np.ndarray


class Replay:
    """The last slots of a run, ready to draw from."""

    def __init__(self, fields: Fields, capacity: int, columns: int):
        require(capacity >= columns, f"a replay must hold at least one step of all {columns:,} columns (worlds x"
                f" agents), but its capacity is {capacity:,} rows; raise it, or use fewer worlds")  # fmt: skip
        self.columns, self.slots = columns, capacity // columns
        self.dtype = np.dtype([(name, kind, (columns, *shape)) for name, (shape, kind) in fields.items()])
        self.ring = allocate(self.slots, self.dtype, columns)
        self.count = 0  # slots ever added
        self.store: Store | None = None  # where they are kept, if they are

    def __len__(self) -> int:
        """Rows that can be drawn."""
        return min(self.count, self.slots) * self.columns

    @property
    def oldest(self) -> int:
        return max(0, self.count - self.slots)

    def add(self, **values: np.ndarray) -> None:
        """One slot: for every field an array [columns, ...]."""
        self.make_room()
        row = self.ring[self.count % self.slots]
        for name in self.ring.dtype.names or ():
            row[name] = values[name]
        self.count += 1

    def make_room(self) -> None:
        """Before the next slot: what it would overwrite must be on the disk, or the files would depend on when."""
        if self.store is not None and self.count - self.store.written >= self.slots:
            self.store.flush()

    # ---- Drawing

    def uniform(self, rng: np.random.Generator, rows: int, ahead: int = 0) -> Rows:
        """Rows drawn evenly, each with at least `ahead` younger slots; where there is a field `alive`, living ones."""
        span = self.count - ahead - self.oldest
        if span < 1:
            raise ConfigError(f"{ahead + 1} slots are needed to draw from, but the replay holds"
                              f" {self.count - self.oldest}: start learning later, or hold more")  # fmt: skip
        drawn = _draw(rng, rows, self.oldest, span, self.columns)
        if "alive" not in (self.ring.dtype.names or ()):
            return drawn
        for _ in range(TRIES):
            dead = np.flatnonzero(~self.gather(drawn, "alive"))
            if not dead.size:
                return drawn
            again = _draw(rng, dead.size, self.oldest, span, self.columns)
            drawn.slot[dead], drawn.column[dead] = again
        raise ConfigError(f"{TRIES} rounds of drawing found no living agent for every row of {rows}")

    def gather(self, rows: Rows, name: str) -> np.ndarray:
        """[rows, ...] of one field."""
        return self.ring[name][rows.slot % self.slots, rows.column]

    def n_step(self, rows: Rows, n: int, gamma: float) -> tuple[np.ndarray, np.ndarray, Rows]:
        """(sum of gamma^k r, discount of the successor's value, row of the last step), each ending with its episode.

        Needs the fields reward, terminated and truncated. The discount is 0 behind a termination, and gamma^k behind a
        cut by time, whose successor is the last row's `next_obs`.
        """
        size = rows.slot.size
        total, discount, last = np.empty(size, np.float32), np.empty(size, np.float32), np.empty(size, np.int64)
        reward, terminated, truncated = (self.ring[name] for name in ("reward", "terminated", "truncated"))
        sum_ahead(reward, terminated, truncated, rows.slot, rows.column, n, gamma, total, discount, last)
        return total, discount, Rows(last, rows.column)

    def sequences(self, rng: np.random.Generator, rows: int, length: int) -> Rows:
        """[rows, length] neighbouring slots of one column each; episodes may end inside, as their flags say."""
        first = self.uniform(rng, rows, ahead=length - 1)
        return Rows(first.slot[:, None] + np.arange(length), np.repeat(first.column[:, None], length, axis=1))


def allocate(slots: int, dtype: np.dtype[Any], columns: int) -> np.ndarray:
    """Memory of a ring, which the system hands out page by page as it fills; ConfigError where it has not as much."""
    try:
        return np.zeros(slots, dtype)
    except (MemoryError, ValueError) as error:  # ValueError: more bytes than an array can have
        size = slots * dtype.itemsize
        raise ConfigError(f"a replay of {slots * columns:,} transitions takes {size / 1e9:,.1f} GB"
                          f" ({dtype.itemsize / columns:g} bytes each), which this machine does not give; set `replay`"
                          " lower") from error  # fmt: skip


def _draw(rng: np.random.Generator, rows: int, oldest: int, span: int, columns: int) -> Rows:
    place = rng.integers(span * columns, size=rows)
    return Rows(oldest + place // columns, place % columns)


@njit(cache=True, nogil=True)
def sum_ahead(reward_SC, terminated_SC, truncated_SC, slot, column, n, gamma, total, discount, last):
    """Replay.n_step, row by row."""
    g = np.float32(gamma)
    for i in range(slot.size):
        total[i], discount[i] = np.float32(0.0), np.float32(1.0)
        for k in range(n):
            last[i] = slot[i] + k
            s, c = last[i] % reward_SC.shape[0], column[i]
            total[i] += discount[i] * reward_SC[s, c]
            discount[i] *= np.float32(0.0) if terminated_SC[s, c] else g
            if terminated_SC[s, c] or truncated_SC[s, c]:
                break


# ---- On disk


@dataclass
class Store:
    """A replay's slots as files: written once each, cut back and thrown away by their number."""

    root: Path  # the run's folder
    name: str
    replay: Replay
    written: int = 0  # slots that are on the disk
    sums: dict[int, int] = field(default_factory=dict)  # CRC of each segment's bytes so far

    @property
    def per_segment(self) -> int:
        return max(1, SEGMENT_BYTES // self.replay.dtype.itemsize)

    @property
    def folder(self) -> Path:
        """Asked for anew each time: no part of the way there may have become a link."""
        return own(self.root, f"{FOLDER}/{self.name}")

    def segment(self, number: int) -> Path:
        return own(self.folder, f"{number:08d}.rows")

    def begin(self) -> None:
        """The folder, and what its files hold."""
        if not self.root.is_dir():  # somebody moved the run; no new one is made in its place
            raise FileNotFoundError(f"{self.root} does not exist")
        subfolder(self.root, f"{FOLDER}/{self.name}")
        write_atomic(own(self.folder, FIELDS), encode(self.described(), indent=True))

    def described(self) -> Document:
        """What fields.json says: all that another program needs to read the files."""
        fields = [{"name": name, "dtype": kind.base.str, "shape": list(kind.shape), "offset": offset}
                  for name, (kind, offset) in _parts(self.replay.dtype)]  # fmt: skip
        return {"schema": SCHEMA, "columns": self.replay.columns, "slots_per_segment": self.per_segment,
                "slot_bytes": self.replay.dtype.itemsize, "fields": fields}  # fmt: skip

    def check_described(self) -> None:
        """DataError where fields.json describes other rows than this run's; one that is gone is written again."""
        name, path = f"{FOLDER}/{self.name}/{FIELDS}", own(self.folder, FIELDS)
        if not path.exists():
            return self.begin()
        try:
            there = json.loads(limits.read_bytes(path, limits.SETTINGS, plain=True))
        except (OSError, ValueError) as error:
            raise DataError(f"{name} cannot be read: {error}") from error
        if there != self.described():
            raise DataError(f"{name} does not describe the rows of this run: it was changed, or written by another"
                            " version of relab")  # fmt: skip

    def flush(self) -> int:
        """Write what is new; how many slots there are."""
        r, size = self.replay, self.replay.dtype.itemsize
        if self.written == 0:
            self.begin()
        slot = max(self.written, r.oldest)
        while slot < r.count:
            number, place = divmod(slot, self.per_segment)
            some = min(r.count - slot, self.per_segment - place, r.slots - slot % r.slots)
            path, content = self.segment(number), r.ring[slot % r.slots : slot % r.slots + some].tobytes()
            with writing(path, some * size):
                write_rows(path, content, place * size)
            self.sums[number] = zlib.crc32(content, self.sums.get(number, 0) if place else 0)
            slot += some
            self.written = slot
        return r.count

    def restore(self, count: int, sums: Mapping[str, int] | None = None) -> None:
        """The ring as it was when there were `count` slots; DataError where the files do not hold them.

        `sums`: a CRC of each file up to there, as `sums_of` gave it; without (older runs), rows are taken as they are.
        """
        r = self.replay
        if isinstance(count, bool) or not isinstance(count, int) or not 0 <= count <= limits.REPLAY * 1_000_000:
            raise ValueError(f"{count!r:.80} is no number of slots")
        if count > 0:
            self.check_described()
        r.count, oldest, self.sums = count, max(0, count - r.slots), {}
        for number in range(oldest // self.per_segment, -(-count // self.per_segment)):
            first = number * self.per_segment
            rows = self.rows(number, min(count - first, self.per_segment), (sums or {}).get(f"{number:08d}"))
            start = max(first, oldest)
            r.ring[np.arange(start, first + len(rows)) % r.slots] = rows[start - first :]
        self.written = count

    def rows(self, number: int, slots: int, wanted: int | None) -> np.ndarray:
        """The first slots of a segment; DataError where they are not there, or not those that were written."""
        path, size = self.segment(number), slots * self.replay.dtype.itemsize
        try:
            with open_plain(path) as file:
                content = file.read(size)
        except OSError as error:
            raise DataError(f"{FOLDER}/{self.name}/{path.name} cannot be read: {error.strerror}") from error
        self.sums[number] = zlib.crc32(content)
        if len(content) < size:
            raise DataError(f"{FOLDER}/{self.name}/{path.name} has {len(content):,} of {size:,} bytes")
        if wanted is not None and self.sums[number] != wanted:
            raise DataError(f"{FOLDER}/{self.name}/{path.name} was changed after the run wrote it (its CRC is"
                            f" {self.sums[number]:08x}, not {wanted:08x})")  # fmt: skip
        return np.frombuffer(content, self.replay.dtype)

    def sums_of(self) -> dict[str, int]:
        """A CRC of every file that the ring lies in, as far as it is written."""
        first = max(0, self.written - self.replay.slots) // self.per_segment
        self.sums = {number: crc for number, crc in self.sums.items() if number >= first}
        return {f"{number:08d}": crc for number, crc in sorted(self.sums.items())}

    def cut(self, count: int) -> None:
        """Forget what came behind slot `count`: a killed run wrote it."""
        for path in self.segments():
            number = int(path.stem)
            keep = min(max(count - number * self.per_segment, 0), self.per_segment) * self.replay.dtype.itemsize
            if keep == 0:
                path.unlink()
            elif path.stat().st_size > keep:
                os.truncate(path, keep)

    def forget(self, count: int) -> None:
        """Throw away the files that no checkpoint from `count` slots on needs."""
        first = max(0, count - self.replay.slots) // self.per_segment
        for path in self.segments():
            if int(path.stem) < first:
                path.unlink()

    def segments(self) -> list[Path]:
        there = sorted(self.folder.iterdir()) if self.folder.is_dir() else []
        return [own(self.folder, path.name) for path in there if SEGMENT.fullmatch(path.name)]


def write_rows(path: Path, content: bytes, at: int) -> None:
    """At that byte, the end of the file; what does not fit is taken back: half a slot is of no use, and takes room."""
    with open_rows(path) as file:
        try:
            file.seek(at)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            with contextlib.suppress(OSError):
                file.close()  # which tries once more to write what is left
            os.truncate(path, at)
            raise


def open_rows(path: Path) -> IO[bytes]:
    """For writing anywhere in it, made where it is missing; a link, a pipe or a device is an OSError."""
    file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | NO_LINK | NO_WAIT, 0o666), "r+b")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(f"{path} must be a file, but is a pipe or a device")
    return file


def _parts(dtype: np.dtype[Any]) -> list[tuple[str, tuple[Any, int]]]:
    fields: Any = dtype.fields or {}
    return [(name, (fields[name][0], fields[name][1])) for name in dtype.names or ()]


@dataclass
class Data:
    """What a run keeps beside its checkpoints, by name; without a folder nothing is written (evaluation, films)."""

    root: Path | None = None  # the run's folder
    stores: dict[str, Store] = field(default_factory=dict)

    def replay(self, name: str, fields: Fields, capacity: int, columns: int) -> Replay:
        """A replay of that name, empty; a resumed run's is filled before its State is loaded."""
        made = Replay(fields, capacity, columns)
        if self.root is not None:
            made.store = self.stores[name] = Store(self.root, name, made)
        return made

    def lengths(self) -> dict[str, int]:
        """Slots by name, all of them on the disk; asked when a checkpoint is made."""
        for store in self.stores.values():
            store.flush()
        return {name: store.written for name, store in self.stores.items()}

    def sums(self) -> dict[str, dict[str, int]]:
        """What tells later whether the files still hold what was written; asked after `lengths`."""
        return {name: store.sums_of() for name, store in self.stores.items()}

    def restore(self, lengths: Mapping[str, int], sums: Mapping[str, Mapping[str, int]] | None = None) -> None:
        """As it was at a checkpoint; ValueError where that knows another data set, DataError where files lack rows."""
        if set(lengths) != set(self.stores):
            raise ValueError(f"its data are {sorted(lengths)}, but this algorithm keeps {sorted(self.stores)}")
        for name, store in self.stores.items():
            store.restore(lengths[name], (sums or {}).get(name))

    def cut(self) -> None:
        for store in self.stores.values():
            store.cut(store.written)

    def forget(self, oldest: Sequence[Mapping[str, int]]) -> None:
        """Only what the checkpoints with these lengths need stays."""
        for name, store in self.stores.items():
            store.forget(min((each[name] for each in oldest if name in each), default=store.written))


def changed(folder: Path, sums: Mapping[str, int]) -> list[str]:
    """Files whose CRC is not the one that a checkpoint has of them (`Data.sums`)."""
    files = {number: own(folder, f"{number}.rows") for number in sums}
    return [path.name for number, path in files.items() if zlib.crc32(path.read_bytes()) != sums[number]]


def read(folder: Path) -> dict[str, np.ndarray]:
    """Every slot that is left of a stored replay, by field: [slots, columns, ...]. For other programs and data sets."""
    described = json.loads(limits.read_bytes(own(folder, FIELDS), limits.SETTINGS))
    kinds = [(f["name"], np.dtype(f["dtype"]), tuple(f["shape"])) for f in described["fields"]]
    dtype = np.dtype(kinds)
    if dtype.itemsize != described["slot_bytes"] or dtype.hasobject:
        raise ValueError(f"{folder}/{FIELDS} describes slots of {dtype.itemsize} bytes, not {described['slot_bytes']}")
    parts = [np.fromfile(own(folder, p.name), dtype) for p in sorted(folder.iterdir()) if SEGMENT.fullmatch(p.name)]
    whole = np.concatenate(parts) if parts else np.zeros(0, dtype)
    return {name: whole[name] for name in dtype.names or ()}
