"""Which config is better, and can one tell yet? Runs to tasks, tasks to variants, variants to comparisons."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from relab.base import near
from relab.base.errors import NotFoundError
from relab.base.text import plural
from relab.comparison import axis, declared, key, leading, numbers, own_return, pairs, profile, selected, twins
from relab.comparison.arms import NAME, PATH, SETTINGS, Arm, arms_of, full_key, with_setting
from relab.comparison.declared import Plan
from relab.comparison.profile import Standing
from relab.comparison.task import Options, Task, find_column, metric_of, task_of
from relab.config.base import require
from relab.config.views import config_hash, flatten
from relab.health.foreign import mapping_of_return
from relab.health.view import View
from relab.runs import grouping, identity, naming
from relab.runs.grouping import Group, Run
from relab.runs.naming import task_names
from relab.runs.sentences import finals, interval_text
from relab.runs.verdict import RETURNS, is_return


@dataclass
class Result:
    """The whole comparison."""

    tasks: list[Task]
    apart: list[tuple[str, str]]  # a group that is not compared, and why
    runs: int
    facts: dict[str, dict[Any, list[str]]] = field(default_factory=dict)
    profile: list[Standing] = field(default_factory=list)
    profile_notes: list[str] = field(default_factory=list)
    leads: list[leading.Lead] | None = None
    lead_runs: int = 0
    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)  # what must be read before the numbers
    copies: list[tuple[Run, Run]] = field(default_factory=list)  # a run that was compared, and the one that was read
    read: Sequence[Run] = ()  # all of them, as they were given
    unread: list[str] = field(default_factory=list)  # runs, files and folders that were passed over, with the reason


def compare(
    runs: Sequence[Run], options: Options, plans: Sequence[Plan] = (), origins: Mapping[int, str] | None = None
) -> Result:
    """Groups -> tasks -> variants; every number that the page shows.

    What an experiment declared is a task of its own, answered from its own cells; the other runs are compared apart.
    """
    runs, chosen = selected.unselected(runs)
    read = runs
    runs, origins, moved = _placed(runs, options, origins or {})
    groups = grouping.grouped(runs, by_name=options.by != SETTINGS)
    _check_metric(groups, options.metric)
    plans, notes = _questions(options, plans)
    result = Result([], [], len(runs), notes=[*notes, *moved, *chosen], warnings=twins.told_apart(groups, options.by))
    result.read = read
    if options.by not in (None, PATH, NAME, SETTINGS):
        options = replace(options, by=full_key(options.by or "", groups))
        groups, lack = with_setting(groups, options.by or "")
        result.apart += [(group.label, f"its record has no setting `{options.by}`") for group in lack]
    result.copies = [(new, old) for new, old in zip(runs, read) if new is not old]
    if not options.declare and options.by is None and _only_paths(groups, origins):
        result.notes.append("no setting tells the paths apart, so each path is a variant; --by settings takes them for"
                            " one")  # fmt: skip
        options = replace(options, by=PATH)
    rest = groups
    for plan in [plan for plan in plans if plan.protocol]:
        own, rest = _of_plan(rest, plan)
        _answered(result, own, options, plan, origins)
    others = len(result.tasks)
    _answered(result, rest, options, next((plan for plan in plans if not plan.protocol), None), origins)
    _say_apart(result, [plan for plan in plans if plan.protocol], rest, others)
    result.notes += [] if _is_named(options, origins) else _maybe_other_tasks(groups)
    result.notes += [*twins.taken_together(groups, options.by), *_merged(groups, options.by, origins)]
    _check_reference(result.tasks, options.reference)
    result.facts = key.spread_of(groups, result.tasks[0].measure.metric if result.tasks else "")
    _finish(result, options)
    return result


def _placed(
    runs: Sequence[Run], options: Options, origins: Mapping[int, str]
) -> tuple[Sequence[Run], Mapping[int, str], list[str]]:
    """The runs on the axis that was asked for, the paths that they were found below, and what must be said."""
    placed, notes = (runs, []) if options.axis is None else axis.along(runs, options.axis)
    named, more = own_return.under_one_name(placed, options.metric)
    return named, {id(new): origins[id(old)] for new, old in zip(named, runs) if id(old) in origins}, [*notes, *more]


def _check_metric(groups: Sequence[Group], metric: str | None) -> None:
    """A metric that no run has is a slip of the pen, not a comparison without a result."""
    runs = [run for group in groups for run in group.runs]
    if metric is None or any(find_column(run, metric) for run in runs):
        return
    known = list(dict.fromkeys(name for run in runs for name in (*run.history.columns, *run.history.mapping)))
    close = near.nearest(metric, known, most=3)
    some = sorted(known, key=lambda name: name not in RETURNS)[:5]
    said = f"the nearest: {', '.join(close)}" if close else f"they have {', '.join(some) or 'none'}"
    raise NotFoundError(f"`--metric {metric}`: none of the {len(runs)} runs has this metric; {said}")


def _check_reference(tasks: Sequence[Task], name: str | None) -> None:
    """A reference that is no variant is a slip of the pen."""
    labels = [label for task in tasks for label in task.outcomes]
    if name is None or any(task.reference.why == "--reference" for task in tasks):
        return
    several = [label for label in labels if name.lower() in label.lower()]
    said = f"fits {', '.join(several)}" if several else f"there are {', '.join(labels) or 'none'}"
    raise NotFoundError(f"`--reference {name}` must be one of the variants, but {said}")


def _tasks(
    groups: Sequence[Group], options: Options, origins: Mapping[int, str] | None
) -> tuple[list[Task], list[tuple[str, str]]]:
    """What can be compared, and what stays apart with the reason."""
    comparable: list[Task] = []
    apart: list[tuple[str, str]] = []
    metrics: dict[str, str] = {}
    named = _is_named(options, origins or {})
    for candidates in key.tasks(groups, named=named):
        arms = arms_of(candidates, PATH, origins) if options.by == PATH else []
        metric = metric_of([Group(arm.label, arm.runs) for arm in arms] or candidates, options.metric)
        metrics |= {group.key: metric for group in candidates}
        have, lack = _split(candidates, metric)
        apart += [(group.label, _lacks(group, metric, candidates)) for group in lack]
        for part in key.tasks(have, metric, named):
            arms = arms_of(part, options.by, origins)
            if len(arms) > 1:
                comparable.append(task_of(arms, metric, options))
            else:
                with_it = f" that has {metric}" if lack and not options.by else ""
                apart += [(group.label, _alone(group, groups, metrics, options.by, named, with_it)) for group in part]
    return comparable, apart


def _is_named(options: Options, origins: Mapping[int, str]) -> bool:
    """Whether the user says what is to be compared with what: by several paths, a key, or the names of variants."""
    chosen = options.named or options.by or options.declare or options.reference
    return bool(chosen) or len(set(origins.values())) > 1


def _answered(
    result: Result, groups: Sequence[Group], options: Options, plan: Plan | None, origins: Mapping[int, str]
) -> None:
    """Some of the groups: their tasks, what stays apart, and the comparisons that were declared of them."""
    if not groups:
        return
    members = [run for group in groups for run in group.runs]
    options = _with_plan(options, plan, members) if plan else options
    tasks, apart = _tasks(groups, options, origins)
    part = Result(tasks, apart, len(members))
    _declare(part, plan, options)
    result.tasks += part.tasks
    result.apart += part.apart
    result.notes += part.notes


def _of_plan(groups: Sequence[Group], plan: Plan) -> tuple[list[Group], list[Group]]:
    """The cells of an experiment, and all other runs: groups that hold both are divided, and keep their names."""
    mine = {id(run) for run in plan.members([run for group in groups for run in group.runs])}
    parts: tuple[list[Group], list[Group]] = [], []
    for group in groups:
        for part, chosen in zip(parts, (True, False)):
            runs = [run for run in group.runs if (id(run) in mine) is chosen]
            part.extend([Group(group.key, runs, group.label)] if runs else [])
    return parts


def _say_apart(result: Result, plans: Sequence[Plan], rest: Sequence[Group], before: int) -> None:
    """Runs that no experiment made have no part in what it declared: said in one line."""
    if not plans or not rest:
        return
    whose = ", ".join(plan.source for plan in plans)
    lone = {group.label for group in rest} & {label for label, _ in result.apart}
    result.apart = [each for each in result.apart if each[0] not in lone]
    runs = plural(sum(len(group.runs) for group in rest), "run")
    some = ", ".join(group.label for group in rest[:3]) + (f" and {len(rest) - 3} more" if len(rest) > 3 else "")
    done = "compared apart" if len(result.tasks) > before else "left out"
    result.notes.insert(0, f"{runs} that {whose} did not make ({some}): {done};"
                           " --by settings compares all, with nothing declared")  # fmt: skip


def _questions(options: Options, plans: Sequence[Plan]) -> tuple[list[Plan], list[str]]:
    """What was declared: on the command line, else by the experiments whose runs these are, if asked their own."""
    if options.declare:
        return [declared.parse(options.declare)], []
    otherwise = [plan for plan in plans if _otherwise(options, plan)]
    sources = ", ".join(plan.source for plan in otherwise)
    notes = [f"not as {sources} asks it, so nothing here is declared"] if otherwise else []
    return [plan for plan in plans if plan not in otherwise], notes


def _otherwise(options: Options, plan: Plan) -> bool:
    """Whether the command line asks for another number than the experiment declared."""
    typed = {"metric": options.metric, "at": options.at, "m": options.last, "reach": options.level,
             "direction": options.direction, "smallest_effect": options.smallest_effect or None}  # fmt: skip
    return (
        options.by is not None
        or options.axis is not None
        or any(value is not None and value != getattr(plan.protocol, name, None) for name, value in typed.items())
    )


def _with_plan(options: Options, plan: Plan, runs: Sequence[Run]) -> Options:
    """An experiment has said how its runs become numbers."""
    how = plan.protocol
    if how is None:
        return options
    named = options.metric or how.at == "success_rate"
    return replace(
        options,
        metric=options.metric if named else how.metric,
        at=options.at or how.at,
        last=options.last or how.m or 3,
        level=options.level if options.level is not None else how.reach,
        direction=options.direction or how.direction,
        smallest_effect=options.smallest_effect or how.smallest_effect or 0.0,
        ended=plan.ended(runs),
    )


def _only_paths(groups: Sequence[Group], origins: Mapping[int, str]) -> bool:
    """Whether all runs are of one config, below paths that somebody named otherwise than by seeds and counts."""
    paths = {origins[id(run)] for group in groups for run in group.runs if id(run) in origins}
    return len(groups) == 1 and len({identity.stem(path) for path in paths if not identity.made_up(path)}) > 1


def _merged(groups: Sequence[Group], by: str | None, origins: Mapping[int, str]) -> list[str]:
    both = [g for g in groups if len({identity.stem(origins.get(id(run), "")) for run in g.runs}) > 1]
    if not both or by == PATH:
        return []
    return [f"{plural(len(both), 'config')} lie in more than one path and count as one;"
            " --by path compares the paths"]  # fmt: skip


def _maybe_other_tasks(groups: Sequence[Group]) -> list[str]:
    """Groups of different algorithms that do not say their environment, and how the user can."""
    lost = [group for group in groups if any(key.maybe_other_tasks(group, other) for other in groups)]
    if not lost:
        return []
    algos = ", ".join(sorted({str(flatten(group.config)["algo.name"]) for group in lost}))
    return [f"no environment is known of runs of {algos}: it cannot be known whether they have the same task, so"
            " algorithms are not held against each other; --spec env=NAME says the task, --by algo.name compares them"
            " all the same"]  # fmt: skip


def _split(groups: Sequence[Group], metric: str) -> tuple[list[Group], list[Group]]:
    have = [g for g in groups if any(numbers.column_of(run, metric) is not None for run in g.runs)]
    able = {id(group) for group in have}
    return have, [group for group in groups if id(group) not in able]


def _lacks(group: Group, metric: str, groups: Sequence[Group]) -> str:
    """Which metric a group lacks, what it has in its place, and how that ends."""
    other = next((name for name in RETURNS if any(numbers.column_of(r, name) is not None for r in group.runs)), None)
    lacks = f"it has no {metric or 'return'}"
    if not other:
        first = group.runs[0].history
        return lacks + mapping_of_return(View(first, first.folder.name))
    ends = finals([run.verdict for run in group.distinct if run.verdict.metric == other])
    own = f"{other} ends at {interval_text(ends)} ({plural(ends.n, 'run')})" if ends.n else f"it has {other}"
    able = [each for each in groups if any(numbers.column_of(run, other) is not None for run in each.runs)]
    return f"{lacks}; {own}" + (f"; --metric {other} compares {len(able)} configs by that" if len(able) > 1 else "")


def _alone(
    group: Group,
    groups: Sequence[Group],
    metrics: Mapping[str, str],
    by: str | None,
    named: bool = True,
    with_it: str = "",
) -> str:
    """Why a group has nobody to be compared with."""
    mine = key.facts_of(group.runs[0], metrics[group.key])
    for other in groups:
        theirs = key.facts_of(other.runs[0], metrics.get(other.key, ""))
        clashes = key.conflicts(mine, theirs) if other is not group else []
        if clashes and clashes[0][0] != "environment":
            name, here, there = clashes[0]
            return f"its {name} is {_text(here)}, that of {other.label} {_text(there)}"
    env = mine["environment"] and profile.env_id(mine["environment"])
    if len(groups) == 1 and not by:
        return "there is no other config"
    if by:
        return f"`{by}` is the same in all runs of {env or 'this environment'}"
    unlike = [] if named else [each.label for each in groups if key.maybe_other_tasks(group, each)]
    if unlike:
        return f"whether it has the task of {unlike[0]} is not known"
    return f"the only config on {env}{with_it}" if env else "its environment is not known (--spec env=NAME)"


def _text(value: Any) -> str:
    return "unknown" if value is None else str(value)


# ---- Comparisons


def _declare(result: Result, plan: Plan | None, options: Options) -> None:
    """The declared comparisons, corrected together over all tasks; then every variant against the reference."""
    items = _declared_items(result, plan) if plan else []
    chosen = [item for _, item in items]
    how = plan.protocol if plan else None
    tested = pairs.repeat(chosen, plan, how) if plan and how else pairs.test(chosen, options.smallest_effect)
    for (task, _), pair in zip(items, tested):
        task.pairs.append(pair)
    for task in result.tasks:
        shown = {frozenset((p.a, p.b)) for p in task.pairs}
        rest = pairs.explore(task.outcomes, task.reference.label, task.measure, options.smallest_effect)
        task.pairs += [p for p in rest if frozenset((p.a, p.b)) not in shown]
        unseen = dict.fromkeys(note for p in task.pairs for note in p.answer.notes if "fail unseen" in note)
        task.notes += [] if task.measure.at == "first_step_reaching" else list(unseen)


def _declared_items(result: Result, plan: Plan) -> list[tuple[Task, pairs.Item]]:
    """A declared pair on every task that has both variants; a slip of the pen is an error that lists the names."""
    labels = [label for task in result.tasks for label in task.outcomes]
    items: list[tuple[Task, pairs.Item]] = []
    for worse, better in plan.pairs:
        both = [
            (task, a, b) for task in result.tasks for a, b in [_both(task, worse, better, plan)] if a and b and a != b
        ]
        if not both and plan.protocol:
            result.notes.append(f"declared by {plan.source}, but not among these runs: {better} against {worse}")
        require(bool(both) or plan.protocol is not None, f"--declare names {better!r} and {worse!r}, which must be two"
                f" variants of one task; there are {', '.join(labels) or 'none'}")  # fmt: skip
        items += [(task, pairs.Item(task.outcomes, (str(a), str(b)), task.measure, better)) for task, a, b in both]
    return items


def _both(task: Task, worse: str, better: str, plan: Plan) -> tuple[str | None, str | None]:
    """The arms that are meant: by the cells that they are made of, else by name."""
    cells: dict[str, set[str]] = {}
    for arm in task.arms:
        for run in arm.runs:
            cells.setdefault(plan.variant_of(run), set()).add(arm.label)
    labels = list(task.outcomes)
    known = (next(iter(own)) if len(own := cells.get(name, set())) == 1 else None for name in (worse, better))
    a, b = (label or pairs.match(name, labels) for label, name in zip(known, (worse, better)))
    return a, b


def _finish(result: Result, options: Options) -> None:
    """Over tasks, and before the collapse."""
    if len(result.tasks) > 1:
        result.profile, result.profile_notes = over_tasks(result.tasks)
    if options.leading:
        runs = leading.collapsed([run for task in result.tasks for arm in task.arms for run in arm.runs])
        result.lead_runs = len(runs)
        result.leads = leading.leading(runs, result.tasks[0].measure.metric) if runs else []


def over_tasks(tasks: Sequence[Task]) -> tuple[list[Standing], list[str]]:
    """Scores of the variants that all tasks have, by label, else by algorithm."""
    notes: list[str] = []
    scaled = [(task, scale) for task in tasks if (scale := profile.scale_of(task.arms[0].runs[0])) is not None
              and is_return(task.measure.metric) and task.measure.at != "first_step_reaching"]  # fmt: skip
    known = {id(task) for task, _ in scaled}
    gone = [task.env for task in tasks if id(task) not in known]
    notes += [f"not in the profile, their scale is not known: {', '.join(gone)}"] if gone else []
    if len(scaled) < 2:
        return [], notes
    for way, say in ((_same_settings, ""), (_same_algo, "by algorithm, whose settings differ between tasks")):
        scores: dict[str, dict[str, list[np.ndarray]]] = {}
        for task, scale in scaled:
            for arm in task.arms:
                values = numbers.finite(task.outcomes[arm.label])
                if len(values):
                    scores.setdefault(way(arm), {}).setdefault(task.env, []).append(scale.score(values))
        chosen, envs = _shared({name: set(of_tasks) for name, of_tasks in scores.items() if name})
        if chosen:
            called = _called(chosen, way, [task for task, _ in scaled])
            arrays = {called[name]: [np.concatenate(scores[name][env]) for env in envs] for name in chosen}
            return profile.profile(arrays), [*notes, ", ".join(envs), *([say] if say else [])]
    return [], [*notes, "no two variants ran on the same two tasks, so there is no profile over tasks"]


def _called(chosen: Sequence[str], way: Callable[[Arm], str], tasks: Sequence[Task]) -> dict[str, str]:
    """A name to read for each variant: what it is called in its tasks, where they agree; else what sets it apart from
    the others of its task, whose names may hold the environment; else the one it has."""
    labels: dict[str, set[str]] = {}
    for task in tasks:
        names = task_names([arm.label for arm in task.arms], task.env)
        for arm in task.arms:
            labels.setdefault(way(arm), set()).add(names[arm.label])
    apart = _by_settings(chosen, {way(arm): arm for arm in tasks[0].arms})
    called = {name: next(iter(labels[name])) if len(labels[name]) == 1 else apart.get(name, name) for name in chosen}
    return called if len(set(called.values())) == len(called) else {name: name for name in chosen}


def _by_settings(chosen: Sequence[str], arms: Mapping[str, Arm]) -> dict[str, str]:
    """lr=0.01 and lr=0.1, of variants that one task has; nothing where no settings are known."""
    configs = [flatten(arms[name].runs[0].history.config) for name in chosen if name in arms]
    if len(configs) < len(chosen) or not all(config.get("algo.name") for config in configs):
        return {}
    return dict(zip(chosen, naming.labels([naming.Nameable(config, ()) for config in configs])))


def _shared(ran: Mapping[str, set[str]]) -> tuple[list[str], list[str]]:
    """The two or more variants that share the most tasks, and those tasks; nothing where none share two."""
    best: set[str] = set()
    for a in ran:
        for b in ran:
            both = ran[a] & ran[b] if a != b else set()
            best = max(best, both, key=len)
    return ([name for name in ran if best <= ran[name]], sorted(best)) if len(best) >= 2 else ([], [])


def _same_settings(arm: Arm) -> str:
    config = arm.groups[0].config
    name = flatten(config).get("algo.name") or ""
    return f"{name} {config_hash(config, ('seed', 'env', 'total_steps', 'eval', 'save'))[:6]}".strip() if config else ""


def _same_algo(arm: Arm) -> str:
    return str(arm.config.get("algo.name") or "")
