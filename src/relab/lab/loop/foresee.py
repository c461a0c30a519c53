"""What will a change do? What earlier changes of this loop did, as the interval that the next one should lie in.

Before four changes were measured there is nothing to go by but bounds (the random policy, the highest return), which
promise nothing and are not counted. After that: their mean and the 95 % interval of one more of the same kind,
Student's t: mean ± t sd sqrt(1 + 1/n). Changes of the same keys are taken where there are four of them. What earlier
changes did is what was measured of them, noise and all: that is what the next number will hold as well. Which change is
proposed does not follow from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from relab import stats
from relab.advise import predict, score
from relab.advise.proposal import Predicted
from relab.advise.score import Measured, Score
from relab.base.documents import Document
from relab.base.numbers import is_finite
from relab.health.view import View
from relab.lab.loop.journal import Trial
from relab.lab.loop.plan import Loop

ENOUGH = 4  # earlier changes


def foresee(plan: Loop, view: View | None, change: Mapping[str, object], trials: Sequence[Trial]) -> Predicted:
    """The prediction of a change; + is better."""
    done = [each for each in trials if effect_of(each) is not None]
    same = [each for each in done if set(each.proposal["diff"]) == set(change)]
    some = same if len(same) >= ENOUGH else done
    if len(some) < ENOUGH:
        return _bounds(plan, view)
    x = np.array([effect_of(each) for each in some], np.float64)
    half = stats.t_quantile(0.975, len(x) - 1) * float(x.std(ddof=1)) * math.sqrt(1 + 1 / len(x))
    of = ", ".join(change) if some is same else "this loop"
    how = f"what {len(x)} earlier changes of {of} did: 95 % interval of one more"
    return Predicted(plan.metric, float(x.mean()), float(x.mean()) - half, float(x.mean()) + half, how, plan.at,
                     plan.direction)  # fmt: skip


def effect_of(trial: Trial) -> float | None:
    """What was measured of an earlier change; None where it has no number yet."""
    delta = trial.scored["score"]["measured"]["delta"] if trial.scored else None
    return float(delta) if is_finite(delta) else None


def _bounds(plan: Loop, view: View | None) -> Predicted:
    standing = view.standing() if view is not None else None
    if view is None or standing is None or plan.direction != "higher" or plan.at != "final":
        return Predicted(plan.metric, None, None, None, "no data: fewer than four changes were measured", plan.at,
                         plan.direction)  # fmt: skip
    said = predict.bounds(view, plan.metric, standing.mean)
    return Predicted(plan.metric, None, said.low, said.high, said.how, plan.at, plan.direction)


def scored(trial: Trial, base: np.ndarray, mine: np.ndarray, metric: str) -> Score:
    """The prediction against all runs of the change that were judged, larger numbers being better."""
    said = trial.proposal["predicted"]
    ends = {key: said.get(key) for key in ("delta", "low", "high")}
    if len(base) < 2 or len(mine) < 2:
        delta = float(mine.mean() - base.mean()) if len(base) and len(mine) else None
        effect = Measured(delta, None, None, (len(base), len(mine)), score.WHY["one_seed"])
    else:
        interval = stats.size_of_difference(base, mine)
        effect = Measured(float(mine.mean() - base.mean()), interval.low, interval.high, (len(base), len(mine)),
                          "95% interval over seeds")  # fmt: skip
    kind = score.kind_of(ends)
    verdict, reason = score.judged(kind, ends, effect)
    return Score([trial.name], trial.parent, dict(trial.proposal["diff"]), metric, kind, ends, effect, verdict, reason)


def of_row(row: Document) -> Score:
    """A score as the journal keeps it."""
    effect = Measured(**{**row["measured"], "seeds": tuple(row["measured"]["seeds"])})
    keys = ("runs", "parent", "diff", "metric", "kind", "predicted", "verdict", "reason")
    return Score(**{key: row[key] for key in keys}, measured=effect)
