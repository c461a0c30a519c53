"""Which runs are at or below a path, whoever wrote them? The one door of every reading command; nothing is written."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType

from relab.base import blame
from relab.base.jsonl import RecordError
from relab.base.masks import mask
from relab.formats.read import common, copies, foreign_state, logged_settings, path_names, step_axis, unread
from relab.formats.read.facts import add_facts
from relab.formats.read.hints import Hints, of_folder
from relab.formats.read.source import Listing, Source
from relab.formats.read.unread import Unread
from relab.record.history import History, mask_heads

DEPTH = 6  # folders below the given one that are looked into
MAX_FOLDERS = 20_000
CODE = ("__pycache__", "node_modules", "site-packages")  # folders of programs, whose tables are no logs
ENVIRONMENT = "pyvenv.cfg"  # in a folder of installed packages
Tell = Callable[[int, int, str], None]  # runs done, of how many, the name of the next
ENTRY_POINTS = "relab.importers"

# The first format that recognises a folder reads it: specific ones before general ones.
FORMATS: dict[str, str] = {
    "relab": "relab.formats.read.relab_folder",
    "sb3": "relab.formats.read.sb3",
    "rllib": "relab.formats.read.rllib",
    "d3rlpy": "relab.formats.read.d3rlpy_folder",
    "spinup": "relab.formats.read.spinup",
    "sample_factory": "relab.formats.read.sample_factory",
    "torchrl": "relab.formats.read.torchrl_csv",
    "acme": "relab.formats.read.acme_logs",
    "optuna": "relab.formats.read.optuna_store",
    "loop": "relab.formats.read.loop_folder",
    "swarm": "relab.formats.read.swarm_folder",
    "probes": "relab.formats.read.probe_folder",
    "pufferlib": "relab.formats.read.pufferlib",
    "wandb": "relab.formats.read.wandb_file",
    "swanlab": "relab.formats.read.swanlab_file",
    "mlflow": "relab.formats.read.mlflow_store",
    "trackio": "relab.formats.read.trackio_store",
    "csv": "relab.formats.read.csv_file",
    "jsonl": "relab.formats.read.jsonl_file",
    "tensorboard": "relab.formats.read.tensorboard",
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
class LoadedRuns:
    """What is at or below a path: runs, runs that could not be read at all with the reason, and what is no run."""

    runs: list[Loaded] = field(default_factory=list)
    broken: list[tuple[Source, str]] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


def load_all(root: str | os.PathLike[str], hints: Hints | None = None, tell: Tell | None = None) -> LoadedRuns:
    """Read every run at or below root; a broken one is kept with its reason, and the others are still read.

    `hints` are what the user knows besides, by default what holds for the folder; `tell` hears how far it is.
    """
    loaded, besides = LoadedRuns(), of_folder(root) if hints is None else hints
    with common.also(besides.mapping):
        sources = list(find(Path(root), loaded.unread))
    for number, source in enumerate(sources):
        if tell is not None:
            tell(number, len(sources), source.name)
        try:
            loaded.runs.append(Loaded(source, read(source, besides)))
        except Exception as error:  # whatever a stranger's folder holds, the other runs are still read
            loaded.broken.append((source, blame.reason(error)))
    if not loaded.runs and not loaded.broken:
        raise nothing(root, loaded.unread)
    return loaded


def nothing(root: str | os.PathLike[str], passed: list[Unread]) -> RecordError:
    """What to say where there is no run: the files that could have been one, else the formats."""
    what = "the file is not" if Path(root).is_file() else "no folder there is"
    formats = (
        "the folder is empty" if _is_empty(Path(root)) else f"{what} of a format that relab reads ({format_names()})"
    )
    return RecordError(f"no runs at or below {root}: {unread.summary(passed, 3) or formats}")


def _is_empty(folder: Path) -> bool:
    try:
        return not any(folder.iterdir())
    except OSError:
        return False


def find(root: Path, passed: list[Unread] | None = None) -> Iterator[Source]:
    """The runs at or below root, to a limited depth; links are not followed, nothing outside is looked at.

    `passed` receives what was not read, with the reason: files that are called like logs, folders beyond the limits,
    copies of a run.
    """
    passed = [] if passed is None else passed
    kept, again = copies.without(_walk(root, passed))
    for copy in again:
        unread.say(passed, copy.source.name, f"a copy of {copy.of.name}, byte for byte; it counts once")
    yield from kept


def _walk(root: Path, passed: list[Unread]) -> Iterator[Source]:
    if root.is_file():
        yield from _in_folder(Listing(root.parent, (root.name,)), root, passed)[0]
        return
    if not root.is_dir():
        what = "is a pipe, a socket or a device" if root.exists() else "does not exist"
        raise RecordError(f"{root} {what}; give a run folder, a file, or a folder of runs")
    todo, visited, taken = [(root, 0)], 0, set[Path]()
    while todo:
        folder, depth = todo.pop(0)
        visited += 1
        listing = look(folder)
        mine, deeper = _in_folder(listing, root, passed)
        yield from mine
        taken |= {file.parent for source in mine for file in source.files}  # a run may own folders below its own
        further = [folder / name for name in listing.folders if folder / name not in taken] if deeper else []
        if further and depth >= DEPTH:
            at = unread.below(further[0], root)
            unread.say(passed, at, f"more than {DEPTH} folders down, which is not looked into; give a folder above it")
        elif further and visited + len(todo) >= MAX_FOLDERS:
            more = f"after {MAX_FOLDERS} folders no further ones are looked into; give a folder further down"
            unread.say(passed, unread.below(further[0], root), more)
        else:
            todo += [(path, depth + 1) for path in further]


def _in_folder(listing: Listing, root: Path, passed: list[Unread]) -> tuple[list[Source], bool]:
    """What claimed() says, and what of the folder was passed over."""
    mine, deeper = claimed(listing, root, passed)
    for gone in unread.of_folder(listing, mine, root):
        unread.say(passed, *gone)
    return mine, deeper


def claimed(listing: Listing, root: Path, passed: list[Unread] | None = None) -> tuple[list[Source], bool]:
    """The runs of a folder under their names, and whether to look below it; loose files may be of several formats."""
    runs: list[Source] = []
    passed = [] if passed is None else passed
    loose = deeper = True
    for name in _formats():
        if not loose:
            break  # and no further importer is loaded: a folder of relab's own needs none of them
        module = importer(name)
        if not runs or getattr(module, "LOOSE", False):
            mine = _claimed_by(name, listing, root, passed)
            if mine:
                deeper = deeper and getattr(module, "DEEP", False)
                loose = getattr(module, "LOOSE", False) and all(s.path != listing.folder for s in mine)
            runs += mine
    return runs, deeper


def _claimed_by(name: str, listing: Listing, root: Path, passed: list[Unread]) -> list[Source]:
    """What one importer finds in a folder; one that breaks on it finds nothing, and the others are still asked."""
    module = importer(name)
    try:
        mine = module.sources(listing) if module.sniff(listing) else []
        return [replace(s, format=name, name=_without_secrets(s.name) if s.name else _name(s, root)) for s in mine]
    except Exception as error:  # a plug-in's, or a file of a shape that nobody foresaw
        why = f"the importer of {name} failed on it: {blame.reason(error)}; the others were still asked"
        unread.say(passed, unread.below(listing.folder, root), why)
        return []


def _name(source: Source, root: Path) -> str:
    base = root if root.is_dir() else root.parent
    below = source.path.name if source.path in (root, base) else source.path.relative_to(base).as_posix()
    below = unread.encoded(below if below not in ("", ".") else source.path.resolve().name)
    return _without_secrets(f"{below}/{source.key}" if source.key else below)


def _without_secrets(name: str) -> str:
    """A run's name goes into pages and tables; two names that differ in a secret alone still differ."""
    shown = mask(name)
    return name if shown == name else f"{shown}~{hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:3]}"


