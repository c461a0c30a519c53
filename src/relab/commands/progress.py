"""How far is it? One line that is rewritten on the terminal, once something takes longer than two seconds."""

from __future__ import annotations

import shutil
import sys
import time
from types import TracebackType

from relab.places import printable

FIRST_S, EVERY_S = 2.0, 0.2


class Progress:
    """Call it with (done, total, name); silent where stderr is no terminal. The line is gone when the block ends."""

    def __init__(self, word: str):
        self.word, self.begun = word, time.monotonic()
        self.last, self.shown = 0.0, False
        self.terminal = sys.stderr.isatty()

    def __call__(self, done: int, total: int, name: str) -> None:
        now = time.monotonic()
        if not self.terminal or now - self.begun < FIRST_S or now - self.last < EVERY_S:
            return
        self.last, self.shown = now, True
        line = f"{self.word} {done} of {total}: {name}"
        width = max(shutil.get_terminal_size().columns - 1, 20)
        plain = printable(line)  # names come from strangers' folders
        print(f"\r\x1b[K{plain[:width]}", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        if self.shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
