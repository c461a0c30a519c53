"""TensorBoard event files of any program: one folder is one run, whatever number of files and writers it has.

Which folders are one run is decided by these rules, in this order:
1. A folder with event files is a run, all of its files together; but for files of several processes that log the
   same at the same time, or from the start again when another had come as far: these are runs of their own.
2. Folders below it belong to it when their name is a time (torch's add_hparams makes them), one of PARTS, or that of
   their only tag with something behind it (add_scalars makes TAG_NAME or TAG/NAME; the tag becomes TAG/NAME).
3. A folder without event files whose sub-folders of PARTS have some is one run (train/ and eval/ of one program).
4. NAME_1, NAME_2, ... (Stable-Baselines3 starts a new one for each call) are runs of their own, unless the steps of
   the next begin right where the one before stopped: then they are one run that was resumed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from relab import logger
from relab.base.documents import Settings
from relab.base.text import plural
from relab.formats.read import (
    cleanrl,
    copies,
    libraries,
    settings_files,
    step_axis,
    table,
    tb_config,
    tb_merge,
    tb_writers,
    tfevents,
)
from relab.formats.read.find import look
from relab.formats.read.source import EVENT_FILES, Listing, Names, Source, problem, put, remark, start
from relab.record.history import History

DEEP = True
PARTS = ("train", "training", "eval", "evaluation", "test", "val", "validation")
TIME_NAME = re.compile(r"^\d{9,11}(\.\d+)?$")
NUMBERED = re.compile(r"^(?P<stem>.+)_(?P<number>\d+)$")
GAP = 1.5  # a continued run begins at most this many of its own first intervals behind the last step

SB3_SIGNS = {"rollout/ep_rew_mean", "rollout/ep_len_mean", "time/fps"}


def sniff(listing: Listing) -> bool:
    if any(EVENT_FILES in name for name in listing.files):
        return True
    parts = [name for name in listing.folders if name in PARTS]
    return any(event_files(listing.folder / name) for name in parts) or bool(_chains(listing))


def sources(listing: Listing) -> list[Source]:
    folder = listing.folder
    own = [folder / name for name in listing.files if EVENT_FILES in name]
    joined = _extras(folder) if own else [folder / name for name in listing.folders if name in PARTS]
    below = [file for place in joined for file in event_files(place)]
    groups = tb_writers.runs(own)
    own_runs = [Source("tensorboard", folder, (*group, *(below if n == 1 else ())), str(n) if len(groups) > 1 else "")
                for n, group in enumerate(groups, 1) if group or below]  # fmt: skip
    chains = [] if own else _chains(listing)
    return own_runs + [Source("tensorboard", folder / chain[0], _files_of(folder, chain)) for chain in chains]


def _extras(folder: Path, depth: int = 3) -> list[Path]:
    """Folders below a run that belong to it; the others are runs of their own."""
    extras, todo = [], [(folder / name, 1) for name in look(folder).folders]
    while todo:
        place, level = todo.pop(0)
        files = event_files(place)
        plain = level == 1 and (place.name in PARTS or TIME_NAME.match(place.name))
        if plain or any(_series(file, folder) for file in files[:1]):
            extras.append(place)
        elif not files and level < depth:
            todo += [(place / name, level + 1) for name in look(place).folders]
    return extras


def _series(file: Path, folder: Path, tags: Iterable[str] | None = None) -> str:
    """NAME where the file lies below its run in TAG_NAME or TAG/NAME, and TAG is the only tag in it; else empty."""
    if tags is None:
        ends = tfevents.ends(file)
        tags = ends.tags if ends else ()
    if len(only := list(tags)) != 1 or not file.is_relative_to(folder):
        return ""
    place = file.parent.relative_to(folder).as_posix()
    starts = [start for start in (only[0].replace("/", "_") + "_", only[0] + "/") if place.startswith(start)]
    return place.removeprefix(starts[0]) if starts else ""


def _files_of(folder: Path, names: list[str]) -> tuple[Path, ...]:
    return tuple(file for name in names for file in event_files(folder / name))


def event_files(folder: Path) -> list[Path]:
    """The event files right in a folder, links left out."""
    if folder.is_symlink():
        return []
    try:
        return sorted(p for p in folder.iterdir() if EVENT_FILES in p.name and p.is_file() and not p.is_symlink())
    except OSError:
        return []


def _chains(listing: Listing) -> list[list[str]]:
    """Numbered folders that are one resumed run, each chain in order."""
    stems: dict[str, list[int]] = {}
    for name in listing.folders:
        if match := NUMBERED.match(name):
            stems.setdefault(match["stem"], []).append(int(match["number"]))
    chains = []
    for stem, numbers in stems.items():
        numbers.sort()
        names = [f"{stem}_{n}" for n in numbers if f"{stem}_{n}" in listing.folders]
        chains += _linked(listing.folder, names) if len(names) > 1 else []
    return chains


def _linked(folder: Path, names: list[str]) -> list[list[str]]:
    ends = {name: [tfevents.ends(file) for file in event_files(folder / name)] for name in names}
    spans = {name: [e for e in file_ends if e is not None] for name, file_ends in ends.items()}
    chains: list[list[str]] = []
    for before, name in itertools.pairwise(names):
        if not spans[before] or not spans[name]:
            continue
        last, first = max(e.last for e in spans[before]), min(spans[name], key=lambda e: e.first)
        if 0 < first.first - last <= GAP * max(first.interval, 1):
            if chains and chains[-1][-1] == before:
                chains[-1].append(name)
            else:
                chains.append([before, name])
    return chains


# ---- Reading


def read(source: Source) -> History:
    history = start(source)
    logged = read_into(history, list(source.files), source.path)
    flat = settings_files.beside(history, source) | logged
    facts = {**library_facts(history, source.path.resolve().name), **cleanrl.name_parts(source.path.resolve().name)}
    known, names = set(logger.known_settings(flat).values()), logger.known_settings(facts)  # what is logged counts more
    facts = {key: value for key, value in facts.items() if key not in flat and names.get(key) not in known}
    settings_files.use(history, source, flat, facts)
    if not history.columns:
        problem(history, source.path, "the event files hold no scalar: a writer was opened, and nothing was logged")
    return history


def read_into(
    history: History, files: list[Path], folder: Path, prefix: str = "", names: Names | None = None
) -> Settings:
    """Add what event files hold to a history: columns, events, problems; returns the settings they tell.

    `names` are those of the tool that is known to have written them.
    """
    parts = []
    for file in _once(history, files):
        events = tfevents.read(file)
        for note in events.notes:
            problem(history, file, note)
        if name := _series(file, folder, events.scalars):
            events.scalars = {f"{tag}/{name}": series for tag, series in events.scalars.items()}
        parts.append((events, prefix + _prefix(file, folder)))
    dialect = libraries.dialect_of(head + tag for events, head in parts for tag in events.scalars)
    again = _drop(parts, dialect.again if dialect is not None else frozenset())
    merged = tb_merge.merge(parts)
    _put_columns(history, merged, dialect, names)
    _say_restarts(history, merged, parts)
    skipped = sorted({tag for events, _ in parts for tag in events.skipped} | again)
    if skipped:
        history.meta["not_read"] = skipped
    return tb_config.settings_in(history, [events for events, _ in parts])


def _once(history: History, files: list[Path]) -> list[Path]:
    kept = copies.distinct(files)
    for file in (file for file in files if file not in kept):
        remark(history, file, "a copy of another file of the run, byte for byte; it was read once")
    return kept


def _drop(parts: list[tuple[tfevents.Events, str]], tags: frozenset[str]) -> set[str]:
    """Leave tags out; returns those that were there."""
    gone = {prefix + tag for events, prefix in parts for tag in events.scalars} & tags
    for events, prefix in parts:
        events.scalars = {tag: series for tag, series in events.scalars.items() if prefix + tag not in gone}
    return gone


def library_facts(history: History, run: str) -> Settings:
    """What the library that logged a history's names says about the run itself."""
    dialect = libraries.dialect_of(history.mapping)
    algo = libraries.algo_of(dialect, run) if dialect is not None else ""
    return {"algo": algo} if algo else {}


