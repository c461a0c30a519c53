"""What is new since the last look at a folder? Remembered in the user's cache, never in the folder itself."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from relab.base.documents import Document
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.base.places import cache_folder
from relab.health.examine import Report
from relab.health.rule import SEVERITIES, Finding

SCHEMA = 1
Key = tuple[str, str]  # run or group, slug


@dataclass
class News:
    """What changed between two looks; `since` is None at the first one."""

    since: str | None
    findings: list[Finding] = field(default_factory=list)  # new, or more severe than before
    gone: list[Key] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)  # new runs
    states: list[tuple[str, str, str]] = field(default_factory=list)  # run, state before, state now

    @property
    def empty(self) -> bool:
        return not (self.findings or self.gone or self.runs or self.states)

    def to_json(self) -> Document:
        return {
            "since": self.since, "findings": [f.to_json() for f in self.findings], "runs": self.runs,
            "gone": [{"run": run, "slug": slug} for run, slug in self.gone],
            "states": [{"run": run, "from": a, "to": b} for run, a, b in self.states],
        }  # fmt: skip


@dataclass(frozen=True)
class Look:
    """What is remembered of a look at a folder."""

    at: str
    findings: dict[str, str | None]  # owner and slug -> severity
    runs: dict[str, str]  # name -> state

    def to_json(self) -> Document:
        return {"schema": SCHEMA, **vars(self)}


def looks() -> Path:
    return cache_folder() / "examined"


def snapshot(report: Report, now: str) -> Look:
    """What will be remembered of a look."""
    states = {r.view.name: r.view.state for r in report.runs}
    severities = {f"{_owner(f)}\n{f.slug}": f.severity for f in report.main}
    return Look(now, severities, states)


def news(report: Report, before: Look | None) -> News:
    """The difference between a report and an earlier snapshot."""
    if before is None:
        return News(None, report.main, [], [r.view.name for r in report.runs])
    old, states = before.findings, before.runs
    now = {f"{_owner(f)}\n{f.slug}" for f in report.main}
    here = {r.view.name: r.view.state for r in report.runs}
    return News(
        before.at,
        [f for f in report.main if _rank(f.severity) > _rank(old.get(f"{_owner(f)}\n{f.slug}"))],
        [(key.partition("\n")[0], key.partition("\n")[2]) for key in old if key not in now],
        [name for name in here if name not in states],
        [(name, states[name], state) for name, state in here.items() if states.get(name, state) != state],
    )


def _owner(finding: Finding) -> str:
    return finding.run or f"group {finding.group}"


def _rank(severity: str | None) -> int:
    return SEVERITIES.index(severity) if severity in SEVERITIES else -1


def recall(path: str | os.PathLike[str]) -> Look | None:
    """The last look at this folder; None where there was none, or nothing readable is left of it."""
    try:
        look = read_json(looks(), _file(path))
    except (RecordError, OSError):
        return None
    fields = {"at": str, "findings": dict, "runs": dict}
    fits = look.get("schema") == SCHEMA and all(isinstance(look.get(key), kind) for key, kind in fields.items())
    return Look(*(look[key] for key in fields)) if fits else None


def remember(path: str | os.PathLike[str], look: Look) -> None:
    """Keep a look for the next one; a cache that cannot be written is no error."""
    try:
        looks().mkdir(parents=True, exist_ok=True)
        write_atomic(looks() / _file(path), encode(look.to_json()))
    except OSError:
        pass


def _file(path: str | os.PathLike[str]) -> str:
    return hashlib.sha256(os.fsencode(Path(path).resolve())).hexdigest()[:24] + ".json"
