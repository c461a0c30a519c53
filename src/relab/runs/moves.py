"""How is a run renamed, archived or deleted so that a kill between two steps loses nothing?

    PARENT/.archive/NAME                         archived: out of sight of other commands, else as it was
    PARENT/.trash/TIME-ID/manifest.json, run/    deleted: where it lay and when; `undo` puts it back, `purge` ends it

Each operation is a chain of steps, and a run folder moves by one rename, which happens or does not. What a kill leaves
behind (an entry without a run, a rename that was not written down) is put right by `mend` before the next operation.
Runs that are being written are never moved: the writer's lock and its heartbeat are both asked.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relab.record import names
from relab.config.base import require
from relab.base.enclosed import listed, subfolder
from relab.base.errors import NotFoundError
from relab.base.jsonl import RecordError, encode, read_json, sync_folder, write_atomic
from relab.base.places import STALE_S
from relab.record.run_folder import now
from relab.runs import glance, labels
from relab.runs.labels import Labels

ARCHIVE, TRASH, GOING = ".archive", ".trash", ".going-"
MANIFEST, INSIDE = "manifest.json", "run"
ENTRY = re.compile(r"(?:\.going-)?[0-9]{14,20}-(?:[0-9a-f]{12}|noid)(?:-[0-9]+)?")  # of the trash
Steps = Iterator[str]  # an operation: the name of each step, when it has been done


@dataclass(frozen=True)
class Deleted:
    """A run in the trash."""

    entry: Path
    name: str
    origin: str  # where it lay, below the trash's parent
    at: str
    id: str
    size: int

    @property
    def home(self) -> Path:
        return self.entry.parent.parent / self.origin

    @property
    def there(self) -> bool:
        return (self.entry / INSIDE).is_dir() and not (self.entry / INSIDE).is_symlink()


def run(steps: Steps) -> None:
    for _ in steps:
        pass


# ---- Operations, as steps


def rename(folder: Path, new: str) -> Steps:
    """The folder is what counts; its meta.json follows. labels.json says what was under way, and the old name."""
    check_name(new)
    _no_experiment(folder)
    with held(folder):
        target = folder.with_name(new)
        _free(target)
        file = folder / labels.FILE
        before = labels.read(file)
        labels.write(file, replace(before, renaming=new, formerly=(*before.formerly, folder.name)))
        yield "the plan is written"
        os.rename(folder, target)
        yield "the folder has its new name"
        yield from _end_rename(target)


def _end_rename(folder: Path) -> Steps:
    meta = read_json(folder, "meta.json")
    write_atomic(folder / "meta.json", encode({**meta, "name": folder.name}, indent=True))
    yield "meta.json has it too"
    labels.write(folder / labels.FILE, replace(labels.read(folder / labels.FILE), renaming=""))
    sync_folder(folder.parent)
    yield "done"


def archive(folder: Path) -> Steps:
    if folder.parent.name == ARCHIVE:
        raise RecordError(f"{folder.name} is in the archive already")
    _no_experiment(folder)
    yield from _shift(folder, folder.parent / ARCHIVE / folder.name)


def unarchive(folder: Path) -> Steps:
    if folder.parent.name != ARCHIVE:
        raise RecordError(f"{folder.name} is not in the archive")
    yield from _shift(folder, folder.parent.parent / folder.name)
    with contextlib.suppress(OSError):  # others are still in it
        folder.parent.rmdir()
    yield "an empty archive is gone"


def _shift(folder: Path, target: Path) -> Steps:
    with held(folder):
        _free(target)
        _make_home(target)
        yield "the place is there"
        os.rename(folder, target)
        sync_folder(target.parent)
        yield "the run is there"


def delete(folder: Path) -> Steps:
    """Into the trash beside it (beside the archive, for a run that is in it)."""
    archived = folder.parent.name == ARCHIVE
    home = folder.parent.parent if archived else folder.parent
    with locked(home) if archived else contextlib.nullcontext(), held(folder):  # held() locks the folder's parent
        meta = glance.read_meta(os.fsencode(folder))
        stamp = now("microseconds")  # two runs deleted within one millisecond keep their order
        id_ = meta.get("id") if isinstance(meta, dict) else None
        entry = _new_entry(home / TRASH, f"{re.sub(r'[^0-9]', '', stamp)}-{str(id_)[:12] if _is_id(id_) else 'noid'}")
        yield "the entry is there"
        manifest = {"schema": 1, "name": folder.name, "origin": str(folder.relative_to(home)), "at": stamp, "id": id_,
                    "size": glance.size_of(os.fsencode(folder))}  # fmt: skip
        write_atomic(entry / MANIFEST, encode(manifest, indent=True))
        yield "the manifest is written"
        os.rename(folder, entry / INSIDE)
        sync_folder(home)
        yield "the run is in the trash"


def undo(gone: Deleted, to: Path | None = None) -> Steps:
    """Back to where it lay, or to a place that is given; a run that is there by now is not touched."""
    target = _origin(gone) if to is None else _place(to)
    with locked(gone.entry.parent.parent):
        if not gone.there:
            raise RecordError(f"{gone.name} is no longer in the trash")
        _free(target)
        _make_home(target)
        os.rename(gone.entry / INSIDE, target)
        sync_folder(target.parent)
        yield "the run is back"
        _drop(gone.entry)
        yield "done"


def _origin(gone: Deleted) -> Path:
    *above, name = gone.origin.split("/")
    if above not in ([], [ARCHIVE]) or name in ("", ".", ".."):
        raise RecordError(f"{gone.entry / MANIFEST} must name a place beside the trash, but has"
                          f" {gone.origin or 'none'!r}; `relab runs undo {gone.entry.name} --to FOLDER` puts the run"
                          " where you say")  # fmt: skip
    return gone.home


def _place(to: Path) -> Path:
    check_name(to.name)
    if not to.parent.is_dir():
        raise RecordError(f"{to.parent} is no folder, so that nothing can be put at {to}; make it first")
    return to


def purge(gone: Deleted) -> Steps:
    """For good. The entry is renamed first: half an entry is never taken for a run."""
    with locked(gone.entry.parent.parent):
        going = gone.entry.with_name(GOING + gone.entry.name)
        os.rename(gone.entry, going)
        yield "out of the list"
        _drop(going)
        yield "done"


# ---- The trash, and what a kill left behind


def deleted(trash: Path) -> list[Deleted]:
    """What is in a trash folder, oldest first; entries without a run are not, those of a damaged manifest are."""
    entries = sorted(path for path in _list(trash) if not path.name.startswith("."))
    return [gone for entry in entries if (gone := _deleted(entry)) is not None and gone.there]


def _deleted(entry: Path) -> Deleted | None:
    """What an entry says of itself; where its manifest is damaged, what its name and its run say."""
    try:
        manifest = read_json(entry, MANIFEST)
    except (RecordError, OSError):
        if not ENTRY.fullmatch(entry.name):  # somebody's own
            return None
        manifest = {}
    name, origin, at, id_ = (str(manifest.get(key) or "") for key in ("name", "origin", "at", "id"))
    size, meta = manifest.get("size"), glance.read_meta(os.fsencode(entry / INSIDE))
    name = name or str((meta.get("name") if isinstance(meta, dict) else None) or entry.name)
    return Deleted(entry, name, origin, at, id_, size if isinstance(size, int) else 0)


def leftovers(trash: Path) -> list[Path]:
    """Entries that a kill cut short: a manifest whose run was never moved, or is back; a purge that did not end.

    An entry with a run but no manifest cannot come about, and is not touched; nor is what has no entry's name.
    """
    entries = [path for path in _list(trash) if ENTRY.fullmatch(path.name)]
    return [path for path in entries if path.name.startswith(GOING) or not (path / INSIDE).exists()]


def mend(trashes: list[Path], renaming: list[Path]) -> list[str]:
    """Put right what a kill left behind -> what was done, in sentences."""
    sentences = []
    for trash in trashes:
        with locked(trash.parent):
            for path in leftovers(trash):
                _drop(path)
                sentences.append(f"removed {path.name} from the trash: its run was not moved, or was purged")
    for folder in renaming:
        sentences += _mend_rename(folder)
    return sentences


def mend_each(trashes: list[Path], renaming: list[Path]) -> list[str]:
    """The same, each folder by itself: one that is running again is told, and mended later."""
    sentences = []
    for trash, folders in [(trashes, []), *(([], [folder]) for folder in renaming)]:
        try:
            sentences += mend(trash, folders)
        except RecordError as error:
            sentences.append(str(error))
    return sentences


def in_trash(trashes: Sequence[Path], names: Sequence[str], root: Path) -> list[Deleted]:
    """Deleted runs, oldest first: all, or those that are named; the newest where a name was deleted twice."""
    every = sorted((gone for trash in trashes for gone in deleted(trash)), key=lambda gone: gone.at)
    if not names:
        return every
    picked = {name: [g for g in every if name in (g.name, g.id, g.entry.name)] for name in names}
    missing = [name for name, entries in picked.items() if not entries]
    if missing:
        have = ", ".join(dict.fromkeys(gone.name for gone in every[-5:])) or "nothing"
        raise NotFoundError(f"no deleted run `{missing[0]}` below {root}; in the trash: {have}")
    return [entries[-1] for entries in picked.values()]


def _mend_rename(folder: Path) -> list[str]:
    """A rename that was cut short is ended where the folder has its new name, and forgotten where it has not."""
    with held(folder):
        recorded = labels.read(folder / labels.FILE)
        if not recorded.renaming:
            return []  # somebody else has
        if folder.name == recorded.renaming:
            run(_end_rename(folder))
            return [f"{folder.name}: the rename that was cut short is complete"]
        labels.write(folder / labels.FILE, replace(recorded, renaming="", formerly=recorded.formerly[:-1]))
        return [f"{folder.name}: a rename to {recorded.renaming!r} was cut short and did not happen"]


def relabel(folder: Path, change: Callable[[Labels], Labels]) -> Labels:
    """Change the labels of a run of relab's, running or not; two processes at once lose nothing."""
    with locked(folder.parent):
        new = change(labels.read(folder / labels.FILE))
        labels.write(folder / labels.FILE, new)
        return new


