"""What does a page say of a sweep? The numbers of its sweep.json as tables and as what the two figures draw."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.jsonl import RecordError, read_json
from relab.base.numbers import is_number
from relab.base.text import number
from relab.comparison import selected
from relab.report.parts import Table, table
from relab.runs.grouping import Group

FILE = "sweep.json"
MOST_ROWS = 200
MOST_LEVELS = 14  # of an axis in the map
CROSSED = {"moves": "interact", "inert": "none that matters"}
VERDICTS = {"cannot tell": "not told from the best", "worse": "clearly worse", "better": "clearly better"}


@dataclass(frozen=True)
class Effect:
    """One axis: a mean with its interval at each level."""

    axis: str
    verdict: str
    levels: list[str]
    mid: list[float]
    low: list[float]
    high: list[float]


@dataclass(frozen=True)
class Heat:
    """Two axes: the mean over all others in each field, a row for each level of y."""

    x: str
    y: str
    xs: list[str]
    ys: list[str]
    means: list[list[float]]
    runs: list[list[int]]
    metric: str
    lower: bool  # is better
    over: str


@dataclass(frozen=True)
class SweepPage:
    """What a page says about a sweep before it says it about the runs."""

    metric: str
    text: str
    notes: list[str]
    tables: list[Table]
    heat: Heat | None
    effects: list[Effect]


def build(path: Path) -> SweepPage | None:
    """None where the folder, or the one above its runs, holds no sweep that can be read."""
    folder = path.resolve()
    for place in (folder, folder.parent) if folder.name == "runs" else (folder,):
        try:
            body = read_json(place, FILE)
            return checked(page(body)) if isinstance(body.get("trials"), list) and body["trials"] else None
        except (RecordError, OSError, KeyError, TypeError, ValueError, AttributeError):
            continue
    return None


def page(body: Document) -> SweepPage:
    tables = [winner(body), effects(body), interactions(body), incomplete(body), trials(body)]
    return SweepPage(
        str(body["metric"]),
        f"{body['question']} {body['text']}",
        list(body["notes"]),
        [t for t in tables if t.rows],
        heat(body),
        [drawn(e) for e in body["effects"]],
    )


def checked(page: SweepPage) -> SweepPage:
    """TypeError where anything that is shown as text is none, or anything that is drawn is no number."""
    cells = [cell for each in page.tables for row in (each.head, *each.rows) for cell in row]
    texts = [*page.notes, *cells, *(text for e in page.effects for text in (e.axis, e.verdict, *e.levels))]
    numbers = [x for e in page.effects for x in (*e.mid, *e.low, *e.high)]
    if not all(isinstance(text, str) for text in texts) or not all(map(is_number, numbers)):
        raise TypeError(f"{FILE} holds other things than relab writes")
    return page


def unselected(group: Group, swept: SweepPage | None) -> Group:
    """The winner by its fresh seeds alone: those that chose it flatter it, and are not pooled with them."""
    kept = selected.unselected(group.runs)[0] if swept else group.runs
    return replace(group, runs=kept, label=f"{group.label}, fresh seeds") if len(kept) < len(group.runs) else group


# ---- Tables


def trials(body: Document) -> Table:
    verdicts = {r["trial"]: r for r in body["differ"]["against_best"]}
    best = (body["winner"] or {}).get("trial")
    sign = -1 if body["direction"] == "lower" or body["at"] == "first_step_reaching" else 1
    ranked = sorted(body["trials"], key=lambda t: (t["trial"] != best, not math.isfinite(t["mean"]), -sign * t["mean"]))
    rows = [_trial(t, verdicts.get(t["trial"]), body["axes"]) for t in ranked[:MOST_ROWS]]
    pairs = body["differ"]["pairs"]
    more = f"; {len(ranked) - MOST_ROWS} more are in {FILE}" if len(ranked) > MOST_ROWS else ""
    about = f"; differences to the best hold together over all {pairs:,} pairs and all looks" if pairs else ""
    return table([*body["axes"], body["metric"], "seeds", "to the best", "verdict", "each seed"], rows,
                 f"Trials, best first: mean and 95 % interval from five seeds on{about}{more}")  # fmt: skip


def _trial(t: Document, beside: Document | None, axes: Document) -> list[str]:
    each = " · ".join(number(v["value"]) if math.isfinite(v["value"]) else "failed" for v in t["values"])
    said = "best" if beside is None else VERDICTS[beside["verdict"]]
    if t["dropped"]:
        x = t["dropped"]
        said = f"dropped after {x['n']} seeds: {_ends(x['delta'], x['low'], x['high'])} to the leader"
    delta = "" if beside is None else _ends(beside["delta"], beside["low"], beside["high"])
    return [*(value(t["point"].get(key, "")) for key in axes), _ends(t["mean"], t["low"], t["high"]),
            f"{t['n']} of {t['planned']}", delta, said, each]  # fmt: skip


def winner(body: Document) -> Table:
    best = body["winner"]
    head = ["of the winner", body["metric"], "seeds", "each seed"]
    if not best:
        return table(head, [])
    rows = [["on the seeds that chose it", *_seeds(best["selection"])]]
    if best["fresh"]:
        rows.append(["on fresh seeds", *_seeds(best["fresh"])])
        bias = best["bias"]
        rows.append(["luck of the choice (difference)", _ends(bias["delta"], bias["low"], bias["high"]),
                     " and ".join(map(str, bias["n"])), ""])  # fmt: skip
    point = ", ".join(f"{k}={value(v)}" for k, v in best["point"].items())
    return table(head, rows, f"Winner: {point}")


def _seeds(t: Document) -> list[str]:
    return [_ends(t["mean"], t["low"], t["high"]), f"{t['n']} of {t['planned']}",
            " · ".join(number(v["value"]) for v in t["values"])]  # fmt: skip


def effects(body: Document) -> Table:
    rows = []
    for e in body["effects"]:
        w = e["widest"]
        step = [f"{value(w['from'])} to {value(w['to'])}", _ends(w["delta"], w["low"], w["high"])] if w else ["", ""]
        of_noise = f"{e['most'] / e['noise']:.2g}" if e["noise"] > 0 and math.isfinite(e["most"]) else ""
        rows.append([e["axis"], e["verdict"], *step, number(e["most"]), of_noise])
    return table(["axis", "verdict", "furthest apart", "difference", "moves it by at most", "in noise of a run"], rows,
                 "What each axis does, averaged over the others; 95 % over all axes together")  # fmt: skip


def interactions(body: Document) -> Table:
    rows = []
    for c in body["interactions"]:
        at = ""
        if c["at"]:
            (a, b), (p, q) = c["at"]
            at = f"{value(a)} to {value(b)}, at {value(q)} against {value(p)}"
        rows.append(
            [" × ".join(c["axes"]), CROSSED.get(c["verdict"], c["verdict"]), at, _ends(c["delta"], c["low"], c["high"])]
        )
    return table(["axes", "verdict", "largest", "difference of differences"], rows,
                 "Interactions: how much one axis changes what another does; 95 % over all pairs together")  # fmt: skip


def incomplete(body: Document) -> Table:
    rows = [[x["trial"], f"{x['n']} of {x['planned']}", "; ".join(x["why"])] for x in body["incomplete"]]
    return table(["trial", "seeds", "why"], rows, "Incomplete trials")


def value(setting: Any) -> str:
    if isinstance(setting, bool) or not isinstance(setting, (int, float)):
        return str(setting).lower() if isinstance(setting, bool) else str(setting)
    return f"{setting:.4g}"


def _ends(mid: float, low: float, high: float) -> str:
    if not math.isfinite(mid):
        return "none"
    known = math.isfinite(low) and math.isfinite(high)
    return f"{number(mid)} [{number(low)}, {number(high)}]" if known else number(mid)


# ---- Figures as data


def drawn(e: Document) -> Effect:
    levels = e["levels"]
    mid, low, high = ([m[key] for m in levels] for key in ("mean", "low", "high"))
    return Effect(e["axis"], e["verdict"], [value(m["level"]) for m in levels], mid, low, high)


def heat(body: Document) -> Heat | None:
    """The two axes that move the metric most: the mean over all others in each field; None with fewer than two."""
    fit = [e for e in body["effects"] if 2 <= len(e["levels"]) <= MOST_LEVELS and e["axis"] not in body["binned"]]
    fit.sort(key=lambda e: -abs(e["widest"]["delta"]) if e["widest"] else 0.0)
    if len(fit) < 2:
        return None
    x, y = (e["axis"] for e in fit[:2])
    xs, ys = ([m["level"] for m in e["levels"]] for e in fit[:2])
    fields = [[_field(body["trials"], {x: a, y: b}) for a in xs] for b in ys]
    others = [key for key in body["axes"] if key not in (x, y)]
    lower = body["direction"] == "lower" or body["at"] == "first_step_reaching"
    means, runs = [[mean for mean, _ in row] for row in fields], [[n for _, n in row] for row in fields]
    across, up = [value(a) for a in xs], [value(b) for b in ys]
    return Heat(x, y, across, up, means, runs, str(body["metric"]), lower, ", ".join(others))


def _field(rows: Sequence[Document], at: Document) -> tuple[float, int]:
    mine = [t for t in rows if all(t["point"].get(k) == v for k, v in at.items()) and math.isfinite(t["mean"])]
    n = sum(t["n"] for t in mine)
    return (sum(t["mean"] for t in mine) / len(mine), n) if mine else (math.nan, 0)
