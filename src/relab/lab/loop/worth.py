"""What did a loop come to, in one sentence? What was kept, what that is worth, and on which seeds."""

from __future__ import annotations

from relab.advise.proposal import diff_text, shown
from relab.base.text import plural
from relab.lab.loop.drive import Looping
from relab.lab.loop.journal import Trial
from relab.lab.loop.plan import BASE
from relab.lab.loop.writeup import standing


def sentence(loop: Looping) -> str:
    """Kept: x 0.1 -> 0.76 (p001), my_score 4.5 [2.8, 5.2] (6 seeds) where the base earns -0.1 [...] (7 seeds)."""
    state = loop.state
    if state.noise is None:
        return "Nothing was measured yet."
    tried = plural(len(state.trials), "proposal")
    base = standing(loop, loop.arms.cells(BASE, state.measured(BASE)))
    if state.best == BASE:
        what = f"Nothing was kept of {tried}" if state.trials else "Nothing was proposed yet"
        return f"{what}: the base stays the best, {base}."
    best = standing(loop, loop.arms.cells(state.best, state.measured(state.best)))
    return f"Kept of {tried}: {change(loop)} ({state.best}), {best}, where the base has {base.split(' ', 1)[1]}."


def change(loop: Looping) -> str:
    """What the best config has other than the base, all kept changes together."""
    first, last = loop.arms.settings(BASE), loop.arms.settings(loop.state.best)
    keys = [key for key in last if last[key] != first.get(key)]
    return ", ".join(f"{key} {shown(first.get(key))} -> {shown(last[key])}" for key in keys) or "no setting"


def of_trial(loop: Looping, trial: Trial) -> str:
    """One proposal: kept, withdrawn, not kept or dropped, by the numbers that said so."""
    said = diff_text(trial.proposal["diff"])
    if trial.stands is not None and trial.decided is not None:
        d, s = trial.decided, trial.stands
        then = f"and {s['delta']:+.4g} measured again on {len(s['seeds'])} others"
        return (f"{trial.verdict.capitalize()}: {said}, {d['delta']:+.4g} [{d['low']:+.4g}, {d['high']:+.4g}] on"
                f" {d['n'][1]} fresh seeds {then}.")  # fmt: skip
    if trial.decided is not None:
        d = trial.decided
        return (f"Not kept: {said}, {d['delta']:+.4g} [{d['low']:+.4g}, {d['high']:+.4g}] on {d['n'][1]} fresh"
                " seeds.")  # fmt: skip
    first = trial.first or {"delta": float("nan"), "seeds": []}
    return f"Dropped: {said}, {first['delta']:+.4g} on its {plural(len(first['seeds']), 'first seed')}."
