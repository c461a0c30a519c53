"""How good are the predictions? The share that lay in their intervals, the mean error, and all of them in a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relab import stats
from relab.advise.proposal import diff_text
from relab.advise.score import HIT, INTERVAL, LEVEL, MISS, OPEN, Score
from relab.base.documents import Document
from relab.base.places import printable
from relab.base.text import cut, number, plural, rows

CHANGE = 44  # columns for what was changed


@dataclass(frozen=True)
class Calibration:
    """Over predictions with a delta and an interval; bounds without data promise nothing, and are not counted."""

    n: int
    inside: int
    share: tuple[float, float, float] | None  # with Wilson's interval
    mean_error: float | None  # measured minus predicted
    mean_absolute_error: float | None
    verdicts: dict[str, int]
    line: str

    def to_dict(self) -> Document:
        return vars(self) | {"share": list(self.share) if self.share else None}


def calibration(scores: Sequence[Score]) -> Calibration:
    counted = [s for s in scores if s.kind == INTERVAL and s.inside is not None]
    errors = np.array([s.error for s in scores if s.error is not None], np.float64)
    inside = sum(bool(s.inside) for s in counted)
    share = stats.wilson(inside, len(counted)) if counted else None
    verdicts = {word: sum(s.verdict == word for s in scores) for word in (HIT, MISS, OPEN)}
    return Calibration(
        len(counted), inside, (share.mid, share.low, share.high) if share else None,
        float(errors.mean()) if len(errors) else None, float(np.abs(errors).mean()) if len(errors) else None,
        verdicts, _line(inside, len(counted), share),
    )  # fmt: skip


def _line(inside: int, n: int, share: stats.Interval | None) -> str:
    """What the share says about the intervals, which claim to hold in 95 % of cases."""
    if share is None:
        return "no prediction with an interval has been measured yet"
    line = f"{inside} of {n} measured differences lay in their {LEVEL:.0%} interval ({inside / n:.0%},"
    line += f" {share.low:.0%} to {share.high:.0%})"
    if _at_most(inside, n) < (1 - LEVEL) / 2:
        return f"{line}: the intervals are too narrow"
    return f"{line}: {'no sign that' if n >= 10 else 'too few to tell whether'} they are too narrow"


def _at_most(inside: int, n: int) -> float:
    """How likely so few, or fewer, lie inside if the intervals hold what they claim; exact, unlike Wilson's."""
    return math.fsum(math.comb(n, k) * LEVEL**k * (1 - LEVEL) ** (n - k) for k in range(inside + 1))


def text(scores: Sequence[Score]) -> str:
    """The history for a terminal."""
    if not scores:
        return "no run here came from a proposal (`relab next --write`, then `relab train .../next_config.yaml`)"
    record = calibration(scores)
    head = ["run", "change", "metric", "predicted", "measured", "seeds", "score"]
    table = rows([head, *([printable(cell) for cell in _row(s)] for s in scores)])
    counts = ", ".join(f"{n} {word}" for word, n in record.verdicts.items())
    lines = [*table, "", f"{plural(len(scores), 'prediction')}: {counts}", record.line]
    if record.mean_error is not None and record.mean_absolute_error is not None:
        lines.append(f"mean error {signed(record.mean_error)} (measured minus predicted),"
                     f" mean distance {number(record.mean_absolute_error)}")  # fmt: skip
    return "\n".join(lines)


def _row(s: Score) -> list[str]:
    more = f" +{len(s.runs) - 1}" if len(s.runs) > 1 else ""
    why = "" if s.verdict in (HIT, MISS) else f": {s.why}"
    n = s.measured.seeds
    return [s.runs[0] + more, cut(diff_text(s.diff), CHANGE), s.metric or "-", span(s.predicted, s.kind),
            span(vars(s.measured)), f"{n[0]}, {n[1]}", s.verdict + why]  # fmt: skip


def span(ends: Document, kind: str = "") -> str:
    """+410 [+380, +440]; bounds are written +0 to +490."""
    delta, low, high = (None if ends[k] is None else signed(ends[k]) for k in ("delta", "low", "high"))
    if kind == "bounds":
        return f"{low or '?'} to {high or '?'} (bounds)"
    if delta is None:
        return "-"
    return f"{delta} [{low}, {high}]" if low is not None and high is not None else delta


def signed(x: float) -> str:
    return f"{'+' if x >= 0 else ''}{number(x)}"


def sentence(s: Score) -> str:
    """One prediction in one line, for an entry or a report."""
    n = s.measured.seeds
    seeds = f"{n[0]} and {n[1]} seeds"
    why = f" ({s.why})" if s.verdict == OPEN else ""
    numbers = f"{span(s.predicted, s.kind)}; measured {span(vars(s.measured))} ({seeds})"
    return f"{s.metric or 'nothing'} {numbers}: {s.verdict}{why}"
