"""What does the first screen of a report say? Plain data from run folders; render.py turns it into pages.

Sentence, curve, outcome, findings, config diff, budget and status, what is not known, the command to repeat it. The
folded sections come from tables.py.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from relab.advise import score
from relab.advise.calibration import sentence
from relab.base.jsonl import RecordError
from relab.base.text import count, duration, number, plural
from relab.config.views import flatten
from relab.formats.read import find
from relab.formats.read.hints import Hints
from relab.formats.read.strange_names import advice_of
from relab.health import onsets
from relab.health.chain import lead
from relab.health.rule import Finding
from relab.record.bounds import of_outcome, with_error
from relab.record.clock import took
from relab.report import replication_page, sure, sweep_page, tables, words
from relab.report.changes import config_changes, parent_of
from relab.report.curves import Panel, curve, named, possible
from relab.report.first import (
    about_of,
    colour_places,
    ended_early,
    environments,
    findings_of,
    first,
    headline,
    last_step,
    total_steps,
)
from relab.report.next_steps import next_steps
from relab.report.page import Facts, Lead, Page
from relab.report.parts import NO_METRIC, Budget, GroupOutcome, PageHealth, PlacedFinding, SeedValue
from relab.report.share import Cleaner
from relab.runs import grouping
from relab.runs.course import is_return
from relab.runs.grouping import Group, Run
from relab.stats import SeedMean, mean_over_seeds


@np.errstate(all="ignore")  # numbers of a run that went wrong may be of any size; those beyond it are shown as infinite
def build(
    path: str | os.PathLike[str],
    facts: Facts = Facts(),  # noqa: B008 - it is frozen
    full: bool = False,
    now: float | None = None,
    against: str | os.PathLike[str] | None = None,
    hints: Hints | None = None,
) -> Page:
    """Everything a report says about the runs at or below `path`, safe to share unless `full`. Nothing is written."""
    groups = grouping.load(path, now, hints) if facts.groups is None else facts.groups
    named = named_run(against) if against is not None else None
    raw = page(Path(path), groups, examined(facts, groups), named, full, facts.standing)
    raw = replace(raw, sections=[*facts.more, *raw.sections])
    raw = raw if facts.lead is None else led(raw, facts.lead)
    runs = [run for group in groups for run in group.runs]
    hosts = {str(m["host"]) for r in runs if isinstance(m := r.history.meta.get("machine"), dict) and m.get("host")}
    safe: Page = Cleaner([Path(path)], hosts, full).clean(raw)
    return safe


def led(page: Page, lead: Lead) -> Page:
    """The same with its maker's words first; what a cause explains is then no longer the sentence."""
    first = replace(page.first, question=lead.question, sentence=lead.sentence, detail="", cause="")
    return replace(page, first=first, sentence=lead.sentence, lead=lead)


def examined(facts: Facts, groups: list[Group]) -> PageHealth:
    """What relab examine said, with the labels of groups instead of their hashes."""
    return PageHealth(
        facts.findings is not None,
        _of_status(facts.findings or (), groups, "fired"),
        _of_status(facts.findings or (), groups, "also-in-reference"),
        facts.not_checked,
        facts.not_read,
        facts.remarks,
        facts.muted,
        [_with_labels(text, groups) for text in facts.limits],
        facts.proposal,
    )


