"""How do single episodes look? Every episode of every evaluation as a dot, the mean as a line: SVG text, no scripts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from relab.base.text import count, number
from relab.report.svg_scale import Scale, colour, drawing, padded, tick_text, ticks

WIDTH, HEIGHT, LEFT, FOOT = 480, 190, 52, 156
MOST_DOTS = 60  # of one evaluation; more lie upon each other


def episodes(
    rows: Sequence[tuple[object, Sequence[float]]], place: int, limits: tuple[float, float] = (-math.inf, math.inf)
) -> str:
    """(step, returns of its episodes) for each evaluation; the axis ends where a return does."""
    known = [
        (float(step), [v for v in some if math.isfinite(v)]) for step, some in rows if isinstance(step, (int, float))
    ]
    known = [(step, some) for step, some in known if some]
    if not known:
        return ""
    steps = [step for step, _ in known]
    low, high = min(steps), max(steps)
    x = Scale(low, high if high > low else low + 1, LEFT + 8, WIDTH - 12)
    y = within(padded([v for _, some in known for v in some], FOOT, 10), limits)
    tone, parts = colour(place), [_frame(x, y)]
    for step, some in known:
        parts += [f'<circle cx="{x(step):.1f}" cy="{y(v):.1f}" r="2.2" fill="{tone}" fill-opacity=".35"/>'
                  for v in some[:MOST_DOTS]]  # fmt: skip
    means = [(x(step), y(sum(some) / len(some))) for step, some in known]
    line = "L".join(f"{a:.1f} {b:.1f}" for a, b in means)
    parts.append(f'<path d="M{line}" fill="none" stroke="{tone}" stroke-width="1.8"/>')
    last = known[-1][1]
    ends = f"{number(min(last))} to {number(max(last))}"
    label = f"every episode of {len(known)} evaluations; the last has {len(last)}, {ends}"
    return drawing(WIDTH, HEIGHT, label, "".join(parts))


def within(scale: Scale, limits: tuple[float, float]) -> Scale:
    """A scale without numbers that cannot be, but for the room of half a line."""
    room = (scale.high - scale.low) * 0.04
    low, high = max(scale.low, limits[0] - room), min(scale.high, limits[1] + room)
    return scale if low >= high else Scale(low, high, scale.start, scale.end)


def _frame(x: Scale, y: Scale) -> str:
    parts = [f'<path d="M{LEFT} 10V{FOOT}H{WIDTH - 12}" fill="none" stroke="currentColor" opacity=".5"/>']
    for value in ticks(y.low, y.high, 4):
        parts.append(f'<path d="M{LEFT} {y(value):.1f}H{WIDTH - 12}" stroke="currentColor" opacity=".1"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{escape(tick_text(value))}</text>')
    for value in ticks(x.low, x.high, 5):
        text = escape(count(value))
        parts.append(f'<text x="{x(value):.1f}" y="{FOOT + 16}" text-anchor="middle">{text}</text>')
    return "".join([*parts, f'<text x="{(LEFT + WIDTH) / 2}" y="{FOOT + 31}" text-anchor="middle">steps</text>'])
