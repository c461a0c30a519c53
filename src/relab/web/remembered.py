"""What has the user of the dashboard seen and refused? In the user's cache folder, for each folder that is served."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

from relab.base.documents import Document
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.base.places import cache_folder

SCHEMA, MOST = 1, 2000


@dataclass
class Seen:
    """What was there at the last look that somebody called done, and proposals that were refused."""

    at: str = ""
    apart: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)

    def to_json(self) -> Document:
        return {"schema": SCHEMA, "at": self.at, "apart": self.apart[-MOST:], "refused": self.refused[-MOST:]}


def read(root: Path) -> Seen:
    try:
        body = read_json(_folder(), _file(root))
    except (RecordError, OSError):
        return Seen()
    lists = [[str(each) for each in body.get(key) or ()] for key in ("apart", "refused")]
    return Seen(str(body.get("at") or ""), *lists) if body.get("schema") == SCHEMA else Seen()


def write(root: Path, seen: Seen) -> None:
    """A cache that cannot be written is no error: what is new is then shown again."""
    try:
        _folder().mkdir(parents=True, exist_ok=True)
        write_atomic(_folder() / _file(root), encode(seen.to_json()))
    except OSError:
        pass


def _folder() -> Path:
    return cache_folder() / "served"


def _file(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:24] + ".json"