def names_of(tags: Iterable[str], dialect: libraries.Dialect | None = None) -> Names:
    """A library's names as it means them: the one that is told, else CleanRL's, and SB3's where it was SB3 that wrote.

    Other tags go by their common names.
    """
    tags = set(tags)
    if dialect is not None:
        return dialect.names
    return {**cleanrl.names_for(tags), **(logger.sb3_names(logger.sb3_algo(tags)) if SB3_SIGNS & tags else {})}


def _prefix(file: Path, folder: Path) -> str:
    """eval/ for the files of a sub-folder of PARTS; nothing for the run's own, or the next of a chain."""
    return f"{file.parent.name}/" if file.parent != folder and file.parent.name in PARTS else ""


def _put_columns(
    history: History, merged: tb_merge.Merged, dialect: libraries.Dialect | None, names: Names | None
) -> None:
    axes = dialect.axes if dialect is not None else tb_merge.axes(merged.tags)
    names = names_of(merged.tags, dialect) if names is None else names
    for tag, part in merged.tags.items():
        put(history, tag, part.steps, part.values, axes[tag], table.translation(tag, part.values, names))
    slow = [tag for tag, axis in axes.items() if axis == "iteration" and dialect is None]
    if slow:
        what = f"{len(slow)} of {len(axes)} tags, `{slow[0]}` first, count another kind of step than the rest"
        last = max(int(merged.tags[tag].steps.max()) for tag in slow)
        most = max(int(part.steps.max()) for part in merged.tags.values())
        remark(history, "events", f"{what} (up to {last} where others reach {most}); taken as iterations")
    _put_clock(history, merged, axes)


