"""What does a page say first? Task and algorithm, one short sentence, and the likely cause where there is one."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from relab.base.jsonl import RecordError, read_json
from relab.base.text import count
from relab.comparison.numbers import unfinished
from relab.comparison.profile import env_id
from relab.config.views import diff, flatten
from relab.formats.read import path_names
from relab.health.rule import Finding
from relab.record.history import History
from relab.report import replication_page, sweep_page, words
from relab.report.changes import base_of, likely
from relab.report.svg_scale import COLOURS
from relab.runs import naming
from relab.runs.grouping import Group
from relab.runs.sentences import brief_sentence, finals, group_sentence, many_sentence

MANY = 3  # groups up to which each gets its own words
FEW_CHANGES = 4  # settings; groups that differ in more are different experiments
UNWELL = ("part", "lost", "fell", "unstable", "flat", "not", "worse", "broken")  # verdicts that ask for a cause
INTERVAL = re.compile(r" \[[^\[\]]*\]")
DETAIL = re.compile(r" \((?P<detail>[^()]*;[^()]*)\)")  # what the numbers of an answer are, and how sure they are
FRESH = re.compile(r" \S+ on the \d+ seeds that chose it and(.*?) on (\d+) fresh ones: .*")
SENTENCE = re.compile(r"(?<=[.!?]) +(?=[A-Z0-9])")


@dataclass(frozen=True)
class First:
    """The words of the first screen; numbers with their interval stand in the outcome, and there alone."""

    task: str  # PPO on CartPole-v1
    about: str  # demo: 2 configs, 10 runs
    question: str
    sentence: str
    detail: str
    cause: str


def first(
    path: Path,
    groups: list[Group],
    findings: list[Finding],
    reference: History | None = None,
    standing: tuple[str, str] = ("", ""),
) -> First:
    answer, swept = answers(path), sweep_page.build(path)
    task, about, causes = task_of(groups), about_of(path, groups), _causes(groups, findings).strip()
    if answer:
        texts, details = zip(*(map(words.in_text, shortened(text)) for text in answer.texts))
        some = [*texts[:2], *([f"{len(texts) - 2} more answers below."] if len(texts) > 2 else [])]
        return First(task, about, answer.question, " ".join(some), details[0], causes)
    if swept:
        said, *rest = SENTENCE.split(swept.text)
        question, said, *rest = (said, *rest) if said.endswith("?") and rest else ("", said, *rest)
        said = FRESH.sub(r"\1 on \2 fresh seeds.", said)  # the winner's table has the seeds that chose it
        return First(task, about, question, words.in_text(said), words.in_text(" ".join(rest)), "")
    if len(groups) > 1:
        return First(task, about, "", f"{standing[0]} {_briefly(groups)}".strip(), standing[1], causes)
    cause = likely_cause(groups[0], findings, reference)  # the lead finding stands on the page as the first of them
    said = INTERVAL.sub("", _so_far(groups[0]))
    return First(task, about, "", f"{said}.", "", f"Likely cause: {cause}." if cause else "")


def shortened(text: str) -> tuple[str, str]:
    """An answer without what its numbers are and how sure they are, and that.

    >>> shortened("No: b is worse than a, -454.9 [-556.1, -252.5] (final return, + is better; 5 and 5 seeds).")
    ('No: b is worse than a, -454.9 [-556.1, -252.5].', 'final return, + is better; 5 and 5 seeds')
    """
    match = DETAIL.search(text)
    return (text[: match.start()] + text[match.end() :], match["detail"]) if match else (text, "")


def task_of(groups: list[Group]) -> str:
    """PPO on CartPole-v1; several by name, many by their number; where environments have algorithms of their own, or
    some logs do not say theirs, each algorithm stands with its own: PPO on CartPole-v1; SAC (environment not known)."""
    algos = {env: _algorithms(some) for env, some in environments(groups).items()}
    alike = [names for names in algos.values() if names]
    envs = [env for env in algos if env]
    if all(names == alike[0] for names in alike) and not (envs and algos.get("")):
        return _on(alike[0] if alike else [], envs)
    if len(algos) > MANY:
        return _on(_algorithms(groups), envs)
    unknown = f"{_on(algos.pop('', []), [])} (environment not known)" if algos.get("") else ""
    return "; ".join([*(_on(names, [env]) for env, names in algos.items() if env), *([unknown] if unknown else [])])


def _algorithms(groups: list[Group]) -> list[str]:
    """Each by its name, marked where nothing but a folder's name tells it."""
    names: dict[str, bool] = {}
    for group in groups:
        if name := flatten(group.config).get("algo.name"):
            by_name = all(path_names.says(run.history, "algo.name") for run in group.runs)
            names[words.algorithm(str(name))] = names.get(words.algorithm(str(name)), True) and by_name
    return [f"{name} (by its name)" if by_name else name for name, by_name in names.items()]


