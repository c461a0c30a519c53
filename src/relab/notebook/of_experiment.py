"""What does the entry of an experiment say? Its answers, the variants' settings, every seed's number, what is next."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relab import stats
from relab.advise import tried
from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.base.text import number
from relab.comparison.answer import LEAST
from relab.comparison.task import bounds_at
from relab.comparison.wording import MANY
from relab.config import layers, lineage
from relab.config.views import MISSING, flatten
from relab.notebook import sentences
from relab.notebook.fence import safe_id
from relab.notebook.finish import finding_lines, next_step, spoken
from relab.notebook.page import Entry, RecordSection, Table, anchored, called, joined
from relab.notebook.references import Ref
from relab.notebook.words import Words
from relab.record import history
from relab.record.bounds import Bounds
from relab.record.clock import elapsed
from relab.report.page import Page
from relab.report.share import Cleaner
from relab.runs.grouping import shown
from relab.runs.sentences import interval_text

NOTES = 4  # of an answer
STEPS = 8  # rows of the table of evaluations
LEFT_OUT = (
    "seeds",
    "question",
    "hypothesis",
    "log",
)  # of the experiment's id: the same question with more seeds is the same entry
AT = {"mean_last_m": ("m",), "first_step_reaching": ("reach",)}  # what a reference needs besides


def build(folder: Path, page: Page, proposal: str, w: Words) -> Entry:
    experiment = layers.read_yaml(folder / "experiment.yaml")
    if not (folder / "answer.json").is_file():
        raise RecordError(f"{folder} has no answer.json: the experiment has not ended; call `relab experiment` again")
    answers = read_json(folder, "answer.json")["answers"]
    clean, date = Cleaner([folder], set()).clean, tried.ended(folder)
    settings = {name: tried.variant(folder, experiment, name) for name in experiment["variants"]}
    return Entry(
        id=id_of(folder, experiment), lang=w.code, title=clean(w.say("head", date=date, title=experiment["question"])),
        answer=clean([sentences.answer(w, x) for x in answers]), notes=clean(_notes(answers, w)),
        marks=clean(marks(settings, w)), prediction="", start=[], observations=[],
        hypothesis=clean(str(experiment.get("hypothesis") or "")), plan=[measured(answers[0], experiment, w)],
        differs=clean(differences(settings, w)),
        record=RecordSection(evidence=evidence(answers, w, folder), evaluations=by_step(answers[0], folder, w)),
        findings=finding_lines(page, w), command=clean(commands(folder, experiment)),
        next=clean(seeds_needed(answers, w) or next_step(folder, proposal, w)), name=folder.resolve().name, date=date,
        facts=clean(facts(folder, experiment, answers, settings, page, date)) | {"source": called(folder)},
    )  # fmt: skip


def id_of(folder: Path, experiment: Mapping[str, Any]) -> str:
    hash_ = layers.config_hash({k: v for k, v in experiment.items() if k not in LEFT_OUT}, ())[:6]
    return safe_id(f"{folder.resolve().name}.{hash_}")


def _notes(answers: list[Document], w: Words) -> list[str]:
    """Each once: what is said of the control stands in every answer."""
    notes = list(dict.fromkeys(str(note) for x in answers for note in x["notes"]))
    more = [w.say("findings.notes", n=len(notes) - NOTES)] if len(notes) > NOTES else []
    return [spoken(note, w) for note in notes[:NOTES]] + more


def marks(settings: Mapping[str, Mapping[str, Any]], w: Words) -> list[str]:
    """The control's family; variants that open another one, or differ in more than one factor."""
    control, *others = settings
    lines = [sentences.family_line(w, None, settings[control])]
    for name in others:
        family, why = lineage.family(settings[name]), sentences.because(w, settings[control], settings[name])
        lines += [w.say("family.variant", variant=name, family=family.name, why=why)] if family and why else []
        many = lineage.factors(settings[control], settings[name])
        if len(many) > 1:
            lines.append(w.say("factor.variant", variant=name, n=len(many), keys=sentences.keys_of(w, many)))
    return [line for line in lines if line]


def number_of(first: Document, w: Words) -> str:
    """The one number that a run contributes."""
    values = {"metric": first["metric"], "m": first.get("m"), "reach": number(first.get("reach") or 0.0)}
    used = {"final": ("metric",), "mean_last_m": ("metric", "m"), "first_step_reaching": ("metric", "reach"),
            "success_rate": ()}[first["at"]]  # fmt: skip
    return w.say(f"evidence.{first['at']}", **{key: values[key] for key in used})


