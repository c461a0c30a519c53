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
    "no_settings": r"the log holds no settings, so that none can be changed for what was found \((?P<slugs>.+)\):"
    r" `relab examine` says what to look at",
    "no_value": r"(?P<names>.+?) may mend (?P<slug>\S+), but no run here and no preset says to which value"
    r" \((?P<slugs>.+)\): `relab examine` says what to look at",
    "uneven": r"in (?P<high>\d+) of the (?P<of>\d+) seeds of (?P<name>.+?)'s config the return still rises at the end,"
    r" in the others it does not: more steps are not called for",
    "not_held": r"the log does not hold a setting that may mend (?P<slug>\S+) \((?P<ways>.+)\), of what was found"
    r" \((?P<slugs>.+)\): `relab examine` says what to look at",
    "top": r"(?P<who>.+?) ended as high as asked or possible \((?P<level>[^()]+)\)(?:; (?P<then>.+))?",
    "solved": r"(?P<who>.+?) ended above the level that is called solved \((?P<bar>\S+)\): (?P<level>[^;]+)"
    r"(?:; (?P<then>.+))?",
    "some": r"(?P<n>[\d,]+) of (?P<of>[\d,]+) runs",
    "one_seed": r"one seed says little about the config, another run of it more: (?P<what>.+)",
    "more_seeds": r"more steps are not needed, more seeds are \((?P<n>\d+) of (?P<of>\d+) are there\): (?P<what>.+)",
    "enough": r"(?P<n>\d+) seeds of the config are there, and nothing more is called for",
    "look_first": r"but (?P<slugs>.+) must be looked at first: `relab examine`",
    "running": r"(?P<name>.+?) is still running: what it would end at is not known",
    "waiting": r"(?P<name>.+?) is (?P<state>interrupted|stale): (?P<command>`.+`) first",
    "stopped": r"(?P<name>.+?) is (?P<state>interrupted|stale): what it would end at is not known",
    "cut": r"(?P<name>.+?) ended at step (?P<step>[\d,]+) of (?P<planned>[\d,]+) planned: what it would end at is not"
    r" known, so run it to its end first",
    "swings": r"(?P<name>.+?) is unstable: .+ spread from (?P<low>\S+) to (?P<high>[^,;]+).*; no finding says why:"
    r" .*?run another seed(?P<seed>.*) before anything is changed",
    "rising": r"nothing was found, but in (?P<name>.+?) (?P<rise>.+); the log does not say how many steps were planned:"
    r" more of them are worth a try",
    "unanswered": r"the experiment has no answer yet \((?P<n>[\d,]+) of (?P<of>[\d,]+) runs are finished\):"
    r" (?P<what>.+)",
    "no_number": r".+ No number of seeds is known that would tell",
    "coarser": r".+ Ask for a larger `smallest_effect`, or for another outcome",
    "agree": r"all (?P<n>\d+) seeds of (?P<name>.+) agree; up to (?P<share>\S+) of its runs could end elsewhere"
    r" unseen",
    "overstates": r"at so many seeds a yes tends to overstate: were half of it true \((?P<half>\S+)\), a yes would show"
    r" (?P<factor>\S+) times as much on average; `--replicate` shows what is left of it",
    "both_ways": r"diverged runs are read both ways: (?P<without>.+) without them, (?P<worst>.+) with each as the worst"
    r" there can be or was",
    "apart": r"the runs of (?P<a>.+) and (?P<b>.+) form a group each: the interval says how far these are apart, and"
    r" does not allow for runs that end in the other's group; (?P<n>\d+) seeds can miss up to (?P<share>\S+) of such"
    r" runs",
}


def spoken(text: str, w: Words) -> str:
    """A sentence of relab's in the entry's language, where it is one of the fixed ones; else marked as a quotation."""
    matches = [(key, match) for key, pattern in FIXED.items() if (match := re.fullmatch(pattern, text))]
    if not matches:
        return w.say("fixed.quote", text=text)
    key, match = matches[-1]
    parts = {name: part or "" for name, part in match.groupdict().items()}
    if parts.get("who"):
        parts["who"] = spoken(parts["who"], w) if re.fullmatch(FIXED["some"], parts["who"]) else parts["who"]
    if "then" in parts:
        parts["then"] = w.sentences["semicolon"] + spoken(parts["then"], w) if parts["then"] else ""
    if "state" in parts:
        parts["state"] = w.say(f"status.{parts['state']}")
    return w.say(f"fixed.{key}", **parts)


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
    here = folder.name if folder.is_absolute() else str(folder)  # an absolute path is nobody else's to read
    return w.say("next.why", change=first, where=shlex.quote(here))
