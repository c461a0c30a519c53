"""What does a sweep's folder say as a whole? Settings that change only together, cells that are missing, the cost."""

from __future__ import annotations

import math

from relab.base.documents import Settings
from relab.base.numbers import is_number
from relab.base.text import duration
from relab.health.foreign import plain_key
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.sweep_cells import Filled, Seen, filled, seeds_missing, seen, short_value
from relab.health.view import ViewGroup
from relab.stats import axes


@rule("confounded-arms", about="evidence", algos=(), scope="folder")
def confounded_arms(groups: list[ViewGroup]) -> Finding | None:
    """
    What: configs of one task differ in up to four settings, and two of these always change together.
    Why: whatever differs between the arms may be the work of either; their runs cannot say which.
    Known problems: settings that one program derives from another (a constant ratio or product) are left out, others
        that belong together are not; nobody may have meant the configs as arms of one comparison.
    Refuted by: a run in which only one of both was changed.
    Try: run the arms in which only one of both changes.
    """
    grids = [each for each in seen(groups) if len(each.axes) >= 2]
    if not grids:
        raise Missing("configs of one task that differ in two to four settings")
    for each in grids:
        pairs = [pair for pair in axes.aliased(each.cells) if not _derived(each, *pair) and not _moot(each, *pair)]
        if pairs:
            a, b = (plain_key(key) for key in pairs[0])
            more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
            points = "; ".join(_point(point, pairs[0]) for point in each.points[:4])
            said = (
                f"{a} and {b} change only together in {len(each.points)} configs{more}: what either does cannot be told"
            )
            return Finding(said, float(len(pairs)), None, [Evidence(a, [], [], points)],
                           [f"run {a} alone at a value of the other arm"])  # fmt: skip
    return None


def _derived(grid: Seen, a: str, b: str, rounding: float = 1e-6) -> bool:
    """One is computed from the other: equal, or of a constant ratio or product."""
    pairs = [(p[a], p[b]) for p in grid.points if a in p and b in p]
    if not all(is_number(x) for pair in pairs for x in pair):
        return False
    ratios, products = [x / y if y else math.nan for x, y in pairs], [x * y for x, y in pairs]
    return any(max(each) - min(each) <= rounding * abs(max(each)) for each in (ratios, products) if len(set(pairs)) > 1)


# A setting that means nothing where another has this value: Dreamer's acting weights are those that learn.
MOOT = {"algo.collects": ("algo.acting_rate", 1.0)}


def _moot(grid: Seen, a: str, b: str) -> bool:
    """The one says something in a single arm only, so that the other is all that differs."""
    for inert, (other, value) in MOOT.items():
        if {plain_key(a), plain_key(b)} == {inert, other}:
            names = {plain_key(key): key for key in (a, b)}
            live = {p.get(names[inert]) for p in grid.points if p.get(names[other]) != value}
            return len(live) <= 1
    return False


def _point(point: Settings, keys: tuple[str, ...]) -> str:
    return " ".join(f"{plain_key(k)}={short_value(point.get(k))}" for k in keys)


@rule("incomplete-cells", about="evidence", algos=(), scope="folder")
def incomplete_cells(groups: list[ViewGroup], *, configs: int = 3, of_grid: float = 0.5) -> Finding | None:
    """
    What: cells of a sweep have no run that came to its end: of the plan that lies beside the runs, else of the grid
        that more than half of all combinations of the settings seen here form; or seeds that others have are missing.
    Why: a table with holes is read as if it were whole; the missing cells are seldom missing by chance.
    Known problems: changes made one at a time are no grid and are left alone; a sweep may have been stopped on purpose.
    Refuted by: the missing runs elsewhere, or a reason why they cannot exist.
    Try: run the missing cells, or say in the table that they are missing and conclude nothing about their settings.
    """
    views = [v for group in groups for v in group.views]
    planned = filled(groups)
    grids = [] if planned else [g for g in seen(groups) if len(g.groups) >= configs]
    if not planned and not grids:
        raise Missing(f"a sweep's plan, or {configs} configs of one task that differ in a few settings")
    if any(v.state == "running" for v in views):
        raise Missing("a sweep that has come to its end (runs are still going)")
    findings = [_of_plan(each) for each in planned] + [_of_grid(each, of_grid) for each in grids]
    return next((each for each in findings if each is not None), None)


