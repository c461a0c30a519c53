"""Is B better than A, and can one tell yet? Runs in, one number a run, an interval, a verdict (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field

from relab import stats
from relab.base.documents import Document
from relab.comparison import remarks, wording
from relab.comparison.effect import LEAST, Effect, Ends, finite, grid_of
from relab.comparison.outcomes import PAIRED, Outcome, check
from relab.comparison.wording import NO, OPEN, YES, sentence

METHODS = {
    "mean": "difference of means: Barnard's exact test of rates where outcomes are solve or fail, else a permutation"
    " test of Welch's t, with Hall's skewness correction",
    "paired": wording.PAIRED,
    "time": "difference of Kaplan-Meier mean steps up to the horizon, then as for means",
    "rate": "difference of success rates: the test of `mean` on the seeds' rates decides, Newcombe's interval with"
    " episodes clustered by seed says how far",
}
NO_INTERVAL = ("unreached", "ties", "ceiling")  # no run went another way than the others, and few seeds can miss many
Looks = int | Sequence[int] | None  # how many, or at how many seeds each; None: open


@dataclass
class Answer:
    """B against A. delta, low and high are signed so that + is better for B."""

    verdict: str
    text: str
    delta: float
    low: float
    high: float
    smallest_effect: float
    level: float
    method: str
    at: str
    metric: str
    direction: str
    names: tuple[str, str]
    n: tuple[int, int]
    look: int
    looks: int | list[int] | None  # declared: how many, or at how many seeds each
    seeds_needed: tuple[int, int] | None
    a: list[Outcome]
    b: list[Outcome]
    notes: list[str] = field(default_factory=list)
    comparisons: int = 1  # declared together, for which the level was raised
    m: int | None = None  # of mean_last_m
    reach: float | None = None  # of first_step_reaching
    spending: str = ""  # how the error is shared among the looks
    shows: str = ""  # "above 0" or "smallest effect"; of a no: "below 0" or "smallest effect"; of an open one if it may
    reason: str = ""  # why there is no answer although there are seeds enough: a key of wording.REASONS
    overstates: float | None = None  # of a yes: by which factor it would on average, were the truth `overstates_at`
    overstates_at: float | None = None
    readings: dict[str, list[float]] = field(default_factory=dict)  # delta, low, high without diverged runs, and with
    top: float | None = None  # the highest outcome there can be, where that is known
    bottom: float | None = None  # the lowest, likewise
    grid: float = 0.0  # steps between evaluations, of first_step_reaching

    def to_dict(self) -> Document:
        """Plain data for JSON (non-finite numbers as jsonl.encode writes them)."""
        return asdict(self)


# ---- The answer


def answer(
    a: Sequence[Outcome],
    b: Sequence[Outcome],
    smallest_effect: float,
    direction: str = "higher",
    at: str = "final",
    *,
    metric: str = "eval/return_det",
    names: tuple[str, str] = ("A", "B"),
    paired: bool = False,
    looked_at: Sequence[Sequence[int]] = (),
    looks: Looks = None,
    alpha: float = 0.05,
    comparisons: int = 1,
    m: int | None = None,
    reach: float | None = None,
    bounds: tuple[float, float] = (-math.inf, math.inf),
) -> Answer:
    """Is B better than A by at least the smallest effect that matters?

    yes: low > 0 and delta >= smallest_effect; no: high < smallest_effect; else cannot tell yet, and always so under
    five seeds a variant. `looked_at` holds the seeds (a, b) of earlier answers to this question: looking again
    spends a share of alpha each time (stats.looks), so that adding seeds until it says yes does not help.
    `comparisons` is how many answers were declared together: each gets its share of alpha, so that the chance of any
    error among them stays below it. `m` and `reach` say how the outcomes were taken, for the sentence. `bounds` are the
    lowest and highest outcome there can be, where that is known.
    """
    check(at, direction)
    _check_effect(smallest_effect, paired, at, comparisons)
    terms = _Terms(
        smallest_effect, direction, at, metric, names, paired, looks, alpha, comparisons, m, reach, bounds
    )  # fmt: skip
    reply = _judged(terms, a, b, looked_at)
    _add_readings(reply)
    _add_overstatement(reply)
    reply.text = sentence(reply)
    return reply


@dataclass(frozen=True)
class _Terms:
    """What is settled before the numbers are seen: the arguments of `answer`."""

    smallest_effect: float
    direction: str
    at: str
    metric: str
    names: tuple[str, str]
    paired: bool
    looks: Looks
    alpha: float
    comparisons: int
    m: int | None
    reach: float | None
    bounds: tuple[float, float]

    def arms(self, a: Sequence[Outcome], b: Sequence[Outcome], notes: list[str]) -> list[list[Outcome]]:
        """The runs that count, a seed once; of pairs in the order of their seeds."""
        arms = [remarks.unique(arm, name, notes) for arm, name in zip((a, b), self.names, strict=True)]
        return remarks.partners(arms, notes) if self.paired else arms


def _judged(terms: _Terms, a: Sequence[Outcome], b: Sequence[Outcome], looked_at: Sequence[Sequence[int]]) -> Answer:
    notes: list[str] = []
    arms = terms.arms(a, b, notes)
    good = finite(arms, terms.paired)
    n, smallest = (len(good[0]), len(good[1])), terms.smallest_effect
    before = [sizes for sizes in looked_at if min(sizes) >= LEAST]
    share = look_share(before, n, terms.looks, terms.alpha / terms.comparisons)
    effect = Effect(terms.at, terms.direction, terms.paired, 1 - share.alpha, terms.bounds)
    ends = effect.interval(*good)
    reason = "spent" if share.spent else effect.untold(good)
    ends = (ends[0], math.nan, math.nan) if reason in NO_INTERVAL else ends
    verdict, held = (OPEN, []) if reason else effect.verdict(arms, ends, smallest, notes)
    needed = None if reason or verdict != OPEN else effect.seeds_needed(good, smallest, ends[0], share.next)
    notes += _remarks(effect, terms.names, arms, good)
    low, high = (bound if math.isfinite(bound) else None for bound in terms.bounds)
    looks = terms.looks if terms.looks is None or isinstance(terms.looks, int) else list(terms.looks)
    delta, least, most = ends
    return Answer(
        verdict=verdict, text="", delta=delta, low=least, high=most, smallest_effect=smallest, level=effect.level,
        method=METHODS[effect.kind], at=terms.at, metric="success" if terms.at == "success_rate" else terms.metric,
        direction=terms.direction, names=terms.names, n=n, look=share.look, looks=looks, seeds_needed=needed,
        a=list(arms[0]), b=list(arms[1]), notes=notes, comparisons=terms.comparisons,
        m=terms.m if terms.at == "mean_last_m" else None,
        reach=terms.reach if terms.at == "first_step_reaching" else None, spending=stats.spending(terms.looks),
        shows=_shows(verdict, held, smallest), reason=reason, readings=effect.readings(arms, ends),
        grid=grid_of(good), top=high, bottom=low,
    )  # fmt: skip


def _remarks(effect: Effect, names: tuple[str, str], arms: list[list[Outcome]], good: list[list[Outcome]]) -> list[str]:
    """Runs without a number, arms without a spread, and outcomes that fall into two humps."""
    notes = [*remarks.missing(arms, names), *remarks.constant(arms, names, effect.at)]
    if effect.paired or effect.at == "success_rate":
        return notes
    return notes + remarks.apart(effect.numbers(*good), names, effect.limits(good))


# ---- Looks


@dataclass(frozen=True)
class LookShare:
    """Which look this is, the error it may spend, and what the next one may; `spent`: nothing is left for this one."""

    look: int
    alpha: float
    next: float | None
    spent: bool = False


def look_share(before: Sequence[Sequence[int]], n: tuple[int, int], looks: Looks, alpha: float) -> LookShare:
    """By the numbers of seeds at earlier looks; where sizes were declared, the smaller arm says how far one is."""
    look = stats.look_number(before, n)
    if looks is None or isinstance(looks, int):
        spent = looks is not None and look > looks
        open_end = None if spent else looks
        further = look + (min(n) >= LEAST)
        later = None if looks is not None and further > looks else stats.look_alpha(further, looks, alpha)
        return LookShare(look, stats.look_alpha(look, open_end, alpha), later, spent)
    now, last = min(n), max(looks)
    sizes = tuple(sorted({min(each) for each in before if min(each) < now} | {max(now, 1)}))
    if now > last:
        return LookShare(look, stats.look_alpha(1, None, alpha), None, spent=True)
    later = stats.sized_alpha((*sizes, last), last, alpha) if now < last else None
    return LookShare(look, stats.sized_alpha(sizes, last, alpha), later)


def _shows(verdict: str, held: Sequence[Ends], smallest: float) -> str:
    """What all these readings show: on which side of 0 they lie, or of the smallest effect. Of an open answer no more
    than that it is better at all."""
    low, high = min((x[1] for x in held), default=math.nan), max((x[2] for x in held), default=math.nan)
    if verdict == NO:
        return "below 0" if high < 0 else "smallest effect"
    if verdict == YES and low >= smallest > 0:
        return "smallest effect"
    return "above 0" if low > 0 else ""


def _add_readings(x: Answer) -> None:
    if worst := x.readings.get("as the worst"):
        without, with_them = wording.reading((x.delta, x.low, x.high)), wording.reading(worst)
        x.notes.append(
            f"{wording.BOTH}: {without} without them, {with_them} with each as the worst there can be or was"
        )


def _add_overstatement(x: Answer) -> None:
    """Who says yes only where it is clear says it of lucky numbers more often: by how much, were half of it true."""
    if x.verdict != YES or not x.delta > x.low:
        return
    df = sum(x.n) - 2
    error = (x.delta - x.low) / stats.t_quantile((1 + x.level) / 2, df)
    factor = stats.overstatement(x.delta / 2, error, df, x.level, x.smallest_effect)
    x.overstates, x.overstates_at = factor, x.delta / 2
    if factor >= 1.1:
        x.notes.append(
            f"{wording.OVERSTATES}: were half of it true ({x.delta / 2:.4g}), a yes would show"
            f" {factor:.2g} times as much on average; `--replicate` shows what is left of it"
        )


def _check_effect(smallest: float, paired: bool, at: str, comparisons: int) -> None:
    if comparisons < 1:
        raise ValueError(f"`comparisons` must be at least 1, but is {comparisons}")
    if not (math.isfinite(smallest) and smallest >= 0):
        raise ValueError(f"`smallest_effect` must be a number >= 0 in units of the outcome, but is {smallest}")
    if paired and at not in PAIRED:
        raise ValueError(f"`paired` goes with {' and '.join(PAIRED)}, but `at` is {at}: leave it out")
