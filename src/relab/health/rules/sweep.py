"""What does a folder of a sweep's runs say? Axes without effect, starts that differ, arms that differ in several
settings at once, cells that are missing, what the rest will cost."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from relab.base.text import duration
from relab.health.foreign import plain_key, word
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.rules.validity import NO_PARAMETERS, SIZE_OF_PARAMETERS
from relab.health.sweep_cells import Filled, Seen, factors, filled, seeds_missing, seen, whole
from relab.health.view import View, ViewGroup
from relab.record.state import seed_of
from relab.stats import axes

SHAPES = re.compile(r"(init|dim|size|width|hidden|layers|arch|scale|units)", re.I)  # settings that change the start
PREFERRED = re.compile(r"(^|_)(return|reward|score|kl|divergence|loss|error)(_|$)")


class Arm(NamedTuple):
    """Runs that share one value of the setting."""

    value: Any
    views: list[View]


def slices(groups: list[ViewGroup]) -> Iterator[tuple[str, list[Arm]]]:
    """Settings by which groups differ while all others are alike, each with its arms in order."""
    known = [g for g in groups if g.views[0].config]
    points = [factors(g.views[0]) for g in known]
    for key, found in axes.slices(points):
        yield key, [Arm(points[i][key], known[i].views) for i in found]


@rule("inert-axis", about="evidence", algos=(), scope="folder")
def inert_axis(groups: list[ViewGroup]) -> Finding | None:
    """
    What: a setting was given three or more values, all else equal, and the outcome does not follow it: the arms' range
        is under 1 %, or under two standard errors where these are small; without a return, most metrics are so.
    Why: the axis costs runs and teaches nothing; perhaps the program does not read it.
    Known problems: an effect smaller than the noise of few seeds is not seen; a return at its maximum shows none.
    Refuted by: a metric the setting is meant for that does follow it.
    Try: drop the axis, or widen it by a factor of ten to see whether it does anything.
    """
    asked = False
    for key, arms in slices(groups):
        ended = [Arm(arm.value, views) for arm in arms if (views := [v for v in arm.views if whole(v)])]
        if len(ended) < 3:
            continue
        asked = True
        scored = all(v.standing() is not None for arm in ended for v in arm.views)
        found = _by_return(key, ended) if scored else _by_metrics(key, ended)
        if found:
            return found
    if not asked:
        raise Missing("three whole runs that differ in one setting")
    return None


def _by_return(key: str, arms: list[Arm]) -> Finding | None:
    levels, errors = zip(*(_level([v.standing().mean for v in arm.views], arm.views) for arm in arms))  # type: ignore[union-attr]
    views = [v for arm in arms for v in arm.views]
    error = max(errors)
    if max(levels) == min(levels) or all(v.at_ceiling(v.standing().mean) for v in views):  # type: ignore[union-attr]
        return None  # a return at its maximum, which says nothing about the setting
    floor = min((v.random()[0] for v in views if v.spec.get("random")), default=0.0)
    small = axes.hardly_moves(levels, error, error_is_known=error < 0.05 * abs(max(levels) - floor))
    return _told(key, arms, "the return", list(levels), f"error {error:.2g}") if small else None


def _level(values: list[float], views: list[View]) -> tuple[float, float]:
    """Mean over seeds and its error; with one seed the error of its own end."""
    if len(values) > 1:
        return float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))
    last = views[0].standing()
    return values[0], 0.0 if last is None or math.isnan(last.se) else last.se


def _by_metrics(key: str, arms: list[Arm]) -> Finding | None:
    flat: dict[str, list[float]] = {}
    moves = 0
    for name in _shared(arms):
        ends = [[v.curve(name).tail(0.25).values for v in arm.views] for arm in arms]
        levels = [float(np.mean([x.mean() for x in each])) for each in ends]
        error = max(float(np.diff(x).std()) / math.sqrt(2 * len(x)) for each in ends for x in each if len(x) > 1)
        if axes.hardly_moves(levels, error):
            flat[name] = levels
        else:
            moves += 1
    if len(flat) < 3 or len(flat) < moves:
        return None
    name = next((n for n in sorted(flat, key=lambda n: (_rank(n), _spread(flat[n])))), "")
    found = _told(key, arms, name, flat[name], f"as are {len(flat) - 1} more of {len(flat) + moves} metrics")
    found.confidence = "low" if moves else "medium"
    return found


def _rank(name: str) -> bool:
    return not PREFERRED.search(word(name))


def _spread(levels: list[float]) -> float:
    return (max(levels) - min(levels)) / max(abs(x) for x in levels)


def _shared(arms: list[Arm]) -> list[str]:
    """Metrics that all arms have and that vary within a run."""
    views = [v for arm in arms for v in arm.views]
    names = [n for n in views[0].history.columns if not n.startswith(("time/", "data/"))]
    return [n for n in names if all(v.has(n) and _varies(v, n) for v in views)]


def _varies(view: View, name: str) -> bool:
    try:
        values = view.curve(name, rows=8).values
    except Missing:
        return False
    return float(np.ptp(values)) > 1e-12 * max(abs(float(values[0])), 1e-300) and float(np.abs(values).max()) > 0


def _told(key: str, arms: list[Arm], what: str, levels: list[float], formula: str) -> Finding:
    low, high = min(levels), max(levels)
    told = f"{plain_key(key)} from {_short(arms[0].value)} to {_short(arms[-1].value)} hardly moves {what}"
    return Finding(f"{told}: {low:.5g} to {high:.5g}", (high - low) / max(abs(low), abs(high), 1e-300), None,
                   [Evidence(what, [0] * len(levels), levels, f"per arm; {formula}")])  # fmt: skip


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@rule(
    "coupled-random-streams",
    about="evidence",
    algos=(),
    severity="warning",
    scope="folder",
    names=("arms-begin-apart", "draws-coupled"),
)
def coupled_random_streams(groups: list[ViewGroup]) -> Finding | None:
    """
    What: arms of one seed that differ in one setting begin with different parameters: their hashes differ (meta.init;
        for an offset or noise, those of more than the part it is added to), or at step 0 some arms agree in a norm of
        the parameters to 0.01 % and another one is off by more than 0.1 %.
    Why: the setting moved the random draws, so that its arms differ in luck as well; the difference is not its effect.
    Known problems: a setting that shapes the network changes its start rightly; names that say so are left out.
    Refuted by: equal hashes of the initial parameters.
    Try: draw each part from a random stream of its own, and log a hash of the initial parameters.
    """
    asked = False
    for key, arms in slices(groups):
        if SHAPES.search(_own_name(key)) and not _offset(key):
            continue
        hashed = _hashes(arms)
        asked = asked or any(len(found) > 1 for found in hashed.values())
        apart = _apart(key, hashed)
        if apart:
            return apart
        for seed, starts in _starts(arms).items():
            asked = asked or len(starts) > 1
            found = _odd(key, seed, starts)
            if found:
                return found
    if not asked:
        raise Missing("runs of one seed that differ in one setting, with a norm of parameters at step 0")
    return None


def _hashes(arms: list[Arm]) -> dict[str, list[tuple[Any, dict[str, Any]]]]:
    """Seed -> (arm's value, hashes of its first parameters: by part, where they were kept so)."""
    found: dict[str, list[tuple[Any, dict[str, Any]]]] = {}
    for arm in arms:
        for view in arm.views:
            whole, parts = view.meta.get("init"), view.meta.get("init_parts")
            mark = {str(k): str(v) for k, v in parts.items()} if isinstance(parts, dict) else {"": whole}
            if isinstance(whole, str) and whole and not view.meta.get("parent"):
                found.setdefault(str(seed_of(view.history, view.name)), []).append((arm.value, mark))
    return found


def _apart(key: str, hashed: dict[str, list[tuple[Any, dict[str, Any]]]]) -> Finding | None:
    for seed, found in hashed.items():
        for value, mark in found[1:]:
            names = [name for name in mark if mark[name] != found[0][1].get(name)]
            if not names or (_offset(key) and len(names) == 1 < len(mark)):
                continue  # an offset changes the part that it is added to
            which = f" ({', '.join(names[:3])})" if names != [""] and len(names) < len(mark) else ""
            told = f"{found[0][1].get(names[0])} and {mark[names[0]]}"
            where = f"{plain_key(key)} = {found[0][0]} and {value}"
            return Finding(f"seed {seed}: the first parameters{which} differ between {where}", float(len(names)), 0,
                           [Evidence("meta.init", [0], [], told)], confidence="high")  # fmt: skip
    return None


def _own_name(key: str) -> str:
    return key.rpartition(".")[2]


def _offset(key: str) -> bool:
    """An offset or noise that is added to one part may not change how another one begins."""
    return bool(re.search(r"offset|noise", key))


def _starts(arms: list[Arm]) -> dict[str, list[tuple[Any, str, float]]]:
    """Seed -> (arm's value, metric, its first value) of each norm of parameters that is logged at step 0."""
    found: dict[str, list[tuple[Any, str, float]]] = {}
    for arm in arms:
        for view in arm.views:
            mine = [(arm.value, name, value) for name, value in _sizes_at_zero(view)]
            found.setdefault(f"{seed_of(view.history, view.name)}", []).extend(mine)
    return found


def _sizes_at_zero(view: View) -> Iterator[tuple[str, float]]:
    for name, (steps, values) in view.history.columns.items():
        is_size = re.fullmatch(SIZE_OF_PARAMETERS, word(name)) and not NO_PARAMETERS.search(word(name))
        if is_size and len(steps) and steps[0] == 0 and np.isfinite(values[0]):
            yield name, float(values[0])


def _odd(key: str, seed: str, starts: list[tuple[Any, str, float]]) -> Finding | None:
    for name in dict.fromkeys(name for _, name, _ in starts):
        mine = [(value, x) for value, n, x in starts if n == name]
        usual = float(np.median([x for _, x in mine]))
        same = [v for v, x in mine if abs(x - usual) <= 1e-4 * abs(usual)]
        odd = [(v, x) for v, x in mine if abs(x - usual) > 1e-3 * abs(usual)]
        if len(same) >= 2 and odd:
            return Finding(f"seed {seed}: {name} begins at {odd[0][1]:.5g} with {plain_key(key)} = {odd[0][0]}, at"
                           f" {usual:.5g} in {len(same)} other arms", abs(odd[0][1] / usual - 1), 0,
                           [Evidence(name, [0] * len(mine), [x for _, x in mine], f"per {plain_key(key)}")],
                           confidence="high")  # fmt: skip
    return None


# ---- What the folder as a whole can tell


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
    found = [each for each in seen(groups) if len(each.axes) >= 2]
    if not found:
        raise Missing("configs of one task that differ in two to four settings")
    for each in found:
        pairs = [pair for pair in axes.aliased(each.cells) if not _derived(each, *pair)]
        if pairs:
            a, b = (plain_key(key) for key in pairs[0])
            more = f" (and {len(pairs) - 1} more pairs)" if len(pairs) > 1 else ""
            told = "; ".join(_told_point(point, pairs[0]) for point in each.points[:4])
            said = (
                f"{a} and {b} change only together in {len(each.points)} configs{more}: what either does cannot be told"
            )
            return Finding(said, float(len(pairs)), None, [Evidence(a, [], [], told)],
                           [f"run {a} alone at a value of the other arm"])  # fmt: skip
    return None


def _derived(found: Seen, a: str, b: str) -> bool:
    """One is computed from the other: equal, or of a constant ratio or product."""
    pairs = [(p[a], p[b]) for p in found.points if a in p and b in p]
    if not all(isinstance(x, (int, float)) and not isinstance(x, bool) for pair in pairs for x in pair):
        return False
    ratios, products = [x / y if y else math.nan for x, y in pairs], [x * y for x, y in pairs]
    return any(max(each) - min(each) <= 1e-6 * abs(max(each)) for each in (ratios, products) if len(set(pairs)) > 1)


def _told_point(point: dict[str, Any], keys: tuple[str, ...]) -> str:
    return " ".join(f"{plain_key(k)}={_short(point.get(k))}" for k in keys)


@rule("incomplete-cells", about="evidence", algos=(), scope="folder")
def incomplete_cells(groups: list[ViewGroup]) -> Finding | None:
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
    grids = [] if planned else [g for g in seen(groups) if len(g.groups) >= 3]
    if not planned and not grids:
        raise Missing("a sweep's plan, or three configs of one task that differ in a few settings")
    if any(v.state == "running" for v in views):
        raise Missing("a sweep that has come to its end (runs are still going)")
    found = [_of_plan(each) for each in planned] + [_of_grid(each) for each in grids]
    return next((each for each in found if each is not None), None)


def _of_plan(found: Filled) -> Finding | None:
    n, done = found.plan.cells, found.whole
    if len(done) >= n:
        return None
    broken = [f"{v.name.rpartition('/')[2]} ended at step {v.last_step:,}"
              + (f" of {v.planned:,.0f}" if v.planned is not None else "") for v in found.broken]  # fmt: skip
    said = f"; {broken[0]}" + (f" (and {len(broken) - 1} more)" if len(broken) > 1 else "") if broken else ""
    return Finding(f"{len(done):,} of {n:,} planned cells have a whole run, {n - len(found.there):,} have none{said}",
                   1 - len(done) / n, None, [Evidence("cells", [], [float(len(done)), float(n)],
                   f"whole and planned, by {found.plan.source.name}")], confidence="high")  # fmt: skip


def _of_grid(found: Seen) -> Finding | None:
    gone = axes.missing(found.axes, found.points)
    size = len(found.points) + len(gone)
    grid = len(found.axes) >= 2 and gone and len(found.points) * 2 > size and not axes.one_at_a_time(found.cells)
    if grid:
        told = _told_point(gone[0], tuple(found.axes))
        keys = ", ".join(map(plain_key, found.axes))
        shown = Evidence("cells", [], [float(len(found.points)), float(size)], "configs, and combinations of values")
        said = f"{len(gone)} of {size} combinations of {keys} have no run, such as {told}"
        return Finding(said, len(gone) / size, None, [shown])
    return _of_seeds(found)


def _of_seeds(found: Seen) -> Finding | None:
    missing = seeds_missing(found)
    if missing and len(missing) * 2 < len(found.points):
        at, seeds = next(iter(missing.items()))
        told = f"{_told_point(found.points[at], tuple(found.axes))}: seed {', '.join(seeds[:5])}"
        shown = Evidence("seeds", [], [float(len(s)) for s in missing.values()], "missing per config")
        return Finding(f"{len(missing)} of {len(found.points)} configs lack seeds that the others have run to the end,"
                       f" such as {told}", len(missing) / len(found.points), None, [shown])  # fmt: skip
    return None


@rule("sweep-cost", about="operation", algos=(), scope="folder")
def sweep_cost(groups: list[ViewGroup], least: float = 86_400.0) -> Finding | None:
    """
    What: the cells that a sweep's plan still asks for will take more than a day, at the time a cell has taken so far.
    Why: a grid grows with the product of its axes; most of it is often planned without having been added up.
    Known problems: runs that go on in parallel or on faster machines are not foreseen.
    Refuted by: more workers than the finished runs had.
    Try: sweep fewer values, drop an inert axis, or draw a few points of the same box (`method: sobol`).
    """
    found = filled(groups)
    if not found:
        raise Missing("a sweep's plan beside the runs")
    timed = [(each, seconds) for each in found if (seconds := each.seconds()) is not None]
    if not timed:
        raise Missing("the time that finished cells took")
    for each, seconds in timed:
        left = each.plan.cells - len(each.whole)
        if left * seconds > least:
            whole_cost = duration(each.plan.cells * seconds)
            said = f"{left:,} of {each.plan.cells:,} planned cells are left at {duration(seconds)} each:"
            shown = Evidence("seconds per cell", [], [seconds], f"of {len(each.whole)} whole runs")
            return Finding(f"{said} {duration(left * seconds)}, {whole_cost} in all", left * seconds, None, [shown])
    return None
