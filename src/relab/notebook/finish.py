"""What is found and what comes next, in every entry."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from relab.advise.proposal import BY_HAND, NOTHING
from relab.notebook.page import FINDINGS
from relab.notebook.words import Words
from relab.report.page import Page

# Sentences that other parts of relab always word alike, as they are read out of English; the rest is quoted.
FIXED = {
    "not_checked": r"(?P<n>[\d,]+) rules? not checked for want of data \(listed under Health\)",
    "not_examined": "health was not examined",
    "nothing_rises": "nothing was found, and no return still rises at the end",
    "nothing_told": "nothing was found; whether the return still rises at the end cannot be told",
    "nothing_open": r"nothing was found; whether (?P<metric>.+) still rises at the end cannot be told from its noise:"
    r" (?P<ends>.+)",
    "control_stays": r"the answer is no, the control (?P<name>.+) stays",
    "none_read": r"no run below (?P<where>.+) could be read",
    "not_proposed": r"what the findings call for cannot be proposed: (?P<why>.+)",
    "no_setting": r"no setting is known to mend what was found \((?P<slugs>.+)\): `relab examine` says what to look at",
}


def spoken(text: str, w: Words) -> str:
    """A sentence of relab's in the entry's language, where it is one of the fixed ones; else marked as a quotation."""
    matches = [(key, match) for key, pattern in FIXED.items() if (match := re.fullmatch(pattern, text))]
    if not matches:
        return w.say("fixed.quote", text=text)
    key, match = matches[-1]
    return w.say(f"fixed.{key}", **match.groupdict())


def finding_lines(page: Page, w: Words) -> list[str]:
    """The first findings of the report, or why there are none; their messages are the examiner's own, in English."""
    if not page.examined:
        return [w.say("findings.not_examined")]
    lines = [
        w.say("findings.one", slug=f.slug, severity=w.sentences.get(f"severity.{f.severity}", f.severity or ""),
              where=each.where, message=f.message)
        for each in page.findings[:FINDINGS] for f in [each.finding]
    ]  # fmt: skip
    if not lines:
        limits = [text for text in page.not_known if " not checked " in text]
        said = w.list([spoken(text, w) for text in limits])
        return [w.say("findings.limits", limits=said) if limits else w.say("findings.none")]
    more = page.more_findings
    return lines + ([w.say("findings.more", n=more)] if more > 0 else [])


def next_step(folder: Path, proposal: str, w: Words) -> str:
    """The first line of a proposal, which is the change; the rest is for `relab next`."""
    first = proposal.strip().partition("\n")[0].strip()
    for key, begin in (("nothing", NOTHING), ("by_hand", BY_HAND)):
        if first.startswith(begin):
            why = first.removeprefix(begin).partition(": No: ")[0]  # the answer itself stands above
            return w.say(f"next.{key}", why=spoken(why.removesuffix("."), w))
    if not first:
        return ""
    return w.say("next.why", change=first, where=shlex.quote(str(folder)))
