"""How do the cells of a CSV become columns? Lines in chunks: one of plain numbers at C speed, any other cell by cell.

What is read does not depend on which way a chunk went. Numbers of a large file take 8 bytes each, not their text.
"""

from __future__ import annotations

import codecs
import csv
import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np
import orjson

from relab.base import limits
from relab.base.jsonl import MAX_PROBLEMS, Problem
from relab.formats.read import common, table
from relab.formats.read.decimal_commas import read_commas
from relab.formats.read.table import KEYS, Coded, Packed, Table

DELIMITERS = ",;\t"
HEAD_BYTES = 1 << 18
LONGEST = limits.LINE
LARGE = 1 << 18  # bytes of a chunk from which on plain numbers are looked for
MAX_COLUMNS = 20_000
MAX_SLOW = 1_000_000  # rows that are read cell by cell: those of plain numbers take a tenth of the time
LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")  # io.StringIO would take four bytes for each character
Texts = dict[int, Coded]  # column -> its cells
SAYS = {
    "shorter": "rows are shorter than the header of {width}; their missing cells count as empty",
    "longer": "rows are longer than the header of {width} (did columns come in later?); the rest was left out",
    "again": "lines are a header again, as after a restart, and were left out",
}


def text_of(data: bytes) -> str:
    """UTF-8, or UTF-16 that says so, as the shell of Windows writes it."""
    wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if wide else "utf-8-sig", "replace")


def header_of(data: bytes) -> list[str]:
    """The names in the first line; none where it is no header."""
    text = text_of(data)
    if "\0" in text:
        return []
    line = next((li for li in text.splitlines() if li.strip() and li[0] != "#"), "")
    try:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=delimiter(line)), [])]
    except csv.Error:
        return []
    return cells if _are_names(cells) else []


def _are_names(cells: list[str]) -> bool:
    """Text in every cell but the first: pandas leaves the name of its index empty."""
    return bool(cells) and len(cells) <= MAX_COLUMNS and all(cells[1:]) and not any(is_number(cell) for cell in cells)


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def delimiter(line: str) -> str:
    return max(DELIMITERS, key=line.count)


def parse(data: bytes | Iterable[bytes], file: str) -> Table:
    """The cells of a file that is given whole, or in blocks."""
    parsed = Table(file)
    chunks = _chunks(parsed, _utf8([data] if isinstance(data, bytes) else data))
    first = next(chunks, b"")
    names = header_of(first[:HEAD_BYTES])
    if not names:
        parsed.problems.append(Problem(file, 1, "the first line must name the columns, but does not"))
        return parsed
    body = Body(parsed, _unique(parsed, names), delimiter(_head_line(text_of(first[:HEAD_BYTES]))))
    body.read(first, chunks)
    body.finish()
    return parsed


def _unique(target: Table, names: list[str]) -> list[str]:
    counts: dict[str, int] = {}
    unique = []
    for i, name in enumerate(names):
        name = name or f"unnamed_{i}"
        counts[name] = counts.get(name, 0) + 1
        unique.append(name if counts[name] == 1 else f"{name}_{counts[name]}")
    twice = [name for name, count in counts.items() if count > 1]
    if twice:
        message = f"{len(twice)} names are given to several columns, first `{twice[0]}`; the later ones got a number"
        target.problems.append(Problem(target.file, 1, message))
    return unique


# ---- Whole lines


