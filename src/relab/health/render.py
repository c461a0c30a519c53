"""How is a report told in a terminal? Groups with each seed's outcome, three findings of four lines, a footer."""

from __future__ import annotations

import datetime
import math
import shutil
import sys
from collections import Counter
from typing import Any

import numpy as np

from relab.base.places import printable as clean
from relab.base.text import cut, figure, plural, wrap
from relab.health import onsets
from relab.health.applied import applied
from relab.health.chain import lead, loudness
from relab.health.engine import FAILED
from relab.health.examine import Report
from relab.health.memory import News
from relab.health.onsets import Since
from relab.health.rule import SEVERITIES, Finding, all_rules
from relab.health.view import View, ViewGroup
from relab.record import glossary
from relab.record.bounds import of_outcome, with_error
from relab.record.state import seed_of
from relab.runs.sentences import COUNTED, PLAIN, beside_number, counted_as, poor_words, silence
from relab.runs.values import fit_words

WIDTH, NARROW, GROUPS, MANY = 118, 40, 5, 2
ROUNDING = 1e-12  # of a mean: an error below this is what adding floats leaves
LISTED = 50  # groups with a warning that are listed, one line each


def text(report: Report, verbose: bool = False) -> str:
    """Everything that is printed; a healthy folder takes at most ten lines, `verbose` shows all of it."""
    lines = [
        head(report),
        *groups(report, verbose),
        *findings(report, verbose),
        *failed(report),
        *footer(report, verbose),
    ]
    if verbose:
        lines += unchecked(report)
        lines += [f"  ignored: {slug}, because {reason}" for slug, reason in report.muted.items()]
    return "\n".join(clean(line) for line in lines if line)


def unchecked(report: Report) -> list[str]:
    """What could not be read, one by one; why a rule was not asked, once for all runs with the same reason."""
    runs: dict[tuple[str, str], list[str]] = {}
    for gone in report.not_checked:
        runs.setdefault((gone.slug, gone.missing), []).append(gone.run)
    lines = [f"  {word} ({name}): {why}" for word, some in passed_over(report) for name, why in some]
    return lines + [
        f"  not checked: {slug} ({who(names, len(report.runs))}): {missing}" for (slug, missing), names in runs.items()
    ]


def failed(report: Report) -> list[str]:
    """A line for each rule that ended in an error, with the package it comes from: it is broken, not short of data."""
    errors: dict[tuple[str, str], list[str]] = {}
    for gone in report.not_checked:
        if gone.missing.startswith(FAILED):
            errors.setdefault((gone.slug, gone.missing.removeprefix(FAILED)), []).append(gone.run)
    return [
        cut(f"rule {slug} of {package(slug)} failed on {who(names, len(report.runs))}: {reason}", 3 * WIDTH)
        for (slug, reason), names in errors.items()
    ]


def package(slug: str) -> str:
    rule = all_rules().get(slug)
    return "an unknown package" if rule is None else rule.check.__module__.partition(".")[0]


def passed_over(report: Report) -> list[tuple[str, list[tuple[str, str]]]]:
    """(what became of it, [(run, file or folder, why)])"""
    remarks = [(remark.run, remark.text) for remark in report.remarks]
    return [("unreadable", [*report.unreadable]), ("not read", [*report.not_read]), ("read with a remark", remarks)]


def who(names: list[str], of: int) -> str:
    """A run by its name, several by their number.

    >>> who(["a"], 3), who(["a", "b"], 3), who(["a", "b", "c"], 3)
    ('a', 'a and 1 more', 'all 3 runs')
    """
    if len(names) == 1:
        return names[0]
    return f"all {of} runs" if len(names) == of else f"{names[0]} and {len(names) - 1} more"


