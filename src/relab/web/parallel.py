"""How do many configs look at once? Parallel coordinates: an upright for each setting that varies, a line for each
variant of a comparison, shaded by the number that its table has. SVG text, no scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import Any

from relab.base.numbers import is_number
from relab.base.text import number
from relab.comparison.task import Task
from relab.comparison.variant import Variant
from relab.report import words
from relab.report.svg_scale import GREY, drawing
from relab.runs import naming

WIDTH, HEIGHT, TOP, FOOT, SIDE = 960, 330, 44, 300, 70
MOST_AXES, MOST_LINES, MOST_TICKS, FEWEST = 7, 600, 9, 4
LOW, HIGH = (86, 180, 233), (213, 94, 0)  # two of the palette's colours: apart for every eye


def draw(task: Task) -> str:
    """Empty where fewer than four variants differ in a setting."""
    keys = [key for key in task.keys if not naming.INCIDENTAL.search(key)]
    known = [row for row in task.variants if row.mean.n and math.isfinite(row.mean.mid)][:MOST_LINES]
    if len(known) < FEWEST or not keys:
        return ""
    axes = [[row.settings.get(key) for row in known] for key in keys[: MOST_AXES - 1]]
    outcome = [row.mean.mid for row in known]
    names = [*map(naming.key_name, keys[: MOST_AXES - 1]), words.metric(task.measure.metric)]
    columns: list[Sequence[Any]] = [*axes, outcome]
    xs = [SIDE + i * (WIDTH - 2 * SIDE) / (len(columns) - 1) for i in range(len(columns))]
    heights = [_heights(column) for column in columns]
    order = sorted(range(len(known)), key=lambda i: outcome[i])
    parts = [_line(known[i], [h[i] for h, _ in heights], xs, _share(outcome, i)) for i in order]
    for x, name, (_, ticks) in zip(xs, names, heights):
        parts.append(_axis(x, name, ticks, "start" if x == xs[0] else "end" if x == xs[-1] else "middle"))
    left = f" ({len(keys) - len(axes)} more settings vary)" if len(keys) > len(axes) else ""
    return drawing(WIDTH, HEIGHT, f"{len(known)} configs by {', '.join(names)}{left}", "".join(parts))


def _share(values: Sequence[float], i: int) -> float:
    span = max(values) - min(values)
    return (values[i] - min(values)) / span if span > 0 else 0.5


def _heights(column: Sequence[Any]) -> tuple[list[float], list[tuple[float, str]]]:
    """Where each value stands, and what is written beside the axis: numbers by size, the rest by name."""
    if all(is_number(v) and math.isfinite(v) for v in column):
        values = [float(v) for v in column]
        log = min(values) > 0 and max(values) / min(values) >= 50
        scaled = [math.log10(v) for v in values] if log else values
        low, span = min(scaled), (max(scaled) - min(scaled)) or 1.0
        heights = [FOOT - (v - low) / span * (FOOT - TOP) for v in scaled]
        marks = sorted(dict(zip(values, heights)).items())
        thin = (
            [marks[round(k * (len(marks) - 1) / (MOST_TICKS - 1))] for k in range(MOST_TICKS)]
            if len(marks) > MOST_TICKS
            else marks
        )
        return heights, [(at, number(v)) for v, at in dict(thin).items()]
    texts = ["–" if v is None else naming.shown(v) for v in column]
    levels = sorted(set(texts))
    gap = (FOOT - TOP) / max(len(levels) - 1, 1)
    place = {text: FOOT - i * gap for i, text in enumerate(levels)}
    return [place[text] for text in texts], [(at, text[:16]) for text, at in place.items()]


def _line(row: Variant, heights: Sequence[float], xs: Sequence[float], share: float) -> str:
    tone = "#" + "".join(f"{round(a + (b - a) * share):02x}" for a, b in zip(LOW, HIGH))
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in zip(xs, heights))
    title = f"<title>{escape(row.label)}: {escape(number(row.mean.mid))}</title>"
    return f'<path class="way" d="M{path}" fill="none" stroke="{tone}" stroke-width="1.6" opacity=".75">{title}</path>'


def _edge(x: float, side: str) -> float:
    """Names of the outer axes begin and end at the edge of the picture, so that none is cut."""
    return {"start": x - SIDE + 10, "end": x + SIDE - 10}.get(side, x)


def _apart(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Those that stand a line of text apart; the ends always do."""
    kept: list[tuple[float, str]] = []
    for at, text in sorted(ticks):
        if not kept or at - kept[-1][0] >= 14:
            kept.append((at, text))
    return kept


def _axis(x: float, name: str, ticks: Sequence[tuple[float, str]], side: str) -> str:
    parts = [f'<path d="M{x:.1f} {TOP}V{FOOT}" stroke="{GREY}" stroke-width="1.2"/>',
             f'<text x="{_edge(x, side):.1f}" y="28" text-anchor="{side}" font-weight="600">'
             f"{escape(name[:24])}</text>"]  # fmt: skip
    parts += [f'<text class="over" x="{x + 5:.1f}" y="{y + 4:.1f}">{escape(text)}</text>' for y, text in _apart(ticks)]
    return "".join(parts)
