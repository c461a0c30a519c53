"""How is a line of a write-up taken apart? Names of runs and metrics, the number behind them, pairs, quoted steps."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from relab.notebook.check import words as w
from relab.notebook.check.record import Names, RunRecord, normal
from relab.notebook.check.wording import Line, Number, Step, numbers, steps

WORD = re.compile(r"[A-Za-z][A-Za-z0-9_/.]*(?:-[A-Za-z0-9_/.]+)*")
STAMP = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:?\d\d(?::?\d\d)?")
SURE_WORDS = {"return", "entropy", "kl", "clipfrac", "score"}
ARROWS, RANGES, SPREADS = (
    {"→", "to", "到", "至", "降到", "升到", "提升到", "下降到", "上升到"},
    {"~", "-", "~ "},
    {"±", "+/-"},
)
MARKER = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+")
BOUND = re.compile(r"[<>≤≥]")
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_\-]{7,}")  # what a run may be called
REACH = 40  # characters between a metric and its number


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
    """What can be written for a run -> its name: the name, its folder, its id, and parts that only one run has."""
    runs_by_word: dict[str, set[str]] = {}
    for name, record in records.items():
        whole = {name, record.view.history.folder.name, str(record.view.meta.get("id") or name)}
        pieces = {piece for word in whole for piece in re.split(r"[-_/T]", word)}
        whole |= {piece for piece in pieces if len(piece) >= 6 and re.search(r"\d", piece)}
        for word in whole:
            if len(word) > 2 and word not in ("runs", "run"):
                runs_by_word.setdefault(word, set()).add(name)
    return {
        word: word if word in runs else next(iter(runs))
        for word, runs in runs_by_word.items()
        if len(runs) == 1 or word in runs
    }


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


def step_of(text: str, start: int, end: int) -> tuple[Step | None, bool, bool]:
    """The step a clause speaks of, whether that is clear (not several), and whether its line begins with it."""
    steps_quoted = steps(text)
    lead = MARKER.match(text)
    begin = lead.end() if lead else 0
    first = [
        s for s, a, b in steps_quoted if text[begin:a].strip(" *`") == "" and text[b : b + 3].strip(" *`")[:1] == ":"
    ]
    here = [s for s, a, _ in steps_quoted if start <= a < end and _depth(text, a) == 0]
    if len(here) == 1 and here[0].exact:
        return here[0], True, here == first
    intro = [s for s, a, b in steps_quoted if s.exact and text[b:start].strip(" *`") == "," and _opens(text[begin:a])]
    if intro and not here:
        return intro[0], True, True
    return (first[0], True, True) if first and not here else (None, not here, False)


def _opens(before: str) -> bool:
    """Whether a sentence begins here: `After 2,048 steps, the entropy is 0.5`."""
    return before.strip(" *`")[-1:] in ("", ".", ";", ":", "!", "?")


def in_brackets(text: str, one: Number) -> tuple[Step | None, bool]:
    """The step in brackets right behind a number; True where they hold a bound or several."""
    rest = text[one.end : one.end + 60].lstrip(" `*")
    if not rest.startswith("("):
        return None, False
    inner = rest[1:].partition(")")[0]
    bracketed = [step for step, _, _ in steps(inner)]
    return (bracketed[0] if len(bracketed) == 1 and bracketed[0].exact else None), len(bracketed) > 1 or bool(
        BOUND.search(inner)
    )


def beside(text: str, one: Number, step: Step | None, figures: list[Number]) -> bool:
    """Whether the step of a clause belongs to this one of its numbers: the only one, or right before or behind it."""
    if step is None or len(figures) < 2:
        return True
    behind = [a for s, a, _ in steps(text) if s == step and 0 <= a - one.end <= 12]
    return bool(behind) and not any(one.end <= other.start < behind[0] for other in figures)


def _depth(text: str, at: int) -> int:
    return text.count("(", 0, at) - text.count(")", 0, at)


def linked(gap: str) -> bool:
    """Whether nothing but signs and linking words stands between a metric and its number."""
    if len(gap) > REACH:
        return False
    rest = w.LINKS_CJK.sub(" ", gap)
    rest = re.sub(r"iter[a-z]*\s?\d+|step\s?\d+", " ", rest)
    if re.search(r"\d", rest):
        return False
    words = re.findall(r"[^\W\d_]+", rest.lower())
    if w.MOVES & set(words) and not {"to", "from", "at"} & set(words):
        return False
    return all(word in w.LINKS for word in words)


def before(names: list[Mention], one: Number) -> Mention | None:
    near = [m for m in names if m.end <= one.start and one.start - m.end <= REACH]
    return near[-1] if near else None


def pair_of(text: str, figures: list[Number], index: int) -> tuple[Number | None, str]:
    """The second of two numbers that belong together, and how: arrow, range or spread."""
    if index + 1 >= len(figures):
        return None, ""
    gap = text[figures[index].end : figures[index + 1].start].strip(" `*")
    for kind, signs in (("arrow", ARROWS), ("range", RANGES), ("spread", SPREADS)):
        if gap.lower() in signs:
            return figures[index + 1], kind
    return None, ""


def longest(text: str, tokens: list[re.Match[str]], at: int, record: RunRecord) -> tuple[int, Mention | None]:
    for size in (3, 2, 1):
        some = tokens[at : at + size]
        if len(some) < size or any(text[a.end() : b.start()] not in (" ", "-") for a, b in pairwise(some)):
            continue
        phrase = text[some[0].start() : some[-1].end()].rstrip("./-")
        names = record.look(phrase)
        formal = "_" in phrase or "/" in phrase
        if names or (size == 1 and formal and phrase.count("/") < 2):
            sure = bool(names) and (formal or size > 1 or normal(phrase) in SURE_WORDS)
            return size, Mention(some[0].start(), some[0].start() + len(phrase), phrase, names, sure)
    return 1, None


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
