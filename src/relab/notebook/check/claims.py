"""Does the record say what a write-up says? Each claim is matched, contradicted, or unmatched; unmatched is not wrong.

A claim is contradicted only when it is firm (notes_read.py), every column its metric can mean disagrees by more than
rounding, and the number stands nowhere else in the record where it could have come from.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from relab.base.numbers import to_int
from relab.health.curve import Curve
from relab.health.foreign import plain_key, theirs
from relab.health.view import ViewGroup
from relab.notebook.check import words as w
from relab.notebook.check.read import Claim
from relab.notebook.check.record import RunRecord, far, fits, reach
from relab.notebook.check.wording import Number
from relab.record import glossary
from relab.record.evaluations import Estimate
from relab.record.state import seed_of

RULES = {
    "another-step": "the number stands in the record, but at another step than the one quoted",
    "number-differs": "the metric has another value at the quoted step, or as what a table calls it",
    "number-nowhere": "the metric never had this value, nor has any other metric of the run",
    "not-the-peak": "the number is quoted as the highest (or lowest), and it is neither",
    "not-the-last": "the number is quoted as the final one, and the run ends at another",
    "peak-as-result": "the best of many rows is quoted as the result, and the run ends clearly away from it",
    "difference-in-noise": "a difference is called a change, and two evaluations differ by as much through luck",
    "direction-differs": "the metric is said to rise, fall or stay, and did not",
    "setting-differs": "a setting is quoted with another value than the run had",
    "count-differs": "episodes or seeds are quoted as asked for, and another number was run",
    "change-not-mentioned": "a setting differs from the parent's, and the text does not say so",
}
BEHIND = 40  # characters
CLEARLY, NOISE_WORDS = 3.0, re.compile(r"(?i)noise|significan|similar|same|噪声|显著|波动")
LEVELS: dict[str, Callable[[Curve], float]] = {  # what a column of a table of metrics holds
    "last": lambda c: c.last, "low": lambda c: float(c.values.min()), "peak": lambda c: float(c.values.max()),
    "first": lambda c: float(c.values[0]),
}  # fmt: skip
RETURNS = {"eval/return_det": "det", "eval/return_sampled": "sampled"}


@dataclass
class Checked:
    """A claim and what the record says to it."""

    claim: Claim
    status: str = "unmatched"  # matched, contradicted, unmatched
    says: str = ""
    slug: str = ""

    def to_json(self) -> dict[str, Any]:
        claim = self.claim
        step = None if claim.step is None else {"axis": claim.step.axis, "step": claim.step.number.value}
        return {
            "line": claim.line, "quote": claim.quote, "kind": claim.kind, "run": claim.run,
            "metric": claim.word or None, "numbers": [n.value for n in claim.numbers], "step": step,
            "status": self.status, "slug": self.slug or None, "says": self.says,
        }  # fmt: skip


@dataclass
class Checker:
    """Holds claims against the runs; groups tell how many seeds there are."""

    records: Mapping[str, RunRecord]
    groups: Iterable[ViewGroup] = ()
    levels: list[tuple[Estimate, str]] = field(default_factory=list)

    def check(self, claim: Claim) -> Checked:
        if claim.run is None:
            return Checked(claim, says="no run is named for it")
        if claim.kind == "count":
            return self.count(claim)
        if not claim.word:
            return Checked(claim, says="no metric stands before it")
        if not claim.names:
            return Checked(claim, says="the record has no metric or setting of that name")
        record = self.records[claim.run]
        if claim.kind == "direction":
            return direction(claim, record)
        if claim.kind == "pair":
            return self.pair(claim, record)
        return value(claim, record)

    # ---- Pairs

    def pair(self, claim: Claim, record: RunRecord) -> Checked:
        """A → B of a setting or a metric, or a range A to B."""
        a, b = claim.numbers
        setting = next((key for key in claim.names.keys for n in (a, b) if _is(record.settings[key], n)), None)
        if setting:
            return Checked(claim, "matched", f"the setting {setting} is {record.settings[setting]}")
        if claim.role == "range":
            return _range(claim, record)
        luck = self.in_noise(claim, record)
        if luck is not None:
            return luck
        both = [c for c in claim.names.columns if all(record.stands_for(c, n) for n in (a, b))]
        if both:
            places = " and ".join(record.stands_for(both[0], n)[0] for n in (a, b))
            return Checked(claim, "matched", f"{both[0]}: {places}")
        if claim.firm and claim.names.keys and not claim.names.columns:
            return _setting_differs(claim, record)
        return Checked(claim, says="the two numbers do not both stand in one metric of the run")

    def in_noise(self, claim: Claim, record: RunRecord) -> Checked | None:
        """Two evaluations (or means over seeds) that are called different, and differ by less than two errors."""
        column = next((c for c in claim.names.columns if c in RETURNS), None)
        text = f"{claim.text} {_behind(claim)}"
        word = w.RISE.search(text) or w.FALL.search(text)
        if column is None or not word or w.SOFT.search(claim.text) or NOISE_WORDS.search(claim.whole):
            return None
        a, b = (self.level(n, record, column) for n in claim.numbers)
        if a is None or b is None or a == b:
            return None
        error = math.hypot(a[0].se, b[0].se)
        if not math.isfinite(error):
            return Checked(
                claim, "matched", f"{a[1]} and {b[1]}; one episode each, so whether they differ is not known"
            )
        gap = abs(a[0].mean - b[0].mean)
        levels = f"{a[0].mean:.4g} ± {a[0].se:.2g} ({a[1]}), {b[0].mean:.4g} ± {b[0].se:.2g} ({b[1]})"
        if gap >= 2 * error:
            return Checked(claim, "matched", f"{levels}: {gap / error:.1f} standard errors apart")
        luck = f"{levels}: {gap:.2g} apart, twice the error is {2 * error:.2g}"
        return Checked(claim, "contradicted", luck, "difference-in-noise")

    def level(self, quoted: Number, record: RunRecord, column: str) -> tuple[Estimate, str] | None:
        """The evaluation, or the mean over seeds, that a number stands for; None where several could be meant."""
        views = [record.view, *(r.view for r in self.records.values() if r is not record)]
        for view in views:
            rows = view.evals(RETURNS[column]) if view.has_evals(RETURNS[column]) else []
            fitting = [e for e in rows if fits(quoted, e.mean)]
            where = "" if view is record.view else f"{view.name} "
            if fitting:
                return (fitting[-1], f"{where}step {fitting[-1].step:,}") if len(fitting) == 1 else None
        return next(((e, name) for e, name in self.seed_means() if fits(quoted, e.mean)), None)

    def seed_means(self) -> list[tuple[Estimate, str]]:
        if not self.levels:
            for group in self.groups:
                ends = [s.mean for view in group.views if (s := view.standing()) is not None]
                if len(ends) > 1:
                    error = float(np.std(ends, ddof=1)) / math.sqrt(len(ends))
                    self.levels.append((Estimate(0, float(np.mean(ends)), error, len(ends)), f"{len(ends)} seeds"))
        return self.levels

    # ---- Counts

    def count(self, claim: Claim) -> Checked:
        record, n = self.records[claim.run or ""], to_int(claim.numbers[0].value)
        if n is None:
            return Checked(claim, says="no count reaches this number")
        return self.seeds(claim, n) if claim.word == "seeds" else episodes(claim, record, n)

    def seeds(self, claim: Claim, n: int) -> Checked:
        group = next((g for g in self.groups if any(v.name == claim.run for v in g.views)), None)
        seeds = {str(seed_of(v.history, v.name)) for v in group.views} if group else set()
        every = {str(seed_of(r.view.history, name)) for name, r in self.records.items()}
        if n in (len(seeds), len(every)):
            return Checked(claim, "matched", f"{n} seeds")
        if claim.firm and len(seeds) > 1 and n > len(every):
            held = f"the folder holds {len(every)} seeds: {', '.join(sorted(every)[:8])}"
            return Checked(claim, "contradicted", held, "count-differs")
        return Checked(claim, says="which runs are counted is not known")


def episodes(claim: Claim, record: RunRecord, n: int) -> Checked:
    """How many episodes an evaluation had; contradicted where the text repeats a setting that the record refutes."""
    had: dict[int, str] = {}
    for name, curve in record.curves.items():
        judged = "eval" in name or "eval" in theirs(record.view, name)
        if judged and re.search(r"(^|[_/])episodes$", name) and np.ptp(curve.values) == 0:
            had.setdefault(int(curve.last), f"{name} in all {len(curve)} rows")
    if record.view.has_evals(record.view.by):
        had |= {e.n: "evaluations" for e in record.view.evals()}
    if n in had:
        return Checked(claim, "matched", f"{n} episodes ({had[n]})")
    keys = [k for k, v in record.settings.items() if "episodes" in k and v == n and not isinstance(v, bool)]
    if claim.firm and had and keys and len(had) == 1:
        (count, where), key = next(iter(had.items())), plain_key(keys[0])
        counted = f"{count} episodes were run ({where}); {n} is the setting {key}"
        return Checked(claim, "contradicted", counted, "count-differs")
    return Checked(claim, says="which evaluation is meant is not known")


# ---- One number


def value(claim: Claim, record: RunRecord) -> Checked:
    one, names = claim.numbers[0], claim.names
    key = next((k for k in names.keys if _is(record.settings[k], one)), None)
    if key:
        return Checked(claim, "matched", f"the setting {key}")
    if not names.columns:
        return _setting_differs(claim, record) if claim.firm else Checked(claim, says=_settings(record, names.keys))
    if claim.role == "slope":
        return _slope(claim, record)
    if claim.step is not None and (checked := _at_step(claim, record)) is not None:
        return checked
    return _anywhere(claim, record)


def _at_step(claim: Claim, record: RunRecord) -> Checked | None:
    """Held against the row of the quoted step; None where no column has one."""
    one, step = claim.numbers[0], claim.step
    assert step is not None  # asked of claims with a step only
    rows = {c: v for c in claim.names.columns if (v := record.at(c, step)) is not None}
    hit = next((c for c, v in rows.items() if fits(one, v)), None) or next(
        (c for c in claim.names.columns if record.near(c, step, one)), None
    )
    if hit:
        return Checked(claim, "matched", f"{hit} at {record.axis_word(hit)} {step.number.text}")
    if not rows and any(record.counts(c, step) for c in claim.names.columns):
        return Checked(claim, says=f"there is no row at {step.number.text}")
    if not rows:
        return None
    other = record.anywhere(one, claim.word, step) if one.digits > 1 else "another metric"
    if other:
        return (
            Checked(claim, "matched", f"{other} at that step, under another name") if one.digits > 1 else Checked(claim)
        )
    column, there = next(iter(rows.items()))
    if not (claim.firm and all(far(one, v) for v in rows.values())):
        return Checked(claim, says=f"{column} is {there:.4g} there")
    return _other_step(claim, record, list(rows), there)


def _other_step(claim: Claim, record: RunRecord, columns: list[str], there: float) -> Checked:
    one, step = claim.numbers[0], claim.step
    assert step is not None  # as above
    at_step = f"{columns[0]} is {there:.4g} at {record.axis_word(columns[0])} {step.number.text}"
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
    if firm and not w.QUALIFIED.search(claim.text) and (wrong := _role_differs(claim, record, tags)):
        return wrong
    if tags:
        column = next(iter(tags))
        return Checked(claim, "matched", f"{column}: {', '.join(tags[column][:2])}")
    if one.digits > 1 and (other := record.anywhere(one, claim.word)):
        return Checked(claim, says=f"not in {claim.names.columns[0]}; {other} has such a value")
    curves = [record.curves[c] for c in claim.names.columns]
    if firm and not claim.text and claim.role in LEVELS and all(far(one, LEVELS[claim.role](c)) for c in curves):
        peak = f"the {claim.role} of {curves[0].name} is {LEVELS[claim.role](curves[0]):.4g}"
        return Checked(claim, "contradicted", peak, "number-differs")
    if firm and one.digits > 1 and all(_out_of_range(one, curve) for curve in curves):
        ranges = "; ".join(f"{c.name} goes from {c.values.min():.4g} to {c.values.max():.4g}" for c in curves[:2])
        return Checked(claim, "contradicted", f"{ranges}, last {curves[0].last:.4g}", "number-nowhere")
    return Checked(claim, says=f"no row of {claim.names.columns[0]} has this value")


def _role_differs(claim: Claim, record: RunRecord, tags: dict[str, list[str]]) -> Checked | None:
    """A peak that is none, a final value that is not the last, a peak that is quoted as the result."""
    curves = [record.curves[c] for c in claim.names.columns if len(record.curves[c]) > 2]
    every = {tag for column_tags in tags.values() for tag in column_tags}
    if not curves or not every:
        return None
    if claim.role == "peak" and not every & {"peak", "low"}:
        return _not_the_peak(claim, record, curves)
    if claim.role in ("last", "result") and not any(tag.startswith(("last", "mean")) for tag in every):
        return _not_the_last(claim, record, curves, tags)
    return None


def _not_the_peak(claim: Claim, record: RunRecord, curves: list[Curve]) -> Checked | None:
    one, first = claim.numbers[0], curves[0]
    if not all(far(one, float(c.values.max())) and far(one, float(c.values.min())) for c in curves):
        return None
    at = int(first.steps[int(np.argmax(first.values))])
    highest = f"the highest of {first.name} is {first.values.max():.4g}, at {record.axis_word(first.name)} {at:,}"
    return Checked(claim, "contradicted", highest, "not-the-peak")


def _not_the_last(claim: Claim, record: RunRecord, curves: list[Curve], tags: dict[str, list[str]]) -> Checked | None:
    """Not where the end differs by no more than three times the noise."""
    one = claim.numbers[0]
    if not all(far(one, c.last) and abs(c.last - one.value) > CLEARLY * noise(record, c) for c in curves):
        return None
    hit = next(c for c in curves if c.name in tags)
    best = _best(hit) in tags[hit.name]
    slug = "peak-as-result" if best else "not-the-last" if claim.role == "last" else ""
    ending = f"{hit.name} ends at {hit.last:.4g}; {one.text} is its {', '.join(tags[hit.name][:2])}"
    return Checked(claim, "contradicted", ending, slug) if slug else None


def _best(curve: Curve) -> str:
    metric = glossary.METRICS.get(curve.name)
    return "low" if metric is not None and metric.direction < 0 else "peak"


def noise(record: RunRecord, curve: Curve) -> float:
    """The error of an evaluation's mean where episodes are known, else how much a row differs from the next."""
    mode = RETURNS.get(curve.name)
    if mode and record.view.has_evals(mode):
        errors = [e.se for e in record.view.evals(mode) if math.isfinite(e.se)]
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