def measured(first: Document, experiment: Mapping[str, Any], w: Words) -> str:
    """The primary metric, which way is better, and what would matter, as declared."""
    better = w.say(f"plan.{experiment.get('direction', 'higher')}")
    smallest = float(experiment.get("smallest_effect") or 0.0)
    least = w.say("plan.smallest", smallest=number(smallest)) if smallest else ""
    return w.say("plan.metric", what=number_of(first, w), better=better, least=least)


# ---- Tables


def by_step(first: Document, folder: Path, w: Words) -> Table:
    """The variants' means over seeds at some of the steps at which every run was evaluated, the last among them."""
    metric = str(first["metric"])
    columns: dict[str, list[dict[float, float]]] = {}  # variant -> its runs, value by step
    for run in _histories(folder):
        column = run.columns.get(metric)
        if metric.startswith("eval/") and column is not None:
            values = dict(zip(column.steps.tolist(), column.values.tolist()))
            columns.setdefault(run.folder.name.rpartition("-s")[0], []).append(values)
    runs = [values for arm in columns.values() for values in arm]
    steps = sorted(set.intersection(*map(set, runs))) if runs else []
    if len(steps) < 3:  # the evidence has the rest
        return []
    n = min(STEPS, len(steps))
    some = sorted({steps[round(i * (len(steps) - 1) / (n - 1))] for i in range(n)})
    share = f" ({len(some)} / {len(steps)})" if len(some) < len(steps) else ""
    head = [w.say("evaluations.step") + share, *(w.say("evaluations.mean", name=name) for name in columns)]
    means = [[number(float(np.mean([run[step] for run in arm]))) for arm in columns.values()] for step in some]
    return [head, *([f"{int(step):,}", *row] for step, row in zip(some, means))]


def evidence(answers: list[Document], w: Words, folder: Path | None = None) -> Table:
    """A row per variant: seeds, episodes, mean with its interval, and every seed's number with where it is from."""
    first, what = answers[0], number_of(answers[0], w)
    arms = [(first["names"][0], first["a"]), *((x["names"][1], x["b"]) for x in answers)]
    head = [*(w.say(f"evidence.{key}") for key in ("variant", "seeds", "episodes")), w.say("evidence.mean", what=what),
            w.say("evidence.every")]  # fmt: skip
    bounds = _bounds(first, folder)
    return [head, *([name, *_row(arm, first, w, folder, bounds)] for name, arm in arms)]


def _bounds(first: Mapping[str, Any], folder: Path | None) -> Bounds:
    """What a run's number can be, as the first run that can be read knows it: the interval of compare and report."""
    run = next(_histories(folder), None) if folder is not None else None
    top = first.get("top")
    known = -math.inf, math.inf if top is None else top
    return known if run is None else bounds_at(run, first["at"], run.mapping.get(first["metric"], first["metric"]))


def _row(arm: list[Document], first: Mapping[str, Any], w: Words, folder: Path | None, bounds: Bounds) -> list[str]:
    episodes = sorted({x["episodes"] for x in arm if x["episodes"]})
    ends = dict.fromkeys(map(str, episodes[:1] + episodes[-1:]))
    size = w.say("answer.span", low=episodes[0], high=episodes[-1]) if len(ends) > 1 else "".join(ends)
    each = [anchored(_one(x), _ref(x, first, folder)) for x in arm]
    return [str(len(arm)), size or "-", _mean(arm, first["at"], w, bounds), joined(each) if each else "-"]


def _one(x: Document) -> str:
    return ("" if x["reached"] else ">") + number(float(x["value"]))


def _ref(x: Mapping[str, Any], first: Mapping[str, Any], folder: Path | None) -> Ref | None:
    """Where the number of a run can be read again."""
    if folder is None or not x.get("run") or not math.isfinite(float(x["value"])):
        return None
    more = {key: f"{first[key]:g}" for key in AT.get(first["at"], ()) if first.get(key) is not None}
    return Ref(f"{folder.resolve().name}/runs/{x['run']}", str(first["metric"]), str(first["at"]), more)


