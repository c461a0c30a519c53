"""How does a comparison stand on a report's page? A section per task, the same table and lines as on the screen."""

from __future__ import annotations

from collections.abc import Sequence

from relab.comparison import render, tables
from relab.comparison.build import Result
from relab.report import words
from relab.report.first import environments
from relab.report.parts import Section, section, table
from relab.report.pictures import of_task, over_tasks
from relab.runs.grouping import Group


def sections(result: Result, groups: Sequence[Group] = ()) -> list[Section]:
    """As report.sections takes them, in the colours of the groups; empty where nothing can be compared."""
    parts = []
    some = environments(list(groups)).values()  # each has its own figure on the first screen, with colours of its own
    places = {id(run): place for each in some for place, group in enumerate(each) for run in group.runs}
    for task in result.tasks:
        head, rows = tables.cells(task)
        details = [line for line in render.details(task) if not line.startswith("declared")]  # the caption says it
        lines = [*details, *(f"note: {note}" for note in dict.fromkeys(task.notes))]
        lines += render.over_all(result) if task is result.tasks[-1] else []
        drawn = of_task(task, places)
        drawn += [over_tasks(result.profile)] if task is result.tasks[-1] and len(result.profile) > 1 else []
        code, name = task.measure.metric, words.metric(task.measure.metric)
        head, caption = [word.replace(code, name) for word in head], tables.caption(task).replace(code, name)
        parts.append(section("Comparison", lines, [table(head, rows, caption)], figures=drawn))
    return parts