def news(report: Report, changed: News) -> str:
    """What is different since the last look; one line where nothing is."""
    if changed.since is None:
        return text(report) + "\n(the first look at this folder: all of it is new)"
    lines = [f"{report.path}: {changes(changed)} since {local_time(changed.since)}"]
    lines += [f"  new run: {name}" for name in changed.runs[:GROUPS]]
    lines += [f"  and {len(changed.runs) - GROUPS} more new runs"] * (len(changed.runs) > GROUPS)
    lines += [f"  {name}: {a} -> {b}{ended(report, name)}" for name, a, b in changed.states[:GROUPS]]
    lines += [line for each in lead(changed.findings) for line in finding(each, report.main, report)]
    lines += [f"  no longer: {slug} in {run}" for run, slug in changed.gone[:GROUPS]]
    return "\n".join(clean(part) for line in lines for part in fitted(line))


def changes(changed: News) -> str:
    counts = {"new findings": len(changed.findings), "new runs": len(changed.runs), "findings gone": len(changed.gone),
              "runs in another state": len(changed.states)}  # fmt: skip
    return ", ".join(f"{word}: {n}" for word, n in counts.items() if n) or "nothing new"


def ended(report: Report, name: str) -> str:
    view = next(run.view for run in report.runs if run.view.name == name)
    return "" if view.state == "running" else f", {outcome(view)}"


def local_time(utc: str) -> str:
    """A UTC stamp as the clock on the wall shows it."""
    try:
        return datetime.datetime.fromisoformat(utc.replace("Z", "+00:00")).astimezone().strftime("%d %b %H:%M:%S")
    except ValueError:
        return utc


def fitted(line: str) -> list[str]:
    """A line as wide as the terminal is, the rest below it; into a pipe or a file it goes whole. Nothing is cut."""
    if not sys.stdout.isatty():
        return [line]
    indent = " " * (len(line) - len(line.lstrip()))
    return wrap(line.lstrip(), max(shutil.get_terminal_size().columns, NARROW), indent)


def head(report: Report) -> str:
    states = Counter(run.view.state for run in report.runs)
    counts = ", ".join(f"{n} {state}" for state, n in states.most_common())
    n = len(report.main)
    verdict = (
        plural(n, "finding") if n else f"nothing found{_unexplained(report)}" if report.runs else "nothing checked"
    )
    runs = plural(len(report.runs), "run")
    return f"{report.path}: {runs} ({counts or 'none readable'}), {verdict}"


def _unexplained(report: Report) -> str:
    """That no rule fired is no praise of runs that did not learn."""
    poor = poor_words([run.view.verdict for run in report.runs])
    return f" that says why: {poor}" if poor else ""


def groups(report: Report, verbose: bool) -> list[str]:
    """A line per group, the worst first: what it is, every seed's outcome; its first finding if there are others."""
    ranked = sorted(report.groups, key=lambda group: _rank(report, group)) if len(report.groups) > 1 else report.groups
    sick = sum(_first(report, group) is not None for group in ranked)
    shown = ranked if verbose else ranked[: max(GROUPS, min(sick, LISTED))]
    more = len(ranked) - len(shown)
    lines = [f"  {group_line(group)}{_named(report, group)}" for group in shown]
    sound = f", {more - max(sick - len(shown), 0)} of them without a warning" if sick > len(shown) else ""
    rest = [f"  and {more} more {'group' if more == 1 else 'groups'}{sound} (-v shows all)"] if more else []
    return [line for each in lines for line in fitted(each)] + rest


def _of(report: Report, group: ViewGroup) -> list[Finding]:
    names = {view.name for view in group.views}
    return [f for f in report.main if f.run in names or (f.run is None and f.group == group.name)]


def _first(report: Report, group: ViewGroup) -> Finding | None:
    """The most important finding of a group, if it is more than a remark."""
    return next((f for f in _of(report, group) if loudness(f, report.main) > 0), None)


def _rank(report: Report, group: ViewGroup) -> tuple[int, int]:
    first = _first(report, group)
    return (0, 0) if first is None else (-loudness(first, report.main), report.main.index(first))


