"""Which runs are at or below a path, whoever wrote them? The one door of every reading command; nothing is written."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from relab.history import History
from relab.importers import told
from relab.importers.facts import add_facts
from relab.importers.hints import Hints, of_folder
from relab.importers.source import Listing, Source
from relab.jsonl import RecordError

DEPTH = 6  # folders below the given one that are looked into
MAX_FOLDERS = 20_000
Tell = Callable[[int, int, str], None]  # runs done, of how many, the name of the next
ENTRY_POINTS = "relab.importers"

# The first format that recognises a folder reads it: specific ones before general ones.
FORMATS: dict[str, str] = {
    "relab": "relab.importers.relab_folder",
    "sb3": "relab.importers.sb3",
    "rllib": "relab.importers.rllib",
    "optuna": "relab.importers.optuna_store",
    "loop": "relab.importers.loop_folder",
    "swarm": "relab.importers.swarm_folder",
    "probes": "relab.importers.probe_folder",
    "pufferlib": "relab.importers.pufferlib",
    "wandb": "relab.importers.wandb_file",
    "mlflow": "relab.importers.mlflow_store",
    "csv": "relab.importers.csv_file",
    "jsonl": "relab.importers.jsonl_file",
    "tensorboard": "relab.importers.tensorboard",
}


@dataclass
class Loaded:
    """A run that was read, and what it is called here."""

    source: Source
    history: History

    @property
    def name(self) -> str:
        return self.source.name


@dataclass
class Found:
    """What is at or below a path: runs, and runs that could not be read at all with the reason."""

    runs: list[Loaded] = field(default_factory=list)
    broken: list[tuple[Source, str]] = field(default_factory=list)


def load_all(root: str | os.PathLike[str], hints: Hints | None = None, tell: Tell | None = None) -> Found:
    """Read every run at or below root; a broken one is kept with its reason, and the others are still read.

    `hints` are what the user knows besides, by default what holds for the folder; `tell` hears how far it is.
    """
    found, besides = Found(), of_folder(root) if hints is None else hints
    sources = list(find(Path(root)))
    for number, source in enumerate(sources):
        if tell is not None:
            tell(number, len(sources), source.name)
        try:
            found.runs.append(Loaded(source, read(source, besides)))
        except Exception as error:  # whatever a stranger's folder holds, the other runs are still read
            found.broken.append((source, f"{type(error).__name__}: {error}"))
    if not found.runs and not found.broken:
        raise RecordError(f"no runs at or below {root}: no folder there is of a format that relab reads ({known()})")
    return found


def find(root: Path) -> Iterator[Source]:
    """The runs at or below root, to a limited depth; links are not followed, nothing outside is looked at."""
    if root.is_file():
        yield from claimed(Listing(root.parent, (root.name,)), root)[0]
        return
    if not root.is_dir():
        raise RecordError(f"{root} does not exist; give a run folder, a file, or a folder of runs")
    todo, seen, taken = [(root, 0)], 0, set[Path]()
    while todo:
        folder, depth = todo.pop(0)
        seen += 1
        listing = look(folder)
        mine, deeper = claimed(listing, root)
        yield from mine
        taken |= {file.parent for source in mine for file in source.files}  # a run may own folders below its own
        if deeper and depth < DEPTH and seen < MAX_FOLDERS:
            todo += [(folder / name, depth + 1) for name in listing.folders if folder / name not in taken]


def claimed(listing: Listing, root: Path) -> tuple[list[Source], bool]:
    """The runs of a folder under their names, and whether to look below it; loose files may be of several formats."""
    found: list[Source] = []
    loose = deeper = True
    for name in _formats():
        if not loose:
            break  # and no further importer is loaded: a folder of relab's own needs none of them
        module = importer(name)
        if not found or getattr(module, "LOOSE", False):
            mine = [replace(s, format=name, name=s.name or _name(s, root)) for s in _asked(module, listing)]
            if mine:
                deeper = deeper and getattr(module, "DEEP", False)
                loose = getattr(module, "LOOSE", False) and all(s.path != listing.folder for s in mine)
            found += mine
    return found, deeper


def _asked(module: ModuleType, listing: Listing) -> list[Source]:
    """What one importer finds in a folder; one that breaks on it finds nothing, and the others are still asked."""
    try:
        return list(module.sources(listing)) if module.sniff(listing) else []
    except Exception:  # a plug-in's, or a file of a shape that nobody foresaw
        return []


def _name(source: Source, root: Path) -> str:
    given = root if root.is_dir() else root.parent
    below = source.path.name if source.path in (root, given) else source.path.relative_to(given).as_posix()
    below = below if below not in ("", ".") else source.path.resolve().name
    return f"{below}/{source.key}" if source.key else below


def look(folder: Path) -> Listing:
    """What is in a folder; hidden folders and links are left out, an unreadable folder is empty."""
    try:
        with os.scandir(folder) as entries:
            kinds = [(e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False)) for e in entries]
    except OSError:
        return Listing(folder)
    files = sorted(name for name, _, is_file in kinds if is_file)
    return Listing(folder, tuple(files), tuple(sorted(n for n, is_dir, _ in kinds if is_dir and n[0] != ".")))


def read(source: Source, hints: Hints | None = None) -> History:
    """A run as its importer reads it, with what its experiment, the table of levels and the user know besides."""
    known = hints or Hints()
    history = told.add(importer(source.format).read(source), source.path)
    known.before(history, source.name)
    add_facts(history)
    known.after(history)
    return history


def _formats() -> Iterator[str]:
    """relab's formats, then those that installed packages offer: looked up only when none of relab's has claimed."""
    yield from FORMATS
    yield from (name for name in _plugins() if name not in FORMATS)


@cache
def importer(name: str) -> ModuleType:
    """The module of a format, imported when it is first asked."""
    return importlib.import_module(FORMATS[name]) if name in FORMATS else _plugins()[name].load()


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def importers() -> dict[str, ModuleType]:
    """Format -> its module, all of them."""
    return {name: importer(name) for name in _formats()}


def known() -> str:
    return ", ".join(importers())
