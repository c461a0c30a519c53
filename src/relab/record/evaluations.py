"""How good was the agent at an evaluation, and how sure is that? The one place where a mean and its error are made.

A row of evals.jsonl holds every episode that was played. Agents that share a world share its luck: their episodes
count as one sample, the mean over that world. Plain Python, because a listing of thousands of runs makes one each.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MODES = ("det", "sampled")
OUTCOMES = ("return", "success")  # what an environment can be judged by
UNUSED = "unused"  # how a slot "ended" in which no agent was


@dataclass(frozen=True)
class Estimate:
    """How high a curve stands at a step: a mean, its standard error (NaN where it is not known), over n samples."""

    step: int
    mean: float
    se: float
    n: int

    @property
    def df(self) -> float:
        """Degrees of freedom of the error: how much was seen of the noise that it is told by."""
        return math.inf


@dataclass(frozen=True)
class Evaluation(Estimate):
    """The mean return of n episodes, or their share of success; agents that share a world share its episode."""

    mode: str = "det"
    spread: float = math.nan  # standard deviation of the returns, each agent's by itself
    length: float = math.nan  # mean
    success: float | None = None  # share; None where an episode does not say
    outcome: str = "return"  # which of the two `mean` is of

    @property
    def df(self) -> float:
        return self.n - 1.0 if self.n > 1 else math.inf  # of a single one the neighbours tell it

    @property
    def metric(self) -> str:
        return judging_metric(self.outcome, self.mode)


def judging_metric(outcome: str, mode: str) -> str:
    return f"eval/{outcome}_{mode}"


def outcome_of(meta: Mapping[str, Any]) -> str:
    """What a run is judged by, as its environment declared it in meta.json: return or success."""
    spec = meta.get("spec")
    declared = spec.get("outcome") if isinstance(spec, Mapping) else None
    return str(declared) if declared in OUTCOMES else "return"


def evaluation(row: Mapping[str, Any], outcome: str = "return") -> Evaluation | None:
    """What a row of evals.jsonl says; None if nobody played, ValueError where it is no evaluation."""
    step, mode = row.get("step"), row.get("mode")
    if type(step) is not int or mode not in MODES:
        raise ValueError(f"step {step!r}, mode {mode!r}")
    played = list(episodes(row))
    if not played:
        return None
    returns = [_number(e, "return") for e in played]
    mean, se, n = summary(samples(played, outcome))
    se = max(se, share_error(mean, n)) if outcome == "success" else se
    return Evaluation(step, mean, se, n, mode, _spread(returns), _length(played), _success(played), outcome)


def share_error(share: float, n: int) -> float:
    """The standard error of a share: half of Wilson's interval at z = 1, so that 0 of n is not known without error.

    >>> round(share_error(0.0, 50), 4), round(share_error(0.5, 100), 4)
    (0.0098, 0.0498)
    """
    return math.sqrt(share * (1 - share) / n + 1 / (4 * n * n)) / (1 + 1 / n)


def evaluations(rows: Sequence[Mapping[str, Any]], mode: str, outcome: str = "return") -> list[Evaluation]:
    """Those of a mode, in the order of the file; rows that are none are left out (history.problems lists them)."""
    return [each for row in rows if row.get("mode") == mode and (each := _or_none(row, outcome)) is not None]


def _or_none(row: Mapping[str, Any], outcome: str) -> Evaluation | None:
    try:
        return evaluation(row, outcome)
    except ValueError:
        return None


def episodes(row: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The episodes of a row that somebody played."""
    listed = row.get("episodes")
    if not isinstance(listed, (list, tuple)):
        raise ValueError(f"episodes {str(listed)[:40]!r}")
    for each in listed:
        if not isinstance(each, Mapping):
            raise ValueError(f"an episode {str(each)[:40]!r}")
        if each.get("end") != UNUSED:
            yield each


def samples(played: Sequence[Mapping[str, Any]], outcome: str = "return") -> list[float]:
    """One outcome for each world: the mean of its agents, or the episode itself where there is one agent."""
    worlds: dict[Any, list[float]] = {}
    for place, each in enumerate(played):
        seed = each.get("seed")
        shared = "agent" in each and isinstance(seed, (int, str))
        worlds.setdefault(seed if shared else ("alone", place), []).append(_number(each, outcome))
    return [_mean(outcomes) for outcomes in worlds.values()]


def summary(sample: Sequence[float]) -> tuple[float, float, int]:
    """Mean, standard error and size; NaN for the error of a single sample.

    >>> summary([1.0, 3.0])
    (2.0, 1.0, 2)
    """
    n, mean = len(sample), _mean(sample)
    if n < 2:
        return mean, math.nan, n
    return mean, math.sqrt(_squares(sample, mean) / (n - 1) / n), n


def _spread(returns: Sequence[float]) -> float:
    return math.sqrt(_squares(returns, _mean(returns)) / len(returns))


def _squares(values: Sequence[float], mean: float) -> float:
    return sum((value - mean) * (value - mean) for value in values)


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def _length(played: Sequence[Mapping[str, Any]]) -> float:
    return _mean([_number(each, "length") if "length" in each else math.nan for each in played])


def _success(played: Sequence[Mapping[str, Any]]) -> float | None:
    said = [each.get("success") for each in played]
    return None if None in said else _mean([_number({"success": each}, "success") for each in said])


def _number(episode: Mapping[str, Any], key: str) -> float:
    """JSON has no NaN: null stands for it."""
    value = episode.get(key, "nothing")
    if value is None:
        return math.nan
    if not isinstance(value, (int, float)):
        raise ValueError(f"{key} {value!r}")
    try:
        return float(value)
    except OverflowError:  # an integer of 400 digits
        return math.inf if value > 0 else -math.inf
