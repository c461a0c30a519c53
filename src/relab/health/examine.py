"""What went wrong in a folder of runs, since when, with the numbers? Reads run folders, writes nothing."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from relab.base.documents import Document
from relab.base.enclosed import named
from relab.base.errors import NotFoundError
from relab.base.jsonl import Problem, RecordError
from relab.formats.read import find
from relab.formats.read.hints import Hints
from relab.formats.read.source import Source
from relab.formats.read.unread import Unread
from relab.health import chain, engine
from relab.health.advice import agree
from relab.health.estimates import clear
from relab.health.mute import read_mutes
from relab.health.remedy import as_long, prescribe, vouches, worse
from relab.health.rule import SEVERITIES, Finding, Rule, all_rules
from relab.health.view import View, ViewGroup, ends
from relab.record.state import group_key, state_of
from relab.runs import identity, naming

SCHEMA = 2  # 1 named rules by an id besides the slug, and kept what could not be read in `not_checked`
CLEARLY = 3.0  # standard errors


@dataclass
class Examined:
    """One run and how it stands."""

    view: View
    group: str

    def to_json(self) -> Document:
        return {"run": self.view.name, "group": self.group, "parent": self.view.meta.get("parent"),
                "source": self.view.history.source}  # fmt: skip


@dataclass(frozen=True)
class Remark:
    """Something to know about how a run was read."""

    run: str
    text: str

    def to_json(self) -> dict[str, str]:
        return vars(self).copy()


@dataclass
class Report:
    """Runs, groups, findings in order of importance, what could not be checked, and what could not be read."""

    path: str
    runs: list[Examined] = field(default_factory=list)
    groups: list[ViewGroup] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    not_checked: list[engine.NotChecked] = field(default_factory=list)
    unreadable: list[Unread] = field(default_factory=list)  # runs
    not_read: list[Unread] = field(default_factory=list)  # files and folders
    remarks: list[Remark] = field(default_factory=list)  # about runs that were read
    muted: dict[str, str] = field(default_factory=dict)  # slug -> reason

    def to_json(self) -> Document:
        return {
            "schema": SCHEMA, "path": self.path, "runs": [run.to_json() for run in self.runs],
            "findings": [f.to_json() for f in self.findings],
            "not_checked": [gone.to_json() for gone in self.not_checked],
            "unreadable": [gone._asdict() for gone in self.unreadable],
            "not_read": [gone._asdict() for gone in self.not_read],
            "remarks": [remark.to_json() for remark in self.remarks], "proposal": None,
        }  # fmt: skip

    def called(self, key: str | None) -> str:
        """A group by its label; "all" is all of them."""
        return next((group.label for group in self.groups if group.name == key and group.label), str(key))

    @property
    def main(self) -> list[Finding]:
        """Findings that are neither limits for the footer nor shared with the reference."""
        return [f for f in self.findings if not f.footer and f.status == "fired"]

    def reaches(self, level: str) -> bool:
        """Whether any finding is at least this severe."""
        floor = SEVERITIES.index(level)
        return any(SEVERITIES.index(f.severity or "info") >= floor for f in self.main)


def examine(
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    ignore: dict[str, str] | None = None,
    rules: dict[str, Rule] | None = None,
    hints: Hints | None = None,
) -> Report:
    """Ask every rule about one run or all runs below a folder; broken folders are reported, not raised."""
    return examine_loaded(find.load_all(path, hints), path, against, ignore, rules, hints=hints)


def examine_loaded(
    loaded: find.LoadedRuns,
    path: str | os.PathLike[str],
    against: str | os.PathLike[str] | None = None,
    ignore: dict[str, str] | None = None,
    rules: dict[str, Rule] | None = None,
    tell: find.Tell | None = None,
    hints: Hints | None = None,
) -> Report:
    """The same of runs that were read already; `path` is what they are called together."""
    report = Report(str(path))
    views = _views(loaded, report)
    reference = load_view(Path(against), str(against), hints) if against is not None else None
    _link(views, reference)
    _group(views, report)
    known = rules or all_rules()
    mutes = read_mutes(Path(path), known, ignore or {})
    report.muted = mutes.reasons
    answers: list[list[Finding]] = []
    for number, view in enumerate(views):
        said = partial(tell, number, len(views), view.name) if tell is not None else lambda: None
        muted = mutes.of(view.spec.get("env"))
        fired, gone = engine.ask_run([rule for slug, rule in known.items() if slug not in muted], view, said)
        answers.append(fired)
        report.not_checked += gone
    _advise(views, answers, list(known.values()))
    report.findings = [finding for fired in answers for finding in fired]
    active = [rule for slug, rule in known.items() if slug not in mutes.everywhere]
    fired, gone = engine.ask_groups(active, report.groups)
    report.findings = chain.ordered(report.findings + fired)
    report.not_checked += gone
    return report


def _advise(views: list[View], answers: list[list[Finding]], rules: list[Rule]) -> None:
    """Each finding with what to try, when it is known of every run whether it can be a model."""
    for view, fired in zip(views, answers):
        view.suspect = _doubtful(fired)
    outside = {id(v.reference): v.reference for v, fired in zip(views, answers) if fired and v.reference is not None}
    for other in outside.values():
        if all(other is not view for view in views):
            _ask(other, rules)
    best = _best_of_each_config(views)
    for view, fired in zip(views, answers):
        prescribe(fired, view, _better(view, best), _well(view, best) if fired else ())
        agree(fired)


def _ask(view: View, rules: list[Rule]) -> None:
    view.suspect = _doubtful(engine.ask_run(rules, view)[0])


def well(view: View) -> bool:
    """Whether a run can be a model, also one of which no rule was asked yet."""
    if view.suspect is None:
        _ask(view, list(all_rules().values()))
    return vouches(view)


def _doubtful(findings: list[Finding]) -> bool:
    """Whether rules warn about how a run learned."""
    return any(f.status == "fired" and not f.footer and f.about in chain.CHAIN and f.severity in ("warning", "error")
               for f in findings)  # fmt: skip


def _views(loaded: find.LoadedRuns, report: Report) -> list[View]:
    report.unreadable = [Unread(source.name, why) for source, why in loaded.broken]
    report.not_read = list(loaded.unread)
    for run in loaded.runs:
        said = [p for p in run.history.problems if "is missing" not in p.message]
        report.remarks += [Remark(run.name, _in_words(p)) for p in said]
    return [View(run.history, run.name, state=state_of(run.history)) for run in loaded.runs]


def _in_words(problem: Problem) -> str:
    line = f" line {problem.line}" if problem.line is not None else ""
    return f"{problem.file}{line}: {problem.message}"


def load_view(path: Path, name: str, hints: Hints | None = None) -> View:
    """The one run at a path; NotFoundError where there is none or more than one."""
    sources: list[Source] = list(find.find(path))
    if len(sources) != 1:
        raise NotFoundError(f"{path} must be one run, but holds {len(sources)}")
    history = find.read(sources[0], hints)
    return View(history, name, state=state_of(history))


def _link(views: list[View], reference: View | None) -> None:
    """The run each one is held against: the one the user named, else its parent, else the best comparable run."""
    by_key = {key: view for view in views for key in _keys(view)}
    for view in views:
        parent = view.meta.get("parent")
        if reference is not None:
            same = reference.history.folder.resolve() == view.history.folder.resolve()
            view.reference = None if same else reference
            view.is_parent = not same and parent in _keys(reference)
        elif isinstance(parent, str) and parent:
            view.reference = by_key.get(named(parent)) or _beside(view, parent)
            view.is_parent = view.reference is not None
    if reference is None:
        _link_best(views)


def _link_best(views: list[View]) -> None:
    """Runs without a parent are held against the best run on the same task, if that one is clearly better.

    It must have another config: what all seeds of one config share is what the rules are to find, not to excuse. And it
    must be better by more than noise: next to a run that is as bad, "also there" would excuse everything.
    """
    best = _best_of_each_config(views)
    for view in (v for v in views if v.reference is None):
        rival = _best_rival(view, best)
        end, high = (None, None) if rival is None else ends(view, rival)
        if end is not None and high is not None and clear(high.mean - end.mean, high, end) > CLEARLY:
            view.reference = rival


Best = dict[str, dict[str, View]]  # task -> config -> its best run: a thousand runs have few of either


def _best_of_each_config(views: list[View]) -> Best:
    """Of the runs that can be a model: what failed, never learned or is suspect itself vouches for nothing."""
    tasks: Best = {}
    for view in (v for v in views if v.spec.get("env") is not None and vouches(v)):
        end = view.standing()
        if end is None:
            continue
        known, config = tasks.setdefault(task_of(view), {}), group_key(view.history, view.name)
        if end.mean > _mean(known.get(config)):
            known[config] = view
    return tasks


def _mean(view: View | None) -> float:
    end = view.standing() if view is not None else None
    return end.mean if end is not None else -math.inf


def _best_rival(view: View, best: Best) -> View | None:
    """The best run on the same task with another config."""
    own = group_key(view.history, view.name)
    return max((v for key, v in best.get(task_of(view), {}).items() if key != own), key=_mean, default=None)


def _better(view: View, best: Best) -> View | None:
    """The run whose settings a finding may be mended with: it ends higher by more than two standard errors."""
    rival = _best_rival(view, best)
    return rival if rival is not None and worse(view, rival) and as_long(view, rival) else None


def _well(view: View, best: Best) -> list[View]:
    """The best run of each config on the same task, the run's own config included, that ends clearly higher."""
    return [other for other in best.get(task_of(view), {}).values() if worse(view, other) and as_long(view, other)]


def task_of(view: View) -> str:
    """Runs compare on the same environment, algorithm and horizon; those that do not say what they are, with none."""
    return repr((view.spec.get("env"), view.config.get("algo.name"), view.spec.get("horizon"), view.by))


def _keys(view: View) -> set[str]:
    """What a child may call it; a run without an id has none, which is no name."""
    return {str(key) for key in (view.name, view.meta.get("id"), view.history.folder.name) if key}


def _beside(view: View, parent: str) -> View | None:
    """A parent that lies next to the run, when only the run itself was given."""
    name = named(parent)
    folder = view.history.folder.resolve().parent / name
    try:
        return load_view(folder, folder.name) if name and not folder.is_symlink() else None
    except (RecordError, NotFoundError, OSError):
        return None


def _group(views: list[View], report: Report) -> None:
    groups: dict[str, ViewGroup] = {}
    for view, key in zip(views, identity.keys([(view.history, view.name) for view in views])):
        groups.setdefault(key, ViewGroup(key)).views.append(view)
        report.runs.append(Examined(view, key))
    report.groups = list(groups.values())
    names = [naming.nameable([(view.history, view.name) for view in group.views]) for group in report.groups]
    for group, label in zip(report.groups, naming.labels(names) if names else []):
        group.label = label
