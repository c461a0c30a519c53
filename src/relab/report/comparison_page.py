"""How does a comparison stand on a report's page? A section per task, the same table and lines as on the screen."""

from __future__ import annotations

from relab.comparison import render, tables
from relab.comparison.build import Result
from relab.report.parts import Section, section, table


def sections(result: Result) -> list[Section]:
    """As report.sections takes them; empty where nothing can be compared."""
    parts = []
    for task in result.tasks:
        head, rows = tables.cells(task)
        lines = [*render.details(task), *(f"note: {note}" for note in dict.fromkeys(task.notes))]
        lines += render.over_all(result) if task is result.tasks[-1] else []
        parts.append(section("Comparison", lines, [table(head, rows, tables.caption(task))]))
    return parts
