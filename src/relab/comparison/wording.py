"""How is an answer said in one sentence, with the numbers it rests on?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from relab.comparison.outcomes import by_its_end
from relab.stats.over_seeds import LEAST

if TYPE_CHECKING:
    from relab.comparison.answer import Answer

MANY = 1000  # seeds a variant that nobody runs
YES, NO, OPEN = "yes", "no", "cannot tell yet"
WITHIN = "mean of differences within seeds"  # how the method of pairs begins, in answers of earlier versions too
PAIRED = (
    f"{WITHIN}: a test of flipped signs (of few pairs Student's t), Student's interval, with Hall's skewness correction"
    " where one variant varies twice as much as the other"
)
# How notes begin without which a verdict would be read wrongly: each stands beside it wherever it is told.
WITHDRAWN, BOTH = "it would be", "diverged runs are read both ways"
OVERSTATES, COUNTED = "at so many seeds a yes tends to overstate", "runs end in two groups"
# Why there is no answer although there are seeds enough.
REASONS = {
    "unreached": "no run of {a} or {b} reached {level}",
    "ties": "all runs of {a} and {b} came to the same number",
    "grid": "{a} and {b} differ by no more than lies between two evaluations ({grid:.4g} steps)",
    "ceiling": "{a} and {b} both reach the highest value there can be ({top}), which tells nothing apart",
    "spent": "the declared looks are used up",
}


def reading(ends: Sequence[float]) -> str:
    """
    >>> reading((5, 1, 9)), reading((5, math.nan, math.nan)), reading((math.nan,) * 3)
    ('+5 [+1, +9]', '+5', '-')
    """
    delta, low, high = ends
    if not math.isfinite(low):
        return f"{delta:+.4g}" if math.isfinite(delta) else "-"
    return f"{delta:+.4g} [{low:+.4g}, {high:+.4g}]"


def reason_text(x: Answer) -> str:
    a, b = x.names
    level = f"{x.reach:g}" if x.reach is not None else "the level"
    return REASONS[x.reason].format(a=a, b=b, level=level, grid=x.grid, top=f"{x.top:.4g}" if x.top is not None else "")


def sentence(x: Answer) -> str:
    """The answer in one sentence, with the numbers it rests on."""
    a, b = x.names
    more = f"; {seeds_words(x.seeds_needed)}" if x.seeds_needed else ""
    if min(x.n) < LEAST:
        so_far = f"; so far {b} differs by {x.delta:+.4g} ({_what(x)})" if math.isfinite(x.delta) else ""
        return f"No answer under {LEAST} seeds a variant: {a} has {x.n[0]}, {b} has {x.n[1]}{so_far}{more}."
    if x.reason and not math.isfinite(x.low):
        return f"Cannot tell whether {b} is better than {a}: {reason_text(x)} ({_what(x)}; {_seeds(x)})."
    numbers = f"{x.delta:+.4g} [{x.low:+.4g}, {x.high:+.4g}] ({_what(x)}; {_sure(x)})"
    if x.verdict == YES:
        return f"Yes: {b} is better than {a}, by {numbers}{_matters(x)}."
    if x.reason:
        return f"Cannot tell whether {b} is better than {a}: {reason_text(x)}; {numbers}."
    if x.verdict == OPEN:
        by = f" by {x.smallest_effect:.4g}" if x.smallest_effect else ""
        return f"Cannot tell yet whether {b} is better than {a}{by}: {numbers}{_matters(x) if x.shows else ''}{more}."
    worse = x.shows == "below 0"
    how = "worse" if worse else f"not better than {a} by the {x.smallest_effect:.4g} that matters"
    return f"No: {b} is {how}{' than ' + a if worse else ''}, {numbers}."


def _matters(x: Answer) -> str:
    """What is shown: more than 0, or as much as matters."""
    if not x.smallest_effect:
        return ""
    if x.shows == "smallest effect":
        return f"; that is at least the {x.smallest_effect:.4g} that matters"
    return f"; better for sure, but not for sure by the {x.smallest_effect:.4g} that matters"


def beside(notes: Sequence[str]) -> list[str]:
    """Those notes that belong to the verdict itself."""
    return [note for note in notes if note.startswith((WITHDRAWN, BOTH, OVERSTATES, COUNTED))]


def seeds_words(needed: Sequence[int]) -> str:
    """How many seeds should tell; nobody runs thousands, so that such a number is no advice.

    >>> seeds_words((12, 40)), seeds_words((300, 24840))
    ('12 to 40 seeds a variant should tell', '300 to more than 1,000 seeds a variant should tell')
    """
    if needed[0] > MANY:
        return f"more than {MANY:,} seeds a variant would be needed to tell: not worth running"
    most = f"{needed[0]} to more than {MANY:,}" if needed[1] > MANY else span(needed)
    return f"{most} seeds a variant should tell"


def span(ends: Sequence[int]) -> str:
    return f"{ends[0]} to {ends[1]}" if ends[0] != ends[1] else str(ends[0])


def _sure(x: Answer) -> str:
    many = f", corrected for {x.comparisons} comparisons" if x.comparisons > 1 else ""
    return f"{100 * x.level:.4g} % interval, {_seeds(x)}{many}"


def _seeds(x: Answer) -> str:
    return f"{x.n[0]} pairs" if x.method == PAIRED else f"{x.n[0]} and {x.n[1]} seeds"


def _what(x: Answer) -> str:
    if x.at == "first_step_reaching":
        there = f"reaches {x.reach:g}" if x.reach is not None else "gets there"
        return f"steps saved until {x.metric} {there}, + is better"
    last = f"mean of the last {x.m} {x.metric}" if x.m is not None else f"mean of the last {x.metric}"
    tenth = by_its_end(x.metric) or any(run.by_end for run in (*x.a, *x.b))  # a tool's own name may not say it
    final = f"mean of the last tenth of {x.metric}" if tenth else f"final {x.metric}"
    name = {"final": final, "mean_last_m": last, "success_rate": "success rate"}
    return f"{name[x.at]}, + is better"
