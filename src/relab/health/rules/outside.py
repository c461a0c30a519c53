"""Is something of this run far outside of every healthy run? What a curve shows by itself, without any setting."""

from __future__ import annotations

from collections.abc import Sequence

from relab.base.numbers import is_number
from relab.health import outside, reference
from relab.health.features import FEW, in_own_units
from relab.health.outcome import ends_alike, failed, learned, poor, same_of_every_state
from relab.health.outside import Excess
from relab.health.rule import SHORT, Evidence, Finding, HealthyRange, Missing, rule
from relab.health.view import View

SAID = 3  # metrics that one finding names
TWICE = 2  # from where a factor says more than "beyond"
OFTEN = 0.05  # of healthy strangers, at most, may score as high
PEAK = "highest median of five rows in a row"  # a single row may lie above it

LARGE = 0.01  # a learning rate that is not near 0


@rule("outside-healthy-runs", about="numbers", algos=reference.ALGOS, severity="warning", least=SHORT)
def outside_healthy_runs(
    view: View, *, margins: float = 1.0, often: float = OFTEN, in_doubt: float = 0.25
) -> Finding | None:
    """
    What: a level or a growth of a logged quantity lies beyond the most extreme of the healthy runs that relab ships
        (Stable-Baselines3, CleanRL-like scripts, relab), by as far again as that one lies from their median and tenfold
        at least; and at most one of twenty healthy runs scores as high when its own task is left out of the table. In a
        run that has not learned, or stands far below a known level, a quarter of that distance is enough.
    Why: no run that reached its task's level looked like this. The finding names the symptom and what usually causes
        it; a rule that knows the settings may name the cause itself.
    Known problems: the table holds short runs of 13 small tasks; a task unlike all of them may differ in health: of
        a run that learned it is a remark. Of a run that goes on still, those thirds of its planned steps count that are
        over.
    Refuted by: a run of the same task with the same level that learned.
    Try: look at what the finding calls likely; `relab explain` with the metric and the run shows where it lies.
    """
    algo = view.algo
    if algo not in reference.ALGOS:
        raise Missing("an algorithm that the table of healthy runs has")
    numbers = view.features
    if not numbers:
        raise Missing(f"{FEW} rows of a metric that the table of healthy runs has")
    beyond = [e for e in outside.excesses(algo, view.kind, numbers) if not _done(view, e) and not _early(view, e)]
    doubt = poor(view)
    far = [excess for excess in beyond if excess.score >= (in_doubt if doubt else margins)]
    if not far or (not doubt and outside.tail(outside.score(beyond)) > often):
        return None
    return _told_as_one(view, _each_metric_once(far)[:SAID], None if doubt or not learned(view) else "info")


def _done(view: View, excess: Excess) -> bool:
    """Whether nothing is left to learn, to choose or, of returns that are all alike, to explain."""
    if (excess.sign.metric, excess.sign.side) == ("value/explained_variance", outside.LOW):
        return ends_alike(view) and not failed(view)
    still = (excess.sign.metric, excess.sign.side) == ("policy/kl", outside.LOW)
    return still and (learned(view) or not view.has_choice)


def _early(view: View, excess: Excess) -> bool:
    """Whether the rest of an unfinished run may still bring it in: its highest level can only rise."""
    return view.unfinished and excess.key.feature == "peak" and excess.sign.side == outside.LOW


def _each_metric_once(far: Sequence[Excess]) -> list[Excess]:
    first: dict[str, Excess] = {}
    for excess in far:
        first.setdefault(excess.key.metric, excess)
    return list(first.values())


def _told_as_one(view: View, far: Sequence[Excess], severity: str | None) -> Finding:
    causes = [excess.sign.cause for excess in far if not _refuted(view, excess)]
    symptoms = "; ".join(_words(view, excess) for excess in far)
    likely = f". Likely {causes[0]}" if causes else ""
    shown = [] if causes else [f"`relab explain {far[0].key.metric}` with the run shows where it lies"]
    return Finding(f"{symptoms}{likely}", far[0].value, None,
                   [_evidence(view, excess) for excess in far], shown, about=far[0].sign.about, symptom=True,
                   severity=severity, confidence="high" if len(far) > 1 else "medium")  # fmt: skip


def _refuted(view: View, excess: Excess) -> bool:
    """Whether the run says that it cannot be what it usually is: without a bonus for entropy none is too large,
    with a large learning rate a policy that does not move has moved too far before, and one that is told the same of
    every state has nothing to move by."""
    if excess.sign.cause == outside.UNMOVED:
        if same_of_every_state(view):
            return True
        rates = [view.config[key] for key in view.config if key.rpartition(".")[2] in ("lr", "learning_rate")]
        return any(is_number(rate) and rate >= LARGE for rate in rates)
    bonus = [view.config[key] for key in view.config if key.rpartition(".")[2] in ("ent_coef", "entropy_coef")]
    return excess.sign.cause == outside.BONUS and bool(bonus) and all(value == 0 for value in bonus)


def _words(view: View, excess: Excess) -> str:
    """policy/kl is 40 times the highest of 34 kinds of healthy PPO runs (last third: 1.4)"""
    name, level = excess.key.metric, in_own_units(view.history, excess.key, excess.value)
    most = "highest" if excess.sign.side == outside.HIGH else "lowest"
    times = excess.times if level > 0 else 0.0  # how often a negative number goes into another says nothing
    factor = f"{times:.3g} times" if times >= TWICE else f"1/{1 / times:.3g} of" if 0 < times <= 1 / TWICE else "beyond"
    where = "growth" if excess.key.feature == "growth" else f"{excess.key.feature} third".replace("peak third", PEAK)
    return f"{name} is {factor} the {most} of {excess.cells} kinds of healthy {_algo(view)} runs ({where}: {level:.3g})"


def _algo(view: View) -> str:
    return str(view.algo).upper()


def _evidence(view: View, excess: Excess) -> Evidence:
    """The curve, with what healthy runs lie between, in the run's own units."""
    low, high = (in_own_units(view.history, excess.key, end) for end in (excess.low, excess.high))
    between = str(HealthyRange(_algo(view), low, high, excess.key.feature)).replace("of healthy", "of all healthy")
    formula = f"{excess.sign.side}: {between}"
    try:
        return view.curve(excess.key.metric).evidence(formula)
    except Missing:  # in a unit that the log does not tell
        return Evidence(excess.key.metric, [view.last_step], [excess.value], formula)


def side_of(evidence: Evidence) -> str:
    """high or low, of a finding of this rule."""
    return evidence.formula.partition(":")[0]
