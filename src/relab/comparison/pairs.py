"""Is B better than A? Declared comparisons are tested and corrected (Holm); all others are looked at, and called so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relab import stats
from relab.base.documents import Document
from relab.comparison import answer as answers
from relab.comparison import wording
from relab.comparison.declared import Plan, Protocol
from relab.comparison.numbers import LEAST, Measure, finite, improvement
from relab.comparison.outcomes import Outcome

Outcomes = Mapping[str, Sequence[Outcome]]
ALPHA = 0.05


@dataclass
class Pair:
    """One comparison: b against a, + is better for b."""

    a: str
    b: str
    answer: answers.Answer
    improvement: stats.Interval | None
    declared: str = ""  # by whom; empty: exploratory
    p: float = math.nan  # of no difference, from the interval
    adjusted: float = math.nan  # after Holm
    needed: tuple[int, int] | None = None  # seeds a variant

    @property
    def verdict(self) -> str:
        """Nobody asked, so there is no answer."""
        return self.answer.verdict if self.declared else ""

    def to_dict(self) -> Document:
        x = self.answer
        better = self.improvement and {"mid": self.improvement.mid, "low": self.improvement.low,
                                       "high": self.improvement.high}  # fmt: skip
        return {
            "a": self.a, "b": self.b, "delta": x.delta, "low": x.low, "high": x.high, "level": x.level, "n": list(x.n),
            "method": x.method, "probability_of_improvement": better, "declared": self.declared or None,
            "verdict": self.verdict or None, "shows": x.shows if self.declared else "", "reason": x.reason,
            "readings": x.readings, "p": self.p, "p_holm": self.adjusted, "notes": x.notes,
            "seeds_needed": list(self.needed) if self.needed else None,
        }  # fmt: skip


def match(name: str, labels: Sequence[str]) -> str | None:
    """The variant that is meant: its label, or a part of it that no other has; None where there is none such."""
    exact = [label for label in labels if label.lower() == name.lower()]
    fitting = exact or [label for label in labels if name.lower() in label.lower()]
    if not fitting and "=" in name and "." in name.partition("=")[0]:  # algo.lr=0.1 is called lr=0.1
        return match(name.partition("=")[0].rpartition(".")[2] + "=" + name.partition("=")[2], labels)
    return fitting[0] if len(fitting) == 1 else None


# ---- Asking


def ask(outcomes: Outcomes, names: tuple[str, str], measure: Measure, smallest: float, **how: Any) -> answers.Answer:
    a, b = (outcomes[name] for name in names)
    at = "final" if measure.tenth else measure.at  # of training, each run by its own last tenth: one name everywhere
    return answers.answer(a, b, smallest, measure.direction, at, metric=measure.metric, names=names,
                          m=measure.last, reach=measure.level, bounds=measure.bounds, **how)  # fmt: skip


def p_value(outcomes: Outcomes, names: tuple[str, str], measure: Measure) -> float:
    """The smallest alpha whose interval leaves out 0: the test that belongs to the interval. 1 under five seeds."""

    def outside(alpha: float) -> bool:
        answer = ask(outcomes, names, measure, 0.0, looks=1, alpha=alpha)
        return answer.low > 0 or answer.high < 0

    low, high = 1e-9, 1 - 1e-9
    if not outside(high):
        return 1.0
    for _ in range(22):  # to a part in 100,000
        middle = math.sqrt(low * high)
        low, high = (low, middle) if outside(middle) else (middle, high)
    return high


class Item(NamedTuple):
    """A declared comparison: of which variants' outcomes, by name, and the variant as its experiment calls it."""

    outcomes: Outcomes
    names: tuple[str, str]
    measure: Measure
    variant: str = ""


