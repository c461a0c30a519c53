"""relab report: one page about a run, a folder of runs or a comparison, in Markdown and HTML, safe to share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from relab.base.places import printable
from relab.commands.hinting import Hinting
from relab.commands.parsing import parse
from relab.config.base import require
from relab.record import names

if TYPE_CHECKING:
    from relab.formats.read.hints import Hints

EXAMPLES = """
  relab report brave-otter                       report.md and report.html in the run folder
  relab report experiments/question --open       all its runs, grouped by config; then the browser
  relab report logs_sb3/ runs/ --out both.html   several folders, compared
  relab report brave-otter --against calm-lynx   with that run's curve in grey
  relab report logs/progress.csv                 another tool's logs: progress-report.* in the current folder
  relab report brave-otter --out /tmp/otter.html
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
    runs: Path = Path("runs")
    """folder that holds the run folders"""
    against: str | None = None
    """run to hold it against, drawn in grey; default: its parent, where that lies beside it"""
    out: Path | None = None
    """where to write: a name ending in .html or .md (both are written); default: report.* in the folder"""
    open: bool = False
    """show the page in the browser"""
    full: bool = False
    """keep host, user, paths and the patch: not for sharing; secrets stay masked"""
    json: bool = False
    """print what the report says as JSON; writes nothing"""
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    from relab.report import render, sections

    args = parse(Report, "report", words, EXAMPLES)
    require(
        args.out is None or args.out.suffix in (".html", ".md"), f"--out must end in .html or .md, but is {args.out}"
    )
    require(bool(args.paths), "name a run or a folder of runs, e.g. relab report runs/")
    folders = [find(word, args.runs) for word in args.paths]
    against = find(args.against, args.runs) if args.against else None
    if args.known.show_mapping:
        print("\n".join(args.known.shown(folder) for folder in folders))
        return 0
    data = sections.build(folders[0], full=args.full, against=against, **content(folders, against, args.known))
    if args.json:
        from relab.base.jsonl import encode

        print(encode(data).decode(), end="")
        return 0
    pages = render.write(data, *where(args.out, folders))
    print("\n".join([printable(data["sentence"]), *passed_over(data["not_read"]), *(f"  {page}" for page in pages)]))
    if args.open:
        import webbrowser

        webbrowser.open(pages[-1].resolve().as_uri())
    return 0


def passed_over(gone: list[str]) -> list[str]:
    """One line where something could not be read; the page lists all of it under Health, Not checked."""
    more = f" and {len(gone) - 1} more (the page lists them)" if len(gone) > 1 else ""
    return [printable(f"  not read: {gone[0]}{more}")] if gone else []


def find(word: str, runs: Path) -> Path:
    """A folder or file as given, or a run by its name."""
    return Path(word) if Path(word).exists() else names.find(word, runs)


def where(out: Path | None, paths: Sequence[Path]) -> tuple[Path, str]:
    """Folder and stem of the pages. Into relab's folders; beside nobody else's logs, but here, under their name."""
    if out is not None:
        return out.parent, out.stem
    path = paths[0]
    if len(paths) > 1:
        return Path(), f"{path.resolve().stem}-and-{len(paths) - 1}-more-report"
    from relab.formats.read.find import find as sources

    ours = any((path / name).is_file() for name in ("experiment.yaml", "sweep.yaml"))
    if ours or (path.is_dir() and all(source.format == "relab" for source in sources(path))):
        return path, "report"
    return Path(), f"{path.resolve().stem}-report"


def content(folders: Sequence[Path], against: Path | None, known: Hinting) -> dict[str, Any]:
    """What a page says besides its runs' own numbers: what examine found below each path, how the configs compare."""
    from relab.commands.compare import declared, load
    from relab.comparison import build
    from relab.comparison.task import Options
    from relab.report import comparison_page
    from relab.runs import grouping

    found = merged([asked(folder, against, known.of(folder)) for folder in folders])
    runs, origins, _ = load(folders, known)  # what could not be read is in what was asked
    groups = grouping.grouped(runs)
    if len(groups) > 1:
        found["more"] = comparison_page.sections(build.compare(runs, Options(), declared(folders), origins))
    return found | {"groups": groups}


LISTS = ("findings", "limits", "not_checked", "not_read", "remarks")


def merged(parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """What was asked of several paths, as if it had been one; a proposal is for one path."""
    if len(parts) == 1:
        return parts[0]
    if any(part["findings"] is None for part in parts):
        return {"findings": None}
    lists = {key: [x for part in parts for x in part[key]] for key in LISTS}
    return lists | {"muted": {k: v for part in parts for k, v in part["muted"].items()}}


def asked(folder: Path, against: Path | None = None, hints: Hints | None = None) -> dict[str, Any]:
    """What `relab examine` says, if it can; a page without findings is better than none, and says that it has none."""
    from relab.base.jsonl import RecordError
    from relab.formats.read.find import find as sources
    from relab.health.examine import examine

    try:
        found = examine(folder, against, hints=hints)
    except Exception as error:  # a rule that fails is no reason to have no report
        if isinstance(error, RecordError) and not any(sources(folder)):
            return {"findings": None}  # nothing to read: whoever makes the page says it
        print(f"relab: the page has no findings: {type(error).__name__}: {error}", file=sys.stderr)
        return {"findings": None}
    return {
        "findings": [f.to_json() for f in found.findings if not f.footer],
        "limits": list(dict.fromkeys(f.message for f in found.findings if f.footer)),
        "not_checked": [gone.to_json() for gone in found.not_checked],
        "not_read": [gone._asdict() for gone in (*found.unreadable, *found.not_read)],
        "remarks": [remark.to_json() for remark in found.remarks],
        "muted": found.muted,
        "proposal": proposed(found, folder),
    }


def proposed(found: Any, folder: Path) -> str:
    """What `relab next` would print; empty where it has nothing, or cannot say."""
    try:
        from relab.advise import propose, render
        from relab.notebook.log import earlier

        return render.text(propose(found, folder, earlier(Path("experiments"))))
    except Exception:  # a page without a proposal is better than none
        return ""
