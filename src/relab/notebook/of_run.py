"""What does the entry of a run say? Where it started from, what was changed, what came out, what it means."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from relab.advise import score as scoring
from relab.advise import tried
from relab.base.masks import mask
from relab.base.text import count, duration, number
from relab.comparison.pairs import Pair
from relab.config import lineage
from relab.config.views import flatten
from relab.notebook import sentences
from relab.notebook.fence import safe_id
from relab.notebook.finish import finding_lines, next_step
from relab.notebook.page import KEYS, Entry, RecordSection, Table, anchored, called, joined
from relab.notebook.references import Ref
from relab.notebook.words import Words
from relab.record.clock import elapsed
from relab.record.evaluations import MODES, judging_metric, outcome_of
from relab.record.history import History
from relab.report import sweep_page
from relab.report.page import Page
from relab.report.parts import ConfigChanges, GroupOutcome
from relab.report.sections import last_step
from relab.report.share import Cleaner
from relab.runs import grouping
from relab.runs.grouping import Group
from relab.runs.sentences import finals

EVALUATIONS = 12  # rows of their table
EVENTS = 8
PAIRS = 3  # comparisons that nobody declared
TELEMETRY = ("policy/entropy", "policy/kl", "policy/clip_share", "value/explained_variance", "value/loss",
             "optim/grad_norm")  # fmt: skip
TUNED = ("data/advantage_mean", "data/advantage_std", "data/advantage_positive", "data/advantage_noise",
         "data/advantage_snr", "data/advantage_rank", "policy/weight_mean", "policy/weight_ess", "policy/weight_capped",
         "value/q_mean", "value/v_mean", "value/fit_epochs", "policy/std_mean", "data/env_steps",
         "data/sim_steps")  # fmt: skip
REVIEWED = ("gate", "stage", "alert")  # events
UNDONE = ("running", "interrupted", "stale")
KEPT = ("checkpoints", "media", "logs", "tb_logs", "plots")


def build(
    folder: Path,
    page: Page,
    proposal: str,
    w: Words,
    roots: Sequence[Path] = (),
    groups: list[Group] | None = None,
    pairs: Sequence[Pair] = (),
) -> Entry:
    groups = grouping.load(folder) if groups is None else groups
    run = groups[0].runs[0].history
    one = len(groups) == 1 and len(groups[0].runs) == 1
    clean, date = Cleaner([folder], set()).clean, tried.day(run.meta)
    parent = scoring.Pool(roots).parent(run) if one else None
    scored = scoring.of_run(run, roots) if one else None
    name = mask(run.folder.resolve().name if one and folder.is_dir() else folder.resolve().name)
    other = [*(sentences.explored(w, pair) for pair in pairs[:PAIRS]), *sentences.of_groups(w, groups)]
    said = [page.sentence] if w.code == "en" else other  # the report's own is English
    return Entry(
        id=safe_id(id_of(run, name, one)), lang=w.code,
        title=w.say("head", date=date, title=clean(title_of(run, folder, groups, w))).strip(), answer=said, notes=[],
        marks=clean(marks(run, parent, w)) if one else [],
        prediction=clean(sentences.score(w, scored)) if scored else "", start=clean(start(run, w)) if one else [],
        observations=clean(observations(run)) if one else [],
        differs=[heads(page.config.head, w), *_few(origins(page.config, w))] if has_settings(groups) else [],
        record=clean_record(record(groups, page, folder, w), clean), findings=finding_lines(page, w),
        command=list(page.commands), next=clean(next_step(folder, proposal, w)), name=name, date=date,
        facts=clean(facts(groups, page, parent, scored, " ".join(said), name)) | {"source": called(folder)},
    )  # fmt: skip


def _few(rows: list[list[str]]) -> list[list[str]]:
    """As many settings as an entry has room for, and how many are left out."""
    left = len(rows) - KEYS
    return [*rows[:KEYS], *([["...", f"+{left}", *[""] * (len(rows[0]) - 2)]] if left > 0 else [])]


def id_of(run: History, name: str, one: bool) -> str:
    known = run.meta.get("id")
    return known if one and isinstance(known, str) else name


def title_of(run: History, folder: Path, groups: list[Group], w: Words) -> str:
    """What it was for, in a person's words; a proposal's reasons are no title."""
    intent = run.meta.get("intent")
    return str(intent) if intent and scoring.predicted_of(run) is None else sentences.title(w, folder, groups)


# ---- Before


def marks(run: History, parent: History | None, w: Words) -> list[str]:
    """Which family it belongs to, and whether the difference to its parent can be assigned to one change."""
    before = parent.config if parent is not None else None
    family = sentences.family_line(w, before, run.config)
    changed = sentences.factor_line(w, before, run.config) if before is not None else ""
    return [line for line in (family, changed) if line]


def start(run: History, w: Words) -> list[str]:
    parent, again = run.meta.get("parent"), run.meta.get("tried")
    rows = [row for row in again if isinstance(row, dict)] if isinstance(again, list) else []
    lines = [w.say("start.parent", parent=parent)] if isinstance(parent, str) and parent else []
    return lines + [w.say("start.repeats", text=row.get("text"), where=row.get("where")) for row in rows[:1]]


def observations(run: History) -> list[str]:
    """What was seen in the parent and led to this run: the proposal's reasons."""
    intent = run.meta.get("intent")
    return [str(intent)] if intent and scoring.predicted_of(run) is not None else []


