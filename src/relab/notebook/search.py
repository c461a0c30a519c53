"""Where does the log speak of it? Entries and a person's own text that hold all the words, with the lines that do."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from relab.base.documents import Document
from relab.base.places import printable
from relab.base.text import cut, plural
from relab.config.base import require
from relab.notebook import log
from relab.notebook.digest import verdict_word
from relab.notebook.log import Logged
from relab.notebook.words import words

CONTEXT = 1  # lines around a match
SHOWN = 6  # lines of one entry
WIDTH = 118


@dataclass(frozen=True)
class Hit:
    """An entry, or a person's piece of text, that holds the words."""

    entry: Logged
    lines: list[tuple[int, str, bool]]  # number in the file, text, whether it matches
    matches: int

    def to_dict(self) -> Document:
        one = self.entry
        rows = [{"line": n, "text": text, "match": hit} for n, text, hit in self.lines]
        return {"entry": one.id or None, "log": str(one.path), "line": one.line, "date": one.date or None,
                "title": one.title, "run": one.facts.get("name"), "verdict": one.verdict or None,
                "superseded": one.superseded or None, "matches": self.matches, "lines": rows}  # fmt: skip


def search(logs: Iterable[Path], terms: Sequence[str], regex: bool = False) -> list[Hit]:
    """What holds all of the words, oldest first; letters of either case and of either width are the same."""
    tests = [matcher(word, regex) for word in terms]
    pieces = [one for path in logs for file in log.files(path) for one in log.read(file) if one.id != log.INDEX]
    hits = [hit for one in pieces if (hit := _hit(one, tests)) is not None]
    return sorted(hits, key=lambda hit: (hit.entry.date, str(hit.entry.path), hit.entry.line))


def matcher(word: str, regex: bool) -> Callable[[str], bool]:
    """A plain word is looked for anywhere: Chinese has no blanks between words."""
    if not regex:
        plain = folded(word)
        return lambda line: plain in folded(line)
    try:
        pattern = re.compile(word, re.IGNORECASE)
    except re.error as error:
        pattern = re.compile("")
        require(False, f"`--regex` needs a pattern, but {word!r} is none: {error}")
    return lambda line: pattern.search(line) is not None


def folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def _hit(one: Logged, tests: Sequence[Callable[[str], bool]]) -> Hit | None:
    lines = [log.plain(line) for line in one.text.split("\n")]
    if not all(any(test(line) for line in lines) for test in tests):
        return None
    places = [i for i, line in enumerate(lines) if any(test(line) for test in tests)]
    near = sorted({j for i in places for j in range(max(0, i - CONTEXT), min(len(lines), i + CONTEXT + 1))})
    first = one.line + (1 if one.id else 0)  # an entry's text begins below its mark
    kept = [(first + i, lines[i], i in places) for i in near if lines[i].strip()]
    return Hit(one, kept, len(places))


def text(hits: Sequence[Hit], terms: Sequence[str]) -> str:
    """For a terminal: a head a piece, then its lines; those that match are marked."""
    if not hits:
        return f"nothing in the log holds {' and '.join(map(printable, terms))}"
    return "\n\n".join("\n".join(_shown(hit)) for hit in hits)


def _shown(hit: Hit) -> list[str]:
    one = hit.entry
    verdict = f"  [{verdict_word(one, words(one.lang))}]" if one.verdict or one.superseded else ""
    kind = f"  entry {one.id}" if one.id else "  (own text)"
    head = cut(printable(f"{one.where}{kind}{verdict}  {one.title}"), WIDTH)
    rows = [f"  {'>' if match else ' '} {number}: {printable(line)}" for number, line, match in hit.lines[:SHOWN]]
    left = len(hit.lines) - SHOWN
    more = [f"    and {plural(left, 'more line')}"] if left > 0 else []
    return [head, *(cut(row, WIDTH) for row in rows), *more]
