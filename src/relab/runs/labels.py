"""What do people say about a run? Tags, a star and a note, in a file of their own that no trainer reads or writes.

A run of relab's keeps them in labels.json in its folder, so that they travel with it. For a run of another tool they
are kept in the user's cache folder: nothing is ever written into other tools' folders.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from relab.base.documents import Document
from relab.base import limits
from relab.config.base import require
from relab.base.places import cache_folder

FILE = "labels.json"
SCHEMA = 1
LONGEST_NOTE = 2000
TAG = re.compile(r"[^\W_](?:[\w.:+-]{0,39})")


@dataclass(frozen=True)
class Labels:
    """All labels of one run; the empty ones are no file at all."""

    tags: tuple[str, ...] = ()
    star: bool = False
    note: str = ""
    formerly: tuple[str, ...] = ()  # names it had before, oldest first
    renaming: str = ""  # a rename that has begun: the name it is to get

    @property
    def empty(self) -> bool:
        return self == Labels()


def foreign_file(path: str | os.PathLike[str], key: str) -> Path:
    """Where the labels of another tool's run are kept: by its place on this machine."""
    place = os.fsencode(os.path.realpath(path)) + b"\0" + os.fsencode(key)
    return cache_folder() / "labels" / f"{hashlib.sha256(place).hexdigest()[:24]}.json"


def read(file: bytes | str | os.PathLike[str]) -> Labels:
    """The labels in a file; none where there is none. What is not as it should be is left out."""
    try:
        document = orjson.loads(limits.read_bytes(file, limits.SETTINGS, plain=True))
    except (OSError, ValueError):
        return Labels()
    return _of(document) if isinstance(document, dict) else Labels()


def is_damaged(file: Path) -> bool:
    """Whether there is something under this name that is no file of labels."""
    try:
        return not isinstance(orjson.loads(limits.read_bytes(file, limits.SETTINGS, plain=True)), dict)
    except FileNotFoundError:
        return False
    except (OSError, ValueError):
        return True


def _of(document: Document) -> Labels:
    def texts(name: str) -> tuple[str, ...]:
        value = document.get(name)
        return tuple(t for t in value if isinstance(t, str)) if isinstance(value, list) else ()

    note, renaming = (document.get(name) for name in ("note", "renaming"))
    return Labels(texts("tags"), document.get("star") is True, note if isinstance(note, str) else "", texts("formerly"),
                  renaming if isinstance(renaming, str) else "")  # fmt: skip


def write(file: Path, labels: Labels, about: str = "") -> None:
    """Replace the file as a whole; empty labels remove it."""
    from relab.base.enclosed import own
    from relab.base.jsonl import RecordError, encode, write_atomic

    own(file.parent, file.name)  # a link is refused by its name, and leads nowhere
    if is_damaged(file):
        raise RecordError(f"{file} cannot be read as labels, and writing it anew would lose what it holds; mend it by"
                          " hand, or move it away")  # fmt: skip
    if labels.empty:
        file.unlink(missing_ok=True)
        return
    shown = {key: value for key, value in asdict(labels).items() if value}
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, encode({"schema": SCHEMA, **({"of": about} if about else {}), **shown}, indent=True))


def tagged(tags: list[str], add: bool) -> Callable[[Labels], Labels]:
    """A change that adds tags, or takes them away."""
    for tag in tags:
        require(TAG.fullmatch(tag) is not None, f"a tag must be up to 40 letters, digits and . : + - _, beginning with"
                f" a letter or digit, but got {tag!r:.80}")  # fmt: skip

    def change(old: Labels) -> Labels:
        kept = [t for t in old.tags if t not in tags]
        return replace(old, tags=tuple(sorted([*kept, *tags] if add else kept)))

    return change


def starred(star: bool) -> Callable[[Labels], Labels]:
    return lambda old: replace(old, star=star)


def noted(text: str) -> Callable[[Labels], Labels]:
    """A change of the note; an empty text removes it."""
    require(len(text) <= LONGEST_NOTE, f"a note must have at most {LONGEST_NOTE} characters, but has {len(text)};"
            " `relab note --into LOG.md` is for longer ones")  # fmt: skip
    return lambda old: replace(old, note=text.encode("utf-8", "replace").decode())
