"""Acme's CSV loggers: logs/LABEL/logs.csv, a file for each part of one run (train or actor, evaluator, learner).

Counts are shared: a row of any part says how many steps the actors and how many updates the learner had made, so that
all parts stand over `actor_steps`. What a label that begins with `eval` logs is an evaluation.
"""

from __future__ import annotations

from pathlib import Path

from relab.formats.read import csv_file, settings_files, table
from relab.formats.read.source import Listing, Names, Source, start
from relab.record.history import History

FILE = "logs.csv"
SIGNS = ("actor_steps", "learner_steps")
HEAD_BYTES = 1 << 14
ACTOR: Names = {"policy_loss": ("policy/actor_loss", 1.0)}  # beside a critic's loss: minus Q


def sniff(listing: Listing) -> bool:
    return bool(_files(listing))


def _files(listing: Listing) -> list[Path]:
    """The logs of the parts, where one of them has Acme's counts."""
    paths = [listing.folder / name / FILE for name in listing.folders]
    logs = [path for path in paths if path.is_file() and not path.is_symlink()]
    return logs if any(sign in _header(path) for path in logs for sign in SIGNS) else []


def _header(path: Path) -> list[str]:
    return csv_file.header_of(Listing(path.parent, (FILE,)).start_of(FILE, HEAD_BYTES))


def sources(listing: Listing) -> list[Source]:
    return [Source("acme", listing.folder, tuple(_files(listing)))]


def read(source: Source) -> History:
    history = start(source)
    for path in source.files:
        cells = csv_file.load(path)
        prefix = "eval/" if path.parent.name.startswith("eval") else ""
        table.fill(history, cells, ACTOR if "critic_loss" in cells.names else None, prefix)
    settings_files.use(history, source, settings_files.beside(history, source))
    return history