def _named(report: Report, group: ViewGroup) -> str:
    """What the group has, where others stand beside it: its first finding, in how many of its runs, how many more."""
    first = _first(report, group)
    if first is None or len(report.groups) == 1:
        return ""
    names = {view.name for view in group.views}  # those that a reference shares have it all the same
    runs = {f.run for f in report.findings if f.slug == first.slug and f.run in names}
    where = f" in {len(runs)} of {len(group.views)}" if len(group.views) > 1 and runs else ""
    slugs = {f.slug for f in _of(report, group) if (f.severity or "info") != "info"} - {first.slug}
    loud = SEVERITIES[loudness(first, report.main)]  # a remark that explains a warning is as loud
    return f" - {loud}: {first.slug}{where}{f', {len(slugs)} more' if slugs else ''}"


def group_line(group: ViewGroup) -> str:
    """What was run, what it is called, and every seed's outcome."""
    first = group.views[0]
    if len(group.views) == 1:
        known = group.label in (first.name, kind(first)) or group.label in first.name
        return f"{first.name}: {kind(first)}{'' if known else f', {group.label}'}, {outcomes(group)}"
    called = "" if group.label.lower() == kind(first).lower() else f"{group.label}: "
    return f"{called}{kind(first)}, {outcomes(group)}"


def outcomes(group: ViewGroup) -> str:
    if len(group.views) <= MANY:
        named = [(seed_name(view), outcome(view)) for view in group.views]
        if len({end for _, end in named}) == 1 < len(named) and {seed for seed, _ in named} == {"?"}:
            return f"{len(named)} runs: {named[0][1]}"
        return ", ".join(f"seed {seed}: {end}" for seed, end in named)
    ends = [view.standing() for view in group.views]
    lost = [bool(view.diverged) for view in group.views]
    each = ["diverged" if gone else "-" if end is None else figure(end.mean, 4) for end, gone in zip(ends, lost)]
    values = ", ".join(each[:10])
    more = f" and {len(ends) - 10} more" if len(ends) > 10 else ""
    noise = max((end.se for end in ends if end is not None and not math.isnan(end.se)), default=0.0)
    states = Counter(view.state for view in group.views if view.state not in ("finished", "ended"))
    notes = [f"± {figure(noise, 2)} at most"] * (noise > 0) + [f"{n} {state}" for state, n in states.items()]
    notes += [f"{sum(lost)} diverged"] * any(lost)
    kinds = Counter(counted_as(view.verdict) for view in group.views if not view.diverged)
    notes += [f"{kinds[kind]} {text}" for kind, text in COUNTED.items() if kinds[kind] and kind not in PLAIN]
    results = "no return logged" if not any(ends) and not any(lost) else f"{values}{more}"
    beside = f" ({', '.join(notes)})" if notes else ""
    return f"{len(ends)} {seeds_or_runs(group)}: {results}{beside}"


def seeds_or_runs(group: ViewGroup) -> str:
    names = [seed_name(view) for view in group.views]
    return "seeds" if len(set(names)) == len(names) else "runs"


def kind(view: View) -> str:
    """ppo on cartpole-v1; what a foreign log does not say is left out, and its format is named."""
    words = [str(name) for name in (view.config.get("algo.name"), view.spec.get("env")) if name]
    source = "" if view.history.source == "relab" else f"{view.history.source} log"
    return " ".join(part for part in (source, " on ".join(words)) if part) or "unknown kind"


def seed_name(view: View) -> str:
    seed = seed_of(view.history, view.name)
    return "?" if seed is None else str(seed)


def outcome(view: View) -> str:
    """The last evaluation (else the last training returns) with its standard error, and the state if not finished."""
    state = "" if view.state in ("finished", "ended") else f" ({view.state})"
    if view.verdict.fit is not None:
        return fit_words(view.verdict.fit) + state
    name = view.earned
    where = "" if view.has_evals(view.by) or name.startswith("eval/") else " in training"
    if view.diverged:
        return f"diverged{where} ({view.diverged}){state}"
    last, words = view.standing(), beside_number(view.verdict)
    became = f", {words}" if words else ""
    if last is None:
        return f"{few(view, name)}{where}{became}{state}" if finite(view, name) else f"no return logged{state}"
    shown = 0.0 if last.se < ROUNDING * abs(last.mean) else last.se
    known, limits = shown > (-1 if view.has_evals(view.by) else 0), of_outcome(view.history, name)
    error = with_error(last.mean, shown, limits, lambda x: figure(x, 2)) if known else ""
    return f"{figure(last.mean, 4)}{error}{where}{became}{silence([view.verdict])}{state}"


