"""What does a write-up with known truth look like? Facts drawn from a run's record, true or bent, put into whole texts.

A claim that is bent is clearly false: it differs from every fair reading of the record by a third of the curve's spread
or more. A true one is rounded as people round: three or four digits, or two behind `about`. Sentences that state
nothing about the run stand between them; they count as true.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from random import Random

import numpy as np

from relab.health.curve import Curve
from relab.health.view import View
from relab.record import levels

Slots = dict[str, str]
JUDGING = re.compile(r"\b(?:best|improve[sd]?|better)\b")
AWAY = 0.33  # of a curve's spread


@dataclass
class Piece:
    """One claim of a write-up, and whether it is true."""

    run: str
    kind: str
    true: bool
    text: str
    row: bool = False  # of a table
    line: int = 0  # where it stands alone


@dataclass(frozen=True)
class Fact:
    kind: str
    true: bool
    slots: Slots
    earned: bool = True  # a return, of which more is better


def number(value: float, rng: Random, hedge: bool = True) -> str:
    """As people write it: three or four digits, or two behind a hedge."""
    style = rng.random()
    if hedge and style < 0.2:
        return rng.choice(["~", "about ", "roughly "]) + plain(value, 2)
    return plain(value, 4 if style < 0.6 else 3)


def plain(value: float, digits: int) -> str:
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    if 1e-4 <= abs(value) < 1e5:
        places = max(0, digits - 1 - math.floor(math.log10(abs(value))))
        return f"{round(value, digits - 1 - math.floor(math.log10(abs(value)))):.{places}f}"
    return f"{value:.{digits - 1}e}"


def step_text(step: int, rng: Random) -> str:
    """Exact, with commas, or in thousands."""
    if step >= 10_000 and rng.random() < 0.4:
        return f"{step / 1000:.0f}k"
    return f"{step:,}" if rng.random() < 0.4 else str(step)


# ---- Facts about a curve


def smooth(curve: Curve) -> np.ndarray:
    width = max(1, len(curve) // 20)
    return np.convolve(curve.values, np.ones(width) / width, "valid")


def spread(curve: Curve) -> float:
    return float(np.percentile(curve.values, 95) - np.percentile(curve.values, 5)) or abs(curve.last) or 1.0


def bent(fair: list[float], curve: Curve, rng: Random) -> float:
    """A value away from all fair ones: inside the range, outside of it, or another landmark of the curve."""
    size, v = spread(curve), curve.values
    draws = [float(v.max()), float(v.min()), float(v[0]), curve.last]
    draws += [rng.uniform(float(v.min()) - 0.7 * size, float(v.max()) + 0.7 * size) for _ in range(12)]
    rng.shuffle(draws)
    far = [x for x in draws if x > max(fair) + AWAY * size or x < min(fair) - AWAY * size]
    return far[0] if far else max(fair) + 1.5 * size


def tail(curve: Curve) -> list[float]:
    v = curve.values
    k = max(2, len(v) // 10)
    return [*map(float, v[-k:]), *(float(v[-n:].mean()) for n in range(1, k + 1))]


def of_curve(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    """Facts of every kind that a curve supports, each true or bent at random."""
    yield _final(curve, name, rng)
    yield _extreme(curve, name, rng)
    yield _start(curve, name, rng)
    yield from _at_step(curve, name, rng)
    yield from _peak_at(curve, name, rng)
    yield _from_to(curve, name, rng)
    yield from _between(curve, name, rng)
    yield from _kept(curve, name, rng)
    yield from _reached(curve, name, rng)
    yield from _trend(curve, name, rng)
    yield _level(curve, name, rng)


def _final(curve: Curve, name: str, rng: Random) -> Fact:
    true = rng.random() < 0.5
    k = max(1, len(curve) // 20)
    value = rng.choice([curve.last, float(curve.values[-k:].mean())]) if true else bent(tail(curve), curve, rng)
    return Fact("final", true, {"m": name, "x": number(value, rng)})


def _extreme(curve: Curve, name: str, rng: Random) -> Fact:
    true, kind, even = rng.random() < 0.5, rng.choice(["peak", "peak", "low"]), smooth(curve)
    best = float(curve.values.max() if kind == "peak" else curve.values.min())
    flat = float(even.max() if kind == "peak" else even.min())
    value = (best if rng.random() < 0.7 else flat) if true else bent([best, flat], curve, rng)
    return Fact(kind, true, {"m": name, "x": number(value, rng)})


def _start(curve: Curve, name: str, rng: Random) -> Fact:
    true = rng.random() < 0.5
    fair = [float(x) for x in curve.values[: max(2, len(curve) // 20)]]
    value = float(curve.values[0]) if true else bent(fair, curve, rng)
    return Fact("start", true, {"m": name, "x": number(value, rng)})


def _rows_near(curve: Curve, row: int) -> list[float]:
    reach = max(1, len(curve) // 20)
    near = curve.values[max(0, row - reach) : row + reach + 1]
    return [*map(float, near), float(near.mean())]


def _at_step(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    row = rng.randrange(1, len(curve))
    if curve.steps[row] <= 0 or (curve.steps == curve.steps[row]).sum() > 1:
        return
    true = rng.random() < 0.5
    value = float(curve.values[row]) if true else bent(_rows_near(curve, row), curve, rng)
    yield Fact("at step", true, {"m": name, "x": number(value, rng), "s": step_text(int(curve.steps[row]), rng)})


def _peak_at(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    """Bent in its value or in its step."""
    v, steps = curve.values, curve.steps
    row, size = int(np.argmax(v)), spread(curve)
    high = steps[v >= v.max() - 0.15 * size]
    if steps[row] <= 0 or float(np.ptp(high)) > 0.3 * float(np.ptp(steps)):
        return
    true = rng.random() < 0.5
    value, at = float(v.max()), int(steps[row])
    if not true and rng.random() < 0.5:
        value = bent([value, float(smooth(curve).max())], curve, rng)
    elif not true:
        away = [int(s) for s in steps if s > 0 and np.abs(high - s).min() > 0.4 * float(np.ptp(steps))]
        if not away:
            return
        at = rng.choice(away)
    yield Fact("peak at", true, {"m": name, "x": number(value, rng), "s": step_text(at, rng)})


def _from_to(curve: Curve, name: str, rng: Random) -> Fact:
    true = rng.random() < 0.5
    end = curve.last if true else bent(tail(curve), curve, rng)
    slots = {"m": name, "a": number(float(curve.values[0]), rng, False), "b": number(end, rng, False)}
    return Fact("from to", true, slots)


def _between(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    p, q = sorted(rng.sample(range(1, len(curve)), 2))
    apart = abs(float(curve.values[p]) - float(curve.values[q])) > 0.2 * spread(curve)
    if curve.steps[p] <= 0 or curve.steps[p] == curve.steps[q] or not apart:
        return
    true = rng.random() < 0.5
    end = float(curve.values[q]) if true else bent(_rows_near(curve, q), curve, rng)
    yield Fact("between", true, {"m": name, "a": number(float(curve.values[p]), rng, False),
                                 "b": number(end, rng, False), "p": str(int(curve.steps[p])),
                                 "q": str(int(curve.steps[q]))})  # fmt: skip


def _kept(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    """A bound: true a little outside of the range, false with a quarter of the rows or more beyond it."""
    v, size, true = curve.values, spread(curve), rng.random() < 0.5
    kind = rng.choice(["kept below", "kept above"])
    if kind == "kept below":
        bound = float(v.max()) + 0.1 * size if true else float(np.percentile(v, 70)) - 0.1 * size
    else:
        bound = float(v.min()) - 0.1 * size if true else float(np.percentile(v, 30)) + 0.1 * size
    beyond = (v > bound).mean() if kind == "kept below" else (v < bound).mean()
    if true or beyond >= 0.25:
        yield Fact(kind, true, {"m": name, "x": number(bound, rng, False)})


def _reached(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    """A level on the way up: by a step when it was there, or long before."""
    v, steps = curve.values, curve.steps
    size = spread(curve)
    level = float(v[0]) + rng.uniform(0.5, 0.9) * (float(v.max()) - float(v[0]))
    if float(v.max()) - float(v[: max(2, len(v) // 20)].max()) < 0.5 * size:
        return
    first = int(steps[int(np.argmax(v >= level))])
    late = [int(s) for s in steps if s >= first and s > 0]
    early = [int(s) for s in steps if 0 < s < first - 0.3 * float(np.ptp(steps))]
    below = [s for s in early if float(v[steps <= s + 0.1 * float(np.ptp(steps))].max()) < level - 0.1 * size]
    true = rng.random() < 0.5
    if (true and late) or (not true and below):
        at = min(late, key=lambda s: abs(s - 1.3 * first)) if true else rng.choice(below)
        yield Fact("reached", true, {"m": name, "x": plain(level, 3), "s": step_text(at, rng)})


def _trend(curve: Curve, name: str, rng: Random) -> Iterator[Fact]:
    """Only where a straight line explains half of the rows' variance."""
    if len(curve) < 12 or float(np.std(curve.values)) == 0:
        return
    r = float(np.corrcoef(curve.steps, curve.values)[0, 1])
    if abs(r) < 0.75:
        return
    true, way = rng.random() < 0.5, "rise" if r > 0 else "fall"
    yield Fact(way if true else {"rise": "fall", "fall": "rise"}[way], true, {"m": name})


