"""What does the first screen of a report say? Plain data from run folders; render.py turns it into pages.

Sentence, curve, outcome, findings, config diff, budget and status, what is not known, the command to repeat it. The
folded sections come from tables.py.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relab.advise import score
from relab.advise.calibration import sentence
from relab.base.jsonl import RecordError
from relab.base.text import count, duration, number
from relab.formats.read import find
from relab.formats.read.hints import Hints
from relab.record.clock import elapsed
from relab.report import replication_page, sure, sweep_page, tables, words
from relab.report.changes import config_changes, parent_of
from relab.report.curves import Panel, curve, possible
from relab.report.first import about_of, environments, findings_of, first, headline, last_step, total_steps
from relab.report.next_steps import next_steps
from relab.report.parts import Budget, Examined, Outcome, Section, SeedValue
from relab.report.share import Cleaner
from relab.runs import grouping
from relab.runs.grouping import Group, Run
from relab.stats import mean_over_seeds

TOP = 3  # findings on the first screen


@np.errstate(all="ignore")  # numbers of a run that went wrong may be of any size; those beyond it are shown as infinite
def build(
    path: str | os.PathLike[str],
    findings: list[dict[str, Any]] | None = None,
    not_checked: list[dict[str, Any]] | None = None,
    not_read: list[dict[str, Any]] | None = None,
    remarks: list[dict[str, Any]] | None = None,
    full: bool = False,
    now: float | None = None,
    muted: dict[str, str] | None = None,
    limits: list[str] | None = None,
    proposal: str = "",
    against: str | os.PathLike[str] | None = None,
    hints: Hints | None = None,
    groups: list[Group] | None = None,
    more: Sequence[Section] = (),
) -> dict[str, Any]:
    """Everything a report says about the runs at or below `path`, safe to share unless `full`. Nothing is written.

    `findings` are those of relab examine as JSON, also-in-reference ones included; None: it was not asked.
    `not_read` are runs, files and folders that were not read. `groups` spares reading the runs again, `more` are
    sections that somebody else has made, e.g. of a comparison.
    """
    groups = grouping.load(path, now, hints) if groups is None else groups
    examined = Examined(
        findings is not None,
        _of_status(findings or [], groups, "fired"),
        _of_status(findings or [], groups, "also-in-reference"),
        not_checked or [],
        not_read or [],
        remarks or [],
        muted or {},
        [_with_labels(text, groups) for text in limits or []],
        proposal,
    )
    named = named_run(against) if against is not None else None
    data = page(Path(path), groups, examined, named, full)
    data["sections"] = [*more, *data["sections"]]
    runs = [run for group in groups for run in group.runs]
    hosts = {str(m["host"]) for r in runs if isinstance(m := r.history.meta.get("machine"), dict) and m.get("host")}
    return Cleaner([Path(path)], hosts, full).clean(data)


def page(path: Path, groups: list[Group], examined: Examined, named: Run | None, full: bool) -> dict[str, Any]:
    """The same before it is made safe to share; `named` is the run the user wants it held against."""
    fired, against = examined.fired, named.history if named else None
    folded = tables.sections(groups, tables.health(examined), full)
    swept = sweep_page.build(path)
    return {
        "title": about_of(path, groups),
        "first": first(path, groups, fired, against),
        "sentence": headline(path, groups, fired, against),
        "sweep": swept,
        "replication": replication_page.build(path),
        "curve": curve(groups, "", fired, named or parent_run(groups), "reference" if named else "parent"),
        "panels": panels(groups, fired),
        "outcome": [outcome(sweep_page.unselected(group, swept)) for group in groups],
        "examined": examined.done,
        "findings": top(fired),
        "more_findings": len({f["slug"] for f in fired}) - len(top(fired)),
        "config": config_changes(groups, against),
        "prediction": prediction(groups),
        "budget": [_budget(group) for group in groups],
        "not_known": not_known(groups, examined),
        "not_read": [f"{gone['where']} ({gone['why']})" for gone in examined.not_read],
        "commands": commands(Path(path), groups),
        "sections": [*folded, next_steps(groups, fired, examined.proposal)],
        "full": full,
    }


def panels(groups: list[Group], findings: list[dict[str, Any]]) -> list[Panel]:
    """A figure for each environment, where there are several: their returns do not compare."""
    parts = environments(groups)
    if len(parts) < 2:
        return []
    places = {id(group): place for place, group in enumerate(groups)}
    return [
        Panel(env or "environment not known", [places[id(group)] for group in some],
              curve(some, "", [f for group in some for f in findings_of(group, findings)]))
        for env, some in parts.items()
    ]  # fmt: skip


def named_run(against: str | os.PathLike[str]) -> Run:
    sources = list(find.find(Path(against)))
    if len(sources) != 1:
        raise RecordError(f"--against must be one run, but {against} holds {len(sources)}")
    return grouping.make_run(find.read(sources[0]), sources[0].name)


def parent_run(groups: list[Group]) -> Run | None:
    """The parent that all runs share, where it lies beside them and is not one of them."""
    runs = [run for group in groups for run in group.runs]
    parents = {parent_of(run.history) for run in runs}
    parent = parents.pop() if len(parents) == 1 else None
    if parent is None or parent.resolve() in {run.history.folder.resolve() for run in runs}:
        return None
    try:
        return grouping.make_run(find.read(next(iter(find.find(parent)))), parent.name)
    except (RecordError, StopIteration, OSError):
        return None


def _of_status(findings: list[dict[str, Any]], groups: list[Group], status: str) -> list[dict[str, Any]]:
    """Findings with this status, with the group's label instead of its hash."""
    labels = {group.key: group.label for group in groups}
    chosen = [f for f in findings if f.get("status", "fired") == status]
    texts = ("slug", "severity", "message")
    return [{**f, **{k: str(f.get(k) or "") for k in texts}, "where": _where(f, labels)} for f in chosen]


