"""How do others get the report's picture? The curve of some groups as SVG text, or as a matplotlib figure to save.

groups = gather.load("runs/")
figure.svg(groups)                                      what the page shows, for a notebook
figure.figure(groups, "policy/kl", x="time").savefig("kl.pdf")
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from relab.base.text import plural
from relab.config.base import ConfigError
from relab.health.rule import Finding
from relab.report import curves, ink, words
from relab.report.svg import ACROSS, Look, named_heights, spread
from relab.report.svg import curve as draw_svg
from relab.report.svg_scale import COLOURS, DASHES, GREY
from relab.runs.grouping import Group, Run

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME = 0.055  # of the frame's height: a line of text
SECONDS = {"h": 3600.0, "min": 60.0, "s": 1.0}


def svg(
    groups: list[Group],
    metric: str = "",
    x: str = "steps",
    *,
    log_x: bool = False,
    log_y: bool | None = None,
    findings: Sequence[Finding] = (),
    reference: Run | None = None,
    width: int = 760,
    height: int = 330,
) -> str:
    """One <svg>: by default the metric the runs are judged by; `log_y` None: where it suits the metric."""
    data = curves.curve(groups, metric, findings, reference)
    log = data.log_y == "yes" if log_y is None else log_y
    return draw_svg(data, width, height, Look(_axis(data, x), log_x, log))


def figure(
    groups: list[Group],
    metric: str = "",
    x: str = "steps",
    *,
    log_x: bool = False,
    log_y: bool | None = None,
    findings: Sequence[Finding] = (),
    reference: Run | None = None,
) -> Figure:
    """The same in matplotlib, outside of pyplot's state, for savefig as PNG, PDF or SVG."""
    return curve_figure(curves.curve(groups, metric, findings, reference), x, log_x=log_x, log_y=log_y)


def curve_figure(
    data: curves.CurveFigure, x: str = "steps", *, log_x: bool = False, log_y: bool | None = None
) -> Figure:
    """One curve of a page in matplotlib."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(7.6, 3.9), layout="constrained")
    axes = drawing.add_subplot()
    axis = _axis(data, x)
    _draw(axes, data, axis)
    if log_x:
        axes.set_xscale("log")
    if data.log_y == "yes" if log_y is None else log_y:
        axes.set_yscale("log")
    _name_levels(axes, data)
    _label(axes, data, axis)
    return drawing


def _axis(data: curves.CurveFigure, x: str) -> str:
    if x not in data.xs:
        known = ", ".join(data.xs)
        raise ConfigError(f"x must be an axis that all runs have ({known}), but is {x!r}; time needs time/elapsed_s,"
                         " updates needs data/updates")  # fmt: skip
    return x


# ---- matplotlib


def _draw(axes: Axes, data: curves.CurveFigure, x: str) -> None:
    unit = SECONDS[_clock(data, x)] if x == "time" else 1.0

    def across(one: curves.Line | curves.Band) -> list[float]:
        return [at / unit for at in Look(x).across(one)]

    for each in (data.healthy or ()) if x == "steps" else ():
        axes.fill_between([each.start, each.end], each.low, each.high, color=GREY, alpha=0.18, lw=0)
    reference = data.reference
    if reference and reference.x:
        axes.plot(across(reference), reference.y, color=GREY, lw=1.4, label=f"{reference.called}: {reference.name}")
    for place, group in enumerate(data.groups):
        _draw_group(axes, group, place if group.place is None else group.place, across, ink.covers(data))
    for level in data.levels:
        axes.axhline(level.value, color=GREY, ls="--", lw=0.9)
    _draw_onset(axes, data.onset, x, unit)


def _name_levels(axes: Axes, data: curves.CurveFigure) -> None:
    """To the right of the frame, as on the page: over the curves nobody could read them."""
    place = axes.transScale + axes.transLimits
    shown = sorted((-float(place.transform((0.0, value))[1]), text) for value, text in named_heights(data)
                   if value > 0 or axes.get_yscale() != "log")  # fmt: skip
    shown = [(at, text) for at, text in shown if -1 <= at <= 0]
    for at, (_, text) in zip(spread([at for at, _ in shown], -1, 0, apart=NAME), shown):
        axes.annotate(text, (1.01, -at), xycoords="axes fraction", va="center", size=8, parse_math=False)


def _draw_group(axes: Axes, group: curves.Bundle, place: int, across: Any, smooth: bool) -> None:
    """Thin seeds, thick mean, band; NaN breaks a line and is marked at the foot."""
    tone, dash = COLOURS[place % len(COLOURS)], DASHES[place // len(COLOURS) % len(DASHES)]
    style: Any = (0, tuple(float(n) for n in dash.split())) if dash else "-"
    band, lines = ink.smoothed_band(group) if smooth else group.band, group.lines
    n = plural(len(lines), "run")
    for i, line in enumerate(lines):
        label = f"{group.label}: {n}" if i == 0 and not band else None
        xs, ys = across(line), line.y
        if smooth:
            xs, ys, low, high = ink.smoothed(list(zip(xs, ys)))
            if band is None:  # else the shades of all seeds would cover the interval
                axes.fill_between(xs, low, high, color=tone, alpha=0.13, lw=0)
            label = f"{label}; {ink.MEANING}" if label else None
        axes.plot(xs, ys, color=tone, ls=style, lw=0.8 if band else 1.5, alpha=0.7 if band else 1, label=label)
        lost = [a for a, y in zip(across(line), line.y) if not math.isfinite(y)]
        axes.plot(lost, [0.02] * len(lost), "x", color=tone, transform=axes.get_xaxis_transform(), ms=5)
    if band:
        axes.fill_between(across(band), band.low, band.high, color=tone, alpha=0.18, lw=0)
        axes.plot(across(band), band.mean, color=tone, ls=style, lw=2.2, label=f"{group.label}: {band.label}")


def _draw_onset(axes: Axes, onset: curves.Onset | None, x: str, unit: float) -> None:
    at = Look(x).at(onset) if onset else None
    if onset is None or at is None:
        return
    axes.axvline(at / unit, color="black", ls=":", lw=1.2)
    left, right = axes.get_xlim()
    late = at / unit > (left + right) / 2
    axes.annotate(str(onset.slug), (at / unit, 1.02), xycoords=("data", "axes fraction"), size=8,
                  parse_math=False, ha="right" if late else "left")  # fmt: skip


def _clock(data: curves.CurveFigure, x: str) -> str:
    longest = max((t for line in data.lines for t in line.time or []), default=0.0)
    return "h" if longest >= 7200 else "min" if longest >= 120 else "s"


def _label(axes: Axes, data: curves.CurveFigure, x: str) -> None:
    clock = f" ({_clock(data, x)})" if x == "time" else ""
    axes.set_xlabel(ACROSS.get(x, words.axis(str(data.axis))) + clock, parse_math=False)
    axes.set_ylabel(words.metric(data.metric), parse_math=False)
    if data.title:  # its onset is named over the frame
        axes.set_title(data.title, fontsize=9, loc="left", pad=16, parse_math=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", alpha=0.25)
    if axes.get_legend_handles_labels()[0]:
        drawing = axes.get_figure(root=True)
        assert drawing is not None
        for text in drawing.legend(fontsize=8, frameon=False, loc="outside lower left").get_texts():
            text.set_parse_math(False)  # names come from logs: a dollar sign would start a formula
