"""How do several processes that start together compile each kernel once?

Whoever comes second waits, and finds it on disk. A lock lies beside Numba's disk cache: one file for each of its
folders, one byte of it for each kernel. The system frees it when a process ends, however that is. Kernels call each
other without circles, so no two processes can wait for each other.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import time
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.platform != "win32":
    import fcntl

WAIT_S = 300.0  # longer than any kernel takes; who has waited so long compiles by itself
LOOK_S = 0.02  # between two looks
FILE = "relab-kernels.lock"


@contextlib.contextmanager
def turn(kernel: Any) -> Iterator[None]:
    """Nobody else on this machine compiles the kernel meanwhile; no more than a hope where nothing can be locked."""
    file, byte = _file(kernel.stats.cache_path), zlib.crc32(kernel.py_func.__qualname__.encode())
    held = file is not None and _take(file, byte)
    try:
        yield
    finally:
        if file is not None and held:
            fcntl.lockf(file, fcntl.LOCK_UN, 1, byte)


@functools.cache  # closing a file would free all locks that this process has in it
def _file(folder: str | None) -> int | None:
    if folder is None or sys.platform == "win32":
        return None
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        return os.open(Path(folder) / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    except OSError:
        return None


def _take(file: int, byte: int) -> bool:
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
        except BlockingIOError:
            time.sleep(LOOK_S)
        except OSError:  # a file system without locks
            return False
        else:
            return True
    return False
