"""What makes a number of a write-up certain? Words that are not in the lexicon may say that it is of something else."""

from __future__ import annotations

import re
from collections.abc import Iterator

from relab.notebook.check import words as w
from relab.notebook.check.cutting import Segment, unnamed
from relab.notebook.check.parts import Mention
from relab.notebook.check.record import RunRecord
from relab.notebook.check.wording import Number

WORD = re.compile(r"[^\W\d_][\w'\-/.]*")
CJK = re.compile(r"[\u4e00-\u9fff]")


def is_certain(
    text: str,
    piece: Segment,
    one: Number,
    mention: Mention | None,
    inherited: bool,
    left: str,
    right: str,
    record: RunRecord,
) -> bool:
    """Whether nothing in the segment changes what the number means."""
    if mention is None or not mention.names:
        return False
    gap = text[mention.end : one.start] if mention.end <= one.start and not inherited else ""
    sure = mention.sure or gap.strip(" `*") in ("=", ":")
    sides = (unnamed(left[-60:], piece), w.ALWAYS.sub(" ", unnamed(right[:24], piece)))
    derived = any(w.DERIVED.search(side) for side in sides)
    by_how_much = w.MOVES.search(left[-24:]) and not w.ALONG.search(left[-16:])
    change = one.percent and (w.MOVES.search(piece.text) or w.RISE.search(piece.text) or w.FALL.search(piece.text))
    if not sure or derived or by_how_much or change or "→" in gap or re.search(r"(?i)\bby\s*$", left[-6:]):
        return False
    if not all_known(piece, record):
        return False  # `the leaderboard lists a return of 64,000`: whose number it is, nobody can tell
    if one.text[-1:] in "kM" and not _in_reach(one, mention, record):
        return False  # `plateaued at 10k`: a step
    return not _foreign_words(gap) and not _strange_name(piece)


def _in_reach(one: Number, mention: Mention, record: RunRecord) -> bool:
    largest = [float(abs(record.curves[c].values).max()) for c in mention.names.columns]
    return not largest or abs(one.value) <= 20 * max(largest)


def of_another(piece: Segment, record: RunRecord) -> bool:
    """Whether someone else than this run had the number: `our colleague's code had`."""
    named = {word for name in piece.names for word in name.word.lower().split()}
    for match in w.OWNS.finditer(piece.text):
        owner = match[1].lower()
        plain = owner in w.SELF or owner in named - {"seed", "seeds"} or owner in record.own_words
        if not plain and not owner.endswith("ly") and not any(p.fullmatch(owner) for p in LEXICON):
            return True
    return False


def _tokens(piece: Segment) -> Iterator[tuple[str, bool]]:
    """Words of a segment, and whether they belong to a metric, a step or a phrase of the lexicon."""
    spans = _spans(piece)
    for match in WORD.finditer(piece.text):
        at = piece.start + match.start()
        yield match[0].lower().strip(".'"), any(a <= at < b for a, b in spans)


def _strange_name(piece: Segment) -> bool:
    """Whether an identifier stands in the segment that the record does not have."""
    return any(not name.names for name in piece.names)


def _foreign_words(gap: str) -> bool:
    """Chinese between metric and number that is not in the lexicon."""
    rest = w.LINKS_CJK.sub("", gap)
    for pattern in (*w.ROLES.values(), *w.DIRECTIONS.values(), w.BELOW, w.ABOVE, w.ALWAYS, w.NEVER):
        rest = pattern.sub("", rest)
    return len(CJK.findall(rest)) > 1


def _spans(piece: Segment) -> list[tuple[int, int]]:
    spans = [(m.start, m.end) for m in piece.names] + [(one.start, one.stop) for one in piece.whens]
    return spans + [(piece.start + m.start(), piece.start + m.end()) for p in LEXICON for m in p.finditer(piece.text)]


def _known(token: str) -> bool:
    return (
        token in w.LINKS
        or token in w.PLAIN
        or any(p.fullmatch(token) for p in LEXICON)
        or token.removesuffix("'s") in w.LINKS
    )


LEXICON = (
    *w.ROLES.values(),
    *w.DIRECTIONS.values(),
    w.BELOW,
    w.ABOVE,
    w.ALWAYS,
    w.NEVER,
    w.REACH,
    w.RISE,
    w.FALL,
    w.SETTING,
)


def all_known(piece: Segment, record: RunRecord) -> bool:
    """Whether each word of a segment is of the lexicon, an adverb, or names what the run is about."""
    own = record.own_words
    return all(named or _known(token) or token.endswith("ly") or token in own for token, named in _tokens(piece))


def narrowed(piece: Segment, record: RunRecord) -> bool:
    """Whether a preposition leads to a word that is not known: `on the hard maps`."""
    after = False
    own = record.own_words
    for token, named in _tokens(piece):
        if after and token in w.DETERMINERS:
            continue
        if after and not named and not _known(token) and token not in own:
            return True
        after = token in w.PREPOSITIONS and not named
    return False
