"""Is a run that goes on still worth its time? Looks at it as `relab examine` does, and stops it as the question says.

`stop_on: [diverged, non-finite]` in the question, or `stop_on: error` for every finding that is an error. A finding
must stand in two looks with rows between them: one bad row ends nothing. experiments/ID/stopped/NAME.json keeps why a
run was stopped and where; it is then neither finished nor failed, and is not started again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.enclosed import own, subfolder
from relab.base.errors import UserError
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.base.near import hint
from relab.config.base import require
from relab.record import run_folder

LEVELS = ("warning", "error")


def names_of(value: Any) -> tuple[str, ...]:
    """`stop_on` as slugs and levels; one that no rule of a single run has is an error."""
    if not value:
        return ()
    from relab.health.rule import all_rules

    names = (value,) if isinstance(value, str) else tuple(value) if isinstance(value, (list, tuple)) else (value,)
    known = [*LEVELS, *(slug for slug, rule in all_rules().items() if rule.scope == "run" and not rule.footer)]
    for name in names:
        require(name in known, f"`stop_on` takes rules about one run (relab explain) or {' or '.join(LEVELS)}, but got"
                               f" {name!r}{hint(str(name), known, '; the nearest is {!r}')}")  # fmt: skip
    return names


# ---- What is kept


def path_of(folder: Path) -> Path:
    """experiments/ID/runs/NAME -> experiments/ID/stopped/NAME.json"""
    return folder.parent.parent / "stopped" / f"{folder.name}.json"


def stopped(folder: Path) -> Document:
    """Why the run in this folder was stopped: slug, step, message; empty for one that was not."""
    home = folder.parent.parent
    try:
        path = own(home, f"stopped/{folder.name}.json")
        return read_json(path.parent, path.name) if path.is_file() else {}
    except (RecordError, OSError):
        return {}


def keep(folder: Path, finding: Any, step: int) -> None:
    """Beside the run; a run of relab's own has it among its events as well."""
    path = path_of(folder)
    subfolder(path.parent.parent, path.parent.name)
    facts = {"slug": finding.slug, "severity": finding.severity, "message": finding.message, "step": step}
    write_atomic(path, encode({"schema": 1, **facts, "at": run_folder.now()}, indent=True))
    if (folder / "events.jsonl").is_file():
        run_folder.append_event_to(folder, "stop", step, reason=f"finding {finding.slug}", message=finding.message)


# ---- Looking


@dataclass
class Watcher:
    """Looks at running runs, and names those that are to be stopped."""

    stop_on: tuple[str, ...]
    folders: Mapping[str, Path]  # run -> its folder
    before: dict[str, dict[str, int]] = field(default_factory=dict)  # run -> slug -> step at which it stood last time

    def look(self, names: Collection[str]) -> list[str]:
        return [name for name in names if self.look_at(name)]

    def look_at(self, name: str) -> bool:
        """Whether it is to be stopped: a finding that stood before, and stands with new rows."""
        from relab.health.examine import examine

        try:
            report = examine(self.folders[name])
        except (UserError, OSError):  # nothing there that could be read yet
            return False
        step = max((run.view.last_step for run in report.runs), default=0)
        stopping = [finding for finding in report.main if {finding.slug, finding.severity} & set(self.stop_on)]
        since = self.before.get(name, {})
        again = next((finding for finding in stopping if since.get(finding.slug, step) < step), None)
        self.before[name] = {finding.slug: since.get(finding.slug, step) for finding in stopping}
        if again is not None:
            keep(self.folders[name], again, step)
        return again is not None
