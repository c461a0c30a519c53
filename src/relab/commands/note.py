"""relab note: the entry of a run or an experiment, for a log that people write in as well; and what that log holds."""

from __future__ import annotations

import datetime
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import tyro

from relab import names
from relab.commands.parsing import parse
from relab.config import require

if TYPE_CHECKING:
    from relab.notebook.page import Entry

EXAMPLES = """
  relab note brave-otter                         print the entry
  relab note brave-otter --into LOG.md           write it into the log, or renew it there
  relab note brave-otter --into notes/ --lang zh a dated file for each entry, in Chinese
  relab note experiments/question --into LOG.md
  relab note LOG.md --refresh                    renew the numbers that name their run
  relab note LOG.md --check                      exit 1 if one of them is stale
  relab note --search learning rate              entries and own text that hold both words
  relab note --digest 7d                         what was asked, answered and found in a week
  relab note --families                          which architectures and environments, and what opened each
"""
STALE = 1


@dataclass(frozen=True)
class Note:
    """The entry of a run or an experiment: question, answer, evidence, what differs, findings, command, what next.

    In a log it stands between two marks. A second call renews it in place and leaves all other text alone; an entry
    that somebody has edited is not overwritten.
    """

    run: tyro.conf.Positional[str | None] = None
    """run (name, part of it, id, folder), or an experiment (name, folder); a log with --refresh or --check"""
    into: Path | None = None
    """the log (LOG.md) or folder (notes/) to write it into; default: print it. With other options: the log to read"""
    lang: Literal["en", "zh"] | None = None
    """language of the entry; default: that of the entry, else of the log, else English"""
    force: bool = False
    """overwrite an entry that was edited by hand"""
    refresh: bool = False
    """renew the numbers of a log that name their run"""
    check: bool = False
    """say which of them are stale, write nothing, and exit 1 if any is"""
    search: tuple[str, ...] = ()
    """words that an entry must hold, all of them"""
    regex: bool = False
    """the words of --search are regular expressions"""
    digest: str | None = None
    """sum up the entries of so many days or weeks: 7d, 2w"""
    until: str | None = None
    """last day of the digest, YYYY-MM-DD; default: today (UTC)"""
    families: bool = False
    """list the families (architecture and environment) of the entries, as a tree"""
    runs: Path = Path("runs")
    """folder that holds the run folders"""
    root: Path = Path("experiments")
    """folder that holds the experiments"""
    json: bool = False
    """print as JSON; with --into, where it went as well"""


def main(words: Sequence[str]) -> int:
    args = parse(Note, "note", words, EXAMPLES)
    check(args)
    if args.refresh or args.check:
        return refresh(args)
    if args.search or args.digest or args.families:
        return look(args)
    return write(args)


def check(args: Note) -> None:
    """One thing at a time, and nothing that would be ignored."""
    asked = [name for name in ("search", "digest", "families") if getattr(args, name)]
    asked += ["refresh" if args.refresh else "check"] if args.refresh or args.check else []
    require(len(asked) <= 1, f"one of these at a time, but got {' and '.join(f'--{name}' for name in asked)}")
    reads_log = asked and asked[0] in ("refresh", "check")
    others = "--search, --digest, --families or --refresh"
    require(bool(asked) or args.run is not None, f"name a run or an experiment; or use {others}")
    require(not asked or reads_log or args.run is None,
            f"--{''.join(asked)} reads a whole log; give it by --into, and leave {args.run} out")  # fmt: skip
    require(not args.regex or bool(args.search), "--regex goes with --search")
    require(args.until is None or args.digest is not None, "--until goes with --digest")
    require(not args.force or not asked, f"--force writes an entry anew; it does not go with --{''.join(asked)}")


# ---- Writing an entry


def write(args: Note) -> int:
    folder = find(str(args.run), args.runs, args.root)
    entry = entry_of(folder, args.into, args.lang, (args.runs, args.root))
    where: dict[str, Any] = {}
    if args.into is not None:
        from relab.notebook.folder import write as put

        path, did = put(args.into, entry, args.force)
        where = {"into": str(path), "did": did}
    from relab.notebook.references import bare

    if args.json:
        show({**bare(asdict(entry)), **where})
    elif where:
        print(f"{where['into']}: entry {entry.id} {where['did']}")
    else:
        print(bare(entry.markdown()))
    return 0


def find(word: str, runs: Path, root: Path) -> Path:
    """A folder or file as given, an experiment by its name, or a run by its name."""
    if word and Path(word).exists():
        return Path(word)
    return root / word if word and (root / word).is_dir() else names.find(word, runs)


def entry_of(folder: Path, into: Path | None = None, lang: str | None = None, roots: Sequence[Path] = ()) -> Entry:
    """The entry in the language asked for, else the one it has in the log, else the log's."""
    from relab.commands.report import asked
    from relab.notebook import entry
    from relab.report import sections

    facts = asked(folder)
    data, proposal = sections.build(folder, **facts), str(facts.get("proposal") or "")
    made = entry.build(folder, data, proposal, lang or "en", roots)
    if lang is None and (kept := language(into, made.id)) != made.lang:
        return entry.build(folder, data, proposal, kept, roots)
    return made


