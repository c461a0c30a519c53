"""How far is it? One line that is rewritten on the terminal, a line every few seconds in a pipe; always on stderr."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from types import TracebackType

from relab.base import limits, terminal
from relab.base.places import printable

FIRST_S, EVERY_S = 2.0, 0.2  # on a terminal: after this long the line appears, then it changes this often
PIPED_S = 5.0  # elsewhere: seconds between lines
MB = 1_000_000


class Progress:
    """Call it with (done, total, name): one line on a terminal, gone when the block ends; else one every few seconds.

    Inside the block, files that are read a part at a time are told as well.
    """

    def __init__(self, word: str):
        self.word, self.begun = word, time.monotonic()
        self.last, self.shown = self.begun, False
        self.terminal = sys.stderr.isatty()
        self.watch = contextlib.ExitStack()

    def __call__(self, done: int, total: int, name: str) -> None:
        if self._due():
            self._show(f"{self.word} {done} of {total}: {name}")

    def file(self, done: int, size: int, path: str) -> None:
        """How far a file is; whole megabytes, for a small one is over before it can be told."""
        if self._due():
            self._show(f"reading {os.path.basename(path)}: {done // MB:,} of {size // MB:,} MB")

    def _due(self) -> bool:
        now = time.monotonic()
        wait = PIPED_S if not self.terminal else EVERY_S if self.shown else FIRST_S
        if now - self.last < wait:
            return False
        self.last = now
        return True

    def _show(self, line: str) -> None:
        plain = printable(line)  # names come from strangers' folders
        if not self.terminal:
            print(f"{plain} ({time.monotonic() - self.begun:.0f} s)", file=sys.stderr, flush=True)
            return
        self.shown = True
        width = max(shutil.get_terminal_size().columns - 1, 20)
        self._draw(plain[:width])

    def _draw(self, line: str) -> None:
        with terminal.as_is():
            print(f"\r\x1b[K{line}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        self.watch.enter_context(limits.watched(self.file))
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.watch.close()
        if self.shown:
            self._draw("")
