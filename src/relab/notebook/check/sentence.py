"""How is a sentence read? Each number of a segment gets the metric, role, bound and step that it is quoted with.

The grammar in one line: [when,] metric — verb or role — [bound] number [when], and segments that follow may leave the
metric out (`peaked at 480 around 40k and settled at 300`). A word that is not in the lexicon may change what a number
is about (`on the hard maps`, `the leaderboard lists`): with one beside it a number is never certain.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from relab.notebook.check import words as w
from relab.notebook.check.certain import all_known, is_certain, of_another
from relab.notebook.check.cutting import ENDS, Segment, unnamed
from relab.notebook.check.parts import Mention
from relab.notebook.check.record import RunRecord
from relab.notebook.check.when import Step, When
from relab.notebook.check.wording import Number

LATER = re.compile(r"(?i)^\W*(?:and then|but|then|before|while|whereas|after which|only to|ending|finishing)\b")
FOLLOWS = re.compile(
    r"(?i)^[\s`]*(?:(?:in|of|for|on|as|is the|was the|points of|units of)\s)?(?:(?:the|a|an|its|our)\s)?[\s`]*$"
)
BEHIND = re.compile(  # belongs to the number before it: `from 20 at the start to 31`
    r"(?i)^\s*(?:(?:at|by|in|from)\s(?:the\s)?(?:very\s)?(?:start|beginning|end|outset|finish|init\w*)"
    r"(?:\sof\s(?:the\s)?(?:training|run))?|initially|at first)\b"
)
TREND = re.compile(
    r"(?i)\b(upward|rising|increasing|growing|downward|falling|decreasing|declining)\s(?:trend|drift|slope)\b"
)
CLAUSE = re.compile(r"(?i)\b(?:is|was|are|were|has|had|did|does)\b")  # a sentence of its own, no adverbial
CHECKPOINT = re.compile(r"(?i)\b(?:checkpoint|model|evaluation|eval|policy)\b")
NEXT = re.compile(
    r"(?i)[\s`~≈]*(?:(?:the|a|an|about|around|roughly|some|even|its|level of|value of|mark of|of)[\s`~≈]+)*"
)
OPENS = re.compile(r"(?i)^\W*(?:it|its|this|that|the curve|the metric|the number|they)\b")


@dataclass(frozen=True)
class Quote:
    """A number of a segment with what it is said of, before it is called a claim."""

    segment: Segment
    one: Number
    mention: Mention | None
    role: str
    bound: str
    step: Step | None
    firm: bool
    setting: bool = False
    pair: Number | None = None
    sign: str = ""
    inherited: bool = False


@dataclass
class Carry:
    """What a segment takes over from those before it."""

    mention: Mention | None = None
    role: str = ""
    lead: Step | None = None
    others: bool = False
    unclear: bool = False  # narrowed by words that are not known


# ---- Reading


def quotes(text: str, span: tuple[int, int], pieces: list[Segment], record: RunRecord, carry: Carry) -> Iterator[Quote]:
    """All numbers of a sentence with what they are said of."""
    soft = bool(w.SOFT.search(text[span[0] : span[1]]))
    made: list[Quote] = []
    for index, piece in enumerate(pieces):
        _take_over(piece, pieces[index - 1] if index else None, carry)
        if piece.only_when:
            made = _attach(piece, made, carry)
            continue
        if made and piece.bracket and not made[-1].role and (role := _only_role(piece)):
            made[-1] = replace(made[-1], role=role)  # `480 (final)`
            continue
        away = bool(w.LEADS_AWAY.match(piece.text)) or piece.bracket or bool(CLAUSE.search(piece.text))
        if not away and not made and not piece.figures:  # what leads a sentence may narrow all of it
            carry.unclear = carry.unclear or not all_known(piece, record)
        made += list(_of_segment(text, piece, record, carry, soft))
    yield from made


def _take_over(piece: Segment, before: Segment | None, carry: Carry) -> None:
    """Whether a piece still speaks of another run, and of the step at the head of the sentence."""
    if LATER.match(f" {piece.joint} "):
        carry.lead = None
    if w.RELATIVE.match(piece.text) and before is not None and before.others:
        carry.others = True
    elif w.COMES_BACK.search(piece.text):
        carry.others = False
    if piece.others and not w.LEADS_AWAY.match(piece.text):
        carry.others = True


def _attach(piece: Segment, made: list[Quote], carry: Carry) -> list[Quote]:
    """A step alone: in brackets or behind a number it belongs to it, before all numbers it is that of the sentence."""
    only = piece.whens[0].step if len(piece.whens) == 1 and piece.whens[0].step.exact else None
    if not made:
        carry.lead, carry.unclear = only, carry.unclear or only is None
        return made
    last = made[-1]
    if last.step is None or piece.bracket:
        changed = _with(last, step=only, firm=last.firm and only is not None and not _bounded(piece.text))
        return [*made[:-1], changed]
    return made


def _with(quote: Quote, step: Step | None, firm: bool) -> Quote:
    return replace(quote, step=step, firm=firm)


def _only_role(piece: Segment) -> str:
    return "" if piece.figures or piece.names or piece.whens else role_of(piece, None, piece.text, "")


def _bounded(text: str) -> bool:
    return bool(re.search(r"[<>≤≥]", text))


def _of_segment(text: str, piece: Segment, record: RunRecord, carry: Carry, soft: bool) -> Iterator[Quote]:
    used: set[int] = set()
    for index, one in enumerate(piece.figures):
        if index in used:
            continue
        pair, sign = pair_of(text, piece.figures, index, piece.whens)
        used |= {index + 1} if pair is not None else set()
        mention, inherited = subject(text, piece, index, carry)
        left, right = _sides(text, piece, index, pair)
        role = role_of(piece, mention, left, right) or (carry.role if inherited else "")
        step, clear = step_of(text, piece, index, pair, carry)
        firm = not soft and clear and not carry.others and not carry.unclear and not piece.others
        firm = firm and is_certain(text, piece, one, mention, inherited, left, right, record)
        firm = firm and not (inherited and piece.bracket and not role) and not of_another(piece, record)
        bound = bound_of(piece, left, role, step)
        role = "" if bound.startswith("never") else role  # `from start to finish`
        firm = firm and bound != "unclear" and role != "unclear"
        setting = is_setting(piece, mention, text, one)
        yield Quote(piece, one, mention, role, bound, step, firm, setting, pair, sign, inherited)
    if piece.names and not piece.bracket:
        carry.mention = piece.names[-1]
    carry.role = "" if piece.figures else role_of(piece, None, piece.text, "")
    carry.role = "" if carry.role == "unclear" else carry.role


def subject(text: str, piece: Segment, index: int, carry: Carry) -> tuple[Mention | None, bool]:
    """The metric of a number: the one before it, the one right behind it, else that of the segment before."""
    one = piece.figures[index]
    before = [m for m in piece.names if m.end <= one.start]
    if before and not (index and before[-1].end <= piece.figures[index - 1].start and _free(text, piece, index)):
        return before[-1], False
    behind = [m for m in piece.names if m.start >= one.end]
    if behind and FOLLOWS.match(text[one.end : behind[0].start]):
        return behind[0], False
    if before:
        return before[-1], False
    last = carry.mention
    opens = piece.bracket and last is not None and text[last.end : piece.start].strip(" `*") == "("
    return last, not opens  # `gamma (0.99)`


def _free(text: str, piece: Segment, index: int) -> bool:
    """`entropy 0.5 at 20k, 0.3 KL`: whether a number after another has its own metric right behind it."""
    one = piece.figures[index]
    behind = [m for m in piece.names if m.start >= one.end]
    return bool(behind) and bool(FOLLOWS.match(text[one.end : behind[0].start]))


def _sides(text: str, piece: Segment, index: int, pair: Number | None) -> tuple[str, str]:
    """What stands before a number, from the one before it, and behind it."""
    start = piece.figures[index - 1].end if index else piece.start
    last = index + (1 if pair is not None else 0)
    end = piece.figures[last + 1].start if last + 1 < len(piece.figures) else piece.end
    left = text[start : piece.figures[index].start]
    return (BEHIND.sub("", left) if index else left), text[piece.figures[last].end : end]


def role_of(piece: Segment, mention: Mention | None, left: str, right: str) -> str:
    """Final, peak, low, first, mean, result; `unclear` where two of them are meant."""
    for side in (left, right):
        for name in piece.names:  # `mean reward` is a name
            side = side.replace(name.word, " ")
        roles = [role for role, pattern in w.ROLES.items() if pattern.search(side)]
        if "last" in roles and set(roles) & {"result", "first"} and len(roles) == 2:
            roles = ["last"]
        if len(roles) == 2 and "result" in roles:
            roles.remove("result")
        if len(roles) == 2 and set(roles) == {"best", "peak"}:
            roles = ["peak"]
        if roles:
            return roles[0] if len(roles) == 1 else "part" if "mean" in roles else "unclear"
    return ""


def bound_of(piece: Segment, left: str, role: str, step: Step | None) -> str:
    """`never exceeded`, `stayed below`, `reached ... by`: which side, and whether always or once."""
    near = unnamed(left[-64:], piece)
    below, above = _adjacent(w.BELOW, near), _adjacent(w.ABOVE, near)
    never, always = w.NEVER.search(piece.text), w.ALWAYS.search(piece.text)
    if never and not below and not above:
        return "never above" if w.REACH.search(near) else "unclear"
    if not below and not above:
        within = step is not None and step.relation == "within"
        return "pass" if within else "reach" if w.REACH.search(near) and step is not None else ""
    side = "above" if above else "below"
    if never:
        return f"never {side}"
    if always:
        return "never above" if below else "never below"
    if w.MOVES.search(near) or w.REACH.search(near) or _adjacent(w.OVERTAKES, near):
        return "reach" if above else "fall"
    return f"is {side}" if role in ("last", "first", "peak", "low") or step is not None else "unclear"


def _adjacent(pattern: re.Pattern[str], left: str) -> bool:
    """Whether a word for a bound stands right before the number."""
    return any(NEXT.fullmatch(left[m.end() :]) for m in pattern.finditer(left))


def step_of(text: str, piece: Segment, index: int, pair: Number | None, carry: Carry) -> tuple[Step | None, bool]:
    """The step of a number, and whether it is clear."""
    one, last = piece.figures[index], pair or piece.figures[index]
    alone = len(piece.figures) == (2 if pair is not None else 1)
    if len(piece.whens) == 1 and alone:
        return (piece.whens[0].step, True) if piece.whens[0].step.exact else (None, False)
    if piece.whens:
        beside = [m for m in piece.whens if 0 <= m.start - last.end <= 4 or 0 <= one.start - m.stop <= 24]
        behind = [m for m in beside if m.start >= last.end] or beside
        return (behind[0].step, behind[0].step.exact) if behind else (None, False)
    return carry.lead, True


# ---- Settings and pairs


def is_setting(piece: Segment, mention: Mention | None, text: str, one: Number) -> bool:
    """Whether a number is said of a setting rather than of a curve of the same name."""
    if mention is None or not mention.names.keys:
        return False
    gap = text[mention.end : one.start] if mention.end <= one.start else ""
    logged = all(column.startswith("optim/") for column in mention.names.columns)  # a setting that is logged as well
    return logged or gap.strip(" `*") in ("=", ":", "") or bool(w.SETTING.search(piece.text))


def pair_of(text: str, figures: list[Number], index: int, quoted: list[When]) -> tuple[Number | None, str]:
    """The second of two numbers that belong together, and how: arrow, range or spread."""
    if index + 1 >= len(figures):
        return None, ""
    one, other = figures[index], figures[index + 1]
    gap = text[one.end : other.start].strip(" `*").lower()
    before = text[max(0, one.start - 12) : one.start].lower()
    for kind, signs in SIGNS.items():
        if gap in signs:
            return other, kind
    if gap == "and" and "between" in before:
        return other, "range"
    if gap.endswith(("到", "到最终的", "至")):
        return other, "arrow"
    if re.fullmatch(r"(?:all the way |right |back )?(?:up |down )?to(?: about| around| roughly| only| just)?", gap):
        return other, "arrow"
    return None, ""


SIGNS = {
    "arrow": {"→", "to", "到", "至", "降到", "升到", "提升到", "下降到", "上升到", "up to", "down to"},
    "range": {"~", "-", "~ "},
    "spread": {"±", "+/-", "+-"},
}


# ---- Directions, moments


def moments(piece: Segment, record: RunRecord) -> Iterator[tuple[Mention | None, str, Step]]:
    """`the best checkpoint was at step 40k`: an extreme and its step, without its value."""
    if piece.figures or len(piece.whens) != 1 or piece.whens[0].step.relation not in ("at", "after", "by"):
        return
    role = role_of(piece, None, piece.text, "")
    subject = [m for m in piece.names if m.names.columns and m.sure]
    if role in ("peak", "best", "low") and len(subject) == 1:
        yield subject[0], role, piece.whens[0].step
    elif role in ("peak", "best") and not piece.names and CHECKPOINT.search(piece.text):
        yield None, role, piece.whens[0].step


def directions(piece: Segment, text: str) -> Iterator[tuple[Mention, str, int]]:
    """`entropy rose`, `an upward trend in entropy`: a metric, which way it went, and where that ends; no numbers."""
    trend = TREND.search(piece.text)
    if (
        trend
        and len(piece.names) == 1
        and piece.names[0].names.columns
        and piece.names[0].start >= piece.start + trend.end()
    ):
        yield (
            piece.names[0],
            "rise" if w.RISE.match(trend[1]) or trend[1][:2].lower() == "up" else "fall",
            piece.names[0].end,
        )
        return
    ends = ENDS.search(piece.text)
    if ends and len(piece.names) == 1 and piece.names[0].names.columns:
        yield piece.names[0], "rise" if ends[1].lower() in ("higher", "larger") else "fall", piece.start + ends.end()
        return
    for mention in piece.names:
        behind = text[mention.end : min(piece.end, mention.end + 48)]
        later = [m.start for m in piece.names if m.start > mention.start]
        behind = behind[: min(later) - mention.end] if later else behind
        ways = [(kind, m.end()) for kind, pattern in w.DIRECTIONS.items() if (m := pattern.search(behind))]
        if not ways and (m := w.UNLEARNED.search(behind)):
            ways = [("flat", m.end())]
        if len(ways) == 1 and mention.names.columns:
            yield mention, ways[0][0], mention.end + ways[0][1]
