"""relab note: the entry of a run or an experiment, for a log that people write in as well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from relab import names
from relab.commands.parsing import parse

if TYPE_CHECKING:
    from relab.notebook.entry import Entry

EXAMPLES = """
  relab note brave-otter                         print the entry
  relab note brave-otter --into LOG.md           write it into the log, or renew it there
  relab note experiments/question --into LOG.md
  relab note brave-otter --json
"""


@dataclass(frozen=True)
class Note:
    """The entry of a run or an experiment: question, answer, evidence, what differs, findings, command, what next.

    In a log it stands between two marks. A second call renews it in place and leaves all other text alone; an entry
    that somebody has edited is not overwritten.
    """

    run: tyro.conf.Positional[str]
    """run (name, part of it, id, folder), or an experiment (name, folder)"""
    into: Path | None = None
    """the log to write it into; default: print it"""
    force: bool = False
    """overwrite an entry that was edited by hand"""
    runs: Path = Path("runs")
    """folder that holds the run folders"""
    root: Path = Path("experiments")
    """folder that holds the experiments"""
    json: bool = False
    """print the entry as JSON; with --into, where it went as well"""


def main(words: Sequence[str]) -> int:
    args = parse(Note, "note", words, EXAMPLES)
    entry = entry_of(find(args.run, args.runs, args.root))
    told = write(args.into, entry, args.force) if args.into else None
    if args.json:
        from relab.jsonl import encode

        where = {"into": str(args.into), "did": told} if args.into else {}
        print(encode({**asdict(entry), **where}).decode(), end="")
    elif args.into:
        print(f"{args.into}: entry {entry.id} {told}")
    else:
        print(entry.markdown())
    return 0


def find(word: str, runs: Path, root: Path) -> Path:
    """A folder or file as given, an experiment by its name, or a run by its name."""
    if word and Path(word).exists():
        return Path(word)
    return root / word if word and (root / word).is_dir() else names.find(word, runs)


def entry_of(folder: Path) -> Entry:
    from relab.commands.report import asked
    from relab.notebook import entry
    from relab.report import sections

    facts = asked(folder)
    return entry.build(folder, sections.build(folder, **facts), str(facts.get("proposal") or ""))


def write(into: Path, entry: Entry, force: bool = False) -> str:
    from relab.notebook import fence

    return fence.write(into, entry.id, entry.markdown(), force)
