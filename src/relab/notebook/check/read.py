"""Which claims does a write-up make, and about which run? Numbers with the metric, step and role that they are given.

A claim is firm when nothing about it is guessed: the run is named above it, the metric by a name of its own, and no
word says plan, threshold, other run. Only a firm claim can be contradicted; all others are matched with the record, or
remain unmatched. How a sentence is cut stands in cutting.py, how it is read in sentence.py, tables in tables.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from relab.notebook.check import between, cutting, tables
from relab.notebook.check import sentence as s
from relab.notebook.check import words as w
from relab.notebook.check.certain import narrowed
from relab.notebook.check.claim import MAX_CLAIMS, NOTHING, Claim
from relab.notebook.check.parts import (  # fmt: skip
    ID,
    MARKER,
    STAMP,
    Scope,
    closed,
    means_run,
    measures,
    quoted,
    run_stamps,
    run_words,
    stands_as_heading,
)
from relab.notebook.check.record import RunRecord
from relab.notebook.check.when import spans_of_steps, whens
from relab.notebook.check.wording import Line, Number, Table, Text, numbers

COUNT = re.compile(r"(?i)(?<![\w.])(\d{1,6})\s?(episodes?|epis?|eps|回合|局|seeds?|个?种子)(?![A-Za-z_=])")
VERSION = re.compile(r"(?i)(?<![A-Za-z0-9])v\d{1,3}(?![0-9.])")
STRANGER = re.compile(r"[A-Za-z0-9]+[_-][A-Za-z0-9_-]*\d|\d{4}-\d\d")  # a heading that names something else
COMPARED = w.words(
    "than vs vs. versus beats beat outperforms outperformed over against compared ahead behind", "相比 对比 优于"
)
WHOLE = re.compile(r"(?i)\b(?:during|over|throughout|across) (?:the )?(?:whole |entire )?(?:training|run|learning)\b")
LENGTH = re.compile(
    r"(?i)\b(?:(?:trained|training|ran|run|stopped|finished|ended|lasted|goes|went)\s(?:\w+\s){0,3}?(?:for|after|at|of|over)"
    r"|covers|covered|spans|spanned|comprises|lasted|lasts|saw|is a run of|budget(?: of| was| is|:))"
    r"\s(?:a total of |about |around |roughly |~)?(\d[\d,.]* ?(?:[kKM](?![A-Za-z]))?) "
    r"(?:(?:env(?:ironment)?|training|total) )?(?:steps|timesteps|frames)\b"
)
Span = tuple[int, int]


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

    def placed(self, text: str) -> list[tuple[int, int, str]]:
        """Where a text names runs: (start, end, run), in order."""
        places = [(*m.span(), self.words[m[0]]) for m in self.runs_in.finditer(text) if means_run(text, m)]
        for match in STAMP.finditer(text):
            run = self.stamps.get(re.sub(r"\D", "", match[0]))
            places += [(*match.span(), run)] if run else []
        return sorted(places)

    def mentioned(self, text: str) -> list[str]:
        """The runs that a text names, each once."""
        return list(dict.fromkeys(run for _, _, run in self.placed(text)))

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
        if len(here) > 1:
            return self.of_several(line, scope)
        if run is None:
            return self.unplaced(line)
        sure = bool(here) or not (scope.mixed or scope.torn)
        sure = sure and not strange and not self._soft(line, run, scope)
        return [*self.body(line, (0, len(line.text)), run, sure), *self.counts(line, run, sure)]

    def body(self, line: Line, span: Span, run: str, sure: bool) -> Iterator[Claim]:
        """The claims of a part of a line, sentence by sentence."""
        record, text = self.records[run], self.blanked(line.text)
        carry, marks = s.Carry(), cutting.marks(text)
        for start, end in cutting.sentences(text):
            start, end = max(start, span[0]), min(end, span[1])
            if start >= end or not text[start:end].strip():
                continue
            carry = s.Carry(mention=carry.mention if s.OPENS.match(text[start:end]) else None, lead=carry.lead)
            pieces = cutting.segments(text, (start, end), marks, record)
            quotes = list(s.quotes(text, (start, end), pieces, record, carry))
            yield from (self.claim(line, text, quote, run, sure) for quote in quotes if self.counts_as(quote))
            yield from self.directions(line, text, pieces, run, sure)
            yield from self.moments(line, text, pieces, run, sure)
            yield from self.lengths(line, text, (start, end), run, sure)
            yield from self.solved(line, text, (start, end), run, sure)
            only = [one for one in marks.whens if start <= one.start < end] if not quotes else []
            rest = text[start : only[0].start] + text[only[0].stop : end] if len(only) == 1 else "more"
            alone = not re.search(r"\w", MARKER.sub("", rest))  # `Step 20,480.` and nothing else
            carry.lead = only[0].step if alone else None

    def blanked(self, text: str) -> str:
        """Names of runs as blanks: their parts are no words of the sentence."""
        for start, end, _ in self.placed(text):
            text = text[:start] + " " * (end - start) + text[end:]
        return text

    def of_several(self, line: Line, scope: Scope) -> list[Claim]:
        """A line that names several runs: what stands between a name and the next is about the first of them."""
        claims: list[Claim] = []
        places = self.placed(line.text)
        if not places:
            return self.unplaced(line)
        for start, end in cutting.sentences(line.text):
            here = [place for place in places if start <= place[0] < end]
            order = between.comparison(line, (start, end), self.blanked(line.text), here, self.records, bool(here))
            claims += [order] if order is not None else []
            sure = not COMPARED.search(line.text[start:end]) and not w.SOFT.search(line.text[start:end])
            for index, (at, _, run) in enumerate(here):
                stop = here[index + 1][0] if index + 1 < len(here) else end
                begin = start if index == 0 and len(here) == 1 else at
                firm = sure and not self._soft(line, run, scope, True)
                claims += self.body(line, (begin, stop), run, firm)
        return claims

    def unplaced(self, line: Line) -> list[Claim]:
        """Numbers of a line that speaks of no run: nothing can be said of them."""
        hidden = spans_of_steps(line.text, whens(line.text))
        figures = [n for n in numbers(line.text) if not any(a <= n.start < b for a, b in hidden)]
        return [Claim(line.at(n.start), quoted(line.text, n.start, n.end), "value", None, numbers=(n,))
                for n in figures if measures(n)]  # fmt: skip

    def _soft(self, line: Line, run: str, scope: Scope, here: bool = False) -> bool:
        """Whether the line speaks of plans, or of something else than the run."""
        above = [title for _, title in line.headings] + [scope.title]
        if any(w.PLAN.search(self.blanked(title)) for title in above if title):
            return True
        if (
            not here
            and scope.run is None
            and (not self.named or self.mingled or any(STRANGER.search(title) for title in above))
        ):
            return True
        own = set(VERSION.findall(run.replace("_", " ").replace("-", " ")))
        text = line.text.replace(run, " ").replace(str(self.records[run].settings.get("env.name") or run), " ")
        return bool(set(VERSION.findall(text)) - own)

    def counts_as(self, quote: s.Quote) -> bool:
        return measures(quote.one) or bool(quote.mention and quote.mention.names)

    def claim(self, line: Line, text: str, quote: s.Quote, run: str, sure: bool) -> Claim:
        """The claim that a number makes of its metric; a spread is not checked, a range is never contradicted."""
        one, mention, piece = quote.one, quote.mention, quote.segment
        ahead = mention is not None and mention.end <= one.start and not quote.inherited
        start = mention.start if ahead and mention is not None else one.start
        end = closed(text, (quote.pair or one).end)
        shown = quoted(line.text, start, end)
        claim = Claim(line.at(one.start), shown, "value", run, mention.word if mention else "",
                      mention.names if mention else NOTHING, (one,), quote.step, quote.role, sure and quote.firm,
                      piece.text, line.text, quote.bound, quote.setting)  # fmt: skip
        return claim.with_pair(quote.pair, quote.sign)

    def directions(self, line: Line, text: str, pieces: list[cutting.Segment], run: str, sure: bool) -> Iterator[Claim]:
        """`entropy rose`: a metric and a change of it, without numbers."""
        soft = any(w.SOFT.search(piece.text) for piece in pieces)
        lead = None
        for piece in pieces:
            if piece.only_when and not piece.bracket:
                lead = piece.whens[0].step
            for mention, way, end in s.directions(piece, text) if not piece.figures else ():
                step = piece.whens[0].step if len(piece.whens) == 1 else lead
                part = text[piece.start : piece.end]
                firm = sure and not soft and mention.sure and not piece.others and len(piece.whens) < 2
                firm = (
                    firm
                    and not (w.QUALIFIED.search(WHOLE.sub(" ", part)) and step is None)
                    and not narrowed(piece, self.records[run])
                )
                firm = (
                    firm
                    and not (w.NEVER.search(part) and way != "flat")
                    and not w.DERIVED.search(cutting.unnamed(part, piece))
                )
                shown = quoted(line.text, mention.start, end)
                yield Claim(line.at(mention.start), shown, "direction", run, mention.word, mention.names,
                            step=step, role=way, firm=firm, text=part, whole=line.text)  # fmt: skip

    def moments(self, line: Line, text: str, pieces: list[cutting.Segment], run: str, sure: bool) -> Iterator[Claim]:
        """`the best checkpoint was at step 40k`; of the return, where no metric is named."""
        record = self.records[run]
        soft = any(w.SOFT.search(piece.text) for piece in pieces)
        for piece in pieces:
            for mention, role, step in s.moments(piece, record):
                names = mention.names if mention else record.look("eval return") or record.look("return")
                firm = sure and not soft and not piece.others and not narrowed(piece, record)
                if names.columns:
                    yield Claim(line.at(piece.start), quoted(line.text, piece.start, piece.end), "moment", run,
                                mention.word if mention else "return", names, step=step, role=role, firm=firm,
                                text=piece.text, whole=line.text)  # fmt: skip

    def solved(self, line: Line, text: str, span: Span, run: str, sure: bool) -> Iterator[Claim]:
        """`it solved the task`, `never solved`."""
        part = text[span[0] : span[1]]
        no, yes = w.UNSOLVED.search(part), w.SOLVED.search(part)
        if (no or yes) and not w.SOFT.search(part) and not w.OTHERS.search(part):
            at = span[0] + (no or yes).start()  # type: ignore[union-attr] # one of them is there
            clear = bool(no) or not (
                w.NEVER.search(part) or re.search(r"(?i)\b(?:not|no|almost|nearly|half|partly)\b", part)
            )
            yield Claim(line.at(at), quoted(line.text, *span), "solved", run, "solved", role="no" if no else "yes",
                        firm=sure and clear, text=part, whole=line.text)  # fmt: skip

    def lengths(self, line: Line, text: str, span: Span, run: str, sure: bool) -> Iterator[Claim]:
        """`trained for 200k steps`: how long the run was."""
        part = text[span[0] : span[1]]
        for match in LENGTH.finditer(part):
            count = numbers(match[1])
            if count and not w.SOFT.search(part) and not w.OTHERS.search(part):
                at = span[0] + match.start()
                yield Claim(line.at(at), quoted(line.text, at, at + len(match[0])), "length", run, "steps",
                            numbers=(count[0],), firm=sure, text=part, whole=line.text)  # fmt: skip

    def counts(self, line: Line, run: str | None, sure: bool) -> Iterator[Claim]:
        """`24 episodes` of an evaluation, `5 seeds`."""
        for match in COUNT.finditer(line.text):
            kind = "seeds" if re.match(r"(?i)seed|个|种", match[2]) else "episodes"
            if run is None or (kind == "episodes" and not w.EVALUATION.search(line.text)):
                continue
            firm = sure and not w.SOFT.search(line.text) and not re.search(r"[<>≤≥]", line.text)
            count = Number(match[1], float(match[1]), 1.0, match.start(1), match.end(1))
            yield Claim(line.number, line.raw[:80], "count", run, kind, numbers=(count,), firm=firm, text=line.text)

    # ---- Tables

    def table(self, table: Table, scope: Scope) -> list[Claim]:
        """A row per step, a row per metric with its last, min and max, a row per run, or names and values."""
        claims: list[Claim] = []
        for line, cells in table.rows:
            named = self.mentioned(line.raw)
            run = (named[0] if len(named) == 1 else None) if named else self.about(scope)
            if run is None:
                continue
            sure = not (scope.mixed or scope.torn) and not self._soft(line, run, scope, bool(named))
            claims += tables.row(table, line, cells, run, self.records[run], sure, bool(named))
        return claims
