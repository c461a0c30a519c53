"""How does a comparison stand on a report's page? A section per task, the same table and lines as on the screen."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from relab.comparison import render, standing, tables, wording
from relab.comparison.build import Result
from relab.comparison.task import Task
from relab.report import words
from relab.report.first import colour_places
from relab.report.parts import Section, Table, section, table
from relab.report.pictures import Picture, of_task, over_tasks
from relab.runs.grouping import Group, grouped
from relab.runs.naming import task_names

SENTENCES = 2  # on the first screen
SAID_ELSEWHERE = ("declared", "differ:", "differ, in this order:")  # by the caption; by the table of config keys


def sections(result: Result, groups: Sequence[Group] = ()) -> list[Section]:
    """As report.sections takes them, in the colours of the groups; empty where nothing can be compared."""
    parts = []
    places = places_of(result, groups)
    for task in result.tasks:
        head, rows = _without_empty(*tables.cells(task))
        whole = render.joined(render.details(task))
        details = [line for line in whole if not line.startswith(SAID_ELSEWHERE)]
        lines = [*details, *_beside(task), *(f"note: {note}" for note in dict.fromkeys(task.notes))]
        drawn = of_task(task, places)
        code, name = task.measure.metric, words.metric(task.measure.metric)
        head, caption = [word.replace(code, name) for word in head], tables.caption(task).replace(code, name)
        names = task_names([arm.label for arm in task.arms], task.env)
        compared = table(_named(head, names), [_named(row, names) for row in rows], _named([caption], names)[0])
        parts.append(section("Comparison", _named(lines, names), [compared], figures=drawn))
    return [*parts, *_over_tasks(result, parts)]


def _beside(task: Task) -> list[str]:
    """What belongs to the declared answers, by the comparison where there are several: the caption has no room."""
    declared = [pair for pair in task.pairs if pair.declared]
    about = len(declared) > 1
    return [
        f"{pair.b} against {pair.a}: {note}" if about else note
        for pair in declared
        for note in wording.beside(pair.answer.notes)
    ]


def places_of(result: Result, groups: Sequence[Group]) -> dict[int, int]:
    """The colours of the groups on a page, by the identity of their runs as they were compared."""
    colours = colour_places(groups)
    places = {id(run): colours[id(group)] for group in groups for run in group.runs}
    return places | {id(copy): places[id(run)] for copy, run in result.copies if id(run) in places}


def figures(result: Result) -> list[Picture]:
    """The pictures alone, in the colours that the same runs have on a page; variants that are not its groups (of a
    folder each, of a key) and would share one have a colour each."""
    places = places_of(result, grouped(result.read))
    drawn: list[Picture] = []
    for task in result.tasks:
        mine = {places.get(id(arm.runs[0])) for arm in task.arms}
        drawn += of_task(task, places if len(mine) == len(task.arms) else {})
    known = {row.label: row.place for picture in drawn for row in picture.rows}
    return [*drawn, *([over_tasks(result.profile, known)] if len(result.profile) > 1 else [])]


def standing_of(result: Result) -> tuple[str, str]:
    """Which config is better, in a sentence, and what its numbers are; of several tasks the first two."""
    said = []
    for task in result.tasks:
        text = standing.sentence(task, task_names([arm.label for arm in task.arms], task.env))
        if text:
            detail = words.in_text(standing.detail(task))
            said.append((f"{task.env}: {text[0].lower()}{text[1:]}" if len(result.tasks) > 1 else text, detail))
    more = f" {len(said) - SENTENCES} more comparisons below." if len(said) > SENTENCES else ""
    return " ".join(text for text, _ in said[:SENTENCES]) + more, said[0][1] if len(said) == 1 else ""


def _over_tasks(result: Result, parts: list[Section]) -> list[Section]:
    """What concerns all tasks together: below the only one, else apart, in the colours that its variants have there."""
    lines = render.over_all(result)
    if len(parts) < 2 or len(result.profile) < 2:
        if parts:
            parts[-1].lines.extend(lines)
        return []
    known = {row.label: row.place for part in parts for drawn in part.figures for row in drawn.rows}
    rest, drawn = lines[len(render.profile_lines(result)) :], over_tasks(result.profile, known)
    return [section("Comparison", rest, [_standings(result)], figures=[drawn])]


def _standings(result: Result) -> Table:
    """The numbers of the profile over tasks."""
    first = result.profile[0]
    head = ["variant", "runs", "mean score", *(f"at least {share.tau:g}" for share in first.shares[1:])]
    rows = [[s.label, str(s.runs), f"{s.mean:.2f}", *(render.interval(x) for x in s.shares[1:])]
            for s in result.profile]  # fmt: skip
    notes = "".join(f"; {note}" for note in result.profile_notes)
    return table(head, rows, f"Share of runs at or above a score (0 random, 1 highest) in {first.tasks} tasks{notes}")


def _without_empty(head: list[str], rows: list[list[str]]) -> tuple[list[str], list[list[str]]]:
    """Columns in which no row has anything to say are left out."""
    kept = [i for i in range(len(head)) if any(row[i] != "-" for row in rows)]
    return [head[i] for i in kept], [[row[i] for i in kept] for row in rows]


def _named(texts: Sequence[str], names: Mapping[str, str]) -> list[str]:
    """With the short names of this task's variants, also where a long one was cut in the middle."""
    changed = {render.short(label): name for label, name in names.items() if name != label}
    changed |= {label: name for label, name in names.items() if name != label}
    said = list(texts)
    for label in sorted(changed, key=len, reverse=True):
        said = [text.replace(label, changed[label]) for text in said]
    return said
