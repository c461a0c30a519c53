"""What does a row of a table claim? A row per step, per metric, per run, or a name and its value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from relab.formats.read.common import step_axis
from relab.notebook.check import words as w
from relab.notebook.check.claim import Claim
from relab.notebook.check.parts import bare, mentions, only_number
from relab.notebook.check.record import Names, RunRecord, normal
from relab.notebook.check.when import Step, whens
from relab.notebook.check.wording import Line, Number, Table

EVERY = re.compile(
    r"(?i)\b(?:every|each|per|by|all|of)\b"
)  # `every seed` is over what the numbers are listed, no setting


def row(
    table: Table, line: Line, cells: list[str], run: str, record: RunRecord, sure: bool, named: bool
) -> list[Claim]:
    first = normal(table.header[0]) if table.header else ""
    axis = step_axis(first) if first else None
    heads = [head(cell, record) for cell in table.header]
    if axis is not None:
        return list(_of_step(table, line, cells, run, record, axis, sure))
    if sum(1 for names, role, step in heads[1:] if not names and (role or step)) >= (1 if len(heads) == 2 else 2):
        return list(_of_metric(line, cells, heads, run, record, sure))
    if head(cells[0], record)[0] and (
        len(cells) == 2 or (len(table.header) > 1 and normal(table.header[1]) in w.VALUE_HEADERS)
    ):
        return list(_of_value(line, cells, run, record, sure))
    return list(_of_run(table, line, cells, heads, run, sure, named))


def head(cell: str, record: RunRecord) -> tuple[Names, str, Step | None]:
    """What the head of a column or row means: a metric, a role, a step."""
    text = bare(cell)
    exact = record.look(text)
    if exact:
        return exact, "", None
    quoted = whens(text)
    names = [m for m in mentions(text, 0, len(text), record, [(one.start, one.stop) for one in quoted]) if m.names]
    rest = text
    for name in names:
        rest = rest.replace(name.word, " ")
    roles = [role for role, pattern in w.ROLES.items() if pattern.search(rest)]
    role = w.HEADERS.get(normal(text) or text, "") or (roles[0] if len(roles) == 1 else "")
    role = {"best": "peak", "mean": "part"}.get(role, role)  # a mean over which rows or runs is not said
    plain = not (w.DERIVED.search(rest) or w.OTHERS.search(rest) or EVERY.search(rest))
    certain = len(names) == 1 and names[0].sure and plain
    return (names[0].names if certain else Names()), role, quoted[0].step if len(quoted) == 1 else None


def _claim(line: Line, quote: str, run: str, word: str, names: Names, one: Number, step: Step | None, role: str,
           firm: bool, setting: bool = False) -> Claim:  # fmt: skip
    return Claim(
        line.number, quote, "value", run, word, names, (one,), step, role, firm and bool(names), setting=setting
    )


def _of_step(
    table: Table, line: Line, cells: list[str], run: str, record: RunRecord, axis: str, sure: bool
) -> Iterator[Claim]:
    at = only_number(cells[0])
    if at is None:
        return
    for header, cell in zip(table.header[1:], cells[1:]):
        one, (names, role, _) = only_number(cell), head(header, record)
        if one is not None:
            where = f"{header} {cell} at {table.header[0]} {cells[0]}"
            yield _claim(line, where, run, bare(header), names, one, Step(axis, at), "", sure and not role)


def _of_metric(
    line: Line, cells: list[str], heads: list[tuple[Names, str, Step | None]], run: str, record: RunRecord, sure: bool
) -> Iterator[Claim]:
    names, _, _ = head(cells[0], record)
    for (_, role, step), cell in zip(heads[1:], cells[1:]):
        one = only_number(cell)
        if one is not None:
            quote = f"{cells[0]} {role or (step.shown if step else '')} {cell}"
            firm = sure and role != "slope" and bool(role or step)
            yield _claim(line, quote, run, bare(cells[0]), names, one, step, role, firm)


def _of_value(line: Line, cells: list[str], run: str, record: RunRecord, sure: bool) -> Iterator[Claim]:
    """`| final eval return | 480 |`, `| gamma | 0.99 |`."""
    (names, role, step), one = head(cells[0], record), only_number(cells[1])
    if one is not None:
        setting = bool(names.keys)
        firm = sure and bool(role or step or setting)
        yield _claim(line, f"{cells[0]} {cells[1]}", run, bare(cells[0]), names, one, step, role, firm, setting)


def _of_run(
    table: Table,
    line: Line,
    cells: list[str],
    heads: list[tuple[Names, str, Step | None]],
    run: str,
    sure: bool,
    named: bool,
) -> Iterator[Claim]:
    """Firm only where the row names the run and the column says as what: others may hold means over seeds."""
    for header, (names, role, step), cell in zip(table.header[1:], heads[1:], cells[1:]):
        one = only_number(cell)
        if one is not None:
            setting = bool(names.keys) and not names.columns
            firm = sure and named and bool(role or step or setting) and role != "part"
            yield _claim(line, f"{header} {cell}", run, bare(header), names, one, step, role, firm, setting)
