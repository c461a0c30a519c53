"""relab report: one page about a run, a folder of runs or a comparison, in Markdown and HTML, safe to share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import tyro

from relab.base.places import printable
from relab.commands import dry_run
from relab.commands.hinting import Hinting
from relab.commands.options import DryRun, RunsFolder
from relab.commands.parsing import parse
from relab.commands.progress import Progress
from relab.config.base import require
from relab.record import names

EXAMPLES = """
  relab report brave-otter                       report.md and report.html in the run folder
  relab report experiments/question --open       all its runs, grouped by config; then the browser
  relab report logs_sb3/ runs/ --out both.html   several folders, compared
  relab report brave-otter --against calm-lynx   with that run's curve in grey
  relab report logs/progress.csv                 another tool's logs: progress-report.* in the current folder
  relab report brave-otter --out /tmp/otter.html
  relab report runs/ --figure pdf                also the curves and comparisons as figures for a paper
  relab report brave-otter --full                with host, paths and patch: for oneself
"""


@dataclass(frozen=True)
class Report:
    """What came out of a run, or of all runs below folders: one page that opens offline, in Markdown and HTML.

    Where there are several configs, they are compared. Safe to share: relative paths, no user or host name, patch by
    hash, secrets masked.
    """

    paths: tyro.conf.Positional[tuple[str, ...]]
    """run (name, part of it, id, folder) or folders of runs"""
    runs: RunsFolder = Path("runs")
    against: str | None = None
    """run to hold it against, drawn in grey; default: its parent, where that lies beside it"""
    out: Path | None = None
    """where to write: a name ending in .html or .md (both are written); default: report.* in the folder"""
    open: bool = False
    """show the page in the browser"""
    full: bool = False
    """keep host, user, paths and the patch: not for sharing; secrets stay masked"""
    figure: Literal["pdf", "svg", "png"] | None = None
    """write the curves and the pictures of comparisons as figures for a paper, beside the page"""
    json: bool = False
    """print what the report says as JSON; writes nothing"""
    dry_run: DryRun = False
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    from relab.notebook import making
    from relab.report import content, render, sections

    args = parse(Report, "report", words, EXAMPLES)
    require(
        args.out is None or args.out.suffix in (".html", ".md"), f"--out must end in .html or .md, but is {args.out}"
    )
    require(bool(args.paths), "name a run or a folder of runs, e.g. relab report runs/")
    folders = [names.place(word, args.runs) for word in args.paths]
    against = names.place(args.against, args.runs) if args.against else None
    if args.known.show_mapping:
        print("\n".join(args.known.shown(folder) for folder in folders))
        return 0
    with Progress("reading run") as tell:
        load = args.known.together(tell)
        facts = content.content(folders, load, against, args.known.of, making.known_here)
        load.check()
    page = sections.build(folders[0], facts, full=args.full, against=against)
    if args.json:
        from relab.base.jsonl import encode
        from relab.report.parts import plain

        print(encode({"schema": 1, **plain(page)}).decode(), end="")
        return 0
    place, stem = content.place(args.out, folders)
    if args.dry_run:
        figures = [f"write the figures of the page as {args.figure}"] if args.figure else []
        return dry_run.say([f"write {place / stem}.md", f"write {place / stem}.html", *figures])
    pages = render.write(page, place, stem)
    if args.figure:
        from relab.report import paper

        pages += paper.save(render.figures(page), place, stem, args.figure)
    print("\n".join([printable(page.sentence), *passed_over(page.not_read), *(f"  {path}" for path in pages)]))
    if args.open:
        import webbrowser

        webbrowser.open(pages[1].resolve().as_uri())
    return 0


def passed_over(gone: list[str]) -> list[str]:
    """One line where something could not be read; the page lists all of it under Health, Not checked."""
    more = f" and {len(gone) - 1} more (the page lists them)" if len(gone) > 1 else ""
    return [printable(f"  not read: {gone[0]}{more}")] if gone else []
