"""Is B better than A, and can one tell yet? Runs in, one number a run, an interval, a verdict (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from relab import stats
from relab.record.evaluations import evaluations
from relab.record.history import History, flaw, measured

AT = ("final", "mean_last_m", "first_step_reaching", "success_rate")
PAIRED = ("final", "mean_last_m")  # outcomes that can be compared within seeds
Ends = tuple[float, float, float]  # delta, low, high
DIRECTIONS = {"higher": 1, "lower": -1}
YES, NO, OPEN = "yes", "no", "cannot tell yet"
LEAST = 5  # seeds a variant: below, no interval has been shown to hold
METHODS = {
    "mean": "difference of means, Welch's t widened by Hall's skewness correction",
    "paired": "mean of differences within seeds, t widened by Hall's skewness correction",
    "time": "difference of Kaplan-Meier mean steps up to the horizon, Welch's t widened by Hall's skewness correction",
    "rate": "difference of success rates, Newcombe's interval with episodes clustered by seed",
}
DIVERGED = "diverged: "  # how the note of such a run begins


@dataclass(frozen=True)
class Outcome:
    """The one number of a run. NaN is a run without one, and `note` says why."""

    value: float
    seed: int | None = None
    run: str = ""
    reached: bool = True  # first_step_reaching: False is a run that ended at step `value` without getting there
    episodes: int = 0  # how many `value` is the mean or share of, where that is known
    note: str = ""
    part: str = ""  # which config, where a variant pools several: the same seed of another config is another sample
    stopped: bool = False  # before its end, on a finding: `value` is as it stood then

    @property
    def diverged(self) -> bool:
        """Whether it has no number because what it is made of is not finite."""
        return math.isnan(self.value) and self.note.startswith(DIVERGED)

    @property
    def why(self) -> str:
        return self.note.removeprefix(DIVERGED)


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
    looks: int | None
    seeds_needed: tuple[int, int] | None
    a: list[Outcome]
    b: list[Outcome]
    notes: list[str] = field(default_factory=list)
    comparisons: int = 1  # declared together, for which the level was raised
    m: int | None = None  # of mean_last_m
    reach: float | None = None  # of first_step_reaching

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON (non-finite numbers as jsonl.encode writes them)."""
        return asdict(self)


# ---- A run's number


def outcome(
    history: History,
    at: str = "final",
    metric: str = "eval/return_det",
    *,
    m: int = 5,
    reach: float | None = None,
    direction: str = "higher",
) -> Outcome:
    """One number of a run: its last value, the mean of its last m, the first step at `reach`, or its success rate."""
    _check(at, direction)
    base = Outcome(math.nan, _seed(history), history.folder.name)
    if at == "success_rate":
        return _success(history, base)
    if metric not in history.columns or not len(history.columns[metric].values):
        return replace(base, note=f"no `{metric}` in its record")
    steps, values = measured(history, metric)
    if not len(values):
        return replace(base, note=f"no number in `{metric}`: no episode ended")
    if at == "first_step_reaching":
        return _reaching(steps, values, base, reach, DIRECTIONS[direction])
    return _last(values, replace(base, episodes=_episodes(history, metric)), 1 if at == "final" else m)


def _check(at: str, direction: str) -> None:
    if at not in AT or direction not in DIRECTIONS:
        raise ValueError(
            f"`at` must be one of {', '.join(AT)} and `direction` higher or lower, but got {at!r} and {direction!r}"
        )


def sign_of(at: str, direction: str) -> int:
    """+1 where a larger number is better: steps are better when fewer, whatever the metric."""
    return {"success_rate": 1, "first_step_reaching": -1}.get(at, DIRECTIONS[direction])


def _seed(history: History) -> int | None:
    seed = history.meta.get("seed", history.config.get("seed"))
    return seed if type(seed) is int else None


def _episodes(history: History, metric: str) -> int:
    """Of the last evaluation, where the metric is one of its means."""
    counts = history.columns.get("eval/episodes") if metric.startswith("eval/") else None
    return int(counts.values[-1]) if counts is not None and len(counts.values) else 0


def _last(values: np.ndarray, base: Outcome, m: int) -> Outcome:
    if m < 1:
        raise ValueError(f"mean_last_m needs m >= 1, but got {m}")
    last = values[-m:]
    if why := flaw(values, m):
        return replace(base, note=f"{DIVERGED}{why}")
    note = f"only {len(last)} of {m} values" if len(last) < m else ""
    return replace(base, value=float(last.mean()), note=note)


