"""With which key does a loop seal its journal? One of its own, which lies with its user and not in the loop's folder.

~/.local/state/relab/loops/ID.json (or below $XDG_STATE_HOME), for this user alone (0600):
    secret    what the seals are made with
    folder    where the loop lay when it was last called: one that was moved since is known by its ID
    rows      how many rows its journal had: one with fewer was cut

No program that the loop runs is told of it. One of the same user that goes and looks finds it all the same: a program
that is not trusted runs as another user.
"""

from __future__ import annotations

import contextlib
import hashlib
import secrets
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from relab.base.enclosed import own
from relab.base.errors import UserError, refusal
from relab.base.jsonl import SECRET, RecordError, encode, read_json, write_atomic
from relab.base.places import state_folder

FOLDER = "loops"


@dataclass
class Key:
    """What a loop's seals are made with, and what is known of its journal."""

    loop: str  # its ID
    secret: str
    folder: str
    rows: int = 0

    def seal(self, before: str, line: bytes) -> str:
        """Of a row of the journal, after the row with the seal `before`: no row can be put in, taken out or moved."""
        return hashlib.blake2b(before.encode() + line, key=bytes.fromhex(self.secret), digest_size=16).hexdigest()

    def write(self) -> None:
        """Replace its file as a whole. The loop cannot be vouched for where that fails, which is told with a remedy."""
        try:
            place().mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(own(place(), f"{self.loop}.json"), encode(asdict(self)), mode=SECRET)
        except OSError as error:
            raise UserError(f"a loop keeps the key of its journal in {place()}, but {refusal(error)}:"
                            " set XDG_STATE_HOME to a folder of yours") from None  # fmt: skip


def place() -> Path:
    return state_folder() / FOLDER


def made(folder: Path) -> Key:
    """A new key for the loop in this folder."""
    _prune()
    key = Key(secrets.token_hex(8), secrets.token_hex(32), str(folder.resolve()))
    key.write()
    return key


def named(loop: str) -> Key | None:
    """The key of the loop with this ID; None where this user has none."""
    return _read(loop) if loop.isalnum() else None


def of_folder(folder: Path) -> list[Key]:
    """The keys of loops that lay in this folder when they were last called."""
    here = str(folder.resolve())
    return [key for key in _all() if key.folder == here]


def moved(key: Key, folder: Path) -> Key:
    """The same key, for the place where the loop lies now."""
    key = replace(key, folder=str(folder.resolve()))
    key.write()
    return key


def _prune() -> None:
    """Keys of loops that were asked for and never ran: their folders are gone."""
    for key in _all():
        if key.rows <= 1 and not Path(key.folder).exists():
            with contextlib.suppress(OSError):
                own(place(), f"{key.loop}.json").unlink(missing_ok=True)


def _all() -> list[Key]:
    known = [_read(path.stem) for path in sorted(place().glob("*.json"))]
    return [key for key in known if key is not None]


def _read(loop: str) -> Key | None:
    try:
        body = read_json(place(), f"{loop}.json")
        bytes.fromhex(body["secret"])
        return Key(loop, body["secret"], str(body["folder"]), int(body["rows"]))
    except (RecordError, OSError, LookupError, TypeError, ValueError):
        return None
