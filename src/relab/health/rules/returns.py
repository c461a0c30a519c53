"""Is there anything to judge a run by? A return at all, and one that differs from episode to episode."""

from __future__ import annotations

import numpy as np

from relab.health.foreign import mapping_of_return
from relab.health.rule import SHORT, Finding, Missing, rule
from relab.health.view import View
from relab.runs.course import is_return

ONLINE = ("ppo", "a2c", "dqn", "sac", "td3")
SEARCH = (
    "reach it more often: more exploration (a bonus for entropy, noise, epsilon), a reward that leads there, starts"
    " near it, or a longer time limit"
)
UPDATED = ("value/loss", "value/critic_loss", "policy/loss", "policy/actor_loss", "policy/entropy", "policy/kl")


@rule("no-returns", about="evidence", algos=ONLINE, severity="warning", least=SHORT)
def no_returns(view: View) -> Finding | None:
    """
    What: the run logged ten rows or more of its updates, and not one return: no episode ended, or nobody counted it.
    Why: nothing tells whether it learns. Where no episode ends, values have no end either, and a task without a time
        limit never starts anew.
    Known problems: the returns may lie in another file, or under a name that relab does not know (`--show-mapping`).
    Refuted by: a file of returns, or such a name.
    Try: log each episode's return (in Stable-Baselines3 wrap the environment in Monitor); give the task a time limit.
    """
    if view.algo not in ONLINE:
        raise Missing("an algorithm that plays episodes")
    rows = {name: len(view.history.columns[name].values) for name in UPDATED if view.has(name)}
    if not rows or max(rows.values()) < SHORT:
        raise Missing(f"{SHORT} rows of updates")
    if any(is_return(name) for name in view.history.columns) or view.history.evals:
        return None
    shown = view.curve(max(rows, key=lambda name: rows[name]))
    if odd := mapping_of_return(view):
        return Finding(f"no column is known as the return{odd}", 0.0, 0, [shown.evidence("updates were logged")],
                       [f"say which column is the return{odd}"], severity="info")  # fmt: skip
    return Finding(f"no return in {view.last_step:,} steps: no episode ended, or none was logged", 0.0, 0,
                   [shown.evidence("updates were logged")], confidence="high")  # fmt: skip


@rule("returns-all-alike", about="fault", algos=(), severity="warning", least=SHORT)
def returns_all_alike(view: View, *, rows: int = 20, rows_as_random: int = 10) -> Finding | None:
    """
    What: all of 20 or more rows of training returns are exactly the same number; ten are enough where it is the one
        that random policies earn each time, or the lowest there can be, and half of the planned steps are over.
    Why: what the agent does makes no difference to what it is paid: the reward is a constant, is never paid, or what is
        logged is not the return. There is nothing to learn from.
    Known problems: a run that went on from a policy that was perfect already; a task that pays only for rare success.
    Refuted by: single episodes that earn something else.
    Try: print the rewards of one episode; follow one reward from the environment to the log.
    """
    name = next((n for n in ("return/mean", "return/mean_100") if view.has(n)), "return/mean")
    returns = view.curve(name, rows_as_random)
    lowest = _nothing_reached(view, returns.last)
    goes_on = view.early() or (view.unfinished and view.length is None)
    if len(returns) < rows and (goes_on or not lowest):
        raise Missing(f"{rows} finite values of {name} (there are {len(returns)})")
    if np.ptp(returns.values) > 0 or view.resumed or not view.has_choice or view.at_ceiling(returns.last):
        return None
    return Finding(f"every episode earns exactly {returns.last:.4g}, in all {len(returns)} rows{lowest}", returns.last,
                   int(returns.steps[0]), [returns.evidence("constant")], suggest=[SEARCH] if lowest else [],
                   confidence="high")  # fmt: skip


def _nothing_reached(view: View, level: float) -> str:
    """Where random policies earn that too, each time, or it is the floor, the reward is sound, and only luck or a
    search finds more."""
    yard = view.verdict.yardstick
    random = yard.random is not None and yard.spread == 0 and yard.random.mean == level
    floor = level == yard.lowest < 0
    if not random and not floor:
        return ""
    who = "as a random policy does" if random else "the least there is"
    return f", {who}: no reward signal was ever seen, what pays more was never reached"
