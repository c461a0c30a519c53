"""relab note LOG.md --refresh, --check: are the numbers of a log still what the records say?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relab.base.documents import Document
from relab.base.jsonl import RecordError
from relab.base.places import printable
from relab.commands.note_common import Note, logs_of, show
from relab.notebook import fence, log, making, references
from relab.notebook.references import Change, Records
from relab.notebook.words import Words, words

STALE = 1  # exit code of --check
LOST = {"gone": "the run is not here", "no_number": "the run has no such number now"}


@dataclass(frozen=True)
class LogChange:
    """One reference of one log."""

    path: Path
    change: Change


def refresh(args: Note) -> int:
    """Renew what can be renewed, or only tell what would be."""
    writes = args.refresh and not (args.check or args.dry_run)
    changes, anew = [], []
    for path in [file for one in logs_of(args, args.run) for file in log.files(one)]:
        say, records = words(args.lang or log.language([path])), Records(bases(path, args))
        changes += [LogChange(path, change) for change in of_file(path, records, say, writes)]
        mine = [each.change for each in changes if each.path == path]
        anew += write_anew(path, mine, records, args) if writes else []
    stale = [each for each in changes if each.change.stale]
    if args.json:
        show({"references": [row(each) for each in changes], "stale": len(stale), "written": writes, "entries": anew})
    else:
        print("\n".join([*summary(changes, stale, not writes), *(f"entry {id_}: written anew" for id_ in anew)]))
    return STALE if args.check and stale else 0


def row(logged: LogChange) -> Document:
    change = logged.change
    return {"log": str(logged.path), "line": change.line, "ref": str(change.ref), "old": change.old,
            "new": bare(change), "state": change.state, "entry": change.entry or None}  # fmt: skip


def of_file(path: Path, records: Records, say: Words, writes: bool) -> list[Change]:
    """What becomes of each reference; the file is replaced only where one changes."""
    changes: list[Change] = []

    def renewed(text: bytes) -> bytes:
        text_after, changed = references.refresh(text, records, say, path.name)
        changes[:] = changed
        return text_after

    if renewed(fence.read(path)) != fence.read(path) and writes:
        fence.rewrite(path, renewed)
    return changes


def write_anew(path: Path, changes: Sequence[Change], records: Records, args: Note) -> list[str]:
    """Entries whose numbers have changed, with all their words; those that somebody has edited keep theirs."""
    ids = {change.entry for change in changes if change.entry and change.state == "renewed"}
    done = []
    for one in log.read(path):
        name = one.facts.get("source")
        folder = records.folder(name) if isinstance(name, str) else None
        if one.id not in ids or one.edited or folder is None:
            continue
        try:
            entry = making.of_folder(folder, path, one.lang, (args.runs, args.root))
        except (RecordError, OSError):
            continue  # its numbers are renewed, and what else the entry says stays
        if entry.id == one.id:
            fence.write(path, entry.id, entry.block())
            done.append(one.id)
    return done


def bases(path: Path, args: Note) -> list[Path]:
    """Where a reference's run is looked for: from the log's folder, from here, and in the folders of runs."""
    home = path.resolve().parent
    around = [home, home.parent, Path.cwd()]
    return [args.runs, args.root, *around, *(base / name for base in around for name in ("runs", "experiments"))]


# ---- Saying it


def summary(changes: Sequence[LogChange], stale: Sequence[LogChange], checking: bool) -> list[str]:
    if not changes:
        return ["no number here names its run: {{RUN METRIC final}} in your own text becomes one that does"]
    lines = [printable(f"{f.path}:{f.change.line}: {said(f.change, checking)}  ({f.change.ref})") for f in stale]
    if checking:
        return [*lines, f"{len(changes)} numbers, {len(stale)} stale"]
    lost = [f.change for f in stale if f.change.state in LOST]
    counts = {"renewed": len(stale) - len(lost), "marked stale": sum(bool(c.old) for c in lost),
              "not filled in": sum(not c.old for c in lost)}  # fmt: skip
    return [*lines, ", ".join([f"{len(changes)} numbers", *(f"{n} {word}" for word, n in counts.items() if n)])]


def said(change: Change, checking: bool) -> str:
    """487.2 (stale: was 487.2, the record now says 455.1)"""
    if change.state in LOST:
        return f"{change.old or 'not filled in'} (stale: {LOST[change.state]})"
    new = bare(change)
    if change.state == "filled":
        return f"{'to be filled in' if checking else 'filled in'}: {new}"
    if change.state == "back":
        return f"{new} is no longer stale"
    return (
        f"{change.old} (stale: was {change.old}, the record now says {new})" if checking else f"{change.old} -> {new}"
    )


def bare(change: Change) -> str:
    return change.new.partition("<!--")[0]
