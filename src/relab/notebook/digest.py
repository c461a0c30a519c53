"""What happened in the last days? What was asked and answered, what was found, what it cost, what is still open."""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from relab.advise.calibration import span
from relab.advise.proposal import diff_text
from relab.advise.tried import NO, OPEN, YES
from relab.base.documents import Document
from relab.base.numbers import is_number
from relab.base.text import number
from relab.config.base import require
from relab.notebook.log import Logged
from relab.notebook.page import md
from relab.notebook.words import Words

UNITS = {"d": 1, "w": 7}
FINDINGS = 10


@dataclass
class Digest:
    """The entries of some days, counted."""

    first: str
    last: str
    entries: list[Logged]
    undated: list[str] = field(default_factory=list)  # entries of the log that bear no date, by their ids
    answers: list[tuple[Logged, Document]] = field(default_factory=list)
    runs: int = 0
    hours: float = 0.0
    findings: dict[str, int] = field(default_factory=dict)

    def count(self, verdict: str) -> int:
        return sum(row.get("verdict") == verdict for _, row in self.answers)

    @property
    def scores(self) -> list[tuple[Logged, Document]]:
        return [(one, s) for one in self.entries if isinstance(s := one.facts.get("score"), dict)]

    @property
    def unanswered(self) -> list[tuple[Logged, str]]:
        """Questions that nobody can answer yet, and runs that have not ended."""
        questions = [(one, str(row.get("text"))) for one, row in self.answers if row.get("verdict") == OPEN]
        return questions + [(one, str(one.facts["open"][0])) for one in self.entries if _states(one)]

    def to_dict(self) -> Document:
        keys = {"entry": "id", "date": "date", "where": "where", "title": "title"}
        rows = [{**{k: getattr(one, name) for k, name in keys.items()}, **row} for one, row in self.answers]
        return {
            "first": self.first, "last": self.last, "entries": [one.id for one in self.entries], "answers": rows,
            "yes": self.count(YES), "no": self.count(NO), "open": self.count(OPEN), "runs": self.runs,
            "hours": self.hours, "findings": self.findings,
            "predictions": [{"entry": one.id, **score} for one, score in self.scores],
            "unanswered": [{"entry": one.id, "text": text} for one, text in self.unanswered],
            "confounded": [one.id for one in self.entries if confounded(one)],
            "superseded": {one.id: one.superseded for one in self.entries if one.superseded},
            "families": families_of(self.entries), "undated": self.undated,
        }  # fmt: skip


def days(text: str) -> int:
    """7d, 2w -> days."""
    match = re.fullmatch(r"(\d{1,4})([dw])", text.strip())
    require(match is not None, f"`--digest` must be a number of days or weeks such as 7d or 2w, but got {text!r}")
    assert match is not None
    return max(1, int(match[1]) * UNITS[match[2]])


def digest(entries: Sequence[Logged], length: int, last: datetime.date) -> Digest:
    """The entries of `length` days, up to and with `last`."""
    first = last - datetime.timedelta(days=length - 1)
    mine = [one for one in entries if first.isoformat() <= one.date <= last.isoformat()]
    summary = Digest(first.isoformat(), last.isoformat(), mine, [one.id for one in entries if not one.date])
    summary.answers = [(one, row) for one in mine for row in one.answers]
    summary.runs = int(sum(_number(one.facts.get("runs")) for one in mine))
    summary.hours = round(float(sum(_number(one.facts.get("hours")) for one in mine)), 4)
    slugs = Counter(str(slug) for one in mine for slug in _list(one.facts.get("findings")))
    summary.findings = dict(slugs.most_common())
    return summary


def _number(x: Any) -> float:
    return float(x) if is_number(x) else 0.0


def _list(x: Any) -> list[Any]:
    return x if isinstance(x, list) else []


def _states(one: Logged) -> bool:
    return bool(_list(one.facts.get("open")))


def confounded(one: Logged) -> bool:
    return bool(one.facts.get("confounded")) or any(row.get("confounded") for row in one.answers)


def families_of(entries: Sequence[Logged]) -> list[str]:
    return list(dict.fromkeys(str(one.facts["family"]) for one in entries if one.facts.get("family")))


# ---- Markdown