def has_settings(groups: list[Group]) -> bool:
    """Whether any run has recorded what was set; the seed alone tells nothing about that."""
    return any(set(flatten(run.history.config)) - {"seed"} for group in groups for run in group.runs)


def heads(row: list[str], w: Words) -> list[str]:
    return [w.sentences.get(f"plan.{word}", word) for word in row]


def origins(settings: ConfigChanges, w: Words) -> list[list[str]]:
    """Where a value is from, in the entry's language."""
    if settings.head[-1:] != ["from"]:
        return settings.rows
    return [[*row[:-1], *heads(row[-1:], w)] for row in settings.rows]


# ---- The record


def record(groups: list[Group], page: Page, folder: Path, w: Words) -> RecordSection:
    one = len(groups) == 1 and len(groups[0].runs) == 1
    run = groups[0].runs[0].history
    return RecordSection(
        overview(groups, w), outcomes(groups, page, folder, w), evaluations(run, w) if one else [],
        multi_evaluations(run, w) if one else [], telemetry(run) if one else [], gates(run) if one else [],
        artefacts(run) if one else [],
    )  # fmt: skip


def clean_record(raw: RecordSection, clean: Any) -> RecordSection:
    """What came from the run's own files is made safe to share; the tables are already."""
    return RecordSection(clean(raw.overview), raw.evidence, raw.evaluations, raw.multi, clean(raw.telemetry),
                         clean(raw.gates), clean(raw.artefacts))  # fmt: skip


def overview(groups: list[Group], w: Words) -> list[str]:
    """How far each config's runs came, how long that took, how they ended."""
    return [
        w.say("overview.line", name=group.label, verdict=sentences.outcome(w, [run.verdict for run in group.distinct]),
              steps=_progress(group, w), status=_status(group, w))
        for group in groups
    ]  # fmt: skip


def _progress(group: Group, w: Words) -> str:
    run = group.runs[0].history
    seconds = sum(elapsed(each.history) for each in group.runs)
    time = w.say("overview.time", time=duration(seconds)) if math.isfinite(seconds) else ""
    axis = run.axes.get(group.runs[0].verdict.metric, "agent_steps")
    unit = w.say("overview.iterations" if axis == "iteration" else "overview.steps") if _counted(axis) else axis
    words = {"done": count(max(last_step(each.history) for each in group.runs)), "unit": unit, "time": time}
    total = flatten(run.config).get("total_steps")
    return w.say("overview.of", total=count(total), **words) if type(total) is int else w.say("overview.done", **words)


def _counted(axis: str) -> bool:
    return axis == "iteration" or axis.endswith("_steps")