def _on(algos: list[str], envs: list[str]) -> str:
    return " on ".join(word for word in (_few(algos, "algorithms"), _few(envs, "environments")) if word)


def environments(groups: list[Group]) -> dict[str, list[Group]]:
    """The groups of each environment, by its name; the empty name for those that do not say theirs."""
    parts: dict[str, list[Group]] = {}
    for group in groups:
        parts.setdefault(env_of(group), []).append(group)
    return parts


def colour_places(groups: Sequence[Group]) -> dict[int, int]:
    """The place of each group's colour, by its identity: one config has one colour in all environments."""
    places = naming.colour_places([group.label for group in groups], [env_of(group) for group in groups], len(COLOURS))
    return {id(group): place for group, place in zip(groups, places)}


def env_of(group: Group) -> str:
    spec = group.runs[0].history.meta.get("spec")
    named = flatten(group.config).get("env.name") or (spec.get("env") if isinstance(spec, dict) else "")
    return env_id(str(named)) if named else ""


def _few(words: list[str], many: str) -> str:
    if len(words) > MANY:
        return f"{len(words)} {many}"
    return " and ".join([*([", ".join(words[:-1])] if words[:-1] else []), *words[-1:]])


def about_of(path: Path, groups: list[Group]) -> str:
    (name, formats), runs = name_of(path, groups), sum(len(group.runs) for group in groups)
    read = f" (read from {', '.join(formats)})" if formats else ""
    configs = f"{len(groups)} configs, " if len(groups) > 1 else ""
    return f"{name}{f': {configs}{runs} runs' if runs > 1 else ''}{read}"


def name_of(path: Path, groups: list[Group]) -> tuple[str, list[str]]:
    """What a page or an entry is about, by its name, and the formats of other tools that it was read from."""
    runs = [run for group in groups for run in group.runs]
    formats = dict.fromkeys(run.history.source for run in runs if run.history.source != "relab")
    folder = path.resolve()
    name = folder.parent.name if folder.name == "runs" else folder.name
    return runs[0].name if len(runs) == 1 else name, list(formats)


# ---- The sentence with all that belongs to it, for a terminal and a log


def headline(
    path: Path, groups: list[Group], findings: list[Finding], reference: History | None = None, standing: str = ""
) -> str:
    """The experiment's answer where there is one, else who is better and a sentence per group; then the cause."""
    answer = experiment_answer(path)
    if len(groups) == 1 and not answer:
        said = _so_far(groups[0])
        cause = cause_of(groups[0], findings, reference)
        return f"{said}; {cause}." if cause else f"{said}."
    swept = None if answer else sweep_page.build(path)
    return swept.text if swept else (answer or f"{standing} {_each_group(groups)}".strip()) + _causes(groups, findings)


def _so_far(group: Group) -> str:
    said, so_far = group_sentence([run.verdict for run in group.distinct]), _progress(group)
    return so_far + (_lower(said) if so_far.endswith(": ") else said)


def _each_group(groups: list[Group]) -> str:
    if len(groups) > MANY:
        return many_sentence([run.verdict for g in groups for run in g.runs], len(groups)) + "."
    return "; ".join(f"{g.label}: {_lower(_so_far(g))}" for g in groups) + "."


def _briefly(groups: list[Group]) -> str:
    """A few words on each group; where it began, random's level and intervals stand with the outcome."""
    if len(groups) > MANY:
        return _each_group(groups)
    one = len({str(flatten(g.config).get("algo.name")) for g in groups}) == 1  # which the title says already
    names = [g.label.removeprefix(f"{flatten(g.config).get('algo.name')} on ") if one else g.label for g in groups]
    ends = [_lower(_progress(group)).replace(" steps. ", " steps, ") for group in groups]
    said = [end + brief_sentence([run.verdict for run in group.distinct]) for end, group in zip(ends, groups)]
    return "; ".join(f"{name}: {text}" for name, text in zip(names, said)) + "."


def cause_of(group: Group, findings: list[Finding], reference: History | None = None) -> str:
    """likely lr x12 against its parent; else the lead finding; nothing for a run that is well."""
    mine, cause = findings_of(group, findings), likely_cause(group, findings, reference)
    return f"likely {cause}" if cause else _lead(group, mine, _unwell(group)) if mine else ""


def likely_cause(group: Group, findings: list[Finding], reference: History | None = None) -> str:
    """lr x12 against its parent, where a finding of a run that is not well points to it."""
    mine, base = findings_of(group, findings), base_of(group.runs[0].history, reference)
    cause = likely(mine, diff(base.settings, group.config)) if mine and base and _unwell(group) else None
    if base is None or cause is None:
        return ""
    text, one = cause
    return f"{text} against its {base.kind}{_seeds_with(group, mine, one, one.slug + ' ')}"


def _lead(group: Group, findings: list[Finding], unwell: bool) -> str:
    """An info finding of a run that is well is no headline."""
    if not unwell and findings[0].severity not in ("warning", "error"):
        return ""
    return f"lead finding: {findings[0].slug}{_seeds_with(group, findings, findings[0])}"


