"""What does a log hold? Its entries as data, and the words that people have written around them.

A log is one file, or a folder with a file for each entry. The last line of an entry is a comment with its facts as JSON
for programs; entries without one (older ones) are read as far as their heading and their answer go.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relab.advise import tried
from relab.advise.tried import NO, OPEN, YES, Tried
from relab.base.documents import Document
from relab.base.jsonl import RecordError
from relab.base.terminal import harmless
from relab.notebook import fence

INDEX = "relab-index"  # the id of the block that lists the others
DEFAULT = ("LOG.md", "notes", "experiments/LOG.md")  # where a log is looked for that nobody named
FACTS = re.compile(r"<!-- relab:facts (\{[^\n<>]*\}) -->")
HEADING = re.compile(r"^#{1,6}\s+(.*)$")


@dataclass(frozen=True)
class Logged:
    """One entry of a log, or a piece of a person's own text (id "")."""

    id: str
    path: Path
    line: int
    title: str
    text: str
    facts: Document = field(default_factory=dict)
    edited: bool = False

    @property
    def date(self) -> str:
        day = re.match(r"\d{4}-\d\d-\d\d", str(self.facts.get("date") or self.title))
        return day[0] if day else ""

    @property
    def where(self) -> str:
        return f"{self.path}:{self.line}"

    @property
    def superseded(self) -> str:
        """Why it no longer holds; empty where it does."""
        return str(superseded(self.facts).get("reason") or "")

    @property
    def lang(self) -> str:
        return str(self.facts.get("lang") or "en")

    @property
    def answers(self) -> list[Document]:
        rows = self.facts.get("answers")
        return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []

    @property
    def verdict(self) -> str:
        """yes, no, cannot tell yet (an experiment's first that is not open), or what became of a run."""
        said = [str(row.get("verdict")) for row in self.answers]
        return next((v for v in said if v != OPEN), said[0] if said else str(self.facts.get("verdict") or ""))


def superseded(facts: Mapping[str, Any]) -> Document:
    """reason, date, by: why an entry no longer holds; empty where it does."""
    mark = facts.get("superseded")
    return mark if isinstance(mark, dict) and isinstance(mark.get("reason"), str) else {}


# ---- Facts


def facts_line(facts: Mapping[str, Any]) -> str:
    """One line that Markdown does not show and that cannot end early: < > and -- are written as JSON's \\u escapes."""
    text = json.dumps(facts, ensure_ascii=False, separators=(",", ":"), allow_nan=False, default=str)
    text = text.replace("<", "\\u003c").replace(">", "\\u003e").replace("--", "-\\u002d")
    text = harmless(text, as_json=True)
    return f"<!-- relab:facts {text} -->"


def facts_of(body: str) -> Document:
    """Of the last line only: whatever else looks like it came from somebody's text."""
    lines = body.rstrip().splitlines()
    match = FACTS.fullmatch(lines[-1].strip()) if lines else None
    try:
        facts = json.loads(match[1]) if match else {}
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


# ---- Reading


def default_logs(base: Path = Path()) -> list[Path]:
    return [path for name in DEFAULT if (path := base / name).exists()]


def files(log: Path) -> list[Path]:
    """The files of a log: itself, or all Markdown in the folder."""
    if log.is_dir():
        return sorted(path for path in log.glob("*.md") if path.is_file())
    return [log] if log.is_file() else []


def entries(logs: Iterable[Path]) -> list[Logged]:
    """relab's entries in these logs, oldest first; one that stands in two logs is read once, from the first."""
    by_id: dict[str, Logged] = {}
    for log in logs:
        for path in files(log):
            for one in read(path):
                if one.id and one.id != INDEX:
                    by_id.setdefault(one.id, one)
    return sorted(by_id.values(), key=lambda one: one.date)


def everything(logs: Sequence[Path]) -> list[Logged]:
    """relab's entries and a person's own, oldest first; what has no date comes before, in the order of the files."""
    own = [one for log in logs for path in files(log) for one in own_entries(read(path))]
    return sorted([*own, *entries(logs)], key=lambda one: one.date)


def own_entries(pieces: Iterable[Logged]) -> list[Logged]:
    """A person's pieces with what stands under their smaller headings; the title of the file alone is none."""
    made: list[Logged] = []
    open_ = False  # whether the piece before was a person's, so that a smaller heading belongs to it
    for piece in pieces:
        if open_ and not piece.id and _level(piece) > _level(made[-1]) > 1:
            made[-1] = replace(made[-1], text=f"{made[-1].text}\n{piece.text}")
        elif not piece.id:
            made.append(piece)
        open_ = not piece.id
    return [one for one in made if len(one.text.strip().splitlines()) > bool(one.title)]


def _level(piece: Logged) -> int:
    """Of its heading: 1 is the title of a file, 0 is text without any."""
    return len(piece.text) - len(piece.text.lstrip("#"))


