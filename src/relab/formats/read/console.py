"""Which numbers does a program print? Rows from its output: JSON, tables, `Step 1000 | reward: 22.3`, name=value.

A row needs a step: on its own line, or on the last line that named one. What cannot be told apart from prose is left
alone: without a sign between them, a name and a number count only where the name is known, or where the whole line is
made of such pairs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from relab.base.numbers import is_number, to_int
from relab.formats.read import common
from relab.formats.read.jsonl_file import decode, flatten

RULE = re.compile(r"^\s*[-+=┏┗┡└┌├]{5,}")  # the border of a table
CELLS = re.compile(r"^\s*[|│┃]\s*(?P<name>[^|│┃]+?)\s*[|│┃]\s*(?P<value>[^|│┃]*?)\s*[|│┃]\s*$")
NUMBER = r"[-+]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][-+]?\d+)?|[-+]?(?:nan|inf(?:inity)?)"
WORD = r"[A-Za-z_][\w./-]*"
BEGIN = r"(?<![\w./-])"  # else each letter of a long word would be tried
LONGEST = 10_000  # characters of a line that are looked at
ENDS = r"(?=$|[\s,;|\])}%:]|[a-z]{1,2}(?:/s)?(?:$|[\s,;|\])}]))"  # behind a number: a sign, or a unit
TOTAL = rf"(?:\s*(?:/|of)\s*(?:{NUMBER}))?"  # 5/100
PAIR = re.compile(
    rf"{BEGIN}(?P<name>{WORD}(?:[ ]{WORD}){{0,3}})(?:\s*\(\w+\))?[\"']?\s*[=:]\s*"
    rf"(?:\[|\w*\.?\w*\()?\s*(?P<value>{NUMBER}){TOTAL}(?!:\d){ENDS}",
    re.IGNORECASE,
)
BARE = re.compile(
    rf"{BEGIN}(?P<name>{WORD})\s+(?:of\s+|is\s+|was\s+|#)?(?P<value>{NUMBER}){TOTAL}(?!:\d){ENDS}", re.IGNORECASE
)
OF = re.compile(r"(?<![\w.])(?P<value>\d+)\s?/\s?\d+(?=$|[\s\])|,:])")  # [  400/5000]
STAMP = re.compile(
    r"^\s*[\[(]?\d{2,4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d(?::\d\d)?[.,\d]*Z?[\])]?\s*|\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"
)
TELLING = re.compile(r"(?i).*(?:loss|reward|return|score|entropy)")  # names that stand in no prose before a number
OF_EPISODE = {  # beside the number of an episode; alone they could mean something else
    **dict.fromkeys(("length", "len", "steps", "duration"), "return/length"),
    **dict.fromkeys(("score", "average_score", "avg_score", "mean_score"), "return/mean"),
}
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
Row = dict[str, float]


class Console:
    """Feed it lines; it gives (step, axis, numbers) whenever a row is complete."""

    def __init__(self) -> None:
        self.table: Row = {}
        self.group = ""
        self.last: tuple[int, str] | None = None  # the step that was named last, and what it counts

    def feed(self, line: str) -> Iterator[tuple[int, str, Row]]:
        line = ESCAPES.sub("", line.rstrip("\r\n"))
        cells = CELLS.match(line)
        if cells:
            self._cell(line, cells["name"], cells["value"])
            return
        numbers = self.table if RULE.match(line) else _from_line(line)
        if RULE.match(line):
            self.table, self.group = {}, ""
        row = as_row(numbers, self.last)
        if row is not None:
            self.last = row[:2]
            yield from [row] if row[2] else []

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
        return {k: float(v) for k, v in flatten(row) if is_number(v)}
    text = STAMP.sub(" ", line.split("\r")[-1][:LONGEST])  # a progress bar writes over itself
    signed = [(_name(m["name"]), m["value"]) for m in PAIR.finditer(text)]
    rest = PAIR.sub(" | ", text)
    pairs = [*_bare(rest), *signed]
    if not any(common.step_axis(name) for name, _ in pairs) and signed and (match := OF.search(rest)):
        pairs.insert(0, ("iteration", match["value"]))
    numbers: Row = {}
    for name, value in pairs:
        if (number := to_number(value)) is not None:
            numbers.setdefault(name, number)
    return numbers


def _name(words: str) -> str:
    """The last words that mean something: `Avg reward`, but of `INFO root step` only `step`."""
    parts = words.split()
    ends = [" ".join(parts[i:]) for i in range(len(parts))]
    return next((end for end in ends if common.meaning(end) or common.step_axis(end)), parts[-1])


def _bare(text: str) -> Iterator[tuple[str, str]]:
    """Pairs without a sign between them: `Step 1000`, `return 12`; all of them where a line is nothing else."""
    matches = list(BARE.finditer(text))
    whole = not re.sub(r"[\s|,;()\[\]-]|" + re.escape("..."), "", BARE.sub("", text))
    for match in matches:
        name = match["name"]
        if whole or common.step_axis(name) or common.meaning(name) or TELLING.fullmatch(name):
            yield name, match["value"]


def as_row(cells: Row, last: tuple[int, str] | None = None) -> tuple[int, str, Row] | None:
    """The step, what it counts, and the other numbers under relab's names or the program's.

    A line without a step belongs to the last one that was named, but only with names that relab knows.
    """
    steps = sorted((name for name in cells if common.step_axis(name)), key=common.preference)
    step = to_int(cells[steps[0]]) if steps else None
    if step is not None:
        axis, rest = str(common.step_axis(steps[0])), {n: v for n, v in cells.items() if n != steps[0]}
        return step, axis, _named((_of_episode(name, axis), value) for name, value in rest.items())
    known = _named((name, value) for name, value in cells.items() if common.meaning(name))
    return (*last, known) if last is not None and known and not steps else None


def _of_episode(name: str, axis: str) -> str:
    return OF_EPISODE.get(common.plain(name), name) if axis == "episodes" else name


def _named(pairs: Iterable[tuple[str, float]]) -> Row:
    """Under relab's names; the second of two that mean the same keeps its own."""
    row: Row = {}
    for name, value in pairs:
        ours = common.meaning(name)
        row[ours if ours and ours not in row else common.plain(name)] = value
    return row


def to_number(text: str) -> float | None:
    """1_000, 1,000, 3e-4, nan; None for anything else.

    >>> to_number("1,024"), to_number("3e-4"), to_number("12 s")
    (1024.0, 0.0003, None)
    """
    if not re.fullmatch(NUMBER, text.strip(), re.IGNORECASE):
        return None
    try:
        return float(text.strip().strip(",").replace(",", "").replace("_", ""))
    except ValueError:
        return None
