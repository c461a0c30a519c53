"""How is a CSV of one metric read that has no header, but a step and a value at the end of each line?

d3rlpy writes epoch,step,value, TorchRL step,value: one file per metric, whose name is the file's.
"""

from __future__ import annotations

import math
import re
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np

from relab.base import limits
from relab.base.numbers import MAX_STEP
from relab.formats.read import common
from relab.formats.read.source import problem, remark
from relab.record.history import History

MAX_BYTES = 1 << 28
NUMBER = r"[-+]?(?:\d+(?:\.\d*)?(?:[eE][-+]?\d+)?|nan|inf)"


class Points(NamedTuple):
    """The lines of a file in the order of their steps."""

    steps: np.ndarray  # int64
    values: np.ndarray  # float64


def is_bare(begin: bytes, width: int) -> bool:
    """Whether the first line of a file is so many numbers, whole ones but for the last.

    >>> is_bare(b"1,100,0.5\\n", 3), is_bare(b"epoch,step,min\\n", 3), is_bare(b"100,nan\\n", 2)
    (True, False, True)
    """
    line, newline, _ = begin.partition(b"\n")
    pattern = r"\d+," * (width - 1) + NUMBER
    return bool(newline) and re.fullmatch(pattern, line.decode("ascii", "replace").strip()) is not None


def read(history: History, path: Path, width: int) -> Points:
    """Step and value of every line; what is no such line is left out, and it is said."""
    if path.stat().st_size > MAX_BYTES:
        problem(history, path, f"only the first {MAX_BYTES} of {path.stat().st_size} bytes were read")
    steps, values, bad = array("q"), array("d"), array("q")
    for line in limits.lines(path, MAX_BYTES):
        point = _point(line.data, width) if line.data else None
        if line.last and (cut := (line.data or b"").decode("utf-8", "replace").strip()):
            problem(history, path, f"the last line has no line break and may be cut; it was left out: {cut[:40]!r}")
        elif point is not None and not line.last:
            steps.append(point[0])
            values.append(point[1])
        elif line.data is None or line.data.strip():
            bad.append(line.number)
    if bad:
        problem(
            history, path, f"{len(bad)} lines are not {width} numbers with a whole step; they were left out", bad[0]
        )
    return _ordered(history, path, np.array(steps, np.int64), np.array(values, np.float64))


def _point(line: bytes, width: int) -> tuple[int, float] | None:
    cells = line.split(b",")
    if len(cells) != width:
        return None
    try:
        step, value = float(cells[-2]), float(cells[-1])
    except ValueError:
        return None
    return (int(step), value) if math.isfinite(step) and step.is_integer() and abs(step) < MAX_STEP else None


def _ordered(history: History, path: Path, steps: np.ndarray, values: np.ndarray) -> Points:
    order, said = common.in_order(steps)
    if said:
        remark(history, path, said)
    return Points(steps[order], values[order])
