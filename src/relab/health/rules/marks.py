"""Does the program do what the algorithm says? Marks that are exact in a sound run."""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import Any

import numpy as np

from relab.base.numbers import to_int
from relab.base.streams import world_of
from relab.health.curve import Curve
from relab.health.rule import SHORT, Evidence, Finding, Missing, rule
from relab.health.view import View, ViewGroup, episodes
from relab.record.state import seed_of

ROUNDING = 1e-5  # of a value, and of 1: some logs keep half the digits
OUTCOME = re.compile(r"return|reward|success|survival|score")
CLOCK = re.compile(r"(^|/)time/|fps|sps|_s$")
MOST_WORLDS = 2**32  # beyond, a seed that was drawn elsewhere is one of them by chance
SEEDS = 2**64  # that a stream can give
BOOTSTRAPS = ("ppo", "a2c", "dqn", "sac", "td3", "iql")


# ---- Advantages and targets


@rule(
    "advantage-misaligned",
    about="fault",
    needs=("data/advantage_td", "data/advantage_td_next"),
    algos=("ppo", "a2c"),
    severity="warning",
    names=("advantage-sign", "gae-shifted"),
)
def advantage_misaligned(
    view: View,
    *,
    negative: float = 0.9,
    correlated_below: float = -0.1,
    least_lead: float = 0.2,
    led: float = 0.75,
) -> Finding | None:
    """
    What: the advantages in the loss correlate negatively with their own step's TD error in nine of ten iterations, or
        less than with the next step's, by more than 0.2 in the median and in three of four iterations.
    Why: an advantage is a sum of TD errors that begins with its own step's; a wrong sign, or an index off by one,
        teaches the policy the opposite, or the wrong action.
    Known problems: both correlations are alike early in CartPole, and with a poor critic on Pendulum (0.13); hence the
        margin.
    Refuted by: advantages that are not made of TD errors.
    Try: compute the advantage of three steps by hand and compare sign and position.
    """
    own, following = view.curve("data/advantage_td", rows=5), view.curve("data/advantage_td_next", rows=5)
    if not view.has_choice:
        return None
    if np.mean(own.values < 0) >= negative and own.median() < correlated_below:
        return Finding(f"the advantages have the wrong sign: {own.median():.2f} correlated with their own TD error",
                       own.median(), int(own.steps[0]), [own.evidence("< 0")], confidence="high")  # fmt: skip
    rows = min(len(own), len(following))
    lead = Curve("data/advantage_td_next - data/advantage_td", following.steps[-rows:],
                 following.values[-rows:] - own.values[-rows:])  # fmt: skip
    if lead.median() <= least_lead or np.mean(lead.values > 0) < led:
        return None
    return Finding(f"the advantages belong to the next step: {following.median():.2f} correlated with its TD error,"
                   f" {own.median():.2f} with their own", lead.median(), int(lead.steps[0]),
                   [lead.evidence(f"> {least_lead:g}")], confidence="high")  # fmt: skip


@rule(
    "value-beyond-end",
    about="fault",
    needs=("value/after_end",),
    algos=BOOTSTRAPS,
    severity="warning",
    names=("no-termination-mask",),
)
def value_beyond_end(view: View, *, rounding: float = 1e-6) -> Finding | None:
    """
    What: the targets expect something after a terminated episode: the successor's value there is not 0.
    Why: what comes after the end belongs to another episode; values grow without bound where ends are frequent.
    Known problems: none; the number is exactly 0 where the end is masked.
    Refuted by: ends that are time limits and were recorded as terminations.
    Try: multiply the successor's value by (1 - terminated) in the targets.
    """
    beyond = view.curve("value/after_end", rows=3)
    level = float(np.median(np.abs(beyond.values)))
    if level <= rounding:
        return None
    return Finding(f"the targets hold {beyond.median():.4g} for what comes after a terminated episode", level,
                   beyond.first(np.abs(beyond.values) > rounding), [beyond.evidence("must be 0")],
                   confidence="high")  # fmt: skip


