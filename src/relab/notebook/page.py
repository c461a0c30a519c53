"""How is an entry laid out? Answer, start, observations, plan, record, learnings; what is empty is left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.notebook.log import facts_line
from relab.notebook.references import Ref
from relab.notebook.words import Words, words
from relab.report.render import Raw, fence
from relab.report.render import md as escaped

FINDINGS = 3
KEYS = 12  # rows of a config table

Table = list[list[str]]  # head first


@dataclass(frozen=True)
class RecordSection:
    """The record of what was run: overview, tables, telemetry, gates, artefacts; each may be empty."""

    overview: list[str] = field(default_factory=list)
    evidence: Table = field(default_factory=list)
    evaluations: Table = field(default_factory=list)
    multi: Table = field(default_factory=list)  # a schedule's own evaluations
    telemetry: list[str] = field(default_factory=list)
    gates: list[str] = field(default_factory=list)
    artefacts: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Entry:
    """One block of a log."""

    id: str
    lang: str
    title: str
    answer: list[str]
    notes: list[str]  # what limits the answer
    marks: list[str]  # family, changed factors, confounded
    prediction: str  # its score, where there was one
    start: list[str]
    observations: list[str]
    differs: Table
    record: RecordSection
    findings: list[str]
    command: list[str]
    next: str
    name: str = ""  # for the name of a file
    date: str = ""
    facts: Document = field(default_factory=dict)
    hypothesis: str = ""  # what was expected before the runs, where that was declared
    plan: list[str] = field(default_factory=list)  # what was to be measured

    def markdown(self) -> str:
        """The entry as a person reads it."""
        w = words(self.lang)
        same = "plan.same" if self.differs else "plan.unrecorded"
        parts = [
            f"## {md(self.title)}",
            w.say("label.hypothesis", text=md(self.hypothesis)) if self.hypothesis else "",
            *(w.say("label.answer", text=md(line)) for line in self.answer),
            bullets([*self.notes, *self.marks]),
            w.say("label.prediction", text=md(self.prediction)) if self.prediction else "",
            *section(w, "start", [bullets(self.start)]),
            *section(w, "observations", [bullets(self.observations)]),
            *section(w, "plan", [bullets(self.plan), table(self.differs) if len(self.differs) > 1 else w.say(same)]),
            *section(w, "record", self._record(w)),
            *section(w, "learnings", self._learnings(w)),
        ]
        return "\n\n".join(part for part in parts if part)

    def block(self) -> str:
        """The same with its facts behind it, for programs: what goes into a log."""
        return f"{self.markdown()}\n\n{facts_line({**self.facts, 'lang': self.lang})}"

    def _record(self, w: Words) -> list[str]:
        code = "\n".join(" ".join(line.split()) for line in self.command).replace("<!--", "&lt;!--")
        record = self.record
        return [
            labelled(w, "command", fence(code) if code else ""),
            labelled(w, "overview", bullets(record.overview)),
            table(record.evidence) if len(record.evidence) > 1 else "",
            labelled(w, "evaluations", table(record.evaluations) if len(record.evaluations) > 1 else ""),
            labelled(w, "multi", table(record.multi) if len(record.multi) > 1 else ""),
            labelled(w, "telemetry", bullets(record.telemetry)),
            labelled(w, "gates", bullets(record.gates)),
            labelled(w, "artefacts", bullets(record.artefacts)),
        ]

    def _learnings(self, w: Words) -> list[str]:
        last = w.say("label.next", text=md(self.next)) if self.next not in ("", "-") else ""
        return [labelled(w, "findings", bullets(self.findings)), last]


def section(w: Words, name: str, parts: Sequence[str]) -> list[str]:
    """A heading and what is below it; nothing where there is nothing."""
    some = [part for part in parts if part]
    return [f"### {w.say(f'section.{name}')}", *some] if some else []


def labelled(w: Words, name: str, text: str) -> str:
    return f"{w.say(f'label.{name}')}\n\n{text}" if text else ""


def bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {md(line)}" for line in lines)


# A word of code, escaped: between two marks these characters are safe.
CODE = re.compile(r"\\`((?=\w)(?:[\w ./=:,@+-]|\\[._+=-])+(?<=\w))\\`")
UNESCAPED = re.compile(r"\\(?=[._+=-])")


def md(text: Any) -> str:
    """Escaped, but for what is harmless and would be hard to read: a lone dash, >8,192, `code`, an interval."""
    if isinstance(text, Raw):
        return text
    safe = "-" if text == "-" else escaped(str(text).replace(" -> ", " → "))
    safe = re.sub(r"&gt;(?=\d)", ">", safe)
    safe = CODE.sub(lambda match: f"`{re.sub(UNESCAPED, '', match[1])}`", safe)
    safe = safe.replace("{{", "{&#123;")  # no wish of a stranger's name
    return re.sub(r"\\\[([-+\d., %naif]+)\\\](?![(\[:])", r"[\1]", safe)


def table(rows: Sequence[Sequence[str]]) -> str:
    head, *body = rows
    lines = [list(map(md, head)), ["---"] * len(head), *(list(map(md, row)) for row in body)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


# ---- Numbers that name their source


def anchored(text: str, ref: Ref | None) -> str:
    """The number with the comment that tells where it comes from."""
    return Raw(md(text) + ref.comment()) if ref is not None else text


def joined(parts: Sequence[str], between: str = " ") -> str:
    return Raw(between.join(md(part) for part in parts))


def called(folder: Path) -> str:
    """How a reference names a run: the name below runs/, experiment/runs/name, else its way from here."""
    folder = folder.resolve()
    if folder.parent.name == "runs":
        above = folder.parent.parent
        return f"{above.name}/runs/{folder.name}" if (above / "experiment.yaml").is_file() else folder.name
    here = Path.cwd()
    return folder.relative_to(here).as_posix() if folder.is_relative_to(here) and folder != here else folder.name