def relabel_foreign(path: Path, key: str, change: Callable[[Labels], Labels]) -> Labels:
    """The same for a run of another tool, in the user's cache folder."""
    file = labels.foreign_file(path, key)
    file.parent.mkdir(parents=True, exist_ok=True)
    with locked(file.parent):
        new = change(labels.read(file))
        labels.write(file, new, os.fspath(path))
        return new


# ---- Guards


def check_name(name: str) -> None:
    require(not (wrong := names.flaw(name)), wrong)


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """A run folder that nobody writes to, kept so until the end of the block."""
    with locked(folder.parent), _writer(folder):
        check_idle(folder)
        yield


def experiment_of(folder: Path) -> Path | None:
    """The experiment whose cell this run is."""
    home = folder.resolve().parent.parent
    return home if folder.resolve().parent.name == "runs" and (home / "experiment.yaml").is_file() else None


def _no_experiment(folder: Path) -> None:
    home = experiment_of(folder)
    if home is not None:
        raise RecordError(f"{folder.name} belongs to the experiment {home.name}, which knows it by its place and name;"
                          " tag it instead, or delete it (the experiment then runs it anew)")  # fmt: skip


def check_idle(folder: Path) -> None:
    """An error unless this is a run folder of relab's that is not running."""
    if folder.is_symlink() or not folder.is_dir():
        raise RecordError(f"{folder} must be a run folder, but is {'a link' if folder.is_symlink() else 'not there'}")
    meta = glance.read_meta(os.fsencode(folder))
    if not glance.is_relab(meta):
        raise RecordError(f"{folder} is not a run folder of relab's, and what other tools wrote is left as it is")
    quiet = time.time() - glance.utc(meta.get("heartbeat"))
    if meta.get("status") == "running" and quiet <= STALE_S:
        raise RecordError(f"{folder.name} is running: its last heartbeat was {max(quiet, 0):.0f} s ago; stop it first"
                          f" (a killed run counts as running for {STALE_S:.0f} s)")  # fmt: skip


