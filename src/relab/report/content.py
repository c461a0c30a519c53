"""What does a page say besides its runs' own numbers? What examine found, how configs compare, what may come next."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from relab.advise.tried import Tried
from relab.base import blame
from relab.comparison import build, declared
from relab.comparison.task import Options
from relab.formats.read.find import LoadedRuns, find, load_all
from relab.formats.read.hints import Hints
from relab.health.examine import Report, examine_loaded
from relab.health.rule import Finding
from relab.report import comparison_page, sweep_page
from relab.report.page import Facts
from relab.runs import grouping, together
from relab.runs.grouping import Group
from relab.runs.together import Together

ALIKE = 2  # remarks of one kind that are all printed
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
    result = compared(folders, runs, groups)
    if result:
        more, standing = comparison_page.sections(result, groups), comparison_page.standing_of(result)
        facts = replace(facts, more=more, standing=standing)
    return replace(facts, groups=groups)


def compared(folders: Sequence[Path], runs: Together, groups: Sequence[Group]) -> build.Result | None:
    """How several configs compare; None of one, and of a sweep: its page compares the trials, and apart from the seeds
    that chose the winner those that did not."""
    if len(groups) < 2 or any(sweep_page.build(folder) for folder in folders):
        return None
    return build.compare(runs.runs, Options(), declared.below(folders, runs.runs), runs.origins)


def of_folder(folder: Path, earlier: Earlier = nothing_tried, compare: bool = False) -> Facts:
    """What examine found below one path, without the sections of a comparison; `compare`: with its sentence, and the
    pairs that it is about."""
    read = load_all(folder)
    runs = together.below([folder], lambda path: read)
    facts = replace(examined(read, folder, earlier=earlier), groups=grouping.grouped(runs.runs))
    result = compared([folder], runs, facts.groups or ()) if compare else None
    if not result:
        return facts
    pairs = [pair for task in result.tasks for pair in task.pairs]
    return replace(facts, standing=comparison_page.standing_of(result), pairs=pairs)


def merged(parts: Sequence[Facts]) -> Facts:
    """What was found below several paths, as if it had been one; a proposal is for one path."""
    if len(parts) == 1:
        return parts[0]
    if any(part.findings is None for part in parts):
        return Facts()
    return Facts(
        findings=[x for part in parts for x in part.findings or ()],
        not_checked=[x for part in parts for x in part.not_checked],
        not_read=[x for part in parts for x in part.not_read],
        remarks=[x for part in parts for x in part.remarks],
        muted={slug: why for part in parts for slug, why in part.muted.items()},
        limits=[x for part in parts for x in part.limits],
    )


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
        return Facts()
    return Facts(
        findings=[f for f in report.findings if not f.footer],
        not_checked=report.not_checked,
        not_read=[*report.unreadable, *report.not_read],
        remarks=report.remarks,
        muted=report.muted,
        limits=footers([f for f in report.findings if f.footer]),
        proposal=proposed(report, folder, earlier),
    )


def footers(findings: Sequence[Finding]) -> list[str]:
    """What limits the runs: said of many in the same way, it is said once, with their number."""
    by_rule: dict[str, list[str]] = {}
    for finding in findings:
        by_rule.setdefault(finding.slug, []).append(finding.message)
    few = [(list(dict.fromkeys(said)), len(said)) for said in by_rule.values()]
    return [
        text for said, n in few for text in (said if len(said) <= ALIKE else [f"{said[0]}; {n - 1} more like this"])
    ]


def proposed(report: Report, folder: Path, earlier: Earlier) -> str:
    """What `relab next` would print; empty where it has nothing, or cannot say."""
    from relab.advise import propose, render

    try:
        return render.text(propose(report, folder, earlier()))
    except Exception as error:  # a page without a proposal is better than none
        lacks("proposal", error)
        return ""


def lacks(what: str, error: Exception) -> None:
    print(f"relab: the page has no {what}: {blame.reason(error)}", file=sys.stderr)


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