def _reaching(steps: np.ndarray, values: np.ndarray, base: Outcome, reach: float | None, sign: int) -> Outcome:
    if reach is None:
        raise ValueError("first_step_reaching needs the level to reach: give `reach`")
    there = np.flatnonzero(np.isfinite(values) & (sign * values >= sign * reach))  # inf reaches nothing, nor does NaN
    if len(there):
        return replace(base, value=float(steps[there[0]]))
    return replace(base, value=float(steps[-1]), reached=False, note=f"never at {reach:g}")


def _success(history: History, base: Outcome) -> Outcome:
    played = evaluations(history.evals, "det")
    if not played:
        return replace(base, note="no deterministic evaluation in its record")
    last = played[-1]
    if last.success is None:
        return replace(base, note=f"its {last.n} episodes do not all say if they succeeded")
    return replace(base, value=last.success, episodes=last.n)


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
    looks: int | None = None,
    alpha: float = 0.05,
    comparisons: int = 1,
    m: int | None = None,
    reach: float | None = None,
) -> Answer:
    """Is B better than A by at least the smallest effect that matters?

    yes: low > 0 and delta >= smallest_effect; no: high < smallest_effect; else cannot tell yet, and always so under
    five seeds a variant. `looked_at` holds the seeds (a, b) of earlier answers to this question: looking again
    spends a share of alpha each time (stats.look_alpha), so that adding seeds until it says yes does not help.
    `comparisons` is how many answers were declared together: each gets its share of alpha, so that the chance of any
    error among them stays below it. `m` and `reach` say how the outcomes were taken, for the sentence.
    """
    _check(at, direction)
    _check_effect(smallest_effect, paired, at, comparisons)
    alpha /= comparisons
    notes: list[str] = []
    arms = [_unique(arm, name, notes) for arm, name in zip((a, b), names, strict=True)]
    arms = _partners(arms, notes) if paired else arms
    good = _finite(arms, paired)
    n = (len(good[0]), len(good[1]))
    look = stats.look_number([sizes for sizes in looked_at if min(sizes) >= LEAST], n)
    spent = looks is not None and look > looks
    task = _Task(at, direction, paired, 1 - stats.look_alpha(look, None if spent else looks, alpha))
    delta, low, high = task.interval(*good)
    verdict = OPEN if spent else task.verdict(arms, (delta, low, high), smallest_effect, notes)
    needed = None if spent or verdict != OPEN else _needed(task, good, smallest_effect, delta, (look, looks, alpha))
    if spent:
        notes.append(f"the {looks} declared looks are used up: the interval is no longer a basis for an answer")
    notes += [*_missing(arms, names), *_constant(good, names, at)]
    reply = Answer(
        verdict, "", delta, low, high, smallest_effect, task.level, METHODS[task.kind], at,
        "success" if at == "success_rate" else metric, direction, names, n, look, looks, needed,
        list(arms[0]), list(arms[1]), notes, comparisons, m if at == "mean_last_m" else None,
        reach if at == "first_step_reaching" else None,
    )  # fmt: skip
    reply.text = sentence(reply)
    return reply


def _check_effect(smallest: float, paired: bool, at: str, comparisons: int) -> None:
    if comparisons < 1:
        raise ValueError(f"`comparisons` must be at least 1, but is {comparisons}")
    if not (math.isfinite(smallest) and smallest >= 0):
        raise ValueError(f"`smallest_effect` must be a number >= 0 in units of the outcome, but is {smallest}")
    if paired and at not in PAIRED:
        raise ValueError(f"`paired` goes with {' and '.join(PAIRED)}, but `at` is {at}: leave it out")


def _finite(arms: list[list[Outcome]], paired: bool) -> list[list[Outcome]]:
    """The runs that have a number; of pairs, those of which both have."""
    if paired:
        both = [pair for pair in zip(*arms, strict=True) if all(math.isfinite(x.value) for x in pair)]
        return [[pair[0] for pair in both], [pair[1] for pair in both]]
    return [[x for x in arm if math.isfinite(x.value)] for arm in arms]


def _verdict(delta: float, low: float, high: float, smallest: float) -> str:
    if low > 0 and delta >= smallest:
        return YES
    return NO if high < smallest else OPEN


