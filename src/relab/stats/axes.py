"""What does each axis of many runs do? Effects, interactions, axes that cannot be told apart, cells that are missing.

A cell is a point (a value on each axis) with the numbers of its runs. Cells are described by an additive model with
effects coded to sum to zero, each cell counting once; every effect is then a weighted sum of cell means,

    d = sum_c w_c mean_c,   var = sum_c w_c² s_c² / n_c,   df by Satterthwaite,

so that cells may differ in spread and in seeds, and cells may be missing. In a whole grid the weights are those of
plain marginal means; with two cells the interval is `means.difference`. What the cells that are there cannot tell
apart has no estimate, instead of one that depends on how a solver breaks ties.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from relab.base.documents import Settings
from relab.base.numbers import is_number
from relab.stats import means
from relab.stats.student import Interval

MOVES, INERT, OPEN, CONFOUNDED = "moves", "inert", "cannot tell", "confounded"
OFF = -1  # the level of an axis that a point does not have (a conditional setting)
BINS = 3  # of an axis whose values hardly repeat
SAME = 1e-8


@dataclass(frozen=True)
class Cells:
    """Points as level numbers, with the numbers of their runs."""

    axes: dict[str, list[Any]]  # axis -> its levels, numbers in ascending order
    at_CK: np.ndarray  # level of each cell on each axis; OFF where it has none
    values: list[np.ndarray]
    binned: frozenset[str] = frozenset()  # axes whose levels are thirds of the values seen


def cells_of(points: Sequence[Mapping[str, Any]], values: Sequence[Any], bins: bool = False) -> Cells:
    """Cells from points; with `bins`, axes whose values hardly repeat are cut into thirds."""
    names = list(dict.fromkeys(name for point in points for name in point))
    axes: dict[str, list[Any]] = {}
    columns, binned = [], set()
    for name in names:
        levels = levels_of([point[name] for point in points if name in point])
        hardly = len(levels) > max(BINS, len(points) / 2)
        if bins and hardly and all(map(is_number, levels)):
            binned.add(name)
            edges = np.array_split(np.array(levels, np.float64), BINS)
            axes[name] = [f"{x[0]:.4g}–{x[-1]:.4g}" for x in edges]
            place = {value: k for k, part in enumerate(edges) for value in part}
        else:
            axes[name] = levels
            place = {_key(value): k for k, value in enumerate(levels)}
        columns.append([place[_key(p[name])] if name in p else OFF for p in points])
    at = np.array(columns, np.int64).reshape(len(names), len(points)).T
    return Cells(axes, at, [np.asarray(x, np.float64) for x in values], frozenset(binned))


def levels_of(values: Sequence[Any]) -> list[Any]:
    """Different values, numbers in order; 1 and 1.0 are one level, true is none of them."""
    levels = list({_key(value): value for value in values}.values())
    return sorted(levels) if all(map(is_number, levels)) else levels


def _key(value: Any) -> Any:
    return value if is_number(value) else repr(value)


# ---- Which cells are there


def missing(axes: Mapping[str, Sequence[Any]], points: Sequence[Mapping[str, Any]]) -> list[Settings]:
    """The combinations of levels that no point has."""
    there = {tuple(_key(point.get(name)) for name in axes) for point in points}
    whole = [dict(zip(axes, values)) for values in product(*axes.values())]
    return [point for point in whole if tuple(map(_key, point.values())) not in there]


def one_at_a_time(cells: Cells) -> bool:
    """Whether some cell differs from every other one on a single axis: a design that never meant to be a grid."""
    at = cells.at_CK
    return any(bool(((at != centre).sum(1) <= 1).all()) for centre in at)


def slices(points: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[int]]]:
    """Axis by axis, points (by number) that agree in all else and have at least two values of it, in order."""
    keys = {key for point in points for key in point if point.get(key) != points[0].get(key)}
    keys |= {key for key in (points[0] if points else {}) for point in points if key not in point}
    for key in sorted(keys):
        alike: dict[str, list[int]] = {}
        for i, point in enumerate(points):
            if key in point:
                rest = repr(sorted((k, v) for k, v in point.items() if k != key))
                alike.setdefault(rest, []).append(i)
        for numbers in alike.values():
            if len({repr(points[i][key]) for i in numbers}) >= 2:
                yield key, sorted(numbers, key=lambda i: (str(type(points[i][key])), points[i][key]))


def hardly_moves(levels: Sequence[float], error: float, error_is_known: bool = True, share: float = 0.01) -> bool:
    """Whether the range of levels is under 1 % of their size, or under two standard errors where those are known
    well enough for that to mean something."""
    span, size = max(levels) - min(levels), max(abs(x) for x in levels)
    return span < share * size or (error_is_known and span < 2 * error)


def some_differ(levels: Sequence[float], errors: Sequence[float], clearly: float = 3.0) -> bool:
    """Whether two levels lie apart by three standard errors of their difference, however little others are known."""
    pairs = combinations(zip(levels, errors), 2)
    return any(abs(a - b) > clearly * math.hypot(x, y) for (a, x), (b, y) in pairs)


# ---- What cannot be told apart


def aliased(cells: Cells) -> list[tuple[str, str]]:
    """Pairs of axes of which the cells there are cannot tell all effects apart: they share a direction."""
    names, pairs = list(cells.axes), []
    codes = [_code(cells.at_CK[:, k], len(levels)) for k, levels in enumerate(cells.axes.values())]
    for i, j in combinations(range(len(names)), 2):
        a, b = (_rank(codes[k]) - 1 for k in (i, j))
        if a and b and a + b + 1 > _rank(np.hstack([codes[i], codes[j]])):
            pairs.append((names[i], names[j]))
    return pairs


def _rank(columns: np.ndarray) -> int:
    """Of the columns and a constant."""
    return int(np.linalg.matrix_rank(np.hstack([np.ones((len(columns), 1)), columns])))


def _code(at: np.ndarray, levels: int) -> np.ndarray:
    """Sum-to-zero columns: level k is 1 in column k, the last level -1 in all; an axis that is off is 0."""
    table = np.vstack([np.eye(levels - 1), -np.ones((1, levels - 1)), np.zeros((1, levels - 1))])
    return table[at]  # OFF is the last row


# ---- Noise


class Noise(NamedTuple):
    """Of each cell's mean: variance, third cumulant, degrees of freedom; and the spread of a single run."""

    var: np.ndarray
    third: np.ndarray
    df: np.ndarray
    shared: bool  # one variance for all cells, of these degrees of freedom together
    sd: float
    source: str  # "seeds" or "cells"


