"""How do people read it? Numbers and durations in few characters, and how wide a text is on a screen.

Chinese, Japanese and Korean signs take two columns, combining marks none.
"""

from __future__ import annotations

import math
import unicodedata

MORE = " ..."


def width(text: str) -> int:
    """Columns that a text takes.

    >>> width("lr 0.1"), width("学习率 0.1")
    (6, 10)
    """
    return sum(map(_columns, text))


def _columns(sign: str) -> int:
    if unicodedata.combining(sign) or unicodedata.category(sign) in ("Cf", "Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(sign) in ("W", "F") else 1


def pad(text: str, columns: int) -> str:
    """Filled with blanks up to a width; a text that is wider stays as it is."""
    return text + " " * max(0, columns - width(text))


def cut(text: str, columns: int, more: str = MORE) -> str:
    """Not wider than `columns`; what was cut off is marked."""
    if width(text) <= columns:
        return text
    kept, left = "", columns - width(more)
    for sign in text:
        left -= _columns(sign)
        if left < 0:
            break
        kept += sign
    return kept.rstrip() + more


def wrap(text: str, columns: int, head: str = "", most: int | None = None) -> list[str]:
    """Lines not wider than `columns`, the first behind `head`, the others below it.

    Latin words stay whole where they fit; between two wide signs a line may end anywhere, as in Chinese print.
    """
    indent, lines, line = " " * width(head), [], head
    for piece in _pieces(text):
        bare = line.rstrip()
        if width(line + piece.rstrip()) > columns and bare not in (head.rstrip(), ""):
            lines.append(bare)
            line = indent + piece.lstrip()
        else:
            line += piece if line.strip() else piece.lstrip()
    lines.append(line.rstrip())
    if most is None or len(lines) <= most:
        return lines
    return [*lines[: most - 1], cut(lines[most - 1] + MORE + MORE, min(columns, width(lines[most - 1]) + width(MORE)))]


def _pieces(text: str) -> list[str]:
    """Where a line may end: behind a blank, before or behind a wide sign; closing marks stay with what they close."""
    pieces: list[str] = []
    wide_before = False
    for sign in " ".join(text.split()):
        wide = _columns(sign) == 2
        closes = sign in "，。；：、！？）】》」』”’,.;:!?)]}"
        joins = bool(pieces) and (closes or not (wide or wide_before or pieces[-1].endswith(" ")))
        if joins or (pieces and sign == " "):
            pieces[-1] += sign
        else:
            pieces.append(sign)
        wide_before = wide
    return pieces


def rows(table: list[list[str]], gap: str = "  ") -> list[str]:
    """A table for the terminal, its columns aligned by what they take on the screen."""
    wide = [max(width(row[i]) for row in table) for i in range(len(table[0]))]
    return [gap.join(pad(cell, n) for cell, n in zip(row, wide, strict=True)).rstrip() for row in table]


def number(x: float) -> str:
    """Short and honest: four significant digits, no exponent where none is needed."""
    if isinstance(x, float) and not math.isfinite(x):
        return str(x)
    if isinstance(x, int) or (abs(x) < 1e6 and x == int(x)):
        return f"{int(x):,}"
    return f"{x:,.1f}" if 100 <= abs(x) < 1e6 else f"{x:.4g}"


def figure(value: float, digits: int = 3) -> str:
    """A number of a few digits; powers of ten only where digits alone would mislead or take long.

    >>> figure(1715.8), figure(110.4, 2), figure(0.04299), figure(2.5e-7), figure(3e12), figure(-0.0)
    ('1,716', '110', '0.043', '2.5e-07', '3e+12', '0')
    """
    text = f"{value + 0.0:.{digits}g}"
    return f"{value:,.0f}" if "e" in text and 10 <= abs(value) < 1e9 else text


def count(x: float) -> str:
    """12,345 -> 12.3k."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(x) >= 0.9995 * size:  # 999,600 rounds to 1M
            return f"{x / size:.3g}{unit}" if abs(x) < 999.5 * size else f"{x / size:,.0f}{unit}"
    return f"{x:.0f}"


def plural(n: int, word: str, words: str = "") -> str:
    """1 seed, 12 seeds; `words` where the plural has another ending.

    >>> plural(1, "run"), plural(1200, "run"), plural(0, "entry", "entries")
    ('1 run', '1,200 runs', '0 entries')
    """
    return f"{n:,} {word if n == 1 else words or word + 's'}"


def duration(seconds: float) -> str:
    if not math.isfinite(seconds):
        return "?"
    if seconds < 59.5:
        return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"
    if seconds >= 3 * 86_400:
        return f"{seconds / 86_400:.1f} days"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest:02d}s" if minutes < 60 else f"{minutes // 60}h{minutes % 60:02d}m"


def pace(sps: float, unit: str) -> str:
    """Speed as people say it: of what takes longer than a second, how long.

    >>> pace(21_000.0, "steps"), pace(0.04, "iterations")
    ('21k/s', '25s an iteration')
    """
    if not 0 < sps < 1:
        return f"{count(sps)}/s"
    return f"{duration(1 / sps)} {'an' if unit[0] in 'iu' else 'a'} {unit.removesuffix('s')}"


def age(seconds: float) -> str:
    """How long ago, in one unit; a time in the future is a clock that is wrong."""
    if seconds > 1e9:
        return "?"
    if seconds < -60:
        return "in the future"
    for unit, length in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length or (unit != "d" and seconds >= length):
            return f"{int(seconds // length)} {unit}"
    return f"{max(int(seconds), 0)} s"


def size(count: float) -> str:
    for unit, length in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= length:
            return f"{count / length:.3g} {unit}" if count < 1000 * length else f"{count / length:,.0f} {unit}"
    return f"{int(count)} B"


def in_a_line(text: str) -> str:
    """Line breaks and runs of blanks as one blank: a name stands in tables and heads.

    >>> in_a_line("one\\n  two ")
    'one two'
    """
    return " ".join(text.split())
