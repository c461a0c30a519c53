"""Which parts of a text or of plain data are secrets? The one place that knows; pages, records and exports ask here.

A secret is known by its name (`--wandb-key X`, `"api_key": "X"`, `密码: X`; letters that only look like ours and unseen
ones disguise no name) or by its shape (`ghp_...`, a JWT, a PEM block). What is masked becomes `***`; masking twice
changes nothing, and a text without secrets keeps every byte. Time grows with the length of the text alone: no pattern
may look at one character more than a bounded number of times.
relab/logger.py carries a short version for programs without relab; tests/base/test_masks.py holds both to one list.

>>> mask("train.py --wandb-key abc --max_tokens 512")
'train.py --wandb-key *** --max_tokens 512'
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from relab.base.documents import Document
from relab.base.secret_names import FLAG, MAYBE, NAME, NO, STRONG, fold, kind, mentions, origins
from relab.base.secret_shapes import BEGINS, MASK, mask_shapes
from relab.base.secret_values import elements, is_call, is_plain_whole, looks_random, spans

SHORT = 200  # characters of a text whose masking is remembered
MACHINE = ("packages", "machine", "spec")  # of meta.json: what relab says itself, with names like google-auth
LONGEST_KEY = 200  # lines of a private key
_WORD = re.compile(rf"(-{{0,2}}[+]{{0,2}}({NAME})=)(.+)", re.DOTALL)


def mask(text: str) -> str:
    """The text with every secret as ***."""
    return _mask_short(text) if len(text) < SHORT else _mask(text)


def _mask(text: str) -> str:
    text = mask_shapes(text)
    return _by_name(text) if mentions(fold(text).lower()) else text


_mask_short = functools.lru_cache(8192)(_mask)  # the words of tables and settings, which come again and again


def _by_name(text: str) -> str:
    for places in (elements, spans) if "</" in text else (spans,):
        parts, done, origin = [], 0, origins(text)
        for begin, end in places(fold(text)):
            parts += [text[done : origin[begin]], MASK]
            done = origin[end]
        text = "".join([*parts, text[done:]])
    return text


# ---- Plain data


def masked(data: Any) -> Any:
    """The same plain data: texts masked, and what stands under or behind a name that says so."""
    if isinstance(data, str):
        return mask(data)
    if isinstance(data, Mapping):
        return {mask(k) if isinstance(k, str) else k: beside(k, v) for k, v in data.items()}
    if isinstance(data, (list, tuple)):
        return _words(data)
    return data


def beside(key: Any, value: Any, flag: bool = False) -> Any:
    """The value of a setting; numbers stay (max_tokens), but not where the name is a password's."""
    sure = kind(key, flag) if isinstance(key, str) else NO
    if not sure or isinstance(value, (Mapping, bool)) or value is None:
        return masked(value)
    if isinstance(value, (list, tuple)):
        return [beside(key, each, flag) for each in value]
    if not isinstance(value, str):
        return MASK if sure == STRONG else value
    return value if _is_plain(value, str(key), sure) else MASK


def _is_plain(value: str, name: str, sure: str) -> bool:
    """Whether the value of a setting is no secret; under a name that may be one's, only what looks random is."""
    return is_plain_whole(value, name, sure) or (sure == MAYBE and mask(value) == value and not looks_random(value, 0))


def _words(words: Sequence[Any]) -> list[Any]:
    """A list, which may be the words of a command: a flag and its value stand in two of them."""
    masked_words: list[Any] = []
    flag = ""  # whose value comes next, or values if it is a plural
    for i, word in enumerate(words):
        value = isinstance(word, str) and not word.startswith("-")
        shown = beside(flag, word, True) if flag and value else _word(word)
        masked_words.append(MASK if value and _is_login(words[:i], word) else shown)
        if not value or not flag.lower().endswith("s"):
            named = isinstance(word, str) and FLAG.fullmatch(fold(word)) and kind(word.lstrip("-"), True)
            flag = word.lstrip("-") if named else ""
    return masked_words


def _is_login(before: Sequence[Any], word: str) -> bool:
    """`wandb login KEY` and `swanlab login -k KEY`, as words."""
    return "login" in before[1:] and (before[-1] == "-k" or looks_random(word, 0))


def _word(word: Any) -> Any:
    """One word of a command: all behind the first = is the value, blanks too."""
    match = _WORD.fullmatch(fold(word)) if isinstance(word, str) else None
    flag = match is not None and match[1].startswith("-")
    if match is None or kind(match[2], flag) in (NO, MAYBE) or (not flag and is_call(match[3])):
        return masked(word)
    at = origins(word)[match.start(3)]
    return word[:at] + str(beside(match[2], word[at:], flag))


def of_meta(meta: Mapping[str, Any]) -> Document:
    """What a run says of itself, as it is stored: command, intent, patch and reasons are anybody's text."""
    return {key: value if key in MACHINE else beside(key, value) for key, value in meta.items()}


# ---- Lines


class Lines:
    """Masks what a program prints, line by line; a private key takes many of them."""

    def __init__(self) -> None:
        self.left = 0  # lines that may still belong to a key
        self.before = ""  # the last line, where it ends with a flag whose value may follow

    def __call__(self, line: str) -> str:
        if self.left:
            self.left = 0 if "-----END " in line else self.left - 1
            return MASK + "\n"
        if BEGINS.search(line) and "-----END " not in line:
            self.left = LONGEST_KEY
        before, last = self.before, FLAG.fullmatch(fold(line.split()[-1])) if line.strip() else None
        self.before = line if last and kind(last[0].lstrip("-"), True) else ""
        return mask(before + line).removeprefix(mask(before)) if before else mask(line)
