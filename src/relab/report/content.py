"""What does a page say besides its runs' own numbers? What examine found, how configs compare, what may come next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from relab.advise.tried import Tried
from relab.base import faults
from relab.comparison import build, pairs
from relab.comparison.task import Options
from relab.formats.read.find import LoadedRuns, find, load_all
from relab.formats.read.hints import Hints
from relab.health.examine import Report, examine_loaded
from relab.report import comparison_page
from relab.runs import grouping, together

Facts = dict[str, Any]  # keywords of sections.build
LISTS = ("findings", "limits", "not_checked", "not_read", "remarks")
Earlier = Callable[[], Sequence[Tried]]  # what was tried before; asked only where something is proposed


def nothing_tried() -> Sequence[Tried]:
    return ()


def content(
    folders: Sequence[Path],
    load: Callable[[Path], LoadedRuns] = load_all,
    against: Path | None = None,
    hints: Callable[[Path], Hints | None] = lambda path: None,
    earlier: Earlier = nothing_tried,
) -> Facts:
    """What examine found below each path, and, where there are several configs, how they compare.

    Every run is read once, by `load`.
    """
    read = {folder: load(folder) for folder in folders}
    facts = merged([examined(read[folder], folder, against, hints(folder), earlier) for folder in folders])
    runs = together.below(folders, read.__getitem__)  # what could not be read is in what was examined
    groups = grouping.grouped(runs.runs)
    if len(groups) > 1:
        compared = build.compare(runs.runs, Options(), pairs.declared(folders), runs.origins)
        facts["more"] = comparison_page.sections(compared, groups)
    return facts | {"groups": groups}


def of_folder(folder: Path, earlier: Earlier = nothing_tried) -> Facts:
    """What examine found below one path, without a comparison of its configs."""
    read = load_all(folder)
    runs = together.below([folder], lambda path: read)
    return examined(read, folder, earlier=earlier) | {"groups": grouping.grouped(runs.runs)}


def merged(parts: Sequence[Facts]) -> Facts:
    """What was found below several paths, as if it had been one; a proposal is for one path."""
    if len(parts) == 1:
        return parts[0]
    if any(part["findings"] is None for part in parts):
        return {"findings": None}
    lists = {key: [x for part in parts for x in part[key]] for key in LISTS}
    return lists | {"muted": {k: v for part in parts for k, v in part["muted"].items()}}


def examined(
    read: LoadedRuns,
    folder: Path,
    against: Path | None = None,
    hints: Hints | None = None,
    earlier: Earlier = nothing_tried,
) -> Facts:
    """What `relab examine` says, if it can; a page without findings is better than none, and says that it has none."""
    try:
        report = examine_loaded(read, folder, against, hints=hints)
    except Exception as error:  # a rule that fails is no reason to have no report
        lacks("findings", error)
        return {"findings": None}
    return {
        "findings": [f.to_json() for f in report.findings if not f.footer],
        "limits": list(dict.fromkeys(f.message for f in report.findings if f.footer)),
        "not_checked": [gone.to_json() for gone in report.not_checked],
        "not_read": [gone._asdict() for gone in (*report.unreadable, *report.not_read)],
        "remarks": [remark.to_json() for remark in report.remarks],
        "muted": report.muted,
        "proposal": proposed(report, folder, earlier),
    }


def proposed(report: Report, folder: Path, earlier: Earlier) -> str:
    """What `relab next` would print; empty where it has nothing, or cannot say."""
    from relab.advise import propose, render

    try:
        return render.text(propose(report, folder, earlier()))
    except Exception as error:  # a page without a proposal is better than none
        lacks("proposal", error)
        return ""


def lacks(what: str, error: Exception) -> None:
    print(f"relab: the page has no {what}: {faults.reason(error)}", file=sys.stderr)


def place(out: Path | None, paths: Sequence[Path]) -> tuple[Path, str]:
    """Folder and stem of the pages. Into relab's folders; beside nobody else's logs, but here, under their name."""
    if out is not None:
        return out.parent, out.stem
    path = paths[0]
    if len(paths) > 1:
        return Path(), f"{path.resolve().stem}-and-{len(paths) - 1}-more-report"
    ours = any((path / name).is_file() for name in ("experiment.yaml", "sweep.yaml"))
    if ours or (path.is_dir() and all(source.format == "relab" for source in find(path))):
        return path, "report"
    return Path(), f"{path.resolve().stem}-report"