def _mean(arm: list[Document], at: str, w: Words, bounds: Bounds) -> str:
    good = [x for x in arm if math.isfinite(x["value"])]
    if not all(x["reached"] for x in good):
        return w.say("evidence.reached", n=sum(x["reached"] for x in good), of=len(good))
    values = np.array([float(x["value"]) for x in good])
    if len(good) < LEAST:
        return w.say("evidence.few", mean=number(float(values.mean())), least=LEAST) if len(good) else "-"
    if at == "success_rate":
        n = np.array([float(x["episodes"]) for x in good])
        rate = stats.clustered_rate(np.round(values * n), n)
        return f"{number(rate.mid)} [{number(rate.low)}, {number(rate.high)}]"
    return interval_text(stats.mean_over_seeds(values, bounds))


def differences(settings: Mapping[str, Mapping[str, Any]], w: Words) -> Table:
    """The settings that are not the same in all variants, as they were run; the first variant is the control."""
    flats = {name: flatten(values) for name, values in settings.items()}
    keys = dict.fromkeys(key for flat in flats.values() for key in flat)
    rows = [[key, *(shown(flat.get(key, MISSING)) for flat in flats.values())] for key in keys]
    control, *others = flats
    head = [w.say("plan.settings"), w.say("plan.control", name=control), *others]
    return [head, *(row for row in rows if len(set(row[1:])) > 1)]


def commands(folder: Path, experiment: Mapping[str, Any]) -> list[str]:
    again = shlex.join(["relab", "experiment", str(folder / "experiment.yaml"), "--name", folder.name])
    return [*([str(experiment["command"])] if experiment.get("command") else []), again]


def seeds_needed(answers: list[Document], w: Words) -> str:
    """How many seeds would tell; empty where no answer lacks them."""
    needed = [x["seeds_needed"] for x in answers if x.get("seeds_needed")]
    if not needed:
        return ""
    ends = max(n[0] for n in needed), max(n[1] for n in needed)
    if ends[0] > MANY:
        return sentences.hopeless(w)
    return w.say("next.seeds", span=sentences.seeds_span(w, ends))


# ---- For programs


def facts(
    folder: Path, experiment: Mapping[str, Any], answers: Sequence[Mapping[str, Any]],
    settings: Mapping[str, Mapping[str, Any]], page: Page, date: str,
) -> Document:  # fmt: skip
    control = next(iter(settings.values()))
    family = lineage.family(control)
    opened = [_opened(control, settings[name], name) for name in list(settings)[1:]]
    runs = [*_histories(folder)]
    seconds = [s for run in runs if math.isfinite(s := elapsed(run))]
    return {
        "schema": 1, "kind": "experiment", "date": date, "name": folder.resolve().name,
        "question": experiment["question"],
        "answers": [_answer(x, settings, str(experiment.get("command") or "")) for x in answers],
        "family": family.name if family else None, "opens": [each for each in opened if each],
        "findings": list(dict.fromkeys(f.finding.slug for f in page.findings)), "runs": len(runs),
        "hours": round(sum(seconds) / 3600, 4),
    }  # fmt: skip


def _opened(control: Mapping[str, Any], other: Mapping[str, Any], name: str) -> Document | None:
    changes, family, before = lineage.opened(control, other), lineage.family(other), lineage.family(control)
    if not changes or family is None or before is None:
        return None
    why = ", ".join(f"{f.key} {shown(f.a)} -> {shown(f.b)}" for f in changes[:3])
    return {"family": family.name, "from": before.name, "why": why, "variant": name}


def _answer(x: Mapping[str, Any], settings: Mapping[str, Mapping[str, Any]], command: str) -> Document:
    control, other = (settings[name] for name in x["names"])
    change = lineage.changes(control, other)
    ends = {key: float(f"{x[key]:.6g}") if math.isfinite(x[key]) else None for key in ("delta", "low", "high")}
    return {"names": x["names"], "verdict": x["verdict"], "text": x["text"], "n": list(x["n"]), **ends,
            "seeds_needed": x.get("seeds_needed"), "diff": change, "confounded": len(change) > 1,
            "of": tried.subject(control, command)}  # fmt: skip


def _histories(folder: Path) -> Iterator[history.History]:
    for meta in sorted(folder.glob("runs/*/meta.json")):
        try:
            yield history.load(meta.parent)
        except (RecordError, OSError):
            continue
