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
from relab.report.parts import Section, Table, local_time, section, table
from relab.report.schedule import stage_label
from relab.runs.grouping import Run, shown

MOST_EVENTS = 60
TRAINING, PARTED = ("collect", "advantage", "update"), "collect"
OTHER = "other (start, compiling, the evaluation before the first row)"
STAGED = ("return/mean", "eval/return_det", "eval/success_det", "return/success", "return/length", "policy/entropy",
          "policy/kl", "value/explained_variance")  # fmt: skip


# ---- Time


def throughput(run: Run) -> Section | None:
    """Two speeds that are often mixed up: of everything the run did, and of collecting and learning alone."""
    columns, seconds = run.history.columns, elapsed(run.history)
    if not math.isfinite(seconds) or seconds <= 0:
        return _logged_speed(run)
    parts = {n: seconds_of(columns, n) for n in parts_of_time(columns)}
    steps, training = int(columns["time/elapsed_s"].steps[-1]), sum(parts.get(name, 0.0) for name in TRAINING)
    lines = [f"end to end (evaluations, checkpoints and logging included): {count(steps / seconds)} steps/s"
             f" ({steps:,} steps in {duration(seconds)})"]  # fmt: skip
    if training:
        lines.append(f"in training (collect and update only): {count(steps / training)} steps/s")
    rest, timed = seconds - sum(parts.values()), dict[str, float]()
    for name, s in parts.items():
        timed |= {name: s} | ({f"of it {n}": seconds_of(columns, n) for n in within(columns)} if name == PARTED else {})
    timed |= {OTHER: rest} if rest > 0 and parts else {}  # a log that times no part has no rest either
    rows = [[name, duration(s), f"{s / seconds:.0%}"] for name, s in timed.items()]
    tables = [table(["part", "time", "share"], rows)] if rows else []
    return section("Throughput", lines + shared_machine(run), tables)


def parts_of_time(columns: Mapping[str, Any]) -> list[str]:
    """All that a row's seconds were spent on, those of companions (probes, schedule) included; training first.

    Rates (updates per second) are no seconds, and what is a part of collecting is in its seconds already.
    """
    names = [n.removeprefix("time/").removesuffix("_s") for n in columns if re.fullmatch(r"time/\w+(?<!_per)_s", n)]
    first = [n for n in (*TRAINING, "eval") if n in names]
    return first + [n for n in names if n not in (*first, "elapsed", *within(columns))]


def within(columns: Mapping[str, Any]) -> list[str]:
    """The parts of collecting that were timed by themselves."""
    whole = f"time/{PARTED}_s" in columns
    return [name for name in ("env", "act", "copy") if whole and f"time/{name}_s" in columns]


def seconds_of(columns: Mapping[str, Any], part: str) -> float:
    return float(np.nansum(columns[f"time/{part}_s"].values))


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
    """Metrics between the moves of a curriculum: a mean over stages would mix different tasks.

    A curriculum and a queue of starts move by themselves: each has a table, or one would cut the other's stages short.
    """
    moves = [e for e in run.history.events if e.get("kind") == "stage" and isinstance(e.get("step"), int)]
    axis = moves[0].get("axis", "agent_steps") if moves else ""
    names = [name for name in STAGED if name in run.history.columns and run.history.axes.get(name, axis) == axis]
    if not moves or not names:
        return None
    plans: dict[str, list[Document]] = {}
    for move in moves:
        plans.setdefault(str(move.get("schedule") or ""), []).append(move)
    tables = [_stages_of(run.history, names, each, plan if len(plans) > 1 else "") for plan, each in plans.items()]
    return section("Stages", ["mean of the rows within the stage, with their number"], tables)


def _stages_of(history: History, names: list[str], moves: list[Document], caption: str) -> Table:
    steps = [int(e["step"]) for e in moves]
    starts, titles = [*steps], [_stage_name(e) for e in moves]
    if steps[0] > 0:
        starts, titles = [0, *starts], ["before", *titles]
    ends = [*starts[1:], math.inf]
    rows = [[t, f"{a:,}", *(_within(history, n, a, b) for n in names)] for t, a, b in zip(titles, starts, ends)]
    return table(["stage", "from step", *names], rows, caption)


def _stage_name(event: Document) -> str:
    if event.get("stage") is not None:
        return stage_label(event)
    return str(next((event[k] for k in ("stage", "name", "to", "level") if k in event), "?"))


def _within(run: History, name: str, start: float, end: float) -> str:
    """A row of relab's own stands at the end of its iteration, a stage at the beginning of its first one: the row of
    the same step is the last of the stage before. What other tools mean by a step of both is not known."""
    column = run.columns[name]
    if run.trained_by_relab:
        inside = ((column.steps > start) | (start == 0)) & (column.steps <= end)
    else:
        inside = (column.steps >= start) & (column.steps < end)
    values = column.values[inside]
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
