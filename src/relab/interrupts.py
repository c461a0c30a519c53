"""Has someone asked this process to stop? SIGINT and SIGTERM as a word that a loop looks at when it can stop."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any


class Interrupts:
    """Inside `with`, the first signal is only noted in `caught`; a second one ends the loop at once, where asked."""

    def __init__(self, second_raises: bool = False) -> None:
        self.caught = ""
        self.second_raises = second_raises
        self.old: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.old[number] = signal.signal(number, self.catch)
            except ValueError:  # not the main thread: whoever started us handles signals
                break
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self.old.items():
            signal.signal(number, handler)

    def catch(self, number: int, frame: FrameType | None) -> None:
        if self.caught and self.second_raises:
            raise KeyboardInterrupt
        self.caught = signal.Signals(number).name
