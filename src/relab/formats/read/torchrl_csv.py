"""TorchRL's CSVLogger: NAME/scalars/METRIC.csv without a header (step,value), groups as folders, texts/hparams0.txt.

The steps are whatever the program counted; TorchRL's own examples count collected frames. Its names are in
libraries.py. Videos and other texts are not read.
"""

from __future__ import annotations

from pathlib import Path

from relab.base.documents import Settings
from relab.base.jsonl import RecordError, inside, read_start
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.config.yaml_io import parse_yaml
from relab.formats.read import bare_csv, libraries, settings_files, table
from relab.formats.read.find import look
from relab.formats.read.source import Listing, Source, problem, put, start
from relab.record.history import History

SCALARS, HPARAMS = "scalars", "texts/hparams0.txt"
DEPTH, MOST = 3, 5000  # groups inside of each other; files of a run
WIDTH = 2  # step, value
MAX_BYTES = 4_000_000


def sniff(listing: Listing) -> bool:
    return SCALARS in listing.folders and bool(_files(listing.folder / SCALARS, most=1))


def _files(folder: Path, most: int = MOST) -> list[Path]:
    files: list[Path] = []
    todo = [(folder, 0)]
    while todo and len(files) < most:
        place, depth = todo.pop(0)
        listing = look(place)
        names = [name for name in listing.ending(".csv") if bare_csv.is_bare(listing.start_of(name, 200), WIDTH)]
        files += [place / name for name in names]
        todo += [(place / name, depth + 1) for name in listing.folders if depth < DEPTH]
    return files[:most]


def sources(listing: Listing) -> list[Source]:
    return [Source("torchrl", listing.folder, tuple(_files(listing.folder / SCALARS)))]


def read(source: Source) -> History:
    history = start(source)
    place = source.path / SCALARS
    files = {path.relative_to(place).with_suffix("").as_posix(): path for path in source.files}
    dialect = libraries.dialect_of(files)
    for name, path in files.items():
        points = bare_csv.read(history, path, WIDTH)
        names = table.translation(name, points.values, dialect.names if dialect is not None else None)
        put(
            history,
            name,
            points.steps,
            points.values,
            dialect.axes[name] if dialect is not None else "env_steps",
            names,
        )
    settings_files.use(history, source, _hparams(history, source))
    return history


def _hparams(history: History, source: Source) -> Settings:
    """A line `key: value` for each setting, a group's value as Python prints it, which YAML reads as well."""
    try:
        path = inside(source.folder, HPARAMS)
        return flatten(parse_yaml(read_start(path, MAX_BYTES).decode(), HPARAMS)) if path.is_file() else {}
    except (RecordError, ConfigError, OSError, UnicodeDecodeError, RecursionError) as error:
        problem(history, HPARAMS, str(error))
        return {}