def _level(curve: Curve, name: str, rng: Random) -> Fact:
    true, v = rng.random() < 0.5, curve.values
    fair = [float(np.percentile(v, 10)), float(np.percentile(v, 90)), float(v.mean())]
    value = float(v.mean()) if true else bent(fair, curve, rng)
    return Fact("level", true, {"m": name, "x": number(value, rng)})


# ---- Facts about a run


def of_run(view: View, others: list[View], keys: dict[str, list[str]], names: dict[str, list[str]],
           rng: Random) -> Iterator[Fact]:  # fmt: skip
    yield from _settings(view, keys, rng)
    yield from _length(view, rng)
    yield from _order(view, others, names, rng)
    yield from _solved(view, rng)
    yield from _evaluations(view, rng)


def _settings(view: View, keys: dict[str, list[str]], rng: Random) -> Iterator[Fact]:
    known = [(key, view.config[key]) for key in keys if key in view.config]
    known = [(k, v) for k, v in known if isinstance(v, (int, float)) and not isinstance(v, bool) and v]
    for key, value in rng.sample(known, min(2, len(known))):
        true = rng.random() < 0.5
        value = (
            value if true else type(value)(value * rng.choice((2, 4, 10))) if value >= 1 else value / rng.choice((2, 5))
        )
        yield Fact("setting", true, {"k": rng.choice(keys[key]), "x": f"{value:.6g}"})