def _range(claim: Claim, record: RunRecord) -> Checked:
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
                   else _settings(record, claim.names.keys))  # fmt: skip


# ---- Settings, directions


def _behind(claim: Claim) -> str:
    """What a sentence says right behind its numbers: `9 → 12, clearly better`."""
    return re.split(r"[.;]\s", claim.whole[claim.numbers[-1].end :] + " ")[0][:BEHIND]


def _is(setting: Any, one: Number) -> bool:
    """Whether a setting shows as the number: settings are not cut off, and a first digit is not rounded away."""
    return _is_number(setting) and abs(float(setting) - one.value) <= min(one.unit / 2, 0.2 * abs(one.value)) * (
        1 + 1e-9
    )


def _is_number(setting: Any) -> bool:
    return isinstance(setting, (int, float)) and not isinstance(setting, bool)


def _is_other(setting: Any, one: Number) -> bool:
    """Whether a setting is clearly not the number."""
    gap = abs(float(setting) - one.value)
    return gap > one.unit / 2 and gap > (0.3 if one.hedged else 0.1) * max(abs(float(setting)), abs(one.value))


def _settings(record: RunRecord, keys: Iterable[str]) -> str:
    return "; ".join(f"the setting {key.removeprefix('foreign.')} is {record.settings[key]}" for key in list(keys)[:3])


