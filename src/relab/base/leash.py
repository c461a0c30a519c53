"""How does a child process never outlive its parent? The kernel ends it with the parent, a thread where it does not.

What is started on another machine for an engine is tied: it ends with whoever started it there, and so does all that
it starts (TIED in the environment). An engine may kill what stands in between, and nobody else would end the rest.

A Leash stands first among the arguments of a process that multiprocessing spawns, with `call` as its target: it is read
before what comes after it is, so that it holds while the child still imports.
"""

from __future__ import annotations

import ctypes
import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import resource_tracker
from typing import Any

from relab.base.processes import PYTHON

PARENT_DIED = 1  # prctl: PR_SET_PDEATHSIG
LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None  # loaded beforehand: between fork and exec is no time
LEAKED = "ignore:resource_tracker:UserWarning"
LOOK_S = 0.5  # between two looks for the parent
TIED = "RELAB_TIED"  # in the environment of a process: what it starts is to end with it
TO_PARENT = (*PYTHON, "-m", "relab.base.leash")  # before a program's words: it ends with its parent


def die_with(parent: int, how: signal.Signals) -> None:
    """The kernel sends this process the signal when the one that started it is gone; only Linux can.

    May be called between fork and exec. A parent that was killed before the kernel knew of it would send nothing.
    """
    if LIBC is not None:
        LIBC.prctl(PARENT_DIED, how)
    if os.getppid() != parent:
        os._exit(128 + how)


def tie(how: signal.Signals) -> Callable[[], None] | None:
    """What a child is to call between fork and exec; None where this process is not tied itself."""
    return functools.partial(die_with, os.getpid(), how) if os.environ.get(TIED) else None


class Leash:
    """Made in the parent; where it arrives, that process ends with it."""

    def __init__(self) -> None:
        self.parent = os.getpid()

    def __reduce__(self) -> tuple[Callable[[int], Leash], tuple[int]]:
        return held, (self.parent,)


def held(parent: int) -> Leash:
    """In the child: the leash, which holds from here on."""
    die_with(parent, signal.SIGKILL)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(LOOK_S)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    leash = Leash.__new__(Leash)
    leash.parent = parent
    return leash


def keep_tracker_silent() -> None:
    """Python's own tracker takes away the semaphores of a parent that was killed, and warns that it had "leaked" them.

    Nobody can do anything about it, so it does so in silence. To be called before the first semaphore is made.
    """
    sys.warnoptions.append(LEAKED)  # the tracker is started with the same ones
    try:
        resource_tracker.ensure_running()
    finally:
        sys.warnoptions.remove(LEAKED)


def call(leash: Leash, work: Callable[..., None], *arguments: Any) -> None:
    """The target of such a process; it ends at once afterwards, whatever its threads still do."""
    code = 1
    try:
        work(*arguments)
        code = 0
    finally:
        os._exit(code)


if __name__ == "__main__":
    die_with(os.getppid(), signal.SIGTERM)
    os.execvp(sys.argv[1], sys.argv[1:])
