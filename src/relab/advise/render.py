"""How is a proposal told in a terminal? What to change, why, what to expect, what it costs, how to run it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from relab.advise.proposal import Nothing, Predicted, Proposal, diff_text
from relab.base.places import printable as clean
from relab.base.text import duration, number, pad, wrap

WIDTH = 118


def text(proposal: Proposal | Nothing) -> str:
    """At most ten lines."""
    if isinstance(proposal, Nothing):
        return clean(proposal.text)  # one line: it may end in a command to copy
    rows = [("because", proposal.rationale), ("predicted", predicted(proposal.predicted)), ("cost", spent(proposal)),
            ("checks", "; ".join(proposal.checks.values()))]  # fmt: skip
    rows += [("start from", start(proposal.resume_from))] if proposal.resume_from else []
    rows += [("asked", unanswered(proposal.tried[0]))] if proposal.tried else []
    rows += [("passed over", proposal.passed_over[0])] if proposal.passed_over else []
    lines = [f"{proposal.parent}: {diff_text(proposal.diff, proposal.names)}"]
    for name, body in rows:
        lines += wrapped(f"  {name:12}", clean(body), 2 if name == "passed over" else 3)
    return "\n".join(clean(line) for line in lines)


def start(word: str) -> str:
    """Whose weights, and why not fresh ones."""
    return f"{word}: it was good then" if word.endswith("@best") else f"{word}, as it did: it was good then"


def unanswered(one: Mapping[str, Any]) -> str:
    """An earlier try that ended without an answer."""
    n = one["seeds"]
    return f"before, and not answered: {one['verdict']} with {n[0]} and {n[1]} seeds ({one['where']})"


def wrapped(head: str, body: str, most: int = 3) -> list[str]:
    """At most three lines; the numbers a person must see come first in each text."""
    return wrap(body, WIDTH, pad(head, 14), most)


def predicted(x: Predicted) -> str:
    """eval/return_det changes by +410 [+380, +440] (...), or the bounds, or why there is none."""
    ends = [None if e is None else f"{'+' if e >= 0 else ''}{number(e)}" for e in (x.delta, x.low, x.high)]
    delta, low, high = ends
    if x.metric is None or not any(ends):
        return f"{x.metric or 'nothing'}: {x.how}"
    if delta is None:
        return f"{x.metric} changes by {low or '?'} to {high or '?'} ({x.how})"
    span = f" [{low}, {high}]" if low and high else ""
    return f"{x.metric} changes by {delta}{span} ({x.how})"


def spent(proposal: Proposal) -> str:
    steps = "unknown steps" if proposal.cost.steps is None else f"{proposal.cost.steps:,} steps"
    time = "" if proposal.cost.seconds is None else f", about {duration(proposal.cost.seconds)}"
    return f"{steps}{time} ({proposal.cost.how})"
