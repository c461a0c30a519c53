"""How wide is a text on a screen? Chinese, Japanese and Korean signs take two columns, combining marks none."""

from __future__ import annotations

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
    found: list[str] = []
    wide_before = False
    for sign in " ".join(text.split()):
        wide = _columns(sign) == 2
        closes = sign in "，。；：、！？）】》」』”’,.;:!?)]}"
        joins = bool(found) and (closes or not (wide or wide_before or found[-1].endswith(" ")))
        if joins or (found and sign == " "):
            found[-1] += sign
        else:
            found.append(sign)
        wide_before = wide
    return found


def rows(table: list[list[str]], gap: str = "  ") -> list[str]:
    """A table for the terminal, its columns aligned by what they take on the screen."""
    wide = [max(width(row[i]) for row in table) for i in range(len(table[0]))]
    return [gap.join(pad(cell, n) for cell, n in zip(row, wide, strict=True)).rstrip() for row in table]
