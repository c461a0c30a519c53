"""What has the user of the dashboard seen and decided? In the user's cache folder, for each folder that is served."""

from __future__ import annotations

import hashlib
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path

from relab.base.documents import Document
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.base.places import cache_folder

SCHEMA, MOST = 1, 2000
APPROVED, REJECTED = "approved", "rejected"


@dataclass(frozen=True)
class Decision:
    """What became of a proposal: approved or rejected, what it was, and what followed."""

    id: str
    state: str
    title: str = ""
    text: str = ""
    at: str = ""  # UTC


@dataclass
class Seen:
    """What was there at the last look that somebody called done, and what became of proposals, oldest first."""

    at: str = ""
    apart: list[str] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    look: Document = field(default_factory=dict)  # findings and states of runs then; empty: none were shown

    def to_json(self) -> Document:
        decisions = [asdict(each) for each in self.decisions[-MOST:]]
        return {"schema": SCHEMA, "at": self.at, "apart": self.apart[-MOST:], "decisions": decisions,
                "look": self.look}  # fmt: skip

    @property
    def decided(self) -> dict[str, Decision]:
        """By the proposal's id; of one that was decided twice the last word."""
        return {each.id: each for each in self.decisions}

    def without(self, wanted: str) -> list[Decision]:
        return [each for each in self.decisions if each.id != wanted]


def read(root: Path) -> Seen:
    try:
        body = read_json(folder_of("served"), file_of(root))
    except (RecordError, OSError):
        return Seen()
    if body.get("schema") != SCHEMA:
        return Seen()
    rows = [row for row in body.get("decisions") or () if isinstance(row, dict)]
    decisions = [Decision(**{name: str(row.get(name) or "") for name in Decision.__dataclass_fields__}) for row in rows]
    return Seen(str(body.get("at") or ""), [str(each) for each in body.get("apart") or ()], decisions, _look(body))


def _look(body: Document) -> Document:
    look = body.get("look")
    if not isinstance(look, dict):
        return {}
    return look if all(isinstance(look.get(key), dict) for key in ("findings", "runs")) else {}


def write(root: Path, seen: Seen) -> None:
    """A cache that cannot be written is no error: what is new is then shown again."""
    try:
        folder_of("served").mkdir(parents=True, exist_ok=True)
        write_atomic(folder_of("served") / file_of(root), encode(seen.to_json()))
    except OSError:
        pass


def folder_of(what: str) -> Path:
    return cache_folder() / what


def file_of(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:24] + ".json"
