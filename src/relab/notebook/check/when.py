"""When does a sentence say that it was? Steps, shares of the run and spans between two of them, as they are written.

`iter40`, `at step 200k`, `by 300k`, `halfway through`, `in the last quarter`, `between 20k and 40k steps`, `第 40 轮`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain

from relab.formats.read.common import step_axis
from relab.notebook.check.wording import DIGITS, Number, numbers

SHARE, ANY = "share", ""  # a share of the run; steps whose kind is not told
AXIS_WORDS = (
    r"(?:training |env(?:ironment)? |gradient |policy )?"
    r"(?:iterations?|iters?|itr|steps?|epochs?|updates?|episodes?|timesteps?|frames?|checkpoints?|ckpt|transitions|interactions)"
)
CJK_AXES = {"步": "env_steps", "轮": "iteration", "次迭代": "iteration", "代": "iteration"}
COUNT = rf"(?:{DIGITS})(?: ?(?:[kKM](?![A-Za-z])|万|million|thousand))?"
BEFORE = (
    r"at about|at around|at roughly|at|by the time of|by|after about|after around|after roughly|after|around|near|"
    r"before|until|till|up to|within|inside of|in under|in|past|since|from|beyond|following|over the first|about|"
    r"roughly|took about|took|takes|needed|needs|required|requires|~|@|到|在|第|前|之前"
)
STEP = re.compile(
    rf"(?i)(?:\b({BEFORE})\s?)?(?:(?:the|a|its|env|environment|global|training) )*(?<![A-Za-z_])"
    rf"({AXIS_WORDS})[ ]?(?:number |no\. )?[=:@#~≈]?[ ]?({COUNT})(?!:\d|\s?×)"
)
STEP_AFTER = re.compile(
    rf"(?i)(?:\b({BEFORE})|(@|在|第|前|到))[ ]?(?:the |about |around |roughly |some |just |only |first |last |~|≈)*"
    rf"({COUNT})(?:[ -]?({AXIS_WORDS}|步|轮|次迭代|代)|th ({AXIS_WORDS}))(?: in(?:to)?\b)?(?: mark| point)?"
)
INTO = re.compile(rf"(?i)(?<![\d.,])({COUNT}) ({AXIS_WORDS}) in(?:to)?\b")
BARE = re.compile(  # `by 300k`, `around 40k`; `at 2.5k` may be a value
    rf"(?i)\b(by|after|before|until|till|past|since|around|within|at|near|from|beyond)\s"
    rf"(?:about |around |roughly |the |~|≈)*((?:{DIGITS}) ?[kKM](?![A-Za-z%]))(?: mark| point)?"
)
SPAN = re.compile(
    rf"(?i)\b(between|from)\s(?:({AXIS_WORDS}) )?({COUNT})\s?(?:{AXIS_WORDS})?\s(?:and|to|until)\s(?:({AXIS_WORDS}) )?"
    rf"({COUNT})(?:\s({AXIS_WORDS}))?"
)
PARTS = {
    "half": 0.5, "third": 1 / 3, "quarter": 0.25, "fifth": 0.2, "tenth": 0.1, "thirds": 1 / 3, "quarters": 0.25,
}  # fmt: skip
PART = re.compile(
    r"(?i)\b(first|last|final|second|latter|opening|closing|initial|early)\s(?:(two|three)\s)?"
    r"(half|third|quarter|fifth|tenth|thirds|quarters)\b(?:\sof\s(?:the\s)?(?:training|run|budget|steps|time))?"
)
HUNDREDTHS = re.compile(r"(?i)\b(first|last|final)\s(\d{1,2})\s?%(?:\sof\s(?:the\s)?(?:training|run|budget|steps))?")
WAY = re.compile(
    r"(?i)\b(?:(half-?way|mid-?way)(?: through| in(?:to)?)?|(?:a|one) (third|quarter|fifth|tenth) of the way"
    r"|(two|three)[ -](thirds|quarters) (?:of the way|through)|(\d{1,2})\s?% (?:of the way|into|through))"
    r"(?: (?:the )?(?:training|run))?|训练过半|训练中途"
)
STEPS_LONG = re.compile(rf"(?i)(?<![\d.,])(?:(?:{DIGITS})[~-])?{COUNT}[ -]?(?:{AXIS_WORDS}|步|轮|次迭代)(?![A-Za-z_])")
SETTING = re.compile(r"(?i)(?:\w+\s)?epochs\b")  # passes over a batch, not a step: that would be `epoch 4`
NO_STEP = re.compile(r"(?i)\b(?:last|final|first|every|each|per)\s(?:\w+\s)?$")  # `at the last logged step: 480`
RELATIONS = {
    **dict.fromkeys(("by", "before", "in", "by the time of", "到"), "by"),
    **dict.fromkeys(("within", "inside of", "in under"), "within"),
    **dict.fromkeys(("took", "took about", "takes", "needed", "needs", "required", "requires"), "within"),
    **dict.fromkeys(("over the first", "until", "till", "up to", "前"), "until"),
    **dict.fromkeys(("after", "past", "since", "from", "beyond", "following"), "after"),
    **dict.fromkeys(("after about", "after around", "after roughly"), "after"),
}


@dataclass(frozen=True)
class Step:
    """A quoted step and what it counts; with `end`, the span up to there."""

    axis: str
    number: Number
    exact: bool = True  # False: a bound, or one of several
    relation: str = "at"  # at, by, within, until, after, between
    end: Number | None = None

    @property
    def shown(self) -> str:
        return self.number.text if self.end is None else f"{self.number.text} to {self.end.text}"


@dataclass(frozen=True)
class When:
    """A step and where it stands in a text."""

    step: Step
    start: int
    stop: int
    bare: bool = False  # without a word that says it is a step


def whens(text: str) -> list[When]:
    """All of them in order, none inside of another; a span before the steps at its ends."""
    every = chain(_spans(text), _parts(text), _ways(text), _named(text), _after(text), _bare(text))
    kept: list[When] = []
    for one in every:
        if not any(one.start < other.stop and other.start < one.stop for other in kept):
            kept.append(one)
    return sorted(kept, key=lambda one: one.start)


def steps(text: str) -> list[tuple[Step, int, int]]:
    return [(one.step, one.start, one.stop) for one in whens(text)]


def spans_of_steps(text: str, quoted: list[When]) -> list[tuple[int, int]]:
    """Where digits are steps or lengths in steps, and so no results."""
    spans = [(one.start, one.stop) for one in quoted]
    return spans + [m.span() for m in STEPS_LONG.finditer(text) if not SETTING.match(m[0])]


def _count(digits: str) -> Number:
    plain = re.sub(r"(?i) ?million", "M", re.sub(r"(?i) ?thousand", "k", digits))
    some = numbers(plain)
    return some[0] if some else Number(digits, float("nan"), 0.0)


def _axis(word: str | None) -> str:
    if not word:
        return ANY
    last = word.split()[-1].lower()
    if last in ("checkpoint", "checkpoints", "ckpt"):
        return ANY  # by what they are counted is not said
    if last in ("transitions", "interactions"):
        return "env_steps"
    return CJK_AXES.get(word) or ("updates" if "gradient" in word.lower() else step_axis(last)) or "env_steps"


def _relation(word: str | None) -> str:
    return RELATIONS.get((word or "").lower(), "at")


def _spans(text: str) -> list[When]:
    made = []
    for m in SPAN.finditer(text):
        word = m[2] or m[4] or m[6]
        first, last = _count(m[3]), _count(m[5])
        large = first.value < last.value and last.text[-1:] in "kKM" and last.unit > 1
        if word or (large and m[1].lower() == "between"):
            made.append(When(Step(_axis(word), _like(first, last), True, "between", last), *m.span()))
    return made


def _like(first: Number, last: Number) -> Number:
    """`20-40k`: the first one in the unit of the last."""
    size = {"k": 1e3, "K": 1e3, "M": 1e6}.get(last.text[-1:], 1.0)
    alone = first.text[-1:].isdigit() and first.value < 1000 <= last.value and size > 1
    return Number(first.text, first.value * size, first.unit * size) if alone else first


def _share(low: float, high: float, text: str, relation: str = "between") -> Step:
    return Step(SHARE, Number(text, low, 0.0), True, relation, Number(text, high, 0.0))


def _parts(text: str) -> list[When]:
    made = []
    for m in PART.finditer(text):
        size = min(1.0, PARTS[m[3].lower()] * {"two": 2, "three": 3}.get((m[2] or "").lower(), 1))
        made.append(When(_share(*_ends(m[1].lower(), size), m[0]), *m.span()))
    for m in HUNDREDTHS.finditer(text):
        made.append(When(_share(*_ends(m[1].lower(), int(m[2]) / 100), m[0]), *m.span()))
    return made


def _ends(word: str, size: float) -> tuple[float, float]:
    return (0.0, size) if word in ("first", "opening", "initial", "early") else (1 - size, 1.0)


def _ways(text: str) -> list[When]:
    made = []
    for m in WAY.finditer(text):
        share = 0.5
        if m[2]:
            share = PARTS[m[2].lower()]
        elif m[4]:
            share = PARTS[m[4].lower()] * {"two": 2, "three": 3}[m[3].lower()]
        elif m[5]:
            share = int(m[5]) / 100
        made.append(When(Step(SHARE, Number(m[0], share, 0.0)), *m.span()))
    return made


def _named(text: str) -> list[When]:
    """Steps are whole, and `the last step: 480` names none."""
    return [
        When(_step(m[2], m[3], text[m.end() :], m[1]), *m.span())
        for m in STEP.finditer(text)
        if not SETTING.match(m[2]) and _whole(m[3]) and not NO_STEP.search(text[max(0, m.start(2) - 24) : m.start(2)])
    ]


def _whole(digits: str) -> bool:
    return "." not in digits or not digits[-1:].isdigit() or "e" in digits.lower()


def _after(text: str) -> list[When]:
    made = [When(_step(m[4] or m[5], m[3], "", m[1] or m[2]), *m.span()) for m in STEP_AFTER.finditer(text)]
    return made + [When(_step(m[2], m[1], "", "at"), *m.span()) for m in INTO.finditer(text)]


def _bare(text: str) -> list[When]:
    return [
        When(_step("", m[2], "", m[1]), *m.span(), m[1].lower() in ("at", "near", "from")) for m in BARE.finditer(text)
    ]


def _step(word: str, digits: str, after: str, before: str | None) -> Step:
    listed = bool(re.match(r"\s?[/,~+-]\s?\d", after))
    return Step(_axis(word), _count(digits), not listed, _relation(before))