def finite(view: View, name: str) -> bool:
    return view.has(name) and bool(np.isfinite(view.history.columns[name].values).any())


def few(view: View, name: str) -> str:
    """The end of a curve that is too short for a mean."""
    values = view.curve(name).values
    return f"{figure(values[-1], 4)} in the last of {plural(len(values), 'row')}"


def findings(report: Report, verbose: bool) -> list[str]:
    shown = [f for f in report.findings if not f.footer] if verbose else lead(report.main)
    whole = [line for each in shown for line in finding(each, [] if verbose else report.main, report)]
    lines = [part for line in whole for part in fitted(line)]
    more = [f for f in report.main if f not in shown]
    if more:
        names = Counter(f.slug for f in more)
        slugs = ", ".join(f"{slug}{f' x{n}' if n > 1 else ''}" for slug, n in names.most_common(6))
        kinds = f" and {plural(len(names) - 6, 'other kind')}" if len(names) > 6 else ""
        lines.append(f"  {len(more)} more (-v): {slugs}{kinds}")
    return lines


def finding(finding: Finding, others: list[Finding], report: Report) -> list[str]:
    """Four lines: what and where, the numbers, what it means, what to try. `others` may hold the same of other runs."""
    where = finding.run or f"group {report.called(finding.group)}"
    more = len({f.run or f.group for f in others if f.slug == finding.slug} - {finding.run or finding.group})
    also = f" (and {more} more {'run' if more == 1 else 'runs'})" if more else ""
    began = _began(finding, others, report)
    since = f", {began.words}" if began is not None and began.marked else ""
    because = _because(finding, [f for f in others if f.slug == finding.slug and f is not finding])
    status = "" if finding.status == "fired" else f", {finding.status}"
    lines = [f"{finding.severity}: {finding.slug} in {where}{also}{since}{because}{status}", f"  {finding.message}"]
    lines.append("  " + numbers(finding) if finding.evidence else f"  why: {finding.meaning}")
    return [*lines, f"  try: {'; '.join(tried(item) for item in finding.suggest)}"]


def _because(finding: Finding, same: list[Finding]) -> str:
    """By what it is explained; in how many of the runs, where other runs have it without that."""
    if not finding.explained_by:
        return ""
    all_of_them = [finding, *same]
    count = sum(f.explained_by == finding.explained_by for f in all_of_them)
    here = "" if count == len(all_of_them) else f" in {count} of {len(all_of_them)}"
    return f", explained by {finding.explained_by}{here}"


def _began(finding: Finding, others: list[Finding], report: Report) -> Since | None:
    """In the first of the runs that have it, as curves and pages say it; where each is listed, its own beginning."""
    if not others:
        return onsets.earliest([(str(finding.run), finding.onset)], 1)
    same = [finding, *(f for f in others if f.slug == finding.slug and f is not finding)]
    names = {f.run for f in same}
    with_it = [group for group in report.groups if any(view.name in names for view in group.views)]
    runs = sum(len(group.views) for group in with_it)
    return onsets.earliest([(str(f.run), f.onset) for f in same], runs, "seeds" if len(with_it) < 2 else "runs")


def numbers(finding: Finding) -> str:
    """The evidence, ready to be checked by hand, and the reference's value."""
    first = finding.evidence[0]
    values = " ".join(figure(value) for value in first.values)
    reference = finding.reference
    there = None if reference is None else reference.value
    what = f" ({reference.what})" if reference is not None and reference.what else ""
    other = "" if reference is None or there is None else f"; {reference.run}: {figure(there)}{what}"
    formula = f"({first.formula})" if values and first.formula else first.formula
    healthy = f"; {finding.healthy}" if finding.healthy else ""
    return f"{first.metric}: {' '.join(part for part in (values, formula) if part)}{other}{healthy}"