def _other_value(value: float, rng: Random) -> float:
    return type(value)(value * rng.choice((2, 4, 10))) if value >= 1 else value / rng.choice((2, 5))


def _length(view: View, rng: Random) -> Iterator[Fact]:
    true, last = rng.random() < 0.5, view.last_step
    planned = view.planned or last
    if last < 1000 or set(view.history.axes.values()) - {"env_steps", "agent_steps", ""} or planned < last:
        return
    count = last if true else int(max(planned, last) * rng.choice((3, 5, 10)))
    yield Fact("length", true, {"n": rng.choice([f"{count:,}", f"{count / 1000:.0f}k"])})


def _order(view: View, others: list[View], names: dict[str, list[str]], rng: Random) -> Iterator[Fact]:
    """Two runs whose ends are clear of each other in one metric."""
    metric = next((m for m in ("eval/return_det", "return/mean_100", "return/mean") if view.has(m)), None)
    peers = [o for o in others if o is not view and metric and o.has(metric)]
    for other in rng.sample(peers, min(3, len(peers))):
        a, b = view.curve(str(metric)), other.curve(str(metric))
        if len(a) < 5 or len(b) < 5:
            continue
        size = max(spread(a), spread(b))
        above, below = min(tail(a)) > max(tail(b)) + 0.3 * size, max(tail(a)) < min(tail(b)) - 0.3 * size
        if above or below:
            yield Fact(
                "above", above, {"m": names[str(metric)][0], "other": f"`{other.name}`", "run": f"`{view.name}`"}
            )
            return


def _solved(view: View, rng: Random) -> Iterator[Fact]:
    level = levels.solved(str(view.config.get("env.name") or ""))
    curves = [view.curve(m) for m in ("eval/return_det", "return/mean_100", "return/mean") if view.has(m)]
    if level is None or not curves:
        return
    if all(float(c.values.max()) < 0.8 * level for c in curves) and level > 0:
        yield Fact("solved", False, {})
    elif all(min(tail(c)) >= level for c in curves[:1]):
        yield Fact("solved", True, {})


def _evaluations(view: View, rng: Random) -> Iterator[Fact]:
    if not view.has_evals(view.by) or not view.has("eval/return_det"):
        return
    rows = [e for e in view.evals() if math.isfinite(e.se)]
    if len(rows) < 3:
        return
    best, last = max(rows, key=lambda e: e.mean), rows[-1]
    error = max(float(np.median([e.se for e in rows])), best.se, last.se)
    if best is not last and best.mean - last.mean > 4 * error:
        yield Fact("peak as result", False, {"m": "eval return", "x": plain(best.mean, 4)})
        yield Fact("peak and end", True, {"m": "eval return", "x": plain(best.mean, 4), "b": plain(last.mean, 4)})
    pairs = [(a, b) for a, b in pairwise(rows) if b.mean > a.mean]
    for a, b in rng.sample(pairs, min(2, len(pairs))):
        gap, noise = b.mean - a.mean, math.hypot(a.se, b.se)
        slots = {"m": "eval return", "a": plain(a.mean, 4), "b": plain(b.mean, 4)}
        if gap < noise:
            yield Fact("luck as gain", False, slots) if rng.random() < 0.6 else Fact("luck as luck", True, slots)
        elif gap > 4 * noise:
            yield Fact("gain", True, slots)


