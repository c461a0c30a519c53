"""Is one run above another, as a write-up says? Two runs, one metric, and a word that orders them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from relab.notebook.check import readings
from relab.notebook.check import words as w
from relab.notebook.check.claim import Claim
from relab.notebook.check.parts import mentions
from relab.notebook.check.record import Names, RunRecord
from relab.notebook.check.verdict import Checked
from relab.notebook.check.wording import Line, numbers

HIGHER = w.words("higher above exceeds exceeded larger greater more surpasses surpassed tops", "高于 更高 大于 超过")
LOWER = w.words("lower below smaller less under", "低于 更低 小于")
BETTER = w.words(
    "beats beat outperforms outperformed outperform better ahead wins won stronger bests", "优于 更好 好于"
)
WORSE = w.words("worse behind underperforms underperformed loses lost trails trailed weaker inferior", "差于 更差 不如")
FIRST_IS_OTHER = re.compile(r"(?i)^\W*(?:compared|relative|versus|vs\.?|unlike|than|next to|against)\b")
UNCERTAIN = w.words("not no never than_expected as_good similar equal same tie ties close faster slower sooner earlier"
                    " later twice times percent factor sample efficient stable variance")  # fmt: skip


def comparison(
    line: Line, span: tuple[int, int], text: str, runs: list[tuple[int, int, str]], records: Mapping[str, RunRecord],
    sure: bool,
) -> Claim | None:  # fmt: skip
    """`A ends higher than B in eval return`; None where the order of the two is not said in one word."""
    part = text[span[0] : span[1]]
    up, down = HIGHER.search(part) or BETTER.search(part), LOWER.search(part) or WORSE.search(part)
    if len({run for _, _, run in runs}) != 2 or len(runs) != 2 or bool(up) == bool(down):
        return None
    one, other = runs[0][2], runs[1][2]
    if FIRST_IS_OTHER.match(part):
        one, other = other, one
    named = [m for m in mentions(text, *span, records[one], []) if m.names.columns]
    judged = bool(BETTER.search(part) or WORSE.search(part))
    names = named[0].names if len(named) == 1 else _earned(records[one]) if judged and not named else Names()
    if not names.columns or (judged and not all(_is_return(c) for c in names.columns)):
        return None
    for name in named:
        part = part.replace(name.word, " ")  # `mean reward` is a name
    roles = [role for role in ("peak", "best", "low", "last", "first", "mean") if w.ROLES[role].search(part)]
    role = {(): "last", ("peak",): "peak", ("best",): "peak", ("last",): "last", ("low",): "low"}.get(tuple(roles), "")
    firm = sure and bool(role) and not w.SOFT.search(part) and not UNCERTAIN.search(part) and not numbers(part)
    word = named[0].word if named else "return"
    return Claim(line.at(span[0]), part.strip()[:100], "comparison", one, word, names, role=role, firm=firm, text=part,
                 whole=line.text, bound="is above" if up else "is below", other=other)  # fmt: skip


def _earned(record: RunRecord) -> Names:
    return record.look("eval return") or record.look("return")


def _is_return(column: str) -> bool:
    return "return" in column or "success" in column


def compared(claim: Claim, records: Mapping[str, RunRecord]) -> Checked:
    """Contradicted where in every column that both runs have, all readings of the one lie on the other side."""
    one, other = records[claim.run or ""], records[claim.other]
    orders, says = set(), ""
    for column in claim.names.columns:
        if column in one.curves and column in other.curves and claim.role in readings.ROLES:
            a, b = (readings.ROLES[claim.role](r.curves[column]) for r in (one, other))
            size = max(float(np.ptp(r.curves[column].values)) for r in (one, other))
            orders.add(_order(a, b, size))
            says = (
                says or f"{column} ({claim.role}): {a.low:.4g} to {a.high:.4g} here, {b.low:.4g} to {b.high:.4g} there"
            )
    wanted, against = ("above", "below") if claim.bound == "is above" else ("below", "above")
    if claim.firm and orders == {against}:
        return Checked(claim, "contradicted", says, "order-differs")
    return Checked(claim, "matched" if orders == {wanted} else "unmatched", says or "no metric that both runs have")


def _order(a: readings.Span, b: readings.Span, size: float) -> str:
    slack = 0.05 * size
    return "above" if a.low > b.high + slack else "below" if a.high < b.low - slack else "unclear"
