"""Which trials need no more seeds? Those whose interval says that they stay behind the leader by more than matters.

Looked at after `least` seeds and then a few times more. A look spends its share of 5 % (1/2, 1/4, 1/8 ...), divided by
all pairs of trials: so it holds whoever leads, however often one looks, and whether one stops or not. A trial is
dropped when the upper end of (trial - leader) lies below minus the smallest effect that matters: even at its best it
would not come that close. Nothing is dropped for a failed seed alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from relab import stats
from relab.comparison import answer
from relab.lab.sweep.plan import Sweep
from relab.lab.sweep.trials import best

Outcomes = Mapping[str, Sequence[answer.Outcome]]


def rounds(s: Sweep) -> list[tuple[int, ...]]:
    """The seeds up to each look, all of them last; one round where there is no race."""
    n = len(s.seeds)
    if s.racing is None:
        return [s.seeds]
    least, looks = s.racing.least, s.racing.looks
    sizes = [least + round(k * (n - least) / looks) for k in range(looks)]
    return [s.seeds[:size] for size in dict.fromkeys([*sizes, n])]


def pairs(trials: int) -> int:
    return max(1, trials * (trials - 1) // 2)


def against(s: Sweep, outcomes: Outcomes, leader: str, trial: str, alpha: float, trials: int) -> answer.Answer:
    """Trial minus leader, + is better, simultaneous over all pairs of trials."""
    return answer.answer(
        outcomes[leader], outcomes[trial], s.smallest_effect, s.direction, s.at, metric=s.metric, names=(leader, trial),
        looks=1, alpha=alpha, comparisons=pairs(trials), m=s.last, reach=s.level,
    )  # fmt: skip


def drop(s: Sweep, outcomes: dict[str, list[answer.Outcome]], looks: list[list[int]], trials: int) -> dict[str, Any]:
    """Trials to be dropped at this look, with the interval that says so; `looks` gets this one too.

    `trials` counts those dropped before as well: they were part of what could have gone wrong.
    """
    seeds = max((len(group) for group in outcomes.values()), default=0)
    leader = best(s, outcomes)
    if leader is None or seeds < answer.LEAST:
        return {}
    look = stats.look_number(looks, [seeds, trials])
    if look > len(looks):
        looks.append([seeds, trials])
    alpha, gone = stats.look_alpha(look), {}
    for trial in outcomes:
        if trial == leader:
            continue
        x = against(s, outcomes, leader, trial, alpha, trials)
        if math.isfinite(x.high) and x.high < -s.smallest_effect:
            gone[trial] = {"look": look, "n": x.n[1], "leader": leader, "delta": x.delta, "low": x.low, "high": x.high,
                           "level": x.level}  # fmt: skip
    return gone
