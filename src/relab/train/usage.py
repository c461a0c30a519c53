"""What does a run use of its machine, and on what does it spend its time? Cores, memory, seconds by part.

Speed while training (acting and learning alone) is kept apart from speed end to end, which evaluations, checkpoints and
the record slow down. A log that gives one of them for the other is off by the share of everything else.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from relab.base.text import pace
from relab.train import device as gpu

TRAINING = ("collect_s", "advantage_s", "update_s")
WITHIN = ("env_s", "act_s", "copy_s")  # parts of collect_s, where an algorithm measures them
WORDS = {
    "env_s": "environment", "act_s": "acting", "copy_s": "copying", "collect_s": "collecting", "update_s": "learning",
    "advantage_s": "advantages", "eval_s": "evaluation", "save_s": "checkpoints", "log_s": "record",
    "profile_s": "profiling", "start_s": "looking at the start",
}  # fmt: skip


def processor_seconds() -> float:
    times = os.times()
    return times.user + times.system


def memory_mb() -> tuple[float, float]:
    """(most that this process had, all that the machine has)"""
    room = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, room


@dataclass
class Usage:
    """Sums over a session, for its last line."""

    spent: dict[str, float] = field(default_factory=dict)
    steps: int = 0
    unit: str = "steps"  # what it counts
    began: float = field(default_factory=time.perf_counter)
    cpu: float = field(default_factory=processor_seconds)
    last: tuple[float, float] = field(default_factory=lambda: (time.perf_counter(), processor_seconds()))

    @contextmanager
    def timed(self, part: str) -> Iterator[None]:
        """Seconds outside of any iteration: the evaluation before the first one, and the last; a look at the start."""
        began = time.perf_counter()
        try:
            yield
        finally:
            self.spent[part] = self.spent.get(part, 0.0) + time.perf_counter() - began

    def row(self, steps: int, spent: Mapping[str, float], within: Mapping[str, float], device: str) -> dict[str, float]:
        """What timing.jsonl says of one iteration, beside the seconds of its parts."""
        self.steps += steps
        for name, seconds in (*spent.items(), *within.items()):
            self.spent[name] = self.spent.get(name, 0.0) + seconds
        now, cpu = time.perf_counter(), processor_seconds()
        cores, self.last = (cpu - self.last[1]) / max(now - self.last[0], 1e-9), (now, cpu)
        training, (rss, room) = sum(spent.get(name, 0.0) for name in TRAINING), memory_mb()
        row = {f"time/{name}": seconds for name, seconds in within.items()}
        row |= {"time/sps_train": steps / max(training, 1e-9), "time/cores": cores, "time/rss_mb": rss}
        return row | {"time/memory_share": rss / room, **gpu.memory_mb(device)}

    def line(self) -> str:
        """Where the session's time went, in a sentence; empty where nothing was trained."""
        seconds = time.perf_counter() - self.began
        if not self.steps or not self.spent:
            return ""
        parts = {k: x for k, x in self.spent.items() if k != "collect_s" or not set(WITHIN) & set(self.spent)}
        shares = sorted(((x / seconds, WORDS.get(k, k.removesuffix("_s"))) for k, x in parts.items()), reverse=True)
        rest = 1 - sum(share for share, _ in shares)
        named = [*shares, (rest, "other")]
        where = ", ".join(f"{word} {share:.0%}" for share, word in named if share >= 0.01)
        training = sum(self.spent.get(name, 0.0) for name in TRAINING)
        cores = (processor_seconds() - self.cpu) / max(seconds, 1e-9)
        speeds = (self.steps / max(took, 1e-9) for took in (training, seconds))
        paces = "{} while training, {} in all".format(*(pace(speed, self.unit) for speed in speeds))
        return f"time: {where}; {cores:.1f} cores, {memory_mb()[0]:.0f} MB; {paces}"
