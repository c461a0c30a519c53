"""Which claims does a write-up make, and about which run? Numbers with the metric, step and role that they are given.

A claim is firm when nothing about it is guessed: the run is named above it, the metric by its own name, the number
right behind it, and no word says plan, threshold, other run. Only a firm claim can be contradicted; all others are
matched with the record, or remain unmatched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from relab.formats.read.common import step_axis
from relab.notebook.check import words as w
from relab.notebook.check.parts import (  # fmt: skip
    BOUND,
    ID,
    MARKER,
    STAMP,
    WORD,
    Mention,
    Scope,
    bare,
    before,
    beside,
    closed,
    in_brackets,
    inside,
    linked,
    longest,
    means_run,
    measures,
    only_number,
    pair_of,
    quoted,
    run_stamps,
    run_words,
    stands_as_heading,
    step_of,
)
from relab.notebook.check.record import Names, RunRecord, normal
from relab.notebook.check.wording import Line, Number, Step, Table, Text, clauses, numbers, spans_of_steps

COUNT = re.compile(r"(?i)(?<![\w.])(\d{1,6})\s?(episodes?|epis?|eps|回合|局|seeds?|个?种子)(?![A-Za-z_=])")
VERSION = re.compile(r"(?i)(?<![A-Za-z0-9])v\d{1,3}(?![0-9.])")
STRANGER = re.compile(r"[A-Za-z0-9]+[_-][A-Za-z0-9_-]*\d|\d{4}-\d\d")  # a heading that names something else
MAX_CLAIMS = 5_000
Span = tuple[int, int]
NOTHING = Names()


@dataclass(frozen=True)
class Claim:
    """A number, a pair of them or a direction, with what it is said of."""

    line: int
    quote: str
    kind: str  # value, pair, direction, count
    run: str | None
    word: str = ""  # the metric or setting as written
    names: Names = NOTHING
    numbers: tuple[Number, ...] = ()
    step: Step | None = None
    role: str = ""
    firm: bool = False
    text: str = ""  # the clause
    whole: str = ""  # the line


class Reader:
    """Reads claims about the runs it is given."""

    def __init__(self, records: Mapping[str, RunRecord]):
        self.records = dict(records)
        self.words = run_words(self.records)
        alternatives = "|".join(re.escape(word) for word in sorted(self.words, key=len, reverse=True))
        self.runs_in = re.compile(rf"(?<![A-Za-z0-9_\-])(?:{alternatives or '(?!)'})(?![A-Za-z0-9_\-])")
        self.stamps = run_stamps(self.records)
        self.starts = {name[:4] for name in self.records if len(name) >= 8}
        self.quoted: dict[str, None] = {}
        self.only: str | None = None  # the run that a text is about as a whole
        self.named = False  # whether that run was named already
        self.mingled = False  # the text speaks of other runs as well

    def mentioned(self, text: str) -> list[str]:
        """The runs that a text names, each once."""
        mentions = [(m.start(), self.words[m[0]]) for m in self.runs_in.finditer(text) if means_run(text, m)]
        for match in STAMP.finditer(text):
            run = self.stamps.get(re.sub(r"\D", "", match[0]))
            mentions += [(match.start(), run)] if run else []
        return list(dict.fromkeys(run for _, run in sorted(mentions)))

    def strange(self, text: str) -> bool:
        """Whether a text names what looks like a run and is none of these: it begins as they do, and ends otherwise."""
        for token in ID.findall(text):
            if token[:4] in self.starts and token not in self.words and re.search(r"\d", token):
                date = re.fullmatch(r"\d{4}-\d\d-\d\d", token)
                if not date and not any(record.look(token) for record in list(self.records.values())[:1]):
                    return True
        return False

    def about(self, scope: Scope) -> str | None:
        return None if scope.closed else scope.run or self.only

    def read(self, text: Text, home: str | None = None) -> list[Claim]:
        """All claims of a text, in order; `home` is the run in whose folder the text lies."""
        whole = [b for b in text.blocks if isinstance(b, Line)]
        named = {run for line in whole for run in self.mentioned(line.raw)}
        named |= {
            run for b in text.blocks if isinstance(b, Table) for line, _ in b.rows for run in self.mentioned(line.raw)
        }
        self.quoted = dict.fromkeys(name for name in self.records if name in named)
        others = any(self.strange(line.text) for line in whole)
        self.mingled = others or len(self.quoted) > 1
        alone = [home] if home else list(self.quoted) or list(self.records)
        self.only = alone[0] if len(alone) == 1 and (home or self.quoted or not others) else None
        self.named = not self.quoted or home is not None  # a text without a name, given with one run, is about that run
        claims: list[Claim] = []
        scope = Scope()
        for block in text.blocks:
            claims += self.table(block, scope) if isinstance(block, Table) else self.line(block, scope)
            if len(claims) > MAX_CLAIMS:
                break
        return claims[:MAX_CLAIMS]

    # ---- Lines

    def line(self, line: Line, scope: Scope) -> list[Claim]:
        level = line.headings[-1][0] if line.headings else 0
        here, strange = self.mentioned(line.raw), self.strange(line.text)
        self.named = self.named or bool(here)
        if line.heading:
            scope.enter(line.heading, here[0] if len(here) == 1 else None, bool(here) or strange)
            run = self.about(scope)
            return list(self.counts(line, run, run is not None and not self._soft(line, run, scope)))
        title = stands_as_heading(line)
        if title:
            scope.title, scope.mixed = line.text, False
        for name in here:
            scope.mention(level, name, bool(MARKER.match(line.text)), title)
        scope.mixed = scope.mixed or strange
        run = (here[0] if len(here) == 1 else None) if here else self.about(scope)
        if run is None:
            return self.unplaced(line)
        sure = bool(here) or not (scope.mixed or scope.torn)
        sure = sure and not strange and not self._soft(line, run, scope)
        hidden, every = list(spans_of_steps(line.text)), numbers(line.text)
        every = [n for n in every if not inside(n, hidden)]
        spans = clauses(line.text)
        claims = [claim for span in spans for claim in self.clause(line, span, run, sure, hidden, every)]
        return claims + list(self.counts(line, run, sure))

    def unplaced(self, line: Line) -> list[Claim]:
        """Numbers of a line that speaks of no run: nothing can be said of them."""
        hidden = list(spans_of_steps(line.text))
        return [Claim(line.number, quoted(line.text, n.start, n.end), "value", None, numbers=(n,))
                for n in numbers(line.text) if measures(n) and not inside(n, hidden)]  # fmt: skip

    def _soft(self, line: Line, run: str, scope: Scope) -> bool:
        """Whether the line speaks of plans, or of something else than the run."""
        above = [title for _, title in line.headings] + [scope.title]
        if any(w.PLAN.search(title) for title in above if title):
            return True
        if scope.run is None and (not self.named or self.mingled or any(STRANGER.search(title) for title in above)):
            return True
        own = set(VERSION.findall(run.replace("_", " ").replace("-", " ")))
        return bool(set(VERSION.findall(line.text.replace(run, " "))) - own)

    def clause(
        self, line: Line, span: Span, run: str, sure: bool, hidden: list[Span], every: list[Number]
    ) -> Iterator[Claim]:
        start, end = span
        text = line.text
        part = text[start:end]
        figures = [n for n in every if start <= n.start < end]
        names = self.mentions(text, start, end, self.records[run], hidden)
        step, clear, leading = step_of(text, start, end)
        firm = sure and clear and not any(p.search(part) for p in (w.SOFT, w.OTHERS, w.DERIVED))
        used: set[int] = set()
        for index, one in enumerate(figures):
            mention = before(names, one)
            if index in used or not (measures(one) or (mention and mention.names)):
                continue
            pair, sign = pair_of(text, figures, index)
            used |= {index + 1} if pair is not None else set()
            own, unclear = in_brackets(text, one)
            mine = step if leading or beside(text, one, step, figures) else None
            unclear = unclear or mine is not step
            claim = self.bound(line, text, part, mention, one, firm and not unclear)
            quote = quoted(text, mention.start if mention else one.start, closed(text, (pair or one).end))
            yield replace(with_pair(claim, pair, sign), run=run, step=own or mine, quote=quote, whole=text)
        if not figures:
            yield from self.directions(line, text, part, names, run, firm and step is None)

    def bound(self, line: Line, text: str, part: str, mention: Mention | None, one: Number, firm: bool) -> Claim:
        """The claim that a number makes of the metric before it."""
        if mention is None:
            return Claim(line.number, "", "value", None, numbers=(one,), text=part)
        gap = text[mention.end : one.start]
        around = text[max(0, mention.start - 20) : mention.start] + " " + gap + " " + text[one.end : one.end + 12]
        roles = [role for role, pattern in w.ROLES.items() if pattern.search(around)]
        role = "mean" if "mean" in roles else roles[0] if len(roles) == 1 else ""
        as_setting = gap.strip(" `*") in ("=", ":") and bool(mention.names)  # written as a setting is
        sure = (
            firm
            and linked(gap)
            and (mention.sure or as_setting)
            and len(set(roles) - {"mean"}) < 2
            and not BOUND.search(gap)
            and "→" not in gap
        )
        sure = sure and not (one.percent and (w.RISE.search(part) or w.FALL.search(part)))
        return Claim(line.number, "", "value", None, mention.word, mention.names, (one,), None, role, sure, part)

    def mentions(
        self, text: str, start: int, end: int, record: RunRecord, hidden: list[tuple[int, int]]
    ) -> list[Mention]:
        """Metrics and settings named in a part of a line; up to three words make a name."""
        tokens = [m for m in WORD.finditer(text, start, end) if not any(a <= m.start() < b for a, b in hidden)]
        mentions: list[Mention] = []
        at = 0
        while at < len(tokens):
            size, mention = longest(text, tokens, at, record)
            if mention is not None:
                mentions.append(mention)
            at += size
        return mentions

    def directions(
        self, line: Line, text: str, part: str, names: list[Mention], run: str, firm: bool
    ) -> Iterator[Claim]:
        """`entropy rose`: a metric and a change of it, without numbers."""
        for mention in names:
            behind = text[mention.end : mention.end + 24]
            ways = [(kind, m.end()) for kind, pattern in w.DIRECTIONS.items()
                    if (m := pattern.search(behind)) and linked(behind[: m.start()])]  # fmt: skip
            if len(ways) == 1 and mention.names.columns:
                sure = firm and mention.sure and not w.QUALIFIED.search(part)
                yield Claim(line.number, quoted(text, mention.start, mention.end + ways[0][1]), "direction", run,
                            mention.word, mention.names, role=ways[0][0], firm=sure, text=part)  # fmt: skip

    def counts(self, line: Line, run: str | None, sure: bool) -> Iterator[Claim]:
        """`24 episodes` of an evaluation, `5 seeds`."""
        for match in COUNT.finditer(line.text):
            kind = "seeds" if re.match(r"(?i)seed|个|种", match[2]) else "episodes"
            if run is None or (kind == "episodes" and not w.EVALUATION.search(line.text)):
                continue
            firm = sure and not w.SOFT.search(line.text) and not BOUND.search(line.text)
            count = Number(match[1], float(match[1]), 1.0, match.start(1), match.end(1))
            yield Claim(line.number, line.raw[:80], "count", run, kind, numbers=(count,), firm=firm, text=line.text)

    # ---- Tables

    def table(self, table: Table, scope: Scope) -> list[Claim]:
        """A row per step, a row per metric with its last, min and max, or a row per run."""
        first = normal(table.header[0]) if table.header else ""
        roles = [w.HEADERS.get(normal(cell) or cell, "") for cell in table.header]
        axis = step_axis(first) if first else None
        claims: list[Claim] = []
        for line, cells in table.rows:
            named = self.mentioned(line.raw)
            run = (named[0] if len(named) == 1 else None) if named else self.about(scope)
            if run is None:
                continue
            sure = not (scope.mixed or scope.torn) and not self._soft(line, run, scope)
            if axis is not None:
                claims += self.row_of_step(table, line, cells, run, axis, sure)
            elif sum(1 for role in roles if role) >= 2:
                claims += self.row_of_metric(line, cells, roles, run, sure)
            else:
                claims += self.row_of_run(table, line, cells, run)
        return claims

    def row_of_step(
        self, table: Table, line: Line, cells: list[str], run: str, axis: str, sure: bool
    ) -> Iterator[Claim]:
        at = only_number(cells[0])
        if at is None:
            return
        for header, cell in zip(table.header[1:], cells[1:]):
            one, names = only_number(cell), self.records[run].look(bare(header))
            if one is not None:
                where = f"{header} {cell} at {table.header[0]} {cells[0]}"
                firm = sure and bool(names)
                yield Claim(line.number, where, "value", run, header, names, (one,), Step(axis, at), "", firm)

    def row_of_metric(self, line: Line, cells: list[str], roles: list[str], run: str, sure: bool) -> Iterator[Claim]:
        names = self.records[run].look(bare(cells[0]))
        for role, cell in zip(roles[1:], cells[1:]):
            one = only_number(cell)
            if one is not None:
                yield Claim(line.number, f"{cells[0]} {role or ''} {cell}", "value", run, cells[0], names, (one,), None,
                            role, sure and bool(names) and role != "slope")  # fmt: skip

    def row_of_run(self, table: Table, line: Line, cells: list[str], run: str) -> Iterator[Claim]:
        """Never firm: such tables hold means over seeds as often as results of one run."""
        pairs = list(zip(table.header[1:], cells[1:]))
        if len(cells) == 2 and self.records[run].look(bare(cells[0])):
            pairs = [(cells[0], cells[1])]
        for header, cell in pairs:
            one, names = only_number(cell), self.records[run].look(bare(header))
            if one is not None:
                yield Claim(line.number, f"{header} {cell}", "value", run, header, names, (one,))


def with_pair(claim: Claim, pair: Number | None, sign: str) -> Claim:
    """A pair is a claim of its own kind; a spread is not checked, a range is never contradicted."""
    if pair is None or sign == "spread":
        return claim
    return replace(claim, kind="pair", numbers=(*claim.numbers, pair), firm=claim.firm and sign == "arrow", role=sign)
