"""What did the first and the last rows say? Metrics and what probes measured beside them, by iteration and step."""

from __future__ import annotations

from relab.base.text import number
from relab.record.history import History
from relab.report.parts import Section, section, table
from relab.runs.grouping import Run
from relab.schedules.evaluated import PROBE

SAMPLES = (
    "return/mean", "policy/entropy", "policy/kl", "value/explained_variance", "value/td_loss", "value/teacher_error",
    "policy/tracking_gap", "policy/rho2_mean", "value/w_norm", "optim/grad_norm",
)  # fmt: skip
HEAD_TAIL = 8
MOST_PROBES = 5
Cells = dict[str, dict[int, float]]  # name of a column -> step -> value


def samples(run: Run) -> Section | None:
    cells = metric_cells(run.history) | probe_cells(run.history)
    iterations = counted(run.history)
    steps = sorted({step for column in cells.values() for step in column})
    if not steps:
        return None
    head = ["step", *(["iteration"] if iterations else []), *cells]
    rows = [_row(step, iterations, cells) for step in steps]
    if len(rows) <= 2 * HEAD_TAIL:
        return section("Samples", [], [table(head, rows)])
    return section("Samples", [], [table(head, rows[:HEAD_TAIL], "Head"), table(head, rows[-HEAD_TAIL:], "Tail")])


def _row(step: int, iterations: dict[int, int], cells: Cells) -> list[str]:
    place = [str(iterations.get(step, "-"))] if iterations else []
    return [f"{step:,}", *place, *(number(c[step]) if step in c else "-" for c in cells.values())]


def metric_cells(history: History) -> Cells:
    columns = {name: history.columns[name] for name in SAMPLES if name in history.columns}
    if not columns:  # a foreign run that names nothing as relab does
        columns = dict(list(history.columns.items())[:8])
    return {name: dict(zip(c.steps.tolist(), c.values.tolist())) for name, c in columns.items()}


def probe_cells(history: History) -> Cells:
    """What each probe calls its value; a multi-evaluation has a section of its own."""
    cells: Cells = {}
    for row in history.probes:
        name, step, value = row.get("probe"), row.get("step"), row.get("value")
        is_number = type(value) in (int, float)
        if isinstance(name, str) and not name.startswith(PROBE) and isinstance(step, int) and is_number:
            cells.setdefault(f"{name}: {row.get('metric') or 'value'}", {})[step] = float(value or 0.0)
    return dict(list(cells.items())[:MOST_PROBES])


def counted(history: History) -> dict[int, int]:
    """step -> iteration, from 1; empty where the log does not say, or counts by nothing else."""
    column = history.columns.get("data/iteration")
    same = column is None or history.axes.get("data/iteration") == "iteration"
    return {} if column is None or same else dict(zip(column.steps.tolist(), column.values.astype(int).tolist()))
