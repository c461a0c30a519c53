"""How does an answer stay small? Lines are kept up to a number of tokens, and what was left out is said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from relab.base import masks
from relab.base.places import printable
from relab.base.text import cut, plural

MOST = 2_000  # tokens of an answer, by the count below
ROOM = 120  # tokens that are kept free for the line that says what was left out
LINE = 600  # columns of a line: a name of a run may be as long as a page
PIECES = re.compile(r" ?[A-Za-z]{1,5}|\d{1,3}|\s|.")


def tokens(text: str) -> int:
    """At least as many tokens as a language model's own count has: short pieces of words, three digits, single signs.

    A sign that is not ASCII counts by its bytes, as a model without a word for it would.

    >>> tokens("entropy 24.05"), tokens("熵")
    (5, 3)
    """
    return sum(1 if piece.isascii() else len(piece.encode("utf-8", "replace")) for piece in PIECES.findall(text))


def answer(lines: Sequence[str], narrower: str, most: int = MOST) -> str:
    """The first lines that fit, secrets masked, without control characters; then how much is missing and what helps.

    A line break inside of a line came with a stranger's name and becomes a question mark: it cannot pose as a line.
    """
    kept: list[str] = []
    left = most - ROOM
    for line in lines:
        shown = cut(printable(masks.mask(line)), LINE)
        left -= tokens(shown) + 1
        if left < 0:
            break
        kept.append(shown)
    missing = len(lines) - len(kept)
    return "\n".join([*kept, *([f"left out: {plural(missing, 'more line')}; {narrower}"] if missing else [])])
