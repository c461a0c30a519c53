"""Was it written by the loop? A deciding number carries a seal, and so does every row of the journal.

A run may write wherever its user may, beside what the loop writes too. Seals are made with the loop's own key
(keys.py), that of a row with the seal of the row before it as well. Only that of lock.json is made with the hidden
seed, so that other machines can check it: whoever reads the loop's file and works the seed out can
forge it, and is told by the hash of it in the journal.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass

from relab.base.documents import Document
from relab.base.errors import UserError
from relab.base.jsonl import encode
from relab.lab.loop.keys import Key

KEY = "seal"
ROW = re.compile(rb',"seal":"([0-9a-f]{16})\.([0-9a-f]{32})"\}\n')  # ends a row: whose, and the seal


class ForgedError(UserError):
    """Something in the loop's folder was not written by the loop, or what it wrote is gone."""


# ---- Numbers


def sealed(body: Document, by: Key | int) -> Document:
    """With the loop's key, or the hidden seed."""
    return body | {KEY: _seal(body, by)}


def genuine(body: Document, by: Key | int) -> bool:
    return body.get(KEY) == _seal(body, by)


def _seal(body: Document, by: Key | int) -> str:
    plain = {key: body[key] for key in sorted(body) if key != KEY}
    secret = bytes.fromhex(by.secret) if isinstance(by, Key) else str(by).encode()
    return hashlib.blake2b(encode(plain), key=secret, digest_size=16).hexdigest()


# ---- Rows, each a line with its line break


@dataclass(frozen=True)
class Checked:
    """Which lines of a journal its loop wrote."""

    good: list[bytes]
    other: list[int]  # numbers of the rows that it did not write, from 1
    last: str  # the seal of the last good one


def sealed_row(line: bytes, key: Key, before: str) -> tuple[bytes, str]:
    """(the row with its seal, the seal); `before`: that of the row before it, empty for the first one."""
    seal = key.seal(before, line)
    return line[:-2] + f',"{KEY}":"{key.loop}.{seal}"}}\n'.encode(), seal


def loop_of(line: bytes) -> str:
    """The ID of the loop that a row says it is of; empty where it says none."""
    end = ROW.search(line)
    return end[1].decode() if end else ""


def checked(lines: Sequence[bytes], key: Key) -> Checked:
    """A row that was put between two others is told from both; of one that was changed, all that follow are lost."""
    good, other, last = [], [], ""
    for number, line in enumerate(lines, 1):
        end = ROW.search(line)
        if end and end[1].decode() == key.loop and end[2].decode() == key.seal(last, line[: end.start()] + b"}\n"):
            good.append(line)
            last = end[2].decode()
        else:
            other.append(number)
    return Checked(good, other, last)
