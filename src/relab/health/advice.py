"""Do two findings of one run advise opposite changes of a setting? Then what mends the cause counts.

A symptom's own advice is for runs in which nothing else is wrong: with a cause at hand it may point the other way. Of
two that do not explain each other the more important one counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relab.base.documents import Document
from relab.base.numbers import is_number
from relab.health.chain import ordered

if TYPE_CHECKING:
    from relab.health.rule import Finding

DOWN = re.compile(r"\b(?:lower|cut|fewer|smaller|reduce|decrease|shorter|less)\b", re.IGNORECASE)
UP = re.compile(r"\b(?:raise|larger|more|increase|longer|higher|widen)\b", re.IGNORECASE)
KEY = re.compile(r"`([A-Za-z_][\w.]*)`")
CLAUSE = re.compile(r"[;,.:]\s")


def agree(findings: Sequence[Finding]) -> None:
    """A finding whose advice goes against that of the one that explains it, directly or not, or that stands before it,
    points to that one; and so does one that would change a setting where a fault that no setting mends explains it."""
    _with_causes(findings)
    for place, finding in enumerate(ranked := ordered(findings)):
        first = next((f for f in ranked[:place] if _opposite(directions(f.suggest), directions(finding.suggest))), None)
        if first is not None:
            finding.suggest, finding.remedy = [f"mend {first.slug} first"], None


def _with_causes(findings: Sequence[Finding]) -> None:
    by_slug = {finding.slug: finding for finding in findings}
    for symptom in findings:
        cause = by_slug.get(symptom.explained_by or "")
        seen = {symptom.slug}
        while cause is not None and cause.slug not in seen:
            if _beyond_settings(cause, symptom) or _opposite(directions(cause.suggest), directions(symptom.suggest)):
                symptom.suggest, symptom.remedy = [f"mend {cause.slug} first: it explains this"], None
                break
            seen.add(cause.slug)
            cause = by_slug.get(cause.explained_by or "")


def _beyond_settings(cause: Finding, symptom: Finding) -> bool:
    """Whether a fault of the program or its data explains what the run earns, or what a setting would mend."""
    if cause.beyond_settings:
        return symptom.remedy is not None or symptom.about == "return" or bool(directions(symptom.suggest))
    named = cause.about == "fault" or (cause.about == "policy" and cause.confidence == "high")
    elsewhere = named and not any(isinstance(item, dict) for item in cause.suggest)
    return elsewhere and (symptom.remedy is not None or symptom.about == "return")


def directions(suggestions: Sequence[Any]) -> dict[str, int]:
    """Where each setting should go: +1 up, -1 down; what may go either way is left out. A change counts under its key
    and under the name that the run's program has for it, which words about that run use.

    >>> directions(["lower `lr` or `epochs`; raise `ent_coef`", {"key": "algo.clip", "from": 0.1, "to": 0.2}])
    {'lr': -1, 'epochs': -1, 'ent_coef': 1, 'clip': 1}
    """
    ways: dict[str, int] = {}
    for item in suggestions:
        for key, way in _of_change(item) if isinstance(item, dict) else _of_text(str(item)):
            ways[key] = way if ways.get(key, way) == way else 0
    return {key: way for key, way in ways.items() if way}


def _of_change(item: Document) -> list[tuple[str, int]]:
    a, b = item.get("from"), item.get("to")
    if not (is_number(a) and is_number(b)) or a == b:
        return []
    names = dict.fromkeys(str(item.get(which)).rpartition(".")[2] for which in ("key", "name") if item.get(which))
    return [(name, 1 if b > a else -1) for name in names]


def _of_text(text: str) -> list[tuple[str, int]]:
    """The verb of a clause holds for every key of it."""
    ways = []
    for clause in CLAUSE.split(text):
        words = KEY.sub("", clause)  # a key may be called `cut`
        down, up = bool(DOWN.search(words)), bool(UP.search(words))
        if down != up:
            ways += [(key.rpartition(".")[2], -1 if down else 1) for key in KEY.findall(clause)]
    return ways


def _opposite(a: dict[str, int], b: dict[str, int]) -> bool:
    return any(a[key] == -b[key] for key in a.keys() & b.keys())
