"""Do the logged numbers measure anything? Frozen at the start, stopped at a cap, pinned, unread."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from relab.base.numbers import is_number
from relab.health.curve import Curve
from relab.health.foreign import named, plain_key, word
from relab.health.outcome import moved
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View

SIZE_OF_PARAMETERS = r"(.*_)?(w|theta|phi|psi|weights?|params?|parameters?|critic|actor|policy|value|q|head)_norm"
STEPS_OF = r"(delta|step|update|change)_{}|{}_(delta|step|update|change)"
STEP_SIZES = ("alpha_{}", "lr_{}", "{}_lr", "learning_rate_{}", "{}_learning_rate")
NO_PARAMETERS = re.compile(r"(delta|step|update|change|grad|gradient|obs|action|reward|batch|layer)(_|$)")
DISTANCE_TO_TEACHER = r".*(teacher|oracle|optimal)_(error|distance|gap)"
FLAGS = r"(.*_)?converged"
COUNTS = r"(.*_)?(num|n)_iters?|(.*_)?(num|n)_iterations|(.*_)?iters?_used|(.*_)?iterations_used"
VALUES = r"(.*_)?(q|v|critic|value|dream)s?(_mean|_value|_values)?|mean_value"
CAPS = re.compile(r"(^|[._])max_(n_)?iter(s|ations)?$")
EXACT = 1e-9  # of a constant that was written in full
COUNT_WORDS = {"n", "num", "number", "of", "no"}


# ---- Frozen, capped, pinned


@rule("metric-frozen-at-init", about="optimiser", algos=(), severity="warning", names=("lr-over-1000",))
def metric_frozen_at_init(
    view: View, *, done: float = 0.1, moved_by: float = 0.01, travelled_by: float = 0.05
) -> Finding | None:
    """
    What: the size of the parameters is within 1 % of its first value after more than 10 % of the budget, and all
        logged steps together could not have moved them by more than 5 %.
    Why: they are still their random start; whatever else was measured is about an untrained part.
    Known problems: a norm may stand still while the parameters turn; hence their steps, where they are logged.
    Refuted by: steps that add up to more than the norm, or a part that is fixed on purpose.
    Try: compare a step with the norm: `lr` is too small by about the norm over steps times their number.
    """
    sizes = [c for c in named(view, SIZE_OF_PARAMETERS, rows=10) if not NO_PARAMETERS.search(word(c.name))]
    if not sizes or (view.has("optim/step_rms") and {c.name for c in sizes} == {"optim/param_norm"}):
        raise Missing("a norm of parameters, with the steps it took")
    if _share_done(view) <= done:
        raise Missing(f"{100 * done:g} % of the planned steps")
    for size in sizes:
        finding = _frozen(view, size, moved_by, travelled_by)
        if finding:
            return finding
    return None


def _frozen(view: View, size: Curve, moved_by: float, travelled_by: float) -> Finding | None:
    first = float(size.values[0])
    moved = float(np.abs(size.values - first).max()) / max(abs(first), 1e-300)
    travelled = _travelled(view, size)
    if moved >= moved_by or (travelled is not None and travelled >= travelled_by * abs(first)) or first == 0:
        return None
    start, formula = _analytic_start(view, first), f"|x - x_start| / x_start <= {moved:.2g}"
    origin = f", drawn with {start}" if start else ""
    steps = "" if travelled is None else f"; all its steps add up to {travelled:.2g}"
    teacher = named(view, DISTANCE_TO_TEACHER, rows=10)
    still = [c for c in teacher if abs(c.last - c.values[0]) < moved_by * abs(c.values[0])]
    sure = bool(start) or travelled is not None
    shown = [size.evidence(formula), *(c.evidence(f"within {100 * moved_by:g} % of its start") for c in still)]
    return Finding(f"{size.name} is still {size.last:.4g}, {first:.4g} at the start{origin}{steps}", moved,
                   int(size.steps[0]), shown, _own_step(view, size), confidence="high" if sure else "low",
                   severity=None if sure else "info")  # fmt: skip


def _own_step(view: View, size: Curve) -> list[str]:
    """The advice, where a setting is named after the part that stands still; else the rule's own, about `lr`."""
    part = word(size.name).removesuffix("_norm")
    names = {key.rpartition(".")[2] for key in view.config}
    own = next((name for form in STEP_SIZES if (name := form.format(part)) in names), None)
    return [f"compare a step with the norm: `{own}` is too small by about the norm over steps times their number."
            ] if own else []  # fmt: skip


