"""Are the numbers themselves sound? Finite, legal, in order, below what can be earned."""

from __future__ import annotations

import math

import numpy as np

from relab.health.foreign import action_dim, q_estimate
from relab.health.mend import MUCH_SLOWER, SMALLER_STEPS
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View
from relab.record import glossary
from relab.record.history import lost_at, measured

# undefined when all targets are alike, and with one action to choose from
NAN_IS_LEGAL = {"value/explained_variance", "policy/entropy_share"}
OWN_RULE = {"policy/kl"}  # negative-kl says more about it


@rule(
    "non-finite",
    about="numbers",
    algos=(),
    severity="error",
    explains=("diverged", "run-incomplete", "rate-out-of-range"),
    mends=SMALLER_STEPS,
    fallback=(MUCH_SLOWER,),
    names=("nan-observation",),
)
def non_finite(view: View) -> Finding | None:
    """
    What: a metric holds NaN or infinity where it never should.
    Why: the update diverged, or an observation or reward was not finite; everything learned after it is void.
    Known problems: explained variance is legally NaN when all value targets are alike, the share of the largest entropy
        where there is one action; both are left out. A return is NaN where no episode ended: left out where the count
        of episodes is 0, or is not logged and the losses are finite. Other tools write NaN where nothing was measured:
        there it counts in returns, evaluations and unknown metrics only when it stays to the end, and is a warning
        where it passes.
    Refuted by: the same value coming from a metric that is undefined at that step.
    Try: restart from the last checkpoint before it, with a lower `lr`; look for non-finite observations first.
    """
    worst = None
    for name in view.history.columns:
        column = measured(view.history, name)
        bad = np.flatnonzero(~np.isfinite(column.values))
        if not len(bad) or _legal(view, name, column.values, bad):
            continue
        step = int(column.steps[bad[0]])
        worst = (name, step, column, bad) if worst is None or step < worst[1] else worst
    if not view.history.columns:
        raise Missing("any metric")
    if worst is None:
        return None
    name, step, column, bad = worst
    (steps, values), at, n = column, bad[:4], len(bad)
    shown = Evidence(name, [int(s) for s in steps[at]], [float(v) for v in values[at]], "not finite")
    lost = lost_at(column)
    passes = view.history.source != "relab" and bool(np.isfinite(values[-1]))
    first = "" if step == lost else f"{'at' if n == 1 else 'first at'} step {step:,}"
    when = ", ".join(filter(None, (first, "" if lost is None else f"from step {lost:,} on")))
    return Finding(f"{name} is not finite {when} ({n} of {len(values)} rows)", float(n), step, [shown],
                   confidence="high", severity="warning" if passes else None)  # fmt: skip


def _legal(view: View, name: str, values: np.ndarray, bad: np.ndarray) -> bool:
    """Whether holes in a column are legal: nothing was there to be measured."""
    if name == view.verdict.metric and view.verdict.kind == "broken":
        return False  # the run's outcome is not a number
    if name in NAN_IS_LEGAL:
        return True
    if view.history.source == "relab" or not name.startswith(("return/", "eval/", "time/", "foreign/")):
        return False
    stays = len(bad) >= 2 and len(bad) < len(values) and not np.isfinite(values[bad[0] :]).any()
    clock = name.startswith("time/")  # steps over no time at all are infinitely many
    return not (stays or (np.isinf(values[bad]).any() and not clock))


@rule(
    "rate-out-of-range",
    about="evidence",
    algos=(),
    severity="error",
    explains=("untrusted-best",),
    names=("success-summed",),
)
def rate_out_of_range(view: View, *, rounding: float = 1e-6) -> Finding | None:
    """
    What: a metric lies outside of its legal range in the glossary, e.g. a success rate above 1.
    Why: it is summed where it should be averaged, or computed from the wrong thing; nothing may be chosen by it.
    Known problems: a foreign metric mapped to a name it does not mean looks the same.
    Refuted by: the metric's own definition allowing such values.
    Try: recompute it from per-episode data, divided by the number of agents and steps it was summed over.
    """
    worst = None
    for name, (steps, values) in view.history.columns.items():
        if name in OWN_RULE or not glossary.known(name):
            continue
        legal = glossary.metric(name)
        slack = rounding * max(1.0, *(abs(x) for x in (legal.low, legal.high) if np.isfinite(x)), 1.0)
        bad = np.flatnonzero((values < legal.low - slack) | (values > legal.high + slack))
        bad = bad[np.isfinite(values[bad])]
        if len(bad) and (worst is None or len(bad) > worst[1]):
            worst = (name, len(bad), steps[bad], values[bad], legal)
    if not view.history.columns:
        raise Missing("any metric")
    if worst is None:
        return None
    name, _, steps, values, legal = worst
    extreme = float(values[np.argmax(np.abs(values))])
    shown = Evidence(name, [int(s) for s in steps[:8]], [float(v) for v in values[:8]],
                     f"legal: {_reach(legal.low, legal.high)}")  # fmt: skip
    return Finding(f"{name} reaches {extreme:.4g}, but can only be {_reach(legal.low, legal.high)}", extreme,
                   int(steps[0]), [shown], confidence="high")  # fmt: skip


def _reach(low: float, high: float) -> str:
    """A range as people say it, where one end may be open."""
    if np.isinf(high):
        return f"{low:g} or more"
    return f"at most {high:g}" if np.isinf(low) else f"{low:g} to {high:g}"


