"""Does a path stay inside of its folder? Everything that reads, writes or removes in a run folder asks here.

Somebody may have sent the folder, and a link in it may lead anywhere. Reading follows links that stay inside; writing
and removing follow none at all.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path, PurePath
from typing import IO, Any

from relab.base.errors import UserError

LONGEST_PART, LONGEST_PATH = 255, 4_000  # bytes, of a name and of a whole path: systems take hardly more
NO_LINK = getattr(os, "O_NOFOLLOW", 0)
NO_WAIT = getattr(os, "O_NONBLOCK", 0)  # opening a pipe would wait for a writer that never comes


class RecordError(UserError):
    """A run folder that cannot be written or read as asked; the message says which file, what was found, what to do."""


def inside(folder: str | os.PathLike[str], name: str) -> Path:
    """folder/name, and an error if that leads out of the folder (by `..`, an absolute name or a link)."""
    path = Path(folder) / name
    try:
        leads_to = path.resolve()
    except (RuntimeError, OSError):  # which of them depends on Python
        raise RecordError(f"{name} must be a file of {folder}, but is a link that leads to itself") from None
    if not leads_to.is_relative_to(Path(folder).resolve()):
        raise RecordError(f"{name} must lie inside of {folder}, but leads to {leads_to}")
    return path


def own(folder: str | os.PathLike[str], name: str) -> Path:
    """folder/name for whoever writes or removes it; an error if any part of the name is a link, or leads upwards."""
    parts = PurePath(name).parts
    if PurePath(name).is_absolute() or ".." in parts:
        raise RecordError(f"{name} must be a name inside of {folder}, but leads out of it")
    path = Path(folder)
    for part in parts:
        path /= part
        if path.is_symlink():
            raise RecordError(
                f"{path} is a link to {os.readlink(path)}, and nothing is read, written or removed through a link in"
                " a run folder; put the thing itself there, or remove the link"
            )
    return path


# ---- Paths that a record names


def is_path(text: str) -> bool:
    """Whether the system can look for it at all: no zero byte, no name that is too long."""
    try:
        parts = [os.fsencode(part) for part in PurePath(text).parts]
    except ValueError:  # half a pair
        return False
    short = sum(map(len, parts)) + len(parts) <= LONGEST_PATH and all(len(part) <= LONGEST_PART for part in parts)
    return short and "\0" not in text


def named(value: Any) -> str:
    """The run that a record names (its parent, say), without the folders before it; empty where that is no name.

    >>> named("runs/brave-otter"), named("a/.."), named("a\\0b"), named(3)
    ('brave-otter', '', '', '')
    """
    name = PurePath(value).name if isinstance(value, str) else ""
    return name if is_path(name) and name != ".." else ""


def neighbour(place: str | os.PathLike[str], value: Any) -> Path | None:
    """The run in a folder of runs that a record names; None where it names none, or a link."""
    name = named(value)
    folder = Path(place).resolve() / name
    return folder if name and (folder / "meta.json").is_file() and not folder.is_symlink() else None


# ---- Writing and listing


def subfolder(folder: str | os.PathLike[str], name: str) -> Path:
    """A folder of the folder's own, made where it is missing."""
    path = own(folder, name)
    path.mkdir(parents=True, exist_ok=True)
    return path


def listed(folder: str | os.PathLike[str], name: str = "") -> list[Path]:
    """What a folder of the folder holds, links left out; nothing where it is missing, unreadable or itself a link."""
    try:
        return sorted(path for path in own(folder, name).iterdir() if not path.is_symlink())
    except (RecordError, OSError):
        return []


def open_file(path: str | bytes | os.PathLike[str]) -> IO[bytes]:
    """open() for what a person named: links are followed; a pipe or a device, which may never end, is an error."""
    mode = os.stat(path).st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or os.fsdecode(path) == os.devnull):
        raise OSError(f"{os.fsdecode(path)} must be a file, but is a pipe, a socket or a device")
    return os.fdopen(os.open(path, os.O_RDONLY | NO_WAIT), "rb")


def open_plain(path: str | bytes | os.PathLike[str], mode: str = "rb") -> IO[bytes]:
    """open() for reading (rb), appending (ab) or both (r+b): a link is an OSError, a pipe keeps nobody waiting."""
    flags = {"rb": os.O_RDONLY, "r+b": os.O_RDWR, "ab": os.O_WRONLY | os.O_APPEND | os.O_CREAT}[mode]
    return os.fdopen(os.open(path, flags | NO_LINK | NO_WAIT, 0o666), mode)
