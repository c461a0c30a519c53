"""What happened when, and what is left of it? Throughput, stages, events, artefacts, what could not be read."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.enclosed import listed
from relab.base.text import count, duration, number
from relab.health.rule import Missing
from relab.health.rules.design import busy_machine
from relab.health.view import View
from relab.record.clock import elapsed
from relab.record.history import History
from relab.report.parts import Section, local_time, section, table
from relab.runs.grouping import Run, shown

MOST_EVENTS = 60
STAGED = ("return/mean", "eval/return_det", "eval/success_det", "return/success", "return/length", "policy/entropy",
          "policy/kl", "value/explained_variance")  # fmt: skip


# ---- Time


def throughput(run: Run) -> Section | None:
    """Two speeds that are often mixed up: of everything the run did, and of collecting and learning alone."""
    columns, seconds = run.history.columns, elapsed(run.history)
    if not math.isfinite(seconds) or seconds <= 0:
        return _logged_speed(run)
    parts = {n: float(np.nansum(columns[f"time/{n}_s"].values)) for n in parts_of_time(columns)}
    steps, training = int(columns["time/elapsed_s"].steps[-1]), parts.get("collect", 0) + parts.get("update", 0)
    lines = [f"end to end (evaluations, checkpoints and logging included): {count(steps / seconds)} steps/s"
             f" ({steps:,} steps in {duration(seconds)})"]  # fmt: skip
    if training:
        lines.append(f"in training (collect and update only): {count(steps / training)} steps/s")
    rest = seconds - sum(parts.values())
    rows = [[name, duration(s), f"{s / seconds:.0%}"] for name, s in parts.items()]
    rows += [["other (start, compiling)", duration(rest), f"{rest / seconds:.0%}"]] if rest > 0 else []
    tables = [table(["part", "time", "share"], rows)] if parts else []  # a log that times no part has no rest either
    return section("Throughput", lines + shared_machine(run), tables)


def parts_of_time(columns: Mapping[str, Any]) -> list[str]:
    """All that a row's seconds were spent on, those of companions (probes, schedule) included; training first."""
    names = [n.removeprefix("time/").removesuffix("_s") for n in columns if re.fullmatch(r"time/\w+_s", n)]
    first = [n for n in ("collect", "update", "eval") if n in names]
    return first + [n for n in names if n not in (*first, "elapsed")]


def shared_machine(run: Run) -> list[str]:
    """A speed from a busy machine is marked as one."""
    try:
        finding = busy_machine(View(run.history, run.name))
    except Missing:  # nobody wrote down how busy it was
        return []
    return [finding.message] if finding is not None else []


def _logged_speed(run: Run) -> Section | None:
    """What the tool logged about its speed, where it kept no clock."""
    column = run.history.columns.get("time/sps")
    if column is None or not np.isfinite(column.values).any():
        return None
    good = column.values[np.isfinite(column.values)]
    said = f"time/sps as logged: last {count(good[-1])}, median {count(float(np.median(good)))} steps/s"
    return section("Throughput", [said, "no clock was kept: end to end is not known", *shared_machine(run)])


# ---- Stages, events


def stages(run: Run) -> Section | None:
    """Metrics between the moves of a curriculum: a mean over stages would mix different tasks."""
    moves = [e for e in run.history.events if e.get("kind") == "stage" and isinstance(e.get("step"), int)]
    axis = moves[0].get("axis", "agent_steps") if moves else ""
    names = [name for name in STAGED if name in run.history.columns and run.history.axes.get(name, axis) == axis]
    if not moves or not names:
        return None
    steps = [int(e["step"]) for e in moves]
    starts, titles = [*steps], [_stage_name(e) for e in moves]
    if steps[0] > 0:
        starts, titles = [0, *starts], ["before", *titles]
    ends = [*starts[1:], math.inf]
    rows = [[t, f"{a:,}", *(_within(run.history, n, a, b) for n in names)] for t, a, b in zip(titles, starts, ends)]
    note = "mean of the rows within the stage, with their number"
    return section("Stages", [note], [table(["stage", "from step", *names], rows)])


def _stage_name(event: Document) -> str:
    return str(next((event[k] for k in ("stage", "name", "to", "level") if k in event), "?"))


def _within(run: History, name: str, start: float, end: float) -> str:
    column = run.columns[name]
    values = column.values[(column.steps >= start) & (column.steps < end)]
    good = values[np.isfinite(values)]
    return f"{number(float(good.mean()))} ({len(good)})" if len(good) else "-"


def events(run: Run) -> Section | None:
    kept = [e for e in run.history.events if e.get("kind") != "checkpoint"]
    gone = len(run.history.events) - len(kept)
    lines = [f"{gone} checkpoints not listed"] if gone else []
    if len(kept) > MOST_EVENTS:
        lines.append(f"the last {MOST_EVENTS} of {len(kept)}")
    rows = [
        [
            f"{s:,}" if isinstance(s := e.get("step"), int) else shown(s),
            str(e.get("kind")),
            local_time(e.get("time") or ""),
            _event_text(e),
        ]
        for e in kept[-MOST_EVENTS:]
    ]
    return section("Events", lines, [table(["step", "kind", "local time", "what"], rows)]) if rows or lines else None


def _event_text(event: Document) -> str:
    """What an event holds, without what is not known; a mean over one episode says that it has no interval."""
    known = {k: v for k, v in event.items() if v is not None and v == v}
    rest = {k: v for k, v in known.items() if k not in ("step", "axis", "kind", "time", "pid")}
    parts = [f"{k}: {_event_text(v) if isinstance(v, dict) else v}" for k, v in rest.items()]
    return ", ".join(parts + ["no interval"] * ("low" in event and "low" not in known))


# ---- Files


def artefacts(run: Run) -> Section | None:
    """Files of the run folder, relative to it; of a foreign run only those it was read from. Links are not followed."""
    folder = run.history.folder
    if run.history.source != "relab":
        rows = [[p.name, _size(p)] for p in run.files if p.is_file()]
        return section("Artefacts", [f"read from ({run.history.source}):"], [table(["file", "size"], rows)])
    files = sorted(path for name in ("", "checkpoints", "media") for path in listed(folder, name))
    kept = [p for p in files if p.name not in ("report.md", "report.html")]  # made from the rest, as this page is
    rows = [[p.relative_to(folder).as_posix() + ("/" if p.is_dir() else ""), _size(p)] for p in kept]
    return section("Artefacts", [], [table(["file", "size"], rows)]) if rows else None


def _size(path: Path) -> str:
    inside = [p for p in path.rglob("*") if p.is_file() and not p.is_symlink()] if path.is_dir() else [path]
    return f"{count(sum(p.stat().st_size for p in inside))}B"


def problems(run: Run) -> Section | None:
    rows = [[p.file, shown(p.line), p.message] for p in run.history.problems]
    read = all(p.read for p in run.history.problems)
    title, head = ("How the log was read", "remark") if read else ("What could not be read", "problem")
    return section(title, [], [table(["file", "line", head], rows)]) if rows else None
