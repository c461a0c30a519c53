"""What is a claim? A number, a pair of them, a direction or a length, with what it is said of."""

from __future__ import annotations

from dataclasses import dataclass, replace

from relab.notebook.check.record import Names
from relab.notebook.check.when import Step
from relab.notebook.check.wording import Number

MAX_CLAIMS = 5_000
NOTHING = Names()


@dataclass(frozen=True)
class Claim:
    """A number, a pair of them or a direction, with what it is said of."""

    line: int
    quote: str
    kind: str  # value, pair, direction, count, length, moment, solved, comparison, mention
    run: str | None
    word: str = ""  # the metric or setting as written
    names: Names = NOTHING
    numbers: tuple[Number, ...] = ()
    step: Step | None = None
    role: str = ""
    firm: bool = False
    text: str = ""  # the segment
    whole: str = ""  # the line
    bound: str = ""  # never above, never below, reach, fall, is above, is below
    setting: bool = False  # said of a setting
    other: str = ""  # the run that it is compared with

    def with_pair(self, pair: Number | None, sign: str) -> Claim:
        """A pair is a claim of its own kind; a spread is not checked, a range is never contradicted."""
        if pair is None or sign == "spread":
            return self
        firm = self.firm and sign == "arrow" and not self.bound
        return replace(self, kind="pair", numbers=(*self.numbers, pair), firm=firm, role=sign)
