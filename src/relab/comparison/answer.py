"""Is B better than A, and can one tell yet? Runs in, one number a run, an interval, a verdict (docs/statistics.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from relab import stats
from relab.comparison import remarks, wording
from relab.comparison.wording import NO, OPEN, YES, sentence
from relab.record.evaluations import evaluations
from relab.record.history import History, flaw, measured
from relab.stats import compare_means, means

AT = ("final", "mean_last_m", "first_step_reaching", "success_rate")
PAIRED = ("final", "mean_last_m")  # outcomes that can be compared within seeds
Ends = tuple[float, float, float]  # delta, low, high
DIRECTIONS = {"higher": 1, "lower": -1}
LEAST = stats.LEAST  # seeds a variant: below, no interval has been shown to hold
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
    grid: float = 0.0  # first_step_reaching: steps since the evaluation before; it may have got there at any of them

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
    looks: int | list[int] | None  # declared: how many, or at how many seeds each
    seeds_needed: tuple[int, int] | None
    a: list[Outcome]
    b: list[Outcome]
    notes: list[str] = field(default_factory=list)
    comparisons: int = 1  # declared together, for which the level was raised
    m: int | None = None  # of mean_last_m
    reach: float | None = None  # of first_step_reaching
    spending: str = ""  # how the error is shared among the looks
    shows: str = ""  # of a yes: "above 0" or "smallest effect"; of a no: "below 0" or "smallest effect"
    reason: str = ""  # why there is no answer although there are seeds enough: a key of wording.REASONS
    overstates: float | None = None  # of a yes: by which factor it would on average, were the truth `overstates_at`
    overstates_at: float | None = None
    readings: dict[str, list[float]] = field(default_factory=dict)  # delta, low, high without diverged runs, and with
    top: float | None = None  # the highest outcome there can be, where that is known
    bottom: float | None = None  # the lowest, likewise
    grid: float = 0.0  # steps between evaluations, of first_step_reaching

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
        first = int(there[0])
        return replace(base, value=float(steps[first]), grid=float(steps[first] - steps[first - 1]) if first else 0.0)
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
    _check(at, direction)
    _check_effect(smallest_effect, paired, at, comparisons)
    alpha /= comparisons
    notes: list[str] = []
    arms = [remarks.unique(arm, name, notes) for arm, name in zip((a, b), names, strict=True)]
    arms = remarks.partners(arms, notes) if paired else arms
    good = _finite(arms, paired)
    n = (len(good[0]), len(good[1]))
    taken = [sizes for sizes in looked_at if min(sizes) >= LEAST]
    share = look_share(taken, n, looks, alpha)
    task = _Task(at, direction, paired, 1 - share.alpha, bounds)
    ends = task.interval(*good)
    reason = "spent" if share.spent else task.untold(good)
    ends = (ends[0], math.nan, math.nan) if reason in NO_INTERVAL else ends
    verdict = OPEN if reason else task.verdict(arms, ends, smallest_effect, notes)
    needed = None if reason or verdict != OPEN else _needed(task, good, smallest_effect, ends[0], share.next)
    notes += [*remarks.missing(arms, names), *remarks.constant(good, names, at)]
    notes += [] if paired or at == "success_rate" else remarks.apart(task.numbers(*good), names, task.limits(good))
    reply = Answer(
        verdict, "", *ends, smallest_effect, task.level, METHODS[task.kind], at,
        "success" if at == "success_rate" else metric, direction, names, n, share.look,
        looks if looks is None or isinstance(looks, int) else list(looks), needed,
        list(arms[0]), list(arms[1]), notes, comparisons, m if at == "mean_last_m" else None,
        reach if at == "first_step_reaching" else None, stats.spending(looks), _shows(verdict, ends, smallest_effect),
        reason, readings=task.readings(arms, ends), grid=_grid(good),
        top=bounds[1] if math.isfinite(bounds[1]) else None, bottom=bounds[0] if math.isfinite(bounds[0]) else None,
    )  # fmt: skip
    _add_readings(reply)
    _add_overstatement(reply)
    reply.text = sentence(reply)
    return reply


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


def _shows(verdict: str, ends: Ends, smallest: float) -> str:
    """What the interval shows: on which side of 0 it lies, or of the smallest effect."""
    _, low, high = ends
    if verdict == YES:
        return "smallest effect" if low >= smallest > 0 else "above 0"
    return ("below 0" if high < 0 else "smallest effect") if verdict == NO else ""


def _grid(good: list[list[Outcome]]) -> float:
    steps = [x.grid for arm in good for x in arm if x.grid > 0]
    return float(np.mean(steps)) if steps else 0.0


def _add_readings(x: Answer) -> None:
    if worst := x.readings.get("as the worst"):
        d, low, high = worst
        without = f"{x.delta:+.4g} [{x.low:+.4g}, {x.high:+.4g}]"
        x.notes.append(
            f"diverged runs are read both ways: {without} without them, {d:+.4g} [{low:+.4g}, {high:+.4g}] with each as"
            " the worst there can be or was"
        )


def _add_overstatement(x: Answer) -> None:
    """Who says yes only where it is clear says it of lucky numbers more often: by how much, were half of it true."""
    if x.verdict != YES or not x.delta > x.low:
        return
    error = (x.delta - x.low) / stats.t_quantile((1 + x.level) / 2, sum(x.n) - 2)
    factor = stats.overstatement(x.delta / 2, error, max(x.delta - x.low, x.smallest_effect))
    x.overstates, x.overstates_at = factor, x.delta / 2
    if factor >= 1.1:
        x.notes.append(
            f"at so many seeds a yes tends to overstate: were half of it true ({x.delta / 2:.4g}), a yes would show"
            f" {factor:.2g} times as much on average; `--replicate` shows what is left of it"
        )


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
    bounds: tuple[float, float] = (-math.inf, math.inf)

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
        times = _times([a, b])
        return [stats.pseudo_times(*arm, stats.common_horizon(*times)) for arm in times]

    def limits(self, good: Sequence[Sequence[Outcome]]) -> tuple[float, float]:
        """The lowest and highest of these numbers there can be: a run that does not reach the level
        has the horizon."""
        if self.kind == "rate":
            return 0.0, 1.0
        if self.kind != "time":
            return self.bounds
        late = all(map(len, good)) and not all(x.reached for arm in good for x in arm)
        return 0.0, stats.common_horizon(*_times(good)) if late else math.inf

    def interval(self, a: Sequence[Outcome], b: Sequence[Outcome]) -> Ends:
        """delta, low, high, + is better; ends only from five seeds on."""
        x, y = self.numbers(a, b)
        if not len(x) or not len(y):
            return math.nan, math.nan, math.nan
        if min(len(x), len(y)) < LEAST:
            return self.sign * float(y.mean() - x.mean()), math.nan, math.nan
        mid, low, high, *_ = self._unsigned(x, y, a, b)
        if self.kind != "time":  # no difference is larger than the range of what is possible
            most = self.bounds[1] - self.bounds[0]
            low, high = max(low, min(-most, mid)), min(high, max(most, mid))
        return (mid, low, high) if self.sign > 0 else (0.0 - mid, 0.0 - high, 0.0 - low)  # never -0

    def untold(self, good: list[list[Outcome]]) -> str:
        """Why these numbers cannot tell the arms apart, whatever their interval; empty where they may."""
        if min(map(len, good)) < LEAST:
            return ""
        x, y = (np.array([run.value for run in arm]) for arm in good)
        if self.kind == "time" and not any(run.reached for arm in good for run in arm):
            return "unreached"
        if self.kind == "time" and 0 < _grid(good) >= abs(x.mean() - y.mean()):
            return "grid"
        if self.kind != "time" and self.sign > 0 and min(x.mean(), y.mean()) >= compare_means.full(self.bounds):
            return "ceiling"
        return "ties" if self.kind != "rate" and np.ptp(np.concatenate([x, y])) == 0 else ""

    def readings(self, arms: list[list[Outcome]], ends: Ends) -> dict[str, list[float]]:
        """Both ways to count runs that diverged: left out, and as the worst there can be (or was)."""
        everyone = [x for arm in arms for x in arm if math.isfinite(x.value)]
        if not everyone or not any(x.diverged for arm in arms for x in arm) or self.paired:
            return {}
        worst = self._worst(everyone)
        filled = [[worst if x.diverged else x for x in arm if x.diverged or math.isfinite(x.value)] for arm in arms]
        return {"left out": list(ends), "as the worst": list(self.interval(*filled))}

    def _worst(self, everyone: list[Outcome]) -> Outcome:
        """What a diverged run is worth: the worst there can be, where that is not known the worst seen."""
        worst = self._fill(everyone, -1)
        bound = self.bounds[0 if self.sign > 0 else 1]
        return replace(worst, value=bound) if self.kind != "time" and math.isfinite(bound) else worst

    def _unsigned(self, x: np.ndarray, y: np.ndarray, a: Sequence[Outcome], b: Sequence[Outcome]) -> stats.Interval:
        if self.kind == "rate":
            m, k = (np.array([run.episodes for run in arm], np.float64) for arm in (a, b))
            reach = stats.rate_difference(np.round(x * m), m, np.round(y * k), k, self.level)
            test = stats.difference(x, y, self.level, self.limits([a, b]))
            low, high = compare_means.decided(_ends(reach), _ends(test), np.asarray(reach.mid))
            return reach._replace(low=float(low), high=float(high))
        if self.kind == "paired":
            return stats.paired_difference(x, y, self.level)
        return stats.difference(x, y, self.level, self.limits([a, b]))

    def verdict(self, arms: list[list[Outcome]], ends: Ends, smallest: float, notes: list[str]) -> str:
        """What the interval says; a yes or no must also hold with diverged runs as the worst, and if other runs without
        a number had gone against it."""
        verdict = _verdict(*ends, smallest)
        everyone = [x for arm in arms for x in arm if math.isfinite(x.value)]
        if verdict == OPEN or len(everyone) == len(arms[0]) + len(arms[1]):
            return verdict
        adverse = (1, -1) if verdict == YES else (-1, 1)  # a good A and a bad B speak against a yes
        filled = [
            [
                x if math.isfinite(x.value) else self._worst(everyone) if x.diverged else self._fill(everyone, side)
                for x in arm
            ]
            for arm, side in zip(arms, adverse, strict=True)
        ]
        if _verdict(*self.interval(filled[0], filled[1]), smallest) == verdict:
            return verdict
        worst = any(x.diverged for arm in arms for x in arm)
        but = "with diverged ones as the worst" if worst else "if those had gone against it"
        notes.append(f"it would be {verdict} without the runs that have no number, but not {but}")
        return OPEN

    def _fill(self, everyone: list[Outcome], side: int) -> Outcome:
        """The best (+1) or worst (-1) outcome seen in either arm; a level never reached is the worst time."""
        best = max(everyone, key=lambda x: (self.sign * x.value, x.reached))
        worst = min(everyone, key=lambda x: (self.sign * x.value, x.reached))
        if self.kind == "rate":
            return replace(best, value=1.0 if side > 0 else 0.0)
        return best if side > 0 else replace(worst, reached=worst.reached and self.kind != "time")


def _ends(x: stats.Interval) -> means.Ends:
    return np.asarray(x.low), np.asarray(x.high)


def _times(arms: Sequence[Sequence[Outcome]]) -> list[tuple[np.ndarray, np.ndarray]]:
    """(step, whether it got there) of each run."""
    return [(np.array([x.value for x in arm], np.float64), np.array([x.reached for x in arm], bool)) for arm in arms]


def _needed(
    task: _Task, good: list[list[Outcome]], smallest: float, delta: float, alpha: float | None
) -> tuple[int, int] | None:
    """Seeds a variant for a power of 0.8 at the next look: to tell the smallest effect from none, or, where the runs
    there are would do for that, to tell the delta seen from the bound that it is close to."""
    x, y = task.numbers(*good)
    n = max(len(x), len(y))
    if min(len(x), len(y)) < 2 or alpha is None:
        return None
    for effect in (smallest or abs(delta), delta if delta >= smallest else smallest - delta):
        if effect <= 0:
            continue
        pairs = task.kind == "paired"
        low, high = stats.pairs_range(effect, y - x, alpha) if pairs else stats.seeds_range(effect, x, y, alpha)
        if high > n:
            return max(low, n + 1), high
    return None
