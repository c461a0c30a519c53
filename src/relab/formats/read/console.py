"""Which numbers does a program print? Rows from its output: JSON lines, tables of Stable-Baselines3, name=value.

A row needs a step. What cannot be told apart from prose is left alone: a line of name=value pairs counts only where one
of the names is a step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from relab.base.numbers import to_int
from relab.formats.read import common
from relab.formats.read.jsonl_file import decode, flatten

RULE = re.compile(r"^\s*[-+=┏┗┡└┌├]{5,}")  # the border of a table
CELLS = re.compile(r"^\s*[|│┃]\s*(?P<name>[^|│┃]+?)\s*[|│┃]\s*(?P<value>[^|│┃]*?)\s*[|│┃]\s*$")
NUMBER = r"[-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)"
PAIR = re.compile(rf"(?P<name>[A-Za-z_][\w./-]*)\s*[=:]\s*(?P<value>{NUMBER})(?=$|[\s,;|\])%])", re.IGNORECASE)
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
Row = dict[str, float]


class Console:
    """Feed it lines; it gives (step, axis, numbers) whenever a row is complete."""

    def __init__(self) -> None:
        self.table: Row = {}
        self.group = ""

    def feed(self, line: str) -> Iterator[tuple[int, str, Row]]:
        line = ESCAPES.sub("", line.rstrip("\r\n"))
        cells = CELLS.match(line)
        if cells:
            self._cell(line, cells["name"], cells["value"])
            return
        numbers = self.table if RULE.match(line) else _from_line(line)
        if RULE.match(line):
            self.table, self.group = {}, ""
        row = as_row(numbers)
        if row is not None:
            yield row

    def _cell(self, line: str, name: str, value: str) -> None:
        """A line of a table: a group's heading has no value, its members are indented."""
        if not value and name.endswith("/"):
            self.group = name
        elif (number := to_number(value)) is not None:
            inside = self.group and re.match(r"^\s*[|│┃]\s{3,}", line)
            self.table[(self.group if inside else "") + name] = number


def _from_line(line: str) -> Row:
    row = decode(line.encode())
    if row is not None:
        return {k: float(v) for k, v in flatten(row) if isinstance(v, (int, float)) and not isinstance(v, bool)}
    return {m["name"]: n for m in PAIR.finditer(line) if (n := to_number(m["value"])) is not None}


def as_row(cells: Row) -> tuple[int, str, Row] | None:
    """The step, what it counts, and the other numbers under relab's names or the program's."""
    steps = sorted((name for name in cells if common.step_axis(name)), key=common.preference)
    step = to_int(cells[steps[0]]) if steps else None
    if step is None or len(cells) < 2:
        return None
    rest = {common.meaning(name) or name: value for name, value in cells.items() if name != steps[0]}
    return step, str(common.step_axis(steps[0])), rest


def to_number(text: str) -> float | None:
    """1_000, 1,000, 3e-4, nan; None for anything else.

    >>> to_number("1,024"), to_number("3e-4"), to_number("12 s")
    (1024.0, 0.0003, None)
    """
    if not re.fullmatch(NUMBER, text.strip(), re.IGNORECASE):
        return None
    try:
        return float(text.strip().replace(",", "").replace("_", ""))
    except ValueError:
        return None
