"""What is a section? A title with lines, tables, figures and code, as plain data; cells are text."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from typing import Any


def section(
    title: str,
    lines: Iterable[str] = (),
    tables: Iterable[dict[str, Any]] = (),
    code: str = "",
    figures: Iterable[dict[str, Any]] = (),
) -> dict[str, Any]:
    """`figures` are curves as curves.curve gives them; `run` is filled in where a page has several."""
    parts = {"title": title, "lines": list(lines), "tables": list(tables), "code": code, "figures": list(figures)}
    return {**parts, "run": ""}


def table(head: list[str], rows: list[list[str]], caption: str = "") -> dict[str, Any]:
    return {"caption": caption, "head": head, "rows": rows}


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