def page(
    path: Path,
    groups: list[Group],
    examined: PageHealth,
    named: Run | None,
    full: bool,
    standing: tuple[str, str] = ("", ""),
) -> Page:
    """The same before it is made safe to share; `named` is the run the user wants it held against."""
    findings, against = [each.finding for each in examined.fired], named.history if named else None
    folded = tables.sections(groups, examined, full)
    swept = sweep_page.build(path)
    counted = [sweep_page.unselected(group, swept) for group in groups]
    first_of_rules = top(examined.fired, groups)
    return Page(
        title=about_of(path, groups),
        first=first(path, groups, findings, against, standing),
        sentence=headline(path, groups, findings, against, standing[0]),
        sweep=swept,
        replication=replication_page.build(path),
        curve=curve(counted, "", findings, named or parent_run(groups), "reference" if named else "parent"),
        panels=panels(groups, findings),
        outcome=[outcome(group) for group in counted],
        examined=examined.done,
        findings=first_of_rules,
        more_findings=len(findings) - len(first_of_rules),
        config=config_changes(groups, against),
        prediction=prediction(groups),
        budget=[_budget(group) for group in groups],
        not_known=not_known(groups, examined),
        not_read=[f"{gone.where} ({gone.why})" for gone in examined.not_read],
        commands=commands(Path(path), groups),
        sections=[*folded, next_steps(groups, findings, examined.proposal)],
        full=full,
    )


def panels(groups: list[Group], findings: list[Finding]) -> list[Panel]:
    """A figure for each environment, where there are several: their returns do not compare."""
    parts = environments(groups)
    if len(parts) < 2:
        return []
    places, colours = {id(group): place for place, group in enumerate(groups)}, colour_places(groups)
    return [
        Panel(
            env or "environment not known",
            [places[id(group)] for group in some],
            named(
                curve(some, "", [f for group in some for f in findings_of(group, findings)]),
                env,
                [colours[id(group)] for group in some],
            ),
        )
        for env, some in parts.items()
    ]


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


def _of_status(findings: Sequence[Finding], groups: list[Group], status: str) -> list[PlacedFinding]:
    """Findings with this status, each with the run or the group's label that it was found in."""
    labels = {group.key: group.label for group in groups}
    labels |= {run.name: _run_label(run, group, len(groups)) for group in groups for run in group.runs}
    return [PlacedFinding(f, _where(f, labels)) for f in findings if f.status == status]


def _run_label(run: Run, group: Group, groups: int) -> str:
    """A run by what it is, where several configs or seeds stand on the page: lr=0.01, seed 3."""
    several = len({each.seed_name for each in group.runs}) == len(group.runs) > 1
    return f"{group.label}, seed {run.seed_name}" if several and groups > 1 else run.name


def _with_labels(text: str, groups: list[Group]) -> str:
    for group in groups:
        text = text.replace(group.key, group.label)
    return text


def top(findings: list[PlacedFinding], groups: Sequence[Group] = ()) -> list[PlacedFinding]:
    """The findings that `relab examine` shows first, each with how many more runs have it and since when."""
    slugs = [f.finding.slug for f in findings]
    shown = lead([f.finding for f in findings if not f.finding.footer])
    first = [f for f in findings if any(f.finding is each for each in shown)]
    more = [slugs.count(f.finding.slug) - 1 for f in first]
    return [replace(f, where=f.where + (f" and {n} more" if n else ""), since=_since(f.finding.slug, findings, groups))
            for f, n in zip(first, more)]  # fmt: skip


def _since(slug: str, findings: list[PlacedFinding], groups: Sequence[Group]) -> str:
    same = [f.finding for f in findings if f.finding.slug == slug]
    names = {f.run for f in same}
    with_it = [group for group in groups if any(run.name in names for run in group.runs)]
    began = onsets.earliest([(str(f.run), f.onset) for f in same], sum(len(g.runs) for g in with_it),
                            "seeds" if len(with_it) < 2 else "runs")  # fmt: skip
    return began.words if began is not None and began.marked else ""


def _where(finding: Finding, labels: dict[str, str]) -> str:
    name = finding.run or finding.group or ""
    return labels.get(name, name).removeprefix("runs/")


# ---- Outcome, config, budget


