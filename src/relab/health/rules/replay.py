"""Do the settings of a replay method leave it a chance to learn? Reach of all steps, target network, buffer (D, E)."""

from __future__ import annotations

import math

import numpy as np

from relab.health.curve import Curve
from relab.health.foreign import action_dim, action_ends, first_setting, least_dim, setting
from relab.health.mend import DOWN, LARGER_STEPS, SMALLER_STEPS, UP, at_least, set_to
from relab.health.outcome import failed, judged, learned
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View

OFF_POLICY = ("sac", "td3", "dqn")
OFFLINE = ("awr", "iql")
ON_POLICY = ("ppo", "a2c")
LEAST_BATCH = 32.0  # rows: the smallest that is usual (DQN), where no setting says
ENOUGH = 1000  # updates, or steps, below which a run is short rather than wrong
RATES = ("lr", "learning_rate", "q_lr", "critic_lr", "qf_lr", "actor_lr", "policy_lr", "critic_learning_rate",
         "actor_learning_rate")  # fmt: skip


def _rates(view: View) -> dict[str, float]:
    """The learning rates that are set, else the one that is logged."""
    rates = {name: value for name in RATES if (value := setting(view, name)) is not None}
    if not rates and view.has("optim/lr"):
        rates["optim/lr"] = float(view.curve("optim/lr").values.max())
    if not rates:
        raise Missing("the learning rate")
    return rates


def _counts_updates(view: View) -> bool:
    """Of PPO and A2C tools count epochs or rounds, not steps."""
    return view.has("data/updates") and (view.algo not in ON_POLICY or view.history.source == "relab")


def _most_updates(view: View) -> float:
    """Updates of the run as it logs them; else one a step."""
    return (view.curve("data/updates").last if _counts_updates(view) else float(view.last_step)) / _done(view)


def _done(view: View) -> float:
    """The share of its way that a run has gone: one that goes on is judged by what it will have done."""
    if not view.unfinished:
        return 1.0
    if view.planned is None:
        raise Missing("the end of the run, or its planned steps")
    return min(view.last_step / view.planned, 1.0) or 1.0


def _planned_updates(view: View) -> float:
    """Updates of the run as it logs them; else what its settings make of its steps."""
    if view.has("data/updates"):
        return view.curve("data/updates").last
    every = first_setting(view, "train_frequency", "train_freq")
    if every is None or not every >= 1:
        raise Missing("data/updates, or the steps between updates (train_freq)")
    return view.last_step / every * max(first_setting(view, "gradient_steps", "utd_ratio") or 1.0, 1.0)


# ---- Size of the steps


@rule(
    "steps-too-small",
    about="optimiser",
    algos=(*OFF_POLICY, *OFFLINE, *ON_POLICY),
    severity="warning",
    mends=LARGER_STEPS,
    fallback=(at_least("algo.lr", 3e-4, "a learning rate that is usual"),),
    names=("lr-over-1000",),
)
def steps_too_small(view: View, *, least_updates: int = ENOUGH, reach_below: float = 0.1) -> Finding | None:
    """
    What: after 1,000 updates or more, a learning rate (the smallest, where critic and actor have their own) times their
        number is under 0.1. Where updates are not counted, one a step is the most that is usual.
    Why: Adam moves a parameter by about the learning rate an update at most; all of them together cannot change a
        network whose weights are drawn with a size of about 0.1.
    Known problems: plain gradient descent moves by the rate times the gradient, and may go further.
    Refuted by: the return having risen; then it is told as a remark.
    Try: raise the learning rate by the factor that is missing; 1e-4 to 3e-3 are usual.
    """
    updates, (name, lr) = _most_updates(view), min(_rates(view).items(), key=lambda item: item[1])
    reach = lr * updates
    if updates < least_updates or reach >= reach_below or lr <= 0:
        return None
    done = f"{updates:,.0f} updates" if _counts_updates(view) else f"{updates:,.0f} steps, each with an update at most,"
    return Finding(f"{done} with {name} {lr:.2g} move no parameter by more than {reach:.2g}", reach, 0,
                   [Evidence(name, [view.last_step], [lr], f"x {done.rstrip(',')} < {reach_below:g}")],
                   confidence="high", severity=judged(view))  # fmt: skip


