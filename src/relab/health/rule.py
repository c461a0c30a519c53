"""What is a rule, and what does it find? One pure check with its reasons in the docstring, and the finding it returns.

A rule is a function (view) -> Finding | None. Its docstring has five labelled parts (What, Why, Known problems, Refuted
by, Try), from which `relab explain` and docs/health.md are made. Data that is missing raises Missing: not checked is
never "ok".
"""

from __future__ import annotations

import functools
import importlib
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from relab.base import blame
from relab.health.chain import PLACES
from relab.health.chain import SEVERITIES as SEVERITIES
from relab.health.mend import Change

if TYPE_CHECKING:
    from relab.health.remedy import Remedy

PARTS = ("What", "Why", "Known problems", "Refuted by", "Try")
FILES = """axis data marks agreement seeds validity names policy entropy value offpolicy replay offline ratios model
           dreams units curve returns accounts outside design arms sweep gate stages"""
MODULES = tuple(f"relab.health.rules.{name}" for name in FILES.split())
SHORT = 10  # rows; runs with fewer were not among those that the thresholds of learning rules were set on
ENTRY_POINTS = "relab.rules"  # an installed package offers a module (or object) whose import declares rules


class Missing(Exception):  # noqa: N818 - a state of the data, not an error
    """What a rule needs and the run does not have."""


@dataclass(frozen=True)
class Evidence:
    """The numbers to check by hand: a metric at some steps, and what was computed from it."""

    metric: str
    steps: list[int]
    values: list[float]
    formula: str = ""


@dataclass(frozen=True)
class Reference:
    """The run that a finding is held against, and what the measured number is there."""

    run: str
    value: float | None
    what: str = ""  # which number that is


@dataclass(frozen=True)
class HealthyRange:
    """Where nine of ten healthy runs of an algorithm lie in one part of a run, in the run's own units."""

    algo: str
    low: float
    high: float
    part: str  # a feature (features.FEATURES): first, middle, last, peak, growth

    def __str__(self) -> str:
        part = f"{self.part} third" if self.part in ("first", "middle", "last") else self.part
        return f"{part} of healthy {self.algo} runs: {self.low:.3g} to {self.high:.3g}"


@dataclass
class Finding:
    """What a rule found in a run; the engine fills in the second half."""

    message: str
    value: float | None = None  # the measured number; held against the reference's
    onset: int | None = None  # step at which it began
    evidence: list[Evidence] = field(default_factory=list)
    suggest: list[Any] = field(default_factory=list)  # {key, from, to, why} or text; empty: the rule's Try
    confidence: str = "medium"
    severity: str | None = None  # None: the rule's own
    slug: str = ""
    run: str | None = None
    group: str | None = None
    status: str = "fired"
    about: str = ""  # empty: the place in the chain that the rule gives
    axis: str = "agent_steps"
    reference: Reference | None = None
    meaning: str = ""
    refuted_by: str = ""
    explained_by: str | None = None
    footer: bool = False  # a limit of the data, told in the footer line
    remedy: Remedy | None = None  # the change of settings that `suggest` begins with and `relab next` proposes
    in_code: bool = False  # a fault of the program fits as well: no default is advised, only what a better run has
    beyond_settings: bool = False  # a fault of the program or its data: no value of any setting mends it
    symptom: bool = False  # only says that something lies outside of healthy runs
    healthy: HealthyRange | None = None  # of what the first evidence is about

    def to_json(self) -> dict[str, Any]:
        owner = {"run": self.run} if self.run is not None else {"group": self.group}
        onset = None if self.onset is None else {"axis": self.axis, "step": self.onset}
        reference = None if self.reference is None else vars(self.reference).copy()
        healthy = None if self.healthy is None else vars(self.healthy).copy()
        return {
            "slug": self.slug, "severity": self.severity, "status": self.status, **owner,
            "message": self.message, "onset": onset, "evidence": [vars(each) for each in self.evidence],
            "reference": reference, "healthy": healthy, "meaning": self.meaning, "refuted_by": self.refuted_by,
            "try": self.suggest,
            "confidence": self.confidence, "explained_by": self.explained_by,
        }  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """A check and what must be there for it."""

    slug: str  # what users see
    check: Callable[[Any], Finding | None]
    about: str  # its place in the chain from a fault to what was concluded (chain.PLACES)
    needs: tuple[str, ...] = ()  # metrics
    kind: str | None = None  # discrete or continuous actions only
    algos: tuple[str, ...] = ("ppo",)  # empty: any
    severity: str = "info"  # info until calibrated
    scope: str = "run"  # run: a view; group: views that differ in the seed; folder: all views
    footer: bool = False
    least: int = 0  # rows of the run below which it is info: its threshold was set on longer runs
    explains: tuple[str, ...] = ()  # slugs of symptoms that the chain does not place after this one
    mends: Mapping[str, int] = field(default_factory=dict)  # settings that can cause it -> where they should go
    fallback: tuple[Change, ...] = ()  # the first that changes anything, where no better value is known
    sets_back: bool = False  # mended by the parent's values of the settings that its evidence names
    from_start: bool = False  # mended from the checkpoint that the run began with
    from_best: bool = False  # mended from the run's own best checkpoint
    names: tuple[str, ...] = ()  # planted faults (`relab faults --list`) whose cause it names
    setting: bool = False  # somebody set it so: only a fault explains it, not what happens in the run
    compared: bool = True  # False: it is its own whether or not the reference shows it too

    @property
    def parts(self) -> dict[str, str]:
        return parse_parts(self.check.__doc__ or "")

    @property
    def thresholds(self) -> dict[str, Any]:
        """The numbers that decide: what the check takes besides the run, with its default."""
        parameters = inspect.signature(self.check).parameters.values()
        return {each.name: each.default for each in parameters if each.default is not inspect.Parameter.empty}

    @property
    def limits(self) -> str:
        """The thresholds in one line; empty where the check has none."""
        return ", ".join(f"{name} = {value:g}" for name, value in self.thresholds.items())


