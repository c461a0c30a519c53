"""Are the numbers of a table written with a comma before their decimals, as 25,1?

Then they are read so, and it is said. Where every such cell could be thousands as well (1,234), nobody can tell; nor
where every cell of a column is the same 64,64, which may be a list. Such a column is left as it is, and that is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from relab.base.jsonl import Problem
from relab.formats.read.table import Coded, Joined, Packed, Table

COMMA = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")
PLAIN = re.compile(r"[+-]?\d+(?:\.0*)?(?:[eE][+-]?\d+)?|[+-]?(?i:nan|inf|infinity)")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
NO_LIST = re.compile(r"[+-].*|0*,.*|.*[eE].*")  # 0,10 and -200,0
READ = "numbers with a comma before their decimals were read as such (25,1 is 25.1)"
OPEN = "cells like 1,234 may be 1.234 or 1234: they were not read; write them without commas"
ALIKE = "a single value with a comma, such as 64,64, may be a list: it was not read; write a number with a point"


def read_commas(table: Table) -> None:
    """Columns of such numbers become numbers; a problem of the table says which, and which nobody can read."""
    kinds = {name: _kind(cells) for name, cells in table.cells.items()}
    if READ in kinds.values():  # the table is written so: its constants are too
        kinds = {name: READ if kind == "constant" else kind for name, kind in kinds.items()}
    for name, kind in kinds.items():
        if kind == READ:
            table.cells[name] = _points(table.cells[name])
    kinds = {name: ALIKE if kind == "constant" else kind for name, kind in kinds.items()}
    for message in (READ, OPEN, ALIKE):
        names = [name for name, kind in kinds.items() if kind == message]
        if names:
            table.problems.append(Problem(table.file, 2, f"{', '.join(names[:5])}: {message}"))


def _kind(cells: Any) -> str:
    """What is to be said of a column; "constant" where the other columns tell, empty where nothing is to be."""
    if not any("," in word for word in _words(cells)):
        return ""
    numbers = [part for part in cells.parts if isinstance(part, Packed)] if isinstance(cells, Joined) else []
    if not all(_whole(part) for part in numbers):  # written with points
        return ""
    first, differ, decimals = "", bool(numbers), False
    for word in _words(cells):
        comma = "," in word
        if not (COMMA if comma else PLAIN).fullmatch(word):
            return ""
        differ = differ or word != (first := first or word)
        decimals = decimals or (comma and not THOUSANDS.fullmatch(word))
    if not decimals:
        return OPEN
    return READ if differ else "constant" if NO_LIST.fullmatch(first) else ALIKE


def _whole(part: Packed) -> bool:
    values = part.values[np.isfinite(part.values)]
    return bool((values == np.floor(values)).all())


def _words(cells: Any) -> Iterator[str]:
    """The cells that are words and not empty, each one of a column of few words once."""
    if isinstance(cells, Joined):
        for part in cells.parts:
            yield from _words(part)
    elif isinstance(cells, (list, tuple, Coded)):
        some = cells.words if isinstance(cells, Coded) else cells
        yield from (word for cell in some if isinstance(cell, str) and (word := cell.strip()))


def _points(cells: Any) -> Any:
    """The same column with points in place of commas."""
    if isinstance(cells, Joined):
        return Joined([_points(part) for part in cells.parts])
    if isinstance(cells, Coded):
        return Coded(_points(cells.words), cells.codes)
    return [_point(cell) for cell in cells] if isinstance(cells, (list, tuple)) else cells


def _point(cell: Any) -> Any:
    return cell.replace(",", ".") if isinstance(cell, str) else cell
