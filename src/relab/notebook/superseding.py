"""Does an entry still hold? One that does not stays in the log, with the reason, the day, and what took its place.

    relab note brave-otter --superseded "its start was solved already" --by calm-lynx --into LOG.md

The mark is a line below the entry's heading and a fact behind it. An entry that is renewed keeps it, and whatever reads
the log later (search, digest, families, index, "tried before") says it.
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from relab.base.documents import Document
from relab.base.errors import NotFoundError
from relab.base.near import hint
from relab.config.base import require
from relab.notebook import fence, log
from relab.notebook.log import FACTS, HEADING, Logged
from relab.notebook.page import Entry, superseded_line
from relab.notebook.words import words


@dataclass(frozen=True)
class Mark:
    """Why an entry no longer holds."""

    reason: str
    date: str = ""
    by: str = ""  # the entry that took its place


def line(facts: Document, lang: str) -> str:
    return superseded_line(facts, words(lang))


def kept(entry: Entry, into: Path | None) -> Entry:
    """The entry with the mark that it has in its log."""
    logs = [path for path in ([into] if into is not None else log.default_logs()) if path.exists()]
    there = next((one for one in log.entries(logs) if one.id == entry.id), None)
    mark = log.superseded(there.facts) if there is not None else {}
    return replace(entry, facts={**entry.facts, "superseded": mark}) if mark else entry


def mark(logs: Sequence[Path], word: str, reason: str, by: str = "") -> tuple[Logged, bool]:
    """Mark an entry, found by its id or its run's name -> (entry, whether it changed); an empty reason unmarks."""
    entries = log.entries(logs)
    one = pick(entries, word)
    other = pick(entries, by).id if by else ""
    require(other != one.id, f"an entry cannot take its own place, but {word!r} and --by {by!r} are both {one.id}")
    before = log.superseded(one.facts)
    day = before.get("date") if before.get("reason") == reason else None
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    new = asdict(Mark(" ".join(reason.split()), day or today, other)) if reason.strip() else {}
    old, after = fence.rewrite(one.path, lambda text: changed(text, one, new))
    return one, old != after


def pick(entries: Sequence[Logged], word: str) -> Logged:
    """The entry with this id, or the only one of this run or experiment."""
    exact = [one for one in entries if word == one.id]
    named = exact or [one for one in entries if word in (one.facts.get("name"), one.facts.get("source"))]
    if len(named) == 1:
        return named[0]
    known = [one.id for one in entries]
    said = (f"fits {', '.join(one.id for one in named[:4])}: give the id" if named else
            f"is none of its {len(known)} entries{hint(word, known, ', the nearest of which is {}')}")  # fmt: skip
    raise NotFoundError(f"`{word}` must name an entry of the log by its id or its run, but {said}")


def changed(text: bytes, one: Logged, mark: Document) -> bytes:
    """The log with another mark in this entry; a person's own changes of the entry stay, and stay known as such."""
    block = next(each for each in fence.blocks(text, one.path.name) if each.id == one.id)
    raw = text[block.start : block.stop]
    newline = "\r\n" if b"\r\n" in raw else "\n"
    head, *body, end = raw.decode("utf-8", "surrogateescape").replace("\r\n", "\n").split("\n")
    facts = {key: value for key, value in one.facts.items() if key != "superseded"}
    lang = {"lang": facts.pop("lang")} if "lang" in facts else {}  # comes last, as where an entry is written whole
    facts |= ({"superseded": mark} if mark else {}) | lang
    body = with_line(without_line(body, line(one.facts, one.lang)), line(facts, one.lang))
    body = [row for row in body if not FACTS.fullmatch(row.strip())]
    rows = [head, *body, log.facts_line(facts), end]
    new = newline.join(rows).encode("utf-8", "surrogateescape")
    return text[: block.start] + (new if block.edited else fence.signed(new)) + text[block.stop :]


def without_line(body: list[str], old: str) -> list[str]:
    if not old or old not in body:
        return body
    at = body.index(old)
    return body[: at - 1] + body[at + 1 :] if at and not body[at - 1].strip() else body[:at] + body[at + 1 :]


def with_line(body: list[str], new: str) -> list[str]:
    if not new:
        return body
    at = next((i for i, row in enumerate(body) if HEADING.match(row)), -1) + 1
    return [*body[:at], *([""] if at else []), new, *([] if at else [""]), *body[at:]]
