"""What does a terminal show of a sweep? A screenful of sweep.json: trials, axes, the winner and its luck."""

from __future__ import annotations

import math
import shlex
from pathlib import Path

from relab.base.places import printable
from relab.base.text import number
from relab.comparison.wording import span
from relab.lab.sweep.analyse import ends, ends_of, point_text
from relab.lab.sweep.result import Analysis, AxisEffect, TrialResult

SHOWN = 12  # trials


def lines(of: Analysis, folder: Path) -> list[str]:
    return [
        *table(of), *axis_lines(of), *incomplete(of), of.text, *(f"  {note}" for note in of.notes),
        "try next:", *(f"  {line}" for line in commands(of, folder)),
    ]  # fmt: skip


def table(of: Analysis) -> list[str]:
    """Best first; what is clearly worse, dropped or failed is said."""
    verdicts = {gap.trial: gap.verdict for gap in of.differ.against_best}
    best = of.winner.trial if of.winner else None
    ranked = sorted(of.trials, key=lambda t: rank(t, of.direction, of.at))
    ranked.sort(key=lambda t: t.trial != best)
    wide = max(len(point_text(t.point)) for t in ranked[:SHOWN])
    rows = [f"  {point_text(t.point):{wide}}  {number(t.mean)}{ends(t)}  {state(t, verdicts.get(t.trial, 'best'))}"
            for t in ranked[:SHOWN]]  # fmt: skip
    rows += [f"  and {len(ranked) - SHOWN} more trials"] * (len(ranked) > SHOWN)
    gone = [t.dropped["n"] for t in ranked if t.dropped]
    many = f"{len(gone)} trials were" if len(gone) > 1 else "1 trial was"
    rows += [f"  {many} dropped in the race, after {span((min(gone), max(gone)))} seeds"] if gone else []
    return [printable(line).rstrip() for line in rows]


def rank(t: TrialResult, direction: str, at: str) -> tuple[bool, float]:
    from relab.comparison.outcomes import sign_of

    return not math.isfinite(t.mean), -sign_of(at, direction) * t.mean


def state(t: TrialResult, verdict: str) -> str:
    said = [verdict] if verdict != "cannot tell" else ["not told from the best"]
    if x := t.dropped:
        said = [f"dropped after {x['n']} seeds: {number(x['delta'])}{ends_of(x['low'], x['high'])} to the leader"]
    n = f"{t.n} of {t.planned} seeds" if t.n < t.planned and not t.dropped else ""
    return ", ".join([*said, *([n] if n else []), *([f"{t.failed} failed"] if t.failed else [])])


def axis_lines(of: Analysis) -> list[str]:
    rows = [f"  {each.axis}: {said(each, of.metric)}" for each in of.effects]
    open_ = [c for c in of.interactions if c.verdict == "cannot tell"]
    for c in of.interactions:
        if c.verdict != "moves" or c.at is None:
            continue
        (a, b), (p, q) = c.at
        x, y = c.axes
        rows.append(f"  {x} and {y} interact: from {x}={a} to {b} the metric changes by {number(c.delta)}{ends(c)}"
                    f" more at {y}={q} than at {y}={p}")  # fmt: skip
    if open_:
        names = ", ".join(" x ".join(c.axes) for c in open_[:4])
        rows.append(f"  cannot tell whether these interact: {names}{' ...' if len(open_) > 4 else ''}")
    return [printable(line) for line in (["what each axis does:", *rows] if rows else [])]


def said(e: AxisEffect, metric: str) -> str:
    """One axis in a line."""
    w = e.widest
    if w is None:
        return "cannot be told, it changes only together with others"
    of_noise = f", {e.most / e.noise:.2g} of a run's noise" if e.noise > 0 and math.isfinite(e.most) else ""
    if e.verdict == "inert":
        return f"inert: moves {metric} by at most {number(e.most)}{of_noise}"
    if e.verdict == "moves":
        return f"from {w.from_} to {w.to} moves {metric} by {number(w.delta)}{ends(w)}"
    most = f"; at most {number(e.most)}{of_noise}" if math.isfinite(e.most) else ", one run a cell"
    return f"cannot tell: from {w.from_} to {w.to} {number(w.delta)}{ends(w)}{most}"


def incomplete(of: Analysis) -> list[str]:
    gone = of.incomplete
    rows = [f"  {x.trial}: {x.n} of {x.planned} seeds ({'; '.join(x.why)})" for x in gone[:3]]
    more = [f"  and {len(gone) - 3} more"] * (len(gone) > 3)
    return [printable(line) for line in ([f"incomplete trials: {len(gone)}", *rows, *more] if gone else [])]


def commands(of: Analysis, folder: Path) -> list[str]:
    where, winner = shlex.quote(str(folder)), of.winner
    hints = [f"relab report {where} --open", f"relab examine {where}"]
    if winner and winner.selection.values:
        hints.append(f"relab report {shlex.quote(str(folder / 'runs' / winner.selection.values[0].run))}")
    return hints
