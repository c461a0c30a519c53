"""A run folder: append to it and read it, nothing else. Killed at any moment, it stays readable.

A row counts once its line break is there; metrics, evals and probes hold nothing that depends on the clock, so that a
resumed run writes the same bytes. One process writes, any number may read. Reading never writes.
"""

from __future__ import annotations

import contextlib
import datetime
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from relab.base import masks
from relab.base.documents import Document, Settings
from relab.base.enclosed import open_plain
from relab.base.jsonl import (
    DiskFullError,
    Problem,
    RecordError,
    encode,
    inside,
    is_row,
    last_line,
    open_append,
    read_at,
    read_json,
    read_jsonl,
    write_atomic,
    write_over,
    write_row,
    writing,
)
from relab.config.views import config_hash
from relab.config.yaml_io import format_yaml, read_yaml
from relab.record import glossary, names

__all__ = [
    "FILES",
    "SCHEMA",
    "Problem",
    "Record",
    "RecordError",
    "append_event_to",
    "clear_begun",
    "is_locked",
    "read_config",
    "read_jsonl",
    "read_meta",
    "read_provenance",
]

SCHEMA = 1  # of the folder; raised when an older reader would misunderstand it
DETERMINISTIC = (
    "metrics.jsonl",
    "evals.jsonl",
    "probes.jsonl",
)  # nothing in them depends on the clock; resume cuts them
FILES = (*DETERMINISTIC, "timing.jsonl", "events.jsonl")
STATUSES = ("running", "finished", "interrupted", "failed")
EPISODE_KEYS = {"seed", "return", "length", "success", "end"}
HEARTBEAT_S = 10.0


def now(timespec: str = "milliseconds") -> str:
    """UTC, to the millisecond or as finely as asked."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec=timespec).replace("+00:00", "Z")


class Mirror(Protocol):
    """Who hears of every row that a record appends, by the file's name; closed with it."""

    def __call__(self, name: str, row: Mapping[str, Any]) -> None: ...

    def close(self) -> None: ...