@rule(
    "ratio-always-one",
    about="fault",
    needs=("policy/kl", "optim/step_rms"),
    algos=("ppo",),
    severity="warning",
    names=("ratio-always-one",),
)
def ratio_always_one(
    view: View, *, iterations: int = 3, at_first: float = 1e-3, least_step: float = 1e-4, usually: float = 0.05
) -> Finding | None:
    """
    What: from the first three iterations on the KL between old and new policy is under a thousandth of the square of a
        parameter's step (about ten times it is usual), while the parameters do move.
    Why: the old log-probability is taken from the new policy; the ratio is 1, and nothing clips the update.
    Known problems: with one action there is nothing to move; such environments are left out. A policy that has become
        certain does not move either; hence the first iterations.
    Refuted by: a single step per batch, which leaves the ratio at 1.
    Try: keep the log-probability of the moment of acting, and do not let it be recomputed.
    """
    kl, step = view.curve("policy/kl", rows=5), view.curve("optim/step_rms", rows=5)
    rows = min(len(kl), len(step))
    size = np.maximum(step.values[:rows], 1e-12) ** 2
    ratio = np.abs(kl.values[:rows]) / size
    blind = (ratio[:iterations] < at_first).all() and float(np.median(ratio)) < usually
    moves = (step.values[:iterations] > least_step).all()
    if not view.has_choice or not blind or not moves:
        return None
    message = f"the ratio is always 1: KL {kl.median():.1e} though parameters move by {step.median():.1e} an iteration"
    return Finding(message, float(np.median(ratio)), int(kl.steps[0]),
                   [kl.evidence(f"< {at_first:g} step_rms² at first"), step.evidence()], confidence="high")  # fmt: skip


@rule(
    "critic-frozen",
    about="critic",
    needs=("value/loss", "data/advantage_mean", "data/advantage_std"),
    algos=("ppo",),
    severity="warning",
    explains=("critic-not-learning",),  # nearer than whatever holds the policy too,
    names=("critic-frozen",),
)
def critic_frozen(view: View, *, alike: float = 2e-3, iterations: float = 0.9, rows: int = 3) -> Finding | None:
    """
    What: in nine of ten iterations of the first half the value loss after the epochs is, to two thousandths, the
        loss before them: (advantage_mean² + advantage_std²) / 2.
    Why: the critic gets no gradient, or its optimiser does nothing.
    Known problems: a learning rate of 0 looks the same, and is one; frozen-parameters tells.
    Refuted by: a value loss that is not the mean squared error of the same rows.
    Try: check that the value loss reaches the optimiser, and `value_coef`.
    """
    names = ("value/loss", "data/advantage_mean", "data/advantage_std")
    loss, mean, std = (view.curve(name, rows=6).head(0.5) for name in names)
    n = min(len(loss), len(mean), len(std))
    before = (mean.values[:n] ** 2 + std.values[:n] ** 2) / 2
    if view.config.get("algo.clip_value") or view.config.get("algo.advantage", "gae") != "gae":
        raise Missing("a plain value loss")
    good = before > 1e-12
    ratio = loss.values[:n][good] / before[good]
    if len(ratio) < rows or np.mean(np.abs(ratio - 1) < alike) < iterations:
        return None
    return Finding("the epochs do not lower the value loss: the critic does not learn", float(np.median(ratio)),
                   int(loss.steps[0]), [loss.evidence("= (advantage_mean² + advantage_std²) / 2")],
                   confidence="high")  # fmt: skip


# ---- Scales


@rule(
    "reward-out-of-scale",
    about="fault",
    needs=("data/reward_max", "data/reward_min"),
    algos=(),
    severity="warning",
    names=("reward-times-1000",),
)
def reward_out_of_scale(view: View, *, outside_by: float = 0.01) -> Finding | None:
    """
    What: rewards lie outside of what the environment declares, by more than 1 % of its range.
    Why: something between the environment and the learner scales them, or the declared bound is wrong; value and
        gradient are out of scale with them.
    Known problems: an environment whose declaration is too narrow looks the same.
    Refuted by: the environment's own rewards having that size.
    Try: compare data/reward_max with one step taken by hand; take out the wrapper that scales, or correct the bound.
    """
    bounds = [view.spec.get(key) for key in ("reward_low", "reward_high")]
    if not all(isinstance(b, (int, float)) for b in bounds):
        raise Missing("meta.spec.reward_low and reward_high")
    low, high = float(bounds[0]), float(bounds[1])  # type: ignore[arg-type]
    slack = outside_by * max(high - low, abs(high), abs(low))
    for name, past in (("data/reward_max", lambda x: x > high + slack), ("data/reward_min", lambda x: x < low - slack)):
        curve = view.curve(name, rows=1)
        out = past(curve.values)
        if out.any():
            worst = float(curve.values[np.argmax(np.abs(curve.values))])
            return Finding(f"{name} reaches {worst:.4g}, the environment declares {low:.4g} to {high:.4g}", worst,
                           curve.first(out), [curve.evidence("outside")], confidence="high")  # fmt: skip
    return None


