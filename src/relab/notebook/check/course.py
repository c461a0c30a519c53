"""Did a curve go as a write-up says? Bounds it kept or crossed, changes from one value to another, directions."""

from __future__ import annotations

import numpy as np

from relab.health.curve import Curve
from relab.notebook.check import readings
from relab.notebook.check import words as w
from relab.notebook.check.claim import Claim
from relab.notebook.check.record import RunRecord, fits
from relab.notebook.check.verdict import Checked
from relab.notebook.check.wording import Number
from relab.record import levels

RETURNS = ("eval/return_det", "eval/return_sampled", "return/mean", "return/mean_100")
OFTEN = 0.1  # share of the rows beyond a bound that was said to be kept, for it not to have been
LATE = 0.2  # share of the run by which a step may be misread off a plot


# ---- Bounds


def bound(claim: Claim, record: RunRecord) -> Checked:
    """`never exceeded 0.2`, `stayed below`, `reached 475 by 200k`, `fell under 0.1`, `ended above`."""
    side = {"reach": "peak", "fall": "low", "never above": "peak", "never below": "low"}.get(claim.bound, "")
    columns = record.alike(claim.word, claim.names.columns, side if claim.bound in ("reach", "fall") else "")
    if claim.step is not None and claim.bound not in ("is above", "is below"):
        columns = [c for c in columns if record.place(c, claim.step) is not None]
    curves = {c: _part(claim, record, c) for c in columns}
    curves = {c: part for c, part in curves.items() if len(part)}
    if not curves:
        return Checked(claim, says="there are no rows at that step")
    own = next((c for c in claim.names.columns if c in curves), next(iter(curves)))
    holds = {c: _holds(claim, record, c, part) for c, part in curves.items()}
    says = _seen(claim, curves[own])
    if any(kept == "yes" for c, kept in holds.items() if c in claim.names.columns):
        return Checked(claim, "matched", says)
    if claim.firm and all(kept == "no" for kept in holds.values()):
        return Checked(claim, "contradicted", says, "bound-crossed" if "never" in claim.bound else "bound-not-reached")
    return Checked(claim, says=says)


def _part(claim: Claim, record: RunRecord, column: str) -> Curve:
    """The rows a bound is about: up to a step for what was reached by then, from it for what was kept."""
    curve, step = record.curves[column], claim.step
    if step is None or claim.bound.startswith("is "):
        return curve
    place = record.place(column, step)
    assert place is not None  # columns without were left out
    slack = max(1.5 * record.spacing(column), step.number.unit, 0.05 * float(curve.steps[-1]))
    if claim.bound in ("reach", "fall", "pass"):
        some = curve.steps <= place[1] + slack
    elif step.relation == "after":
        some = curve.steps >= place[0] + slack
    elif step.relation == "between":
        some = (curve.steps >= place[0] + slack) & (curve.steps <= place[1] - slack)
    else:
        some = curve.steps <= place[1] - slack
    return Curve(curve.name, curve.steps[some], curve.values[some])


def _holds(claim: Claim, record: RunRecord, column: str, part: Curve) -> str:
    """yes, no, or unclear."""
    one, v = _scaled(claim.numbers[0], part), part.values
    slack = _slack(one, part)
    if claim.bound == "pass" or (claim.bound == "reach" and one.value < readings.first(record.curves[column]).low):
        near = v.min() - one.unit <= one.value <= v.max() + one.unit
        return "yes" if near else "no" if one.value < v.min() - slack or one.value > v.max() + slack else "unclear"
    if claim.bound == "reach":
        return "yes" if v.max() >= one.value - one.unit else "no" if v.max() < one.value - slack else "unclear"
    if claim.bound == "fall":
        return "yes" if v.min() <= one.value + one.unit else "no" if v.min() > one.value + slack else "unclear"
    if claim.bound.startswith("is "):
        return _is_beyond(claim, record, column, one)
    above = v > one.value + slack if claim.bound == "never above" else v < one.value - slack
    if not (v > one.value if claim.bound == "never above" else v < one.value).any():
        return "yes"
    strict = bool(w.NEVER.search(claim.text)) or "once" in claim.text.lower()
    return "no" if above.any() and (strict or above.mean() > OFTEN) else "unclear"


