"""What lay at or below a path and was not read, and why? Files that are called like logs and are none, and limits.

Asked only of files that no importer wanted, in folders that are not themselves a run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from relab.formats.read.source import EVENT_FILES, Listing, Source

MANY = 200  # that are listed one by one
NAMES = (".wandb", ".swanlab", ".db", ".sqlite", ".sqlite3", ".csv", ".tsv", ".jsonl", ".ndjson", ".jsonlines",
         "progress.json", "metrics.json", "result.json")  # fmt: skip


class Unread(NamedTuple):
    """A file or a folder that was passed over."""

    where: str  # below the folder that was given
    why: str

    def __str__(self) -> str:
        return f"{self.where} ({self.why})"


def say(unread: list[Unread], where: str, why: str) -> None:
    """One more; behind the last that is listed stands only that there are others."""
    if len(unread) < MANY:
        unread.append(Unread(where, why))
    elif len(unread) == MANY:
        unread.append(Unread("and others", f"only the first {MANY} are listed; give a folder further down"))


def summary(unread: list[Unread], shown: int = 1) -> str:
    """One line for a footer; empty where all was read."""
    some = "; ".join(str(gone) for gone in unread[:shown])
    more = f" and {len(unread) - shown} more" if len(unread) > shown else ""
    return f"not read: {some}{more}" if unread else ""


def of_folder(listing: Listing, claimed: Iterable[Source], root: Path) -> Iterator[Unread]:
    """The files of a folder that are called like logs and that no run has, and what else could not be looked at."""
    mine = list(claimed)
    where = below(listing.folder, root)
    if listing.error:
        yield Unread(where, f"the folder cannot be listed: {listing.error}")
    for name in listing.links:
        if _leads_out(listing.folder / name, root):
            yield Unread(_join(where, name), "a link that leads out of the given folder; give its target to read it")
    if any(source.path == listing.folder for source in mine):
        return  # whatever else lies in the folder of a run is the run's
    taken = {path.name for source in mine for path in (source.path, *source.files)}
    formats = ", ".join(dict.fromkeys(source.format for source in mine))
    for name in listing.files:
        if name not in taken and (why := _reason(listing, name, formats)):
            yield Unread(_join(where, name), why)


def _join(where: str, name: str) -> str:
    return encoded(name if where == "." else f"{where}/{name}")


def below(path: Path, root: Path) -> str:
    base = root if root.is_dir() else root.parent
    return path.relative_to(base).as_posix() if path.is_relative_to(base) else path.name


def _leads_out(link: Path, root: Path) -> bool:
    try:
        return not link.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # it leads to itself
        return False


def _reason(listing: Listing, name: str, formats: str) -> str:
    """Why a file was passed over; `formats` are those in which other files of the folder were read."""
    if not name.endswith(NAMES) and EVENT_FILES not in name:
        return ""
    from relab.formats.read.no_log import is_log, reason  # needs the importers themselves, which most folders do not
    from relab.formats.read.own_tables import says_again

    if says_again(listing, name):
        return ""
    if formats and is_log(listing, name):
        return f"the folder was read as {formats}; give this file by its name to read it too"
    return reason(listing, name)


def encoded(name: str) -> str:
    """A file's name as text; bytes that are no UTF-8 become question marks."""
    return os.fsencode(name).decode("utf-8", "replace")
