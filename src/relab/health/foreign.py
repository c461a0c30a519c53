"""What can a rule take from a log under names that are not relab's? Names by their last part, and derived numbers."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import Any

import numpy as np

from relab.health.curve import Curve
from relab.health.rule import Finding, Missing
from relab.health.view import View
from relab.record.history import History

SCORE = re.compile(
    r"(?i)(^|[^a-z])(score|points?|rew|ret|r|profit|pnl|win|gain|utility|fitness|performance)s?([^a-z]|$)"
)
HALF_LN_2PIE = 0.5 * math.log(2 * math.pi * math.e)  # entropy of a Gaussian of standard deviation 1


@lru_cache(10_000)
def word(name: str) -> str:
    """The last part of a name in lower case: `foreign/critic/w_norm` -> `w_norm`."""
    return re.sub(r"[\s\-.]+", "_", name.rpartition("/")[2].lower())


def plain_key(key: str) -> str:
    """A setting as its tool calls it."""
    return key.removeprefix("foreign.")


def theirs(view: View, name: str) -> str:
    """A column as the tool's own log calls it; relab's name where it is relab's."""
    own = next((k for k, v in view.history.mapping.items() if v == name), None)
    return name.removeprefix("foreign/") if own is None else own


def setting_name(view: View, key: str) -> str:
    """A setting as the program that has it calls it: learning_rate for algo.lr; relab's name where it is relab's."""
    own = next((k for k, ours in view.history.keys.items() if ours == key), None)
    return plain_key(key) if own is None else own


def both_names(view: View, name: str) -> str:
    """`return/mean (environment/episode_return)`, or one name where both are alike."""
    own = theirs(view, name)
    return own if name.removeprefix("foreign/") == own else f"{name} ({own})"


def named(view: View, pattern: str, rows: int = 1) -> list[Curve]:
    """Columns whose last part matches all of a pattern, those without enough finite values left out."""
    match = re.compile(pattern)
    curves = []
    for name in view.history.columns:
        if match.fullmatch(word(name)):
            try:
                curves.append(view.curve(name, rows))
            except Missing:
                continue
    return curves


def setting(view: View, name: str) -> float | None:
    """A number of the config by its last word, wherever it stands; None where there is none, or more than one."""
    values = {v for k, v in view.config.items() if re.split(r"[./]", k)[-1] == name and isinstance(v, (int, float))}
    return float(values.pop()) if len(values) == 1 else None


def first_setting(view: View, *names: str) -> float | None:
    """The first of several names that tools use for one setting."""
    return next((value for name in names if (value := setting(view, name)) is not None), None)


def half_range(view: View) -> float:
    """Half the action range, of the widest dimension; from the spec alone."""
    low, high = (action_ends(view, key) for key in ("low", "high"))
    if not len(low) or len(low) != len(high) or not np.isfinite(high - low).all() or (high <= low).any():
        raise Missing("the action's range (meta.spec.action.low and high)")
    return float((high - low).max() / 2)


def action_ends(view: View, key: str) -> np.ndarray:
    """The lowest or the highest action in each dimension; empty where the spec holds something else."""
    try:
        return np.atleast_1d(np.asarray(view.action.get(key) or [], np.float64))
    except (TypeError, ValueError):  # text, or lists in lists
        return np.zeros(0)


def action_dim(view: View) -> int:
    dim = view.action.get("dim") or len(action_ends(view, "low"))
    if not isinstance(dim, int) or dim < 1:
        raise Missing("meta.spec.action.dim")
    return dim


def least_dim(view: View) -> int:
    """Dimensions of an action, one where nothing tells: for conclusions that more of them only make stronger."""
    try:
        return action_dim(view)
    except Missing:
        return 1


def std_in_half_ranges(view: View, rows: int = 3) -> Curve:
    """The policy's standard deviation over half the action range: as logged, else out of the entropy of a Gaussian."""
    for name in ("policy/std_max", "policy/std_mean"):
        if view.has(name):
            return view.curve(name, rows)
    half = half_range(view)
    logged = named(view, "(action_|policy_)?std", rows)
    if logged:
        return Curve(logged[0].name, logged[0].steps, logged[0].values / half)
    entropy = view.curve("policy/entropy", rows)
    std = np.exp(np.minimum(entropy.values / action_dim(view) - HALF_LN_2PIE, 300.0)) / half
    return Curve("exp(policy/entropy / dim - ln sqrt(2 pi e)) / half range", entropy.steps, std)


