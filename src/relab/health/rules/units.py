"""Do settings and numbers stay within what they can mean? Legal settings, units, batches, horizons."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator

import numpy as np

from relab.base.numbers import is_number
from relab.health.curve import Curve
from relab.health.foreign import plain_key, setting_name
from relab.health.outcome import judged
from relab.health.remedy import shipped
from relab.health.rule import SHORT, Evidence, Finding, Missing, rule
from relab.health.view import View

ON_POLICY = ("ppo", "a2c")
# Last word of a setting -> lowest and highest value it can have, ends included; outside of them it means nothing.
LEGAL: dict[str, tuple[float, float]] = {
    "gamma": (0, 1), "discount": (0, 1), "lam": (0, 1), "gae_lambda": (0, 1), "tau": (0, 1), "polyak": (0, 1),
    "expectile": (0, 1), "iql_tau": (0, 1), "ent_coef": (0, math.inf), "entropy_coef": (0, math.inf),
    "entropy_coeff": (0, math.inf), "lr": (0, math.inf), "learning_rate": (0, math.inf), "value_coef": (0, math.inf),
    "vf_coef": (0, math.inf), "value_loss_coef": (0, math.inf),
    "clip": (0, math.inf), "clip_range": (0, math.inf), "clip_coef": (0, math.inf),
    "beta": (0, math.inf), "temperature": (0, math.inf), "batch_size": (1, math.inf), "n_steps": (1, math.inf),
    "buffer_size": (1, math.inf), "horizon": (0, math.inf), "unimix": (0, 1), "exploration_final_eps": (0, 1),
    "exploration_fraction": (0, 1), "max_grad_norm": (0, math.inf), "target_kl": (0, math.inf),
}  # fmt: skip
# Last word of a setting -> where values of working runs lie, with room: libraries' defaults and RL-Zoo's tuned settings
# lie well inside. What is outside of it can be meant; in a run that learned nothing it is the first thing to change.
USUAL: dict[str, tuple[float, float]] = {
    "clip": (0.01, 1), "clip_range": (0.01, 1), "clip_coef": (0.01, 1), "max_grad_norm": (1e-3, math.inf),
    "epochs": (1, 100), "n_epochs": (1, 100), "update_epochs": (1, 100), "value_coef": (1e-4, 20),
    "vf_coef": (1e-4, 20), "lam": (0.2, 1), "gae_lambda": (0.2, 1), "weight_decay": (0, 0.1),
    "exploration_final_eps": (0, 0.3), "end_e": (0, 0.3), "epsilon_final": (0, 0.3), "final_epsilon": (0, 0.3),
    "exploration_initial_eps": (0.05, 1), "start_e": (0.05, 1), "epsilon_start": (0.05, 1),
    "exploration_noise": (0, 1.5), "policy_noise": (0, 1.5), "target_policy_noise": (0, 1.5), "alpha": (0, 10),
    "target_entropy": (-math.inf, 2), "lr": (1e-12, 1), "learning_rate": (1e-12, 1),
}  # fmt: skip
# Usual weights of the entropy: of a bonus on the reward, and of SAC's temperature; entropy-punished is about the sign.
BONUS, HEAT = (-math.inf, 0.5), (-math.inf, 10.0)
SIDE = 5  # rows before a jump, and after it
BLOCK = 100_000  # rows whose windows are looked at together
UNITS = (100.0, 1000.0)  # percent, milli and kilo
LEAST_JUMP = 0.35  # ln of the factor from row to row: symexp(1) is 1.7, and rows lie within 5 % of their medians
UNTRAINED = ("value_coef", "vf_coef", "value_loss_coef")  # weights of the value loss
STARTS = ("learning_starts", "algo.learning_starts")
ENTROPY = ("ent_coef", "entropy_coef", "entropy_coeff")  # entropy-punished says more about it


@rule(
    "setting-out-of-range",
    about="fault",
    algos=(),
    severity="warning",
    names=("gradient-clip-1e-6", "entropy-bonus-times-12"),
    compared=False,
)
def setting_out_of_range(view: View) -> Finding | None:
    """
    What: a setting has a value that it cannot mean: a discount above 1, a negative learning rate, an expectile of 1.3;
        or one that switches learning off: a value loss with the weight 0, random actions for more than half of the
        run; or, in a run that learned nothing, one that lies far outside of what is used: an entropy bonus of 5, a
        clip of 0, half of all actions random to the end.
    Why: the program did something else than its equations say, or the setting belongs to another part.
    Known problems: a tool may use a word for something else; only settings of one word, at the top or of the algorithm,
        are looked at.
    Refuted by: the tool's own definition.
    Try: set it to a legal or usual value; where learning starts late, start it sooner or train longer.
    """
    if not view.config:
        raise Missing("the config")
    for key, value in view.config.items():
        word, where = key.rpartition(".")[2], plain_key(key)
        legal = LEGAL.get(word)
        if legal is None or where not in (word, f"algo.{word}") or word in ENTROPY or not is_number(value):
            continue
        if word in UNTRAINED and value == 0:
            return Finding(f"{where} is 0: the critic is not trained", 0.0, 0, [Evidence(where, [0], [0.0], "= 0")],
                           confidence="high")  # fmt: skip
        if not legal[0] <= value <= legal[1]:
            span = _span(*legal)
            return Finding(f"{where} is {value:g}, but can only be {span}", float(value), 0,
                           [Evidence(where, [0], [float(value)], f"legal: {span}")], confidence="high")  # fmt: skip
    return _starts_late(view) or _far_from_usual(view)


def _starts_late(view: View, most: float = 0.5) -> Finding | None:
    """Random actions for more than half of the run, whatever came of the rest; learning-never-started is about all."""
    key = next((key for key in view.config if plain_key(key) in STARTS), "")
    starts, steps = view.config.get(key), max(view.planned or 0, view.last_step)
    counted = {*view.history.axes.values()} <= {"env_steps", "agent_steps"}
    if not is_number(starts) or not counted or view.state == "running" or not most * steps < starts < steps:
        return None
    name = setting_name(view, key)
    return Finding(f"{name} is {starts:,} of the run's {steps:,.0f} steps: learning begins when {starts / steps:.0%} of"
                   " it are over", float(starts), 0, [Evidence(plain_key(key), [view.last_step], [float(starts)],
                   f"> {most:.0%} of all steps")], [f"lower {name}, or train longer"], "high")  # fmt: skip


def _far_from_usual(view: View) -> Finding | None:
    """The first setting that hardly anybody's working run has; a remark where the run learned with it."""
    for key, value in view.config.items():
        word, where = key.rpartition(".")[2], plain_key(key)
        low, high = _usual(view, word)
        if where in (word, f"algo.{word}") and is_number(value) and not low <= value <= high:
            usual = _span(low, high)
            return Finding(f"{setting_name(view, key)} is {value:g}, where {usual} is usual", float(value), 0,
                           [Evidence(where, [0], [float(value)], f"usual: {usual}")],
                           [{"key": key, "from": value, "to": _inside(view, key, low, high)}],
                           severity=judged(view))  # fmt: skip
    return None