def noise_of(cells: Cells, x_CP: np.ndarray, of_seeds: bool = True) -> Noise:
    """From seeds within cells; where no cell has two, or cells are drawn at random, from what the model leaves over."""
    n = np.array([len(x) for x in cells.values])
    if of_seeds and (n > 1).any():
        df = np.maximum(n - 1, 0)
        spread = np.array([x.var(ddof=1) if len(x) > 1 else 0.0 for x in cells.values])
        pooled = float((spread * df).sum() / df.sum())
        var = np.where(n > 1, spread, pooled) / n
        third = np.array([float(means.third(x)) for x in cells.values])
        return Noise(var, third, np.where(n > 1, df, df.sum()), False, math.sqrt(pooled), "seeds")
    y = np.array([x.mean() for x in cells.values])
    rest = y - x_CP @ np.linalg.pinv(x_CP) @ y
    df = len(y) - int(np.linalg.matrix_rank(x_CP))
    var = float(rest @ rest) / df if df > 0 else math.nan
    same = np.full(len(y), var)
    return Noise(same, np.zeros(len(y)), np.full(len(y), df), True, math.sqrt(var), "cells")


def moments(w_RC: np.ndarray, y_C: np.ndarray, noise: Noise) -> means.Moments:
    """Of the weighted sums w y, a row each."""
    parts = w_RC**2 * noise.var
    var = parts.sum(1)
    skew = means.ratio_or_zero((w_RC**3 * noise.third).sum(1), var**1.5)
    used = np.abs(w_RC) > SAME
    least = np.where(used, noise.df, np.inf).min(1, initial=np.inf)
    spread = means.ratio_or_zero(var**2, (parts**2 / np.maximum(noise.df, 1)).sum(1))
    df = least if noise.shared else np.maximum(spread, least)
    return means.Moments(w_RC @ y_C, var, skew, np.clip(df, 1.0, 1e9))


