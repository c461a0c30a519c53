"""How are runs shown as lines? Tables for `relab runs`; no control characters from a folder reach the terminal."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

from relab.base.places import cut_short
from relab.base.places import printable as clean
from relab.base.text import age as age
from relab.base.text import cut
from relab.base.text import size as size
from relab.record.bounds import with_error
from relab.runs.listing import Listed, ListedGroup, ListedRun

NAME_WIDTH, TAGS_WIDTH = 44, 40
HEAD = ("name", "env", "algo", "seed", "state", "outcome", "steps", "age", "size", "tags")
MARKS = {"unstable": "unstable", "lost": "lost", "fell": "fell", "not": "did not learn", "worse": "worse than random"}
RIGHT = {
    "seed",
    "outcome",
    "steps",
    "age",
    "size",
    "runs",
    "n",
    "mean",
    "low",
    "high",
    "total",
    "checkpoints",
    "can go",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns side by side; one that is empty throughout is left out."""
    used = [i for i in range(len(head)) if any(row[i] for row in rows)]
    widths = {i: max(len(head[i]), *(len(row[i]) for row in rows)) for i in used}
    lines = []
    for row in (head, *rows):
        cells = [row[i].rjust(widths[i]) if head[i] in RIGHT else row[i].ljust(widths[i]) for i in used]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def runs(listed: Listed) -> str:
    now = time.time()
    return table(HEAD, [[clean(cell) for cell in _cells(row, now)] for row in listed.rows])


def _cells(run: ListedRun, now: float) -> list[str]:
    star = "* " if run.star else ""
    tags = " ".join([*run.tags, *([f'"{run.note}"'] if run.note else [])])
    copies = f" (+{len(run.copies)} cop{'ies' if len(run.copies) > 1 else 'y'})" if run.copies else ""
    return [cut(star + run.name, NAME_WIDTH) + copies, cut(run.env, 24), cut(run.algo, 12), cell(run.seed),
            run.state, outcome(run), steps(run), age(now - run.sign), size(run.size),
            cut(tags, TAGS_WIDTH)]  # fmt: skip


def steps(run: ListedRun) -> str:
    """How far it came; of a run that did not come to its end also what share of its way that is."""
    if run.steps is None:
        return ""
    part = run.state != "finished" and cut_short(run.steps, run.planned)
    return f"{run.steps:,}" + (f" ({run.steps / run.planned:.0%})" if part and run.planned else "")


def outcome(run: ListedRun) -> str:
    """The last evaluation's mean with its standard error; a return of training says what it is."""
    if not run.metric:
        return ""
    if run.outcome is None:
        return "nan"
    error = "" if run.error is None else with_error(run.outcome, run.error, (run.low, run.high), num).replace("± ", "±")
    trained = "" if run.metric.startswith("eval/") else " (train)"
    return " ".join([num(run.outcome) + error + trained, *([MARKS[run.verdict]] if run.verdict in MARKS else [])])


def groups(grouped: Sequence[ListedGroup]) -> str:
    keys = list(grouped[0].values) if grouped else []
    head = [*keys, "runs", "finished", "n", "mean", "low", "high", "best"]
    rows = []
    for g in grouped:
        numbers = ["" if x is None else num(x) for x in (g.mean, g.low, g.high)]
        best = cut(g.best or "", NAME_WIDTH) + (f" ({', '.join(g.metrics)} mixed)" if len(g.metrics) > 1 else "")
        cells = [*(cell(g.values[k]) for k in keys), str(g.runs), str(g.finished), str(g.n), *numbers, best]
        rows.append([clean(each) for each in cells])
    return table(head, rows)


def cell(value: Any) -> str:
    if value is None:
        return "-"
    return num(value) if isinstance(value, float) else str(value)


def num(value: float) -> str:
    """Four digits that count, and no exponent where it can be helped."""
    if not math.isfinite(value) or value == 0:
        return f"{value:g}"
    return f"{value:.1f}" if 100 <= abs(value) < 1e6 else f"{value:.3g}"
