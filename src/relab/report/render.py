"""How does a report become a page? One dict of plain data through two templates: Markdown, and HTML that needs no net.

Both escape whatever they print unless it was made here: in HTML by autoescape, in Markdown by `finalize`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from relab.jsonl import write_atomic
from relab.report import svg
from relab.report.tables import try_text

NAMES = ("report.md", "report.html")


class Raw(str):
    """Markdown that was made here and is printed as it is."""


def html(data: dict[str, Any]) -> str:
    """One file, no script, nothing loaded from elsewhere."""
    wide, narrow = svg.curve(data["curve"]), svg.curve(data["curve"], 380, 270)
    figures = {"wide": Markup(wide), "narrow": Markup(narrow), "legend": svg.legend(data["curve"])}
    return _environment("html").get_template("report.html").render(data, **figures)


def markdown(data: dict[str, Any]) -> str:
    text = _environment("md").get_template("report.md").render(data, legend=svg.legend(data["curve"]))
    return re.sub(r"\n{3,}", "\n\n", text).strip() + "\n"


def write(data: dict[str, Any], folder: str | os.PathLike[str], stem: str = "report") -> list[Path]:
    """Both pages into `folder`, each replaced as a whole."""
    pages = {Path(folder) / f"{stem}.md": markdown(data), Path(folder) / f"{stem}.html": html(data)}
    for path, text in pages.items():
        write_atomic(path, text.encode(errors="replace"))
    return list(pages)


@functools.lru_cache(maxsize=2)
def _environment(kind: str) -> Environment:
    options: dict[str, Any] = {"autoescape": True} if kind == "html" else {"autoescape": False, "finalize": md}
    made = Environment(
        loader=PackageLoader("relab.report"), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, **options
    )
    helpers: dict[str, Callable[..., Any]] = {"spark": spark, "evidence": evidence, "tries": tries, "fence": fence}
    made.globals |= helpers
    return made


# ---- Parts of findings


def spark(finding: dict[str, Any]) -> Markup:
    first = next(iter(_evidence(finding)), {})
    values = first.get("values")
    return Markup(svg.sparkline(values)) if isinstance(values, list) else Markup("")


def evidence(finding: dict[str, Any]) -> str:
    """The number to check by hand: metric, value, step, formula."""
    first = next(iter(_evidence(finding)), None)
    if not first:
        return ""
    values, steps = first.get("values") or [], first.get("steps") or []
    at = f" at {steps[-1]:,}" if steps and isinstance(steps[-1], int) else ""
    value = f" = {svg.number(values[-1])}" if values and isinstance(values[-1], (int, float)) else ""
    formula = f" ({first['formula']})" if first.get("formula") else ""
    return f"{first.get('metric', '')}{value}{at}{formula}"


def _evidence(finding: dict[str, Any]) -> list[dict[str, Any]]:
    found = finding.get("evidence")
    return [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []


def tries(finding: dict[str, Any]) -> str:
    found = finding.get("try")
    return "; ".join(try_text(one).rstrip(".") for one in found[:2]) if isinstance(found, list) else ""


# ---- Markdown


def md(value: Any) -> str:
    """Text that stays text in any Markdown: no markup, no HTML, no table cell or line of its own."""
    if isinstance(value, Raw):
        return value
    text = re.sub(r"\s+", " ", str(value)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|~])", r"\\\1", text)
    text = re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # inside a word it means nothing
    return re.sub(r"^(\s*)([#+\-=]|\d+[.)])(?=\s|$|-|=|#)", r"\1\\\2", text)


def fence(text: str) -> Raw:
    """A code block that its content cannot close."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    marks = "`" * max(3, longest + 1)
    return Raw(f"{marks}\n{text}\n{marks}")
