"""Has a run come to its end, as far as it can, and most seeds of its config with it? The luckiest says little."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from relab.base.numbers import is_number
from relab.health.view import View

WAITING = ("running", "interrupted", "stale")  # states of runs whose end is not known


def more_than_half(views: Sequence[View], holds: Callable[[View], bool]) -> bool:
    """Whether it holds for more than half of those that have ended."""
    ended = [view for view in views if view.state not in WAITING]
    return 2 * sum(map(holds, ended)) > len(ended)


def solved(view: View) -> bool:
    """At the highest return there is, above the level that is called solved, or at what was asked for."""
    end = view.standing()
    if end is None or is_unstable(view):
        return False
    level = view.verdict.yardstick.solved
    return reached_goal(view) or (level is not None and end.mean >= level)


def is_unstable(view: View) -> bool:
    return view.verdict.kind == "unstable"


def reached_goal(view: View) -> bool:
    """Whether nothing better is possible, or it stopped because it reached what was asked for."""
    end, goal = view.standing(), view.config.get("eval.stop_at")
    return end is not None and ((is_number(goal) and end.mean >= goal) or view.at_ceiling(end.mean))


def cut_text(view: View) -> str:
    return f"{view.name} ended at step {view.last_step:,} of {view.planned:,.0f} planned"


def run_whole(views: Sequence[View]) -> list[View]:
    return [view for view in views if view.state in ("finished", "ended") and not view.unfinished]
