"""May words come in any order? tyro takes a command's words in one row only, so those behind options are moved there.

train sac env=pendulum --name x seed=3   ->   train sac env=pendulum seed=3 --name x
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, get_args, get_origin, get_type_hints

MANY = re.compile(r"\b(tuple|list)\[")  # take all words up to the next option, at once
NUMBER = re.compile(r"-\.?[0-9]")


def in_order(args: type, words: Sequence[str]) -> list[str]:
    """The words with those that belong to no option before all options; as they are where an option is not known."""
    takes = options(args)
    plain: list[str] = []
    rest: list[str] = []
    waiting = 0.0  # values that the last option may still take
    for place, word in enumerate(words):
        if word == "--":
            return [*plain, *rest, *words[place:]]
        if word.startswith("-") and not NUMBER.match(word):
            name, has_value, _ = word.partition("=")
            if name not in takes:
                return list(words)
            waiting = 0 if has_value else takes[name]
            rest.append(word)
        elif waiting:
            waiting -= 1
            rest.append(word)
        else:
            plain.append(word)
    return plain + rest


def options(args: type) -> dict[str, float]:
    """Option -> how many values it takes."""
    from tyro.conf import Positional, UseAppendAction

    known: dict[str, float] = {"-h": 0, "--help": 0}
    for name, hint in get_type_hints(args, include_extras=True).items():
        kind, *marks = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        if Positional in marks:
            continue
        aliases = [alias for mark in marks for alias in getattr(mark, "aliases", None) or ()]
        many = UseAppendAction not in marks and MANY.search(str(kind))
        values = 0 if re.search(r"\bbool\b", str(kind)) else float("inf") if many else 1
        known |= dict.fromkeys([f"--{name.replace('_', '-')}", f"--{name}", *aliases], values)
    return known
