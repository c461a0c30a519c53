"""What is a section? A title with lines, tables, figures and code; cells are text. And what is it as JSON?"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

LEFT_OUT = {"left_out": True}  # metadata of a field that JSON does not mention where it is None


@dataclass(frozen=True)
class Table:
    """Head and rows of text."""

    caption: str
    head: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class Section:
    """A part of the page that is folded; `run` is filled in where a page has several."""

    title: str
    lines: list[str]
    tables: list[Table]
    code: str
    figures: list[Any]  # curves.Curve, or a drawing of drawings.py
    run: str = ""


def section(
    title: str,
    lines: Iterable[str] = (),
    tables: Iterable[Table] = (),
    code: str = "",
    figures: Iterable[Any] = (),
) -> Section:
    return Section(title, list(lines), list(tables), code, list(figures))


def table(head: list[str], rows: list[list[str]], caption: str = "") -> Table:
    return Table(caption, head, rows)


def plain(value: Any) -> Any:
    """Sections, tables and curves as JSON knows them: a mapping of their fields."""
    if is_dataclass(value) and not isinstance(value, type):
        known = {field: getattr(value, field.name) for field in fields(value)}
        return {f.name: plain(x) for f, x in known.items() if not (x is None and f.metadata == LEFT_OUT)}
    if isinstance(value, Mapping):
        return {key: plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, (list, tuple)) else value


def local_time(text: Any) -> str:
    """UTC as recorded -> the reader's clock, zone named; what is no time stays as it is."""
    try:
        stored = datetime.datetime.fromisoformat(str(text))
    except ValueError:
        return str(text)
    if stored.tzinfo is None:
        return str(text)
    here = stored.astimezone()
    return f"{here:%Y-%m-%d %H:%M:%S} {here.tzname() or ''}".rstrip()