def tried(item: Any) -> str:
    """One suggestion in words: algo.lr 0.1 -> 0.003 (relab's default); the setting as its program calls it."""
    if not isinstance(item, dict):
        return str(item)
    why = f" ({item['why']})" if item.get("why") else ""
    return f"{item.get('name', item['key'])} {item['from']} -> {item['to']}{why}"


def footer(report: Report, verbose: bool = False) -> list[str]:
    """Limits, whole: seeds, episodes per evaluation, what stands in the reference too, rules that did not run."""
    parts = [seeds(report), episodes(report), busy(report)]
    shared = sorted({f.slug for f in report.findings if f.status == "also-in-reference"})
    if shared:
        parts.append(f"also in the reference, so not the cause: {', '.join(shared)}")
    parts += [unread(*pair) for pair in passed_over(report)]
    parts.append(unasked(report, verbose))
    line = "; ".join(part for part in parts if part)
    columns = shutil.get_terminal_size((WIDTH, 24)).columns
    return wrap(line, max(min(columns, WIDTH), NARROW), "limits: ")


def unread(word: str, problems: list[tuple[str, str]]) -> str:
    """What could not be read at all, or was read with something to say about it."""
    more = f" and {len(problems) - 1} more" if len(problems) > 1 else ""
    return f"{word}: {problems[0][0]} ({cut(problems[0][1], 2 * WIDTH)}){more}" if problems else ""


def seeds(report: Report) -> str:
    """Runs that name no seed count as different ones, as in a comparison, and it is said."""
    every = [[seed_of(view.history, view.name) for view in group.views] for group in report.groups]
    nameless = [own.count(None) for own in every]
    counts = [len({repr(seed) for seed in own if seed is not None}) + n for own, n in zip(every, nameless)]
    if not counts:
        return ""
    span = str(min(counts)) if min(counts) == max(counts) else f"{min(counts)} to {max(counts)}"
    few = f"{span} seed{'s' if max(counts) > 1 else ''} per config, under 5 no conclusion" if min(counts) < 5 else ""
    taken = "runs that name no seed are taken for different seeds" if max(nameless) > 1 else ""
    return "; ".join(part for part in (few, taken) if part)


def episodes(report: Report) -> str:
    n = [view.evals()[-1].n for run in report.runs if (view := run.view).has_evals(view.by)]
    return f"{plural(min(n), 'episode')} per evaluation" if n else "no evaluations with episodes"


def busy(report: Report) -> str:
    """Runs whose speed is that of a shared machine."""
    findings = [f for f in report.findings if f.slug == "busy-machine"]
    if not findings:
        return ""
    which = "the machine was busy" if len(report.runs) == 1 else f"the machine was busy during {len(findings)} runs"
    return f"{which} (load {max(f.value or 0.0 for f in findings):.3g}), so speeds are not to be quoted"


def unasked(report: Report, verbose: bool = False) -> str:
    """How many rules could be asked, and what to log so that more can."""
    counts = [(applied(all_rules().values(), run.view, report.not_checked), run.view.name) for run in report.runs]
    if not counts or all(count.checked == count.apply for count, _ in counts):
        return ""
    least, name = min(counts, key=lambda each: each[0].checked)
    missing = [word for g in report.not_checked if g.run == name for word in g.missing.split(", ")]
    gone = Counter(word for word in missing if glossary.known(word))
    most = ", ".join(word for word, _ in gone.most_common(3))
    where = f" in {name}" if len(counts) > 1 else ""
    own = all(run.view.history.source == "relab" for run in report.runs)  # whose metrics are not the user's to choose
    hint = "" if verbose else " (-v says what lacks)"  # which stands below then
    return f"{least}{where}{f'; to run more, log {most}' if most and not own else hint}"
