"""How do tests give code a bound of time and memory? Past it the code fails; nothing here measures speed."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator

GB = 1 << 30


class TooLong(BaseException):
    """Beyond the time; no `except Exception` of the code under test may take it for a failure of its own."""


@contextlib.contextmanager
def bounded(seconds: float = 5.0, memory: int = GB) -> Iterator[None]:
    """Whatever is inside ends within so many seconds of the processor, with so many more bytes (Linux, main thread)."""
    with _memory(memory), _time(seconds):
        yield


@contextlib.contextmanager
def _time(seconds: float) -> Iterator[None]:
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(*_: object) -> None:
        raise TooLong(f"not done after {seconds:g} s of the processor")

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def _memory(more: int) -> Iterator[None]:
    try:
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[0]) * resource.getpagesize()
    except (ImportError, OSError):
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + more, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
