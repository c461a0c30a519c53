"""Are the numbers of a table written with a comma before their decimals, as 25,1?

Then they are read so, and it is said. Where every such cell could be thousands as well (1,234), nobody can tell: the
column is left as it is, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import islice
from typing import Any

from relab.base.jsonl import Problem
from relab.formats.read.table import Coded, Joined, Table

COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
PLAIN = re.compile(r"[+-]?\d+(?:\.0*)?|[+-]?(?i:nan|inf|infinity)")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
READ = "numbers with a comma before their decimals were read as such (25,1 is 25.1)"
OPEN = "cells like 1,234 may be 1.234 or 1234: they were not read; write them without commas"
LOOKED_AT = 1000  # cells that tell how a column is written


def read_commas(table: Table) -> None:
    """Columns of such numbers become numbers; a problem of the table says which, and which nobody can read."""
    read, open_ = [], []
    for name, cells in table.cells.items():
        kind = _kind(cells)
        if kind == "decimals":
            table.cells[name] = [_point(cell) for cell in cells]
            read.append(name)
        elif kind == "either":
            open_.append(name)
    for names, message in ((read, READ), (open_, OPEN)):
        if names:
            table.problems.append(Problem(table.file, 2, f"{', '.join(names[:5])}: {message}"))


def _kind(cells: Any) -> str:
    if not isinstance(cells, (list, Joined, Coded)):
        return ""
    seen = list(islice(_words(cells), LOOKED_AT))
    commas = [cell for cell in seen if COMMA.fullmatch(cell)]
    if not commas or not all(PLAIN.fullmatch(cell) for cell in seen if not COMMA.fullmatch(cell)):
        return ""
    return "either" if all(THOUSANDS.fullmatch(cell) for cell in commas) else "decimals"


def _words(cells: Iterable[Any]) -> Iterable[str]:
    return (cell for cell in cells if isinstance(cell, str) and cell)


def _point(cell: Any) -> Any:
    return cell.replace(",", ".") if isinstance(cell, str) and COMMA.fullmatch(cell) else cell