# ---- Effects


class Contrast(NamedTuple):
    """How much higher the metric is at level `b` than at `a`, all else equal; simultaneous with its family."""

    a: Any
    b: Any
    mid: float
    low: float
    high: float


@dataclass(frozen=True)
class Effect:
    """What an axis does, averaged over the others."""

    axis: str
    levels: list[Any]
    means: list[Interval]  # of each level, 95 % each
    widest: Contrast | None  # of the two levels furthest apart
    most: float  # the largest difference of two levels that the intervals allow
    verdict: str
    noise: float  # spread of a run within a cell
    source: str  # what the noise is taken from


@dataclass(frozen=True)
class Interaction:
    """By how much one axis changes what another does: the largest difference of differences."""

    axes: tuple[str, str]
    at: tuple[tuple[Any, Any], tuple[Any, Any]] | None  # levels of either axis between which it was found
    mid: float
    low: float
    high: float
    most: float
    verdict: str


def effects(cells: Cells, smallest: float = 0.0, level: float = 0.95, of_seeds: bool = True) -> list[Effect]:
    """Every axis with two or more levels. Intervals of differences hold together over all pairs of levels and axes.

    inert: no difference can be as large as the smallest effect that matters, or, where none is declared, as the spread
    of a run within a cell.
    """
    cells = _with_numbers(cells)
    if len(cells.values) < 2:
        return []
    x, places = _model(cells)
    noise, y = noise_of(cells, x, of_seeds), np.array([v.mean() for v in cells.values])
    rows = {name: list(combinations(range(len(cells.axes[name])), 2)) for name in places}
    family = sum(map(len, rows.values()))
    by_axis = []
    for name, (start, codes) in places.items():
        contrasts = np.zeros((len(rows[name]), x.shape[1]))
        contrasts[:, start : start + codes.shape[1]] = [codes[b] - codes[a] for a, b in rows[name]]
        mid, low, high, there = _ends(contrasts, x, y, noise, 1 - (1 - level) / family)
        levels = cells.axes[name]
        pairs = [Contrast(levels[a], levels[b], mid[i], low[i], high[i]) for i, (a, b) in enumerate(rows[name])]
        about = _judge([pair for pair, ok in zip(pairs, there) if ok], smallest or noise.sd)
        by_axis.append(Effect(name, levels, _level_means(codes, start, x, y, noise, level), *about, noise.sd,
                              noise.source))  # fmt: skip
    return by_axis


def _judge(pairs: list[Contrast], bound: float) -> tuple[Contrast | None, float, str]:
    """The widest difference, the largest there can be, and what follows."""
    if not pairs:
        return None, math.nan, CONFOUNDED
    widest = max(pairs, key=lambda p: abs(p.mid))
    most = max(max(abs(p.low), abs(p.high)) for p in pairs)
    clear = [p for p in pairs if p.low > 0 or p.high < 0]
    widest = max(clear, key=lambda p: abs(p.mid)) if clear else widest
    return widest, most, MOVES if clear else INERT if most < bound else OPEN


def _level_means(codes: np.ndarray, start: int, x: np.ndarray, y: np.ndarray, noise: Noise, level: float) -> list:
    contrasts = np.zeros((len(codes) - 1, x.shape[1]))
    contrasts[:, 0] = 1
    contrasts[:, start : start + codes.shape[1]] = codes[:-1]  # without the row of an axis that is off
    mid, low, high, there = _ends(contrasts, x, y, noise, level)
    n = len(y)
    ends = np.where(there, [mid, low, high], math.nan).T
    return [Interval(float(a), float(b), float(c), n, level) for a, b, c in ends]