@dataclass(frozen=True)
class _Task:
    """How two lists of outcomes become an interval."""

    at: str
    direction: str
    paired: bool
    level: float

    @property
    def kind(self) -> str:
        by_at = {"success_rate": "rate", "first_step_reaching": "time"}
        return by_at.get(self.at, "paired" if self.paired else "mean")

    @property
    def sign(self) -> int:
        return sign_of(self.at, self.direction)

    def numbers(self, a: Sequence[Outcome], b: Sequence[Outcome]) -> list[np.ndarray]:
        """One number a run for the mean; times become pseudo-values up to the common horizon."""
        values = [np.array([x.value for x in arm], np.float64) for arm in (a, b)]
        if self.kind != "time" or not all(map(len, values)):
            return values
        reached = [np.array([x.reached for x in arm], bool) for arm in (a, b)]
        horizon = stats.common_horizon(*zip(values, reached, strict=True))
        return [stats.pseudo_times(*pair, horizon) for pair in zip(values, reached, strict=True)]

    def interval(self, a: Sequence[Outcome], b: Sequence[Outcome]) -> Ends:
        """delta, low, high, + is better; ends only from five seeds on."""
        x, y = self.numbers(a, b)
        if not len(x) or not len(y):
            return math.nan, math.nan, math.nan
        if min(len(x), len(y)) < LEAST:
            return self.sign * float(y.mean() - x.mean()), math.nan, math.nan
        mid, low, high, *_ = self._unsigned(x, y, a, b)
        return (mid, low, high) if self.sign > 0 else (-mid, -high, -low)

    def _unsigned(self, x: np.ndarray, y: np.ndarray, a: Sequence[Outcome], b: Sequence[Outcome]) -> stats.Interval:
        if self.kind == "rate":
            m, k = (np.array([run.episodes for run in arm], np.float64) for arm in (a, b))
            return stats.rate_difference(np.round(x * m), m, np.round(y * k), k, self.level)
        if self.kind == "paired":
            return stats.paired_difference(x, y, self.level)
        return stats.difference(x, y, self.level)

    def verdict(self, arms: list[list[Outcome]], ends: Ends, smallest: float, notes: list[str]) -> str:
        """What the interval says; a yes or no must also hold if the runs without a number had gone against it."""
        verdict = _verdict(*ends, smallest)
        everyone = [x for arm in arms for x in arm if math.isfinite(x.value)]
        if verdict == OPEN or len(everyone) == len(arms[0]) + len(arms[1]):
            return verdict
        adverse = (1, -1) if verdict == YES else (-1, 1)  # a good A and a bad B speak against a yes
        filled = [
            [x if math.isfinite(x.value) else self._fill(everyone, side) for x in arm]
            for arm, side in zip(arms, adverse, strict=True)
        ]
        if _verdict(*self.interval(filled[0], filled[1]), smallest) == verdict:
            return verdict
        notes.append(
            f"it would be {verdict} without the runs that have no number, but not if those had gone against it"
        )
        return OPEN

    def _fill(self, everyone: list[Outcome], side: int) -> Outcome:
        """The best (+1) or worst (-1) outcome seen in either arm; a level never reached is the worst time."""
        best = max(everyone, key=lambda x: (self.sign * x.value, x.reached))
        worst = min(everyone, key=lambda x: (self.sign * x.value, x.reached))
        if self.kind == "rate":
            return replace(best, value=1.0 if side > 0 else 0.0)
        return best if side > 0 else replace(worst, reached=worst.reached and self.kind != "time")


def _needed(
    task: _Task, good: list[list[Outcome]], smallest: float, delta: float, plan: tuple[int, int | None, float]
) -> tuple[int, int] | None:
    """Seeds a variant for a power of 0.8 at the next look: to tell the smallest effect from none, or, where the runs
    there are would do for that, to tell the delta seen from the bound that it is close to."""
    (look, looks, alpha), (x, y) = plan, task.numbers(*good)
    n = max(len(x), len(y))
    look += min(len(x), len(y)) >= LEAST
    if min(len(x), len(y)) < 2 or (looks is not None and look > looks):
        return None
    if task.kind == "paired":
        x = y = (y - x) / math.sqrt(2)  # n pairs tell as much as n + n seeds of this spread
    for effect in (smallest or abs(delta), delta if delta >= smallest else smallest - delta):
        low, high = stats.seeds_range(effect, x, y, stats.look_alpha(look, looks, alpha)) if effect > 0 else (0, 0)
        if high > n:
            return max(low, n + 1), high
    return None


# ---- What must be said


def _unique(arm: Sequence[Outcome], name: str, notes: list[str]) -> list[Outcome]:
    """A seed twice is not two samples: the last run of it counts, as in the report."""
    counted = {(x.part, x.seed): i for i, x in enumerate(arm) if x.seed is not None}
    kept = []
    for i, x in enumerate(arm):
        if x.seed is not None and counted[x.part, x.seed] != i:
            notes.append(f"{name}: seed {x.seed} is there more than once; {x.run or 'an earlier run'} is left out")
        else:
            kept.append(x)
    return kept


