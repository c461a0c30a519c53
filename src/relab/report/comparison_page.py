"""How does a comparison stand on a report's page? A section per task, the same table and lines as on the screen."""

from __future__ import annotations

from typing import Any

from relab.comparison import render, tables
from relab.comparison.build import Result
from relab.report.parts import section, table


def sections(result: Result) -> list[dict[str, Any]]:
    """Plain data as report.sections takes it; empty where nothing can be compared."""
    pages = []
    for task in result.tasks:
        head, rows = tables.cells(task)
        lines = [*render.details(task), *(f"note: {note}" for note in dict.fromkeys(task.notes))]
        pages.append(section("Comparison", lines, [table(head, rows, tables.caption(task))]))
    if pages:
        pages[-1]["lines"] += render.over_all(result)
    return pages
