"""How does a report become a page? Plain data through two templates: Markdown, and HTML that needs no net.

Both escape whatever they print unless it was made here: in HTML by autoescape, in Markdown by `finalize`.
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from relab.base.jsonl import write_together
from relab.base.text import number, width
from relab.health.rule import Finding
from relab.report import drawings, svg, svg_pictures, svg_scale, svg_small, svg_sweep, words
from relab.report.curves import CurveFigure
from relab.report.page import Page
from relab.report.parts import NO_METRIC, ConfigChanges, GroupOutcome
from relab.report.pictures import Picture
from relab.report.sweep_page import SweepPage
from relab.report.tables import try_text
from relab.runs import naming
from relab.runs.naming import task_names

TEMPLATES = Path(__file__).parent / "templates"
NAMES = ("report.md", "report.html")
MAPS = (600, 380)  # width of a sweep's figures on wide and on narrow pages
TIMELINE = (1200, 380)
SIZES = {"wide": (760, 300), "narrow": (380, 270), "panel": (600, 320)}
CALM = 1  # findings up to which the right column has room for the other cards
CONFIGS, KEYS = 4, 4  # columns of the settings' card (the key and three configs) and its rows; more would be cut
CODE = re.compile(r"`((?! )[\w .,:;=/()+-]+)(?<! )`")  # a name or a command in a text; with other signs it stays text
SLIM = 42  # letters of a table's widest row that fit beside each other on a telephone
THUMBS = 4  # small figures below the curve, where those cards leave room


class Raw(str):
    """Markdown that was made here and is printed as it is."""


class Shot(NamedTuple):
    """A figure for one width and one choice of axes."""

    classes: str
    svg: Markup


class Card(NamedTuple):
    """What runs of one environment came to: which configs, by which metric, each as dots."""

    title: str
    places: list[int]
    metric: str
    strips: list[Markup]
    names: list[str]  # of the configs, without what the title says


def html(page: Page) -> str:
    """One file, no script, nothing loaded from elsewhere."""
    looks = views(page.curve)
    thumbs = thumbnails(page)
    drawn = {
        "looks": looks,
        "log_y": page.curve.log_y,
        "legend": svg.legend(page.curve),
        "shots": [shot for place, (_, look) in enumerate(looks) for shot in shots(page.curve, place, look)],
        "panels": [
            {
                "env": panel.env,
                "legend": svg.legend(panel.curve),
                "wide": Markup(svg.curve(panel.curve, *SIZES["panel"])),
                "narrow": Markup(svg.curve(panel.curve, *SIZES["narrow"])),
            }
            for panel in page.panels
        ],
        "cards": outcome_cards(page),
        "maps": sweep_figures(page.sweep),
        "thumbs": thumbs,
        "calm": len(page.findings) <= CALM and bool(thumbs),
    }
    return _environment("html").get_template("report.html").render(vars(page), **drawn)


def sweep_figures(sweep: SweepPage | None) -> list[list[Markup]]:
    """The map of a sweep, and what each axis does, each for wide and for narrow pages."""
    if not sweep:
        return []
    name = words.metric(sweep.metric)
    heat = [svg_sweep.heat(replace(sweep.heat, metric=name), wide) for wide in MAPS] if sweep.heat else []
    effects = [svg_sweep.effects(sweep.effects, name, wide) for wide in MAPS]
    return [[Markup(text) for text in each] for each in (heat, effects) if any(each)]


def views(curve: CurveFigure) -> list[tuple[str, svg.Look]]:
    """The x axes a reader can choose from, the usual one first; log steps where there is something to spread out."""
    names = {"steps": words.axis(str(curve.axis)), "updates": "updates", "time": "wall time"}
    plain = [(names[x], svg.Look(x)) for x in curve.xs]
    steps = [x for line in curve.lines for x in line.x if x > 0]
    spread = bool(steps) and max(steps) >= 10 * min(steps)
    return [*plain, *([(f"{names['steps']}, log", svg.Look("steps", log_x=True))] if spread else [])]


def shots(curve: CurveFigure, place: int, look: svg.Look) -> list[Shot]:
    """The figure for wide and for narrow pages; on both scales of y where the reader can choose."""
    kinds = {"no": (False,), "offer": (False, True), "yes": (True, False)}[curve.log_y]
    drawn = []
    for log in kinds:
        view = look._replace(log_y=log)
        scale = "" if len(kinds) == 1 else "log" if log else "lin"
        drawn += [Shot(f"x{place} {scale} {width}", Markup(svg.curve(curve, *SIZES[width], view)))
                  for width in ("wide", "narrow")]  # fmt: skip
    return drawn


def thumbnails(page: Page) -> list[CurveFigure]:
    """What else moved while it learned: the first of the folded curves."""
    curves = [figure for part in page.sections if part.title == "Curves" for figure in part.figures]
    return [curve for curve in curves if curve.metric != page.curve.metric][:THUMBS] if not page.panels else []


def outcome_cards(page: Page) -> list[Card]:
    """One card, or one for each environment; within a card dots of one metric are on one scale.

    A sweep has none: its table tells of each trial, and of the winner the seeds that chose it apart from fresh ones.
    """
    outcomes = page.outcome
    if page.sweep:
        return []
    everything = [*range(len(outcomes))]
    parts = [(p.env, p.places, [g.place or 0 for g in p.curve.groups]) for p in page.panels]
    cards = []
    for env, places, colours in parts or [("", everything, everything)]:
        metric = next((outcomes[i].metric for i in places if outcomes[i].metric != NO_METRIC), "")
        title = f"{env + ': ' if env else 'Outcome: '}last {words.metric(metric) if metric else 'value'}"
        strips = outcome_dots([outcomes[i] for i in places], colours)
        names = task_names([outcomes[i].label for i in places], env)
        cards.append(Card(title, places, metric, strips, [names[outcomes[i].label] for i in places]))
    return cards


def outcome_dots(outcomes: list[GroupOutcome], places: list[int]) -> list[Markup]:
    """A strip of dots per group, all of one metric on one scale, so that groups compare by eye."""
    same = [o for o in outcomes if o.metric == outcomes[0].metric]
    values = [v for o in same for v in o.values if math.isfinite(v)]
    if len(values) < 2:
        return [Markup("")] * len(outcomes)
    ends = [e for o in same for e in o.ends if math.isfinite(e)]
    span = max(values + ends) - min(values + ends) or abs(max(values)) or 1.0
    low, high = min(values + ends) - span / 50, max(values + ends) + span / 50
    return [Markup(svg_small.dots(o.values, low, high, o.ends, svg_scale.colour(place)) if o in same else "")
            for place, o in zip(places, outcomes, strict=True)]  # fmt: skip


def card_of(config: ConfigChanges) -> ConfigChanges:
    """As much of the table as a card has room for: beside each other for few configs, else who has another value."""
    if len(config.head) <= CONFIGS:
        return replace(config, rows=config.rows[:KEYS])
    rows = [[row[0], naming.by_value(row[1:], config.head[1:])] for row in config.rows[: 2 * KEYS]]
    return replace(config, head=["key", "value"], rows=rows)


def small(figure: CurveFigure | Picture | drawings.Drawing) -> Markup:
    """A figure of a section: a curve, a picture of a comparison, or a drawing of another kind."""
    if isinstance(figure, Picture):
        return Markup(svg_pictures.draw(figure))
    if isinstance(figure, drawings.Timeline):
        wide, narrow = (drawings.timeline(figure, width) for width in TIMELINE)
        return Markup(f'<div class="shots"><div class="wide">{wide}</div><div class="narrow">{narrow}</div></div>')
    if not isinstance(figure, CurveFigure):
        return Markup(drawings.draw(figure))
    return Markup(svg.curve(figure, 380, 220, svg.Look(log_y=figure.log_y == "yes")))


def coded(text: object) -> Markup:
    """Text with what stands between backticks as code; the rest is escaped as everywhere."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))


