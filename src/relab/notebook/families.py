"""Which families has the work gone through, and what opened each? Within one, a single factor changes at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from relab.base.documents import Document
from relab.notebook.digest import confounded, gone, verdict_word
from relab.notebook.log import Logged
from relab.notebook.page import md
from relab.notebook.words import Words


@dataclass
class Branch:
    """A family, what it came from, its entries, and the families that were opened from it."""

    name: str
    number: int
    origin: str = ""
    why: str = ""
    entries: list[Logged] = field(default_factory=list)
    children: list[Branch] = field(default_factory=list)

    def to_dict(self) -> Document:
        rows = [{"entry": one.id, "date": one.date, "title": one.title, "verdict": one.verdict or None,
                 "confounded": confounded(one), "superseded": one.superseded or None,
                 "where": one.where} for one in self.entries]  # fmt: skip
        return {"family": self.name, "number": self.number, "from": self.origin or None, "why": self.why or None,
                "entries": rows, "children": [child.to_dict() for child in self.children]}  # fmt: skip


def tree(entries: Sequence[Logged]) -> list[Branch]:
    """Families in the order in which the log first speaks of them; the first to open a family is its origin."""
    branches: dict[str, Branch] = {}

    def branch(name: str) -> Branch:
        return branches.setdefault(name, Branch(name, len(branches) + 1))

    for one in entries:
        opens = [
            row for row in one.facts.get("opens") or [] if isinstance(row, dict) and {"family", "from"} <= set(row)
        ]
        for row in opens:
            branch(str(row["from"]))
            known = str(row["family"]) in branches
            new = branch(str(row["family"]))
            if not known and new.name != str(row["from"]):
                new.origin, new.why = str(row["from"]), str(row.get("why") or "")
        if isinstance(one.facts.get("family"), str):
            branch(one.facts["family"]).entries.append(one)
        for row in opens if one.facts.get("kind") == "experiment" else []:
            branch(str(row["family"])).entries.append(one)
    for each in branches.values():
        if each.origin:
            branches[each.origin].children.append(each)
    return [each for each in branches.values() if not each.origin]


def markdown(roots: Sequence[Branch], w: Words) -> str:
    if not roots:
        return w.say("families.none")
    return "\n".join([f"# {w.say('families.title')}", "", *(line for root in roots for line in _lines(root, w, 0))])


def _lines(branch: Branch, w: Words, depth: int) -> list[str]:
    days = [one.date for one in branch.entries if one.date] or ["-"]
    head = w.say("families.family", number=branch.number, family=md(branch.name), n=len(branch.entries),
                 first=min(days), last=max(days))  # fmt: skip
    why = f" ({w.say('families.from', family=md(branch.origin), why=md(branch.why))})" if branch.origin else ""
    indent = "  " * depth
    return [f"{indent}- **{head}**{why}", *(f"{indent}  - {_entry(one, w)}" for one in branch.entries),
            *(line for child in branch.children for line in _lines(child, w, depth + 1))]  # fmt: skip


def _entry(one: Logged, w: Words) -> str:
    marked = f" ({w.say('digest.confounded')})" if confounded(one) else ""
    title = one.title.removeprefix(one.date).strip()
    said = f"{w.say('colon')}{verdict_word(one, w)}" if one.verdict else gone(one, w)
    return w.say("digest.item", date=one.date, title=md(title), where=md(one.where)) + said + marked