RULES: dict[str, Rule] = {}  # slug -> rule, in order of declaration


def rule(
    slug: str,
    about: str,
    needs: Sequence[str] = (),
    kind: str | None = None,
    algos: Sequence[str] = ("ppo",),
    severity: str = "info",
    scope: str = "run",
    footer: bool = False,
    least: int = 0,
    explains: Sequence[str] = (),
    mends: Mapping[str, int] | None = None,
    fallback: Sequence[Change] = (),
    sets_back: bool = False,
    from_start: bool = False,
    from_best: bool = False,
    compared: bool = True,
    names: Sequence[str] = (),
    setting: bool = False,
) -> Callable[[Callable[..., Finding | None]], Callable[..., Finding | None]]:
    """Declare a check under its slug; a slug can be declared once."""

    def declare(check: Callable[..., Finding | None]) -> Callable[..., Finding | None]:
        made = Rule(slug=slug, check=check, about=about, needs=tuple(needs), kind=kind, algos=tuple(algos),
                    severity=severity, scope=scope, footer=footer, least=least, explains=tuple(explains),
                    mends=dict(mends or {}), fallback=tuple(fallback), sets_back=sets_back, from_start=from_start,
                    from_best=from_best, names=tuple(names), compared=compared, setting=setting)  # fmt: skip
        if about not in PLACES:
            raise ValueError(f"rule {slug} must say what it is about, one of {', '.join(PLACES)}, but says {about!r}")
        gone = [part for part in PARTS if not made.parts.get(part)]
        if gone:
            raise ValueError(f"the docstring of rule {slug} must have the parts {', '.join(PARTS)}, but lacks {gone}")
        if slug in RULES and RULES[slug].check.__module__ != check.__module__:
            raise ValueError(f"the rule {slug} of {check.__module__} exists already in {RULES[slug].check.__module__}")
        RULES[slug] = made
        return check

    return declare


def parse_parts(text: str) -> dict[str, str]:
    """The labelled parts of a docstring, each on one line.

    >>> parse_parts("What: a. Why: b.")
    {'What': 'a.', 'Why': 'b.'}
    """
    cells = re.split(rf"(?:^|(?<=\s))({'|'.join(PARTS)}):\s", text)
    return {name: " ".join(body.split()) for name, body in zip(cells[1::2], cells[2::2])}


@functools.cache
def load_plugins() -> None:
    """Rules that installed packages declare; the scan reads every installed package, hence once."""
    from importlib.metadata import entry_points

    for point in entry_points(group=ENTRY_POINTS):
        blame.load(point)


def all_rules(plugins: bool = True) -> dict[str, Rule]:
    """Every rule, imported when first asked for; built-in ones first, in the order of their files.

    The order decides between findings of equal importance, so it must not depend on who imported a file before.
    """
    for module in MODULES:
        importlib.import_module(module)
    if plugins:
        load_plugins()
    place = {module: number for number, module in enumerate(MODULES)}
    ordered = sorted(RULES.items(), key=lambda item: place.get(item[1].check.__module__, len(place)))
    return dict(ordered)
