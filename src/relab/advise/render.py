"""How is a proposal told in a terminal? What to change, why, what to expect, what it costs, how to run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relab.advise.proposal import Nothing, Predicted, Proposal, told
from relab.base.places import printable as clean
from relab.base.text import duration, number, pad, wrap

WIDTH = 118


def text(found: Proposal | Nothing) -> str:
    """At most ten lines."""
    if isinstance(found, Nothing):
        return clean(found.text)  # one line: it may end in a command to copy
    rows = [("because", found.rationale), ("predicted", predicted(found.predicted)), ("cost", spent(found)),
            ("checks", "; ".join(found.checks.values()))]  # fmt: skip
    rows += [("start from", start(found.resume_from))] if found.resume_from else []
    rows += [("asked", asked(found.tried[0]))] if found.tried else []
    rows += [("passed over", found.passed_over[0])] if found.passed_over else []
    lines = [f"{found.parent}: {told(found.diff)}"]
    for name, body in rows:
        lines += wrapped(f"  {name:11}", clean(body), 2 if name == "passed over" else 3)
    return "\n".join(clean(line) for line in lines)


def start(word: str) -> str:
    """Whose weights, and why not fresh ones."""
    return f"{word}: it was good then" if word.endswith("@best") else f"{word}, as it did: it was good then"


def asked(one: Mapping[str, Any]) -> str:
    """An earlier try that ended without an answer."""
    n = one["seeds"]
    return f"before, and not answered: {one['verdict']} with {n[0]} and {n[1]} seeds ({one['where']})"


def wrapped(head: str, body: str, most: int = 3) -> list[str]:
    """At most three lines; the numbers a person must see come first in each text."""
    return wrap(body, WIDTH, pad(head, 13), most)


def predicted(x: Predicted) -> str:
    """eval/return_det +410 [+380, +440] (...), or the bounds, or why there is none."""
    ends = [None if e is None else f"{'+' if e >= 0 else ''}{number(e)}" for e in (x.delta, x.low, x.high)]
    delta, low, high = ends
    if x.metric is None or not any(ends):
        return f"{x.metric or 'nothing'}: {x.how}"
    if delta is None:
        return f"{x.metric} {low or '?'} to {high or '?'} ({x.how})"
    span = f" [{low}, {high}]" if low and high else ""
    return f"{x.metric} {delta}{span} ({x.how})"


def spent(found: Proposal) -> str:
    steps = "unknown steps" if found.cost.steps is None else f"{found.cost.steps:,} steps"
    time = "" if found.cost.seconds is None else f", about {duration(found.cost.seconds)}"
    return f"{steps}{time} ({found.cost.how})"