def _with_labels(text: str, groups: list[Group]) -> str:
    for group in groups:
        text = text.replace(group.key, group.label)
    return text


def top(findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The first finding of each rule, with how many more runs it was found in."""
    slugs = [f["slug"] for f in findings]
    first = [f for i, f in enumerate(findings) if f["slug"] not in slugs[:i]]
    more = [slugs.count(f["slug"]) - 1 for f in first]
    return [{**f, "where": f["where"] + (f" and {n} more" if n else "")} for f, n in zip(first, more)][:TOP]


def _where(finding: dict[str, Any], labels: dict[str, str]) -> str:
    group = str(finding.get("group") or "")
    return str(finding.get("run") or labels.get(group, group)).removeprefix("runs/")


# ---- Outcome, config, budget


def outcome(group: Group) -> Outcome:
    """The last evaluation over seeds x episodes, with an interval or the reason why there is none."""
    runs = group.distinct
    values = [run.verdict.final for run in runs]
    metric = next((run.verdict.metric for run in runs if run.verdict.metric), "no metric")
    mean = mean_over_seeds(values, possible(metric, runs))
    return Outcome(
        group.label,
        len(runs),
        _episodes(runs, metric),
        _size(runs, metric),
        metric,
        sure.shown(mean, values),
        sure.in_words(mean, values) + _noise(runs),
        [mean.mid, mean.low, mean.high],
        values,
        [SeedValue(run.seed_name, number(v), run.name) for run, v in zip(runs, values)],
    )


def _sizes(runs: list[Run]) -> str:
    episodes = sorted({run.verdict.points[-1].n for run in runs if run.verdict.points}) or [0]
    return " to ".join(dict.fromkeys(str(n) for n in (episodes[:1] + episodes[-1:])))


def _evaluated(runs: list[Run], metric: str) -> bool:
    return any(run.history.evals for run in runs) and metric.startswith("eval/")


def _episodes(runs: list[Run], metric: str) -> str:
    return _sizes(runs) if _evaluated(runs, metric) else "-"


def _size(runs: list[Run], metric: str) -> str:
    sizes, unit = _sizes(runs), "episodes" if _evaluated(runs, metric) else "rows"
    return f"{len(runs)} seed{'s' if len(runs) != 1 else ''} × {sizes} {unit}" if sizes != "0" else ""


def _noise(runs: list[Run]) -> str:
    """Of one seed: how sure its own number is."""
    last = next((run.verdict.points[-1] for run in runs if run.verdict.points), None)
    if len(runs) > 1 or last is None or last.n <= 1 or not math.isfinite(last.se):
        return ""
    if last.se == 0:
        return "; all its episodes equal"
    counted = any(run.history.evals for run in runs)
    return f"; over its episodes ± {number(last.se)} (standard error)" if counted else f"; noise ± {number(last.se)}"


def _budget(group: Group) -> Budget:
    """How far, how long, how it ended."""
    states = [run.state for run in group.runs]
    status = ", ".join(f"{states.count(s)} {s}" if len(states) > 1 else s for s in dict.fromkeys(states))
    whys = dict.fromkeys(words.reason(str(why)) for run in group.runs if (why := run.history.meta.get("why")))
    steps = [last_step(run.history) for run in group.runs]
    total = total_steps(group.runs[0].history)
    done = " to ".join(dict.fromkeys((count(min(steps)), count(max(steps)))))
    unit = _unit(group)
    steps_text = f"{done} of {count(total)} {unit}" if total else f"{done} {unit}"
    reasons = f" ({'; '.join(list(whys)[:2])})" if whys else ""
    return Budget(group.label, status + reasons, steps_text, f"{steps_text}{_time(group)}")


def _time(group: Group) -> str:
    seconds = sum(elapsed(run.history) for run in group.runs)
    if not math.isfinite(seconds):
        return ", time not recorded"
    return f" in {duration(seconds)}" + (" in all" if len(group.runs) > 1 else "")


def _unit(group: Group) -> str:
    """What the run counts: steps, unless a foreign tool counts something else."""
    axes = {run.history.axes.get(run.verdict.metric, "agent_steps") for run in group.runs}
    axis = axes.pop() if len(axes) == 1 else ""
    return "steps" if axis.endswith("_steps") or not axis else "iterations" if axis == "iteration" else axis


def prediction(groups: list[Group]) -> str:
    """What was predicted of a run that came from a proposal, and whether it came true; empty for all others."""
    runs = [run for group in groups for run in group.runs]
    one = len(runs) == 1 and runs[0].history.source == "relab"
    scored = score.of_run(runs[0].history, [Path("runs"), Path("experiments")]) if one else None
    return sentence(scored) if scored is not None else ""


# ---- What one cannot conclude; how to repeat it


def not_known(groups: list[Group], examined: Examined) -> list[str]:
    """Limits of what the report can say."""
    runs = [run for group in groups for run in group.runs]
    said = []
    few = min(len(group.distinct) for group in groups)
    if few < 5:
        of = " of a config" if len(groups) > 1 else ""
        said.append(f"{few} seed{'s' if few > 1 else ''}{of}: relab answers from 5 on")
    twice = sum(len(group.runs) - len(group.distinct) for group in groups)
    if twice:
        said.append(f"{twice} runs repeat a seed of their config and are not counted in the outcome")
    said += _evaluation_limits(runs) + _provenance_limits(runs)
    lost = sum(not problem.read for run in runs for problem in run.history.problems)
    if lost:
        said.append(f"{lost} place{'s' * (lost > 1)} in the logs could not be read (the run's own part says which)")
    if examined.not_read:
        said.append(f"{len(examined.not_read)} of the runs, files and folders were not read (Health says why)")
    missed = len({str(gone.get("slug")) for gone in examined.not_checked})
    if not examined.done:
        said.append("health was not examined")
    elif missed:
        said.append(f"not checked: {missed} rule{'s' * (missed > 1)} for want of data (Health says which)")
    return said


def _evaluation_limits(runs: list[Run]) -> list[str]:
    sizes = sorted({p.n for run in runs for p in run.verdict.points[-1:]})
    if any(not run.verdict.metric.startswith("eval/") for run in runs if run.verdict.metric):
        return ["no evaluations: judged by training episodes, sampled actions"]
    many = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0]) if sizes else ""
    said = [f"{many} episodes per evaluation"] if sizes and sizes[-1] else []
    if any(run.verdict.solved is not None and run.verdict.solved == run.verdict.points[-1].step for run in runs):
        said.append("training stopped at the first good evaluation, so its value is picked high")
    return said + ([] if any(run.verdict.random for run in runs) or not sizes else ["no random baseline"])


def _provenance_limits(runs: list[Run]) -> list[str]:
    metas = [run.history.meta for run in runs]
    said = []
    if any(run.history.source != "relab" and not run.history.config for run in runs):
        said.append("no settings were found with the logs")
    if not all(run.history.meta.get("commit") for run in runs if run.history.source == "relab"):
        said.append("no commit recorded")
    if any(isinstance(p := meta.get("patch"), dict) and p.get("bytes") for meta in metas):
        said.append("the code had uncommitted changes")
    orphans = [run for run in runs if run.history.meta.get("parent") and parent_of(run.history) is None]
    return said + (["the parent was not found beside the run"] if orphans else [])


def commands(path: Path, groups: list[Group]) -> list[str]:
    """As typed; one per group, because seeds differ in one word. Experiments and sweeps are repeated as a whole."""
    if (path / "experiment.yaml").is_file():
        return [shlex.join(["relab", "experiment", str(path / "experiment.yaml"), "--name", path.name])]
    if (path / "sweep.yaml").is_file():
        return [shlex.join(["relab", "sweep", str(path / "sweep.yaml"), "--name", path.name])]
    typed = [str(group.runs[0].history.meta.get("command") or "") for group in groups]
    return [text for text in typed if text]