@contextlib.contextmanager
def _writer(folder: Path) -> Iterator[None]:
    """The lock that a trainer has on its own record: nobody can resume the run while it is moved."""
    flags = os.O_RDWR | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(folder / "events.jsonl", flags)
    except OSError:  # no such file (another program's logger), or not writable: the heartbeat must do
        yield
        return
    try:
        if not _flock(fd, wait=False):
            raise RecordError(f"{folder.name} is being written by another process; wait for it or stop it")
        yield
    finally:
        os.close(fd)


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """One process at a time changes what is in a folder; the folder itself is the lock, no file is left behind."""
    try:
        fd = os.open(folder, os.O_RDONLY)
    except OSError:  # Windows cannot open folders
        yield
        return
    try:
        _flock(fd, wait=True)
        yield
    finally:
        os.close(fd)


def _flock(fd: int, wait: bool) -> bool:
    """Whether the lock is ours; yes also where the file system has none."""
    try:
        import fcntl

        fcntl.flock(fd, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        return True
    return True


def _free(target: Path) -> None:
    if os.path.lexists(target):
        raise RecordError(f"{target} is there already, and is not overwritten; rename one of the two")


def _make_home(target: Path) -> None:
    """The archive is made when the first run goes there; one that is a link leads who knows where."""
    if target.parent.name == ARCHIVE:
        subfolder(target.parent.parent, ARCHIVE)


def _new_entry(trash: Path, name: str) -> Path:
    subfolder(trash.parent, trash.name)
    for more in ("", *(f"-{i}" for i in range(2, 1000))):
        with contextlib.suppress(FileExistsError):
            (trash / (name + more)).mkdir()
            return trash / (name + more)
    raise RecordError(f"{trash} has a thousand entries {name}; purge it")


def _is_id(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[0-9a-f]{12}", value) is not None


def _drop(entry: Path) -> None:
    """Remove an entry and, when it was the last, the trash."""
    shutil.rmtree(entry, ignore_errors=True)
    if entry.exists():
        raise RecordError(f"{entry} could not be removed; are its files yours?")
    with contextlib.suppress(OSError):
        entry.parent.rmdir()


def _list(folder: Path) -> list[Path]:
    return [path for path in listed(folder.parent, folder.name) if path.is_dir()]
