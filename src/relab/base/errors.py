"""What can a user mend? Errors of these types are told in one line; any other is a fault of the code (faults.py)."""

from __future__ import annotations

import errno
from pathlib import Path

OTHER = "a pipe, a socket or a device"
REFUSED = {
    errno.EACCES: "may not be read or written by this user; look at its permissions (ls -ld), or name another place",
    errno.EPERM: "may not be changed by this user; name another place",
    errno.EROFS: "lies on a file system that can only be read; name another place",
    errno.EISDIR: "must be a file, but is a folder",
    errno.ENXIO: f"must be a file, but is {OTHER}",
    errno.ENODEV: f"must be a file, but is {OTHER}",
    errno.ELOOP: "is a link, or lies behind one, that is not followed here",
    errno.ENAMETOOLONG: "is longer than a name may be here",
}


class UserError(Exception):
    """What its reader can mend: the message states the condition, the values found and what to do."""

    exit_code = 2  # what was named cannot be read; 64 where the words themselves cannot be used


class NotFoundError(UserError, LookupError):
    """What somebody named is not there, or means more than one thing."""


def refusal(error: OSError) -> str:
    """What the system refused, as a sentence about the path; an error that relab worded itself stays as it is.

    >>> refusal(OSError(errno.EROFS, "Read-only file system", "/mnt/LOG.md"))
    '/mnt/LOG.md lies on a file system that can only be read; name another place'
    """
    if error.errno is None or not isinstance(error.filename, (str, Path)):
        return str(error)
    path = Path(error.filename)
    if error.errno in REFUSED:
        return f"{path} {REFUSED[error.errno]}"
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        return _no_folder(path)
    return _gone(path) if error.errno == errno.ENOENT else f"{path}: {error.strerror}"


def _no_folder(path: Path) -> str:
    """The first part of a path that would have to be a folder and is none."""
    for part in [*reversed(path.parents), path]:
        if part.exists() and not part.is_dir():
            return f"{part} must be a folder, but is {'a file' if part.is_file() else OTHER}"
    return f"{path} exists already; name another"


def _gone(path: Path) -> str:
    folder = path.parent
    return f"{path} does not exist" if folder.exists() else f"the folder {folder} of {path.name} does not exist"
