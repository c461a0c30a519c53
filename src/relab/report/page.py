"""What is on a page? What it is made of besides its runs' own numbers, and all that it says, in that order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relab.comparison.pairs import Pair
from relab.formats.read.unread import Unread
from relab.health.engine import NotChecked
from relab.health.examine import Remark
from relab.health.rule import Finding
from relab.report.curves import CurveFigure, Panel
from relab.report.first import First
from relab.report.parts import LEFT_OUT, Budget, ConfigChanges, GroupOutcome, PlacedFinding, Section, Table
from relab.report.replication_page import ReplicationPage
from relab.report.sweep_page import SweepPage
from relab.runs.grouping import Group


@dataclass(frozen=True)
class Lead:
    """What stands first on a page whose maker knows the answer: question, one sentence, tables and notes below it."""

    question: str
    sentence: str
    tables: list[Table]
    notes: list[str]


@dataclass(frozen=True)
class Facts:
    """What a page is made of; `content.py` gathers it."""

    findings: Sequence[Finding] | None = None  # of relab examine, also-in-reference ones included; None: not asked
    not_checked: Sequence[NotChecked] = ()
    not_read: Sequence[Unread] = ()  # runs, files and folders
    remarks: Sequence[Remark] = ()
    muted: dict[str, str] = field(default_factory=dict)  # slug -> reason
    limits: Sequence[str] = ()
    proposal: str = ""
    groups: list[Group] | None = None  # spares reading the runs again
    more: Sequence[Section] = ()  # sections that somebody else has made, e.g. of a comparison
    standing: tuple[str, str] = ("", "")  # which config is better, in a sentence, and what its numbers are
    pairs: Sequence[Pair] = ()  # the comparisons of that sentence, for those who say it in another language
    lead: Lead | None = None  # e.g. of a loop


@dataclass(frozen=True)
class Page:
    """Everything a report says; the fields are what templates and `relab report --json` know."""

    title: str
    first: First
    sentence: str
    sweep: SweepPage | None
    replication: ReplicationPage | None
    curve: CurveFigure
    panels: list[Panel]
    outcome: list[GroupOutcome]
    examined: bool
    findings: list[PlacedFinding]
    more_findings: int
    config: ConfigChanges
    prediction: str
    budget: list[Budget]
    not_known: list[str]
    not_read: list[str]
    commands: list[str]
    sections: list[Section]
    full: bool
    lead: Lead | None = field(default=None, metadata=LEFT_OUT)
