"""Where does an entry go? Into one log, or into a folder with a dated file for each entry and an index of them."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from relab.base.jsonl import RecordError
from relab.notebook import fence, log
from relab.notebook.digest import verdict_word
from relab.notebook.log import INDEX
from relab.notebook.page import Entry, md, table
from relab.notebook.words import Words, words
from relab.report.render import Raw

NAME = "index.md"
LONGEST = 80


def is_folder(into: Path) -> bool:
    """A folder that is there, or a path that can only be meant as one: without a suffix."""
    return into.is_dir() or (not into.exists() and not into.suffix)


def file_name(entry: Entry) -> str:
    """2026-11-16-brave-otter.md: sorted by date, and the same on every file system.

    Signs that are not ASCII are left out; the entry's id then tells names apart.
    """
    plain = re.sub(r"[^A-Za-z0-9._=+-]+", "-", entry.name).strip("-.")[:LONGEST]
    whole = plain if plain == entry.name else "-".join(part for part in (plain, entry.id) if part)
    dated = whole if not entry.date or whole.startswith(entry.date) else f"{entry.date}-{whole}"
    return f"{dated}.md"


def write(into: Path, entry: Entry, force: bool = False) -> tuple[Path, str]:
    """Put the entry into the log or the folder -> (file, added | renewed | unchanged)."""
    check_place(into)
    if not is_folder(into):
        return into, fence.write(into, entry.id, entry.block(), force)
    path = place_of(into, entry)
    did = fence.write(path, entry.id, entry.block(), force)
    write_index(into, words(entry.lang))
    return path, did


def planned(into: Path, entry: Entry, force: bool = False) -> str:
    """What `write` would do, in words; what it refuses is refused."""
    check_place(into)
    path = place_of(into, entry) if is_folder(into) else into
    before = fence.read(path)
    after = fence.place(before, entry.id, entry.block(), force, path.name)
    there = any(block.id == entry.id for block in fence.blocks(before, path.name))
    verb = "leave" if after == before else "renew" if there else "add"
    return f"{verb} the entry {entry.id} in {path}" + (" as it is" if after == before else "")


def check_place(into: Path) -> None:
    """A log, or a folder of entries, begins in a folder that exists: another one is more likely a slip of the pen."""
    above = into.parent
    if not above.is_dir():
        what = "is a file" if above.exists() else "does not exist"
        raise RecordError(f"{into} cannot be written: the folder {above} {what}; make it first (mkdir -p"
                          f" {shlex.quote(str(above))}), or name a log in a folder that exists")  # fmt: skip


def place_of(folder: Path, entry: Entry) -> Path:
    """The file that holds the entry already, whatever it is called now; else a new one that is free."""
    for path in log.files(folder):
        if any(block.id == entry.id for block in fence.blocks(fence.read(path), path.name)):
            return path
    path = folder / file_name(entry)
    return path if not path.exists() else path.with_stem(f"{path.stem}-{entry.id}")


def write_index(folder: Path, w: Words) -> None:
    """A table of all entries, newest first, between marks of its own; one that somebody edited is left alone."""
    rows = [[one.date, Raw(f"[{md(one.title.removeprefix(one.date).strip())}](<{one.path.name}>)"),
             verdict_word(one, w), str(one.facts.get("family") or "-")]
            for one in reversed(log.entries([folder]))]  # fmt: skip
    head = [word.strip() for word in w.say("index.head").split(",")]
    try:
        fence.write(folder / NAME, INDEX, f"# {w.say('index.title')}\n\n{table([head, *rows])}")
    except RecordError as error:
        if "edited by hand" not in str(error):
            raise