def slim(head: list[str], rows: list[list[str]]) -> bool:
    """Whether a table fits on a telephone as it is; a wider one is shown there row by row."""
    columns = zip(*(row for row in [[words.metric(h) for h in head], *rows] if len(row) == len(head)))
    return sum(max(map(width, column)) + 2 for column in columns) <= SLIM


def markdown(page: Page) -> str:
    text = _environment("md").get_template("report.md").render(vars(page), legend=svg.legend(page.curve))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def figures(page: Page) -> list[CurveFigure | Picture]:
    """What a paper may want of the page: the learning curves, and the pictures of its comparisons."""
    curves = [panel.curve for panel in page.panels] or [page.curve]
    return [*curves, *(each for part in page.sections for each in part.figures if isinstance(each, Picture))]


def write(page: Page, folder: str | os.PathLike[str], stem: str = "report") -> list[Path]:
    """Both pages into `folder`, or none: a page beside an older one of the other kind would contradict it."""
    pages = {Path(folder) / f"{stem}.md": markdown(page), Path(folder) / f"{stem}.html": html(page)}
    write_together({path: text.encode(errors="replace") for path, text in pages.items()})
    return list(pages)


@functools.lru_cache(maxsize=2)
def _environment(kind: str) -> Environment:
    options: dict[str, Any] = {"autoescape": True} if kind == "html" else {"autoescape": False, "finalize": md}
    environment = Environment(
        loader=PackageLoader("relab.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options
    )
    helpers: dict[str, Callable[..., Any]] = {
        "spark": spark,
        "evidence": evidence,
        "tries": tries,
        "fence": fence,
        "small": small,
        "word": words.metric,
        "slim": slim,
        "card_of": card_of,
    }
    environment.globals |= {**helpers, "columns": CONFIGS}
    environment.filters["code"] = coded
    return environment


# ---- Parts of findings


def spark(finding: Finding) -> Markup:
    if not finding.evidence:
        return Markup("")
    first = finding.evidence[0]
    return Markup(svg_small.sparkline(first.values, first.steps, healthy=_healthy(finding)))


def _healthy(finding: Finding) -> tuple[float, float] | None:
    """Where healthy runs lie, of a finding that knows it."""
    return (finding.healthy.low, finding.healthy.high) if finding.healthy else None


def evidence(finding: Finding, drawn: bool = False) -> str:
    """The number to check by hand: metric, value, step, formula; `drawn`: with the healthy range in grey."""
    if not finding.evidence:
        return ""
    first = finding.evidence[0]
    place = _telling(first.values, first.formula)
    dated = len(first.steps) == len(first.values) > 0 and isinstance(first.steps[place], int)
    at = f" at step {first.steps[place]:,}" if dated else ""
    counted = first.values and isinstance(first.values[place], (int, float))  # of settings they may be text
    value = f" = {number(first.values[place])}" if counted else ""
    formula = f" ({first.formula})" if first.formula else ""
    healthy = f"; {'grey: ' if drawn and len(first.values) > 1 else ''}{finding.healthy}" if finding.healthy else ""
    return f"{first.metric}{value}{at}{formula}{healthy}"


def _telling(values: list[float], formula: str) -> int:
    """The highest value where the limit is an upper one, the lowest for a lower one; else the last."""
    sign = {">": 1, "<": -1}.get(formula[:1], 0)
    good = [i for i, v in enumerate(values) if isinstance(v, (int, float)) and math.isfinite(v)]
    return max(good, key=lambda i: sign * values[i]) if sign and good else -1


def tries(finding: Finding) -> str:
    return "; ".join(try_text(one).rstrip(".") for one in finding.suggest[:2])


# ---- Markdown


def md(value: Any) -> str:
    """Text that stays text in any Markdown: no markup, no HTML, no table cell or line of its own."""
    if isinstance(value, Raw):
        return value
    parts = CODE.split(re.sub(r"\s+", " ", str(value)))  # what stands between backticks is every second part
    text = "".join(f"`{part}`" if i % 2 else _escaped(part) for i, part in enumerate(parts))
    return re.sub(r"^(\s*)([#+\-=]|\d+[.)])(?=\s|$|-|=|#)", r"\1\\\2", text)


def _escaped(text: str) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # inside a word it means nothing


def fence(text: str) -> Raw:
    """A code block that its content cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return Raw(f"{marks}\n{text}\n{marks}")