# ---- Texts


def usable(view: View, metric: str, rows: int) -> bool:
    """Whether a run has this curve with enough rows, and it moves."""
    column = view.history.columns.get(metric)
    if column is None or np.isfinite(column.values).sum() < rows:
        return False
    return float(np.ptp(view.curve(metric).values)) > 0


def curve_facts(view: View, names: dict[str, list[str]], rng: Random, size: int) -> list[Fact]:
    able = [m for m in names if usable(view, m, 6 if m == "eval/return_det" else 12)]
    facts: list[Fact] = []
    for metric in rng.sample(able, min(3, len(able))):
        own = [ours for ours, mapped in view.history.mapping.items() if mapped == metric and "entropy_loss" not in ours]
        shown = rng.choice([*names[metric], *names[metric], *(f"`{o}`" for o in own[:1])])
        earned = "return" in metric and "length" not in metric
        facts += [replace(fact, earned=earned) for fact in of_curve(view.curve(metric), shown, rng)]
    return rng.sample(facts, min(size, len(facts)))


def phrased(fact: Fact, words: dict[str, list[str]], rng: Random) -> str:
    """Only what is earned has a best; the highest loss is none."""
    fitting = [phrase for phrase in words[fact.kind] if fact.earned or not JUDGING.search(phrase)]
    return rng.choice(fitting).format(**fact.slots)


def sentence(text: str) -> str:
    bare = text.removeprefix("the ")
    return (text if text[:1] == "`" else text[:1].upper() + text[1:] if text else bare) + "."


TABLED = ("final", "peak", "low", "start", "setting")
HEADS = {"final": "final {m}", "peak": "max {m}", "low": "min {m}", "start": "initial {m}", "setting": "{k}"}


def write_up(view: View, facts: list[Fact], words: dict[str, list[str]], rng: Random) -> tuple[str, list[Piece]]:
    """A whole text: heading, prose or a list, perhaps a table, sentences beside the point; and its pieces."""
    lines = [rng.choice(["## {0}", "## Run `{0}`", "### `{0}`", "# Log of `{0}`"]).format(view.name), ""]
    opening = rng.choice(words["openings"])
    lines += [opening, ""] if opening else []
    pieces: list[Piece] = []
    tabled = [f for f in facts if f.kind in TABLED][:3] if rng.random() < 0.35 else []
    spoken = [f for f in facts if f not in tabled]
    texts = [(Piece(view.name, f.kind, f.true, phrased(f, words, rng)), f) for f in spoken]
    apart = [piece for piece, fact in texts if fact.kind == "above"]
    prose = [piece for piece, fact in texts if fact.kind != "above"]
    prose += [Piece(view.name, "beside the point", True, rng.choice(words["beside the point"]).rstrip("."))]
    rng.shuffle(prose)
    lines += _listed(prose, pieces, len(lines)) if rng.random() < 0.5 else _paragraph(prose, pieces, rng)
    for piece in apart:
        lines += ["", sentence(piece.text)]
        piece.line = len(lines)
        pieces.append(piece)
    if tabled:
        lines += ["", "| what | value |", "| --- | --- |"]
        for fact in tabled:
            shown = {k: v.removeprefix("the ") for k, v in fact.slots.items()}
            lines.append(f"| {HEADS[fact.kind].format(**shown)} | {fact.slots['x']} |")
            pieces.append(Piece(view.name, f"{fact.kind} (table)", fact.true, lines[-1], True, len(lines)))
    return "\n".join(lines) + "\n", pieces


def _listed(prose: list[Piece], pieces: list[Piece], before: int) -> list[str]:
    for index, piece in enumerate(prose, 1):
        piece.line = before + index
        pieces.append(piece)
    return [f"- {piece.text}" for piece in prose]


def _paragraph(prose: list[Piece], pieces: list[Piece], rng: Random) -> list[str]:
    for piece in prose:
        piece.text = sentence(piece.text)
    pieces += prose
    whole = " ".join(piece.text for piece in prose)
    return textwrap.wrap(whole, 88, break_long_words=False, break_on_hyphens=False) if rng.random() < 0.5 else [whole]