def _travelled(view: View, size: Curve) -> float | None:
    """The most that the logged steps, and those between the rows, can have moved the parameters together."""
    own = word(size.name)
    names = "|".join(re.escape(name) for name in (own, own.removesuffix("_norm")))
    steps = named(view, STEPS_OF.format(f"({names})", f"({names})"), rows=3)
    between = _updates_between(view, steps[0]) if steps else None
    return None if between is None else float(np.abs(steps[0].values).sum()) * between


def _updates_between(view: View, curve: Curve) -> float | None:
    """Updates from one row to the next; None where that is not known."""
    if view.history.axes.get(curve.name) in ("iteration", "updates"):
        counts = curve.steps
    elif view.has("data/iteration") and len(view.curve("data/iteration").values) == len(curve.values):
        counts = view.curve("data/iteration").values
    else:
        return None
    return max(float(np.median(np.diff(counts))), 1.0)


def _analytic_start(view: View, first: float, least_dim: int = 4, deviations: float = 3.0) -> str:
    """`0.1 * sqrt(2048)` where an init scale and a size in the config give the first value, up to its luck.

    The norm of n normal numbers has a relative standard deviation of 1 / sqrt(2 n).
    """
    numbers = {k: v for k, v in view.config.items() if is_number(v)}
    scales = [v for k, v in numbers.items() if re.search(r"init_(scale|std|sd)$|(scale|std)_init$", k) and v > 0]
    dims = [v for k, v in numbers.items() if re.search(r"(dim|size|features|width|hidden)$", k) and v >= least_dim]
    for scale, dim in itertools.product(scales, dims):
        if abs(scale * math.sqrt(dim) / first - 1) < deviations / math.sqrt(2 * dim):
            return f"{scale:g} * sqrt({dim:g}) = {scale * math.sqrt(dim):.4g}"
    return ""


def _share_done(view: View) -> float:
    return view.last_step / view.planned if view.planned else 1.0


@rule("probe-hit-cap", about="evidence", algos=(), severity="warning")
def probe_hit_cap(view: View, *, share: float = 0.9, rows: int = 3) -> Finding | None:
    """
    What: an iterative probe or solver did not converge, or used up its largest number of iterations, in at least 90 %
        of its rows.
    Why: what it returned is where it was stopped, not the answer; it bounds the answer at best.
    Known problems: a probe with a fixed number of iterations has no cap; hence a setting `max_iters`, or `converged`.
    Refuted by: the result no longer changing over the last iterations.
    Try: raise the cap or loosen the tolerance; until then call the number a lower bound.
    """
    caps = {float(v) for k, v in view.config.items() if CAPS.search(k) and isinstance(v, (int, float))}
    table = _probe_columns(view)
    seen = False
    for name, steps, values in table:
        if not len(values):
            continue
        if re.fullmatch(FLAGS, word(name)):
            bad, failure = values == 0, "did not converge"
        elif re.fullmatch(COUNTS, word(name)) and caps:
            bad, failure = np.isin(values, list(caps)), f"took all of its {values.max():g} iterations"
        else:
            continue
        seen = True
        if len(values) >= rows and bad.mean() >= share:
            shown = Curve(name, steps, values).evidence("converged = 0" if "not" in failure else "= max_iters")
            return Finding(f"{name}: the probe {failure} in {int(bad.sum())} of {len(bad)} rows", float(bad.mean()),
                           int(steps[np.flatnonzero(bad)[0]]), [shown], confidence="high")  # fmt: skip
    if not seen:
        raise Missing("a probe with `converged`, or a count of iterations and its cap")
    return None


