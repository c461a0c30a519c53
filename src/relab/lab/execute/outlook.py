"""How does an entry stand? Its state, how far it is and how long it will take, why it failed; nothing is written."""

from __future__ import annotations

import contextlib
import statistics
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base import limits, masks, processes
from relab.base.jsonl import RecordError, decode
from relab.config.yaml_io import YamlError
from relab.lab.execute.queue import Item, Queue, age_s
from relab.record.run_folder import read_config

TAIL = 4096  # bytes of a log that are looked at
PACE = 20  # entries


def describe(queue: Queue, item: Item) -> dict[str, Any]:
    """All that is known about an entry, as plain data."""
    name = item.name
    facts: dict[str, Any] = {
        "id": name.id, "state": item.state, "priority": name.priority, "tries": name.tries, "age_s": age_s(name),
        "worker": name.worker or None, "log": str(queue.log(name.id)), "problem": None,
    }  # fmt: skip
    try:
        entry = queue.read(item)
    except (RecordError, OSError) as error:
        return facts | {"words": None, "relab": None, "shown": "", "problem": str(error)}
    facts |= entry.to_json() | {"words": list(entry.words), "shown": entry.shown}
    if item.state == "running":
        facts |= {"without_worker": processes.is_alive(name.worker) is False, **(progress(entry.run) or {})}
    facts["result"] = result(queue, item)
    if item.state == "failed":
        facts["problem"] = why(queue, item, facts["result"])
    return facts


def result(queue: Queue, item: Item) -> dict[str, Any] | None:
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


def progress(run: str | None) -> dict[str, Any] | None:
    """Step, planned steps and seconds left of a run that relab trains; None where its record does not say."""
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
    return {"step": step, "total_steps": total, "eta_s": max(total - step, 0) / max(float(sps), 1e-9)}


def _last_row(path: Path) -> dict[str, Any]:
    """The last whole row of a file that is being written; empty where there is none yet."""
    lines = limits.read_end(path, TAIL).split(b"\n")[:-1]
    row = decode(lines[-1]) if lines else None
    return row if isinstance(row, dict) else {}


def why(queue: Queue, item: Item, ending: dict[str, Any] | None) -> str:
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
