"""Where does the time of an iteration go? torch's profiler over some iterations, on request (`relab train --profile`).

Written into the run's folder `profile/`: trace.json for chrome://tracing or ui.perfetto.dev, and operations.txt with
the operations that took most. Kernels of Numba show as what is left of their part (collect, update). A traced iteration
is slower and learns the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from relab.base.enclosed import subfolder
from relab.train.contract import Stopwatch

FOLDER, TRACE, TABLE = "profile", "trace.json", "operations.txt"
LINES = 40  # of the table
QUIET = ("KINETO_LOG_LEVEL", "99")  # torch's profiler says when it starts and stops, in the middle of the run's lines


class NamedParts(Stopwatch):
    """A stopwatch whose parts stand in the trace under their names."""

    @contextmanager
    def __call__(self, part: str) -> Iterator[None]:
        from torch.profiler import record_function

        with super().__call__(part), record_function(part):
            yield


class Profile:
    """The first `iterations` iterations after one in which something was learned."""

    def __init__(self, iterations: int = 0):
        self.left = iterations
        self.profiler: Any = None
        self.seconds = 0.0  # that tracing itself took, since they were last asked for

    def spent(self) -> dict[str, float]:
        """For timing.jsonl; nothing where nothing was traced."""
        seconds, self.seconds = self.seconds, 0.0
        return {"profile_s": seconds} if seconds else {}

    def watch(self, updates: int) -> Stopwatch:
        """The stopwatch of the next iteration; `updates`: how many there were before it."""
        if self.left and updates and self.profiler is None:
            began = time.perf_counter()
            os.environ.setdefault(*QUIET)
            from torch.profiler import ProfilerActivity, profile

            self.profiler = profile(activities=[ProfilerActivity.CPU])
            self.profiler.__enter__()
            self.seconds += time.perf_counter() - began
        return NamedParts() if self.profiler is not None else Stopwatch()

    def note(self, folder: Path) -> Path | None:
        """After an iteration: where the files lie, once all of them were traced."""
        if self.profiler is None:
            return None
        self.left -= 1
        return None if self.left else self.finish(folder)

    def finish(self, folder: Path) -> Path | None:
        """Write what was traced; None where nothing was."""
        if self.profiler is None:
            return None
        profiler, self.profiler, self.left, began = self.profiler, None, 0, time.perf_counter()
        profiler.__exit__(None, None, None)
        place = subfolder(folder, FOLDER)
        profiler.export_chrome_trace(str(place / TRACE))
        table = profiler.key_averages().table(sort_by="self_cpu_time_total", row_limit=LINES)
        (place / TABLE).write_text(table + "\n", encoding="utf-8")
        self.seconds += time.perf_counter() - began
        return place