@rule(
    "steps-too-large",
    about="fault",  # a setting stands before what it does to the numbers
    algos=(*OFF_POLICY, *OFFLINE, *ON_POLICY),
    severity="warning",
    mends=SMALLER_STEPS,
    fallback=(set_to("algo.lr", 1e-3),),
    names=("lr-times-100",),
)
def steps_too_large(view: View, *, rate: float = 0.02) -> Finding | None:
    """
    What: a learning rate of 0.02 or more.
    Why: Adam moves every parameter by about the learning rate an update; weights are drawn with a size of about 0.1,
        so that a few updates replace the network.
    Known problems: other optimisers have other usual rates; networks of few units bear more.
    Refuted by: the return rising; then it is told as a remark.
    Try: a learning rate of 3e-4 to 1e-3.
    """
    name, lr = max(_rates(view).items(), key=lambda item: item[1])
    if lr < rate:
        return None
    at = _first_at(view, lr) if name == "optim/lr" else 0
    return Finding(f"{name} is {lr:.3g}: a few updates replace the whole network", lr, at,
                   [Evidence(name, [at], [lr], f">= {rate:g}")], confidence="high", severity=judged(view))  # fmt: skip


def _first_at(view: View, lr: float) -> int:
    """The step at which the logged rate was first so high."""
    curve = view.curve("optim/lr")
    return int(curve.steps[curve.values >= lr][0])


# ---- The target network


def _copies(view: View) -> tuple[float, float]:
    """What a copy takes of the network (tau), and the interval between copies."""
    tau = first_setting(view, "tau", "polyak_tau", "target_tau", "target_update_tau")
    every = first_setting(view, "target_update_interval", "target_network_frequency", "target_update_freq",
                          "target_network_update_freq", "target_every")  # fmt: skip
    if tau is None and every is None:
        raise Missing("tau, or how often the target network is updated")
    return (1.0 if tau is None else tau), (1.0 if every is None else max(every, 1.0))


def _copied(view: View) -> tuple[float, float, float]:
    """(tau, interval, how often the target was moved) of a run."""
    tau, every = _copies(view)
    by_steps = view.algo == "dqn" and setting(view, "target_every") is None  # relab's counts updates
    return tau, every, (view.last_step / _done(view) if by_steps else _most_updates(view)) / every


@rule(
    "target-network-frozen",
    about="critic",
    algos=(*OFF_POLICY, "iql"),
    severity="warning",
    mends={"target_update_interval": DOWN, "target_network_frequency": DOWN, "tau": UP},
)
def target_network_frozen(view: View, *, replaced: float = 0.05, steps: int = ENOUGH) -> Finding | None:
    """
    What: all updates of the target network together replace less than 5 % of it: 1 - (1 - tau)^n < 0.05.
    Why: targets are made of the network's random start; the critic learns the next reward and noise, nothing beyond.
    Known problems: a run of few steps is short of updates, not faulty; runs under 1,000 steps are left out.
    Refuted by: targets that do not come from that network.
    Try: `tau` 0.005 after every update, or a full copy every 100 to 10,000 steps.
    """
    tau, every, times = _copied(view)
    if view.last_step < steps or (tau >= 1 and times >= 1):
        return None
    share = 1 - (1 - min(max(tau, 0.0), 1.0)) ** times if times >= 1 else 0.0
    if share >= replaced:
        return None
    return Finding(f"the target network keeps {1 - share:.1%} of its random start (tau {tau:g}, every {every:,.0f})",
                   share, 0, [Evidence("tau", [view.last_step], [tau], f"1 - (1 - tau)^{times:,.0f} < {replaced:g}")],
                   confidence="high", severity=judged(view))  # fmt: skip


@rule("no-target-network", about="fault", algos=OFF_POLICY, severity="warning")
def no_target_network(view: View, *, taken: float = 0.5) -> Finding | None:
    """
    What: the target network takes half or more of the critic at every update (tau of 0.5 or more, interval 1).
    Why: the critic chases itself; errors feed on themselves where the network generalises across states.
    Known problems: methods that normalise features (CrossQ) need no target network; small tasks bear it.
    Refuted by: the return rising; then it is told as a remark.
    Try: `tau` 0.005, or a full copy every 100 to 10,000 steps.
    """
    tau, every = _copies(view)
    if tau < taken or every > 1 or "crossq" in str(view.config.get("algo.name", "")).lower():
        return None
    return Finding(f"there is no target network: tau {tau:g} at every update", tau, 0,
                   [Evidence("tau", [0], [tau], f">= {taken:g}, every update")], confidence="medium",
                   severity=judged(view))  # fmt: skip


# ---- Data: how much is kept, how often it is used