def _span(low: float, high: float) -> str:
    """0.01 to 1; an end that is none is left out."""
    if math.isinf(low):
        return f"at most {high:g}"
    return f"{low:g} to {high:g}" if math.isfinite(high) else f"{low:g} or more"


def _inside(view: View, key: str, low: float, high: float) -> float | int:
    """What relab ships for the algorithm, where that is usual; else the end that is next."""
    values = [values.get(key) for _, values in shipped(view.config)]
    fitting = [x for x in values if is_number(x) and low <= x <= high]
    return fitting[0] if fitting else min(max(view.config[key], low), high)


def _usual(view: View, word: str) -> tuple[float, float]:
    if word in ENTROPY:
        return HEAT if view.algo == "sac" else BONUS
    return USUAL.get(word, (-math.inf, math.inf))


@rule(
    "entropy-punished",
    about="fault",
    algos=(*ON_POLICY, "dreamer"),
    severity="warning",
    names=("entropy-punished",),
)
def entropy_punished(
    view: View, *, least: float = 0.4, most: float = 0.67, iterations: float = 0.8, errors: float = 3.0
) -> Finding | None:
    """
    What: the entropy coefficient is negative; or, for Gaussian policies of relab, the bonus appears to pull half as
        hard as the surrogate in at least eight of ten iterations (0.4 to 0.67), while the entropy falls.
    Why: the policy is paid for being certain. With a wrong sign in the loss, what is left of the gradient on log_std
        after the bonus is taken out is twice the bonus, in every iteration, so that their ratio is a half.
    Known problems: a bonus that is small against the surrogate leaves no such mark, and does no such harm.
    Refuted by: the ratio changing from one iteration to the next, as it does where the sign is right.
    Try: subtract the entropy bonus from the loss; use a coefficient of 0 or more.
    """
    coef = _entropy_coef(view)
    if coef < 0:
        return Finding(f"the entropy coefficient is {coef:g}: entropy is punished", coef, 0,
                       [Evidence("ent_coef", [0], [coef], "< 0")], confidence="high")  # fmt: skip
    if coef == 0 or view.kind != "continuous" or not view.has("policy/entropy_push"):
        return None
    push, entropy = view.curve("policy/entropy_push", rows=8), view.curve("policy/entropy", rows=8)
    half = (push.values > least) & (push.values < most)
    if half.mean() < iterations or entropy.slope().significance > -errors:
        return None
    return Finding(f"the bonus enters the loss with the wrong sign: it pulls {push.median():.2f} times as hard as what"
                   f" is left, in {half.mean():.0%} of the iterations, and entropy falls", push.median(),
                   int(push.steps[0]), [push.evidence("a half: twice the bonus is left over"), entropy.evidence()],
                   confidence="high")  # fmt: skip