@rule("steps-not-monotone", about="evidence", algos=(), severity="warning")
def steps_not_monotone(view: View) -> Finding | None:
    """
    What: the step of a metric repeats or goes back; in another tool's log it may repeat (several episodes end at one
        step), and only going back counts, also where its reader put the rows in order.
    Why: two runs were written into one folder, or a resume did not cut the rows it replaced; curves and slopes lie.
    Known problems: timing rows are never cut on resume, and are left out.
    Refuted by: an axis on which steps may repeat.
    Try: split the run at that row, or resume it with the tool that wrote it.
    """
    again = view.meta.get("steps_again")
    if isinstance(again, dict):
        step, points = int(again["step"]), float(again["points"])
        return Finding(f"steps go back to {step:,} within one file: {points:,.0f} points were written twice", points,
                       step, [Evidence("step", [step], [points], "points of the same steps before")],
                       confidence="high")  # fmt: skip
    columns = {n: c for n, c in view.history.columns.items() if not n.startswith(("time/", "eval/"))}
    if not columns:
        raise Missing("any metric besides time/ and eval/")
    for name, (steps, _values) in columns.items():
        back = np.flatnonzero(np.diff(steps) < (1 if view.history.trained_by_relab else 0))
        if len(back):
            at = int(back[0]) + 1
            shown = Evidence(name, [int(s) for s in steps[at - 1 : at + 2]], [float(s) for s in steps[at - 1 : at + 2]],
                             "step of consecutive rows")  # fmt: skip
            text = f"steps go from {int(steps[at - 1]):,} to {int(steps[at]):,} ({len(back)} times in {name})"
            return Finding(text, float(len(back)), int(steps[at]), [shown], confidence="high")
    return None


@rule("value-above-bound", about="belief", algos=(), severity="warning", names=("no-termination-mask",))
def value_above_bound(view: View, *, over_by: float = 0.05, rows: int = 2) -> Finding | None:
    """
    What: the critic's mean value exceeds what the rewards allow, reward_high / (1 - gamma), by more than 5 %.
    Why: no policy can earn that; the bootstrap or the handling of ends is wrong, or the critic diverges.
    Known problems: the bound is loose; values below it may still be far too high. Of SAC it holds the entropy to come.
    Refuted by: rewards above the declared bound (data/reward_max), or values logged in other units.
    Try: check that terminated states are not bootstrapped and that gamma is the one the targets use.
    """
    gamma = view.number("algo.gamma")
    value, scale = q_estimate(view, rows=3), 1.0
    if view.algo == "sac" and value.name.startswith("-"):
        raise Missing("a value without the entropy term")
    if view.config.get("algo.norm_return"):
        scale = max(view.curve("data/reward_scale").last, 1e-12)
    bounds = [view.spec.get(key) for key in ("reward_low", "reward_high")]
    if gamma >= 1 or not any(isinstance(b, (int, float)) for b in bounds):
        raise Missing("a bound of the value: meta.spec.reward_high (or _low) and gamma < 1")
    low, high = (b / (1 - gamma) / scale if isinstance(b, (int, float)) else None for b in bounds)
    slack = over_by * max(abs(b) for b in (low, high) if b is not None) + soft_part(view, gamma)
    over = np.zeros(len(value), bool)
    if high is not None:
        over |= value.values > max(high, 0.0) + slack
    if low is not None:
        over |= value.values < min(low, 0.0) - slack
    if over.sum() < rows:
        return None
    extreme = float(value.values[over][np.argmax(np.abs(value.values[over]))])
    bound = high if high is not None and (low is None or extreme > max(high, 0.0)) else low
    return Finding(f"the critic expects {extreme:.4g}, but the rewards allow no more than {bound:.4g}", extreme,
                   value.onset(over), [value.evidence(f"reward bound / (1 - {gamma:g}) = {bound:.4g}")],
                   confidence="high")  # fmt: skip


def soft_part(view: View, gamma: float) -> float:
    """What the critic of SAC may count beside rewards: ln 2 nats per component and step, at their dearest."""
    if view.algo != "sac" or not view.has("optim/temperature"):
        return 0.0
    return float(view.curve("optim/temperature").values.max()) * action_dim(view) * math.log(2) / (1 - gamma)


@rule("uncounted-steps", about="evidence", needs=("data/env_steps", "data/sim_steps"), algos=())
def uncounted_steps(view: View, *, counted: float = 0.5) -> Finding | None:
    """
    What: fewer than half of the simulator steps that fed learning are counted as training steps.
    Why: re-rollouts and warm-ups are free on the axis but not in truth; sample efficiency looks better than it is.
    Known problems: evaluation steps feed nothing and are taken out first.
    Refuted by: the remaining steps belonging to probes that learning never sees.
    Try: compare by data/sim_steps (`relab compare --axis sim_steps`).
    """
    env, sim = view.curve("data/env_steps"), view.curve("data/sim_steps")
    spent = sim.last - (view.curve("data/eval_steps").last if view.has("data/eval_steps") else 0.0)
    share = env.last / spent if spent > 0 else 1.0
    if share >= counted:
        return None
    return Finding(f"only {share:.0%} of the simulator steps outside of evaluations are counted", share, None,
                   [env.evidence(), sim.evidence("env_steps / (sim_steps - eval_steps)")],
                   confidence="high")  # fmt: skip
