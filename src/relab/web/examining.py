"""What is wrong with these runs, since when, and what is new? As `relab examine` says it, as plain data for pages.

Called in the desk's process. Runs that did not change are kept there, so that looking again costs what has changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from relab.base import masks
from relab.base.documents import Document
from relab.formats.read import find
from relab.formats.read.find import Loaded, LoadedRuns
from relab.formats.read.hints import Hints, of_folder
from relab.formats.read.source import Source
from relab.formats.read.stamps import Stamp, stamp_of
from relab.health import memory
from relab.health.examine import Report, examine_loaded
from relab.health.rule import Finding
from relab.record.run_folder import now
from relab.report import render, words
from relab.web import remembered

_kept: dict[tuple[str, str], tuple[Stamp, Loaded | str]] = {}
MOST = 400  # runs that are examined together
KEPT_BYTES = 1 << 28


def examined(root: str, sources: Sequence[Source]) -> Document:
    """Findings in order of importance, what is new since somebody called all seen, and what was not read."""
    report = _report(root, sources)
    last = remembered.read(Path(root))  # of the dashboard: `relab examine` in a terminal is another look
    before = memory.Look(last.at, last.look["findings"], last.look["runs"]) if last.look else None
    looked = memory.news(report, before)
    fresh = {id(finding) for finding in looked.findings} if looked.since else set()
    gone = [{"run": run, "slug": slug} for run, slug in looked.gone]
    return {
        "findings": [_shown(finding, report, id(finding) in fresh) for finding in report.main],
        "limits": list(dict.fromkeys(f.message for f in report.findings if f.footer)),
        "runs": len(report.runs), "not_checked": len({gone.slug for gone in report.not_checked}),
        "unread": [f"{gone.where}: {gone.why}" for gone in (*report.unreadable, *report.not_read)],
        "since": looked.since, "gone": gone, "states": looked.states, "new_runs": looked.runs,
        "look": memory.snapshot(report, now()).to_json(),
    }  # fmt: skip


def seen(root: str, document: Document, at: str) -> Document:
    """Remember that somebody saw what was said: what is new is new since now, for `relab examine --new` as well -> the
    same with nothing new in it. Nothing is read for it: what came since was not seen."""
    look = document["look"]
    memory.remember(root, memory.Look(at, look["findings"], look["runs"]))
    old = [finding | {"new": False} for finding in document["findings"]]
    return document | {"findings": old, "since": at, "gone": [], "states": [], "new_runs": []}


def _report(root: str, sources: Sequence[Source]) -> Report:
    return examine_loaded(loaded(root, sources), root)


def loaded(root: str, sources: Sequence[Source]) -> LoadedRuns:
    """The runs of these sources; those that did not change are not read again, the broken ones neither."""
    hints, every = of_folder(Path(root)), LoadedRuns()
    for source in sources:
        key, stamp = (str(source.path), source.key), stamp_of(source)
        kept = _kept.get(key)
        if kept is None or kept[0] != stamp:
            kept = _kept[key] = (stamp, _read(source, hints))
        if isinstance(kept[1], str):
            every.broken.append((source, kept[1]))
        else:
            every.runs.append(replace(kept[1], source=source))
    _forget({(str(source.path), source.key) for source in sources})
    return every


def _read(source: Source, hints: Hints) -> Loaded | str:
    """A run, or why it cannot be read."""
    try:
        return Loaded(source, find.read(source, hints))
    except Exception as error:  # whatever a stranger's folder holds, the other runs are still read
        return str(error)


def _forget(wanted: set[tuple[str, str]]) -> None:
    """Runs that nobody asked about this time, once there are many."""
    if len(_kept) > 2 * MOST:
        for key in [key for key in _kept if key not in wanted]:
            del _kept[key]


def _shown(finding: Finding, report: Report, new: bool) -> Document:
    """A finding as the pages lay it out; all that came from a log is escaped there."""
    body = finding.to_json()
    body |= {
        "where": finding.run or report.called(finding.group),
        "message": words.in_text(finding.message).replace(" -> ", " → "),
        "check": words.in_text(render.evidence(finding, drawn=True)),
        "tries": [render.try_text(one) for one in finding.suggest],
        "spark": str(render.spark(finding)),
        "new": new,
    }
    return masks.masked(body)
