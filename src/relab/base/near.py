"""Which known word did somebody mean? One that is really near; where none is, a guess would only mislead."""

from __future__ import annotations

import re
from collections.abc import Collection

CUTOFF = 0.66  # of difflib's ratio: 95 % of words with a slip or two are found, and 6 % of unrelated words look near
LISTED = 12  # words: so many can be told all
DATE = re.compile(r"\d{4}-\d\d-\d\d-")  # runs of one day share more letters in it than in their names


def nearest(word: str, words: Collection[str], most: int = 1, marks: str = "./") -> list[str]:
    """The known words that look most like this one, as a whole or in their last part; none where none is near.

    `marks` part a word; not for names of files, which all end alike.

    >>> nearest("lrr", ["algo.lr", "algo.clip"]), nearest("nosuch", ["algo.lr", "algo.clip"])
    (['algo.lr'], [])
    """
    rated = [(closeness(word, each, marks), each) for each in dict.fromkeys(words)]
    return [each for rate, each in sorted(rated, key=lambda pair: -pair[0]) if rate >= CUTOFF][:most]


def closeness(word: str, other: str, marks: str = "./") -> float:
    """From 0 to 1, whatever is written large or small.

    >>> closeness("trian", "train"), closeness("2026-11-16-calm-lynx", "2026-11-16-brave-otter") < CUTOFF
    (0.8, True)
    """
    a, b = _plain(word), _plain(other)
    parted = any(mark in a for mark in marks)  # then the word names its group as well
    return _ratio(a, b) if parted else max(_ratio(a, b), _ratio(a, _last(b, marks)))


def hint(word: str, words: Collection[str], form: str = "; the nearest is `{}`", marks: str = "./") -> str:
    """The end of a message about an unknown word: the nearest one; else all, where they are few; else nothing.

    >>> hint("wrok", ["work", "pause"]), hint("zzz", ["work", "pause"], "; the nearest is {}")
    ('; the nearest is `work`', '; known: work, pause')
    """
    close = nearest(word, words, marks=marks)
    if close:
        return form.format(close[0])
    return f"; known: {', '.join(words)}" if 0 < len(words) <= LISTED else ""


def _plain(word: str) -> str:
    return DATE.sub("", word.lower(), count=1)


def _last(word: str, marks: str) -> str:
    return word[max((word.rfind(mark) for mark in marks), default=-1) + 1 :]


def _ratio(a: str, b: str) -> float:
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() >= CUTOFF and matcher.quick_ratio() >= CUTOFF else 0.0
