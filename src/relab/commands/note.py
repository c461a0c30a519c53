"""relab note: the entry of a run or an experiment, for a log that people write in as well; and what that log holds."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from relab.base.documents import Document
from relab.commands import dry_run
from relab.commands.note_common import Note, find, logs_of, show
from relab.commands.parsing import parse
from relab.config.base import require

if TYPE_CHECKING:
    from relab.notebook.log import Logged

EXAMPLES = """
  relab note brave-otter                         print the entry
  relab note brave-otter --into LOG.md           write it into the log, or renew it there; --dry-run says which
  relab note brave-otter --into notes/ --lang zh  a dated file for each entry, in Chinese
  relab note experiments/question --into LOG.md
  relab note brave-otter --superseded "its start was solved" --by calm-lynx   in the log, with the reason
  relab note LOG.md --refresh                    renew the numbers that name their run
  relab note LOG.md --check                      exit 1 if one of them is stale
  relab note --search learning rate              entries and own text that hold both words
  relab note --digest 7d                         what was asked, answered and found in a week
  relab note --families                          which architectures and environments, and what opened each
"""


def main(words: Sequence[str]) -> int:
    args = parse(Note, "note", words, EXAMPLES)
    check(args)
    if args.refresh or args.check:
        from relab.commands.note_refresh import refresh

        return refresh(args)
    if args.search or args.digest or args.families:
        return look(args)
    return supersede(args) if args.superseded is not None else write(args)


def check(args: Note) -> None:
    """One thing at a time, and nothing that would be ignored."""
    modes = [name for name in ("search", "digest", "families") if getattr(args, name)]
    modes += ["refresh" if args.refresh else "check"] if args.refresh or args.check else []
    require(len(modes) <= 1, f"one of these at a time, but got {' and '.join(f'--{name}' for name in modes)}")
    reads_log = modes and modes[0] in ("refresh", "check")
    others = "--search, --digest, --families or --refresh"
    require(bool(modes) or args.run is not None, f"name a run or an experiment; or use {others}")
    is_log = not modes and str(args.run).endswith(".md") and Path(str(args.run)).is_file()
    require(not is_log, f"{args.run} is a log: --refresh renews its numbers, --check says which are stale")
    require(not modes or reads_log or args.run is None,
            f"--{''.join(modes)} reads a whole log; give it by --into, and leave {args.run} out")  # fmt: skip
    require(args.superseded is None or (not modes and args.run is not None),
            "--superseded marks one entry: name it by its id or its run, and give no other mode")  # fmt: skip
    require(args.by is None or bool(args.superseded), "--by goes with --superseded and its reason")
    require(not args.regex or bool(args.search), "--regex goes with --search")
    require(args.until is None or args.digest is not None, "--until goes with --digest")
    require(not args.force or not modes, f"--force writes an entry anew; it does not go with --{''.join(modes)}")


# ---- Writing an entry


def write(args: Note) -> int:
    from relab.notebook import making

    folder = find(str(args.run), args.runs, args.root)
    entry = making.of_folder(folder, args.into, args.lang, (args.runs, args.root))
    where: Document = {}
    if args.into is not None:
        from relab.notebook import folder as logs

        if args.dry_run:
            return dry_run.say([logs.planned(args.into, entry, args.force)], args.json)
        path, did = logs.write(args.into, entry, args.force)
        where = {"into": str(path), "did": did}
    from relab.notebook.references import bare

    if args.json:
        show({**bare(asdict(entry)), **where})
    elif where:
        print(f"{where['into']}: entry {entry.id} {where['did']}")
    else:
        print(bare(entry.markdown()))
    return 0


def supersede(args: Note) -> int:
    from relab.notebook import superseding

    assert args.run is not None
    assert args.superseded is not None
    logs = logs_of(args)
    if args.dry_run:
        one = superseding.pick(log_entries(logs), args.run)
        return dry_run.say([f"mark the entry {one.id} in {one.where} as superseded"], args.json)
    one, changed = superseding.mark(logs, args.run, args.superseded, args.by or "")
    did = ("superseded" if args.superseded.strip() else "valid again") if changed else "unchanged"
    show({"entry": one.id, "into": str(one.path), "did": did}) if args.json else print(
        f"{one.where}: entry {one.id} {did}"
    )
    return 0


def log_entries(logs: list[Path]) -> list[Logged]:
    from relab.notebook import log

    return log.entries(logs)


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