def outcome(group: Group) -> GroupOutcome:
    """The last evaluation over seeds x episodes, with an interval or the reason why there is none."""
    runs = group.distinct
    values = [run.verdict.final for run in runs]
    metric = next((run.verdict.metric for run in runs if run.verdict.metric), NO_METRIC)
    mean = mean_over_seeds(values, possible(metric, runs))
    return GroupOutcome(
        group.label,
        len(runs),
        _episodes(runs, metric),
        _size(runs, metric),
        metric,
        sure.shown(mean, values),
        "; ".join(filter(None, (_how_sure(runs, mean, values), ended_early(group) if len(runs) > 1 else ""))),
        [mean.mid, mean.low, mean.high],
        values,
        [SeedValue(run.seed_name, number(v), run.name) for run, v in zip(runs, values)],
    )


def _how_sure(runs: list[Run], mean: SeedMean, values: list[float]) -> str:
    """Where no run has a return, which columns there are and the `--mapping` that would name it."""
    known = any(math.isfinite(value) for value in values) or any(map(is_return, runs[0].history.columns))
    lost = "" if known else advice_of(runs[0].history)
    return f"no column is known to be a return; {lost}" if lost else sure.in_words(mean, values) + _noise(runs)


def _sizes(runs: list[Run]) -> str:
    episodes = sorted({run.verdict.points[-1].n for run in runs if run.verdict.points}) or [0]
    return " to ".join(dict.fromkeys(str(n) for n in (episodes[:1] + episodes[-1:])))


def _evaluated(runs: list[Run], metric: str) -> bool:
    return any(run.history.evals for run in runs) and metric.startswith("eval/")


def _episodes(runs: list[Run], metric: str) -> str:
    return _sizes(runs) if _evaluated(runs, metric) else "-"


def _size(runs: list[Run], metric: str) -> str:
    sizes, unit = _sizes(runs), "episode" if _evaluated(runs, metric) else "row"
    return f"{plural(len(runs), 'seed')} × {sizes} {unit}{'' if sizes == '1' else 's'}" if sizes != "0" else ""


def _noise(runs: list[Run]) -> str:
    """Of one seed: how sure its own number is."""
    last = next((run.verdict.points[-1] for run in runs if run.verdict.points), None)
    if len(runs) > 1 or last is None or last.n <= 1 or not math.isfinite(last.se):
        return ""
    counted = any(run.history.evals for run in runs)
    if last.se == 0:
        return "; all its episodes equal" if counted else ""
    limits = of_outcome(runs[0].history, runs[0].verdict.metric)
    error = with_error(last.mean, last.se, limits, number)
    return f"; over its episodes{error} (standard error)" if counted else f"; noise{error}"


def _budget(group: Group) -> Budget:
    """How far, how long, how it ended."""
    states = [run.state for run in group.runs]
    status = ", ".join(f"{states.count(s)} {s}" if len(states) > 1 else s for s in dict.fromkeys(states))
    whys = dict.fromkeys(words.reason(str(why)) for run in group.runs if (why := run.history.meta.get("why")))
    steps = [last_step(run.history) for run in group.runs]
    total = total_steps(group.runs[0].history)
    done = " to ".join(dict.fromkeys((count(min(steps)), count(max(steps)))))
    unit = _unit(group)
    steps_text = _steps_of_planned(done, min(steps), total, unit)
    reasons = f" ({'; '.join(list(whys)[:2])})" if whys else ""
    return Budget(group.label, status + reasons, steps_text, f"{steps_text}{_time(group)}")


def _steps_of_planned(done: str, fewest: int, total: float | None, unit: str) -> str:
    """A last batch may go beyond what was planned: "41k of 40k" would be no share."""
    if not total or done == count(total):
        return f"{done} {unit}"
    return f"{done} {unit} ({count(total)} planned)" if fewest >= total else f"{done} of {count(total)} {unit}"


def _time(group: Group) -> str:
    """Of each run, as its steps are."""
    seconds = [took(run.history) for run in group.runs]
    if not all(map(math.isfinite, seconds)):
        return ", time not recorded"
    time_ = " to ".join(dict.fromkeys((duration(min(seconds)), duration(max(seconds)))))
    return f" in {time_}" + (" each" if len(group.runs) > 1 else "")


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


