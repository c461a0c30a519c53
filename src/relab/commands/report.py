"""relab report: one page about a run or a folder of runs, in Markdown and HTML, safe to share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from relab import names
from relab.commands.hinting import Hinting
from relab.commands.parsing import parse
from relab.config import require

if TYPE_CHECKING:
    from relab.importers.hints import Hints

EXAMPLES = """
  relab report brave-otter                       report.md and report.html in the run folder
  relab report experiments/question --open       all its runs, grouped by config; then the browser
  relab report brave-otter --against calm-lynx   with that run's curve in grey
  relab report logs/progress.csv                 another tool's logs: progress-report.* in the current folder
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
    against: str | None = None
    """run to hold it against, drawn in grey; default: its parent, where that lies beside it"""
    out: Path | None = None
    """where to write: a name ending in .html or .md (both are written); default: report.* in the folder"""
    open: bool = False
    """show the page in the browser"""
    full: bool = False
    """keep host, user, paths, secrets and the patch: not for sharing"""
    json: bool = False
    """print what the report says as JSON; writes nothing"""
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    from relab.report import render, sections

    args = parse(Report, "report", words, EXAMPLES)
    require(
        args.out is None or args.out.suffix in (".html", ".md"), f"--out must end in .html or .md, but is {args.out}"
    )
    folder = find(args.run, args.runs)
    against = find(args.against, args.runs) if args.against else None
    if args.known.show_mapping:
        print(args.known.shown(folder))
        return 0
    hints = args.known.of(folder)
    data = sections.build(folder, full=args.full, against=against, hints=hints, **asked(folder, against, hints))
    if args.json:
        from relab.jsonl import encode

        print(encode(data).decode(), end="")
        return 0
    pages = render.write(data, *where(args.out, folder))
    print("\n".join([data["sentence"], *(f"  {page}" for page in pages)]))
    if args.open:
        import webbrowser

        webbrowser.open(pages[-1].resolve().as_uri())
    return 0


def find(word: str, runs: Path) -> Path:
    """A folder or file as given, or a run by its name."""
    return Path(word) if Path(word).exists() else names.find(word, runs)


def where(out: Path | None, path: Path) -> tuple[Path, str]:
    """Folder and stem of the pages. Into relab's folders; beside nobody else's logs, but here, under their name."""
    if out is not None:
        return out.parent, out.stem
    from relab.importers.find import find as sources

    if path.is_dir() and all(source.format == "relab" for source in sources(path)):
        return path, "report"
    return Path(), f"{path.resolve().stem}-report"


def examined(folder: Path) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]]]:
    """Findings and what was not checked; None where the examination itself failed."""
    found = asked(folder)
    return found["findings"], found.get("not_checked", [])


def asked(folder: Path, against: Path | None = None, hints: Hints | None = None) -> dict[str, Any]:
    """What `relab examine` says, if it can; a page without findings is better than none, and says that it has none."""
    from relab.health.examine import examine

    try:
        found = examine(folder, against, hints=hints)
    except Exception as error:  # a rule that fails is no reason to have no report
        print(f"relab: the page has no findings: {type(error).__name__}: {error}", file=sys.stderr)
        return {"findings": None}
    return {
        "findings": [f.to_json() for f in found.findings if not f.footer],
        "limits": list(dict.fromkeys(f.message for f in found.findings if f.footer)),
        "not_checked": [gone.to_json() for gone in found.not_checked],
        "muted": found.muted,
        "proposal": proposed(found, folder),
    }


def proposed(found: Any, folder: Path) -> str:
    """What `relab next` would print; empty where it has nothing, or cannot say."""
    try:
        from relab.advise import propose, render

        return render.text(propose(found, folder))
    except Exception:  # a page without a proposal is better than none
        return ""
