"""Does a number of a write-up stand in the run, as what and where it is said to? Held against a row, or a column."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

import numpy as np

from relab.health.curve import Curve
from relab.notebook.check import course, readings, settings
from relab.notebook.check import words as w
from relab.notebook.check.claim import Claim
from relab.notebook.check.record import RunRecord, far, fits, reach
from relab.notebook.check.verdict import Checked
from relab.notebook.check.wording import Number
from relab.record import glossary

CLEARLY = 3.0
LEVELS: dict[str, Callable[[Curve], float]] = {  # what a column of a table of metrics holds
    "last": lambda c: c.last, "low": lambda c: float(c.values.min()), "peak": lambda c: float(c.values.max()),
    "first": lambda c: float(c.values[0]),
}  # fmt: skip
RETURNS = {"eval/return_det": "det", "eval/return_sampled": "sampled"}


def value(claim: Claim, record: RunRecord) -> Checked:
    one, names = claim.numbers[0], claim.names
    key = next((k for k in names.keys if settings.is_quoted(record.settings[k], one)), None)
    if key:
        return Checked(claim, "matched", f"the setting {key}")
    if not names.columns or (claim.setting and not claim.role and claim.step is None):
        return _setting(claim, record)
    if claim.role == "slope":
        return _slope(claim, record)
    if claim.bound:
        return course.bound(claim, record)
    if claim.step is not None and (wrong := _not_the_extreme(claim, record)) is not None:
        return wrong
    if claim.step is not None and (checked := _at_step(claim, record)) is not None:
        return checked
    return _anywhere(claim, record)


def _setting(claim: Claim, record: RunRecord) -> Checked:
    """Also against a curve of that name, which may have been annealed."""
    one = claim.numbers[0]
    if not claim.firm:
        return (
            _anywhere(claim, record)
            if claim.names.columns
            else Checked(claim, says=settings.shown(record, claim.names.keys))
        )
    for column in claim.names.columns:
        v = record.curves[column].values
        if fits(one, float(v[0])) or fits(one, float(v[-1])):
            return Checked(claim, "matched", f"{column}: first or last")
    return settings.differs(claim, record)


def _at_step(claim: Claim, record: RunRecord) -> Checked | None:
    """Held against the row of the quoted step and those beside it; None where no column has one."""
    one, step = claim.numbers[0], claim.step
    assert step is not None  # asked of claims with a step only
    rows = {c: v for c in claim.names.columns if (v := record.at(c, step)) is not None}
    hit = next((c for c, v in rows.items() if fits(one, v)), None) or next(
        (c for c in claim.names.columns if record.near(c, step, one)), None
    )
    if hit:
        return Checked(claim, "matched", f"{hit} at {record.axis_word(hit)} {step.shown}")
    if not rows and any(record.counts(c, step) for c in claim.names.columns):
        return course.in_span(claim, record) or Checked(claim, says=f"there is no row at {step.shown}")
    if not rows:
        return None
    column, there = next(iter(rows.items()))
    every = [c for c in record.alike(claim.word, claim.names.columns) if record.row(c, step) is not None]
    if not claim.firm or not all(_off_at(claim, record, c) for c in every):
        return Checked(claim, says=f"{column} is {there:.4g} there")
    if one.digits > 1 and (other := record.anywhere(one, claim.word, step)):
        return Checked(claim, "matched", f"{other} at that step, under another name")
    return _other_step(claim, record, list(rows), there)


def _off_at(claim: Claim, record: RunRecord, column: str) -> bool:
    """Whether the number is none that could be read off the curve near the quoted step."""
    step, curve = claim.step, record.curves[column]
    assert step is not None  # as above
    row = record.row(column, step)
    width = max(step.number.unit, 0.02 * float(curve.steps[-1] - curve.steps[0])) if step.number.unit > 1 else 0.0
    width = 0.1 * float(curve.steps[-1]) if step.axis == "share" or step.number.hedged else width
    beside = np.flatnonzero(np.abs(curve.steps - curve.steps[row or 0]) <= width)
    reach = record.beside(column, step)
    spans = [readings.around(curve, int(i), reach) for i in (beside[0], row or 0, beside[-1])]
    some = spans[0].over(spans[1]).over(spans[2]).over(readings.span(curve.values[beside]))
    if claim.role == "last":  # `final return at 20k`: either may be meant
        some = some.over(readings.last(curve))
    return readings.beyond(claim.numbers[0], some, _size(curve))


def _size(curve: Curve) -> float:
    """How far most of a curve spreads."""
    return float(np.subtract(*np.percentile(curve.values, [90, 10]))) if len(curve) > 1 else 0.0


def _other_step(claim: Claim, record: RunRecord, columns: list[str], there: float) -> Checked:
    one, step = claim.numbers[0], claim.step
    assert step is not None  # as above
    at_step = f"{columns[0]} is {there:.4g} at {record.axis_word(columns[0])} {step.shown}"
    for column in columns:
        curve = record.curves[column]
        rows = [i for i, v in enumerate(curve.values) if fits(one, float(v))]
        if rows and one.digits > 1:
            where = f"{record.axis_word(column)} {int(curve.steps[rows[0]]):,}"
            return Checked(claim, "contradicted", f"{one.text} stands at {where}; {at_step}", "another-step")
    return Checked(claim, "contradicted", at_step, "number-differs")


def _anywhere(claim: Claim, record: RunRecord) -> Checked:
    """Held against the whole column: as what does the number stand there? A step that was not logged could hold it."""
    one, firm = claim.numbers[0], claim.firm and claim.step is None
    tags = {c: column_tags for c in claim.names.columns if (column_tags := record.stands_for(c, one))}
    if firm and (wrong := _role_differs(claim, record, tags)):
        return wrong
    if tags:
        column = next(iter(tags))
        return Checked(claim, "matched", f"{column}: {', '.join(tags[column][:2])}")
    every = [record.curves[c] for c in record.alike(claim.word, claim.names.columns)]
    if firm and all(_out_of_range(one, curve) for curve in every):
        ranges = "; ".join(f"{c.name} goes from {c.values.min():.4g} to {c.values.max():.4g}" for c in every[:2])
        return Checked(claim, "contradicted", f"{ranges}, last {every[0].last:.4g}", "number-nowhere")
    if one.digits > 1 and (other := record.anywhere(one, claim.word)):
        return Checked(claim, says=f"not in {claim.names.columns[0]}; {other} has such a value")
    return Checked(claim, says=f"no row of {claim.names.columns[0]} has this value")


def _role_differs(claim: Claim, record: RunRecord, tags: dict[str, list[str]]) -> Checked | None:
    """A peak that is none, a final value that is not the last, a peak that is quoted as the result."""
    if claim.role in ("peak", "low", "best"):
        return _not_the_extreme(claim, record)
    if claim.role in ("last", "first", "mean"):
        return _not_the_end(claim, record, tags)
    if claim.role == "result" and tags and not w.QUALIFIED.search(sentence_of(claim)):
        return _peak_as_result(claim, record, tags)
    return None


def _is_earned(name: str) -> bool:
    return name.startswith("return/") or "return" in name or "success" in name


def _curves(claim: Claim, record: RunRecord) -> list[Curve]:
    """What a firm claim is held against: every column it can mean; none where one is too short to judge."""
    role = "peak" if claim.role == "best" else claim.role
    every = [record.curves[c] for c in record.alike(claim.word, claim.names.columns, role)]
    own = [c for c in every if c.name in claim.names.columns]
    return [c for c in every if len(c) > 2] if all(len(c) > 2 for c in own) else []


def _not_the_extreme(claim: Claim, record: RunRecord) -> Checked | None:
    """Highest and lowest by their names; the best may be either, where the glossary does not say."""
    one, curves = claim.numbers[0], _curves(claim, record)
    if claim.role not in ("peak", "low", "best") or not curves or not claim.firm:
        return None
    wanted = {"peak": ("peak",), "low": ("low",), "best": ("peak", "low")}[claim.role]
    if claim.role == "best" and all(_is_earned(c.name) for c in curves):
        wanted = ("peak",)  # of a loss people call either the best
    spans = [(c, readings.ROLES[role](c)) for c in curves for role in wanted]
    if not all(readings.beyond(one, some, _size(c)) for c, some in spans):
        return course.other_time(claim, record, wanted)
    first, low = curves[0], wanted == ("low",)
    row = int(np.argmin(first.values) if low else np.argmax(first.values))
    word, at = "lowest" if low else "highest", int(first.steps[row])
    says = f"the {word} of {first.name} is {first.values[row]:.4g}, at {record.axis_word(first.name)} {at:,}"
    return Checked(claim, "contradicted", says, "not-the-peak")


def _not_the_end(claim: Claim, record: RunRecord, tags: dict[str, list[str]]) -> Checked | None:
    """A final, first or mean value that no reading of the curve gives."""
    one, curves = claim.numbers[0], _curves(claim, record)
    if not curves or not all(readings.beyond(one, readings.ROLES[claim.role](c), _size(c)) for c in curves):
        return None
    first = curves[0]
    if claim.role == "mean":
        return Checked(
            claim, "contradicted", f"the mean of {first.name} is {first.values.mean():.4g}", "number-differs"
        )
    hit = next((c for c in curves if c.name in tags), None)
    if claim.role == "last" and hit is not None and _best(hit) in tags[hit.name]:
        return Checked(claim, "contradicted", _ending(one, hit, tags), "peak-as-result")
    if claim.role == "last" and (noisy := [c for c in curves if _near_noise(one, c)]):
        return Checked(claim, says=f"{noisy[0].name} ends at {noisy[0].last:.4g}")
    edge = "ends" if claim.role == "last" else "starts"
    says = f"{first.name} {edge} at {LEVELS[claim.role](first):.4g}"
    says += f"; {one.text} is its {', '.join(tags[hit.name][:2])}" if hit is not None else ""
    return Checked(claim, "contradicted", says, "not-the-last" if claim.role == "last" else "number-differs")


def _near_noise(one: Number, curve: Curve) -> bool:
    """Whether the last rows scatter so much that the number may be one of them."""
    tail = curve.values[-max(3, len(curve) // 10) :]
    return bool(tail.min() <= one.value <= tail.max()) and len(curve) > 30


def _ending(one: Number, hit: Curve, tags: dict[str, list[str]]) -> str:
    return f"{hit.name} ends at {hit.last:.4g}; {one.text} is its {', '.join(tags[hit.name][:2])}"


def _peak_as_result(claim: Claim, record: RunRecord, tags: dict[str, list[str]]) -> Checked | None:
    """Not where the end differs by no more than three times the noise."""
    one = claim.numbers[0]
    curves = [record.curves[c] for c in claim.names.columns if len(record.curves[c]) > 2]
    every = {tag for column_tags in tags.values() for tag in column_tags}
    if not curves or any(tag.startswith(("last", "mean")) for tag in every):
        return None
    if not all(far(one, c.last) and abs(c.last - one.value) > CLEARLY * noise(record, c) for c in curves):
        return None
    hit = next(c for c in curves if c.name in tags)
    return (
        Checked(claim, "contradicted", _ending(one, hit, tags), "peak-as-result")
        if _best(hit) in tags[hit.name]
        else None
    )


def _best(curve: Curve) -> str:
    metric = glossary.METRICS.get(curve.name)
    return "low" if metric is not None and metric.direction < 0 else "peak"


def noise(record: RunRecord, curve: Curve) -> float:
    """The error of an evaluation's mean where episodes are known, else how much a row differs from the next."""
    mode = RETURNS.get(curve.name)
    if mode and record.view.has_evals(mode):
        errors = [e.se for e in record.view.returns(mode) if math.isfinite(e.se)]
        if errors:
            return float(np.median(errors))
    return float(np.abs(np.diff(curve.values)).mean()) if len(curve) > 1 else 0.0