@rule("replay-too-small", about="fault", algos=OFF_POLICY, severity="warning")
def replay_too_small(view: View, *, batches: int = 10) -> Finding | None:
    """
    What: the replay buffer holds fewer than ten batches, or less than one episode.
    Why: a batch is then nearly the last few steps again and again: rows depend on each other, and what was learned
        elsewhere is forgotten.
    Known problems: an agent that is meant to learn from its newest steps only.
    Refuted by: the return rising; then it is told as a remark.
    Try: a buffer of 100,000 rows or more.
    """
    size = first_setting(view, "buffer_size", "replay_size", "replay_capacity", "capacity", "replay")
    batch = first_setting(view, "batch_size", "train_batch_size_per_learner", "minibatch")
    if size is None or (batch is not None and not batch > 0):
        raise Missing("buffer_size, and a batch_size above 0 where it is there")
    batch = LEAST_BATCH if batch is None else batch
    length = view.curve("return/length").median(0.25) if view.has("return/length") else 0.0
    if size >= batches * batch and size >= length:
        return None
    message = f"the buffer holds {size:,.0f} rows: {size / batch:.2g} batches of {batch:,.0f}"
    return Finding(message + (f", {size / length:.2g} episodes" if length else ""), size / batch, 0,
                   [Evidence("buffer_size", [0], [size], f"< {batches} x {batch:g}, or < {length:g}")],
                   confidence="high", severity=judged(view))  # fmt: skip


@rule(
    "rows-hardly-used",
    about="fault",
    algos=OFF_POLICY,
    severity="warning",
    mends={"train_freq": DOWN, "train_frequency": DOWN, "gradient_steps": UP},
)
def rows_hardly_used(view: View, *, least_uses: float = 1.0, least_steps: int = ENOUGH) -> Finding | None:
    """
    What: updates times batch size make less than one use of a collected row, over at least 1,000 steps of learning.
    Why: a replay method learns by using each row many times (SAC 256, DQN on Atari 8); here most are never seen.
    Known problems: thousands of parallel worlds bring more rows than can be used, and still learn.
    Refuted by: the return rising; then it is told as a remark.
    Try: more updates per step (`gradient_steps`, `train_freq`, `replay_ratio`).
    """
    batch, starts = first_setting(view, "batch_size", "minibatch"), setting(view, "learning_starts") or 0.0
    if batch is None:
        raise Missing("batch_size")
    updates, steps = _planned_updates(view), view.last_step - starts
    if steps < least_steps:
        raise Missing(f"{least_steps:,} steps after learning_starts")
    uses = updates * batch / steps
    if uses >= least_uses:
        return None
    return Finding(f"a row is used {uses:.2g} times: {updates:,.0f} updates of {batch:,.0f} rows in {steps:,.0f} steps",
                   uses, None, [Evidence("data/updates", [view.last_step], [updates], f"x {batch:g} / steps <"
                   f" {least_uses:g}")],
                   confidence="high", severity=judged(view))  # fmt: skip


@rule("replay-ratio-jump", about="operation", needs=("data/updates",), algos=(*OFF_POLICY, "dreamer"))
def replay_ratio_jump(view: View, *, times: float = 2.0, left_out: float = 0.2, rows: int = 8) -> Finding | None:
    """
    What: updates per step in the last half are more than twice, or less than half, of those in the half before,
        from the row after the first update on and leaving a fifth of these rows out.
    Why: a resume that catches up, or a setting that changed, makes the same number of steps mean another amount of
        learning; early data may be overfitted.
    Known problems: a schedule of the replay ratio does this on purpose.
    Refuted by: such a schedule.
    Try: compare the settings before and after; cap the updates that are made up for.
    """
    count = view.curve("data/updates", rows=8)
    begun = int(np.argmax(count.values > 0))  # its row is learned from in part, those before it not at all
    learning = Curve(count.name, count.steps[begun:], count.values[begun:])
    if count.last <= 0 or len(learning) < rows:
        raise Missing(f"{rows} rows since the first update")
    late = learning.tail(1 - left_out)
    middle = len(late) // 2
    parts = (slice(0, middle + 1), slice(middle, None))
    first, second = (_per_step(Curve("", late.steps[part], late.values[part])) for part in parts)
    if first <= 0 or second <= 0 or 1 / times <= second / first <= times:
        return None
    return Finding(f"updates per step went from {first:.3g} to {second:.3g}", second / first, int(late.steps[middle]),
                   [count.evidence("per step, before and after")], confidence="low")  # fmt: skip


def _per_step(count: Curve) -> float:
    steps = float(count.steps[-1] - count.steps[0])
    return float(count.values[-1] - count.values[0]) / steps if steps > 0 else 0.0


# ---- What counts in the return