def look(folder: Path) -> Listing:
    """What is in a folder; hidden folders and those of programs are left out, links stand apart, an unreadable folder
    says why it is."""
    try:
        with os.scandir(folder) as entries:
            kinds = [(e.name, e.is_dir(follow_symlinks=False), e.is_file(follow_symlinks=False), e.is_symlink())
                     for e in entries]  # fmt: skip
    except OSError as error:
        return Listing(folder, error=error.strerror or type(error).__name__)
    files = sorted(name for name, _, is_file, _ in kinds if is_file)
    folders = sorted(name for name, is_dir, _, _ in kinds if is_dir and name[0] != "." and name not in CODE)
    folders = [] if ENVIRONMENT in files else folders
    links = sorted(name for name, _, _, is_link in kinds if is_link and name[0] != ".")
    return Listing(folder, tuple(files), tuple(folders), tuple(links))


def read(source: Source, hints: Hints | None = None) -> History:
    """A run as its importer reads it, with what its experiment, the table of levels and the user know besides."""
    besides = hints or Hints()
    with common.also(besides.mapping) as met:
        history = importer(source.format).read(source)
    history.explained, history.files = met, source.files
    path_names.add(history, source)
    foreign_state.add(history, source.path)
    besides.before(history, source.name)
    if not history.trained_by_relab:
        step_axis.clean(history)
        step_axis.doubt(history)
    logged_settings.add(history, source)
    add_facts(history)
    besides.after(history)
    path_names.doubt(history)
    mask_heads(history)
    return history


def _formats() -> Iterator[str]:
    """relab's formats, then those that installed packages offer: looked up only when none of relab's has claimed."""
    yield from FORMATS
    yield from (name for name in _plugins() if name not in FORMATS)


@cache
def importer(name: str) -> ModuleType:
    """The module of a format, imported when it is first asked."""
    return importlib.import_module(FORMATS[name]) if name in FORMATS else blame.load(_plugins()[name])


@cache
def _plugins() -> dict[str, EntryPoint]:
    return {point.name: point for point in entry_points(group=ENTRY_POINTS)}


def importers() -> dict[str, ModuleType]:
    """Format -> its module, all of them."""
    return {name: importer(name) for name in _formats()}


def format_names() -> str:
    return ", ".join(importers())