def not_known(groups: list[Group], examined: PageHealth) -> list[str]:
    """Limits of what the report can say."""
    runs = [run for group in groups for run in group.runs]
    said = []
    few = min(len(group.distinct) for group in groups)
    if few < 5:
        of = " of a config" if len(groups) > 1 else ""
        said.append(f"{plural(few, 'seed')}{of}: a comparison needs 5")
    twice = sum(len(group.runs) - len(group.distinct) for group in groups)
    if twice:
        again = (
            "1 run repeats a seed of its config and is"
            if twice == 1
            else f"{twice} runs repeat a seed of their config and are"
        )
        said.append(f"{again} not counted in the outcome")
    said += _evaluation_limits(runs) + _provenance_limits(runs)
    lost = sum(not problem.read for run in runs for problem in run.history.problems)
    if lost:
        said.append(f"{plural(lost, 'place')} in the logs could not be read (the run's own part says which)")
    if examined.not_read:
        said.append(f"{len(examined.not_read)} of the runs, files and folders were not read (Health says why)")
    missed = len({gone.slug for gone in examined.not_checked})
    if not examined.done:
        said.append("health was not examined")
    elif missed:
        said.append(f"{plural(missed, 'rule')} not checked for want of data (listed under Health)")
    return said


def _evaluation_limits(runs: list[Run]) -> list[str]:
    sizes = sorted({p.n for run in runs for p in run.verdict.points[-1:]})
    judged = [run for run in runs if run.verdict.metric]
    trained = [run for run in judged if not run.verdict.metric.startswith("eval/")]
    if trained:
        of = "" if len(trained) == len(judged) else f" of {len(trained)} of {len(judged)} runs"
        return [f"no evaluations{of}: judged by training episodes, sampled actions"]
    many = f"{sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else str(sizes[0]) if sizes else ""
    said = [f"{many} episodes per evaluation"] if sizes and sizes[-1] else []
    if any(_stopped_when_good(run) for run in runs):
        said.append("training stopped at the first good evaluation, so its value is picked high")
    return said + ([] if any(run.verdict.random for run in runs) or not sizes else ["no random baseline"])


def _stopped_when_good(run: Run) -> bool:
    """Whether it was to end so, not by the chance that its last evaluation was the first good one."""
    last = run.verdict.points[-1].step if run.verdict.points else None
    stopped = any(event.get("kind") == "stop" for event in run.history.events)
    meant = stopped or flatten(run.history.config).get("eval.stop_at") is not None
    return meant and run.verdict.reached is not None and run.verdict.reached.step == last


def _provenance_limits(runs: list[Run]) -> list[str]:
    metas = [run.history.meta for run in runs]
    said = []
    bare = [run for run in runs if run.history.source != "relab" and not run.history.config]
    if bare:
        of = "the logs" if len(bare) == len(runs) else f"{len(bare)} of {len(runs)} logs"
        said.append(f"no settings were found with {of}")
    if not all(run.history.meta.get("commit") for run in runs if run.history.source == "relab"):
        said.append("no commit recorded")
    if any(isinstance(p := meta.get("patch"), dict) and p.get("bytes") for meta in metas):
        said.append("the code had uncommitted changes")
    orphans = [run for run in runs if run.history.meta.get("parent") and parent_of(run.history) is None
               and not str(run.history.config.get("start_from")).startswith("shipped:")]  # fmt: skip
    return said + (["the parent was not found beside the run"] if orphans else [])


def commands(path: Path, groups: list[Group]) -> list[str]:
    """As typed; one per group, because seeds differ in one word. Experiments and sweeps are repeated as a whole."""
    if (path / "experiment.yaml").is_file():
        return [shlex.join(["relab", "experiment", str(path / "experiment.yaml"), "--name", path.name])]
    if (path / "sweep.yaml").is_file():
        return [shlex.join(["relab", "sweep", str(path / "sweep.yaml"), "--name", path.name])]
    typed = [str(group.runs[0].history.meta.get("command") or "") for group in groups]
    return list(dict.fromkeys(text for text in typed if text))
