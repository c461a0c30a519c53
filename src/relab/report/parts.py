"""What is a section? A title with lines, tables, figures and code; cells are text. And what is it as JSON?"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any

from relab.base.documents import Document
from relab.formats.read.unread import Unread
from relab.health.engine import NotChecked
from relab.health.examine import Remark
from relab.health.rule import Finding

NO_METRIC = "no metric"  # of runs without a number
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
    figures: list[Any]  # curves.CurveFigure, or a drawing of drawings.py
    run: str = ""


@dataclass(frozen=True)
class PlacedFinding:
    """A finding, and where it was found as a page says it: the run, or the label of its config."""

    finding: Finding
    where: str
    since: str = ""  # in words, of all runs that have it; empty where it has no beginning

    def to_json(self) -> Document:
        return {**self.finding.to_json(), "where": self.where}


@dataclass(frozen=True)
class PageHealth:
    """What `relab examine` says about the runs of a page."""

    done: bool  # False: it was not run, or could not be
    fired: list[PlacedFinding]
    shared: list[PlacedFinding]  # also in the reference
    not_checked: Sequence[NotChecked] = ()
    not_read: Sequence[Unread] = ()
    remarks: Sequence[Remark] = ()
    muted: dict[str, str] = field(default_factory=dict)
    limits: list[str] = field(default_factory=list)
    proposal: str = ""


@dataclass(frozen=True)
class SeedValue:
    """What one seed came to."""

    seed: str
    value: str
    run: str


@dataclass(frozen=True)
class GroupOutcome:
    """What a group came to, over its seeds, and how sure that is."""

    label: str
    seeds: int
    episodes: str
    size: str
    metric: str
    value: str
    sure: str
    ends: list[float]  # mean, lower and upper end
    values: list[float]
    each: list[SeedValue]


@dataclass(frozen=True)
class Budget:
    """How far a group got, and how it ended."""

    label: str
    status: str
    steps: str
    done: str


@dataclass(frozen=True)
class ConfigChanges:
    """Settings beside what they are held against; `marks` limit the comparison with a parent."""

    against: str
    head: list[str]
    rows: list[list[str]]
    marks: list[str] | None = field(default=None, metadata=LEFT_OUT)


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
    if isinstance(value, PlacedFinding):
        return plain(value.to_json())
    if is_dataclass(value) and not isinstance(value, type):
        known = {each: getattr(value, each.name) for each in fields(value)}
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
