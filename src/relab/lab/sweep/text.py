"""What does a terminal show of a sweep? A screenful of sweep.json: trials, axes, the winner and its luck."""

from __future__ import annotations

import math
import shlex
from pathlib import Path
from typing import Any

from relab.base.places import printable
from relab.base.text import number
from relab.lab.sweep.analyse import ends, point_text

SHOWN = 12  # trials


def lines(body: dict[str, Any], folder: Path) -> list[str]:
    return [
        *table(body), *axis_lines(body), *incomplete(body), body["text"], *(f"  {note}" for note in body["notes"]),
        "try next:", *(f"  {line}" for line in commands(body, folder)),
    ]  # fmt: skip


def table(body: dict[str, Any]) -> list[str]:
    """Best first; what is clearly worse, dropped or failed is said."""
    verdicts = {r["trial"]: r["verdict"] for r in body["differ"]["against_best"]}
    best = body["winner"]["trial"] if body["winner"] else None
    ranked = sorted(body["trials"], key=lambda t: rank(t, body["direction"], body["at"]))
    ranked.sort(key=lambda t: t["trial"] != best)
    wide = max(len(point_text(t["point"])) for t in ranked[:SHOWN])
    rows = [f"  {point_text(t['point']):{wide}}  {number(t['mean'])}{ends(t)}"
            f"  {state(t, verdicts.get(t['trial'], 'best'))}" for t in ranked[:SHOWN]]  # fmt: skip
    rows += [f"  and {len(ranked) - SHOWN} more trials"] * (len(ranked) > SHOWN)
    gone = [t["dropped"]["n"] for t in ranked if t["dropped"]]
    rows += [f"  {len(gone)} trials were dropped in the race, after {min(gone)} to {max(gone)} seeds"] if gone else []
    return [printable(line).rstrip() for line in rows]


def rank(t: dict[str, Any], direction: str, at: str) -> tuple[bool, float]:
    from relab.comparison.answer import sign_of

    return not math.isfinite(t["mean"]), -sign_of(at, direction) * t["mean"]


def state(t: dict[str, Any], verdict: str) -> str:
    said = [verdict] if verdict != "cannot tell" else ["not told from the best"]
    if t["dropped"]:
        x = t["dropped"]
        said = [f"dropped after {x['n']} seeds: {number(x['delta'])}{ends(x)} to the leader"]
    failed = sum(v["note"].startswith("failed") for v in t["values"])
    n = f"{t['n']} of {t['planned']} seeds" if t["n"] < t["planned"] and not t["dropped"] else ""
    return ", ".join([*said, *([n] if n else []), *([f"{failed} failed"] if failed else [])])


def axis_lines(body: dict[str, Any]) -> list[str]:
    rows = [f"  {e['axis']}: {said(e, body['metric'])}" for e in body["effects"]]
    crossed = [c for c in body["interactions"] if c["verdict"] == "moves"]
    open_ = [c for c in body["interactions"] if c["verdict"] == "cannot tell"]
    for c in crossed:
        (a, b), (p, q) = c["at"]
        x, y = c["axes"]
        rows.append(f"  {x} and {y} interact: from {x}={a} to {b} the metric changes by {number(c['delta'])}{ends(c)}"
                    f" more at {y}={q} than at {y}={p}")  # fmt: skip
    if open_:
        names = ", ".join(" x ".join(c["axes"]) for c in open_[:4])
        rows.append(f"  cannot tell whether these interact: {names}{' ...' if len(open_) > 4 else ''}")
    return [printable(line) for line in (["what each axis does:", *rows] if rows else [])]


def said(e: dict[str, Any], metric: str) -> str:
    """One axis in a line."""
    w = e["widest"]
    if w is None:
        return "cannot be told, it changes only together with others"
    of_noise = f", {e['most'] / e['noise']:.2g} of a run's noise" if e["noise"] > 0 and math.isfinite(e["most"]) else ""
    if e["verdict"] == "inert":
        return f"inert: moves {metric} by at most {number(e['most'])}{of_noise}"
    if e["verdict"] == "moves":
        return f"from {w['from']} to {w['to']} moves {metric} by {number(w['delta'])}{ends(w)}"
    most = f"; at most {number(e['most'])}{of_noise}" if math.isfinite(e["most"]) else ", one run a cell"
    return f"cannot tell: from {w['from']} to {w['to']} {number(w['delta'])}{ends(w)}{most}"


def incomplete(body: dict[str, Any]) -> list[str]:
    gone = body["incomplete"]
    rows = [f"  {x['trial']}: {x['n']} of {x['planned']} seeds ({'; '.join(x['why'])})" for x in gone[:3]]
    more = [f"  and {len(gone) - 3} more"] * (len(gone) > 3)
    return [printable(line) for line in ([f"incomplete trials: {len(gone)}", *rows, *more] if gone else [])]


def commands(body: dict[str, Any], folder: Path) -> list[str]:
    where, winner = shlex.quote(str(folder)), body["winner"]
    hints = [f"relab report {where} --open", f"relab examine {where}"]
    if winner and winner["selection"]["values"]:
        hints.append(f"relab report {shlex.quote(str(folder / 'runs' / winner['selection']['values'][0]['run']))}")
    return hints
