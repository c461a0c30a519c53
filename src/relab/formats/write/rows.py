"""How do columns become rows again? Numbers of one step stand in one row, and no column loses its order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from relab.record.history import Column, History


class Row(NamedTuple):
    """What was logged at one step."""

    step: int
    axis: str
    values: dict[str, float]


def rows_of(history: History, names: list[str]) -> Iterator[Row]:
    """The rows of some columns, by step; the second number of a column at one step goes to a second row.

    Steps that go back (only relab's own record keeps such) cannot be put in order: then a row for each number.
    """
    columns = {name: history.columns[name] for name in names}
    if all((np.diff(column.steps) >= 0).all() for column in columns.values()):
        yield from _together(columns, history.axes)
        return
    for name, column in columns.items():
        for step, value in zip(column.steps.tolist(), column.values.tolist(), strict=True):
            yield Row(step, history.axes[name], {name: value})


def step_names(history: History) -> dict[str, str]:
    """Axis -> what a table calls the column of its steps: the axis itself, unless a metric has that name."""
    axes = sorted(set(history.axes.values()))
    return {axis: f"{axis}/step" if axis in history.columns else axis for axis in axes}


def _together(columns: Mapping[str, Column], axes: Mapping[str, str]) -> Iterator[Row]:
    rows: dict[tuple[int, int, str], dict[str, float]] = {}
    for name, column in columns.items():
        axis, steps = axes[name], column.steps.tolist()
        for step, again, value in zip(steps, _repeats(column.steps), column.values.tolist(), strict=True):
            rows.setdefault((step, again, axis), {})[name] = value
    for key in sorted(rows):
        yield Row(key[0], key[2], rows[key])


def _repeats(steps: np.ndarray) -> list[int]:
    """How many rows of the same step stand before each one.

    >>> _repeats(np.array([1, 2, 2, 2, 5]))
    [0, 0, 1, 2, 0]
    """
    at = np.arange(len(steps))
    new = np.r_[True, steps[1:] != steps[:-1]] if len(steps) else np.zeros(0, bool)
    counts: list[int] = (at - np.maximum.accumulate(np.where(new, at, 0))).tolist()
    return counts
