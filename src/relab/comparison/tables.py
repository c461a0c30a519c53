"""How does a comparison get into a paper, or a program? Markdown, LaTeX, JSON; all that came from a log is escaped."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from relab.base.documents import Document
from relab.comparison.build import Result
from relab.comparison.numbers import LEAST
from relab.comparison.render import (
    UNITS,
    clean,
    has_interval,
    mean_text,
    median,
    share,
    step_text,
)
from relab.comparison.settings_text import KEYS, others, side_by_side
from relab.comparison.task import Task
from relab.runs.naming import key_name


def cells(task: Task) -> tuple[list[str], list[list[str]]]:
    keys = task.keys[:KEYS]
    until = f" (up to {task.step:,.0f})" if task.beyond and task.measure.at != "first_step_reaching" else ""
    level = f"{UNITS.get(task.axis or '', '')}steps to {task.level[0]:g}{until}" if task.level else ""
    interval = " [95 %]" if has_interval(task) else ""
    head = ["variant", *map(key_name, keys), "seeds", task.measure.words + interval,
            f"P(better than {task.reference.label})", *([level] if level else [])]  # fmt: skip
    settings = list(zip(*(side_by_side([row.settings[k] for row in task.variants]) for k in keys)))
    rows = []
    for place, row in enumerate(task.variants):
        threshold = row.threshold
        times = f"{median(threshold)} ({threshold.reached}/{threshold.n})" if threshold else "-"
        numbers = [str(row.mean.n), mean_text(task, row), share(row), *([times] if level else [])]
        rows.append([row.label, *(settings[place] if keys else ()), *numbers])
    return head, rows


def caption(task: Task) -> str:
    few = "" if all(row.mean.n >= LEAST for row in task.variants) else f" No interval under {LEAST} seeds."
    where = step_text(task)
    declared = [p for p in task.pairs if p.declared]
    said = " ".join(p.answer.text for p in declared) or "Exploratory: no comparison was declared beforehand."
    said += f" Not in the table, but different: {others(task.keys, KEYS)}." if len(task.keys) > KEYS else ""
    return f"{task.env}, {task.measure.words}{where}; mean over seeds, t interval widened for skewness.{few} {said}"


def markdown(result: Result) -> str:
    lines: list[str] = []
    for task in result.tasks:
        head, rows = cells(task)
        lines += [md(caption(task)), "", _md_row(head), "|" + " --- |" * len(head), *map(_md_row, rows), ""]
    lines += [md(f"Not compared: {label}: {reason}.") for label, reason in result.apart]
    return "\n".join(lines).rstrip() + "\n"


def _md_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(md(cell) for cell in cells) + " |"


def md(cell: str) -> str:
    """One line, and nothing in it that Markdown or HTML would read as markup."""
    return re.sub(r"([\\`*_{}<>|#\[\]~])", r"\\\1", clean(cell.replace("\n", " ")))


def latex(result: Result) -> str:
    """A table for each task, with booktabs."""
    lines: list[str] = []
    for task in result.tasks:
        head, rows = cells(task)
        lines += [r"\begin{table}", r"\centering", rf"\caption{{{tex(caption(task))}}}",
                  rf"\begin{{tabular}}{{l{'r' * (len(head) - 1)}}}", r"\toprule",
                  " & ".join(tex(h) for h in head) + r" \\", r"\midrule",
                  *(" & ".join(tex(c) for c in row) + r" \\" for row in rows),
                  r"\bottomrule", r"\end{tabular}", r"\end{table}", ""]  # fmt: skip
    return "\n".join(lines).rstrip() + "\n"


TEX = {"\\": r"\textbackslash{}", "&": r"\&", "%": r"\%", "$": r"\$", "#": r"\#", "_": r"\_", "{": r"\{", "}": r"\}",
       "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}",
       "…": r"\ldots{}"}  # fmt: skip


def tex(cell: str) -> str:
    return "".join(TEX.get(c, c) for c in clean(cell.replace("\n", " ")))


def data(result: Result) -> Document:
    """All of it as plain values."""
    return {
        "schema": 1,
        "runs": result.runs,
        "tasks": [{
            "environment": t.env, "metric": t.measure.metric, "at": t.measure.at, "last": t.measure.last,
            "level": t.level[0] if t.level else None, "direction": t.measure.direction, "axis": t.axis,
            "step": t.step, "cut": t.beyond,
            "evaluated": t.evaluated, "reference": {"variant": t.reference.label, "why": t.reference.why},
            "ceiling": t.ceiling if math.isfinite(t.ceiling) else None, "at_ceiling": t.at_ceiling,
            "variants": [each.to_dict() for each in t.variants],
            "comparisons": [p.to_dict() for p in t.pairs], "parts": t.parts, "notes": t.notes,
        } for t in result.tasks],
        "profile": [each.to_dict() for each in result.profile],
        "leading": None if result.leads is None else [lead._asdict() for lead in result.leads],
        "not_compared": [{"group": label, "why": reason} for label, reason in result.apart],
        "facts": {name: [{"value": value, "groups": labels} for value, labels in values.items()]
                  for name, values in result.facts.items()},
        "warnings": result.warnings,
        "notes": [*result.notes, *result.profile_notes],
        "not_read": result.unread,
    }  # fmt: skip