def _status(group: Group, w: Words) -> str:
    states = [run.state for run in group.runs]
    said = {state: w.sentences.get(f"status.{state}", state) for state in dict.fromkeys(states)}
    return w.list([text if len(states) == 1 else f"{states.count(state)} {text}" for state, text in said.items()])


def outcomes(groups: list[Group], page: Page, folder: Path, w: Words) -> Table:
    """A row per config of the folder: seeds, episodes, what it came to with its interval, every seed's number.
    A sweep's winner has those of its fresh seeds, as on the page."""
    groups = [sweep_page.unselected(group, page.sweep) for group in groups]
    judged = {x.metric.startswith("eval/") for x in page.outcome}
    last = "last" if judged == {True} else "training" if judged == {False} else "either"
    last = "values" if any(run.verdict.fit for group in groups for run in group.distinct) else last
    head = [w.say(f"evidence.{key}") for key in ("run", "seeds", "episodes", last, "every")]
    return [head, *(_outcome(group, x, folder, w) for group, x in zip(groups, page.outcome, strict=True))]


def _outcome(group: Group, x: GroupOutcome, folder: Path, w: Words) -> list[str]:
    refs = [_ref(run.history, x.metric, run.verdict.final, folder) for run in group.distinct]
    each = [anchored(one.value, ref) for one, ref in zip(x.each, refs, strict=True)]
    value = each[0] if len(each) == 1 else x.value
    last = joined([x.metric, value, f"({sure(group, w)})"])
    return [x.label, str(x.seeds), str(x.episodes), last, joined(each) if each else "-"]


def sure(group: Group, w: Words) -> str:
    """How sure the number is: an interval over seeds, or why there is none."""
    interval = finals([run.verdict for run in group.distinct])
    if interval.n >= 2:
        kind = "equal" if interval.least == interval.most else "many" if interval.known else "several"
        return w.say(f"evidence.{kind}", n=interval.n)
    last = next((run.verdict.points[-1] for run in group.distinct if run.verdict.points), None)
    if not interval.n or last is None:
        return w.say("evidence.none")
    noisy = last.n > 1 and math.isfinite(last.se) and any(run.history.evals for run in group.distinct)
    return w.say("evidence.noise", se=number(last.se)) if noisy else w.say("evidence.one")


def _ref(run: History, metric: str, value: float, folder: Path) -> Ref | None:
    """Only of evaluations: a training return is a mean of rows, which no single number of the record is."""
    good = metric.startswith("eval/") and math.isfinite(value) and metric in run.columns and run.folder.is_dir()
    name = called(run.folder)
    return Ref(name, metric) if good and Cleaner([folder], set()).clean(name) == name else None


def evaluations(run: History, w: Words) -> Table:
    """Some of them, evenly spread, the last among them."""
    outcome = outcome_of(run.meta)
    names = [name for mode in MODES if (name := judging_metric(outcome, mode)) in run.columns]
    if not names or len(run.columns[names[0]].steps) < 2:
        return []
    steps = run.columns[names[0]].steps.tolist()
    n = min(EVALUATIONS, len(steps))
    some = sorted({steps[round(i * (len(steps) - 1) / max(n - 1, 1))] for i in range(n)})
    by_step = {name: dict(zip(run.columns[name].steps.tolist(), run.columns[name].values.tolist())) for name in names}
    share = (
        f" ({len(some)} / {len(steps)})" if len(some) < len(steps) else ""
    )  # rows left out are told, in any language
    head = [w.say("evaluations.step") + share, *(w.say(f"evaluations.{name.rpartition('_')[2]}") for name in names)]
    rows = [[f"{step:,}", *(number(by_step[n][step]) if step in by_step[n] else "-" for n in names)] for step in some]
    return [head, *rows]