def test(items: Sequence[Item], smallest: float) -> list[Pair]:
    """Holm's procedure: the clearest comparison at alpha / k, the next at alpha / (k - 1), until one fails.

    The interval shown is the one of all k together, unless Holm's larger share is what makes the answer a yes.
    """
    p = [p_value(item.outcomes, item.names, item.measure) for item in items]
    adjusted, k = stats.holm(p), len(items)
    rank = {int(i): r for r, i in enumerate(np.argsort(p, kind="stable"))}
    tested = []
    for i, (outcomes, names, measure, _) in enumerate(items):
        answer = ask(outcomes, names, measure, smallest, looks=1, comparisons=k)
        if adjusted[i] < ALPHA:
            stepped = ask(outcomes, names, measure, smallest, looks=1, comparisons=k - rank[i])
            answer = stepped if stepped.verdict == answers.YES else answer
        tested.append(_pair(outcomes, names, answer, measure, smallest, "--declare", p[i], adjusted[i]))
    return tested


def repeat(items: Sequence[Item], plan: Plan, protocol: Protocol) -> list[Pair]:
    """An experiment's own comparisons, as it asks them: at its level, with the looks it has taken."""
    smallest = float(protocol.smallest_effect or 0.0)
    repeated = []
    for outcomes, names, measure, variant in items:
        answer = ask(outcomes, names, measure, smallest, comparisons=len(plan.pairs),
                     looked_at=protocol.looks.get(variant, ()), paired=protocol.paired,
                     looks=protocol.declared)  # fmt: skip
        repeated.append(_pair(outcomes, names, answer, measure, smallest, plan.source))
    return repeated


def explore(outcomes: Outcomes, control: str, measure: Measure, smallest: float) -> list[Pair]:
    """Every other variant against one, at 95 % each: for looking, not for deciding."""
    names = [(control, other) for other in outcomes if other != control]
    return [_pair(outcomes, pair, ask(outcomes, pair, measure, smallest, looks=1), measure, smallest) for pair in names]


def against_first(outcomes: Outcomes, measure: Measure, smallest: float) -> list[answers.Answer]:
    """Every other variant against the first, at a level corrected for those that have seeds enough for a verdict: what
    `relab.compare` gives. Where that is one, these are the numbers that the command shows."""
    control, *others = outcomes
    sizes = {name: len(finite(outcomes[name])) for name in outcomes}
    many = sum(min(sizes[control], sizes[other]) >= LEAST for other in others)
    return [_with_seeds(outcomes, (control, other), measure, smallest, max(many, 1)) for other in others]


def _with_seeds(
    outcomes: Outcomes, names: tuple[str, str], measure: Measure, smallest: float, many: int
) -> answers.Answer:
    """One look, as `relab compare` takes it; it counts the seeds that would tell as that does."""
    answer = ask(outcomes, names, measure, smallest, looks=1, comparisons=many)
    a, b = (outcomes[name] for name in names)
    if answer.verdict == wording.OPEN and not answer.reason:
        answer.seeds_needed = needed(a, b, measure, smallest, answer, ALPHA / many)
        answer.text = wording.sentence(answer)
    return answer


def _pair(
    outcomes: Outcomes, names: tuple[str, str], answer: answers.Answer, measure: Measure, smallest: float,
    declared: str = "", p: float = math.nan, adjusted: float = math.nan,
) -> Pair:  # fmt: skip
    a, b = (outcomes[name] for name in names)
    return Pair(*names, answer, improvement(a, b, measure), declared, p, adjusted,
                answer.seeds_needed or needed(a, b, measure, smallest, answer))  # fmt: skip


def needed(
    a: Sequence[Outcome],
    b: Sequence[Outcome],
    measure: Measure,
    smallest: float,
    answer: answers.Answer,
    alpha: float = ALPHA,
) -> tuple[int, int] | None:
    """Seeds a variant at which the smallest effect (or else the delta seen) is told from none with a power of 0.8."""
    x, y, effect = finite(a), finite(b), smallest or abs(answer.delta)
    clear = answer.low > 0 or answer.high < 0
    if clear or min(len(x), len(y)) < 2 or not effect > 0 or measure.at == "success_rate":
        return None
    ends, most = stats.seeds_range(effect, x, y, alpha, least=LEAST), max(len(x), len(y))
    return (max(ends[0], most + 1), ends[1]) if ends and ends[1] > most else None
