"""What does an entry say? Date, question, answer, evidence with n, what differs, findings, command, what to do next.

An entry is a function of the files of the run or the experiment: written again from the same files it is the same, to
the byte. `data` is what a report says about the folder (report.sections.build), already safe to share.
"""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from relab import config, stats
from relab.answer import LEAST, span
from relab.configs.views import MISSING, flatten
from relab.importers import find
from relab.jsonl import RecordError, inside, read_json
from relab.notebook.fence import safe_id
from relab.report.gather import shown
from relab.report.render import fence
from relab.report.render import md as escaped
from relab.report.share import Cleaner
from relab.screen import number

FINDINGS = 3
NOTES = 4  # of an answer
KEYS = 12  # rows of a config table
LEFT_OUT = ("seeds", "question", "log")  # of the experiment's id: the same question with more seeds is the same entry


@dataclass(frozen=True)
class Entry:
    """One block of a log."""

    id: str
    title: str
    answer: list[str]
    notes: list[str]  # what limits the answer
    evidence: list[list[str]]  # a table, head first
    differs: list[list[str]]  # a table, head first
    findings: list[str]
    command: list[str]
    next: str

    def markdown(self) -> str:
        """The entry as it stands in the log."""
        found = [f"- {md(line)}" for line in self.findings]
        parts = [
            f"## {md(self.title)}",
            *(f"**Answer.** {md(line)}" for line in self.answer),
            "\n".join(f"- {md(line)}" for line in self.notes),
            table(self.evidence),
            table(self.differs) if len(self.differs) > 1 else "No setting differs.",
            "\n".join(["Findings:", "", *found]),
            fence("\n".join(" ".join(line.split()) for line in self.command)) if self.command else "",
            f"**Next.** {md(self.next)}",
        ]
        return "\n\n".join(part for part in parts if part)


