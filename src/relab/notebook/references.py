"""Is a number in a log still what the record says? A number that names its source can be renewed, or called stale.

    487.2<!--relab:run=brave-otter metric=eval/return_det-->

The comment is invisible in rendered Markdown. In their own text people write {{brave-otter eval/return_det final}},
which the next refresh turns into such a number. `at` is final (left out), first, best, step (with step=N), or what an
experiment may ask for: mean_last_m (with m=N), success_rate, first_step_reaching (with reach=X). Code is left alone.
Everything works on bytes, as in fence.py: only the value itself is ever replaced.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from relab.base.jsonl import RecordError
from relab.base.text import number
from relab.comparison import outcomes
from relab.formats.read import find
from relab.formats.read.source import FOREIGN
from relab.notebook import fence
from relab.notebook.words import LANGUAGES, Words, words
from relab.record import glossary
from relab.record.history import Column, History

NUMBER = r"[-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?%?|-?inf|nan|\?"
GONE = ("gone", "no_number")
STALE = "|".join(re.escape(words(code).sentences[f"stale.{key}"]) for code in LANGUAGES for key in GONE)
ANCHOR = re.compile(
    rf"(?P<value>{NUMBER})(?P<stale>{STALE})?<!--relab:(?P<pairs>run=[^\s<>]+(?: [a-z]+=[^\s<>]+)*)-->".encode()
)
SHORT = re.compile(rb"\{\{[ \t]*(?P<run>[^\s{}]+)[ \t]+(?P<metric>[^\s{}]+)(?:[ \t]+(?P<at>[^\s{}]+))?[ \t]*\}\}")
KNOWN = {"run", "metric", "at", "m", "reach", "step"}
AT = (*outcomes.AT, "first", "best", "step")


@dataclass(frozen=True)
class Ref:
    """Where a number comes from."""

    run: str
    metric: str
    at: str = "final"
    more: dict[str, str] = field(default_factory=dict)

    def comment(self) -> str:
        at = {"at": self.at} if self.at != "final" else {}
        pairs = {"run": self.run, "metric": self.metric, **at, **self.more}
        return f"<!--relab:{' '.join(f'{key}={_safe(value)}' for key, value in pairs.items())}-->"

    def __str__(self) -> str:
        return " ".join([self.run, self.metric, self.at, *(f"{k}={v}" for k, v in self.more.items())])


def _safe(text: str) -> str:
    """Readable in a comment, whatever a run is called: signs that could end it, and blanks, are written as %41."""
    coded = re.sub(r"[\s<>%\x00-\x1f\x7f]", lambda m: "".join(f"%{b:02X}" for b in m[0].encode()), str(text))
    return re.sub(r"--|-$", lambda m: m[0].replace("-", "%2D"), coded)


def _unsafe(text: str) -> str:
    from urllib.parse import unquote

    return unquote(text, errors="replace")


def parse(pairs: bytes) -> Ref | None:
    """The reference that a comment names; None where it is none that relab can have written."""
    fields = dict(word.split("=", 1) for word in pairs.decode(errors="replace").split(" "))
    if not {"run", "metric"} <= set(fields) <= KNOWN:
        return None
    fields = {key: _unsafe(value) for key, value in fields.items()}
    return Ref(fields.pop("run"), fields.pop("metric"), fields.pop("at", "final"), fields)


def bare(value: Any) -> Any:
    """Plain data without the comments: for JSON, and for searching."""
    if isinstance(value, str):
        return re.sub(r"<!--relab:run=[^<>]*-->", "", value)
    if isinstance(value, dict):
        return {key: bare(each) for key, each in value.items()}
    return [bare(each) for each in value] if isinstance(value, (list, tuple)) else value


# ---- The record


class Records:
    """Runs that references may name, looked for below these folders by their exact names, each read once."""

    def __init__(self, bases: Sequence[Path]):
        self.bases = list(dict.fromkeys(base.resolve() for base in bases))
        self.read: dict[str, History | None] = {}

    def folder(self, name: str) -> Path | None:
        """A name or a path below one of the bases; nothing that leads out of them."""
        parts = PurePosixPath(name).parts
        if not name or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name:
            return None
        for path in (base / name for base in self.bases):
            if path.exists() and any(path.resolve().is_relative_to(base) for base in self.bases):
                return path
        return None

    def run(self, name: str) -> History | None:
        if name not in self.read:
            self.read[name] = self._load(name)
        return self.read[name]

    def _load(self, name: str) -> History | None:
        folder = self.folder(name)
        try:
            runs = find.load_all(folder).runs if folder is not None else []
        except (RecordError, OSError):
            return None
        return runs[0].history if len(runs) == 1 else None

    def value(self, ref: Ref) -> float | str:
        """The number as the record has it now, or why there is none: gone, no_number."""
        run = self.run(ref.run)
        if run is None:
            return "gone"
        try:
            value = number_of(run, ref)
        except (ValueError, KeyError):
            return "no_number"
        return value if math.isfinite(value) else "no_number"


def number_of(run: History, ref: Ref) -> float:
    """One number of a run; ValueError or NaN where it has none."""
    names = (ref.metric, run.mapping.get(ref.metric, ""), FOREIGN + ref.metric)
    name = next((each for each in names if each in run.columns), "")
    if ref.at in outcomes.AT:
        m, reach = int(ref.more.get("m", 5)), ref.more.get("reach")
        return outcomes.outcome(run, ref.at, name, m=m, reach=None if reach is None else float(reach)).value
    if not name or ref.at not in AT:
        raise ValueError(f"no `{ref.metric}` at {ref.at}")
    return _at(run.columns[name], name, ref)


def _at(column: Column, name: str, ref: Ref) -> float:
    good = column.values[[math.isfinite(x) for x in column.values]]
    if ref.at == "step":
        there = column.values[column.steps <= int(ref.more["step"])]
        return float(there[-1]) if len(there) else math.nan
    if not len(good):
        return math.nan
    known = glossary.METRICS.get(name)
    low = known is not None and known.direction < 0
    return float(good[0] if ref.at == "first" else good.min() if low else good.max())


# ---- As it was written


def like(old: str, value: float) -> str:
    """The value with as many decimals as the number that it replaces, with its sign and its per cent."""
    percent, plus = old.endswith("%"), "+" if old.startswith("+") and value >= 0 else ""
    whole, dot, rest = old.strip("+-%").replace(",", "").partition(".")
    scaled = 100 * value if percent else value
    if not whole.isdigit() or "e" in rest.lower() or (not dot and abs(scaled) < 10 and not percent):
        return plus + number(value)
    ungrouped = len(whole) > 3 and "," not in old
    text = f"{scaled:.{len(rest)}f}" if ungrouped else f"{scaled:,.{len(rest)}f}"
    return f"{plus}{text}{'%' if percent else ''}"


def same(old: str, value: float) -> bool:
    """Whether what is written is the value, rounded as it is written."""
    return old in (number(value), like(old, value))


# ---- A log


@dataclass(frozen=True)
class Change:
    """What became of one reference."""

    line: int
    ref: Ref
    old: str
    new: str  # what stands there after a refresh
    state: str  # same, renewed, back (no longer stale), filled, gone, no_number
    entry: str = ""  # the id of relab's entry that it stands in

    @property
    def stale(self) -> bool:
        return self.state != "same"


def refresh(text: bytes, records: Records, say: Words, name: str = "the log") -> tuple[bytes, list[Change]]:
    """The log with every reference renewed, and what became of each."""
    parts, changes, at = [], [], 0
    for block in [*fence.blocks(text, name), None]:
        stop = len(text) if block is None else block.start
        piece, renewals = _piece(text, at, stop, records, say, "")
        parts.append(piece)
        changes += renewals
        if block is not None:
            body, renewals = _piece(text, block.start, block.stop, records, say, block.id)
            changed = body != text[block.start : block.stop]
            parts.append(fence.signed(body) if changed and not block.edited else body)
            changes += renewals
            at = block.stop
    return b"".join(parts), changes


def _piece(text: bytes, start: int, stop: int, records: Records, say: Words, entry: str) -> tuple[bytes, list[Change]]:
    piece, changes = text[start:stop], []
    hidden = code(piece)

    def renewed(match: re.Match[bytes], make: Callable[[re.Match[bytes]], tuple[Ref | None, str]]) -> bytes:
        if any(a <= match.start() < b for a, b in hidden):
            return match[0]
        ref, old = make(match)
        if ref is None:
            return match[0]
        change = _renew(ref, old, match, records, say)
        changes.append(Change(text.count(b"\n", 0, start + match.start()) + 1, ref, old, *change, entry))
        return match[0] if change[1] == "same" or not change[0] else change[0].encode()

    piece = ANCHOR.sub(lambda m: renewed(m, lambda m: (parse(m["pairs"]), m["value"].decode())), piece)
    if not entry:  # an entry is relab's own, and holds no wishes
        hidden = code(piece)
        piece = SHORT.sub(lambda m: renewed(m, lambda m: (_short(m), "")), piece)
    return piece, changes


def _short(match: re.Match[bytes]) -> Ref | None:
    run, metric, at = (
        part.decode(errors="replace") for part in (match["run"], match["metric"], match["at"] or b"final")
    )
    word, _, step = at.partition(":")
    if word not in AT:
        return None
    return Ref(run, metric, word, {"step": step} if word == "step" and step.isdigit() else {})


def _renew(ref: Ref, old: str, match: re.Match[bytes], records: Records, say: Words) -> tuple[str, str]:
    """(what is to stand there, state); for a wish that cannot be filled the text stays."""
    value = records.value(ref)
    was_stale = bool(match.groupdict().get("stale"))
    if isinstance(value, str):
        return (f"{old}{say.say(f'stale.{value}')}{ref.comment()}" if old else ""), value
    if old and same(old, value):
        return f"{old}{ref.comment()}", "back" if was_stale else "same"
    return f"{like(old, value) if old else number(value)}{ref.comment()}", "renewed" if old else "filled"


def code(text: bytes) -> list[tuple[int, int]]:
    """Where code stands: fenced blocks, and spans between equal runs of backticks within a paragraph line."""
    spans, at, opened = [], 0, b""
    start = 0
    for line in text.split(b"\n"):
        mark = re.match(rb" {0,3}(`{3,}|~{3,})", line)
        if opened:
            if mark and mark[1][:1] == opened[:1] and len(mark[1]) >= len(opened) and not line[mark.end() :].strip():
                spans.append((start, at + len(line)))
                opened = b""
        elif mark:
            opened, start = mark[1], at
        else:
            spans += [(at + m.start(), at + m.end()) for m in re.finditer(rb"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", line)]
        at += len(line) + 1
    return [*spans, *([(start, len(text))] if opened else [])]