@rule(
    "observation-out-of-scale",
    about="fault",
    needs=("data/obs_max",),
    algos=(),
    severity="warning",
    least=SHORT,
    names=("one-huge-observation",),
)
def observation_out_of_scale(view: View, *, largest: float = 1000) -> Finding | None:
    """
    What: the networks see numbers above 1,000 in more than half of the iterations.
    Why: they are made for numbers of about 1; one large input drives the units to their ends, and the others vanish.
    Known problems: an environment may give large numbers, and a run may cope.
    Refuted by: the reference run seeing the same and learning.
    Try: `norm_obs=true`, or give that observation in other units.
    """
    size = view.curve("data/obs_max", rows=3)
    if size.median() <= largest:
        return None
    return Finding(f"observations reach {size.median():.3g}", size.median(), size.first_above(largest),
                   [size.evidence(f"> {largest:g}")], confidence="high")  # fmt: skip


# ---- Data, resumes, seeds


@rule(
    "stale-data",
    about="fault",
    needs=("policy/kl_start",),
    algos=("ppo",),
    severity="warning",
    names=("stale-data",),
)
def stale_data(view: View, *, apart: float = 1e-5) -> Finding | None:
    """
    What: before the first step of an iteration the policy already differs from the one that acted (KL above 1e-5), in
        half of the iterations.
    Why: the data comes from an older policy, or the old log-probabilities are not those of its actions.
    Known problems: low precision gives 1e-9 to 1e-7.
    Refuted by: actors that run behind on purpose, with a correction for it.
    Try: collect with the current parameters; compare log-probabilities before the first step: they must be equal.
    """
    start = view.curve("policy/kl_start", rows=5)
    if start.median() <= apart:
        return None
    return Finding(f"the data is not the policy's: KL {start.median():.2g} before the first step", start.median(),
                   start.first_above(apart), [start.evidence(f"> {apart:g}")], confidence="high")  # fmt: skip


@rule(
    "resume-lost-state",
    about="fault",
    algos=(),
    severity="warning",
    names=("resume-forgets-optimiser", "resume-forgets-scales"),
)
def resume_lost_state(view: View) -> Finding | None:
    """
    What: a count that only grows starts anew: steps in the optimiser's memory, rows behind a running scale.
    Why: a resume did not restore it; moments or scales begin from nothing under a trained network.
    Known problems: a reset on purpose looks the same.
    Refuted by: the reset being part of the method.
    Try: save and restore optimiser and scales with the parameters.
    """
    names = [n for n in ("optim/adam_steps", "data/obs_seen", "data/reward_seen") if view.has(n)]
    if not names:
        raise Missing("optim/adam_steps, data/obs_seen or data/reward_seen")
    for name in names:
        count = view.curve(name)
        fell = np.append(False, np.diff(count.values) < 0)
        if fell.any():
            at = int(np.flatnonzero(fell)[0])
            return Finding(f"{name} falls from {count.values[at - 1]:,.0f} to {count.values[at]:,.0f}",
                           float(count.values[at]), int(count.steps[at]), [count.evidence("must grow")],
                           confidence="high")  # fmt: skip
    return None


@rule(
    "evaluation-on-training-seeds",
    about="evidence",
    algos=(),
    severity="warning",
    names=("evaluated-on-training-streams",),
)
def evaluation_on_training_seeds(view: View) -> Finding | None:
    """
    What: evaluation episodes begin with the seeds that the training worlds began with.
    Why: the policy is judged on what it was trained on; the score says nothing about new episodes.
    Known problems: only relab's own streams are known.
    Refuted by: training and evaluation being meant to share their episodes.
    Try: take the evaluation's seeds from a stream of its own.
    """
    seed, worlds = seed_of(view.history, view.name), view.config.get("algo.envs")
    if view.history.source != "relab" or not isinstance(seed, int) or not isinstance(worlds, int):
        raise Missing("relab's own seeds")
    rows = [(row, _begun(row)) for row in view.history.evals]
    if not rows:
        raise Missing("evaluations with their episodes")
    most = max(min(worlds, MOST_WORLDS), max(len(begun) for _, begun in rows))
    shared = [row for row, begun in rows if any(world_of(s, seed, "env") < most for s in begun)]
    if not shared:
        return None
    message = f"{len(shared)} of {len(rows)} evaluations begin from the training worlds' seeds"
    return Finding(message, float(len(shared)), to_int(shared[0].get("step")) or 0, confidence="high")


def _begun(row: dict[str, Any]) -> set[int]:
    """Seeds of an evaluation's episodes, those that a stream can have given."""
    return {s for e in episodes(row) if type(s := e.get("seed")) is int and 0 <= s < SEEDS}