def md(text: Any) -> str:
    """Escaped, but for what is harmless and would be hard to read: a lone dash, >8,192, an interval that is no link."""
    safe = "-" if text == "-" else escaped(str(text).replace(" -> ", " → "))
    safe = re.sub(r"&gt;(?=\d)", ">", safe)
    return re.sub(r"\\\[([-+\d., %naif]+)\\\](?![(\[:])", r"[\1]", safe)


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [list(map(md, head)), ["---"] * len(head), *(list(map(md, row)) for row in body)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def is_experiment(folder: Path) -> bool:
    return (folder / "experiment.yaml").is_file()


def build(folder: Path, data: dict[str, Any], proposal: str = "") -> Entry:
    """The entry of a run's or an experiment's folder; `proposal` is what `relab next` prints about it."""
    return of_experiment(folder, data, proposal) if is_experiment(folder) else of_run(folder, data, proposal)


def _findings(data: dict[str, Any]) -> list[str]:
    if not data["examined"]:
        return ["health was not examined"]
    lines = [f"{f['slug']} ({f['severity']}, {f['where']}): {f['message']}" for f in data["findings"][:FINDINGS]]
    if not lines:
        limits = [text for text in data["not_known"] if text.startswith("not checked")]
        return ["; ".join(["none", *limits])]
    more = data.get("more_findings") or 0
    return lines + ([f"and {more} more in the report"] if more > 0 else [])


# ---- An experiment


def of_experiment(folder: Path, data: dict[str, Any], proposal: str) -> Entry:
    asked = config.read_yaml(folder / "experiment.yaml")
    if not (folder / "answer.json").is_file():
        raise RecordError(f"{folder} has no answer.json: the experiment has not ended; call `relab experiment` again")
    answers = read_json(folder, "answer.json")["answers"]
    clean = Cleaner([folder], set()).clean
    return Entry(
        safe_id(f"{folder.resolve().name}.{_question_hash(asked)}"),
        clean(f"{day_of(folder)} {asked['question']}"),
        clean([x["text"] for x in answers]),
        clean(_notes(answers)),
        evidence(answers),
        clean(differences(folder, asked)),
        _findings(data),
        clean(commands(folder, asked)),
        clean(seeds_needed(answers) or next_step(folder, proposal)),
    )


def _question_hash(asked: dict[str, Any]) -> str:
    return config.config_hash({k: v for k, v in asked.items() if k not in LEFT_OUT}, ())[:6]


def _notes(answers: list[dict[str, Any]]) -> list[str]:
    """Each once: what is said of the control stands in every answer."""
    notes = list(dict.fromkeys(str(note) for x in answers for note in x["notes"]))
    more = [f"and {len(notes) - NOTES} more notes in answer.json"] if len(notes) > NOTES else []
    return notes[:NOTES] + more


def day_of(folder: Path) -> str:
    """The day (UTC) on which the last of its runs ended."""
    days = []
    for path in [*folder.glob("runs/*/meta.json"), *folder.glob("state/*.json")]:
        try:
            found = read_json(path.parent, path.name)
        except (RecordError, OSError):
            continue
        days.append(_day(found))
    return max(days, default="")


def _day(meta: dict[str, Any]) -> str:
    return str(meta.get("ended") or meta.get("heartbeat") or meta.get("created") or "")[:10]


def evidence(answers: list[dict[str, Any]]) -> list[list[str]]:
    """A row per variant: seeds, episodes, mean with its interval, and every seed's number."""
    first = answers[0]
    what = {"final": f"final {first['metric']}", "mean_last_m": f"mean of the last {first.get('m')} {first['metric']}",
            "first_step_reaching": f"first step with {first['metric']} at {number(first.get('reach') or 0.0)}",
            "success_rate": "success rate"}[first["at"]]  # fmt: skip
    arms = [(first["names"][0], first["a"]), *((x["names"][1], x["b"]) for x in answers)]
    rows = [[name, *_row(arm, first["at"])] for name, arm in arms]
    return [["variant", "seeds", "episodes", f"{what}, mean [95 %]", "every seed"], *rows]


def _row(arm: list[dict[str, Any]], at: str) -> list[str]:
    episodes = sorted({x["episodes"] for x in arm if x["episodes"]})
    ends = " to ".join(dict.fromkeys(map(str, episodes[:1] + episodes[-1:])))
    return [str(len(arm)), ends or "-", _mean(arm, at), " ".join(_one(x) for x in arm) or "-"]


def _one(x: dict[str, Any]) -> str:
    return ("" if x["reached"] else ">") + number(float(x["value"]))


def _mean(arm: list[dict[str, Any]], at: str) -> str:
    good = [x for x in arm if math.isfinite(x["value"])]
    if not all(x["reached"] for x in good):
        return f"{sum(x['reached'] for x in good)} of {len(good)} got there"
    values = np.array([float(x["value"]) for x in good])
    if len(good) < LEAST:
        return f"{number(float(values.mean()))} (no interval under {LEAST} seeds)" if len(good) else "-"
    if at == "success_rate":
        n = np.array([float(x["episodes"]) for x in good])
        found = stats.clustered_rate(np.round(values * n), n)
    else:
        found = stats.mean_interval(values)
    return f"{number(found.mid)} [{number(found.low)}, {number(found.high)}]"


def differences(folder: Path, asked: dict[str, Any]) -> list[list[str]]:
    """The settings that are not the same in all variants, as they were run; the first variant is the control."""
    flats = {name: flatten(settings_of(folder, asked, name)) for name in asked["variants"]}
    keys = dict.fromkeys(key for flat in flats.values() for key in flat)
    rows = [[key, *(shown(flat.get(key, MISSING)) for flat in flats.values())] for key in keys]
    control, *others = flats
    return [["setting", f"{control} (control)", *others], *(row for row in rows if len(set(row[1:])) > 1)]


def settings_of(folder: Path, asked: dict[str, Any], name: str) -> dict[str, Any]:
    """A variant's resolved config; for another program's command, what was given for its placeholders."""
    resolved = inside(folder, f"variants/{name}.yaml")
    given = {**asked["base"], **(asked["variants"][name] or {})}
    return config.read_yaml(resolved) if resolved.is_file() else given


def commands(folder: Path, asked: dict[str, Any]) -> list[str]:
    again = shlex.join(["relab", "experiment", str(folder / "experiment.yaml"), "--name", folder.name])
    return [*([str(asked["command"])] if asked.get("command") else []), again]


def seeds_needed(answers: list[dict[str, Any]]) -> str:
    """How many seeds would tell; empty where no answer lacks them."""
    needed = [x["seeds_needed"] for x in answers if x.get("seeds_needed")]
    if not needed:
        return ""
    low, high = max(n[0] for n in needed), max(n[1] for n in needed)
    return f"{span((low, high))} seeds a variant should tell: raise seeds and call it again"


def next_step(folder: Path, proposal: str) -> str:
    """The first line of a proposal, which is the change; the rest is for `relab next`."""
    first = proposal.strip().partition("\n")[0].strip()
    if first.startswith("nothing"):
        return f"{first.partition(': No: ')[0]}."  # the answer itself stands above
    if not first:
        return "-"
    return f"{first} (relab next {shlex.quote(str(folder))} says why)"


# ---- A run


def of_run(folder: Path, data: dict[str, Any], proposal: str) -> Entry:
    loaded = find.load_all(folder)
    meta = loaded.runs[0].history.meta if loaded.runs else {}
    clean = Cleaner([folder], set()).clean
    title = clean(str(meta.get("intent") or data["title"]))
    one = len(loaded.runs) == 1
    known = meta.get("id") if one and isinstance(meta.get("id"), str) else folder.resolve().name
    return Entry(
        safe_id(str(known)),
        f"{_day(meta)} {title}".strip(),
        [data["sentence"]],
        [],
        outcomes(data),
        [data["config"]["head"], *data["config"]["rows"][:KEYS]],
        _findings(data),
        list(data["commands"]),
        clean(next_step(folder, proposal)),
    )


def outcomes(data: dict[str, Any]) -> list[list[str]]:
    """A row per config of the folder: seeds, episodes, the last evaluation with its interval, every seed's number."""
    rows = [
        [x["label"], str(x["seeds"]), str(x["episodes"]), f"{x['metric']} {x['value']} ({x['sure']})",
         " ".join(one["value"] for one in x["each"])]
        for x in data["outcome"]
    ]  # fmt: skip
    return [["run", "seeds", "episodes", "last evaluation", "every seed"], *rows]