def _entropy_coef(view: View) -> float:
    if view.has("optim/ent_coef"):
        return view.curve("optim/ent_coef").median()
    values = [(k, v) for k, v in view.config.items() if k.rpartition(".")[2] in ENTROPY and is_number(v)]
    if not values:
        raise Missing("the entropy coefficient")
    return float(values[0][1])


# ---- Targets


@rule(
    "targets-not-detached",
    about="fault",
    needs=("value/bias_slope", "data/advantage_mean", "data/advantage_std", "data/batch"),
    algos=("ppo",),
    severity="warning",
    least=SHORT,
    names=("targets-not-detached",),
)
def targets_not_detached(
    view: View, *, least: float = 0.75, most: float = 1.25, errors: float = 5.0, no_gradient: float = 0.01
) -> Finding | None:
    """
    What: over the run, the value loss pulls the critic's output by less than three quarters of what its errors say
        (or by more than five quarters), by five standard errors.
    Why: with fixed targets the gradient on the output bias is the mean error, -mean advantage. Where the gradient also
        runs through the targets, they pull the other way, and the critic learns a fraction of it.
    Known problems: errors that average to 0 say nothing; their size enters the standard error. Clipped values cut the
        gradient, and are left out.
    Refuted by: a value loss that is not the squared error.
    Try: detach the targets: compute them before the epochs, as numbers.
    """
    if view.config.get("algo.clip_value") or not view.config.get("algo.value_coef", 1.0):
        raise Missing("a plain value loss with a weight")
    names = ("value/bias_slope", "data/advantage_mean", "data/advantage_std", "data/batch")
    slope, mean, std, batch = (view.curve(name, rows=8) for name in names)
    if len({len(slope), len(mean), len(std), len(batch)}) > 1:
        raise Missing("the gradient and the advantages in the same rows")
    rows = batch.values / max(float(view.config.get("algo.minibatches", 1) or 1), 1.0)
    size = float((mean.values**2).sum())
    if size <= 0:
        return None
    ratio = float(-(slope.values * mean.values).sum()) / size
    error = math.sqrt(float((mean.values**2 * std.values**2 / np.maximum(rows, 1)).sum())) / size
    if least <= ratio <= most or abs(ratio - 1) < errors * error or abs(ratio) < no_gradient:
        return None  # no gradient at all is critic-frozen's
    return Finding(f"the critic is pulled by {ratio:.2f} ± {error:.2f} of its errors: the targets move with it", ratio,
                   int(slope.steps[0]), [slope.evidence("= - advantage_mean"), mean.evidence()],
                   confidence="high")  # fmt: skip


# ---- Batches and epochs


@rule("batch-not-divisible", about="operation", algos=ON_POLICY)
def batch_not_divisible(view: View) -> Finding | None:
    """
    What: rows per iteration, environments times steps, do not divide into minibatches of the given size; or a minibatch
        has a single row.
    Why: the last minibatch is smaller (or dropped), and its rows count more; one row alone has no standard deviation,
        and standardised advantages become NaN.
    Known problems: tools that spread the rest over all minibatches lose nothing.
    Refuted by: the tool doing so.
    Try: a minibatch size that divides environments times steps.
    """
    rows, batch = _rows(view), _setting(view, "batch_size", "minibatch_size")
    if batch is None or not (batch > 0 and math.isfinite(batch) and math.isfinite(rows)):
        raise Missing("batch_size")
    if rows % batch == 0 and batch > 1:
        return None
    last = rows % batch
    lone = last == 1 or batch == 1  # NaN comes of it; a few rows more or less harm no run
    return Finding(f"{rows:g} rows an iteration in minibatches of {batch:g} leave {last:g} over", float(last), 0,
                   [Evidence("batch_size", [0], [float(batch)], f"{rows:g} % {batch:g} = {last:g}")],
                   confidence="high", severity="warning" if lone else None,
                   about="fault" if lone else "")  # fmt: skip


