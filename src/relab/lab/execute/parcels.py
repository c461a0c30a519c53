"""How does a run travel where no file system is shared? As a parcel there, and back as changes while it grows.

A parcel is what one run needs: the plan, the settings, its own folder as far as it came. Changes are what became other
since the last look: bytes behind those that were sent, whole checkpoints, whole small files. They are taken so that
home never points to what it has not got: what refers to other files is looked at first and written last.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from relab.base import limits
from relab.base.enclosed import own, subfolder
from relab.lab.execute.desk import Order, name_of
from relab.lab.execute.engine_error import EngineError

PLANS = ("variants", "proposals")  # folders that all runs of an experiment, sweep or loop share
PARENTS = ("config.yaml", "provenance.json", "meta.json")  # of runs that a loop's proposals are changes of
OWN_ROWS = ("events.jsonl",)  # home may have added to these: its rows stay behind those that arrive
PIECE = 32 * 2**20  # bytes of one look
Parcel = Mapping[str, bytes]


# ---- There


def pack(folder: Path, ids: Sequence[str]) -> dict[str, bytes]:
    """All that the machine needs that carries these orders out: path below the folder -> bytes."""
    names, paths = {name_of(id_) for id_ in ids}, [path for path in folder.iterdir() if path.is_file()]
    paths += [path for part in PLANS for path in (folder / part).glob("*")]
    paths += [path for name in names for path in of_run(folder, name)]
    paths += [folder / "engine" / "work" / f"{id_}.json" for id_ in ids]
    if (folder / "proposals").is_dir():
        paths += [path for name in PARENTS for path in (folder / "runs").glob(f"*/{name}")]
    return read({path.relative_to(folder).as_posix(): path for path in paths if is_plain(path)})


def read(files: Mapping[str, Path]) -> dict[str, bytes]:
    """Files that travel; an error, before one is read, where there is more than a machine is sent."""
    sizes = {name: path.stat().st_size for name, path in files.items()}
    if sum(sizes.values()) > limits.TRAVELS:
        largest = max(sizes, key=lambda name: sizes[name])
        raise too_much(f"{len(sizes)} files of {sum(sizes.values()):,} bytes ({largest} has {sizes[largest]:,})")
    return {name: limits.read_bytes(path, limits.TRAVELS) for name, path in files.items()}


def too_much(what: str) -> EngineError:
    return EngineError(f"{what} would travel, and no more than {limits.TRAVELS:,} bytes do: put the experiment on a"
                       " file system that all machines share")  # fmt: skip


def of_run(folder: Path, name: str) -> Iterator[Path]:
    """The files that one run has at home."""
    for at, folders, files in os.walk(folder / "runs" / name):
        if Path(at).name.startswith("step-") and "state.json" not in files:
            continue  # half a checkpoint, which somebody was killed over
        folders[:] = [each for each in folders if not each.startswith(".")]
        yield from (Path(at, file) for file in files if not file.startswith("."))
    yield from (folder / "state").glob(f"{name}.*")
    yield from (folder / "stopped").glob(f"{name}.json")
    yield folder / "logs" / f"{name}.log"


def is_plain(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()


def unpack(parcel: Parcel, folder: Path) -> None:
    for name, data in parcel.items():
        path = own(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def moved(order: Order, home: Path, there: Path, cwd: Path) -> Order:
    """The same order for a machine that has the folder elsewhere."""

    def at(word: str) -> str:
        if word == str(home.parent):
            return str(there.parent)
        return str(there) + word[len(str(home)) :] if word == str(home) or word.startswith(f"{home}/") else word

    return replace(order, words=[at(word) for word in order.words], log=at(order.log), cwd=str(cwd))


# ---- Back


@dataclass(frozen=True)
class Change:
    """Bytes of a file: from `offset` on, or all of them (None)."""

    path: str  # below the folder, with slashes
    data: bytes
    offset: int | None = None


@dataclass(frozen=True)
class Changes:
    """What became other since the last look, and which checkpoints each run has."""

    files: list[Change] = field(default_factory=list)
    kept: dict[str, list[str]] = field(default_factory=dict)  # run -> its checkpoints
    more: bool = False  # there is more, which the next look takes


@dataclass
class Known:
    """What home has of a file."""

    size: int
    stamp: int  # when it was written, as its machine says it
    digest: hashlib._Hash


@dataclass
class Mirror:
    """What home has of some runs, and so what is to be sent."""

    folder: Path
    ids: Sequence[str]
    known: dict[str, Known] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, ids: Sequence[str], parcel: Parcel) -> Mirror:
        """All that came with the parcel is known."""
        return cls(folder, ids, {name: Known(len(data), 0, hashlib.sha256(data)) for name, data in parcel.items()})

    def look(self, last: bool = False) -> Changes:
        """What is new; the last look compares every byte, for files that were cut and have grown again."""
        names = [name_of(id_) for id_ in self.ids]
        paths = sorted(self._paths(names), key=lambda path: order(path.relative_to(self.folder).as_posix()))
        kept = {name: [path.name for path in (self.folder / "runs" / name / "checkpoints").glob("step-*")]
                for name in names}  # fmt: skip
        files, room = [], PIECE
        for path in paths:
            try:
                change = self._change(path, last)
            except FileNotFoundError:  # deleted meanwhile
                continue
            if change is not None:
                files.append(change)
                room -= len(change.data) if rank(change.path) > 1 else 0
            if room < 0:
                return self._first(files)
        return Changes(files, kept)

    def _first(self, files: list[Change]) -> Changes:
        """Too much for one look: what refers to other files waits until those are there."""
        for each in files:
            if rank(each.path) < 2:
                del self.known[each.path]
        return Changes([each for each in files if rank(each.path) > 1], {}, more=True)

    def _paths(self, names: Sequence[str]) -> Iterator[Path]:
        yield from (path for name in names for path in of_run(self.folder, name))
        for id_ in self.ids:
            yield from (self.folder / "engine" / "alive" / id_, self.folder / "engine" / "ends" / f"{id_}.json")

    def _change(self, path: Path, last: bool) -> Change | None:
        name = path.relative_to(self.folder).as_posix()
        known, stat = self.known.get(name), path.stat()
        if known is not None and not last and (known.size, known.stamp) == (stat.st_size, stat.st_mtime_ns):
            return None
        if stat.st_size > limits.TRAVELS:
            raise too_much(f"{name} has {stat.st_size:,} bytes: it")
        data = limits.read_bytes(path, limits.TRAVELS)
        begins = known is not None and hashlib.sha256(data[: known.size]).digest() == known.digest.digest()
        offset = known.size if known is not None and begins and rank(name) > 1 else None
        self.known[name] = Known(len(data), stat.st_mtime_ns, hashlib.sha256(data))
        if offset == len(data) and not name.startswith("engine/alive"):
            return None
        return Change(name, data if offset is None else data[offset:], offset)


def rank(name: str) -> int:
    """0: how it ended; 1: pointers and marks that are replaced as a whole; 2: checkpoints; 3: the rest."""
    if name.startswith("engine/ends/"):
        return 0
    if name.endswith(".json") or name.startswith("engine/"):
        return 2 if "/checkpoints/step-" in name else 1
    return 2 if "/checkpoints/step-" in name else 3


def order(name: str) -> tuple[int, bool]:
    """In which files are looked at: a checkpoint is whole once its state.json is there."""
    return rank(name), name.endswith("/state.json")


# ---- At home


def apply(folder: Path, changes: Changes, ids: Collection[str]) -> None:
    """Write what arrived; nothing but the files of these runs can be written, whatever a machine sends."""
    names = {name_of(id_) for id_ in ids}
    for change in sorted(changes.files, key=lambda each: (-rank(each.path), order(each.path)[1])):
        if not belongs(change.path, names, ids):
            raise ValueError(f"a machine sent {change.path!r:.100}, which is no file of {', '.join(sorted(names)[:3])}")
        put(folder, change)
    for name, kept in changes.kept.items():
        if name in names:
            prune(folder / "runs" / name / "checkpoints", kept)


def belongs(path: str, names: Collection[str], ids: Collection[str]) -> bool:
    parts = path.split("/")
    if ".." in parts or len(parts) < 2 or parts[0] not in ("runs", "state", "stopped", "logs", "engine"):
        return False
    if parts[0] == "engine":
        return len(parts) == 3 and parts[1] in ("alive", "ends") and parts[2].removesuffix(".json") in ids
    return parts[1] in names if parts[0] == "runs" else any(parts[1].startswith(f"{name}.") for name in names)


def put(folder: Path, change: Change) -> None:
    path = own(folder, change.path)
    if path.parent.name == "checkpoints" and not is_there(path.parent, change.data):
        return  # it was deleted there before it could be sent; the pointer after this one comes with the next look
    subfolder(folder, change.path.split("/")[0])
    path.parent.mkdir(parents=True, exist_ok=True)
    if change.offset is None:
        aside = path.with_name(f".{path.name}.arriving")
        aside.write_bytes(change.data)
        os.replace(aside, path)
        return
    with open(path, "r+b" if path.exists() else "wb") as file:
        file.seek(change.offset)
        behind = file.read(limits.KEPT) if path.name in OWN_ROWS else b""
        file.seek(change.offset)
        file.write(change.data + behind)
        file.truncate()


def is_there(root: Path, pointer: bytes) -> bool:
    """Whether the checkpoint that latest.json or best.json names is here, and whole."""
    return any(
        (root / path.name / "state.json").is_file() for path in root.glob("step-*") if path.name.encode() in pointer
    )


def prune(root: Path, kept: Collection[str]) -> None:
    """Checkpoints that are gone there are not kept here, but for those that this record points to."""
    pointed = "".join(limits.read_text(path, limits.SETTINGS) for path in root.glob("*.json"))
    for path in root.glob("step-*"):
        if path.name not in kept and path.name not in pointed:
            shutil.rmtree(path, ignore_errors=True)
