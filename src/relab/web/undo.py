"""How is the last change taken back? Each action of a page leaves the action that undoes it, the newest first."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

MOST = 50


@dataclass(frozen=True)
class Step:
    """What was done, in words, and what undoes it."""

    what: str
    back: Callable[[], None]


class Undo:
    """The changes that this server made since it was started."""

    def __init__(self) -> None:
        self._steps: deque[Step] = deque(maxlen=MOST)
        self._lock = threading.Lock()

    def did(self, what: str, back: Callable[[], None]) -> None:
        with self._lock:
            self._steps.append(Step(what, back))

    def take_back(self) -> str:
        """Undo the last one -> what it was; empty where there is none."""
        with self._lock:
            step = self._steps.pop() if self._steps else None
        if step is None:
            return ""
        step.back()
        return step.what