def _utf8(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """UTF-16 that says so, as UTF-8; all else as it is, without the mark of UTF-8."""
    blocks = iter(blocks)
    first = next(blocks, b"")
    if not first.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    decoder = codecs.getincrementaldecoder("utf-16")("replace")
    for block in chain([first], blocks):
        yield decoder.decode(block).encode("utf-8", "replace")


def _chunks(target: Table, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines, some megabytes at a time, the header in the first; last what has no line break."""
    parts: list[bytes] = []  # what was read since the last chunk
    size, begun = 0, False
    for block in _shortened(target, blocks):
        end = block.rfind(b"\n") + 1 or block.rfind(b"\r", 0, -1) + 1
        size += len(block)
        if end and (begun or size >= HEAD_BYTES):
            yield b"".join([*parts, block[:end]])
            parts, size, begun = [block[end:]], len(block) - end, True
        else:
            parts.append(block)
    yield b"".join(parts)


def _shortened(target: Table, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks, but what a line has beyond its limit is left out, and it is said."""
    length, said = 0, False  # of the line that is not over yet
    for block in blocks:
        end = block.find(b"\n")
        if length <= LONGEST or end >= 0:
            yield block if length <= LONGEST else block[end:]
        elif not said:
            said = True
            message = f"a line is longer than {LONGEST:,} bytes; the rest of it was left out"
            target.problems.append(Problem(target.file, None, message))
        length = len(block) - 1 - block.rfind(b"\n") if end >= 0 else length + len(block)


def _head_line(text: str) -> str:
    return next((line for line in text.splitlines() if line.strip() and line[0] != "#"), "")


def _below_header(chunk: bytes) -> int:
    """Where the line after the header begins; 0 where the header is quoted, and may go on in further lines."""
    end = 0
    for match in LINE.finditer(chunk[:HEAD_BYTES].decode("latin-1")):  # a character for each byte
        end = match.end()
        if match[0].strip() and match[0][0] != "#":
            return 0 if match[0].count('"') % 2 else end
    return 0


# ---- Rows


class Body:
    """The rows below a header: the last ones as they were read, all before them as parts of columns."""

    def __init__(self, target: Table, names: list[str], delimiter: str):
        self.target, self.names, self.delimiter = target, names, delimiter
        self.lines, self.line = array("q"), 0  # of each row, from 1; lines read so far
        self.rows: list[list[str]] = []
        self.parts: dict[str, list[Any]] = {name: [] for name in names}
        self.odd: dict[str, array[int]] = {kind: array("q") for kind in SAYS}
        self.words = {i for i, name in enumerate(names) if common.plain(name) in KEYS}  # columns that stay text
        self.full, self.slow = False, 0  # rows that were read cell by cell

    def read(self, first: bytes, chunks: Iterator[bytes]) -> None:
        begin = _below_header(first)
        if not begin:
            self._slow(chain([first], chunks), header=True)
            return
        self.line = len(LINE.findall(first[:begin].decode("latin-1")))
        for chunk in chain([first[begin:]], chunks):
            if chunk.count(b'"') % 2:  # the chunk ends inside of a cell
                self._slow(chain([chunk], chunks))
            elif chunk and not (len(chunk) >= LARGE and self._fast(chunk)):
                self._slow([chunk])
            if self.full:
                return

    def finish(self) -> None:
        """The columns of the table; rows that were kept as text become numbers only beside others that are."""
        if any(self.parts.values()):
            self._pack()
        columns = zip(*self.rows, strict=True) if self.rows else ((),) * len(self.names)
        for name, column in zip(self.names, columns, strict=True):
            parts = self.parts.pop(name)
            self.target.cells[name] = table.join(parts) if parts else list(column)
        self.target.lines = self.lines
        read_commas(self.target)
        for kind, lines in self.odd.items():
            if lines:
                message = f"{len(lines)} {SAYS[kind].format(width=len(self.names))}"
                self.target.problems.append(Problem(self.target.file, lines[0], message))

    # ---- Plain numbers

    def _fast(self, chunk: bytes) -> bool:
        """Add a chunk of numbers; False, and nothing done, where there is anything else in it."""
        if b'"' in chunk or chunk.count(b"\r") != chunk.count(b"\r\n") or not chunk.endswith(b"\n"):
            return False
        apart = _apart(chunk.replace(b"\r\n", b"\n"), self.delimiter.encode(), len(self.names), self._texts(chunk))
        if apart is None:
            return False
        plain, texts = apart
        numbers = _matrix(plain, len(self.names) - len(texts))
        if numbers is None:
            return False
        self._pack()
        self._add(numbers, texts)
        return True

    def _texts(self, chunk: bytes) -> list[int]:
        """Columns that hold words: those that tell runs apart, and those whose first cell is one."""
        cells = chunk[: chunk.index(b"\n")].decode("utf-8", "replace").split(self.delimiter)
        words = {i for i, cell in enumerate(cells) if cell.strip() and not is_number(cell)}
        return sorted(self.words | words)

    def _add(self, numbers: Packed, texts: Texts) -> None:
        count = len(numbers)
        self.lines.extend(range(self.line + 1, self.line + count + 1))
        self.line += count
        at = 0
        for i, name in enumerate(self.names):
            if i in texts:
                self.parts[name].append(texts[i])
                continue
            empty = None if numbers.empty is None or not numbers.empty[:, at].any() else numbers.empty[:, at].copy()
            self.parts[name].append(Packed(np.ascontiguousarray(numbers.values[:, at]), empty))
            at += 1
        self.full = self.target.is_full(len(self.lines), len(self.names), self.line)

    # ---- Anything

    def _slow(self, chunks: Iterable[bytes], header: bool = False) -> None:
        """Add rows cell by cell; the last line of a file that has no line break is left out, and it is said."""
        ended = [True]
        rows = self._rows(chunks, ended, header)
        if header:
            next(rows, None)
        before = len(self.lines)
        for line, cells in rows:
            self._add_row(line, cells)
            self.full = self.target.is_full(len(self.lines), len(self.names), line) or self._is_long(line)
            if self.full:
                return
        if not ended[0] and len(self.lines) > before:
            self.rows.pop()
            message = "the last line has no line break and may be cut; it was left out"
            self.target.problems.append(Problem(self.target.file, self.lines.pop(), message))

    def _is_long(self, line: int) -> bool:
        """Whether as many rows as anybody waits for were read cell by cell."""
        self.slow += 1
        if self.slow < MAX_SLOW:
            return False
        message = f"{MAX_SLOW:,} rows are more than plain numbers, and are read one by one; the rest was left out"
        self.target.problems.append(Problem(self.target.file, line, message))
        return True

    def _rows(self, chunks: Iterable[bytes], ended: list[bool], header: bool) -> Iterator[tuple[int, list[str]]]:
        """(line, cells) of every line that holds something; comments before the header are left out."""
        reader = csv.reader(_lines(chunks, ended), delimiter=self.delimiter)
        begun, above = not header, self.line
        while True:
            line = self.line + 1
            try:
                cells = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                if len(self.target.problems) < MAX_PROBLEMS:
                    message = f"cannot be read as CSV: {error}"
                    self.target.problems.append(Problem(self.target.file, line, message))
                self.line = above + reader.line_num
                continue
            self.line = above + reader.line_num
            if any(cell.strip() for cell in cells) and (begun or not cells[0].startswith("#")):
                begun = True
                yield line, [cell.strip() for cell in cells]

    def _add_row(self, line: int, cells: list[str]) -> None:
        """Rows of equal length; a header that comes again is left out."""
        width = len(self.names)
        if cells[0] == self.names[0] and _are_names(cells):
            self.odd["again"].append(line)
            return
        if len(cells) != width:
            self.odd["shorter" if len(cells) < width else "longer"].append(line)
            cells = (cells + [""] * width)[:width]
        if len(self.rows) >= table.PACK:
            self._pack()
        self.lines.append(line)
        self.rows.append(cells)

    def _pack(self) -> None:
        """The rows so far as parts of columns."""
        columns = zip(*self.rows, strict=True) if self.rows else ()
        for i, column in enumerate(columns):
            self.parts[self.names[i]].append(column if i in self.words else table.pack(column))
        self.rows = []


def _lines(chunks: Iterable[bytes], ended: list[bool]) -> Iterator[str]:
    """The lines in the chunks; ended[0] says whether the last one had a line break."""
    for chunk in chunks:
        if chunk:
            ended[0] = chunk.endswith((b"\n", b"\r"))
            yield from (match[0] for match in LINE.finditer(chunk.decode("utf-8", "replace")))


# ---- Numbers at C speed


def _apart(chunk: bytes, delimiter: bytes, width: int, words: Sequence[int]) -> tuple[bytes, Texts] | None:
    """(the numbers, with commas between them; column -> its texts); None where a row has another length."""
    if delimiter != b"," and b"," in chunk:
        return None
    if not words:
        return chunk if delimiter == b"," else chunk.replace(delimiter, b","), {}
    rows = [line.split(delimiter) for line in chunk.split(b"\n")[:-1]]
    if any(len(row) != width for row in rows) or len(words) == width:
        return None
    texts = {i: _coded([row[i] for row in rows]) for i in words}
    plain = [i for i in range(width) if i not in texts]
    return b"\n".join([b",".join([row[i] for i in plain]) for row in rows]) + b"\n", texts


def _coded(cells: list[bytes]) -> Coded:
    """A column of words, each of which is kept once."""
    words: dict[str, int] = {}
    numbers = {cell: words.setdefault(cell.decode("utf-8", "replace").strip(), len(words)) for cell in set(cells)}
    return Coded(list(words), np.fromiter(map(numbers.__getitem__, cells), np.int32, len(cells)))


def _matrix(chunk: bytes, width: int) -> Packed | None:
    """Lines of numbers as an array; NaN stands for empty cells, or for NaN, but never for both."""
    gaps = chunk.startswith(b",") or any(gap in chunk for gap in (b",,", b",\n", b"\n,"))
    named = b"n" in chunk or b"N" in chunk
    if b"[" in chunk or b"{" in chunk or b"null" in chunk or b"\n\n" in chunk or (gaps and named):
        return None
    text = _filled(chunk) if gaps else _quoted(chunk) if named else chunk
    try:
        values = np.array(orjson.loads(b"[[" + text[:-1].replace(b"\n", b"],[") + b"]]"), np.float64)
    except (ValueError, TypeError, OverflowError):  # words, rows of different lengths, numbers that JSON does not know
        return None
    if values.ndim != 2 or values.shape[1] != width:
        return None
    return Packed(values, np.isnan(values) if gaps else None)


def _filled(chunk: bytes) -> bytes:
    chunk = (b"null" if chunk.startswith(b",") else b"") + chunk
    chunk = chunk.replace(b"\n,", b"\nnull,").replace(b",\n", b",null\n")
    return chunk.replace(b",,", b",null,").replace(b",,", b",null,")


def _quoted(chunk: bytes) -> bytes:
    for word, quoted in ((b"-inf", b'"-Infinity"'), (b"inf", b'"inf"'), (b"nan", b'"nan"'), (b"NaN", b'"nan"')):
        chunk = chunk.replace(word, quoted)
    return chunk
