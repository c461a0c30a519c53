"""Is a run far outside of all healthy ones, and in what? How far, on which side, and how often that happens by luck.

A feature is far out where it lies beyond the most extreme healthy run by more than that one lies from the median, and
by a least distance: tenfold for sizes (a hundredfold is always enough), LEAST for what is counted from 0 to 1 or may be
below 0. The largest such distance is the run's score. Each healthy run has a score too, against all healthy runs of
other tasks, so that a score has a tail probability that covers all features at once: the share of (algorithm, task)
pairs that reach it when they are strangers themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from relab.health.features import Key
from relab.health.reference import FEWEST, HealthyRun, table
from relab.record import glossary
from relab.stats import conformal

TENFOLD, HUNDREDFOLD = 1.0, 2.0  # in powers of ten
LEAST = {"nats": 0.5, "share": 0.2, "return": 0.5}  # by the unit of the metric
SMALLEST = 1e-8  # sizes below are alike
WORTH_SAYING = {"return²": 0.1}  # squared errors under a tenth of the squared return are no alarm in any task
LEVELS = ("first", "middle", "last", "peak")
LATE = ("middle", "last")
HIGH, LOW = "high", "low"
UNMOVED = "updates that do not reach the policy: a learning rate near 0, no optimiser step, a ratio that is always 1"
BONUS = "an entropy bonus that is too large"


@dataclass(frozen=True)
class Sign:
    """A side on which a metric says something, in which features, and what most likely causes it."""

    metric: str
    side: str
    features: tuple[str, ...]
    about: str  # place in the chain of causes
    cause: str


# Levels that depend on the task or on the number of actions are left out: learning rates, entropies, temperatures.
SIGNS = (
    Sign("policy/kl", HIGH, LEVELS, "step", "steps that are too large: learning rate, epochs or a clip that is wide"),
    Sign("policy/kl", LOW, ("first", "peak"), "step",  # a solved task moves no more
         UNMOVED),
    Sign("policy/clip_share", HIGH, LEVELS, "step", "too many epochs or a learning rate that is too large"),
    Sign("policy/entropy", HIGH, ("growth",), "policy", BONUS),
    Sign("policy/std_mean", HIGH, ("growth",), "policy", BONUS),
    Sign("value/explained_variance", LOW, LEVELS, "critic", "a critic that is not trained, or targets that are wrong"),
    Sign("value/loss", HIGH, LATE, "critic", "rewards of another scale than the returns, or a critic that diverges"),
    Sign("value/critic_loss", HIGH, LATE, "critic",
         "rewards of another scale than the returns, or a critic that diverges"),
    Sign("value/q_mean", HIGH, LATE, "belief",
         "values that feed on themselves: ends that are ignored, or a gamma of 1"),
    Sign("value/q_mean", LOW, LATE, "belief", "rewards with the wrong sign or scale, or a critic that diverges"),
    Sign("policy/actor_loss", HIGH, LATE, "belief", "values far below all returns: a critic that diverges"),
    Sign("policy/actor_loss", LOW, LATE, "belief", "values far above all returns: a critic that diverges"),
    Sign("policy/exploration", HIGH, ("last",), "policy", "exploration that is never lowered"),
    Sign("policy/exploration", LOW, ("first",), "policy", "no exploration from the start on"),
    Sign("optim/temperature", HIGH, ("growth",), "optimiser",
         "a target entropy that cannot be reached, or a wrong sign"),
)  # fmt: skip


@dataclass(frozen=True)
class Excess:
    """One feature of a run outside of what healthy runs show."""

    sign: Sign
    key: Key
    value: float
    edge: float  # the most extreme healthy value on that side
    low: float  # between which all healthy runs lie
    high: float
    score: float  # distance beyond the edge, in margins: 1 and more is far
    cells: int

    @property
    def times(self) -> float:
        """How many times the most extreme healthy value, where that can be said; else NaN."""
        same = self.value * self.edge > 0 and self.key.feature != "growth"
        return self.value / self.edge if same else math.nan


@dataclass(frozen=True)
class Edge:
    """What healthy runs show of a feature, seen from one side; `turn` is 1 where high is strange, else -1."""

    turn: float
    outermost: float  # on the scale of `place`
    middle: float
    value: float  # of the outermost run
    low: float
    high: float
    cells: int


def excesses(
    algo: str, kind: str | None, numbers: Mapping[Key, float], healthy: Sequence[HealthyRun] | None = None
) -> list[Excess]:
    """All that lies outside of some healthy runs, or of all in the table; the furthest first."""
    beyond = [_excess(sign, Key(sign.metric, feature), algo, kind, numbers, healthy)
              for sign in SIGNS for feature in sign.features if Key(sign.metric, feature) in numbers]  # fmt: skip
    return sorted((e for e in beyond if e is not None), key=lambda e: -e.score)


def _excess(
    sign: Sign,
    key: Key,
    algo: str,
    kind: str | None,
    numbers: Mapping[Key, float],
    healthy: Sequence[HealthyRun] | None,
) -> Excess | None:
    value = numbers[key]
    edge = _shipped_edge(algo, kind, key, sign.side) if healthy is None else _edge(algo, kind, key, sign.side, healthy)
    if edge is None or _small(sign, value):
        return None
    beyond = edge.turn * place(key, value) - edge.outermost
    if beyond <= 0:
        return None
    margins = beyond / min(max(edge.outermost - edge.middle, _least(key)), _most(key))
    return Excess(sign, key, value, edge.value, edge.low, edge.high, margins, edge.cells)


def score(beyond: Iterable[Excess]) -> float:
    """How strange a run is: its furthest feature; 0 inside."""
    return max((e.score for e in beyond), default=0.0)


def with_scores(runs: Sequence[HealthyRun]) -> list[HealthyRun]:
    """Each healthy run as a stranger: against the runs of other tasks."""
    rest = {task: [run for run in runs if run.task != task] for task in {run.task for run in runs}}
    return [replace(run, score=score(excesses(run.algo, run.kind, run.numbers, rest[run.task]))) for run in runs]


def tail(value: float) -> float:
    """The share of (algorithm, task) pairs, at most, whose healthy runs score as high as strangers."""
    runs = table()
    return conformal.tail_above(value, [run.score for run in runs], [(run.algo, run.task) for run in runs])


def place(key: Key, value: float) -> float:
    """Where a value stands on the scale on which it is compared: sizes by their logarithm."""
    by_size = _by_size(key.metric) and key.feature in LEVELS
    return math.log10(max(value, SMALLEST)) if by_size else value


def _by_size(metric: str) -> bool:
    known = glossary.metric(metric)
    return known.low >= 0 and math.isinf(known.high)


def _least(key: Key) -> float:
    if _by_size(key.metric):
        return TENFOLD
    unit = "return" if key.metric == "policy/actor_loss" else glossary.metric(key.metric).unit
    return LEAST.get(unit, LEAST["share"])


def _most(key: Key) -> float:
    """A size a hundred times beyond all healthy ones is far, however close to 0 those of solved tasks come."""
    return HUNDREDFOLD if _by_size(key.metric) else math.inf


def _small(sign: Sign, value: float) -> bool:
    return sign.side == HIGH and value < WORTH_SAYING.get(glossary.metric(sign.metric).unit, -math.inf)


@cache
def _shipped_edge(algo: str, kind: str | None, key: Key, side: str) -> Edge | None:
    return _edge(algo, kind, key, side, table())


def _edge(algo: str, kind: str | None, key: Key, side: str, healthy: Sequence[HealthyRun]) -> Edge | None:
    """None where there are too few cells."""
    rows = [run for run in healthy if run.algo == algo and kind in (None, run.kind) and key in run.numbers]
    values, cells = [run.numbers[key] for run in rows], [run.cell for run in rows]
    if len(set(cells)) < FEWEST:
        return None
    turn = 1.0 if side == HIGH else -1.0
    places = sorted(turn * place(key, value) for value in values)
    low, high = min(values), max(values)
    outermost = high if side == HIGH else low
    return Edge(turn, places[-1], places[len(places) // 2], outermost, low, high, len(set(cells)))
