"""How does a process die at a chosen call that touches the disk? Before the call, or halfway through what it writes.

Between two such calls the disk does not change, so that the points cover every state that a kill can leave behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relab.train import checkpoint

TOUCHING = ("write", "fsync", "rename", "replace", "ftruncate", "mkdir", "unlink", "rmdir")
TEARABLE = (": write", ": save_file", ": write_bytes")  # the kernel may have done half of these
# Whose call is it? The first of these that is found below it on the stack, innermost first.
PLACES = ("remove", "clean", "prune", "point", "save", "truncate", "_repair", "_write_meta", "create", "append_event",
          "append_metrics", "append_eval", "append_probe", "append_timing")  # fmt: skip
REAL_WRITE = os.write


class Deaths:
    """Counts the calls that touch the disk, and dies at the n-th (of a kind); says in `report` where that was."""

    def __init__(self, report: Path, at: int | None = None, kind: str | None = None, torn: bool = False) -> None:
        self.report, self.at, self.kind, self.torn = report, at, kind, torn
        self.calls: list[str] = []

    def install(self) -> Deaths:
        for name in TOUCHING:
            setattr(os, name, self.wrap(name, getattr(os, name)))
        checkpoint.save_file = self.wrap("save_file", checkpoint.save_file)
        Path.write_bytes = self.wrap("write_bytes", Path.write_bytes)  # type: ignore[method-assign]
        return self

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*given: Any, **more: Any) -> Any:
            label = f"{place()}: {name}"
            self.calls.append(label)
            seen = len(self.calls) if self.kind is None else self.calls.count(self.kind)
            if seen == self.at and self.kind in (None, label):
                self.die(name, call, given, more)
            return call(*given, **more)

        return counted

    def die(self, name: str, call: Callable[..., Any], given: Any, more: Any) -> None:
        torn = self.torn and tear(name, call, given, more)
        self.tell({"place": self.calls[-1], "torn": torn, "in_resume": in_resume()})
        os.kill(os.getpid(), signal.SIGKILL)

    def tell(self, what: Any) -> None:
        fd = os.open(self.report, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        REAL_WRITE(fd, json.dumps(what).encode())
        os.close(fd)


def tear(name: str, call: Callable[..., Any], given: Any, more: Any) -> bool:
    """Do half of what a write would do; False for calls that the kernel does as a whole."""
    if name == "write":
        fd, data = given
        call(fd, data[: len(data) // 2])
    elif name in ("save_file", "write_bytes"):
        call(*given, **more)
        path = given[1] if name == "save_file" else given[0]
        os.truncate(path, os.path.getsize(path) // 2)
    else:
        return False
    return True


def frames() -> list[str]:
    """Functions on the stack, innermost first."""
    found, frame = [], sys._getframe(1)
    while frame is not None:
        found.append(frame.f_code.co_name)
        frame = frame.f_back  # type: ignore[assignment]
    return found


def place() -> str:
    return next((name for name in frames() if name in PLACES), "other")


def in_resume() -> bool:
    """Before the resumed run goes on."""
    found = frames()
    return "resume" in found and "loop" not in found