@rule(
    "duplicated-seeds",
    about="evidence",
    algos=(),
    severity="warning",
    scope="folder",
    names=("seeds-duplicated",),
)
def duplicated_seeds(groups: list[ViewGroup]) -> Finding | None:
    """
    What: runs with different seeds are the same run: every metric of training equals in every row.
    Why: the seed does not reach the program; what looks like several runs is one, and its spread is 0.
    Known problems: a task without any randomness repeats itself rightly, and is rare.
    Refuted by: a program that has no random numbers.
    Try: check where the seed goes: networks, worlds, batches.
    """
    for group in [each for each in groups if len(each.views) > 1]:
        seen: dict[str, View] = {}
        for view in group.views:
            mark = _fingerprint(view)
            twin = seen.setdefault(mark, view) if mark else view
            if twin is not view and _seed(twin) != _seed(view):
                message = f"{twin.name} (seed {_seed(twin)}) and {view.name} (seed {_seed(view)}) are the same run"
                return Finding(message, 2.0, 0, [Evidence("all metrics of training", [], [], "equal in every row")],
                               confidence="high")  # fmt: skip
    if not any(len(group.views) > 1 for group in groups):
        raise Missing("two runs of one config")
    return None


@rule("same-seed-differs", about="evidence", algos=(), scope="folder")
def same_seed_differs(groups: list[ViewGroup], *, rounding: float = ROUNDING) -> Finding | None:
    """
    What: two runs of one config and one seed differ at a step that both have, by more than rounding.
    Why: the seed does not fix the run, so what is put down to a change may be what another try gives by itself; the
        difference between two tries is a first measure of that noise.
    Known problems: another machine, thread count or version changes the last digits, and training enlarges them; a GPU
        is not deterministic by itself. A config may leave out what was changed in the code.
    Refuted by: the same command giving the same numbers twice.
    Try: give every random stream the seed, or count such runs as samples and compare several seeds.
    """
    pairs = [(a, b) for group in groups for a, b in itertools.combinations(group.views, 2)
             if _seed(a) is not None and _seed(a) == _seed(b)]  # fmt: skip
    if not pairs:
        raise Missing("two runs of one config and seed")
    partings = [(parting, a, b) for a, b in pairs if (parting := _parting(a, b, rounding)) is not None]
    if not partings:
        return None
    (step, name, x, y), a, b = max(partings, key=lambda each: _apart(each[0][2], each[0][3]))
    message = f"{a.name} and {b.name}: one config, one seed ({_seed(a)}), but {name} is {x:.4g} and {y:.4g} at {step:,}"
    shown = Evidence(name, [step, step], [x, y], f"{len(partings)} of {len(pairs)} pairs of tries differ")
    return Finding(message, _apart(x, y), step, [shown], confidence="high",
                   axis=a.history.axes.get(name, "agent_steps"))  # fmt: skip


def _parting(a: View, b: View, rounding: float) -> tuple[int, str, float, float] | None:
    """(step, metric, both values) where two runs first part: outcomes before the rest, the one that parts most."""
    partings = []
    for name in sorted(set(a.history.columns) & set(b.history.columns)):
        x, y = a.history.columns[name], b.history.columns[name]
        steps, i, j = np.intersect1d(x.steps, y.steps, return_indices=True)
        apart = np.flatnonzero(np.abs(x.values[i] - y.values[j]) > rounding * np.abs(x.values[i]) + rounding)
        if len(apart) and not CLOCK.search(name):
            k = apart[0]
            partings.append((int(steps[k]), name, float(x.values[i[k]]), float(y.values[j[k]])))
    partings = [each for each in partings if OUTCOME.search(each[1])] or partings
    first = min((step for step, *_ in partings), default=0)
    return max((each for each in partings if each[0] == first), key=lambda e: _apart(e[2], e[3]), default=None)


def _apart(x: float, y: float) -> float:
    """The difference over the larger of the two."""
    return abs(x - y) / max(abs(x), abs(y), 1e-12)


def _seed(view: View) -> Any:
    return seed_of(view.history, view.name)


def _fingerprint(view: View, rows: int = 5, values_above: int = 3, metrics: int = 3) -> str:
    """A hash of what training measured; empty where too little varies to tell runs apart."""
    digest = hashlib.blake2b(digest_size=8)
    varied = 0
    for name, (steps, values) in sorted(view.history.columns.items()):
        outcome = not name.startswith(("time/", "data/", "eval/", "optim/"))
        if outcome and len(values) >= rows and len(np.unique(values)) > values_above:
            varied += 1
            digest.update(name.encode() + steps.tobytes() + values.tobytes())
    return digest.hexdigest() if varied >= metrics else ""