def entropy_share(view: View, rows: int = 5, guessed: bool = False) -> Curve:
    """Entropy over its maximum: as logged, else out of the number of actions, else (`guessed`) over its highest."""
    if view.has("policy/entropy_share"):
        return view.curve("policy/entropy_share", rows)
    entropy = view.curve("policy/entropy", rows)
    if not view.choices and not guessed:
        raise Missing("policy/entropy_share, or policy/entropy with meta.spec.action.n")
    if not view.choices:  # at least two actions, and as many as the entropy has shown
        highest = float(entropy.values.max())
        most, name = (highest, "its highest") if highest > math.log(2) else (math.log(2), "ln 2")
        return Curve(f"policy/entropy / {name}", entropy.steps, entropy.values / most)
    most = sum(math.log(x) for x in view.choices)
    if most <= 0:
        raise Missing("more than one action")
    return Curve("policy/entropy / ln n", entropy.steps, entropy.values / most)


def sure_of_its_actions(view: View, below: float = 0.2, open_at: float = 0.5) -> float | None:
    """The share of its maximum to which the entropy of choices has fallen, from over half to under a fifth (one of two
    actions is taken 97 times in 100); None where it has not, or nothing tells."""
    if view.kind != "discrete" or not view.has_choice:
        return None
    try:
        share = entropy_share(view, guessed=True)
    except Missing:
        return None
    return share.median(0.25) if share.median(0.25) < below and float(share.values[:3].max()) > open_at else None


def q_estimate(view: View, rows: int = 5) -> Curve:
    """What the critic believes: its mean value, else the actor's loss with its sign turned (TD3 exactly, SAC but for
    the entropy term)."""
    for name in ("value/q_mean", "value/mean"):
        if view.has(name):
            return view.curve(name, rows)
    if view.algo not in ("sac", "td3") or not view.has("policy/actor_loss"):
        raise Missing("value/q_mean, or policy/actor_loss of SAC or TD3")
    loss = view.curve("policy/actor_loss", rows)
    return Curve("-policy/actor_loss", loss.steps, -loss.values)


def mapping_of_return(view: View) -> str:
    """How to say which column is the return, where one may be it; empty where none looks like it."""
    some = [theirs(view, name) for name in view.history.columns if name.startswith("foreign/") and SCORE.search(name)]
    return f" (if it is `{some[0]}`: --mapping '{some[0]}=return/mean')" if some else ""


def value_scale(view: View) -> float:
    """The largest size of a value that the returns seen allow: a whole episode's, or its reward rate for ever."""
    gamma = view.config.get("algo.gamma")
    names = ("return/mean", "return/mean_100", "eval/return_det", view.earned)
    name = next((n for n in names if view.has(n)), None)
    if name is None:
        raise Missing("the return" + mapping_of_return(view))
    size = float(np.abs(view.curve(name).values).max())
    if view.has("return/length") and isinstance(gamma, float) and gamma < 1:
        length = max(float(view.curve("return/length").values.min()), 1.0)
        size = max(size, size / length / (1 - gamma))
    return min(size, 1e100)  # its square must be a number


def exploded(loss: Curve, grown: float, least: float, severity: str | None = None) -> Finding | None:
    """What a loss shows by itself: orders of magnitude, which no growth of the returns in one run makes."""
    first, level = float(np.median(loss.values[: max(len(loss) // 4, 1)])), loss.median(0.1)
    if level < max(least, grown * abs(first)):
        return None
    return Finding(f"{loss.name} grew from {first:.3g} to {level:.3g}", level, loss.onset(loss.values > least),
                   [loss.evidence(f"last tenth > {grown:g} times the first quarter")], confidence="medium",
                   severity=severity)  # fmt: skip


def best_beside(history: History) -> dict[str, Any]:
    """best.json next to the folder of the newest run of a loop, whose it is."""
    from relab.base.jsonl import RecordError, read_json
    from relab.formats.read import loop_folder

    if history.source != "loop":
        return {}
    folder = history.folder.resolve()
    newest = max((p.parent.name for p in folder.parent.glob("*/run.json")), default="")  # none beside a converted run
    if folder.name != newest:
        return {}
    try:
        return loop_folder.evidence(read_json(folder.parent, loop_folder.BEST))
    except (RecordError, OSError):
        return {}
