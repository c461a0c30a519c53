"""Was a deciding number made by the loop? It carries a seal that nobody makes who was not told the hidden seed.

A run may write wherever its user may, beside the numbers that decide too. Whoever reads the loop's file and works the
seed out can still cheat; a program that only writes a number cannot.
"""

from __future__ import annotations

import hashlib

from relab.base.documents import Document
from relab.base.jsonl import encode

KEY = "seal"


def sealed(body: Document, seed: int) -> Document:
    return body | {KEY: _seal(body, seed)}


def genuine(body: Document, seed: int) -> bool:
    return body.get(KEY) == _seal(body, seed)


def _seal(body: Document, seed: int) -> str:
    plain = {key: body[key] for key in sorted(body) if key != KEY}
    return hashlib.blake2b(encode(plain), key=str(seed).encode(), digest_size=16).hexdigest()