def _out_of_range(one: Number, curve: Curve) -> bool:
    low, high = float(curve.values.min()), float(curve.values.max())
    if one.percent and max(abs(low), abs(high)) <= 1.5:
        low, high = low * 100, high * 100
    margin = max(3 * reach(one), 0.1 * (high - low), 0.02 * max(abs(low), abs(high)))
    return one.value < low - margin or one.value > high + margin


def _slope(claim: Claim, record: RunRecord) -> Checked:
    """A slope over the last rows; which rows is not said, so the usual numbers of them are tried."""
    one = claim.numbers[0]
    for column in claim.names.columns:
        curve = record.curves[column]
        for k in (5, 10, 20, len(curve)):
            x, y = curve.steps[-k:].astype(float), curve.values[-k:]
            if len(x) > 1 and np.ptp(x) > 0 and fits(one, float(np.polyfit(x - x.mean(), y, 1)[0])):
                return Checked(claim, "matched", f"slope of {column} over the last {k} rows")
    return Checked(claim, says="the slope over the last 5, 10, 20 or all rows is another")


def in_range(claim: Claim, record: RunRecord) -> Checked:
    """A range is matched where the end of the curve lies in it, or both its ends stand in the column."""
    a, b = claim.numbers
    for column in claim.names.columns:
        v = record.curves[column].values
        ends = [("last", v[-1]), *((f"mean of the last {k}", v[-k:].mean()) for k in (5, 10) if len(v) > k)]
        for name, level in ends:
            if min(a.value, b.value) - a.unit < level < max(a.value, b.value) + b.unit:
                return Checked(claim, "matched", f"{column}: {name} {level:.4g}")
        if all(record.stands_for(column, n) for n in (a, b)):
            return Checked(claim, "matched", f"{column}: both stand in it")
    return Checked(claim, says=f"the end of {claim.names.columns[0]} lies elsewhere" if claim.names.columns
                   else settings.shown(record, claim.names.keys))  # fmt: skip


def sentence_of(claim: Claim) -> str:
    """The sentence that a number stands in."""
    at = claim.numbers[0].start
    before, behind = re.split(r"[.;]\s", claim.whole[:at])[-1], re.split(r"[.;]\s", claim.whole[at:])[0]
    return before + behind