def _setting(view: View, *words: str) -> float | None:
    numbers = [(k.rpartition(".")[2], float(v)) for k, v in view.config.items() if is_number(v)]
    return next((value for word in words for key, value in numbers if key == word), None)


def _rows(view: View) -> float:
    envs, steps = _setting(view, "envs", "n_envs", "num_envs"), _setting(view, "steps", "n_steps", "num_steps")
    if envs is None or steps is None:
        raise Missing("environments and steps of an iteration")
    return envs * steps


@rule("epochs-cut-short", about="step", needs=("optim/epochs",), algos=("ppo",))
def epochs_cut_short(view: View, *, left: float = 0.2, least_epochs: int = 5) -> Finding | None:
    """
    What: over the second half `target_kl` leaves, in the median, a fifth or less of the `epochs` that were asked for.
    Why: the critic is trained in the same epochs and starves with the policy; most of the setting is not used.
    Known problems: a target that bites late in training saves what was learned.
    Refuted by: the reference run being cut as much and learning.
    Try: fewer `epochs`, a lower `lr`, or a larger `target_kl`.
    """
    done, epochs, target = view.curve("optim/epochs", rows=5), view.number("algo.epochs"), view.number("algo.target_kl")
    if epochs < least_epochs or done.median(0.5) > left * epochs:
        return None
    level = done.median(0.5)
    return Finding(f"target_kl {target:g} stops after {level:g} of {epochs:g} epochs", level / epochs, None,
                   [done.evidence(f"<= {left:g} x {epochs:g}")])  # fmt: skip


@rule("adaptive-rate-at-bound", about="optimiser", needs=("optim/lr",), algos=("ppo",))
def adaptive_rate_at_bound(
    view: View, *, lowest: float = 1e-5, highest: float = 1e-2, iterations: float = 0.5
) -> Finding | None:
    """
    What: a learning rate that follows the KL stands at the end of its range, 1e-5 or 1e-2, in half of the iterations.
    Why: the KL asked for cannot be reached by the rate; something else makes the steps too large or too small.
    Known problems: a solved task moves little and drives the rate to its upper end.
    Refuted by: the return still rising.
    Try: look at the advantages' scale and the entropy first; change `target_kl`.
    """
    if view.config.get("algo.lr_schedule") != "adaptive_kl":
        raise Missing("a learning rate that follows the KL (lr_schedule: adaptive_kl)")
    lr = view.curve("optim/lr", rows=8)
    near = {bound: np.abs(lr.values / bound - 1) < 1e-6 for bound in (lowest, highest)}
    at = [bound for bound, rows in near.items() if float(rows.mean()) >= iterations]
    last = view.standing()
    if not at or (last is not None and view.at_ceiling(last.mean)):
        return None
    return Finding(f"the learning rate stands at its bound {at[0]:g}", at[0], lr.onset(near[at[0]]),
                   [lr.evidence(f"= {at[0]:g}")], confidence="low")  # fmt: skip


# ---- Units and horizons


@rule("unit-change", about="evidence", algos=())
def unit_change(view: View, *, agree: float = 0.05, rows: int = 12) -> Finding | None:
    """
    What: within one row a value or return jumps by a factor of 100 or 1,000, or to its own symexp, and stays there:
        five rows before and five after agree among themselves to 5 %.
    Why: the numbers before and after are in different units (percent, milli, symlog); no curve may be drawn through.
    Known problems: a jump of just that size by chance.
    Refuted by: something else that changed at that step.
    Try: convert one part; name the unit with the metric.
    """
    for name, curve in _long_enough(view, ("value/", "return/", "eval/", "model/imag"), rows, "a value or a return"):
        jump = _jump(curve, agree)
        if jump:
            at, before, after, what = jump
            return Finding(f"{name} jumps from {before:.4g} to {after:.4g} in one row: {what}", after / before,
                           int(curve.steps[at]), [curve.evidence(what)], confidence="medium")  # fmt: skip
    return None


def _long_enough(view: View, starts: tuple[str, ...], rows: int, what: str) -> Iterator[tuple[str, Curve]]:
    """The columns whose names begin so, where they have that many rows; Missing where there is no such column."""
    names = [name for name in view.history.columns if name.startswith(starts)]
    if not names:
        raise Missing(what)
    for name in names:
        with contextlib.suppress(Missing):
            yield name, view.curve(name, rows)