def read(path: Path) -> list[Logged]:
    """The entries and a person's pieces of one file, in order."""
    text = fence.read(path)
    pieces, at, line = [], 0, 1
    for block in [*fence.blocks(text, str(path)), None]:
        stop = len(text) if block is None else block.start
        pieces += _pieces(text[at:stop], path, line)
        if block is not None:
            pieces.append(_entry(text[block.start : block.stop], path, block))
            at, line = block.stop, text.count(b"\n", 0, block.stop) + 1
    return pieces


def _entry(block: bytes, path: Path, mark: fence.Block) -> Logged:
    lines = block.decode(errors="replace").replace("\r\n", "\n").split("\n")[1:-1]
    body = "\n".join(lines)
    facts = facts_of(body)
    shown = "\n".join(line for line in lines if not FACTS.fullmatch(line.strip()))
    title = next((m[1] for line in lines if (m := HEADING.match(line))), mark.id)
    return Logged(mark.id, path, mark.line, plain(title), shown, facts or _old(shown), mark.edited)


def _old(text: str) -> Document:
    """What can be told of an entry without facts: the words of its answers."""
    said = re.findall(r"^\*\*Answer\.\*\* (.*)$", text, re.M)
    heads = {"Yes:": YES, "No:": NO, "Cannot tell": OPEN, "No answer": OPEN}
    answers = [(next((v for head, v in heads.items() if line.startswith(head)), ""), line) for line in said]
    return {"answers": [{"verdict": v, "text": plain(line)} for v, line in answers if v]}


def _pieces(text: bytes, path: Path, line: int) -> list[Logged]:
    """A person's text, cut at its headings."""
    pieces: list[tuple[int, str, list[str]]] = [(line, "", [])]
    for number, row in enumerate(text.decode(errors="replace").replace("\r\n", "\n").split("\n"), line):
        match = HEADING.match(row)
        if match:
            pieces.append((number, match[1], []))
        pieces[-1][2].append(row)
    return [Logged("", path, at, title, "\n".join(rows)) for at, title, rows in pieces if "".join(rows).strip()]


def plain(text: str) -> str:
    """Markdown as a person reads it: escapes and comments gone."""
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"\\([\\`*\[\]|~_#+\-=.)])", r"\1", text)
    return text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").strip()


# ---- What was tried


def of_log(logs: Iterable[Path]) -> list[Tried]:
    """Every change that an entry tells the outcome of. A single run answers nothing: it counts as not answered."""
    return [each for one in entries(logs) for each in _tried(one)]


def _tried(one: Logged) -> list[Tried]:
    rows = one.answers
    if one.facts.get("kind") == "run" and one.facts.get("parent"):
        keys = ("diff", "n", "of", "text")
        rows = [{"verdict": OPEN, **{key: one.facts.get(key) for key in keys}}]
    attempts = []
    for row in rows:
        diff, n, of = row.get("diff"), row.get("n"), row.get("of")
        whole = isinstance(diff, dict) and all(isinstance(c, dict) and {"from", "to"} <= set(c) for c in diff.values())
        counted = isinstance(n, list) and len(n) == 2 and all(type(k) is int for k in n)
        if whole and diff and isinstance(of, dict) and isinstance(n, list) and counted:
            where = f"entry {one.id} in {one.where}"
            text = str(row.get("text") or one.title)
            gone = one.superseded
            attempts.append(Tried(diff, str(row.get("verdict")), text, (n[0], n[1]), where, one.date, of, {}, gone))
    return attempts


def earlier(root: Path, logs: Iterable[Path] | None = None, without: Path | None = None) -> list[Tried]:
    """What was tried before: the experiments below `root`, and the logs; an experiment with its entry is one."""
    known = list(logs or []) or [*default_logs(), *([root / "LOG.md"] if root.is_dir() else [])]
    attempts = {_key(one): one for one in tried.of_experiments(root, without)}
    skip = set(map(_key, tried.of_experiment(without))) if without is not None else set()
    for one in _readable(known):
        key = _key(one)
        if key in skip:
            continue
        there = attempts.get(key)
        where = f"{there.where}, {one.where}" if there else one.where
        attempts[key] = Tried(**{**vars(there or one), "where": where, "superseded": one.superseded})
    return list(attempts.values())


def _key(one: Tried) -> str:
    """An experiment and its entry tell the same."""
    return json.dumps([one.text, one.date, one.diff, one.of], sort_keys=True, default=str)


def _readable(logs: Iterable[Path]) -> list[Tried]:
    """A log with damaged marks must not stop a run from being started."""
    attempts = []
    for log in dict.fromkeys(path.resolve() for path in logs if path.exists()):
        try:
            attempts += of_log([_relative(log)])
        except (RecordError, OSError):
            continue
    return attempts


def _relative(path: Path) -> Path:
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def language(logs: Iterable[Path]) -> str:
    """The language of a log: that of its newest entry."""
    languages = [one.lang for one in entries(path for path in logs if path.exists())]
    return languages[-1] if languages else "en"
