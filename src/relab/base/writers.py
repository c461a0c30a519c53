"""Is a program writing a file at this moment? The kernel lists what each process has open, for processes of this user.

Nothing is known of files on a network mount or of another user's, nor where there is no /proc.
"""

from __future__ import annotations

import contextlib
import math
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from relab.base.enclosed import open_plain

REMOTE = ("nfs", "cifs", "smb", "9p", "fuse", "virtiofs", "lustre", "gpfs", "beegfs", "ceph", "afs")
KEPT_S = 0.25  # a list of open files is good for so long
_kept: dict[str, tuple[float, frozenset[tuple[int, int]]]] = {}


def written(paths: Iterable[str | os.PathLike[str]]) -> bool | None:
    """Whether a process has one of the files open to write; None where that cannot be seen."""
    files = [(path, stat) for path in paths if (stat := _stat(path)) is not None]
    if any((stat.st_dev, stat.st_ino) in _open_files() for _, stat in files):
        return True
    seen = bool(files) and os.path.isdir("/proc/self/fd")
    return False if seen and all(_ours(stat) and not _remote(path) for path, stat in files) else None


def is_locked(path: str | os.PathLike[str]) -> bool:
    """Whether a process holds the lock of a file, as far as the file system tells."""
    try:
        import fcntl

        with open_plain(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # closing it lets go
    except BlockingIOError:
        return True
    except (ImportError, OSError):  # Windows, no such file, a file system without locks
        return False
    return False


def _stat(path: str | os.PathLike[str]) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        return os.stat(path)
    return None


def _ours(stat: os.stat_result) -> bool:
    return stat.st_uid == os.getuid()


def _open_files() -> frozenset[tuple[int, int]]:
    """Device and number of every file that a process of this user may write to."""
    at, files = _kept.get("files", (-math.inf, frozenset[tuple[int, int]]()))
    if time.monotonic() - at >= KEPT_S:
        files = frozenset(_scanned())
        _kept["files"] = time.monotonic(), files
    return files


def forget() -> None:
    """Look again at once."""
    _kept.clear()


def _scanned() -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError):
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):  # ended a moment ago, or not ours
                for fd in os.listdir(f"/proc/{pid}/fd"):
                    yield from _writable(f"/proc/{pid}", fd)


def _writable(process: str, fd: str) -> Iterator[tuple[int, int]]:
    with contextlib.suppress(OSError, ValueError, IndexError):
        if not os.readlink(f"{process}/fd/{fd}").startswith("/"):  # a pipe, a socket
            return
        flags = Path(f"{process}/fdinfo/{fd}").read_text().partition("flags:")[2].split()[0]
        if int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
            stat = os.stat(f"{process}/fd/{fd}")
            yield stat.st_dev, stat.st_ino


def _remote(path: str | os.PathLike[str]) -> bool:
    """Whether the file lies on another machine, whose processes nobody here sees."""
    try:
        lines = Path("/proc/self/mounts").read_text().splitlines()
    except OSError:
        return True
    mounts = [fields for line in lines if len(fields := line.split()) > 2]
    real = os.path.realpath(path)
    over = [(len(where), kind) for _, where, kind, *_ in mounts if f"{real}/".startswith(where.rstrip("/") + "/")]
    return max(over, default=(0, ""))[1].startswith(REMOTE)
