"""How do Numba kernels start fast, and use several cores only where that pays? (relab takes njit from here.)"""

from __future__ import annotations

import contextlib
import importlib.util
from pathlib import Path
from typing import Any

import numba
from numba import njit, prange
from numba.core import caching
from numba.core.dispatcher import Dispatcher
from numba.np import linalg

from relab.base import interrupts
from relab.train.kernels import turns

__all__ = ["WIDE", "compiled", "lean", "max_threads", "njit", "prange", "set_threads", "threads", "wide"]

# Rows (worlds x agents) from which a parallel kernel pays. Serial kernels step 10-30 agents in a microsecond; waking
# the threads costs 10-100 us, and 12 ms when OpenMP's threads spin on a machine that is busy with other runs.
WIDE = 32_768
_threads = 1


def lean(**options: Any) -> Any:
    """njit for what a kernel's loop calls with arrays that the kernel owns: references to them are not counted.

    Numba counts one up and down around every use it cannot see to be safe; each is an atomic operation, and of a
    drone's step they were half. Nothing that is lean may make an array or return one.
    """
    plain: dict[str, Any] = {"cache": True, "error_model": "numpy", "_nrt": False}  # Numba's own helpers are made so
    return njit(**plain | options)


def max_threads() -> int:
    return numba.config.NUMBA_NUM_THREADS  # type: ignore[attr-defined]


def set_threads(threads: int) -> None:
    """How many threads parallel kernels may use (default 1: they are not used at all). Results do not depend on it."""
    global _threads
    _threads = min(threads, max_threads())
    if _threads > 1:
        numba.set_num_threads(_threads)


def threads() -> int:
    """How many threads whatever runs beside Numba may use: as many as its kernels."""
    return _threads


def wide(rows: int) -> bool:
    """Should a batch of this many rows go to the parallel twin of a kernel? (Both give the same bytes.)"""
    return _threads > 1 and rows >= WIDE


def compiled(kernel: Any) -> bool:
    """Has this machine compiled the kernel before (is it in Numba's disk cache)?"""
    where, module = kernel.stats.cache_path, kernel.py_func.__module__.rpartition(".")[2]
    if where is None:  # nothing can be kept
        return False
    return any(Path(where).glob(f"{module}.{kernel.py_func.__name__}-*.nbi"))


def compile_note(kernel: Any) -> str:
    """What a user should know who waits for this kernel to be compiled; empty where it has been."""
    return "" if compiled(kernel) else "compiling kernels for this machine, the first time only: some seconds"


def _skip_scipy() -> None:
    """Answer Numba's question "is there a BLAS?" without importing scipy.linalg (0.25 s of every process start).

    The real check is put back at once, so a kernel that does use linear algebra still imports scipy when it compiles.
    """

    def scipy_is_installed() -> None:
        if importlib.util.find_spec("scipy") is None:
            raise ImportError("scipy is required for linear algebra inside Numba kernels")

    real, linalg.ensure_blas = linalg.ensure_blas, scipy_is_installed
    try:
        import numba.np.arraymath  # noqa: F401  (asks at import, keeps the answer)
    finally:
        linalg.ensure_blas = real


def _forgive() -> None:
    """A kernel that cannot be kept (a full disk, no folder to write to) is compiled again next time, and runs all the
    same; Numba alone would let its first call fail, or the import."""
    keep, enable = caching.Cache.save_overload, Dispatcher.enable_caching

    def save_overload(self: Any, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            keep(self, sig, data)

    def enable_caching(self: Any) -> None:
        with contextlib.suppress(RuntimeError, OSError):  # no locator available
            enable(self)

    setattr(caching.Cache, "save_overload", save_overload)  # noqa: B010 - a method
    setattr(Dispatcher, "enable_caching", enable_caching)  # noqa: B010


def _one_by_one() -> None:
    """Each kernel is compiled by one process at a time, and Ctrl-C stops between two kernels: LLVM calls Python back,
    and what is raised in there is printed and lost."""
    compile_one = Dispatcher.compile

    def compile_whole(self: Any, sig: Any) -> Any:
        with turns.turn(self), interrupts.held():
            return compile_one(self, sig)

    setattr(Dispatcher, "compile", compile_whole)  # noqa: B010 - a method


_skip_scipy()
_forgive()
_one_by_one()
