"""Does the record say what a write-up says? Each claim is matched, contradicted, or unmatched; unmatched is not wrong.

A claim is contradicted only when it is firm (read.py) and every column its metric can mean disagrees by more than all
that an honest reader could take from it (readings.py). Bounds and directions are held against the curve in course.py.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from relab.base.numbers import to_int
from relab.health.foreign import plain_key, theirs
from relab.health.view import ViewGroup
from relab.notebook.check import between, course, settings, values
from relab.notebook.check import words as w
from relab.notebook.check.claim import Claim
from relab.notebook.check.record import RunRecord, fits
from relab.notebook.check.verdict import Checked
from relab.notebook.check.wording import Number
from relab.record.evaluations import Estimate
from relab.record.state import seed_of

BEHIND = 40  # characters
NOISE_WORDS = re.compile(r"(?i)noise|significan|similar|same|噪声|显著|波动")


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
        if claim.kind == "length":
            return length(claim, self.records[claim.run])
        if claim.kind == "solved":
            return course.solved(claim, self.records[claim.run])
        if claim.kind == "comparison":
            return between.compared(claim, self.records)
        if claim.kind == "moment":
            return course.moment(claim, self.records[claim.run])
        if not claim.word:
            return Checked(claim, says="no metric stands before it")
        if not claim.names:
            return Checked(claim, says="the record has no metric or setting of that name")
        record = self.records[claim.run]
        if claim.kind == "direction":
            return course.direction(claim, record)
        if claim.kind == "pair":
            return self.pair(claim, record)
        return values.value(claim, record)

    # ---- Pairs

    def pair(self, claim: Claim, record: RunRecord) -> Checked:
        """A → B of a setting or a metric, or a range A to B."""
        a, b = claim.numbers
        keys, logged = claim.names.keys, record.settings
        setting = next((key for key in keys for n in (a, b) if settings.is_quoted(logged[key], n)), None)
        if setting:
            return Checked(claim, "matched", f"the setting {setting} is {record.settings[setting]}")
        if claim.role == "range":
            return values.in_range(claim, record)
        luck = self.in_noise(claim, record)
        if luck is not None:
            return luck
        span = claim.step is not None and claim.step.relation == "between"
        if claim.firm and span and (wrong := course.from_to(claim, record)).status == "contradicted":
            return wrong
        both = [c for c in claim.names.columns if all(record.stands_for(c, n) for n in (a, b))]
        if both:
            places = " and ".join(record.stands_for(both[0], n)[0] for n in (a, b))
            return Checked(claim, "matched", f"{both[0]}: {places}")
        if claim.firm and claim.names.keys and not claim.names.columns:
            return settings.differs(claim, record)
        if claim.firm and claim.names.columns:
            return course.from_to(claim, record)
        return Checked(claim, says="the two numbers do not both stand in one metric of the run")

    def in_noise(self, claim: Claim, record: RunRecord) -> Checked | None:
        """Two evaluations (or means over seeds) that are called different, and differ by less than two errors."""
        column = next((c for c in claim.names.columns if c in values.RETURNS), None)
        text = f"{values.sentence_of(claim)} {_behind(claim)}"
        word = w.RISE.search(text) or w.FALL.search(text) or w.GAIN.search(text)
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
            rows = view.returns(values.RETURNS[column])
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


def length(claim: Claim, record: RunRecord) -> Checked:
    """How many steps the run had, or was to have."""
    n, view = claim.numbers[0], record.view
    counts = [float(view.last_step), *(float(c.last) for name, c in record.curves.items() if name.endswith("_steps"))]
    counts += [float(view.planned)] if view.planned else []
    if any(abs(n.value - count) <= max(n.unit, 0.1 * count) for count in counts):
        return Checked(claim, "matched", f"the last step is {view.last_step:,}")
    within = min(counts) <= n.value <= max(counts)
    if not claim.firm or within or view.last_step <= 0:
        return Checked(claim, says=f"the last step is {view.last_step:,}")
    return Checked(claim, "contradicted", f"the last step is {view.last_step:,}", "count-differs")


# ---- One number


# ---- Settings


def _behind(claim: Claim) -> str:
    """What a sentence says right behind its numbers: `9 → 12, clearly better`."""
    return re.split(r"[.;]\s", claim.whole[claim.numbers[-1].end :] + " ")[0][:BEHIND]
