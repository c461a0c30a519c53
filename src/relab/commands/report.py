"""relab report: one page about a run or a folder of runs, in Markdown and HTML, safe to share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from relab import names
from relab.commands.parsing import parse
from relab.config import require

EXAMPLES = """
  relab report brave-otter                       report.md and report.html in the run folder
  relab report experiments/question --open       all its runs, grouped by config; then the browser
  relab report brave-otter --out /tmp/otter.html
  relab report brave-otter --full                with host, paths and patch: for oneself
"""


@dataclass(frozen=True)
class Report:
    """What came out of a run, or of all runs below a folder: one page that opens offline, in Markdown and HTML.

    Safe to share: relative paths, no user or host name, patch by hash, secrets masked.
    """

    run: tyro.conf.Positional[str]
    """run (name, part of it, id, folder) or a folder of runs"""
    runs: Path = Path("runs")
    """folder that holds the run folders"""
    out: Path | None = None
    """where to write: a name ending in .html or .md (both are written); default: report.* in the folder"""
    open: bool = False
    """show the page in the browser"""
    full: bool = False
    """keep host, user, paths, secrets and the patch: not for sharing"""
    json: bool = False
    """print what the report says as JSON; writes nothing"""


def main(words: Sequence[str]) -> int:
    from relab.report import render, sections

    args = parse(Report, "report", words, EXAMPLES)
    require(
        args.out is None or args.out.suffix in (".html", ".md"), f"--out must end in .html or .md, but is {args.out}"
    )
    folder = find(args.run, args.runs)
    findings, not_checked = examined(folder)
    data = sections.build(folder, findings, not_checked, args.full)
    if args.json:
        from relab.jsonl import encode

        print(encode(data).decode(), end="")
        return 0
    place, stem = (args.out.parent, args.out.stem) if args.out else (folder, "report")
    pages = render.write(data, place, stem)
    print("\n".join([data["sentence"], *(f"  {page}" for page in pages)]))
    if args.open:
        import webbrowser

        webbrowser.open(pages[-1].resolve().as_uri())
    return 0


def find(word: str, runs: Path) -> Path:
    """A folder as given, or a run by its name."""
    return Path(word) if Path(word).is_dir() else names.find(word, runs)


def examined(folder: Path) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """What `relab examine` says, if it can; a page without findings is better than none, and says that it has none."""
    from relab.health.examine import examine

    try:
        found = examine(folder)
    except Exception as error:  # a rule that fails is no reason to have no report
        print(f"relab: the page has no findings: {type(error).__name__}: {error}", file=sys.stderr)
        return None, []
    return [f.to_json() for f in found.main], [gone.to_json() for gone in found.not_checked]
