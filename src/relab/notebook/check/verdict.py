"""What does the record say to a claim? Matched, contradicted or unmatched, with the reason and the kind of mistake."""

from __future__ import annotations

from dataclasses import dataclass

from relab.base.documents import Document
from relab.notebook.check.claim import Claim

RULES = {
    "another-step": "the number stands in the record, but at another step than the one quoted",
    "number-differs": "the metric has another value at the quoted step, or as what a table calls it",
    "number-nowhere": "the metric never had this value, nor has any other metric of the run",
    "not-the-peak": "the number is quoted as the highest (or lowest), and it is neither",
    "not-the-last": "the number is quoted as the final one, and the run ends at another",
    "peak-as-result": "the best of many rows is quoted as the result, and the run ends clearly away from it",
    "difference-in-noise": "a difference is called a change, and two evaluations differ by as much through luck",
    "bound-crossed": "the metric is said to have kept a bound, and went beyond it",
    "bound-not-reached": "the metric is said to have reached a level (by a step), and did not",
    "direction-differs": "the metric is said to rise, fall or stay, and did not",
    "order-differs": "one run is said to be above another, and ends (or peaks) below it",
    "setting-differs": "a setting is quoted with another value than the run had",
    "count-differs": "episodes or seeds are quoted as asked for, and another number was run",
    "change-not-mentioned": "a setting differs from the parent's, and the text does not say so",
}


@dataclass
class Checked:
    """A claim and what the record says to it."""

    claim: Claim
    status: str = "unmatched"  # matched, contradicted, unmatched
    says: str = ""
    slug: str = ""

    def to_json(self) -> Document:
        claim = self.claim
        step = None if claim.step is None else {"axis": claim.step.axis, "step": claim.step.number.value}
        return {
            "line": claim.line, "quote": claim.quote, "kind": claim.kind, "run": claim.run,
            "metric": claim.word or None, "numbers": [n.value for n in claim.numbers], "step": step,
            "status": self.status, "slug": self.slug or None, "says": self.says,
        }  # fmt: skip
