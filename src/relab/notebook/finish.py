"""What is found and what comes next, in every entry."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from relab.advise.proposal import BY_HAND, NOTHING
from relab.notebook.page import FINDINGS
from relab.notebook.words import Words


def finding_lines(data: dict[str, Any], w: Words) -> list[str]:
    """The first findings of the report, or why there are none; their messages are the examiner's own, in English."""
    if not data["examined"]:
        return [w.say("findings.not_examined")]
    lines = [
        w.say("findings.one", slug=f["slug"], severity=w.sentences.get(f"severity.{f['severity']}", f["severity"]),
              where=f["where"], message=f["message"])
        for f in data["findings"][:FINDINGS]
    ]  # fmt: skip
    if not lines:
        limits = [text for text in data["not_known"] if text.startswith("not checked")]
        return [w.say("findings.limits", limits="; ".join(limits)) if limits else w.say("findings.none")]
    more = data.get("more_findings") or 0
    return lines + ([w.say("findings.more", n=more)] if more > 0 else [])


def next_step(folder: Path, proposal: str, w: Words) -> str:
    """The first line of a proposal, which is the change; the rest is for `relab next`."""
    first = proposal.strip().partition("\n")[0].strip()
    for key, begin in (("nothing", NOTHING), ("by_hand", BY_HAND)):
        if first.startswith(begin):
            why = first.removeprefix(begin).partition(": No: ")[0]  # the answer itself stands above
            return w.say(f"next.{key}", why=why.removesuffix("."))
    if not first:
        return ""
    return w.say("next.why", change=first, where=shlex.quote(str(folder)))
