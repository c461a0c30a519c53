"""Are the numbers of the size they should be? Each measured scale beside the one that theory or the settings give.

Medians over the second half of the run; limits are those of the rules in relab.health. A row that is off is no finding:
it is where to look when a finding or the curve asks for a reason.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from relab.base.numbers import is_number
from relab.base.text import number, plural
from relab.health.rule import Finding, Missing
from relab.health.view import View
from relab.report import analytic
from relab.report.parts import Section, section, table
from relab.runs.grouping import Run

HALF = 0.5


class Beside(Exception):  # noqa: N818 - no error: the check is about another kind of run
    """The check does not apply to this run."""


class Check(NamedTuple):
    """One row of the table."""

    name: str
    measured: str
    expected: str
    ok: bool
    metric: str = ""  # what it looks at: a finding may rest on other steps of it


def section_of(run: Run, findings: Sequence[Finding] = ()) -> Section | None:
    """The checks that this run's metrics and settings allow, what the others lack, and which of the run's findings
    look at the same numbers at other steps."""
    view = View(run.history, run.name, state=run.state)
    checks, gone = [], []
    for check, metric in CHECKS:
        try:
            checks.append(check(view)._replace(metric=metric))
        except Beside:
            continue
        except Missing as missing:
            gone.append(f"{(check.__doc__ or '').strip().rstrip('.').lower()} ({missing})")
    checks += [known_number(row) for row in analytic.rows(run.history)] + list(true_step(view))
    if not checks:
        return None
    lines = [_summary(checks, findings)] + ([f"not measured: {'; '.join(gone)}"] if gone else [])
    rows = [[c.name, c.measured, c.expected, _state(c, findings)] for c in checks]
    return section("Scale checks", lines, [table(["scale", "measured", "expected", ""], rows)])


def _summary(checks: Sequence[Check], findings: Sequence[Finding]) -> str:
    off, named = sum(not each.ok for each in checks), sum(bool(_about(each, findings)) for each in checks)
    if off:
        return f"{off} of {len(checks)} off: no finding by itself, but where to look first when there is one"
    if named:
        have = plural(named, "of them has", "of them have")
        return f"medians of the second half, all within bounds; {have} a finding, which looks at other steps or limits"
    return f"all {len(checks)} within their bounds; whether the run is sound, the findings say"


def _state(check: Check, findings: Sequence[Finding]) -> str:
    named = _about(check, findings)
    return ("within" if check.ok else "off") + (f"; {', '.join(named)}" if named else "")


def _about(check: Check, findings: Sequence[Finding]) -> list[str]:
    """The findings about what was learned that rest on the number that a check looks at."""
    rest = [f.slug for f in findings if f.about != "evidence" and any(e.metric == check.metric for e in f.evidence)]
    return list(dict.fromkeys(rest)) if check.metric else []


def highest_entropy(view: View) -> float:
    """ln of the number of choices, summed over the parts of a multi-discrete action."""
    sizes = view.action.get("n")
    if view.kind == "continuous":
        raise Beside
    if not isinstance(sizes, list) or not all(isinstance(n, int) and n > 0 for n in sizes):
        raise Missing("meta.spec.action")
    if max(sizes, default=1) == 1:
        raise Beside
    return sum(math.log(n) for n in sizes)


def entropy_start(view: View) -> Check:
    """Entropy at the start."""
    top, first = highest_entropy(view), float(view.curve("policy/entropy").values[0])
    return Check("entropy at the start", number(first), f"near ln n = {top:.4g}: a new policy prefers nothing",
                 0.8 * top <= first <= top * 1.001)  # fmt: skip


def entropy_end(view: View) -> Check:
    """Entropy at the end."""
    top, last = highest_entropy(view), view.curve("policy/entropy").last
    return Check("entropy at the end", f"{number(last)} ({last / top:.0%} of ln n)", f"0 to ln n = {top:.4g}",
                 0 <= last <= top * 1.001)  # fmt: skip


def spread_of_actions(view: View) -> Check:
    """Standard deviation of a Gaussian policy."""
    if view.kind == "discrete":
        raise Beside
    last = view.curve("policy/std_mean").last
    return Check("policy std, in half ranges of the action", number(last), "up to 2: beyond, most actions are clipped",
                 last <= 2)  # fmt: skip


def advantage(view: View) -> Check:
    """Mean advantage."""
    mean, std = (view.curve(f"data/advantage_{k}", rows=2).median(HALF) for k in ("mean", "std"))
    size = abs(view.curve("value/target_mean", rows=2).median(HALF))
    near = abs(mean) <= max(std, 1e-9) or abs(mean) <= 0.25 * size
    return Check("advantage before normalisation", f"mean {number(mean)}, std {number(std)}",
                 f"|mean| under its std, or under a quarter of the value target ({number(size)})", near)  # fmt: skip


def value_against_target(view: View) -> Check:
    """Critic against its targets."""
    value, target = (view.curve(f"value/{k}", rows=2).median(HALF) for k in ("mean", "target_mean"))
    spread = max(view.curve("value/target_std").median(HALF), 0.1 * abs(target), 1e-9)
    return Check("value", number(value), f"its target {number(target)} ± {number(spread)}",
                 abs(value - target) <= spread)  # fmt: skip


def value_scale(view: View) -> Check:
    """Value targets against what rewards allow."""
    gamma, most = view.number("algo.gamma"), view.curve("value/target_max", rows=2).median(HALF)
    if gamma >= 1:
        raise Missing("gamma under 1")
    scale = max(view.curve("data/reward_scale").last, 1e-12) if view.config.get("algo.norm_return") else 1.0
    bound = view.fact("reward_high") / (1 - gamma) / scale
    return Check("highest value target", number(most), f"up to reward_high / (1 - gamma) = {number(bound)}",
                 most <= max(bound, 0.0) + 0.05 * abs(bound))  # fmt: skip


def reward_scale(view: View) -> Check:
    """Rewards against the declared bounds."""
    least, most = float(view.curve("data/reward_min").values.min()), float(view.curve("data/reward_max").values.max())
    low, high = view.fact("reward_low"), view.fact("reward_high")
    slack = 1e-4 * max(abs(low), abs(high), 1e-9)  # rewards are float32
    return Check("reward", f"{number(least)} to {number(most)}", f"{number(low)} to {number(high)}, as declared",
                 low - slack <= least and most <= high + slack)  # fmt: skip


def ratio(view: View) -> Check:
    """Largest probability ratio."""
    most = view.curve("policy/ratio_max", rows=2).median(HALF)
    return Check("largest ratio of an iteration", number(most),
                 f"clipped from {1 + view.number('algo.clip'):g} on; up to 10: one row's probability changed tenfold",
                 most <= 10)  # fmt: skip


def kl(view: View) -> Check:
    """KL of an update."""
    level, target = view.curve("policy/kl", rows=2).median(HALF), view.config.get("algo.target_kl")
    if is_number(target):
        return Check("KL of an update", number(level), f"up to 1.5 x target_kl = {1.5 * target:g}",
                     level <= 1.5 * target)  # fmt: skip
    clip = view.number("algo.clip")
    return Check("KL of an update", number(level), f"up to clip² = {clip * clip:.3g} (no target_kl is set)",
                 level <= clip * clip)  # fmt: skip


def clipped_rows(view: View) -> Check:
    """Share of clipped rows."""
    level = view.curve("policy/clip_share", rows=2).median(HALF)
    return Check("rows outside of the clip range", f"{level:.1%}", "up to 40%", level <= 0.4)


def gradient(view: View) -> Check:
    """Gradient norm."""
    norm, limit = view.curve("optim/grad_norm", rows=2).median(HALF), view.number("algo.max_grad_norm")
    share = view.curve("optim/grad_clipped_share").median(HALF)
    return Check("gradient norm", f"{number(norm)}, {share:.0%} of the steps clipped",
                 f"up to 30 x max_grad_norm = {30 * limit:g}", norm <= 30 * limit)  # fmt: skip


def explained(view: View) -> Check:
    """Variance the critic explains."""
    level = view.curve("value/explained_variance", rows=2).median(HALF)
    return Check(
        "explained variance", number(level), "0 to 1; under -0.2 it is worse than a constant", -0.2 <= level <= 1
    )


def known_number(row: analytic.Row) -> Check:
    """A number that a formula gives, within four standard errors of it."""
    return Check(row.name, f"{row.measured:.6g}", f"{row.known:.6g} ± {row.error:.2g}: {row.how}", row.ok)


def true_step(view: View) -> Iterator[Check]:
    """The step scale that the stability probe measured by calling training's own code, beside the settings'."""
    rows = [row for row in view.history.probes if isinstance(row.get("step_scale_ratio"), float)]
    if rows:
        last = rows[-1]
        measured, expected = f"{last['step_scale_measured']:.6g}", f"{last['step_scale']:.6g} by the settings"
        yield Check("step scale of the critic", measured, expected, abs(last["step_scale_ratio"] - 1.0) < 1e-4)


CHECKS: tuple[tuple[Callable[[View], Check], str], ...] = (
    (entropy_start, "policy/entropy"), (entropy_end, "policy/entropy"), (spread_of_actions, "policy/std_mean"),
    (reward_scale, "data/reward_max"), (value_scale, "value/target_max"), (value_against_target, "value/mean"),
    (explained, "value/explained_variance"), (advantage, "data/advantage_mean"), (ratio, "policy/ratio_max"),
    (kl, "policy/kl"), (clipped_rows, "policy/clip_share"), (gradient, "optim/grad_norm"),
)  # fmt: skip
