"""Which finding explains which? Each stands at a place in the chain from a fault to what was concluded.

A rule says with `about=` where its finding stands; what stands earlier explains what stands later in the same run,
unless it began later. What is about the record, or about time and gates, stands apart: it explains nothing, and nothing
in a run's learning explains it. The few cases that no order can express are declared with `explains=` and go first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from relab.health.rule import Finding, Rule

CHAIN = {  # place -> what is wrong there, in causal order
    "fault": "something in the program, the data or the settings",
    "numbers": "values that ran away",
    "optimiser": "what moves the parameters: gradients, rates, learned coefficients",
    "step": "how far an update goes",
    "critic": "whether the critic or the world model is trained",
    "belief": "what they expect",
    "policy": "what the policy is told, and how it acts",
    "return": "what it earns",
    "choice": "which of its evaluations is quoted",
}
APART = {
    "axis": "what the steps of a log count",
    "evidence": "the record: what can be concluded from it",
    "operation": "time, cost, gates and schedules",
}
PLACES = CHAIN | APART
ORDER = {place: number for number, place in enumerate(PLACES)}
SEVERITIES = ("info", "warning", "error")
CONFIDENCES = ("low", "medium", "high")
FINDINGS = 3  # that are shown first


def explain(rules: Sequence[Rule], findings: Sequence[Finding]) -> None:
    """Mark each symptom with its cause: a declared one, else that of a calibrated rule at the earliest place.

    What only lies outside of healthy runs is a symptom, and explains nothing.
    """
    declared = {rule.slug: rule.explains for rule in rules}
    causes = sorted((f for f in findings if f.status == "fired" and _sure(f) and not f.symptom), key=_first)
    settings = {rule.slug for rule in rules if rule.setting}
    for symptom in findings:
        fitting = [cause for cause in causes if _could_explain(cause, symptom, declared)]
        fitting = [cause for cause in fitting if symptom.slug not in settings or cause.about == "fault"]
        fitting.sort(key=lambda cause: symptom.slug not in declared[cause.slug])
        free = (cause.slug for cause in fitting if not _in_a_circle(cause, symptom, findings))
        symptom.explained_by = symptom.explained_by or next(free, None)  # a rule may know the cause itself
    _take_back_remarks(rules, findings)


def _take_back_remarks(rules: Sequence[Rule], findings: Sequence[Finding]) -> None:
    """A rule may call its finding a remark because the run learned all the same; where it explains a warning, it did
    harm, and is as grave as the rule declares it."""
    declared = {rule.slug: rule.severity for rule in rules}
    for cause in findings:
        harms = [f for f in findings if f.status == "fired" and f.explained_by == cause.slug and not f.symptom]
        if cause.status == "fired" and cause.severity == "info" and any(f.severity != "info" for f in harms):
            cause.severity = declared[cause.slug]


def _sure(finding: Finding) -> bool:
    """A remark of low confidence is no reason for anything."""
    return finding.severity != "info" or finding.confidence != "low"


def _first(finding: Finding) -> tuple[Any, ...]:
    return (finding.severity == "info", ORDER[finding.about], importance(finding))


def _could_explain(cause: Finding, symptom: Finding, declared: Mapping[str, Sequence[str]]) -> bool:
    if cause is symptom or _began_later(cause, symptom) or cause.slug in declared[symptom.slug]:
        return False
    earlier = cause.about in CHAIN and symptom.about in CHAIN and ORDER[cause.about] < ORDER[symptom.about]
    return earlier or symptom.slug in declared[cause.slug]


def _began_later(cause: Finding, symptom: Finding) -> bool:
    return cause.onset is not None and symptom.onset is not None and cause.onset > symptom.onset


def _in_a_circle(cause: Finding, symptom: Finding, findings: Sequence[Finding]) -> bool:
    """Whether the symptom already explains the cause, directly or through others: they must not hide each other."""
    above = {f.slug: f.explained_by for f in findings}
    slug: str | None = cause.slug
    while slug is not None and slug != symptom.slug:
        slug = above.get(slug)
    return slug is not None


def symptoms_of(cause: Finding, findings: Sequence[Finding]) -> list[Finding]:
    """All that a finding explains in its run, directly or through others."""
    mine = [f for f in findings if f.run == cause.run]
    return [f for f in mine if f is not cause and _in_a_circle(f, cause, mine)]


def importance(finding: Finding) -> tuple[Any, ...]:
    """Sort key among findings that do not explain each other: how bad, how sure, how early."""
    severity = SEVERITIES.index(finding.severity or "info")
    onset = math.inf if finding.onset is None else finding.onset
    return (finding.footer, finding.status != "fired", -severity, finding.explained_by is not None,
            -CONFIDENCES.index(finding.confidence), onset)  # fmt: skip


def ordered(findings: Sequence[Finding]) -> list[Finding]:
    """Most important first; each cause stands right before its symptoms and counts as much as the worst of them.

    What is wrong with the steps comes before all that is as bad: the rest is told by them.
    """
    owner = {(f.run, f.slug): f for f in findings}
    children: dict[int, list[Finding]] = {}
    roots: list[Finding] = []
    for finding in findings:
        cause = owner.get((finding.run, finding.explained_by or ""))
        (roots if cause is None else children.setdefault(id(cause), [])).append(finding)

    def family(finding: Finding) -> list[Finding]:
        below = sorted(children.get(id(finding), []), key=importance)
        return [finding, *(each for child in below for each in family(child))]

    families = [family(root) for root in roots]
    families.sort(key=lambda members: (*importance(members[0])[:2], min(importance(m)[2] for m in members),
                                       members[0].about != "axis", len(members) == 1,
                                       importance(members[0])[4:]))  # fmt: skip
    return [each for members in families for each in members]


def lead(findings: Sequence[Finding]) -> list[Finding]:
    """Those that are shown first, on every page and in every command: three of different rules, in their order;
    symptoms fill what room causes leave, but come before what is less loud."""
    seen: set[str] = set()
    first = [f for f in findings if not (f.slug in seen or seen.add(f.slug))]  # type: ignore[func-returns-value]
    kept = sorted(first, key=lambda f: (-loudness(f, findings), f.explained_by is not None))[:FINDINGS]
    return [f for f in first if f in kept]


def loudness(finding: Finding, others: Sequence[Finding]) -> int:
    """A cause is as loud as the loudest of what it explains."""
    mine = [f for f in others if f.explained_by == finding.slug and f.run == finding.run]
    return max(_severity(f) for f in (finding, *mine))


def _severity(finding: Finding) -> int:
    """What somebody's plug-in made up counts least."""
    return SEVERITIES.index(finding.severity) if finding.severity in SEVERITIES else 0