def _jump(curve: Curve, agree: float) -> tuple[int, float, float, str] | None:
    """The first row at which the five before and the five after agree among themselves, and differ by a unit."""
    every = curve.values[:-1]
    # a block at a time: windows take ten times the memory of a column
    for start in range(0, len(every) - 2 * SIDE + 1, BLOCK):
        windows = np.lib.stride_tricks.sliding_window_view(every[start : start + BLOCK + 2 * SIDE - 1], 2 * SIDE)
        jumps = np.flatnonzero(~(np.abs(np.log(np.abs(windows[:, SIDE] / windows[:, SIDE - 1]))) < LEAST_JUMP))
        left, right = np.sort(windows[jumps, :SIDE], axis=1), np.sort(windows[jumps, SIDE:], axis=1)
        before, after = left[:, SIDE // 2], right[:, SIDE // 2]
        steady = [np.ptp(part, axis=1) <= agree * np.abs(part[:, SIDE // 2]) for part in (left, right)]
        for i in np.flatnonzero(steady[0] & steady[1] & (before != 0) & (after != 0)):
            what = _factor(float(before[i]), float(after[i]), agree)
            if what:
                return start + int(jumps[i]) + SIDE, float(before[i]), float(after[i]), what
    return None


def _factor(before: float, after: float, within: float, largest: float = 50) -> str:
    ratio = after / before
    for factor in UNITS:
        if abs(ratio / factor - 1) < within or abs(ratio * factor - 1) < within:
            return f"a factor of {factor:g}"
    for a, b in ((before, after), (after, before)):
        if 1 < abs(a) < largest and abs(math.copysign(math.expm1(abs(a)), a) / b - 1) < within:
            return "symexp"
    return ""


@rule("horizons-differ", about="evidence", needs=("return/length",), algos=())
def horizons_differ(view: View, *, at_limit: float = 0.5, longer: float = 1.25) -> Finding | None:
    """
    What: training episodes never last longer than a length that most of them reach, and evaluation episodes last a
        quarter longer.
    Why: training cuts episodes where the evaluation does not: what comes later is judged, but was never practised, and
        rates such as survival are about different times.
    Known problems: a training policy that is worse ends earlier; hence most episodes must end at the very same length.
    Refuted by: the shorter horizon being a curriculum.
    Try: the same time limit in both, or report both.
    """
    train = view.curve("return/length", rows=5)
    evals = [float(e.get("length", 0) or 0) for row in view.history.evals for e in (row.get("episodes") or [])
             if isinstance(e, dict) and is_number(e.get("length"))]  # fmt: skip
    if view.has("eval/length_det"):
        evals += [float(x) for x in view.curve("eval/length_det").values]
    if not evals:
        raise Missing("lengths of evaluation episodes")
    limit = float(train.values.max())
    pinned = float(np.mean(np.abs(train.values - limit) < 1e-6 * max(limit, 1.0)))
    longest = max(evals)
    if limit <= 0 or pinned < at_limit or longest <= longer * limit:
        return None
    return Finding(f"training episodes are cut at {limit:g} steps, evaluations last up to {longest:g}", longest / limit,
                   None, [train.evidence(f"= {limit:g} in {pinned:.0%} of the rows")], confidence="high")  # fmt: skip


@rule("lost-to-rounding", about="evidence", algos=(), footer=True)
def lost_to_rounding(
    view: View, *, digits: int = 3, largest: float = 2, flat_above: float = 0.5, values: int = 3, rows: int = 20
) -> Finding | None:
    """
    What: all values of a metric are multiples of 0.001 or coarser, and more than half of them are exactly 0, or exactly
        1, though not all.
    Why: they were printed with few digits; 0.000 may be anything under 0.0005, and rules about small numbers are blind.
    Known problems: a share of few rows has few values by nature.
    Refuted by: more digits in another file of the run.
    Try: write the raw numbers, or print them with three significant digits.
    """
    for name, curve in _long_enough(view, ("policy/", "value/", "optim/", "foreign/"), rows, "a metric of the update"):
        scaled = np.abs(curve.values) * 10**digits
        whole = scaled.round()
        coarse = np.isclose(scaled, whole) & ((scaled == 0) | (whole > 0))  # 1e-17 is no printed 0.000
        small = float(scaled.max()) < largest * 10**digits and bool(coarse.all())
        flat = max(float(np.mean(np.abs(curve.values) == end)) for end in (0.0, 1.0))
        if small and flat_above < flat < 1 and len(np.unique(curve.values)) > values:
            return Finding(f"{name} was written with {digits} digits, {flat:.0%} of its rows as a bare 0 or 1", flat,
                           confidence="medium")  # fmt: skip
    return None
