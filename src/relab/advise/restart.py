"""From which weights is a change to be tried? Fresh ones, unless the run had lost what it knew: then from before that.

A run that began well, with another run's weights, and lost them: from those weights again. A run that rose and fell:
from its own best checkpoint, where what came after it under the old settings is known, and only the change is new.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from relab.advise import foreign
from relab.base.enclosed import RecordError, named, neighbour, own
from relab.health.rule import Finding, all_rules
from relab.health.view import View


def weights(view: View, findings: Sequence[Finding]) -> str | None:
    """RUN@checkpoint, or another tool's file; None: fresh weights."""
    if not view.history.trained_by_relab:
        return foreign.start_again(view, findings)
    fired = [all_rules().get(f.slug) for f in findings if f.run == view.name and f.status == "fired"]
    rules = [rule for rule in fired if rule is not None]
    if any(rule.from_start for rule in rules):
        return _start(view)
    return _best(view) if any(rule.from_best for rule in rules) else None


def is_own(view: View, word: str | None) -> bool:
    """Whether these are weights of the run itself."""
    return word == f"{view.history.folder.resolve().name}@best"


def _start(view: View) -> str | None:
    """The weights it began with, where that run still lies beside it."""
    began: Any = view.meta.get("started_from")
    if not isinstance(began, dict) or type(began.get("step")) is not int:
        return None
    beside = neighbour(view.history.folder.resolve().parent, began.get("run"))
    return f"{named(began['run'])}@{began['step']}" if beside is not None else None


def _best(view: View) -> str | None:
    """Its best checkpoint, where that is still there; not the one of step 0, which knew nothing."""
    folder, step = view.best.get("folder"), view.best.get("step")
    if not isinstance(folder, str) or type(step) is not int or step <= 0:
        return None
    try:
        there = own(view.history.folder, f"checkpoints/{folder}").is_dir()
    except RecordError:
        return None
    return f"{view.history.folder.resolve().name}@best" if there else None
