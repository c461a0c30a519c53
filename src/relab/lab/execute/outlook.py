"""How does an entry stand? Its state, how far it is and how long it will take, why it failed; nothing is written."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from relab.base import limits, masks, processes
from relab.base.documents import Document
from relab.base.jsonl import RecordError, decode
from relab.config.yaml_io import YamlError
from relab.lab.execute.entry import Entry
from relab.lab.execute.queue import Item, Queue, age_s
from relab.record.run_folder import read_config

TAIL = 4096  # bytes of a log that are looked at
PACE = 20  # entries


@dataclass(frozen=True)
class Progress:
    """How far a run is that relab trains."""

    step: int
    total_steps: int
    eta_s: float


@dataclass(frozen=True)
class Outlook:
    """All that is known about an entry."""

    item: Item
    age_s: float
    log: Path
    entry: Entry | None  # None where its file cannot be read
    problem: str | None = None
    result: Document | None = None  # how the last try ended that did, as its file says it
    without_worker: bool = False  # it runs, or did, and its worker is gone
    progress: Progress | None = None

    def to_json(self) -> Document:
        name, entry = self.item.name, self.entry
        facts: Document = {
            "id": name.id, "state": self.item.state, "priority": name.priority, "tries": name.tries,
            "age_s": self.age_s, "worker": name.worker or None, "log": str(self.log), "problem": self.problem,
        }  # fmt: skip
        if entry is None:
            return facts | {"words": None, "relab": None, "shown": ""}
        facts |= entry.to_json() | {"words": list(entry.words), "shown": entry.shown}
        if self.item.state == "running":
            facts |= {"without_worker": self.without_worker, **(asdict(self.progress) if self.progress else {})}
        return facts | {"result": self.result}


def describe(queue: Queue, item: Item) -> Outlook:
    age, log = age_s(item.name), queue.log(item.id)
    try:
        entry = queue.read(item)
    except (RecordError, OSError) as error:
        return Outlook(item, age, log, None, str(error))
    ending = result(queue, item)
    problem = why(queue, item, ending) if item.state == "failed" else None
    if item.state != "running":
        return Outlook(item, age, log, entry, problem, ending)
    alone = processes.is_alive(item.name.worker) is False
    return Outlook(item, age, log, entry, problem, ending, alone, progress(entry.run))


def result(queue: Queue, item: Item) -> Document | None:
    """How the last try ended that did."""
    for tries in range(item.name.tries, -1, -1):
        with contextlib.suppress(RecordError, OSError):
            if ending := queue.result(item.name, tries):
                return ending
    return None


def time_left(queue: Queue, counts: Mapping[str, int]) -> float | None:
    """Seconds for what waits, at the pace of the last entries; None where nothing runs or none has ended."""
    last = [queue.result(name).get("seconds") for name in queue.names("done")[-PACE:]]
    known = [float(seconds) for seconds in last if isinstance(seconds, (int, float))]
    if not known or not counts["running"] or not counts["waiting"]:
        return None
    return statistics.median(known) * counts["waiting"] / counts["running"]


def progress(run: str | None) -> Progress | None:
    """None where the run's record does not say."""
    if run is None:
        return None
    try:
        total = read_config(run).get("total_steps")
        row = _last_row(Path(run) / "timing.jsonl")
    except (RecordError, YamlError, OSError, ValueError):
        return None
    step, sps = row.get("step"), row.get("time/sps_mean")
    if type(step) is not int or type(total) is not int or not isinstance(sps, (int, float)):
        return None
    return Progress(step, total, max(total - step, 0) / max(float(sps), 1e-9))


def _last_row(path: Path) -> Document:
    """The last whole row of a file that is being written; empty where there is none yet."""
    lines = limits.read_end(path, TAIL).split(b"\n")[:-1]
    row = decode(lines[-1]) if lines else None
    return row if isinstance(row, dict) else {}


def why(queue: Queue, item: Item, ending: Document | None) -> str:
    """Why it failed, in one line."""
    ending = ending or {}
    if ending.get("problem"):
        return str(ending["problem"])
    code = ending.get("code")
    how = "nobody saw it end" if code is None else f"killed by signal {-code}" if code < 0 else f"exit code {code}"
    return f"{how}; {last_words(queue.log(item.id))}"


def last_words(log: Path) -> str:
    try:
        lines = limits.read_end(log, TAIL).decode(errors="replace").strip().splitlines()
    except OSError:
        lines = []
    return f"its last words: {masks.mask(lines[-1].strip())[:200]}" if lines else "it printed nothing"
