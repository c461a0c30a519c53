"""What does a write-up say, line by line? Markdown as lines with their headings and tables; the numbers in them.

Plain text, English and Chinese: full-width digits and punctuation are read as their plain forms. Code blocks hold
commands and output, not claims: they are left out. Every pattern here is linear in the length of a line.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field, replace
from pathlib import Path

from relab.base.jsonl import RecordError
from relab.base.numbers import to_int
from relab.notebook.check import words as w

MAX_BYTES, MAX_LINE = 4_000_000, 4_000
SUFFIX = {"k": 1e3, "K": 1e3, "M": 1e6, "B": 1e9, "万": 1e4, "亿": 1e8}
DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?|\.\d+(?:[eE][-+]?\d+)?"
NUMBER = re.compile(rf"(?<![A-Za-z0-9_.])([-+]?)({DIGITS})(?: ?([kKMB](?![A-Za-z])|[万亿%]))?")
NO_NUMBERS = re.compile(  # dates, times, versions and links hold digits that measure nothing
    r"\d{4}[-/]\d{1,2}[-/]\d{1,2}(?:[T ]\d[\d:]*Z?)?|\d{1,2}:\d{2}(?::\d{2})?|(?<!\d)\d+\.\d+\.\d[\d.]*|https?://\S+"
)
PLAIN = str.maketrans(
    {"−": "-", "–": "~", "—": ";", "⁄": "/", "“": '"', "”": '"', "‘": "'", "’": "'", "。": ";", "、": ","}
)
POINT = re.compile(r"\d\.\d")
COMMA = re.compile(r"(?<![\w,.\[(])(-?\d{1,4}),(\d{1,2})(?![\d,.]|\w)")  # 0,35 in a line without a decimal point
HEADING = re.compile(r"^ {0,3}(#{1,6})\s+(\S.*)$")
ITEM = re.compile(r"^\s*(?:[-*+>]|\d{1,3}[.)])\s")
WRAPPED = 60  # characters: shorter lines end where their writer ended them
FENCE = re.compile(r"^\s*(```|~~~)")
OWN = re.compile(r"<!-- ?relab:[^<>]*-->")  # relab's own marks: where a number is from, facts for programs
RULE_ROW = re.compile(r"^[\s|:\-]+$")


@dataclass(frozen=True)
class Number:
    """A number as it was written: its value, the size of its last digit, where it stands."""

    text: str
    value: float
    unit: float
    start: int = 0
    end: int = 0
    hedged: bool = False
    percent: bool = False

    @property
    def digits(self) -> int:
        """Significant digits as shown."""
        return len(re.sub(r"[^0-9]", "", re.split(r"[eE]", self.text)[0]).lstrip("0"))


@dataclass(frozen=True)
class Line:
    """One line outside of code: its text in plain forms, as written, and the headings above it (nearest last)."""

    number: int
    text: str
    raw: str
    headings: tuple[tuple[int, str], ...] = ()
    heading: int = 0  # its own level
    breaks: tuple[tuple[int, int], ...] = ()  # (offset, line number) where lines of a paragraph were joined

    def at(self, offset: int) -> int:
        """The number of the line that a place in the text stands in."""
        return max([self.number, *(number for start, number in self.breaks if start <= offset)])


@dataclass
class Table:
    """A pipe table: header cells, rows of cells with their lines."""

    header: list[str]
    rows: list[tuple[Line, list[str]]] = field(default_factory=list)


@dataclass
class Text:
    """A write-up: lines and tables in order; what was left out."""

    blocks: list[Line | Table] = field(default_factory=list)
    lines: int = 0
    cut: str = ""  # what was not read, and why


def read(path: Path) -> Text:
    """The write-up in a file; RecordError where it is no text."""
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise RecordError(f"{path}: cannot be read: {error.strerror or error}") from None
    if b"\0" in data[:100_000]:
        raise RecordError(
            f"{path} must be a text, but holds a zero byte at {data.index(0)}; give a Markdown or text file"
        )
    text = parse(data[:MAX_BYTES].decode("utf-8-sig", errors="replace"))
    if len(data) > MAX_BYTES:
        text.cut = f"only its first {MAX_BYTES / 1_000_000:g} MB were read"
    return text


def parse(source: str) -> Text:
    """Lines and tables, without code blocks."""
    text = Text()
    headings: tuple[tuple[int, str], ...] = ()
    fence, long = "", 0
    for number, raw in enumerate(source.splitlines(), 1):
        text.lines = number
        raw = OWN.sub("", raw)
        mark = FENCE.match(raw)
        if mark and (not fence or fence == mark[1]):
            fence = "" if fence else mark[1]
        if mark or fence or not raw.strip():
            _add(text, None)
            continue
        long += len(raw) > MAX_LINE
        line = Line(number, plain(raw[:MAX_LINE]), raw.strip()[:MAX_LINE], headings)
        if title := HEADING.match(line.text):
            level = len(title[1])
            headings = (*((n, t) for n, t in headings if n < level), (level, title[2]))
            line = Line(number, title[2], line.raw, headings, level)
        _add(text, line)
    text.cut = f"{long} lines were cut at {MAX_LINE} characters" if long else ""
    text.blocks = [block for block in text.blocks if isinstance(block, Table) or block.number]
    return text


def _add(text: Text, line: Line | None) -> None:
    """A line, or a row of the table above it; an empty line ends a table."""
    end = Line(0, "", "")
    if line is None:
        text.blocks.append(end)
        return
    last = text.blocks[-1] if text.blocks else None
    if RULE_ROW.match(line.text) and "|" in line.text and isinstance(last, Line) and "|" in last.text:
        text.blocks[-1] = Table(cells(last.text))
    elif isinstance(last, Table) and "|" in line.text:
        last.rows.append((line, cells(line.text)))
    elif isinstance(last, Line) and last.number and _goes_on(last, line):
        text.blocks[-1] = _joined(last, line)
    else:
        text.blocks.append(line)


def _goes_on(last: Line, line: Line) -> bool:
    """Whether a line is the next of a wrapped paragraph: the one before is long and ends inside of a sentence."""
    long = len(last.text) - (last.breaks[-1][0] if last.breaks else 0) >= WRAPPED
    inside = last.text.rstrip()[-1:] not in ".;:!?|" and not last.heading and not line.heading
    return long and inside and len(last.text) < MAX_LINE and "|" not in line.text and not ITEM.match(line.text)


def _joined(last: Line, line: Line) -> Line:
    start = len(last.text) + 1
    breaks = (*last.breaks, (start, line.number))
    return replace(last, text=f"{last.text} {line.text.strip()}", raw=f"{last.raw} {line.raw}", breaks=breaks)


def cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.strip().strip("|").split("|")]


def plain(raw: str) -> str:
    """Full-width and raised forms as plain ones, arrows as →, dashes as the signs they stand for.

    >>> plain("提升到０．８５％（iter40） A -> B early_death₁₀₀")
    '提升到0.85%(iter40) A → B early_death100'
    """
    text = unicodedata.normalize("NFKC", raw).translate(PLAIN).replace("-->", "→").replace("->", "→").replace("=>", "→")
    text = text.replace("**", "")  # bold: the stars are no multiplication
    return text if POINT.search(text) else COMMA.sub(r"\1.\2", text)


# ---- Numbers


def number(match: re.Match[str], text: str) -> Number:
    """A match of NUMBER with its precision.

    >>> [(n.value, n.unit) for n in numbers("124.6k, 11,038,720, 2.777e-05 and 84.7%")]
    [(124600.0, 100.0), (11038720.0, 1.0), (2.777e-05, 1e-08), (84.7, 0.1)]
    """
    sign, body, suffix = match[1], match[2], match[3] or ""
    mantissa, _, power = body.lower().partition("e")
    decimals = len(mantissa.partition(".")[2])
    size = SUFFIX.get(suffix, 1.0)
    value = float(f"{sign}{body.replace(',', '')}") * size
    tens = to_int(power or 0)  # None: more digits than any count has
    unit = float(f"1e{tens - decimals}") * size if tens is not None and abs(tens) < 300 else 0.0
    before = re.sub(r" (?:a|an|the|of|at)$", "", text[max(0, match.start() - 30) : match.start()].rstrip(" (").lower())
    hedged = before.endswith(w.HEDGES) and not re.search(r"\d ?~$", before)  # 10~20 is a range
    hedged = hedged or bool(w.HEDGES_BEHIND.match(text[match.end() : match.end() + 20]))
    return Number(match[0], value, unit, match.start(), match.end(), hedged, suffix == "%")


def numbers(text: str) -> list[Number]:
    """The numbers that can be results: none in dates, versions, words and sums (4×8, 28/56, 56 % 28)."""
    hidden = NO_NUMBERS.sub(lambda m: " " * len(m[0]), text)
    results = []
    for match in NUMBER.finditer(hidden):
        before, after = hidden[: match.start()].rstrip(" ")[-1:], hidden[match.end() :].lstrip(" ")[:1]
        close = hidden[match.end() : match.end() + 1]
        glued = close.isascii() and (close.isalpha() or close == "_")
        part = (before != "" and before in "×*/^%") or (after != "" and after in "×*/^=")
        modulo = match[3] == "%" and after.isdigit()
        if not (glued or part or modulo):
            results.append(number(match, hidden))
    return results