class Record:
    """An open run folder. One process writes; any number may read."""

    def __init__(self, folder: Path, meta: Document):
        self.folder, self.meta = folder, meta
        self._known: set[str] = set()  # metric names that were looked up already
        self._fds = {name: open_append(folder, name) for name in FILES}
        self.mirror: Mirror | None = None
        self._beat = time.monotonic()
        self._linked = {name for name, fd in self._fds.items() if os.fstat(fd).st_nlink}  # some mounts always say 0
        self._lock()

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str],
        config: Mapping[str, Any],
        provenance: Mapping[str, str],
        meta: Mapping[str, Any],
    ) -> Record:
        """Start a run: the folder is new or empty; config, its provenance and meta are the first things written."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        there = sorted(path.name for path in folder.iterdir())
        if there:
            raise RecordError(f"a new run needs an empty folder, but {folder} holds {', '.join(there[:5])}")
        full = {"schema": SCHEMA, "id": names.new_id(), "name": folder.name, "status": "running", "created": now(),
                "heartbeat": now(), "config_hash": config_hash(config), **masks.of_meta(meta)}  # fmt: skip
        try:
            cls._write_heads(folder, config, provenance, full)
        except DiskFullError:  # what cannot be resumed leaves nothing behind: the name is free for the next try
            clear_begun(folder)
            raise
        return cls(folder, full)

    @staticmethod
    def _write_heads(folder: Path, config: Mapping[str, Any], provenance: Mapping[str, str], meta: Any) -> None:
        write_atomic(folder / "config.yaml", format_yaml(plain_config(config)).encode(), rename_later=True)
        write_atomic(folder / "provenance.json", encode(provenance, indent=True), rename_later=True)
        write_atomic(folder / "meta.json", encode(meta, indent=True))

    @classmethod
    def open(cls, folder: str | os.PathLike[str], repair: bool = True) -> Record:
        """Continue a run: truncated last lines are dropped, with an event that says so (without `repair`, later)."""
        folder = Path(folder)
        meta = read_meta(folder)
        check_meta(folder, meta)
        if meta.get("schema", 0) > SCHEMA:
            raise RecordError(
                f"{folder} has schema {meta['schema']}, but this relab writes {SCHEMA}; use a newer relab"
            )
        record = cls(folder, meta)
        if repair:
            record.repair()
        return record

    def repair(self) -> None:
        for name in reversed(FILES):  # events first: the repair of the others is told there
            self._repair(name)

    def _lock(self) -> None:
        try:
            import fcntl
        except ImportError:  # Windows: no advisory locks
            return
        try:
            fcntl.flock(self._fds["events.jsonl"], fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise RecordError(f"{self.folder} is being written by another process; wait for it or stop it") from None
        except OSError:  # file systems without locks
            return

    @property
    def axis(self) -> str:
        """What the steps of the run count."""
        return axis_of(self.meta)

    def append_metrics(self, step: int, values: Mapping[str, Any], axis: str | None = None) -> None:
        """One row of metrics; every name is in the glossary and none depends on the clock."""
        self._check_names(values, clock=False)
        self._append("metrics.jsonl", _row(step, axis or self.axis, values))

    def append_timing(self, step: int, values: Mapping[str, Any], axis: str | None = None) -> None:
        """One row of time/* metrics: all that depends on the clock."""
        self._check_names(values, clock=True)
        self._append("timing.jsonl", _row(step, axis or self.axis, values))

    def append_eval(self, row: Mapping[str, Any]) -> None:
        """{"step", "mode": "det"|"sampled", "noise", "episodes": [{"seed", "return", "length", "success", "end"}]}."""
        if not (_is_int(row.get("step")) and row.get("mode") in ("det", "sampled")):
            raise RecordError(
                f"an evaluation needs an integer step and mode det or sampled, but got {dict(row)!r:.200}"
            )
        for episode in row.get("episodes", ()):
            if not EPISODE_KEYS.issubset(episode):
                raise RecordError(f"an episode needs {sorted(EPISODE_KEYS)}, but got {sorted(episode)}")
        self._append("evals.jsonl", {"step": row["step"], "axis": self.axis, **row})

    def append_probe(self, row: Mapping[str, Any]) -> None:
        """{"step", "probe", "value", "noise", "n", "unit"}: a measurement, its noise and how many samples it has."""
        if not (_is_int(row.get("step")) and {"probe", "value", "noise", "n"} <= set(row)):
            raise RecordError(f"a probe needs an integer step, probe, value, noise and n, but got {dict(row)!r:.200}")
        self._append("probes.jsonl", {"step": row["step"], "axis": self.axis, **row})

    def append_event(self, kind: str, step: int | None, **data: Any) -> None:
        """Something that happened; its kind is in the glossary."""
        self._append("events.jsonl", event_row(kind, step, data, self.axis))

    def _check_names(self, values: Mapping[str, Any], clock: bool) -> None:
        for name in values:
            if name not in self._known and not glossary.known(name):
                raise RecordError(glossary.unknown(name))
            if name.startswith("time/") is not clock:
                right = "append_timing" if not clock else "append_metrics"
                raise RecordError(f"`{name}` belongs to {right}: timing.jsonl holds time/*, metrics.jsonl all else")
            self._known.add(name)

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        write_row(self._fds[name], encode(row), self.folder / name)
        if self.mirror is not None:
            self.mirror(name, row)

    # -- Resume

    def check_there(self) -> None:
        """Rows written to deleted files vanish without an error: a run whose folder is gone must not seem to go on."""
        gone = [name for name, fd in self._fds.items() if name in self._linked and not os.fstat(fd).st_nlink]
        gone = gone or [name for name in self._fds if not (self.folder / name).exists()]
        if gone:
            raise RecordError(f"{self.folder} was deleted or moved while its run was writing there (gone:"
                              f" {', '.join(gone)}); where it was moved to, `relab resume` goes on")  # fmt: skip

    def lengths(self, sync: bool = True) -> dict[str, int]:
        """Bytes of the files that resume cuts, for a checkpoint; on disk before it is (sync)."""
        self.check_there()
        if sync:
            for name in DETERMINISTIC:
                with writing(self.folder / name):
                    os.fsync(self._fds[name])
        return {name: os.fstat(self._fds[name]).st_size for name in DETERMINISTIC}

    def truncate(self, lengths: Mapping[str, int]) -> dict[str, int]:
        """Cut metrics, evals and probes back to a checkpoint's lengths -> bytes dropped. Events and timing stay."""
        self.check_cuts(lengths)
        dropped = {name: os.fstat(self._fds[name]).st_size - length for name, length in lengths.items()}
        for name, length in lengths.items():
            os.ftruncate(self._fds[name], length)
        return dropped

    def check_cuts(self, lengths: Mapping[str, int]) -> None:
        """An error unless the files can be cut to these lengths."""
        if set(lengths) != set(DETERMINISTIC):
            raise RecordError(
                f"lengths of {', '.join(DETERMINISTIC)} are needed, but got {', '.join(map(str, lengths))}"
            )
        for name, length in lengths.items():
            self._check_cut(name, length)

    def _check_cut(self, name: str, length: int) -> None:
        size = os.fstat(self._fds[name]).st_size
        if not 0 <= length <= size:
            raise RecordError(f"{name} has {size} bytes, but the checkpoint was made at {length}: rows were lost")
        if length and read_at(self.folder / name, length - 1, 1) != b"\n":
            raise RecordError(f"byte {length} of {name} is not the end of a row: the checkpoint is of another run")

    def _repair(self, name: str) -> None:
        path = inside(self.folder, name)
        start, tail = last_line(path)
        if not tail:
            return
        if is_row(tail):
            write_row(self._fds[name], b"\n", path)
            self.append_event("tail_completed", None, file=name)
            return
        os.ftruncate(self._fds[name], start)
        self.append_event("tail_dropped", None, file=name, bytes=len(tail), text=tail[:200].decode(errors="replace"))

    # -- meta.json

    def update_meta(self, **values: Any) -> None:
        """Change entries of meta.json, atomically."""
        self._write_meta(masks.of_meta(values), sync=True)

    def last_words(self, status: str, why: str) -> None:
        """How the run ended, on a full disk too: without the reason, if there is room for the status alone."""
        before = self.meta
        try:
            return self.update_meta(status=status, why=why)
        except DiskFullError:
            for values in ({"status": status, "why": why}, {"status": status}):
                with contextlib.suppress(OSError):
                    text = encode({**before, **masks.of_meta(values)}, indent=True)
                    return write_over(self.folder / "meta.json", text)

    def _write_meta(self, values: Mapping[str, Any], sync: bool) -> None:
        if values.get("status", "running") not in STATUSES:
            raise RecordError(f"`status` must be one of {', '.join(STATUSES)}, but got {values['status']!r}")
        self.check_there()
        self.meta = {**self.meta, **values, "heartbeat": now()}
        self._beat = time.monotonic()
        write_atomic(self.folder / "meta.json", encode(self.meta, indent=True), sync)

    def heartbeat(self, every_s: float = HEARTBEAT_S) -> None:
        """Say that the run is alive; cheap to call often, written at most every `every_s` seconds."""
        if time.monotonic() - self._beat >= every_s:
            self._write_meta({}, sync=False)

    def close(self) -> None:
        if self.mirror is not None:
            self.mirror.close()
        for fd in self._fds.values():
            os.close(fd)
        self._fds = {}

    def __enter__(self) -> Record:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def axis_of(meta: Mapping[str, Any]) -> str:
    """What the steps of a run count, as its meta.json says; older ones do not, and count agents' steps."""
    return str(meta["axis"]) if meta.get("axis") in glossary.AXES else "agent_steps"


def event_row(kind: str, step: int | None, data: Mapping[str, Any], axis: str = "agent_steps") -> Document:
    if kind not in glossary.EVENTS:
        raise RecordError(f"the event `{kind}` is not in glossary.EVENTS ({', '.join(glossary.EVENTS)})")
    return {"step": step, "axis": axis, "kind": kind, "time": now(), **masks.masked(data)}


def append_event_to(folder: str | os.PathLike[str], kind: str, step: int | None, **data: Any) -> None:
    """One event from outside of the run, e.g. a later evaluation; safe beside a process that is still writing."""
    try:
        axis = axis_of(read_meta(folder))
    except (RecordError, OSError):  # a damaged record may still be told what happened
        axis = axis_of({})
    fd = open_append(Path(folder), "events.jsonl")
    try:
        write_row(fd, encode(event_row(kind, step, data, axis)), Path(folder) / "events.jsonl")
    finally:
        os.close(fd)


def _row(step: int, axis: str, values: Mapping[str, Any]) -> Document:
    if not _is_int(step) or step < 0 or axis not in glossary.AXES:
        raise RecordError(
            f"a row needs a step >= 0 and an axis of {', '.join(glossary.AXES)}, but got {step!r}, {axis!r}"
        )
    return {"step": int(step), "axis": axis, **values}


def _is_int(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def plain_config(config: Mapping[str, Any]) -> Settings:
    """A config as nested dicts; YAML has its own words for NaN and the infinities, so floats stay."""
    return {k: plain_config(v) if isinstance(v, Mapping) else v for k, v in config.items()}


# ---- Reading


def read_meta(folder: str | os.PathLike[str]) -> Document:
    return read_json(folder, "meta.json")


def check_meta(folder: Path, meta: Mapping[str, Any]) -> None:
    """Whoever goes on with a run needs these facts about it; whoever only reads it does without."""
    kinds = {"schema": int, "status": str, "id": str, "config_hash": str, "spec": dict, "step": int}
    words = {int: "a whole number", str: "text", dict: "an object"}
    for key, kind in kinds.items():
        value = meta.get(key, {"schema": 0, "spec": {}, "step": 0}.get(key))
        if not isinstance(value, kind) or isinstance(value, bool):
            raise RecordError(f"{folder / 'meta.json'} must hold `{key}` as {words[kind]}, but it is {value!r:.80};"
                              " put it right there, or start the run anew from its config.yaml")  # fmt: skip


def read_provenance(folder: str | os.PathLike[str]) -> dict[str, str]:
    return read_json(folder, "provenance.json")


def read_config(folder: str | os.PathLike[str]) -> Settings:
    """config.yaml as nested plain values; no class is imported, so that a stranger's folder is safe to read."""
    return read_yaml(inside(folder, "config.yaml"))


def clear_begun(folder: Path) -> None:
    """Remove what a training left that was killed before there was a record; a folder with anything else stays."""
    if names.is_unborn(folder):
        for name in os.listdir(folder):
            (folder / name).unlink()
        folder.rmdir()


def is_locked(folder: Path) -> bool:
    """Whether a process is writing this run at the moment; False where there are no locks to tell by."""
    try:
        import fcntl

        with open_plain(folder / "events.jsonl") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # let go when the file is closed
    except BlockingIOError:
        return True
    except (ImportError, OSError):
        return False
    return False
