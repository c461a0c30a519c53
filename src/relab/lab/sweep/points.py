"""Which points does a sweep ask for? A grid, one change at a time, or draws, the first n of which never change.

A point has a value on each axis that is on there, and satisfies every constraint. Random points come from a stream per
number, Sobol points from one sequence: raising `trials` adds points and moves none.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from relab.base import streams
from relab.base.documents import Settings
from relab.config.base import require
from relab.lab.sweep import expression
from relab.lab.sweep.axis import Axis
from relab.lab.sweep.sobol import BITS, MOST_AXES, sobol

Point = Settings
Constraints = Sequence[tuple[str, ast.expr]]
MOST_CELLS = 100_000
TRIES = 200  # draws per point that constraints may refuse


def grid(axes: Sequence[Axis], constraints: Constraints, base: Mapping[str, Any]) -> list[Point]:
    """Every combination; the same settings are one point, whatever an axis that is off would have been."""
    levels = [axis.levels() for axis in axes]
    size = int(np.prod([len(each) for each in levels], dtype=object))
    require(size <= MOST_CELLS, f"the grid has {size:,} points, more than {MOST_CELLS:,}: name fewer values, or use"
                                " method: random or sobol")  # fmt: skip
    points: dict[str, Point] = {}
    for values in product(*levels):
        point = active(axes, values)
        if allowed(point, constraints, base):
            points.setdefault(repr(point), point)
    require(bool(points), f"no point of the grid satisfies {' and '.join(text for text, _ in constraints)}")
    return list(points.values())


def one_at_a_time(axes: Sequence[Axis], constraints: Constraints, base: Mapping[str, Any]) -> list[Point]:
    """The first value of every axis, and each further value of one axis with the first of all others: the first point
    is what every other is held against, and is trained once."""
    levels = [axis.levels() for axis in axes]
    firsts = [each[0] for each in levels]
    rows = [firsts, *([*firsts[:i], value, *firsts[i + 1 :]] for i, each in enumerate(levels) for value in each[1:])]
    points = {repr(point): point for row in rows if allowed(point := active(axes, row), constraints, base)}
    first = repr(active(axes, firsts))
    require(first in points, f"the first values of the axes are what all others are held against, but do not satisfy"
                             f" {' and '.join(text for text, _ in constraints)}: put other values first")  # fmt: skip
    return list(points.values())


def drawn(
    method: str, n: int, axes: Sequence[Axis], constraints: Constraints, base: Mapping[str, Any], seed: int
) -> list[Point]:
    """n different points by `random` or `sobol`."""
    points: dict[str, Point] = {}
    for u in shares(method, axes, seed, TRIES * n):
        point = active(axes, [axis.at(float(x)) for axis, x in zip(axes, u)])
        if allowed(point, constraints, base):
            points.setdefault(repr(point), point)
        if len(points) == n:
            break
    require(len(points) == n, f"`trials` is {n}, but only {len(points)} different points that satisfy the constraints"
                             f" were found in {TRIES * n:,} draws: ask for fewer trials, or loosen them")  # fmt: skip
    return list(points.values())


def shares(method: str, axes: Sequence[Axis], seed: int, most: int) -> Iterator[np.ndarray]:
    """Points of the unit box, in an order that does not depend on how many are asked for."""
    if method == "random":
        yield from (streams.generator(seed, "sweep", i).random(len(axes)) for i in range(most))
        return
    require(len(axes) <= MOST_AXES, f"sobol takes up to {MOST_AXES} axes, but there are {len(axes)}: use random")
    shift = streams.generator(seed, "sobol").integers(0, 1 << BITS, len(axes))
    sent, size = 0, 64
    while sent < most:
        yield from sobol(size, len(axes), shift)[sent:]
        sent, size = size, 2 * size


def active(axes: Sequence[Axis], values: Sequence[Any]) -> Point:
    """The point without the axes that are off there."""
    point: Point = {}
    for axis, value in zip(axes, values):
        if axis.is_on(point):
            point[axis.key] = value
    return point


def allowed(point: Point, constraints: Constraints, base: Mapping[str, Any]) -> bool:
    return all(expression.holds(tree, text, {**base, **point}) for text, tree in constraints)
