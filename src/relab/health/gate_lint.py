"""Can the gates of a schedule work? What the declaration shows, and, of a run, what its log adds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from relab.config.base import require
from relab.formats.read import find
from relab.health import engine
from relab.health.gate_data import trials_of
from relab.health.rule import Finding, all_rules
from relab.health.view import View
from relab.record.state import state_of
from relab.schedules.gate import Gate
from relab.schedules.lint import Lint, lint, samples
from relab.schedules.schedule import Schedule

LOG_SLUGS = ("gate-never-advances", "gate-contradiction", "redundant-threshold", "bar-under-floor", "alert-unreachable",
             "schedule-overrun", "implied-sample-size")  # fmt: skip
ORDER = ("gate-contradiction", "count-read-as-share", "bar-under-floor", "redundant-threshold", "alert-unreachable",
         "schedule-overrun", "freeze-without-effect", "sample-size-unclear", "implied-sample-size",
         "gate-never-advances", "sample-size")  # fmt: skip


def linted(schedule: Schedule, view: View | None = None) -> list[Lint]:
    """All lints, what blocks a gate first; what a run's log shows takes the place of estimates."""
    return sorted(_lints(schedule, view), key=lambda each: (not each.blocks, ORDER.index(each.slug)))


def _lints(schedule: Schedule, view: View | None) -> list[Lint]:
    if view is None:
        n = schedule.claims[0].n if schedule.claims else None
        return [*lint(schedule, n), *samples(schedule, n)]
    logged = from_log(view)
    known = {each.slug for each in logged}
    n = trials_of(view, schedule)
    return [*logged, *(each for each in lint(schedule, n) if each.slug not in known), *samples(schedule, n)]


def from_log(view: View) -> list[Lint]:
    """The examiner's rules about schedules, asked about one run."""
    answers = [(slug, engine.ask(all_rules()[slug], view)) for slug in LOG_SLUGS]
    return [_lint(slug, answer) for slug, answer in answers if isinstance(answer, Finding)]


def _lint(slug: str, finding: Finding) -> Lint:
    rows = [f"{e.metric}: {e.formula}" for e in finding.evidence if e.formula]
    owner, _, message = finding.message.partition(": ")
    parts = (owner, message) if message else ("schedule", finding.message)
    return Lint(slug, *parts, finding.severity != "info", finding.severity == "error", note="\n      ".join(rows))


def with_floors(schedule: Schedule, floors: Mapping[str, float]) -> Schedule:
    """The same with what is expected under any policy."""

    def known(gate: Gate) -> Gate:
        bars = [replace(c, floor=floors.get(c.metric.rpartition("/")[2], c.floor)) for c in gate.success]
        return replace(gate, success=tuple(bars))

    return replace(schedule, gates=[known(gate) for gate in schedule.gates])


def view_of(path: Path) -> View:
    """The run at a path; of several tries in one folder the last."""
    runs = find.load_all(path).runs
    require(bool(runs), f"{path} holds no run that can be read")
    last = [run for run in runs if not run.source.key] or runs
    require(len(last) == 1, f"{path} must be one run, but holds {len(last)}: {', '.join(r.name for r in last[:5])}")
    return View(last[0].history, last[0].name, state=state_of(last[0].history))