def multi_evaluations(run: History, w: Words) -> Table:
    """What a schedule's own evaluations gave, a row each; the names are the metrics' own."""
    rest = ("_p25", "_p50", "_p75", "_p90")  # the report has them all
    names = [name for name in run.columns if name.startswith("multi/") and not name.endswith(rest)]
    steps = sorted({int(step) for name in names for step in run.columns[name].steps})[-EVENTS:]
    by_step = {name: dict(zip(run.columns[name].steps.tolist(), run.columns[name].values.tolist())) for name in names}
    rows = [[f"{step:,}", *(number(by_step[n][step]) if step in by_step[n] else "-" for n in names)] for step in steps]
    return [[w.say("evaluations.step"), *(name.partition("/")[2] for name in names)], *rows] if rows else []


def telemetry(run: History) -> list[str]:
    """A few metrics of training, at the start and at the end."""
    tuned = TUNED if flatten(run.config).get("algo.name") == "finetune" else ()  # what its questions are about
    columns = [(name, run.columns[name].values) for name in (*TELEMETRY, *tuned) if name in run.columns]
    return [f"{name} {number(float(x[0]))} → {number(float(x[-1]))}" for name, x in columns if len(x) > 1]


def gates(run: History) -> list[str]:
    """What gates and stages decided, the last of them."""
    rows = [row for row in run.events if str(row.get("kind") or row.get("event")).startswith(REVIEWED)]
    return [_event(row) for row in rows[-EVENTS:]]


def _event(row: dict[str, Any]) -> str:
    kind, step = row.get("kind") or row.get("event"), row.get("step")
    known = ("kind", "event", "step", "axis", "time")
    details = ", ".join(_fact(k, v) for k, v in row.items() if k not in known and not isinstance(v, dict))
    return f"{step:,}: {kind} {details}".strip() if isinstance(step, int) else f"{kind} {details}".strip()


def _fact(key: str, value: Any) -> str:
    """A gate's conditions with their values, met or not; anything else as it is."""
    if isinstance(value, list) and value and all(isinstance(x, dict) and "condition" in x for x in value):
        return f"{key}: " + "; ".join(_condition(x) for x in value)
    return f"{key} {value}"


def _condition(x: dict[str, Any]) -> str:
    measured = x.get("value")
    value = number(measured) if isinstance(measured, float) else str(measured)
    return f"{'✓' if x.get('met') else '✗'} {x['condition']} ({value})"


def artefacts(run: History) -> list[str]:
    return [name for name in KEPT if run.folder.is_dir() and (run.folder / name).exists()]


# ---- For programs


def facts(
    groups: list[Group], page: Page, parent: History | None, scored: scoring.Score | None, said: str,
    name: str,
) -> dict[str, Any]:  # fmt: skip
    runs = [run for group in groups for run in group.runs]
    run, kinds = runs[0].history, [each.verdict.kind for each in runs]
    seconds = [s for each in runs if math.isfinite(s := elapsed(each.history))]
    family = lineage.family(run.config) if len(groups) == 1 else None
    entry_facts = {
        "schema": 1, "kind": "run", "date": tried.day(run.meta), "name": name, "text": said,
        "verdict": max(dict.fromkeys(kinds), key=kinds.count), "family": family.name if family else None,
        "findings": list(dict.fromkeys(f.finding.slug for f in page.findings)), "runs": len(runs),
        "hours": round(sum(seconds) / 3600, 4), "open": [each.state for each in runs if each.state in UNDONE],
    }  # fmt: skip
    if parent is not None:
        entry_facts |= _of_parent(run, parent)
    return entry_facts | ({"score": scored.to_dict()} if scored else {})


def _of_parent(run: History, parent: History) -> dict[str, Any]:
    change, before, after = (
        lineage.changes(parent.config, run.config), lineage.family(parent.config), lineage.family(run.config)
    )  # fmt: skip
    opened = lineage.opened(parent.config, run.config)
    why = ", ".join(f"{key} {c['from']} -> {c['to']}" for key, c in change.items() if key in {f.key for f in opened})
    opens = [{"family": after.name, "from": before.name, "why": why}] if opened and before and after else []
    return {"parent": parent.folder.name, "diff": change, "n": [1, 1], "confounded": len(change) > 1,
            "of": tried.subject(parent.config), "opens": opens}  # fmt: skip
