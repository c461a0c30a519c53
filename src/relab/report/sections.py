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

from relab.advise import score
from relab.advise.calibration import sentence
from relab.base.jsonl import RecordError, read_json
from relab.base.text import count, duration, number
from relab.config.views import diff, flatten
from relab.formats.read import find
from relab.formats.read.hints import Hints
from relab.record.history import History
from relab.report import course, sweep_page, tables
from relab.report.changes import base_of, config_changes, likely, parent_of
from relab.report.curves import curve
from relab.report.next_steps import next_steps
from relab.report.parts import Budget, Examined, Outcome, Section, SeedValue
from relab.report.share import Cleaner
from relab.runs import grouping
from relab.runs.grouping import Group, Run, shown
from relab.runs.verdict import finals, group_sentence, interval_text, many_sentence

MANY = 3  # groups up to which each gets its own words
FEW_CHANGES = 4  # settings; groups that differ in more are different experiments
TOP = 3  # findings on the first screen
UNWELL = ("part", "lost", "flat", "not", "worse", "broken")  # verdicts that ask for a cause


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
    return {
        "title": _title(path, groups),
        "sentence": headline(path, groups, fired, against),
        "sweep": sweep_page.build(path),
        "curve": curve(groups, "", fired, named or parent_run(groups), "reference" if named else "parent"),
        "outcome": [outcome(group) for group in groups],
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


def _title(path: Path, groups: list[Group]) -> str:
    runs = [run for group in groups for run in group.runs]
    formats = dict.fromkeys(run.history.source for run in runs if run.history.source != "relab")
    read = f" (read from {', '.join(formats)})" if formats else ""
    if len(runs) == 1:
        return runs[0].name + read
    folder = path.resolve()
    name = folder.parent.name if folder.name == "runs" else folder.name
    configs = f"{len(groups)} configs, " if len(groups) > 1 else ""
    return f"{name}: {configs}{len(runs)} runs{read}"


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
    return str(finding.get("run") or labels.get(group, group))


# ---- The sentence


def headline(path: Path, groups: list[Group], findings: list[dict[str, Any]], reference: History | None = None) -> str:
    """The experiment's answer where there is one, else one sentence per group; then the likely cause."""
    answer = experiment_answer(path)
    if len(groups) == 1 and not answer:
        said, so_far = group_sentence([run.verdict for run in groups[0].distinct]), _progress(groups[0])
        said = so_far + (_lower(said) if so_far.endswith(": ") else said)
        cause = cause_of(groups[0], findings, reference)
        return f"{said}; {cause}." if cause else f"{said}."
    swept = None if answer else sweep_page.build(path)
    return swept.text if swept else (answer or _each_group(groups)) + _causes(groups, findings)


def _each_group(groups: list[Group]) -> str:
    if len(groups) > MANY:
        return many_sentence([run.verdict for g in groups for run in g.distinct], len(groups)) + "."
    return "; ".join(f"{g.label}: {_lower(group_sentence([r.verdict for r in g.distinct]))}" for g in groups) + "."


def cause_of(group: Group, findings: list[dict[str, Any]], reference: History | None = None) -> str:
    """likely lr x12 against its parent; else the lead finding; nothing for a run that is well."""
    mine = _findings_of(group, findings)
    if not mine:
        return ""
    unwell = _unwell(group)
    base = base_of(group.runs[0].history, reference)
    cause = likely(mine, diff(base.settings, group.config)) if base and unwell else None
    if base and cause:
        return f"likely {cause[0]} against its {base.kind}{_seeds_with(group, mine, cause[1], cause[1]['slug'] + ' ')}"
    return _lead(group, mine, unwell)


def _lead(group: Group, findings: list[dict[str, Any]], unwell: bool) -> str:
    """An info finding of a run that is well is no headline."""
    if not unwell and findings[0]["severity"] not in ("warning", "error"):
        return ""
    return f"lead finding: {findings[0]['slug']}{_seeds_with(group, findings, findings[0])}"


def _findings_of(group: Group, findings: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {run.name for run in group.runs}
    return [f for f in findings if f.get("run") in names or f.get("group") == group.key]


def _seeds_with(group: Group, findings: list[dict[str, Any]], one: dict[str, Any], named: str = "") -> str:
    n = len(group.runs)
    runs = {f.get("run") for f in findings if f["slug"] == one["slug"]}
    return f" ({named}in {len(runs)} of {n} runs)" if n > 1 and one.get("run") else ""


def _causes(groups: list[Group], findings: list[dict[str, Any]]) -> str:
    """Of each group that is worse than the best one: what sets it apart from that, where a finding points to it."""
    ends = [finals([run.verdict for run in g.distinct]).mid for g in groups]
    known = [end for end in ends if math.isfinite(end)]
    best = groups[ends.index(max(known))] if len(groups) > 1 and known else None
    if best is None or _unwell(best):
        return ""
    said = [_cause_beside(g, best, findings) for g, end in zip(groups, ends) if not end >= max(known) and _unwell(g)]
    return "".join([text for text in said if text][:2])


def _unwell(group: Group) -> bool:
    return any(run.verdict.kind in UNWELL for run in group.distinct)


def _cause_beside(group: Group, best: Group, findings: list[dict[str, Any]]) -> str:
    changes, mine = diff(best.config, group.config), _findings_of(group, findings)
    cause = likely(mine, changes) if len(changes) <= FEW_CHANGES else None
    if not cause:
        return ""
    text, one = cause
    return f" {group.label}: likely {text} against {best.label}{_seeds_with(group, mine, one, one['slug'] + ' ')}."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _progress(group: Group) -> str:
    """Said first of a run that is not at its end: what follows may change."""
    states = [run.state for run in group.runs]
    if "running" in states:
        step, total = last_step(group.runs[0].history), _total(group.runs[0].history)
        at = f" at {count(step)} of {count(total)} steps" if len(states) == 1 and total else ""
        return f"Still running{at}. So far: "
    gone = [s for s in ("failed", "stale", "interrupted") if s in states]
    return (
        f"{gone[0].capitalize()} at {count(last_step(group.runs[0].history))} steps. "
        if gone and len(states) == 1
        else ""
    )


def experiment_answer(path: Path) -> str | None:
    """The text of answer.json in the folder, or beside a folder `runs`."""
    folder = path.resolve()
    for place in (folder, folder.parent) if folder.name == "runs" else (folder,):
        try:
            document = read_json(place, "answer.json")
            texts = [str(answer["text"]) for answer in document["answers"]]
        except (RecordError, OSError, KeyError, TypeError):
            continue
        return f"{document.get('question', '')} {' '.join(texts)}".strip() if texts else None
    return None


# ---- Outcome, config, budget


def outcome(group: Group) -> Outcome:
    """The last evaluation over seeds x episodes, with an interval or the reason why there is none."""
    runs = group.distinct
    values = [run.verdict.final for run in runs]
    episodes = sorted({run.verdict.points[-1].n for run in runs if run.verdict.points}) or [0]
    mean = finals([run.verdict for run in runs])
    metric = next((run.verdict.metric for run in runs if run.verdict.metric), "no metric")
    sizes = " to ".join(dict.fromkeys(str(n) for n in (episodes[:1] + episodes[-1:])))
    unit = "episodes" if any(run.history.evals for run in runs) and metric.startswith("eval/") else "rows"
    return Outcome(
        group.label,
        len(runs),
        (sizes or "0") if unit == "episodes" else "-",
        f"{len(runs)} seed{'s' if len(runs) != 1 else ''} × {sizes} {unit}" if sizes != "0" else "",
        metric,
        interval_text(mean) if mean.n else "none",
        f"all {mean.n} seeds equal: no interval" if mean.low == mean.high else _sure(mean.n, mean.level, runs),
        [mean.mid, mean.low, mean.high],
        values,
        [SeedValue(shown(run.seed), number(v), run.name) for run, v in zip(runs, values)],
    )


def _sure(n: int, level: float, runs: list[Run]) -> str:
    if n >= 2:
        return f"mean of {n} seeds, {level:.0%} interval (t)"
    if n == 0:
        return "no finite number"
    last = next(run.verdict.points[-1] for run in runs if run.verdict.points)
    counted = any(run.history.evals for run in runs)
    noise = f"over its episodes ± {number(last.se)} (standard error)" if counted else f"noise ± {number(last.se)}"
    return "1 seed: no interval over seeds" + (f"; {noise}" if last.n > 1 else "")


def _budget(group: Group) -> Budget:
    """How far, how long, how it ended."""
    states = [run.state for run in group.runs]
    status = ", ".join(f"{states.count(s)} {s}" if len(states) > 1 else s for s in dict.fromkeys(states))
    whys = dict.fromkeys(str(why) for run in group.runs if (why := run.history.meta.get("why")))
    steps = [last_step(run.history) for run in group.runs]
    total = _total(group.runs[0].history)
    done = " to ".join(dict.fromkeys((count(min(steps)), count(max(steps)))))
    unit = _unit(group)
    steps_text = f"{done} of {count(total)} {unit}" if total else f"{done} {unit}"
    reasons = f" ({'; '.join(list(whys)[:2])})" if whys else ""
    return Budget(group.label, status + reasons, steps_text, f"{steps_text}{_time(group)}")


def _time(group: Group) -> str:
    seconds = sum(course.elapsed(run.history) for run in group.runs)
    if not math.isfinite(seconds):
        return ", time not recorded"
    return f" in {duration(seconds)}" + (" in all" if len(group.runs) > 1 else "")


def _unit(group: Group) -> str:
    """What the run counts: steps, unless a foreign tool counts something else."""
    axes = {run.history.axes.get(run.verdict.metric, "agent_steps") for run in group.runs}
    axis = axes.pop() if len(axes) == 1 else ""
    return "steps" if axis.endswith("_steps") or not axis else "iterations" if axis == "iteration" else axis


def last_step(run: History) -> int:
    return max((int(c.steps[-1]) for c in run.columns.values() if len(c.steps)), default=0)


def prediction(groups: list[Group]) -> str:
    """What was predicted of a run that came from a proposal, and whether it came true; empty for all others."""
    runs = [run for group in groups for run in group.runs]
    one = len(runs) == 1 and runs[0].history.source == "relab"
    scored = score.of_run(runs[0].history, [Path("runs"), Path("experiments")]) if one else None
    return sentence(scored) if scored is not None else ""


def _total(run: History) -> int | None:
    total = run.config.get("total_steps")
    return total if isinstance(total, int) and not isinstance(total, bool) else None


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
    if len({str(flatten(group.config).get("env.name")) for group in groups}) > 1:
        said.append("several environments on one axis: their returns do not compare")
    said += _evaluation_limits(runs) + _provenance_limits(runs)
    rows = sum(len(run.history.problems) for run in runs)
    if rows:
        said.append(f"{rows} files or rows could not be read")
    if examined.not_read:
        said.append(f"{len(examined.not_read)} runs, files or folders were not read (Health says why)")
    missed = {str(gone.get("slug")) for gone in examined.not_checked}
    if missed or not examined.done:
        some = ", ".join(sorted(missed)[:2]) + (f" and {len(missed) - 2} more" if len(missed) > 2 else "")
        said.append(f"not checked: {some}" if examined.done else "health was not examined")
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
