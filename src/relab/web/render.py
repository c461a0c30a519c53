"""How does a page of the dashboard come about? Templates that escape all they print, with the report's drawings.

Only what relab's own drawing functions return is put into a page as it is.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from relab.base.places import printable
from relab.base.text import age, count, duration, number, plural, size
from relab.report import render as report
from relab.report import svg_scale, words
from relab.runs.naming import shown
from relab.web import cards

STATIC = Path(__file__).parent / "static"
SHARED = ("colours.css", "parts.css")  # of the report
PALETTE = "palette.css"  # made when it is asked for
STEERING = re.compile("[\\x00-\\x08\\x0b-\\x1f\\x7f-\\x9f\\u202a-\\u202e\\u2066-\\u2069]")


@functools.lru_cache(maxsize=1)
def environment() -> Environment:
    loader = ChoiceLoader([PackageLoader("relab.web"), PackageLoader("relab.report")])
    made = Environment(loader=loader, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=True,
                       finalize=plain)  # fmt: skip
    made.globals |= {
        "word": words.metric, "axis": words.axis, "number": number, "count": count, "duration": duration,
        "plural": plural, "shown": shown, "drawn": drawn, "ago": ago, "size": size, "colour": svg_scale.colour,
        "small": report.small, "slim": report.slim, "address": address, "asset": asset, "shown_cards": cards.SHOWN,
    }  # fmt: skip
    made.filters |= {
        "code": coded,
        "printable": printable,
        "worded": words.in_text,
        "exact": exact,
        "segment": lambda text: quote(str(text), safe=""),
    }
    return made


def plain(value: Any) -> Any:
    """What is printed on a page, without signs that steer a terminal or turn the reading direction; Markup stays."""
    return STEERING.sub("?", value) if type(value) is str else value


def drawn(text: str) -> Markup:
    """A picture as it stands in a page: its text is escaped already, and steers nothing either."""
    return Markup(STEERING.sub("?", text))


def coded(text: Any) -> Markup:
    """As the report has it: what stands between backticks is code; signs that steer are none."""
    return drawn(report.coded(text))


def exact(text: str) -> Markup:
    """A name that a script sends back: control characters as references, so that none stands in the page itself."""
    return Markup(STEERING.sub(lambda match: f"&#{ord(match[0])};", str(escape(text))))


def page(name: str, **content: Any) -> str:
    return environment().get_template(name).render(**content)


def streamed(name: str, **content: Any) -> Iterator[str]:
    """The page piece by piece: the head is sent before the rest is worked out."""
    return environment().get_template(name).generate(**content)


def address(path: str, **params: Any) -> str:
    """An address of the dashboard; names of runs may hold any sign."""
    query = urlencode([(key, each) for key, value in params.items() if value not in (None, "")
                       for each in (value if isinstance(value, (list, tuple)) else [value])])  # fmt: skip
    return f"{path}?{query}" if query else path


@functools.lru_cache(maxsize=64)
def asset(name: str) -> str:
    """A file of the dashboard under an address that changes with it."""
    text = palette().encode() if name == PALETTE else (STATIC / name).read_bytes()
    return f"/static/{name}?{hashlib.sha256(text).hexdigest()[:10]}"


def ago(at: float) -> str:
    """How long ago a time was; a question mark where nobody knows."""
    return age(time.time() - at) if at else "?"


def palette() -> str:
    """The report's own style sheets, and its colours: a group has the colour of its place, on light and on dark."""
    rules = [(report.TEMPLATES / name).read_text() for name in SHARED]
    for place, tone in enumerate(svg_scale.COLOURS):
        rules.append(f".c{place} {{ --tone: {tone}; }}")
    return "\n".join(rules) + "\n"
