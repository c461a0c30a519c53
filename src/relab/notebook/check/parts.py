"""Which runs and metrics does a line of a write-up name? All forms of their names, and the run of a section."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from relab.logger import KEYS
from relab.notebook.check import words as w
from relab.notebook.check.record import SPOKEN, SPOKEN_KEYS, Names, RunRecord
from relab.notebook.check.wording import Line, Number, numbers

WORD = re.compile(r"[A-Za-z][A-Za-z0-9_/.]*(?:-[A-Za-z0-9_/.]+)*")
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:?\d\d(?::?\d\d)?")
MARKER = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+")
CJK_NAMES = re.compile("|".join(re.escape(p) for p in sorted({*SPOKEN, *SPOKEN_KEYS}, key=len, reverse=True)
                                if re.search(r"[\u0370-\u03ff\u4e00-\u9fff]", p)))  # fmt: skip
COMMON_FOLDERS = set("runs run logs log results output outputs tb tensorboard experiments data tmp models".split())
PLAIN_NAMES = {*SPOKEN, *SPOKEN_KEYS, *KEYS}  # one word that means a metric or a setting wherever it stands
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{7,}")  # what a run may be called


@dataclass
class Scope:
    """Which run the text speaks of, section by section."""

    by_level: dict[int, tuple[str | None, bool]] = field(default_factory=dict)  # level -> run, named in the heading
    mixed: bool = False  # an item of a list spoke of another run; until the next heading of any kind
    torn: bool = False  # the section spoke of several runs
    title: str = ""  # a line that stands as a heading without being one

    def enter(self, level: int, run: str | None, named: bool) -> None:
        self.by_level = {k: v for k, v in self.by_level.items() if k < level}
        self.mixed, self.torn, self.title = False, False, ""
        if named:
            self.by_level[level] = (run, True)

    def mention(self, level: int, run: str, item: bool, title: bool) -> None:
        """A run named in a line: for the section, but in an item of a list for that line alone."""
        before, fixed = self.by_level.get(level, (None, False))
        if item and self.run is not None:
            self.mixed = self.mixed or (run != self.run and not self.by_level[max(self.by_level)][1])
        elif not fixed:
            self.torn = not title and (self.torn or before not in (None, run))
            self.by_level[level] = (run, False)

    @property
    def run(self) -> str | None:
        return self.by_level[max(self.by_level)][0] if self.by_level else None

    @property
    def closed(self) -> bool:
        """Whether the heading names other runs, or several."""
        return bool(self.by_level) and self.by_level[max(self.by_level)] == (None, True)


@dataclass(frozen=True)
class Mention:
    """A name in a text."""

    start: int
    end: int
    word: str
    names: Names
    sure: bool  # an identifier or a phrase, not a common word


def run_words(records: Mapping[str, RunRecord]) -> dict[str, str]:
    """What can be written for a run -> its name: name, id, every folder above it, and parts that only one run has."""
    runs_by_word: dict[str, set[str]] = {}
    for name, record in records.items():
        whole = {name, *folders(name, record), str(record.view.meta.get("id") or name)}
        pieces = {piece for word in whole for piece in re.split(r"[-_/T]", word)}
        whole |= {piece for piece in pieces if len(piece) >= 6 and re.search(r"\d", piece)}
        for word in whole:
            if len(word) > 2 and word.lower() not in COMMON_FOLDERS:
                runs_by_word.setdefault(word, set()).add(name)
    return {
        word: word if word in runs else next(iter(runs))
        for word, runs in runs_by_word.items()
        if len(runs) == 1 or word in runs
    }


def folders(name: str, record: RunRecord) -> set[str]:
    """The folders of a run from the one that was examined down, each alone and with those above it.

    A run in `exp7/runs/PPO_1` is `PPO_1`, `runs/PPO_1` and, where no other run lies there, `exp7`.
    """
    own = record.view.history.folder
    parts = Path(name).parts
    inside = ["/".join(parts[:n]) for n in range(1, len(parts) + 1)] + ["/".join(parts[n:]) for n in range(len(parts))]
    levels = [own, *own.parents][: len(parts) + 1]  # and the examined folder itself
    return {word for word in (*inside, *(level.name for level in levels)) if word}


def means_run(text: str, match: re.Match[str]) -> bool:
    """Whether a name means the run: one that is a plain word (`baseline`) only in quotes, in a path or behind `run`."""
    if not match[0].isalpha():
        return True
    return text[: match.start()][-5:].lower().endswith(("`", '"', "/", "run ")) or text.strip("# ") == match[0]


def run_stamps(records: Mapping[str, RunRecord]) -> dict[str, str]:
    """Digits of a time of day that only one run has in its name or id -> that run."""
    runs_by_digits: dict[str, set[str]] = {}
    for name, record in records.items():
        for word in {name, str(record.view.meta.get("id") or "")}:
            for match in STAMP.finditer(word):
                digits = re.sub(r"\D", "", match[0])
                for size in {12, len(digits)}:
                    runs_by_digits.setdefault(digits[:size], set()).add(name)
    return {digits: next(iter(runs)) for digits, runs in runs_by_digits.items() if len(runs) == 1}


def mentions(text: str, start: int, end: int, record: RunRecord, hidden: list[tuple[int, int]]) -> list[Mention]:
    """Metrics and settings named in a part of a line; up to four words make a name."""
    tokens = [m for m in WORD.finditer(text, start, end) if not any(a <= m.start() < b for a, b in hidden)]
    names: list[Mention] = []
    at = 0
    while at < len(tokens):
        size, mention = longest(text, tokens, at, record)
        if mention is not None:
            names.append(mention)
        at += size
    spoken = [Mention(m.start(), m.end(), m[0], record.look(m[0]), True) for m in CJK_NAMES.finditer(text, start, end)]
    return sorted([*names, *(m for m in spoken if m.names)], key=lambda m: m.start)


def longest(text: str, tokens: list[re.Match[str]], at: int, record: RunRecord) -> tuple[int, Mention | None]:
    for size in (4, 3, 2, 1):
        some = tokens[at : at + size]
        if len(some) < size or any(text[a.end() : b.start()] not in (" ", "-") for a, b in pairwise(some)):
            continue
        phrase = text[some[0].start() : some[-1].end()].rstrip("./-")
        names = record.look(phrase)
        formal = "_" in phrase or "/" in phrase
        if names or (size == 1 and formal and phrase.count("/") < 2):
            start, end = some[0].start(), some[0].start() + len(phrase)
            own = bool(names.keys) and not names.columns and len(phrase) > 2 and phrase.lower() not in w.LINKS
            sure = bool(names) and (formal or size > 1 or phrase.lower() in PLAIN_NAMES or own)
            return size, Mention(
                start, end, phrase, names, (sure and formal) or (sure and _is_itself(text, start, end))
            )
    return 1, None


def _is_itself(text: str, start: int, end: int) -> bool:
    """Not `discounted return` and not `entropy bonus`: those are other things."""
    before = re.search(r"([\w\-']+)[ `]*$", text[max(0, start - 24) : start])
    behind = re.match(r"[ `]*([\w\-']+(?: [\w\-]+)?)", text[end : end + 30])
    other = before is not None and w.NOT_THIS_METRIC_BEFORE.fullmatch(before[1])
    return not other and not (behind is not None and w.NOT_A_METRIC_BEHIND.match(behind[1]))


def only_number(cell: str) -> Number | None:
    """The number that a cell holds alone; a spread behind it is left out."""
    bare = cell.strip(" *`~≈").partition("±")[0].strip()
    in_cell = numbers(bare)
    return in_cell[0] if len(in_cell) == 1 and in_cell[0].text == bare else None


def bare(cell: str) -> str:
    return cell.strip(" *`")


def measures(one: Number) -> bool:
    """Whether a number without a metric looks like a result rather than a count."""
    return one.percent or one.unit < 1


def inside(one: Number, spans: list[tuple[int, int]]) -> bool:
    return any(a <= one.start < b for a, b in spans)


def closed(text: str, end: int) -> int:
    """The end of the brackets that open right behind a number, else of the number."""
    opens = text[end : end + 2].strip()[:1]
    close = text.find(")", end, end + 40) if opens in ("(", ")") else -1
    return close + 1 if close > 0 else end


def quoted(text: str, start: int, end: int) -> str:
    return text[max(0, start) : end].replace("`", "").strip(" ,;|*")[:100]


def stands_as_heading(line: Line) -> bool:
    """A short line without numbers that is no item of a list: people write headings like this as well."""
    bare = line.text.strip()
    return (
        len(bare) <= 100
        and not MARKER.match(line.text)
        and bare[-1:] not in ".;,"
        and not numbers(bare)
        and line.text == line.text.lstrip()
    )
