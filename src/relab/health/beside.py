"""What do healthy runs show of what a finding is about, and does the finding stand beside the others?

A laboratory prints each value beside the interval of healthy people: so does a finding whose first evidence is a metric
that the table of healthy runs has. A finding that only says "outside of healthy runs" gives way to a rule that names
the mechanism of the same metric.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from relab.health import reference
from relab.health.features import CHOSEN, METRICS, Key, by_returns, is_squared, unit_of_levels
from relab.health.outcome import poor
from relab.health.rule import Finding, HealthyRange, Missing
from relab.health.view import View

RESCALED = ("norm_return", "norm_reward", "normalize", "normalize_reward", "normalize_rewards", "reward_scale",
            "reward_scaling", "scale_rewards")  # fmt: skip
THIRDS = ("first", "middle", "last")


def healthy_levels(view: View, metric: str) -> dict[str, reference.Healthy]:
    """The interval of healthy runs in each third of a run, in the run's own units; empty where there is none."""
    if metric not in METRICS or metric in CHOSEN or view.algo not in reference.ALGOS:
        return {}
    task = _task_of_losses(view) if is_squared(metric) else ""
    factor = unit_of_levels(view.history, metric)
    if task is None or factor is None or (by_returns(metric) and rescales_rewards(view)):
        return {}
    intervals = {
        third: reference.interval(str(view.algo), view.kind, Key(metric, third), task=task) for third in THIRDS
    }
    return {third: healthy.times(factor) for third, healthy in intervals.items() if healthy is not None}


def _task_of_losses(view: View) -> str | None:
    """A critic's loss is small or large by its task, even in sizes of the returns: only runs of the same one tell."""
    spec = view.history.meta.get("spec")
    env = spec.get("env") if isinstance(spec, dict) else None
    return str(env) if env else None


def rescales_rewards(view: View) -> bool:
    """Whether the critic sees other rewards than the returns are made of, as far as the settings say."""
    values = [value for key, value in view.config.items() if key.rpartition(".")[2].lower() in RESCALED]
    return any(value is True or value not in (None, 0, "", 1, "False", "false") for value in values)


def healthy_range(view: View, metric: str) -> HealthyRange | None:
    """The interval in the last third, or in that which an unfinished run has come to; None where nothing is known."""
    part = _third(view)
    level = healthy_levels(view, metric).get(part)
    return None if level is None else HealthyRange(str(view.algo).upper(), level.low, level.high, part)


def _third(view: View) -> str:
    """Empty where nobody knows how long an unfinished run is to be."""
    if view.until is None:
        return THIRDS[-1]
    return "" if math.isinf(view.until) else THIRDS[min(int(3 * view.last_step / view.until), 2)]


def put_beside(view: View, findings: Sequence[Finding]) -> None:
    """Each finding gets the interval of its first metric, if it does not say it itself.

    Nothing is called unhealthy beside an interval that holds it: there the interval is left out, for the rule is about
    something else than a level. Where the level is all that the rule goes by, it is not sure, and the run learned, it
    is a remark.
    """
    for finding in findings:
        if not finding.evidence or finding.symptom:
            continue
        finding.healthy = healthy_range(view, finding.evidence[0].metric)
        levels = _levels(view, finding.evidence[0].metric)
        if finding.healthy is None or not levels or not finding.healthy.low <= levels[0] <= finding.healthy.high:
            continue
        finding.healthy = None
        about_level = finding.value is not None and any(math.isclose(finding.value, x, rel_tol=1e-6) for x in levels)
        unsure = len(finding.evidence) == 1 and finding.confidence != "high"
        if about_level and unsure and finding.severity == "warning" and not poor(view):
            finding.severity, finding.confidence = "info", "low"


def _levels(view: View, metric: str) -> list[float]:
    """The numbers that rules take from a curve as its level, the median of the second half first."""
    try:
        curve = view.curve(metric)
    except Missing:
        return []
    return [curve.median(0.5), curve.median(0.25), curve.median(), curve.last, float(curve.values.max())]


def give_way(findings: Sequence[Finding]) -> list[Finding]:
    """All findings but symptoms whose metrics other warnings are about already."""
    loud = [f for f in findings if not f.symptom and f.status == "fired" and f.severity in ("warning", "error")]
    metrics = {each.metric for f in loud for each in f.evidence}
    return [f for f in findings if not f.symptom or not all(each.metric in metrics for each in f.evidence)]
