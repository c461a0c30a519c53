"""How does an entry of a log look on a page? Headings, paragraphs, lists, tables and code as data; templates escape.

Only what relab itself writes into logs is known here; anything else stays the text that it is.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from relab.notebook.log import plain

HEADING, BULLET = re.compile(r"^(#{1,6})\s+(.*)$"), re.compile(r"^\s*[-*]\s+(.*)$")
MOST_LINES = 4000


@dataclass
class Block:
    """One piece of an entry."""

    kind: str  # heading, text, list, table, code
    text: str = ""
    rows: list[list[str]] = field(default_factory=list)


def blocks(text: str) -> list[Block]:
    made: list[Block] = []
    code: Block | None = None
    for line in text.split("\n")[:MOST_LINES]:
        if line.startswith("```"):
            code = None if code is not None else Block("code")
            made += [code] if code is not None else []
        elif code is not None:
            code.text += line + "\n"
        elif line.strip():
            _add(made, line)
        else:
            made.append(Block("gap"))
    return [block for block in made if block.kind != "gap"]


def _add(made: list[Block], line: str) -> None:
    last = made[-1] if made else Block("gap")
    if heading := HEADING.match(line):
        made.append(Block("heading", plain(heading[2])))
    elif bullet := BULLET.match(line):
        _join(made, last, "list", [_inline(bullet[1])])
    elif line.lstrip().startswith("|"):
        cells = [_inline(cell.strip()) for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
        if not all(re.fullmatch(r":?-+:?", cell) for cell in cells):
            _join(made, last, "table", cells)
    elif last.kind == "text":
        last.text += " " + _inline(line)
    else:
        made.append(Block("text", _inline(line)))


def _join(made: list[Block], last: Block, kind: str, row: list[str]) -> None:
    if last.kind != kind:
        made.append(last := Block(kind))
    last.rows.append(row)


def _inline(text: str) -> str:
    return plain(text.replace("**", ""))
