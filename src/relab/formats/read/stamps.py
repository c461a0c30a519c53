"""Has a run of another tool changed since it was last read? The names, sizes and times of all that is read for it.

That is more than its logs: a model, settings or an experiment's state may come after the last row. Nothing is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from relab.formats.read import foreign_state, settings_files
from relab.formats.read.source import Source

Stamp = tuple[tuple[str, int, int], ...]  # path, size and time of each file of a run
SETTINGS = (".json", ".yaml", ".yml")  # of folders right below a run's: RL-Zoo, Hydra and others keep theirs there
BESIDE = (*SETTINGS, ".zip")  # of a log that is a run by itself: NAME.csv, NAME.json; NAME.monitor.csv, NAME.zip


def stamp_of(source: Source) -> Stamp:
    """Differs when a file that tells of the run was added, changed or deleted; links are not followed."""
    stamps = []
    for file in _files(source):
        with suppress(OSError):  # not there, or gone meanwhile
            stat = os.stat(file, follow_symlinks=False)
            stamps.append((file, stat.st_size, stat.st_mtime_ns))
    return tuple(stamps)


def _files(source: Source) -> list[str]:
    """Paths of what an importer may open for a run; some need not exist."""
    logs = [os.fspath(file) for file in source.files]
    if source.format == "relab":  # what grows lies right in its folder
        return sorted({*logs, *_of_folder(source.path)})
    beside = _of_folder(source.path, below=SETTINGS) if source.path.is_dir() else _of_log(source.path)
    state = foreign_state.place_of(source.path)
    return sorted({*logs, *beside, *([os.fspath(state)] if state else [])})


def _of_folder(folder: Path, below: tuple[str, ...] = ()) -> Iterator[str]:
    """Files of a folder, and those with such endings in the folders right below."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_file(follow_symlinks=False):
                yield entry.path
            elif below and entry.is_dir(follow_symlinks=False):
                yield from (path for path in _of_folder(Path(entry.path)) if path.endswith(below))


def _of_log(log: Path) -> Iterator[str]:
    """Files that may lie beside a log among others, by their names alone: thousands of logs may share the folder."""
    stem = log.stem.removesuffix(".monitor")
    for name in (*(stem + end for end in BESIDE), *settings_files.FILES):
        yield os.path.join(log.parent, name)