def _is_beyond(claim: Claim, record: RunRecord, column: str, one: Number) -> str:
    """`ended above 450`, `was below 0.1 at 40k`."""
    curve = record.curves[column]
    if claim.role in readings.ROLES and claim.role != "mean":
        some = readings.ROLES[claim.role](curve)
    else:
        row = record.row(column, claim.step) if claim.step is not None else None
        if row is None:
            return "unclear"
        some = readings.around(curve, row, 2)
    slack = _slack(one, curve)
    if claim.bound == "is above":
        return "yes" if some.low >= one.value else "no" if some.high < one.value - slack else "unclear"
    return "yes" if some.high <= one.value else "no" if some.low > one.value + slack else "unclear"


def _slack(one: Number, curve: Curve) -> float:
    share = 0.15 if one.hedged else 0.03
    return max(one.unit, share * abs(one.value), 0.02 * float(np.ptp(curve.values)))


def _scaled(one: Number, curve: Curve) -> Number:
    """A percentage of a share as the share."""
    if one.percent and len(curve) and float(np.abs(curve.values).max()) <= 1.5:
        return Number(one.text, one.value / 100, one.unit / 100, one.start, one.end, one.hedged)
    return one


def _seen(claim: Claim, part: Curve) -> str:
    low, high = int(np.argmin(part.values)), int(np.argmax(part.values))
    return (f"{part.name} goes from {part.values[low]:.4g} (step {int(part.steps[low]):,}) to {part.values[high]:.4g}"
            f" (step {int(part.steps[high]):,}) in these {len(part)} rows")  # fmt: skip


# ---- When


def other_time(claim: Claim, record: RunRecord, wanted: tuple[str, ...]) -> Checked | None:
    """The peak is as quoted; was it when the text says? Any row as high as a smoothed curve's peak may be meant."""
    if claim.step is None or len(wanted) != 1:
        return None
    says = ""
    for column in claim.names.columns:
        curve, place = record.curves[column], record.place(column, claim.step)
        if place is None or len(curve) < 5:
            return None
        some = readings.ROLES[wanted[0]](curve)
        slack = 0.02 * float(np.ptp(curve.values))
        high = curve.values >= some.low - slack if wanted[0] == "peak" else curve.values <= some.high + slack
        steps = curve.steps[high]
        reach = LATE * float(curve.steps[-1] - curve.steps[0]) + claim.step.number.unit
        if bool(((steps >= place[0] - reach) & (steps <= place[1] + reach)).any()):
            return None
        there = record.at(column, claim.step)
        now = "" if there is None else f"; {column} is {there:.4g} at {claim.step.shown}"
        says = says or f"the {wanted[0]} stands at {record.axis_word(column)} {int(steps[0]):,}{now}"
    return Checked(claim, "contradicted", says, "another-step") if says else None


def in_span(claim: Claim, record: RunRecord) -> Checked | None:
    """A number that is said of a span of steps: contradicted where the curve was never near it in there."""
    if claim.step is None or claim.step.relation not in ("between", "until"):
        return None
    parts = [record.window(c, claim.step) for c in record.alike(claim.word, claim.names.columns)]
    parts = [part for part in parts if len(part) > 2]
    if not claim.firm or not parts:
        return None
    one = claim.numbers[0]
    wide = [readings.Span(float(p.values.min()), float(p.values.max())) for p in parts]
    if not all(readings.beyond(one, some, float(np.ptp(p.values))) for some, p in zip(wide, parts)):
        return None
    says = f"{parts[0].name} goes from {wide[0].low:.4g} to {wide[0].high:.4g} there"
    return Checked(claim, "contradicted", says, "number-differs")


def moment(claim: Claim, record: RunRecord) -> Checked:
    """`the best checkpoint was at step 40k`, without its value."""
    wrong = other_time(claim, record, ("low",) if claim.role == "low" else ("peak",))
    if wrong is not None:
        return wrong if claim.firm else Checked(claim, says=wrong.says)
    return Checked(claim, "matched", f"{claim.names.columns[0]} is at its {claim.role} near there")


def solved(claim: Claim, record: RunRecord) -> Checked:
    """Whether a return came to the level that Gymnasium calls solved; unmatched where there is none."""
    level = levels.solved(str(record.settings.get("env.name") or ""))
    names = [name for name in RETURNS if name in record.curves and len(record.curves[name]) > 2]
    if level is None or not names:
        return Checked(claim, says="no level is known that counts as solved")
    best = max(readings.peak(record.curves[name]).high for name in names)
    end = min(readings.last(record.curves[name]).low for name in names)
    says = f"solved is {level:g}; the best of {', '.join(names)} is {best:.4g}, the end {end:.4g}"
    slack = 0.03 * abs(level)
    wrong = best < level - slack if claim.role == "yes" else end > level + slack / 3
    right = end >= level if claim.role == "yes" else best < level
    if claim.firm and wrong:
        return Checked(claim, "contradicted", says, "bound-not-reached" if claim.role == "yes" else "bound-crossed")
    return Checked(claim, "matched" if right else "unmatched", says)