def _probe_columns(view: View) -> list[tuple[str, np.ndarray, np.ndarray]]:
    """Numbers and flags of the probes' rows and of the columns."""
    points: dict[str, list[tuple[int, float]]] = {}
    for row in view.history.probes:
        step, kind = row.get("step"), str(row.get("probe") or row.get("kind") or row.get("name") or "probe")
        inner = row.get("values")
        for key, value in _flat(inner if isinstance(inner, dict) else row):
            number = _number(value)
            if isinstance(step, int) and number is not None and key != "step":
                points.setdefault(f"{kind}/{key}", []).append((step, number))
    rows = [(n, np.array([s for s, _ in p]), np.array([v for _, v in p])) for n, p in points.items()]
    return rows + [(n, c.steps, c.values) for n, c in view.history.columns.items()]


def _flat(row: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    for key, value in row.items():
        yield from _flat(value) if isinstance(value, dict) else [(str(key), value)]


def _number(value: Any) -> float | None:
    """Also of a flag that was written as text."""
    if isinstance(value, str) and value.strip().lower() in ("true", "false"):
        return float(value.strip().lower() == "true")
    return float(value) if isinstance(value, (bool, int, float)) else None


@rule("loss-pinned", about="optimiser", algos=())
def loss_pinned(view: View, *, rows: int = 20, tail_share: float = 0.25) -> Finding | None:
    """
    What: a loss stands at exactly one value over its last quarter (at least 20 rows): at 0, at 1, or at a number of the
        config.
    Why: a clamp (free bits, a clip) or a skipped update holds it; no gradient comes out of it.
    Known problems: the loss of a solved tiny task is 0; hence it must have jumped there, or been there always, and the
        return must not have risen.
    Refuted by: the value before the clamp still changing.
    Try: log the value before the clamp; check counters of skipped updates.
    """
    losses = [c for c in named(view, r"(.*_)?(loss|nll)(_.*)?|(.*_)?kl", rows) if not c.name.startswith("optim/")]
    if not losses:
        raise Missing(f"a loss with {rows} rows")
    constants = {k: float(v) for k, v in view.config.items() if is_number(v)}
    for loss in losses:
        last = max(rows, int(len(loss) * tail_share))
        tail = Curve(loss.name, loss.steps[-last:], loss.values[-last:])
        level = tail.last
        if level == 0 and ("kl" in word(loss.name) or _rounded(loss) or _nothing_left(view)):
            continue  # no update, or one too small for the digits shown
        if np.ptp(tail.values) > EXACT * max(1.0, abs(level)) or _faded(loss, level):
            continue
        key = next((k for k, v in constants.items() if v == level and level != 0 and _is_clamp(k)), None)
        if level in (0.0, 1.0) or key:
            why = f" = {key}" if key else ""
            return Finding(f"{loss.name} stands at exactly {level:g}{why}", level,
                           loss.onset(np.abs(loss.values - level) <= EXACT), [loss.evidence("constant")])  # fmt: skip
    return None


def _nothing_left(view: View, errors: float = 3.0) -> bool:
    """Whether a loss of 0 may be right: there is nothing to choose, or the task was learned."""
    try:
        return not view.has_choice or moved(view) > errors
    except Missing:
        return False


def _rounded(loss: Curve, digits: int = 3) -> bool:
    """Whether all values are multiples of 0.001 (or coarser): then 0 is any small number."""
    scaled = loss.values * 10**digits
    return float(np.abs(scaled - np.round(scaled)).max()) < 1e-6


def _is_clamp(key: str) -> bool:
    return bool(re.search(r"free|nats|bits|clip|clamp|min|max|floor|bound", key))


def _faded(loss: Curve, level: float, last_step: float = 0.01) -> bool:
    """Whether it approached the level step by step, as a loss does that has nothing left to learn."""
    away = loss.values[np.abs(loss.values - level) > EXACT]
    return len(away) > 0 and abs(float(away[-1]) - level) < last_step * float(np.abs(away - level).max())


TOP = "value/support_top"  # the last bin of a two-hot critic


@rule("support-ceiling", about="belief", algos=())
def support_ceiling(view: View, *, within: float = 0.01) -> Finding | None:
    """
    What: over the last quarter the critic's value lies within 1 % of the largest number that its output can represent
        (`v_max` of a categorical critic, the last bin of a two-hot one).
    Why: targets above it are cut; the value says where the support ends, not what the policy earns.
    Known problems: a bound that is the true largest value is reached in health by a solved task.
    Refuted by: the largest possible value, reward_high / (1 - gamma), being no larger than the support.
    Try: widen the support; check it again whenever gamma or the reward changes.
    """
    ends = _support(view)
    if not ends:
        raise Missing("the largest value the critic can represent (v_max, or the bins of a two-hot critic)")
    values = [c for c in named(view, VALUES, rows=8) if not re.search(r"loss|error", c.name)]
    values += [view.curve("value/mean", 8)] if view.has("value/mean") else []
    for value, (end, key) in itertools.product(values, ends):
        level = value.median(0.25)
        if abs(level - end) <= within * abs(end) and not _all_there_is(view, end, within):
            return Finding(f"{value.name} is {level:.4g}, the end of its support is {end:.4g} ({key})", level,
                           value.onset(np.abs(value.values - end) <= within * abs(end)),
                           [value.evidence(f"within {100 * within:g} % of {end:.4g}")])  # fmt: skip
    if not values:
        raise Missing("the critic's value")
    return None


def _support(view: View, largest_bin: float = 40) -> list[tuple[float, str]]:
    ends = []
    for key, value in view.config.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value <= 0:
            continue
        if re.search(r"(^|[._])(v_?max|value_max|support_max|q_max)$", key):
            ends.append((float(value), key))
        elif re.search(r"(^|[._])(b_end|bins?_end|symlog_max)$", key) and value < largest_bin:
            # bins at symexp(k), end excluded
            ends += [(math.expm1(value - i), f"symexp({value - i:g}), {key} = {value:g}") for i in (0, 1)]
    if view.has(TOP):  # logged by relab's own
        ends.append((float(view.curve(TOP).values[-1]), TOP))
    return ends


def _all_there_is(view: View, end: float, within: float) -> bool:
    high, gamma = view.spec.get("reward_high"), view.config.get("algo.gamma")
    if not isinstance(high, (int, float)) or not isinstance(gamma, float) or gamma >= 1:
        return False
    return end >= (1 - within) * high / (1 - gamma)


# ---- Settings that nobody reads


@rule("unknown-config-key", about="evidence", algos=(), severity="warning")
def unknown_config_key(view: View) -> Finding | None:
    """
    What: two settings of one section have names for the same thing (`n_power_iters`, `power_iters`) and different
        values, and the log shows that only one of them is used; or the program names keys that it did not know.
    Why: the other one is a slip that nobody reads; what was meant to be changed was not.
    Known problems: without the value in the log nothing tells which one counts, and the rule keeps silent.
    Refuted by: the program reading both.
    Try: take the unused key out, and give its value to the one that is read.
    """
    if not view.config:
        raise Missing("the config")
    unknown = view.meta.get("unknown_keys")
    if isinstance(unknown, list) and unknown:
        some = ", ".join(map(str, unknown[:3]))
        return Finding(f"the program does not know {some}", float(len(unknown)), confidence="high")
    constants: dict[str, list[tuple[str, float, int]]] = {}
    for name, _, values in _probe_columns(view):
        if len(values) and np.ptp(values) == 0:
            constants.setdefault(word(name), []).append((name, float(values[0]), len(values)))
    for used, unused in _namesakes(view.config):
        a, b = view.config[used], view.config[unused]
        for name, value, n in constants.get(word(used.rpartition(".")[2]), []):
            if value == a and value != b:
                return Finding(f"`{plain_key(unused)}: {b}` is not read: {name} is {value:g} in all {n} rows, as"
                               f" `{plain_key(used)}` says", float(b), 0, [Evidence(name, [0], [value], f"= {used}")],
                               [f"set {plain_key(used)} to {b}, and remove {plain_key(unused)}"], "high")  # fmt: skip
    return None


def _namesakes(config: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Pairs of numeric settings of one section whose names differ in counting words only."""
    groups: dict[tuple[str, frozenset[str]], list[str]] = {}
    for key, value in config.items():
        if is_number(value):
            section, _, last = key.rpartition(".")
            words = frozenset(re.split(r"[_\-]", last.lower())) - COUNT_WORDS
            groups.setdefault((section, words), []).append(key)
    for keys in groups.values():
        yield from itertools.permutations(keys, 2)
