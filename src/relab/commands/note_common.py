"""What can be asked of `relab note`, and what its parts share: the entry of a folder, the log that is meant."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import tyro

from relab.base.documents import Document
from relab.commands.options import DryRun, RunsFolder
from relab.config.base import require
from relab.record import names


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
    dry_run: DryRun = False
    runs: RunsFolder = Path("runs")
    root: Path = Path("experiments")
    """folder that holds the experiments"""
    json: bool = False
    """print as JSON; with --into, where it went as well"""


def find(word: str, runs: Path, root: Path) -> Path:
    """A folder or file as given, an experiment by its name, or a run by its name."""
    if word and Path(word).exists():
        return Path(word)
    return root / word if word and (root / word).is_dir() else names.find(word, runs)


def logs_of(args: Note, named: str | None = None) -> list[Path]:
    """The log that was named, else those that are usual here."""
    from relab.notebook.log import default_logs

    chosen = [Path(named)] if named else [args.into] if args.into else []
    for path in chosen:
        if not path.exists():
            raise FileNotFoundError(f"there is no log {path}; `relab note RUN --into {path}` begins one")
        if not (path.is_file() or path.is_dir()):
            raise OSError(f"{path} must be a log, but is a pipe, a socket or a device")
    usual = default_logs()
    require(bool(chosen or usual), "there is no LOG.md, notes/ or experiments/LOG.md here; name the log by --into")
    return chosen or usual


def show(row: Document) -> None:
    from relab.base.jsonl import encode

    sys.stdout.write(encode({"schema": 1, **row}).decode())