def markdown(summary: Digest, w: Words) -> str:
    if not summary.entries:
        return w.say("digest.nothing", first=summary.first, last=summary.last) + _undated(summary, w, " ")
    counts = {"yes": summary.count(YES), "no": summary.count(NO), "open": summary.count(OPEN)}
    many = w.say("digest.runs", runs=summary.runs, hours=number(summary.hours)) if summary.runs else ""
    head = [many or w.say("digest.no_runs"),
            w.say("digest.asked", n=len(summary.answers), **counts)]  # fmt: skip
    head += [_undated(summary, w)] if summary.undated else []
    parts = [f"# {w.say('digest.title', first=summary.first, last=summary.last, n=len(summary.entries))}",
             "\n".join(f"- {line}" for line in head)]  # fmt: skip
    for name, lines in sections(summary, w).items():
        parts += [f"## {w.say(f'digest.{name}')}", "\n".join(f"- {line}" for line in lines)] if lines else []
    return "\n\n".join(parts)


def _undated(summary: Digest, w: Words, before: str = "") -> str:
    """Of runs whose logs do not say when they were: they may be of these days."""
    some = ", ".join(map(md, summary.undated[:3])) + (" ..." if len(summary.undated) > 3 else "")
    return before + w.say("digest.undated", n=len(summary.undated), some=some) if summary.undated else ""


def sections(summary: Digest, w: Words) -> dict[str, list[str]]:
    """Each as lines of Markdown; empty ones are left out."""
    words = {YES: "digest.yes", NO: "digest.no"}
    answered = [f"**{w.say(words[str(row['verdict'])])}** {_told(one, w)}{w.say('colon')}{md(row.get('text'))}"
                for one, row in summary.answers if row.get("verdict") in words]  # fmt: skip
    return {
        "answered": answered,
        "open": [f"{_told(one, w)}{w.say('colon')}{md(text)}" for one, text in summary.unanswered],
        "seen": [
            f"{_item(one, w)}{w.say('colon')}{verdict_word(one, w)}"
            for one in summary.entries
            if one.facts.get("kind") == "run"
        ],
        "confounded": [_item(one, w) for one in summary.entries if confounded(one)],
        "findings": [w.say("digest.finding", slug=md(s), n=n) for s, n in list(summary.findings.items())[:FINDINGS]],
        "predictions": [line for one, score in summary.scores if (line := _score(score, w))],
        "families": [md(name) for name in families_of(summary.entries)],
    }


def _item(one: Logged, w: Words) -> str:
    title = one.title.removeprefix(one.date).strip()
    return w.say("digest.item", date=one.date, title=md(title), where=md(one.where))


def _told(one: Logged, w: Words) -> str:
    return f"{_item(one, w)}{gone(one, w)}"


def verdict_word(one: Logged, w: Words) -> str:
    """yes, no, cannot tell yet, or what became of a run, in the log's language."""
    known = {YES: "digest.yes", NO: "digest.no", OPEN: "digest.cannot"}
    said = w.sentences.get(known.get(one.verdict, f"verdict.{one.verdict}")) or md(one.verdict or "-")
    return f"{said}{gone(one, w)}"


def gone(one: Logged, w: Words) -> str:
    """What stands behind everything that is told of an entry that no longer holds."""
    return w.say("superseded.short", reason=md(one.superseded)) if one.superseded else ""


def _score(score: Document, w: Words) -> str:
    """From the facts of an entry; a log may have been edited, so that nothing is taken for granted."""
    try:
        seeds = w.say("answer.seeds", n_a=score["measured"]["seeds"][0], n_b=score["measured"]["seeds"][1])
        known = {"hit": w.say("score.hit"), "miss": w.say("score.miss")}
        why = w.sentences[f"why.{score['reason']}"].format(what=score["what"])
        verdict = known.get(score["verdict"]) or w.say("score.open", why=why)
        line = w.say("score.line", metric=score["metric"], predicted=span(score["predicted"], score["kind"]),
                     measured=span(score["measured"]), seeds=seeds, verdict=verdict)  # fmt: skip
        return md(f"{diff_text(score['diff'])}{w.say('colon')}{line}")
    except (KeyError, TypeError, IndexError, ValueError):
        return ""