def interactions(cells: Cells, smallest: float = 0.0, level: float = 0.95, of_seeds: bool = True) -> list[Interaction]:
    """Every pair of axes; intervals hold together over all differences of differences of all pairs."""
    cells = _with_numbers(cells)
    if len(cells.values) < 4:
        return []
    _, places = _model(cells)
    pairs = list(combinations(places, 2))
    squares = {pair: _squares(*(places[name][1] for name in pair)) for pair in pairs}
    family = max(1, sum(len(rows) for rows, _ in squares.values()))
    return [_interaction(cells, pair, *squares[pair], smallest, 1 - (1 - level) / family, of_seeds) for pair in pairs]


def _interaction(
    cells: Cells, pair: tuple[str, str], rows: np.ndarray, names: list, smallest: float, level: float, of_seeds: bool
) -> Interaction:
    x, places = _model(cells)
    both = np.einsum("ci,cj->cij", *(places[name][1][cells.at_CK[:, list(cells.axes).index(name)]] for name in pair))
    whole = np.hstack([x, both.reshape(len(x), -1)])
    noise, y = noise_of(cells, whole, of_seeds), np.array([v.mean() for v in cells.values])
    contrasts = np.hstack([np.zeros((len(rows), x.shape[1])), rows])
    mid, low, high, there = _ends(contrasts, whole, y, noise, level)
    estimable = [Contrast(names[i], None, mid[i], low[i], high[i]) for i in np.flatnonzero(there)]
    widest, most, verdict = _judge(estimable, smallest or noise.sd)
    if widest is None:
        return Interaction(pair, None, math.nan, math.nan, math.nan, math.nan, CONFOUNDED)
    (a, b), (c, d) = widest.a
    first, second = (cells.axes[name] for name in pair)
    return Interaction(pair, ((first[a], first[b]), (second[c], second[d])), widest.mid, widest.low, widest.high,
                       most, verdict)  # fmt: skip


def _squares(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, list]:
    """All differences of differences: rows over the products of both axes' columns, and the levels of each."""
    rows, names = [], []
    for i, j in combinations(range(len(a) - 1), 2):
        for k, m in combinations(range(len(b) - 1), 2):
            rows.append(np.outer(a[j] - a[i], b[m] - b[k]).ravel())
            names.append(((i, j), (k, m)))
    return np.array(rows), names


def _with_numbers(cells: Cells) -> Cells:
    """Cells that have finite numbers, with the levels that are left."""
    kept = [(i, good) for i, v in enumerate(cells.values) if len(good := v[np.isfinite(v)])]
    if len(kept) == len(cells.values) and all(len(g) == len(cells.values[i]) for i, g in kept):
        return cells
    at = cells.at_CK[[i for i, _ in kept]]
    axes, columns = {}, []
    for k, (name, levels) in enumerate(cells.axes.items()):
        used = sorted(set(at[:, k].tolist()) - {OFF})
        axes[name] = [levels[u] for u in used]
        place = {OFF: OFF, **{u: i for i, u in enumerate(used)}}
        columns.append([place[u] for u in at[:, k].tolist()])
    return Cells(axes, np.array(columns, np.int64).reshape(len(axes), len(kept)).T, [g for _, g in kept], cells.binned)


def _model(cells: Cells) -> tuple[np.ndarray, dict[str, tuple[int, np.ndarray]]]:
    """The additive model's columns, and of each axis with several levels where its columns begin and its codes."""
    parts, places, start = [np.ones((len(cells.values), 1))], {}, 1
    for k, (name, levels) in enumerate(cells.axes.items()):
        if len(levels) > 1:
            codes = _code(np.array([*range(len(levels)), OFF]), len(levels))
            places[name] = (start, codes)
            parts.append(codes[cells.at_CK[:, k]])
            start += len(levels) - 1
    return np.hstack(parts), places


def _ends(
    contrasts: np.ndarray, x: np.ndarray, y: np.ndarray, noise: Noise, level: float
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Estimate and ends of each wanted row, and whether the cells there are determine it at all."""
    w = contrasts @ np.linalg.pinv(x)
    there = np.abs(w @ x - contrasts).max(1, initial=0.0) < SAME * len(y)
    estimates = moments(w, y, noise)
    low, high = means.widened(estimates, level)
    return estimates.mid, low, high, there