def _of_plan(sweep: Filled) -> Finding | None:
    n, done = sweep.plan.cells, sweep.whole
    if len(done) >= n:
        return None
    broken = [f"{v.name.rpartition('/')[2]} ended at step {v.last_step:,}"
              + (f" of {v.planned:,.0f}" if v.planned is not None else "") for v in sweep.broken]  # fmt: skip
    said = f"; {broken[0]}" + (f" (and {len(broken) - 1} more)" if len(broken) > 1 else "") if broken else ""
    return Finding(f"{len(done):,} of {n:,} planned cells have a whole run, {n - len(sweep.there):,} have none{said}",
                   1 - len(done) / n, None, [Evidence("cells", [], [float(len(done)), float(n)],
                   f"whole and planned, by {sweep.plan.source.name}")], confidence="high")  # fmt: skip


def _of_grid(grid: Seen, share: float) -> Finding | None:
    gone = axes.missing(grid.axes, grid.points)
    size = len(grid.points) + len(gone)
    holes = len(grid.axes) >= 2 and gone and len(grid.points) > share * size and not axes.one_at_a_time(grid.cells)
    if holes:
        example = _point(gone[0], tuple(grid.axes))
        keys = ", ".join(map(plain_key, grid.axes))
        shown = Evidence("cells", [], [float(len(grid.points)), float(size)], "configs, and combinations of values")
        said = f"{len(gone)} of {size} combinations of {keys} have no run, such as {example}"
        return Finding(said, len(gone) / size, None, [shown])
    return _of_seeds(grid, share)


def _of_seeds(grid: Seen, share: float) -> Finding | None:
    missing = seeds_missing(grid)
    if missing and len(missing) < share * len(grid.points):
        at, seeds = next(iter(missing.items()))
        example = f"{_point(grid.points[at], tuple(grid.axes))}: seed {', '.join(seeds[:5])}"
        shown = Evidence("seeds", [], [float(len(s)) for s in missing.values()], "missing per config")
        return Finding(f"{len(missing)} of {len(grid.points)} configs lack seeds that the others have run to the end,"
                       f" such as {example}", len(missing) / len(grid.points), None, [shown])  # fmt: skip
    return None


@rule("sweep-cost", about="operation", algos=(), scope="folder")
def sweep_cost(groups: list[ViewGroup], *, least_s: float = 86_400.0) -> Finding | None:
    """
    What: the cells that a sweep's plan still asks for will take more than a day, at the time a cell has taken so far.
    Why: a grid grows with the product of its axes; most of it is often planned without having been added up.
    Known problems: runs that go on in parallel or on faster machines are not foreseen.
    Refuted by: more workers than the finished runs had.
    Try: sweep fewer values, drop an inert axis, or draw a few points of the same box (`method: sobol`).
    """
    sweeps = filled(groups)
    if not sweeps:
        raise Missing("a sweep's plan beside the runs")
    timed = [(each, seconds) for each in sweeps if (seconds := each.seconds()) is not None]
    if not timed:
        raise Missing("the time that finished cells took")
    for each, seconds in timed:
        left = each.plan.cells - len(each.whole)
        if left * seconds > least_s:
            whole_cost = duration(each.plan.cells * seconds)
            said = f"{left:,} of {each.plan.cells:,} planned cells are left at {duration(seconds)} each:"
            shown = Evidence("seconds per cell", [], [seconds], f"of {len(each.whole)} whole runs")
            return Finding(f"{said} {duration(left * seconds)}, {whole_cost} in all", left * seconds, None, [shown])
    return None
