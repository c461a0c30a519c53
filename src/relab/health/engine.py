"""What do all rules say about these runs? Each rule asked once per run, causes before symptoms, nothing passed over."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from relab.base import blame
from relab.health import beside
from relab.health.chain import CHAIN, explain
from relab.health.curve import Curve
from relab.health.outcome import poor
from relab.health.rule import Finding, Missing, Reference, Rule
from relab.health.view import View, ViewGroup

FAILED = "the rule failed: "
SAME = 0.10  # a value within 10 % of the reference's cannot be what sets the run apart


@dataclass(frozen=True)
class NotChecked:
    """A rule that could not run, and what it lacks; FAILED and the error of a rule that failed."""

    slug: str
    run: str
    missing: str

    def to_json(self) -> dict[str, str]:
        return vars(self).copy()


def families(view: View) -> set[str]:
    """The algorithms that a run is of; fine-tuning is also what weighs its rows. Empty where nothing tells."""
    parts = (view.config.get("algo.update"), view.config.get("algo.advantage")) if view.algo == "finetune" else ()
    return {name for name in (view.algo, *parts) if name in ("awr", "iql") or (name and name == view.algo)}


def applies(rule: Rule, view: View) -> bool:
    """Whether the rule is about runs of this kind; a run that does not say what it is gets asked."""
    names = families(view)
    wrong_algo = rule.algos and bool(names) and not names & set(rule.algos)
    wrong_kind = rule.kind and view.kind is not None and view.kind != rule.kind
    return not (wrong_algo or wrong_kind)


def ask(rule: Rule, view: View) -> Finding | NotChecked | None:
    """One rule, one run."""
    gone = [name for name in rule.needs if not view.has(name)]
    if rule.kind and view.kind is None:
        gone.append("meta.spec.action.kind")
    if gone:
        return NotChecked(rule.slug, view.name, ", ".join(gone))
    return _call(rule, view, view.name)


def _call(rule: Rule, seen: Any, name: str) -> Finding | NotChecked | None:
    try:
        with np.errstate(all="ignore"):
            finding = rule.check(seen)
    except Missing as missing:
        return NotChecked(rule.slug, name, str(missing))
    except Exception as error:  # a log of a shape nobody foresaw: the other rules still run, and it is said
        return NotChecked(rule.slug, name, f"{FAILED}{blame.reason(error)}")
    return None if finding is None else _filled(rule, finding)


def _filled(rule: Rule, finding: Finding) -> Finding:
    parts = rule.parts
    finding.slug, finding.footer = rule.slug, rule.footer
    finding.severity, finding.about = finding.severity or rule.severity, finding.about or rule.about
    finding.meaning, finding.refuted_by = parts["Why"], parts["Refuted by"]
    finding.suggest = finding.suggest or [parts["Try"]]
    return finding


def ask_run(
    rules: list[Rule], view: View, tell: Callable[[], None] = lambda: None
) -> tuple[list[Finding], list[NotChecked]]:
    """All rules about one run, held against its reference; `tell` is called before each of them."""
    findings: list[Finding] = []
    gone = []
    for rule in rules:
        tell()
        if rule.scope != "run" or not applies(rule, view):
            continue
        answer = ask(rule, view)
        if isinstance(answer, NotChecked):
            gone.append(answer)
        elif answer is not None:
            answer.run = view.name
            _weigh(rule, answer, view)
            hold_against(rule, answer, view)
            findings.append(answer)
    findings = beside.give_way(findings)
    with np.errstate(all="ignore"):
        beside.put_beside(view, findings)
    explain(rules, findings)
    return findings, gone


def _weigh(rule: Rule, finding: Finding, view: View) -> None:
    """In a run that is too short for a rule, a warning is a remark; in one that has not learned, every oddity of its
    learning counts for more, and a remark is a warning."""
    if view.rows < rule.least:
        if finding.severity == "warning":
            finding.severity, finding.confidence = "info", "low"
        return
    about_learning = finding.about in CHAIN and finding.about not in ("return", "choice") and not rule.footer
    with np.errstate(all="ignore"):
        if finding.severity == "info" and about_learning and finding.confidence != "low" and poor(view):
            finding.severity = "warning"


def ask_groups(rules: list[Rule], groups: list[ViewGroup]) -> tuple[list[Finding], list[NotChecked]]:
    """Rules about groups, and about all groups together."""
    findings, gone = [], []
    questions = [(r, g, g.name) for r in rules if r.scope == "group" for g in groups]
    questions += [(r, groups, "all") for r in rules if r.scope == "folder"]  # type: ignore[misc]
    for rule, seen, name in questions:
        answer = _call(rule, seen, name)
        if isinstance(answer, NotChecked):
            gone.append(answer)
        elif answer is not None:
            answer.group = name
            findings.append(answer)
    return findings, gone


def hold_against(rule: Rule, finding: Finding, view: View) -> None:
    """The reference's value; where the same rule fires there with about the same value, it is not the cause."""
    reference = view.reference
    if reference is None or not rule.compared:
        return
    there = ask(rule, reference) if applies(rule, reference) else None
    if isinstance(there, Finding):
        finding.reference = Reference(reference.name, there.value, _here(finding.value))
        if _alike(finding.value, there.value):
            finding.status = "also-in-reference"
    elif finding.evidence and reference.has(finding.evidence[0].metric):
        metric, longer = finding.evidence[0].metric, reference.last_step > view.last_step
        part = f"the quarter before step {view.last_step:,}, where this run ends" if longer else "its last quarter"
        finding.reference = Reference(
            reference.name, _level(reference, metric, view.last_step), f"{metric}, median of {part}"
        )


def _here(value: float | None) -> str:
    """The same rule fires in both: the number that it judges by, which need not be among the evidence."""
    return "the number that this rule judges by" + ("" if value is None else f"; here {value:.4g}")


def _level(view: View, metric: str, until: int) -> float | None:
    """The last quarter of what a reference had logged after as many steps."""
    try:
        curve = view.curve(metric)
    except Missing:
        return None
    before = curve.steps <= until
    return Curve(metric, curve.steps[before], curve.values[before]).median(0.25) if before.any() else None


def _alike(a: float | None, b: float | None) -> bool:
    """Whether two values tell nothing apart: both missing, both not a number, or within 10 % of each other."""
    if a is None or b is None:
        return a is b
    if math.isnan(a) or math.isnan(b):
        return math.isnan(a) and math.isnan(b)
    return a == b or abs(a - b) <= SAME * max(abs(a), abs(b))
