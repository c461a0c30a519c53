"""How long did a run take? Its clock, time/elapsed_s, made to run on where it started again."""

from __future__ import annotations

import math

import numpy as np

from relab.base.numbers import is_number
from relab.record.history import History

CLOCK = "time/elapsed_s"
RESUMES, OFTEN = 3, 0.1  # a clock that goes back more often than so, and in more of its rows, is out of order


def running(seconds: np.ndarray) -> np.ndarray:
    """A clock that starts again at each resume, made to run on.

    Where it goes back again and again no run was resumed so often: the rows are in another order than that of time, and
    the latest time so far counts.

    >>> running(np.array([1.0, 5.0, 2.0, 3.0])).tolist()
    [1.0, 5.0, 7.0, 8.0]
    """
    back = np.diff(seconds) < 0
    if unordered(back):
        return np.maximum.accumulate(seconds)
    return seconds + np.cumsum(np.append(0.0, np.where(back, seconds[:-1], 0.0)))


def last_start(seconds: np.ndarray) -> int:
    """The row with which a clock last started again; 0 where it never did.

    >>> last_start(np.array([1.0, 5.0, 2.0, 3.0]))
    2
    """
    back = np.diff(seconds) < 0
    return 0 if unordered(back) or not back.any() else int(np.flatnonzero(back)[-1]) + 1


def unordered(back: np.ndarray) -> bool:
    """Does it go back so often that rows are in another order than that of time?"""
    return bool(back.sum() > max(RESUMES, OFTEN * (len(back) + 1)))


def elapsed(run: History) -> float:
    """Seconds over all parts of a run that was resumed; NaN where it keeps no clock."""
    column = run.columns.get(CLOCK)
    if column is None or not len(column.values):
        return math.nan
    return float(running(column.values)[-1])


def took(run: History) -> float:
    """The same, and where it keeps no clock the seconds that an experiment or a loop has waited for the program."""
    known, waited = elapsed(run), run.meta.get("seconds")
    return float(waited) if math.isnan(known) and is_number(waited) else known