@rule("discount-out-of-range", about="fault", algos=(*OFF_POLICY, *ON_POLICY, *OFFLINE), severity="warning")
def discount_out_of_range(
    view: View, *, sight_below: float = 5, times_longer: float = 10, hardly_meant: float = 0.5
) -> Finding | None:
    """
    What: gamma is 1 or more in a method that bootstraps, or so small that rewards beyond five steps do not count while
        the longest episodes last ten times as long as it sees (where no length is logged: nothing was learned).
    Why: at 1 the value of a task that goes on has no bound and the targets grow with every update; when it is small
        the method cannot see what an action leads to.
    Known problems: short tasks whose episodes always end have finite values at 1, and short trainings do not come to
        grow; some tasks need no foresight. 1, and 0, which may be meant so, are told as remarks; but under 0.5, 0 too,
        it is a warning from the first look at a run that goes on, while it has not learned.
    Refuted by: the return rising; then it is told as a remark.
    Try: gamma 0.98 to 0.995, so that 1 / (1 - gamma) is about the time over which actions matter.
    """
    gamma = view.number("algo.gamma")
    length = float(view.curve("return/length").values.max()) if view.has("return/length") else math.nan
    sight = math.inf if gamma >= 1 else 1 / (1 - gamma)
    blind = failed(view) if math.isnan(length) else length > times_longer * sight
    if gamma < 1 and not (sight < sight_below and blind):
        return None
    steps = "steps" if math.isnan(length) else f"of {length:.0f} steps"
    reason = "the values have no bound" if gamma >= 1 else f"the agent looks about {sight:.2g} {steps} ahead"
    return Finding(f"gamma is {gamma:g}: {reason}", gamma, 0, [Evidence("gamma", [0], [gamma], "1 / (1 - gamma)")],
                   confidence="medium" if learned(view) else "high",
                   severity=_how_grave(view, gamma, blind and gamma < hardly_meant))  # fmt: skip


def _how_grave(view: View, gamma: float, hardly_meant: bool) -> str:
    """What is hardly ever meant is worth a word before the steps are spent, unless it learns with it."""
    if hardly_meant and view.early() and not learned(view):
        return "warning"
    return judged(view) if 0 < gamma < 1 else "info"


@rule("target-entropy-unreachable", about="fault", kind="continuous", algos=("sac",), severity="warning")
def target_entropy_unreachable(view: View) -> Finding | None:
    """
    What: `target_entropy` is above the largest entropy that actions in [-1, 1] can have, ln 2 per dimension.
    Why: the temperature is raised until that entropy is reached, which never happens; the reward stops counting.
    Known problems: an entropy that is measured before squashing, or in the units of the action range, has another
        maximum: ln of the range's width per dimension.
    Refuted by: the temperature settling; where the return rises it is told as a remark.
    Try: `target_entropy` of minus the number of action dimensions.
    """
    target, most = setting(view, "target_entropy"), action_dim(view) * math.log(2)
    if target is None:
        raise Missing("a number for target_entropy")
    low, high = action_ends(view, "low"), action_ends(view, "high")
    if len(low) == len(high) > 0 and not view.history.trained_by_relab:  # whose SAC measures it in [-1, 1]
        most = max(most, float(np.log(np.maximum(high - low, 1e-12)).sum()))
    if target <= most:
        return None
    return Finding(f"target_entropy is {target:g}, but these actions have {most:.3g} nats at most", target, 0,
                   [Evidence("target_entropy", [0], [target], f"> {most:.3g}")], confidence="high",
                   severity=judged(view))  # fmt: skip


@rule(
    "temperature-drowns-reward",
    about="optimiser",
    needs=("optim/temperature", "return/length"),
    algos=("sac",),
    severity="warning",
    mends={"ent_coef": DOWN, "alpha": DOWN},
)
def temperature_drowns_reward(view: View, *, times: float = 1.0, warns: float = 3.0) -> Finding | None:
    """
    What: over the last half, the temperature times the number of action dimensions is above the largest reward per
        step that any logged episode had.
    Why: one nat of entropy per dimension is worth more than anything the task pays; the policy is paid for noise.
    Known problems: rewards that come once in an episode are small per step; entropy may be worth that much there.
    Refuted by: rewards scaled for learning but not in the logged return; the return rising.
    Try: where the temperature is fixed, let it be learned (`temperature: null`; elsewhere `ent_coef: auto`) or divide
        it by the factor given; where it is learned, lower `target_entropy`.
    """
    heat, length = view.curve("optim/temperature", rows=5).median(0.5), view.curve("return/length")
    name = next((n for n in ("return/mean", "return/mean_100") if view.has(n)), "return/mean")
    returns = view.curve(name, rows=3)
    rate = float(np.abs(returns.values).max()) / max(length.median(), 1.0)
    ratio = heat * least_dim(view) / max(rate, 1e-12)
    if ratio <= times or learned(view):
        return None
    return Finding(f"a nat of entropy is worth {heat:.3g}, a step of the best or worst episode {rate:.3g}", ratio, None,
                   [view.curve("optim/temperature").evidence(f"x dims / {rate:.3g} > {times:g}"), returns.evidence()],
                   severity="warning" if ratio > warns else "info")  # fmt: skip
