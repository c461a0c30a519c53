"""Where is a sentence cut? Into segments between commas, brackets and conjunctions, each with the steps, numbers and
names that stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from relab.notebook.check import words as w
from relab.notebook.check.parts import Mention, mentions
from relab.notebook.check.record import RunRecord
from relab.notebook.check.when import When, spans_of_steps, whens
from relab.notebook.check.wording import Number, numbers

MAX_MARKS = 100  # steps in a line
CUT = re.compile(
    r"(?i),(?!\d)|[()]|(?<=\s)(?:and then|and|but|then|before|while|whereas|though|although|yet|after which|only to|"
    r"ending|finishing)(?=\s)|但"
)
RANGE = re.compile(r"(?i)\bbetween\s+\S+\s*$")
UNIT = re.compile(
    r"(?i)^\s?(?:s|sec|secs|seconds?|ms|mins?|minutes?|h|hours?|days?|[gm]i?b|gpus?|cpus?|cores?|workers?|threads?|layers?|"
    r"units?|seeds?|runs?|times|rows|evaluations?|checkpoints?|standard errors?|sigmas?|hz|x)\b(?!\s*=)"
)
ENDS = re.compile(
    r"(?i)\b(higher|larger|lower|smaller) at the end than (?:at|in|it was at) the (?:start|beginning|outset)\b"
)


@dataclass
class Segment:
    """A piece of a sentence between commas, brackets and conjunctions, with what was recognised in it."""

    start: int
    end: int
    text: str
    joint: str = ""  # the sign or word before it
    bracket: bool = False
    whens: list[When] = field(default_factory=list)
    figures: list[Number] = field(default_factory=list)
    names: list[Mention] = field(default_factory=list)
    others: bool = False  # speaks of another run

    @property
    def only_when(self) -> bool:
        return bool(self.whens) and not self.figures and not self.names


def sentences(text: str) -> list[tuple[int, int]]:
    """(start, end) between semicolons and full stops that stand outside of brackets."""
    spans, depth, start = [], 0, 0
    for at, sign in enumerate(text):
        depth = max(0, depth + (sign in "([{") - (sign in ")]}"))
        near = text[at + 1 : at + 2]
        stop = sign in ";!?" or (
            sign == "." and near in (" ", "") and not text[:at].lower().endswith(("approx", "vs", "ca"))
        )
        if stop and depth == 0:
            spans.append((start, at))
            start = at + 1
    return [*spans, (start, len(text))]


@dataclass(frozen=True)
class Marks:
    """Steps and numbers of a line; a line with very many of them is read up to there."""

    whens: list[When]
    figures: list[Number]
    hidden: list[tuple[int, int]]  # digits that are steps or lengths in steps


def marks(text: str) -> Marks:
    quoted = whens(text)[:MAX_MARKS]
    return Marks(quoted, numbers(text)[: 2 * MAX_MARKS], spans_of_steps(text, quoted)[: 2 * MAX_MARKS])


def segments(text: str, span: tuple[int, int], line: Marks, record: RunRecord) -> list[Segment]:
    start, end = span
    quoted = [one for one in line.whens if start <= one.start < end]
    figures = [n for n in line.figures if start <= n.start < end]
    return [_segment(text, cut, quoted, figures, line.hidden, record) for cut in _cuts(text, start, end, quoted)]


def _segment(
    text: str, cut: tuple[int, int, str, bool], quoted: list[When], figures: list[Number],
    hidden: list[tuple[int, int]], record: RunRecord,
) -> Segment:  # fmt: skip
    a, b, joint, bracket = cut
    here = [one for one in quoted if a <= one.start < b]
    values = [one for one in here if one.bare and _is_value(one, here, figures, (a, b))]
    veiled = [(s, e) for s, e in hidden if not any(s < one.stop and one.start < e for one in values)]
    piece = Segment(a, b, text[a:b], joint, bracket, [one for one in here if one not in values])
    inside = [n for n in figures if a <= n.start < b and not any(s <= n.start < e for s, e in veiled)]
    piece.figures = [n for n in inside if not UNIT.match(text[n.end : n.end + 16])]
    piece.names = mentions(text, a, b, record, veiled)
    own = ENDS.sub(" ", w.ABOVE.sub(" ", w.BELOW.sub(" ", piece.text)))  # `less than 0.2` is a bound
    piece.others = bool(w.OTHERS.search(unnamed(own, piece)) or w.OTHER_TASK.search(piece.text))
    return piece


def _cuts(text: str, start: int, end: int, quoted: list[When]) -> Iterator[tuple[int, int, str, bool]]:
    at, joint, depth = start, "", 0
    for match in CUT.finditer(text, start, end):
        inside = any(one.start < match.end() and match.start() < one.stop for one in quoted)
        if inside or (match[0].lower() == "and" and RANGE.search(text[at : match.start()])):
            continue
        yield at, match.start(), joint, depth > 0
        depth = max(0, depth + (match[0] == "(") - (match[0] == ")"))
        at, joint = match.end(), match[0].lower()
    yield at, end, joint, depth > 0


def _is_value(bare: When, here: list[When], figures: list[Number], span: tuple[int, int]) -> bool:
    """`settled at 2.5k`: with no other number beside it, it is no step."""
    inside = [n for n in figures if span[0] <= n.start < span[1] and not any(o.start <= n.start < o.stop for o in here)]
    return not inside and len(here) == 1


def unnamed(part: str, piece: Segment) -> str:
    for name in piece.names:
        part = part.replace(name.word, " ")
    return part
