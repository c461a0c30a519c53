"""Which of the chosen configs is better, and can one tell yet? As `relab compare` says it, as plain data for a page.

Called in the desk's process. The pictures are the report's, in the colours that the groups have on every page.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from relab.base.documents import Document
from relab.comparison import build, declared, render, standing, tables
from relab.comparison.build import Result
from relab.comparison.task import Options, Task
from relab.formats.read.source import Source
from relab.report import pictures, svg_pictures, words
from relab.report.changes import config_changes
from relab.report.first import shortened
from relab.runs import grouping, naming
from relab.web import parallel
from relab.web.examining import loaded

EXPLORED = "exploratory: "  # how such a line begins in a terminal


def compared(root: str, sources: Sequence[Source], places: Sequence[int], options: Options) -> Document:
    """Tables, pictures and sentences of the comparison of these runs; `places` are the colours of their groups."""
    read = loaded(root, sources)
    colour = {(str(source.path), source.key): place for source, place in zip(sources, places, strict=True)}
    runs = [grouping.of_loaded(each, each.name) for each in read.runs]
    by_run = {id(run): colour[str(each.source.path), each.source.key] for run, each in zip(runs, read.runs)}
    result = build.compare(runs, replace(options, named=True), declared.of_runs(runs))
    by_run |= {id(copy): by_run[id(run)] for copy, run in result.copies}
    result.unread = [f"{source.name}: {why}" for source, why in read.broken]
    return {
        "tasks": [_task(task, result, by_run) for task in result.tasks],
        "apart": [[label, why] for label, why in result.apart],
        "warnings": result.warnings, "notes": [*result.notes, *result.profile_notes], "unread": result.unread,
        "why": render.why(result), "text": render.text(result, verbose=True), "markdown": tables.markdown(result),
        "latex": tables.latex(result), "config": _config(runs), "metrics": _metrics(runs),
        "profile": _over_all(result, by_run),
    }  # fmt: skip


def _task(task: Task, result: Result, places: dict[int, int]) -> Document:
    short = named(task)
    head, rows = tables.cells(short)
    code, name = task.measure.metric, words.metric(task.measure.metric)
    details = [words.in_text(line) for line in render.joined(render.details(short))
               if not line.startswith(("declared", "differ"))]  # fmt: skip
    return {
        "env": task.env, "head": [word.replace(code, name) for word in head], "rows": rows,
        "caption": f"{name}{render.step_text(task)}; mean over seeds, t interval widened for skewness",
        "sentence": sentence(task), "detail": detail(task),
        "lines": [line for line in details if not line.startswith(EXPLORED)],
        "explored": [line.removeprefix(EXPLORED) for line in details if line.startswith(EXPLORED)],
        "notes": list(dict.fromkeys(task.notes)),
        "figures": [svg_pictures.draw(picture) for picture in pictures.of_task(task, places)],
        "parallel": parallel.draw(task), "places": [places.get(id(arm.runs[0]), 0) for arm in task.arms],
    }  # fmt: skip


def named(task: Task) -> Task:
    """The task with the names that its variants have below a heading that tells the environment."""
    names = naming.task_names([row.label for row in task.variants], task.env)
    return replace(
        task,
        variants=[replace(row, label=names[row.label]) for row in task.variants],
        pairs=[replace(pair, a=names.get(pair.a, pair.a), b=names.get(pair.b, pair.b)) for pair in task.pairs],
        reference=replace(task.reference, label=names.get(task.reference.label, task.reference.label)),
    )


def sentence(task: Task) -> str:
    """The first thing to read: the answer of what was declared; else who is better, or that one cannot tell yet."""
    names = naming.task_names([row.label for row in task.variants], task.env)
    answers = [shortened(words.in_text(pair.answer.text))[0] for pair in task.pairs if pair.declared]
    if answers:
        return " ".join(answers)
    best = task.variants[0]
    return standing.sentence(task, names) or f"{names[best.label]}: {render.mean_text(task, best)}."


def detail(task: Task) -> str:
    """What the numbers of the sentence are, and how sure."""
    parts = [shortened(words.in_text(pair.answer.text))[1] for pair in task.pairs if pair.declared]
    return "; ".join(dict.fromkeys(part for part in parts if part)) or words.in_text(standing.detail(task))


def _over_all(result: Result, places: dict[int, int]) -> Document | None:
    """In the colours that the variants have in their tasks, under the names that they have there."""
    if len(result.profile) < 2:
        return None
    drawn = [picture for task in result.tasks for picture in pictures.of_task(task, places)]
    known = {row.label: row.place for picture in drawn for row in picture.rows}
    return {"figure": svg_pictures.draw(pictures.over_tasks(result.profile, known)), "lines": render.over_all(result)}


def _config(runs: Sequence[grouping.Run]) -> Document:
    groups = grouping.grouped(runs)
    if len(groups) < 2:
        return {"head": [], "rows": []}
    changes = config_changes(groups)
    return {"head": changes.head, "rows": changes.rows}


def _metrics(runs: Sequence[grouping.Run]) -> list[str]:
    """What can be compared: metrics that every run has."""
    shared = set.intersection(*(set(run.history.columns) for run in runs)) if runs else set()
    return sorted(shared, key=lambda name: (not name.startswith(("eval/", "return/")), name))