# ---- From one value to another


def from_to(claim: Claim, record: RunRecord) -> Checked:
    """`fell from A to B`: with a span of steps at its ends, else from the start to the end or an extreme."""
    a, b = claim.numbers
    columns = record.alike(claim.word, claim.names.columns)
    ways = [_from_to(claim, record, c, a, b) for c in columns]
    first = record.curves[claim.names.columns[0]]
    says = f"{first.name} starts at {first.values[0]:.4g}, ends at {first.last:.4g}"
    says += f", and lies between {first.values.min():.4g} and {first.values.max():.4g}"
    if ways and all(ways):
        return Checked(claim, "contradicted", says, "number-differs")
    return Checked(claim, says="the two numbers do not both stand in one metric of the run")


def _from_to(claim: Claim, record: RunRecord, column: str, a: Number, b: Number) -> bool:
    """Whether a column certainly did not go from A to B."""
    curve, step = record.curves[column], claim.step
    if len(curve) < 4:
        return False
    size = float(np.ptp(curve.values))
    whole = readings.span([curve.values.min(), curve.values.max()])
    if readings.beyond(a, whole, size) or readings.beyond(b, whole, size):
        return True
    if step is not None and step.relation == "between" and (place := record.place(column, step)):
        rows = [int(np.argmin(np.abs(curve.steps - at))) for at in place]
        ends = [readings.around(curve, row, max(1, len(curve) // 33)) for row in rows]
        return any(readings.beyond(n, some, size) for n, some in zip((a, b), ends))
    if step is not None or not _began(a, curve, size):
        return False
    goals = [readings.last(curve), readings.peak(curve), readings.low(curve)]
    return all(readings.beyond(b, some, size) for some in goals) and not any(fits(b, float(v)) for v in curve.values)


def _began(a: Number, curve: Curve, size: float) -> bool:
    return not readings.beyond(a, readings.first(curve), size)


# ---- Directions


def direction(claim: Claim, record: RunRecord) -> Checked:
    """`rose`, `fell`, `unchanged`, by the slope over the whole run, where every column of that name agrees."""
    curves = [record.window(c, claim.step) for c in claim.names.columns]
    rows = 8 if claim.step is None else 5
    if not curves or any(len(c) < rows for c in curves):
        return Checked(claim, says=f"fewer than {rows} rows")
    ways = {_went(curve) for curve in curves}
    first = curves[0]
    course = f"{first.name} goes from {_end(first, 0):.4g} to {_end(first, -1):.4g} (means of the first and last fifth)"
    if ways == {claim.role}:
        return Checked(claim, "matched", course)
    against = {"rise": {"fall"}, "fall": {"rise"}, "flat": {"rise", "fall"}}[claim.role]
    if claim.firm and claim.role not in ways and (ways & against if claim.role != "flat" else ways <= against):
        return Checked(claim, "contradicted", course, "direction-differs")
    return Checked(claim, says=course)


def _rank_correlation(curve: Curve) -> float:
    """Spearman's, of the values with their order: of a decay, which is no straight line."""
    ranks = np.argsort(np.argsort(curve.values, kind="stable"))
    return float(np.corrcoef(np.arange(len(curve)), ranks)[0, 1]) if len(curve) > 2 else 0.0


def _end(curve: Curve, which: int) -> float:
    return float(np.array_split(curve.values, 5)[which].mean())


def _went(curve: Curve) -> str:
    """rise or fall where the slope is clear of its error and the ends differ by a tenth of the span or more."""
    slope, gap = curve.slope(), _end(curve, -1) - _end(curve, 0)
    size = float(np.ptp(curve.values))
    clear = abs(slope.significance) >= 3 or abs(_rank_correlation(curve)) >= 0.8
    if not clear or abs(gap) < 0.3 * size or slope.value * gap <= 0:
        return "flat" if abs(gap) <= 0.05 * max(abs(_end(curve, 0)), 1e-300) else "unclear"
    return "rise" if gap > 0 else "fall"