def _setting_differs(claim: Claim, record: RunRecord) -> Checked:
    values = [record.settings[key] for key in claim.names.keys]
    settings = _settings(record, claim.names.keys)
    if not all(_is_number(v) and _is_other(v, n) for n in claim.numbers for v in values):
        return Checked(claim, says=settings)
    return Checked(claim, "contradicted", settings, "setting-differs")


def direction(claim: Claim, record: RunRecord) -> Checked:
    """`rose`, `fell`, `unchanged`, by the slope over the whole run, where every column of that name agrees."""
    curves = [record.curves[c] for c in claim.names.columns if len(record.curves[c]) >= 8]
    if not curves or len(curves) < len(claim.names.columns):
        return Checked(claim, says="fewer than 8 rows")
    ways = {_went(curve) for curve in curves}
    first = curves[0]
    course = f"{first.name} goes from {_end(first, 0):.4g} to {_end(first, -1):.4g} (means of the first and last fifth)"
    if ways == {claim.role}:
        return Checked(claim, "matched", course)
    against = {"rise": {"fall"}, "fall": {"rise"}, "flat": {"rise", "fall"}}[claim.role]
    if claim.firm and len(ways) == 1 and ways <= against:
        return Checked(claim, "contradicted", course, "direction-differs")
    return Checked(claim, says=course)


def _end(curve: Curve, which: int) -> float:
    return float(np.array_split(curve.values, 5)[which].mean())


def _went(curve: Curve) -> str:
    """rise or fall where the slope is clear of its error and the ends differ by a tenth of the span or more."""
    slope, gap = curve.slope(), _end(curve, -1) - _end(curve, 0)
    size = float(np.ptp(curve.values))
    if abs(slope.significance) < 4 or abs(gap) < 0.3 * size or slope.value * gap <= 0:
        return "flat" if abs(gap) <= 0.05 * max(abs(_end(curve, 0)), 1e-300) else "unclear"
    return "rise" if gap > 0 else "fall"