def _put_clock(history: History, merged: tb_merge.Merged, axes: dict[str, str]) -> None:
    """Seconds since the start, from the times of the tag with the most points.

    In the order of its steps, which need not be that of its times: by a step, all points up to it were written.
    """
    axis = "env_steps" if any(axes[tag] == "env_steps" for tag in merged.tags) else "iteration"
    main = [part for tag, part in merged.tags.items() if axes[tag] == axis and part.walls.min() > 0]
    if not main or "time/elapsed_s" in history.columns:
        return
    part = max(main, key=lambda p: len(p.steps))
    begin = min(float(p.walls.min()) for p in main)
    clock = np.maximum.accumulate(part.walls) - begin
    put(history, "wall_time", part.steps, clock, axis, {"wall_time": ("time/elapsed_s", 1)})
    history.meta.setdefault("started", tb_config.iso(begin))


def _say_restarts(history: History, merged: tb_merge.Merged, parts: list[tuple[tfevents.Events, str]]) -> None:
    for restart in merged.restarts:
        points = f"{plural(restart.points, 'earlier point')} of {plural(len(restart.tags), 'tag')}"
        remark(history, restart.file, f"steps go back to {restart.step}: {points} superseded by this file")
    if merged.again is not None:
        again = merged.again
        history.meta["steps_again"] = {"step": again.step, "points": again.points, "tags": len(again.tags)}
    if merged.unordered:
        remark(history, "events", f"steps of {plural(merged.unordered, 'tag')} go back within a file; they were sorted")
    step_axis.note(history, merged.strays)
    if merged.negative:
        history.meta[step_axis.DOUBT] = f"{merged.negative} steps of a tag are below 0, so that its points are counted"
    history.events += tb_config.resumes([events for events, _ in parts])
