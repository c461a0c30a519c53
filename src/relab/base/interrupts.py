"""Has someone asked this process to stop? Ctrl-C, kill and a dropped line as a word that a loop looks at in time."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType
from typing import Any

STOPS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


AS_IT_WAS = "interrupted before the run went on: it stands as it was, nothing is lost"
NO_RUN = "interrupted before there was a run: nothing can be resumed, call `relab train` again"


def go_on(folder: Path, trust: str = "", what: str = "interrupted") -> str:
    return f"{what}\nnext: relab resume {folder}{trust}"


@contextlib.contextmanager
def stops_say(words: Callable[[], str]) -> Iterator[None]:
    """Ctrl-C inside is raised on with words for whoever pressed it: what is left, and whether it can go on."""
    try:
        yield
    except KeyboardInterrupt as stop:
        raise KeyboardInterrupt(str(stop) or words()) from stop


@contextlib.contextmanager
def held() -> Iterator[None]:
    """Ctrl-C inside is raised when the block ends, an inner one first: what calls Python back from C would print the
    traceback and go on. Handlers of others, and other threads, are left alone.
    """
    mine = signal.getsignal(signal.SIGINT)
    outermost = mine is signal.default_int_handler and threading.current_thread() is threading.main_thread()
    if outermost:
        signal.signal(signal.SIGINT, _hold)
    try:
        yield
    finally:
        if outermost:
            signal.signal(signal.SIGINT, mine)
        if (outermost or mine is _hold) and _held:
            _held.clear()
            raise KeyboardInterrupt


_held: list[int] = []  # signals that wait for the end of a block


def _hold(number: int, frame: FrameType | None) -> None:
    _held.append(number)


class Interrupted(Exception):  # noqa: N818 - somebody asked to stop, which is no error
    """Work of many runs was asked to stop; what it has done so far stays."""


class StopNow(KeyboardInterrupt):
    """A second signal, where the first one was not quick enough."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.signal = name


class Interrupts:
    """Inside `with`, the first signal is only noted in `caught`; a second one ends the loop at once, where asked.

    A dropped line says so twice, once by the kernel and once by the shell: a second SIGHUP means nothing new. Under
    nohup it means nothing at all.
    """

    def __init__(self, second_raises: bool = False, heard: Callable[[], None] | None = None) -> None:
        self.caught = ""
        self.second_raises = second_raises
        self.heard = heard  # called at the first signal: what it waits for can be said at once
        self.old: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in STOPS:
            if is_drop(number) and signal.getsignal(number) == signal.SIG_IGN:  # nohup
                continue
            try:
                self.old[number] = signal.signal(number, self.catch)
            except ValueError:  # not the main thread: whoever started us handles signals
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)

    def catch(self, number: int, frame: FrameType | None) -> None:
        if self.caught and self.second_raises and not is_drop(number):
            raise StopNow(signal.Signals(number).name)
        first, self.caught = not self.caught, signal.Signals(number).name
        if first and self.heard is not None:
            with contextlib.suppress(RuntimeError):  # the signal came while something was being printed
                self.heard()


def is_drop(number: int) -> bool:
    """Whether a signal says that the terminal is gone."""
    return signal.Signals(number).name == "SIGHUP"