def _partners(arms: list[list[Outcome]], notes: list[str]) -> list[list[Outcome]]:
    """Both arms in the order of their common seeds."""
    by_seed = [{x.seed: x for x in arm if x.seed is not None} for arm in arms]
    both = sorted(set(by_seed[0]) & set(by_seed[1]))
    alone = sum(len(arm) for arm in arms) - 2 * len(both)
    if alone:
        notes.append(f"{alone} runs without a partner of the same seed are left out")
    return [[arm[seed] for seed in both] for arm in by_seed]


def _missing(arms: list[list[Outcome]], names: tuple[str, str]) -> list[str]:
    notes = []
    for arm, name in zip(arms, names, strict=True):
        for x in arm:
            who = f"{name}: {'seed ' + str(x.seed) if x.seed is not None else x.run or 'a run'}"
            if not math.isfinite(x.value):
                notes.append(f"{who} has no number ({x.note or 'not finite'}) and is left out of delta")
        notes += _shared_notes([x for x in arm if x.note and math.isfinite(x.value)], name)
    return notes


def _shared_notes(arm: list[Outcome], name: str) -> list[str]:
    """What is to be said of several seeds is said once."""
    notes = []
    for note in dict.fromkeys(x.note for x in arm):
        who = [str(x.seed) if x.seed is not None else x.run or "?" for x in arm if x.note == note]
        notes.append(f"{name}: {note} (seed{'s' if len(who) > 1 else ''} {', '.join(who)})")
    return notes


def _constant(good: list[list[Outcome]], names: tuple[str, str], at: str) -> list[str]:
    """Seeds that all agree hide what fewer than one in n does; an interval of a mean cannot know of it."""
    if at == "success_rate":
        return []  # its interval allows for it
    notes = []
    for arm, name in zip(good, names, strict=True):
        values = np.array([x.value for x in arm])
        if len(values) >= LEAST and values.std() <= 0.02 * abs(values.mean()) and all(x.reached for x in arm):
            unseen = 1 - 0.05 ** (1 / len(values))
            notes.append(f"all {len(values)} seeds of {name} agree; up to {unseen:.0%} of its runs could fail unseen")
    return notes


def sentence(x: Answer) -> str:
    """The answer in one sentence, with the numbers it rests on."""
    a, b = x.names
    more = f"; {span(x.seeds_needed)} seeds a variant should tell" if x.seeds_needed else ""
    if min(x.n) < LEAST:
        return f"No answer under {LEAST} seeds a variant: {a} has {x.n[0]}, {b} has {x.n[1]}{more}."
    numbers = f"{x.delta:+.4g} [{x.low:+.4g}, {x.high:+.4g}] ({_what(x)}; {_sure(x)})"
    if x.verdict == YES:
        matters = f"; {x.smallest_effect:.4g} is what matters" if x.smallest_effect else ""
        return f"Yes: {b} is better than {a}, by {numbers}{matters}."
    if x.verdict == OPEN:
        by = f" by {x.smallest_effect:.4g}" if x.smallest_effect else ""
        return f"Cannot tell yet whether {b} is better than {a}{by}: {numbers}{more}."
    how = "worse" if x.high < 0 else f"not better than {a} by the {x.smallest_effect:.4g} that matters"
    return f"No: {b} is {how}{' than ' + a if x.high < 0 else ''}, {numbers}."


def span(ends: Sequence[int]) -> str:
    return f"{ends[0]} to {ends[1]}" if ends[0] != ends[1] else str(ends[0])


def _sure(x: Answer) -> str:
    many = f", corrected for {x.comparisons} comparisons" if x.comparisons > 1 else ""
    seeds = f"{x.n[0]} pairs" if x.method == METHODS["paired"] else f"{x.n[0]} and {x.n[1]} seeds"
    return f"{100 * x.level:.4g} % interval, {seeds}{many}"


def _what(x: Answer) -> str:
    if x.at == "first_step_reaching":
        there = f"reaches {x.reach:g}" if x.reach is not None else "gets there"
        return f"steps saved until {x.metric} {there}, + is better"
    last = f"mean of the last {x.m} {x.metric}" if x.m is not None else f"mean of the last {x.metric}"
    name = {"final": f"final {x.metric}", "mean_last_m": last, "success_rate": "success rate"}
    return f"{name[x.at]}, + is better"
