"""What do the arms of one setting say? Axes without effect, and starts that differ where they should not."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from relab.base.documents import Document
from relab.health.foreign import plain_key, word
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.rules.validity import NO_PARAMETERS, SIZE_OF_PARAMETERS
from relab.health.sweep_cells import factors, short_value, whole
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
    families: dict[str, list[ViewGroup]] = {}
    for group in groups:
        if group.views[0].config:
            families.setdefault(family(group.views[0]), []).append(group)
    for known in families.values():
        points = [factors(g.views[0]) for g in known]
        for key, places in axes.slices(points):
            yield key, [Arm(points[i][key], known[i].views) for i in places]


def family(view: View) -> str:
    """What arms must share though it is no axis: the task, and settings that are lists, such as layers."""
    spec = view.meta.get("spec")
    task = view.config.get("env.name") or (spec.get("env") if isinstance(spec, dict) else None)
    return repr((task, sorted((key, value) for key, value in view.config.items() if isinstance(value, list))))


@rule("inert-axis", about="evidence", algos=(), scope="folder")
def inert_axis(groups: list[ViewGroup], *, values: int = 3, known_to: float = 0.05, metrics: int = 3) -> Finding | None:
    """
    What: a setting was given three or more values, all else equal, and the outcome does not follow it: the arms' range
        is under 1 %, or under two standard errors where these are small; without a return, most metrics are so.
    Why: the axis costs runs and teaches nothing; perhaps the program does not read it.
    Known problems: an effect smaller than the noise of few seeds is not seen; a return at its maximum shows none.
    Refuted by: a metric the setting is meant for that does follow it.
    Try: drop the axis, or widen it by a factor of ten to see whether it does anything.
    """
    comparable = False
    for key, arms in slices(groups):
        ended = [Arm(arm.value, views) for arm in arms if (views := [v for v in arm.views if whole(v)])]
        if len(ended) < values:
            continue
        comparable = True
        scored = all(v.standing() is not None for arm in ended for v in arm.views)
        finding = _by_return(key, ended, known_to) if scored else _by_metrics(key, ended, metrics)
        if finding:
            return finding
    if not comparable:
        raise Missing(f"{values} whole runs that differ in one setting")
    return None


def _by_return(key: str, arms: list[Arm], known_to: float) -> Finding | None:
    levels, errors = zip(*(_level([v.standing().mean for v in arm.views], arm.views) for arm in arms))  # type: ignore[union-attr]
    views = [v for arm in arms for v in arm.views]
    error = max(errors)
    if max(levels) == min(levels) or all(v.at_ceiling(v.standing().mean) for v in views):  # type: ignore[union-attr]
        return None  # a return at its maximum, which says nothing about the setting
    floor = min((v.random()[0] for v in views if v.spec.get("random")), default=0.0)
    known = error < known_to * abs(max(levels) - floor) and not axes.some_differ(levels, errors)
    small = axes.hardly_moves(levels, error, error_is_known=known)
    return _inert(key, arms, "the return", list(levels), f"error {error:.2g}") if small else None


def _level(values: list[float], views: list[View]) -> tuple[float, float]:
    """Mean over seeds and its error; with one seed the error of its own end."""
    if len(values) > 1:
        return float(np.mean(values)), float(np.std(values, ddof=1)) / math.sqrt(len(values))
    last = views[0].standing()
    return values[0], 0.0 if last is None or math.isnan(last.se) else last.se


def _by_metrics(key: str, arms: list[Arm], metrics: int) -> Finding | None:
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
    if len(flat) < metrics or len(flat) < moves:
        return None
    name = next((n for n in sorted(flat, key=lambda n: (_rank(n), _spread(flat[n])))), "")
    finding = _inert(key, arms, name, flat[name], f"as are {len(flat) - 1} more of {len(flat) + moves} metrics")
    finding.confidence = "low" if moves else "medium"
    return finding


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


def _inert(key: str, arms: list[Arm], what: str, levels: list[float], formula: str) -> Finding:
    low, high = min(levels), max(levels)
    message = f"{plain_key(key)} from {short_value(arms[0].value)} to {short_value(arms[-1].value)} hardly moves {what}"
    return Finding(f"{message}: {low:.5g} to {high:.5g}", (high - low) / max(abs(low), abs(high), 1e-300), None,
                   [Evidence(what, [0] * len(levels), levels, f"per arm; {formula}")])  # fmt: skip


@rule(
    "coupled-random-streams",
    about="evidence",
    algos=(),
    severity="warning",
    scope="folder",
    names=("arms-begin-apart", "draws-coupled"),
)
def coupled_random_streams(groups: list[ViewGroup], *, same: float = 1e-4, odd: float = 1e-3) -> Finding | None:
    """
    What: arms of one seed that differ in one setting begin with different parameters: their hashes differ (meta.init;
        for an offset or noise, those of more than the part it is added to), or at step 0 some arms agree in a norm of
        the parameters to 0.01 % and another one is off by more than 0.1 %.
    Why: the setting moved the random draws, so that its arms differ in luck as well; the difference is not its effect.
    Known problems: a setting that shapes the network changes its start rightly; names that say so are left out.
    Refuted by: equal hashes of the initial parameters.
    Try: draw each part from a random stream of its own, and log a hash of the initial parameters.
    """
    comparable = False
    for key, arms in slices(groups):
        if SHAPES.search(_own_name(key)) and not _offset(key):
            continue
        hashed = _hashes(arms)
        comparable = comparable or any(len(hashes) > 1 for hashes in hashed.values())
        apart = _apart(key, hashed)
        if apart:
            return apart
        for seed, starts in _starts(arms).items():
            comparable = comparable or len(starts) > 1
            finding = _odd(key, seed, starts, same, odd)
            if finding:
                return finding
    if not comparable:
        raise Missing("runs of one seed that differ in one setting, with a norm of parameters at step 0")
    return None


def _hashes(arms: list[Arm]) -> dict[str, list[tuple[Any, Document]]]:
    """Seed -> (arm's value, hashes of its first parameters: by part, where they were kept so)."""
    hashes: dict[str, list[tuple[Any, Document]]] = {}
    for arm in arms:
        for view in arm.views:
            whole, parts = view.meta.get("init"), view.meta.get("init_parts")
            mark = {str(k): str(v) for k, v in parts.items()} if isinstance(parts, dict) else {"": whole}
            if isinstance(whole, str) and whole and not view.meta.get("parent"):
                hashes.setdefault(str(seed_of(view.history, view.name)), []).append((arm.value, mark))
    return hashes


def _apart(key: str, hashed: dict[str, list[tuple[Any, Document]]]) -> Finding | None:
    for seed, hashes in hashed.items():
        for value, mark in hashes[1:]:
            names = [name for name in mark if mark[name] != hashes[0][1].get(name)]
            if not names or (_offset(key) and len(names) == 1 < len(mark)):
                continue  # an offset changes the part that it is added to
            which = f" ({', '.join(names[:3])})" if names != [""] and len(names) < len(mark) else ""
            formula = f"{hashes[0][1].get(names[0])} and {mark[names[0]]}"
            where = f"{plain_key(key)} = {hashes[0][0]} and {value}"
            return Finding(f"seed {seed}: the first parameters{which} differ between {where}", float(len(names)), 0,
                           [Evidence("meta.init", [0], [], formula)], confidence="high")  # fmt: skip
    return None


def _own_name(key: str) -> str:
    return key.rpartition(".")[2]


def _offset(key: str) -> bool:
    """An offset or noise that is added to one part may not change how another one begins."""
    return bool(re.search(r"offset|noise", key))


def _starts(arms: list[Arm]) -> dict[str, list[tuple[Any, str, float]]]:
    """Seed -> (arm's value, metric, its first value) of each norm of parameters that is logged at step 0."""
    starts: dict[str, list[tuple[Any, str, float]]] = {}
    for arm in arms:
        for view in arm.views:
            mine = [(arm.value, name, value) for name, value in _sizes_at_zero(view)]
            starts.setdefault(f"{seed_of(view.history, view.name)}", []).extend(mine)
    return starts


def _sizes_at_zero(view: View) -> Iterator[tuple[str, float]]:
    for name, (steps, values) in view.history.columns.items():
        is_size = re.fullmatch(SIZE_OF_PARAMETERS, word(name)) and not NO_PARAMETERS.search(word(name))
        if is_size and len(steps) and steps[0] == 0 and np.isfinite(values[0]):
            yield name, float(values[0])


def _odd(
    key: str, seed: str, starts: list[tuple[Any, str, float]], within: float, beyond: float, arms: int = 2
) -> Finding | None:
    for name in dict.fromkeys(name for _, name, _ in starts):
        mine = [(value, x) for value, n, x in starts if n == name]
        usual = float(np.median([x for _, x in mine]))
        same = [v for v, x in mine if abs(x - usual) <= within * abs(usual)]
        odd = [(v, x) for v, x in mine if abs(x - usual) > beyond * abs(usual)]
        if len(same) >= arms and odd:
            return Finding(f"seed {seed}: {name} begins at {odd[0][1]:.5g} with {plain_key(key)} = {odd[0][0]}, at"
                           f" {usual:.5g} in {len(same)} other arms", abs(odd[0][1] / usual - 1), 0,
                           [Evidence(name, [0] * len(mine), [x for _, x in mine], f"per {plain_key(key)}")],
                           confidence="high")  # fmt: skip
    return None