def findings_of(group: Group, findings: list[Finding]) -> list[Finding]:
    names = {run.name for run in group.runs}
    return [f for f in findings if f.run in names or f.group == group.key]


def _seeds_with(group: Group, findings: list[Finding], one: Finding, named: str = "") -> str:
    n = len(group.runs)
    runs = {f.run for f in findings if f.slug == one.slug}
    return f" ({named}in {len(runs)} of {n} runs)" if n > 1 and one.run else ""


def _causes(groups: list[Group], findings: list[Finding]) -> str:
    """Of each group that is worse than a well one: what sets it apart from these, where a finding points to it."""
    said = [_cause_beside(group, _better(group, groups), findings) for group in groups if _unwell(group)]
    return "".join([text for text in said if text][:2])


def _better(group: Group, groups: list[Group]) -> list[Group]:
    """The well groups of the same algorithm and environment that end higher, the best first."""
    own, same = _end(group), _task(group)
    rest = [g for g in groups if g is not group and _task(g) == same and not _unwell(g)]
    return sorted((g for g in rest if math.isfinite(_end(g)) and not own >= _end(g)), key=_end, reverse=True)


def _task(group: Group) -> tuple[str, str]:
    return env_of(group), str(flatten(group.config).get("algo.name"))


def _end(group: Group) -> float:
    return finals([run.verdict for run in group.distinct]).mid


def _unwell(group: Group) -> bool:
    return any(run.verdict.kind in UNWELL for run in group.distinct)


def _cause_beside(group: Group, better: list[Group], findings: list[Finding]) -> str:
    """A setting that a well group has as well is no cause."""
    if not better:
        return ""
    best, mine, flats = better[0], findings_of(group, findings), [flatten(g.config) for g in better]
    changes = diff(best.config, group.config)
    own = [change for change in changes if all(flat.get(change.key) != change.b for flat in flats)]
    cause = likely(mine, own) if len(changes) <= FEW_CHANGES else None
    if not cause:
        return ""
    text, one = cause
    return f" {group.label}: likely {text} against {best.label}{_seeds_with(group, mine, one, one.slug + ' ')}."


def _lower(text: str) -> str:
    return text[:1].lower() + text[1:]


def _progress(group: Group) -> str:
    """Said first of a run that is not at its end: what follows may change."""
    states = [run.state for run in group.runs]
    step, total = last_step(group.runs[0].history), total_steps(group.runs[0].history)
    if len(states) > 1:
        return f"{early}. So far: " if (early := ended_early(group)) else ""
    if "running" in states:
        at = f" at {count(step)} of {count(total)} steps" if total else ""
        return f"Still running{at}. So far: "
    if states[0] in ("failed", "stale", "interrupted"):
        return f"{states[0].capitalize()} at {count(step)} steps. "
    if unfinished(group.runs[0]) and total:
        return f"Ended at {count(step)} of {count(total)} steps. So far: "
    return ""


def ended_early(group: Group) -> str:
    """2 of 5 runs still running, 1 ended before its planned steps; nothing where all came to their end."""
    n, cut = len(group.runs), [run for run in group.runs if unfinished(run)]
    running = sum(run.state == "running" for run in group.runs)
    ended = sum(run.state != "running" for run in cut)
    said = [f"{running} still running"] * (running > 0)
    said += [f"{ended} ended before {'its' if ended == 1 else 'their'} planned steps"] * (ended > 0)
    return f"of {n} runs {', '.join(said)}" if said else ""


@dataclass(frozen=True)
class Answers:
    """What an experiment was asked, and its answers in words."""

    question: str
    texts: list[str]


def experiment_answer(path: Path) -> str | None:
    answer = answers(path)
    return f"{answer.question} {' '.join(answer.texts)}".strip() if answer else None


def answers(path: Path) -> Answers | None:
    """Those of answer.json in the folder, beside a folder `runs`, or of the only experiment in the folder."""
    folder = path.resolve()
    inside = [place.parent for place in islice(folder.glob("*/answer.json"), 2)]
    places = (folder, folder.parent) if folder.name == "runs" else (folder, *(inside if len(inside) == 1 else ()))
    for place in places:
        try:
            document = read_json(place, "answer.json")
            texts = [str(answer["text"]) for answer in document["answers"]]
        except (RecordError, OSError, KeyError, TypeError):
            continue
        again = replication_page.build(place)
        texts += again.texts if again else []
        return Answers(str(document.get("question") or ""), texts) if texts else None
    return None


# ---- How far a run is


def last_step(run: History) -> int:
    return max((int(c.steps[-1]) for c in run.columns.values() if len(c.steps)), default=0)


def total_steps(run: History) -> int | None:
    total = run.config.get("total_steps")
    return total if isinstance(total, int) and not isinstance(total, bool) else None
