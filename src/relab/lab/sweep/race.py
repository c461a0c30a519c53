"""Which trials need no more seeds? Those that are behind the leader by more than chance (relab.stats.racing).

Looked at after `least` seeds and then a few times more. The error of a race is shared by all trials and all looks, so
that the best trial is hardly ever dropped. A failed seed counts as the worst number of all, and a trial that failed
more often than another does not drop it: the worst number seen may be a good one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relab import stats
from relab.base.documents import Document
from relab.comparison import answer
from relab.comparison.outcomes import Outcome
from relab.lab.sweep.plan import Sweep
from relab.lab.sweep.trials import best, filled
from relab.stats import racing

Outcomes = Mapping[str, Sequence[Outcome]]


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


def drop(s: Sweep, outcomes: dict[str, list[Outcome]], looks: list[list[int]], trials: int) -> Document:
    """Trials to be dropped at this look, with the interval that says so; `looks` gets this one too.

    `trials` counts those dropped before as well: they were part of what could have gone wrong.
    """
    seeds = max((len(group) for group in outcomes.values()), default=0)
    if best(s, outcomes) is None or seeds < answer.LEAST:
        return {}
    look = stats.look_number(looks, [seeds, trials])
    if look > len(looks):
        looks.append([seeds, trials])
    planned, names = max(len(rounds(s)) - 1, 1), list(outcomes)
    rows = [values + [math.nan] * (seeds - len(values)) for values in filled(s, outcomes).values()]
    failed = np.array([[sum(not math.isfinite(x.value) for x in group) for group in outcomes.values()]])
    lag = racing.lag(np.array(rows)[None], trials, planned, answer.LEAST, failed=failed)
    level = 1 - racing.ALPHA / max(trials - 1, 1) / planned
    gone = {}
    for i, trial in enumerate(names):
        if lag.behind[0, i]:
            delta, half = float(lag.delta[0, i]), float(lag.half[0, i])
            n = sum(math.isfinite(x.value) for x in outcomes[trial])
            gone[trial] = {"look": look, "n": n, "leader": names[int(lag.leader[0, i])], "delta": delta,
                           "low": delta - half, "high": delta + half, "level": level}  # fmt: skip
    return gone