def language(into: Path | None, id_: str) -> str:
    from relab.notebook import log

    if into is None or not into.exists():
        return "en"
    known = {one.id: one.lang for one in log.entries([into])}
    return known.get(id_) or log.language([into])


# ---- Renewing numbers


def refresh(args: Note) -> int:
    """Renew what can be renewed, or only tell what would be."""
    from relab.notebook import fence, log, references
    from relab.notebook.words import words

    logs = logs_of(args, args.run)
    done: list[tuple[Path, references.Change]] = []
    for path in [file for one in logs for file in log.files(one)]:
        say = words(args.lang or log.language([path]))
        records = references.Records(bases(path, args))
        made = references.refresh(fence.read(path), records, say, path.name)
        if args.refresh and not args.check and made[0] != fence.read(path):
            fence.rewrite(path, lambda text, r=records, s=say, p=path: references.refresh(text, r, s, p.name)[0])  # type: ignore[misc]
        done += [(path, change) for change in made[1]]
    stale = [(path, change) for path, change in done if change.stale]
    if args.json:
        rows = [{"log": str(path), "line": c.line, "ref": str(c.ref), "old": c.old, "new": c.new, "state": c.state,
                 "entry": c.entry or None} for path, c in done]  # fmt: skip
        show({"references": rows, "stale": len(stale), "written": args.refresh and not args.check})
    else:
        print("\n".join(told(done, stale, args)))
    return STALE if args.check and stale else 0


def told(done: Sequence[Any], stale: Sequence[Any], args: Note) -> list[str]:
    from relab.places import printable

    lines = [printable(f"{path}:{c.line}: {said(c, args.check)}  ({c.ref})") for path, c in stale]
    if not done:
        return ["no number here names its run: {{RUN METRIC final}} in your own text becomes one that does"]
    gone = sum(c.state in ("gone", "no_number") for _, c in stale)
    verb = "stale" if args.check else "renewed"
    count = len(stale) if args.check else len(stale) - gone
    entries = dict.fromkeys(c.entry for _, c in stale if c.entry and c.state == "renewed") if not args.check else {}
    more = [f"the words of entry {id_} were written from the old numbers: `relab note RUN --into LOG` writes them anew"
            for id_ in entries]  # fmt: skip
    left = f", {gone} marked stale" if gone and not args.check else ""
    return [*lines, f"{len(done)} numbers, {count} {verb}{left}", *more]


def said(change: Any, checking: bool) -> str:
    """487.2 (stale: was 487.2, the record now says 455.1)"""
    why = {"gone": "the run is not here", "no_number": "the run has no such number now"}.get(change.state)
    if why:
        return f"{change.old or 'a number to be filled in'} (stale: {why})"
    new = change.new.partition("<!--")[0]
    if change.state == "filled":
        return f"{'to be filled in' if checking else 'filled in'}: {new}"
    checked = f"{change.old} (stale: was {change.old}, the record now says {new})"
    return checked if checking else f"{change.old} -> {new}"


def bases(log: Path, args: Note) -> list[Path]:
    """Where a reference's run is looked for: from the log's folder, from here, and in the folders of runs."""
    home = log.resolve().parent
    around = [home, home.parent, Path.cwd()]
    return [args.runs, args.root, *around, *(base / name for base in around for name in ("runs", "experiments"))]


def logs_of(args: Note, named: str | None = None) -> list[Path]:
    """The log that was named, else those that are usual here."""
    from relab.notebook.log import default_logs

    given = [Path(named)] if named else [args.into] if args.into else []
    for path in given:
        if not path.exists():
            raise FileNotFoundError(f"there is no log {path}; `relab note RUN --into {path}` begins one")
    usual = default_logs()
    require(bool(given or usual), "there is no LOG.md, notes/ or experiments/LOG.md here; name the log by --into")
    return given or usual


# ---- Looking into a log


def look(args: Note) -> int:
    from relab.notebook import digest, families, log, search
    from relab.notebook.words import words

    logs = logs_of(args)
    if args.search:
        hits = search.search(logs, args.search, args.regex)
        show({"hits": [hit.to_dict() for hit in hits]}) if args.json else print(search.text(hits, args.search))
        return 0
    entries, say = log.entries(logs), words(args.lang or log.language(logs))
    if args.digest:
        summed = digest.digest(entries, digest.days(args.digest), last_day(args.until))
        show(summed.to_dict()) if args.json else print(digest.markdown(summed, say))
        return 0
    roots = families.tree(entries)
    show({"families": [root.to_dict() for root in roots]}) if args.json else print(families.markdown(roots, say))
    return 0


def last_day(text: str | None) -> datetime.date:
    if text is None:
        return datetime.datetime.now(datetime.UTC).date()
    try:
        return datetime.date.fromisoformat(text)
    except ValueError:
        require(False, f"`--until` must be a day such as 2026-11-16, but got {text!r}")
        raise


def show(row: dict[str, Any]) -> None:
    from relab.jsonl import encode

    sys.stdout.write(encode(row).decode())
