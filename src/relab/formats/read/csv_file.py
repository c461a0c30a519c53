"""Plain CSV files: a header, a row per step. One file is one run, or several that a `seed` or `run` column tells apart.

Files of one folder that are named for their part in a run (train.csv and eval.csv) are read as one run together.
"""

from __future__ import annotations

from pathlib import Path

from relab.formats.read import common, own_tables, tabular
from relab.formats.read.csv_cells import HEAD_BYTES, delimiter, header_of, is_number, parse, text_of
from relab.formats.read.run_lists import names_a_folder
from relab.formats.read.source import Listing, Source
from relab.formats.read.table import Table
from relab.record.history import History

LOOSE = True
DEEP = True  # a summary in the folder above must not hide the runs below
ENDS = (".csv", ".tsv")


def sniff(listing: Listing) -> bool:
    return any(is_log(listing, name) for name in listing.ending(*ENDS))


def is_log(listing: Listing, name: str) -> bool:
    """A header with a step or a metric in it; above numbers, any header will do for a file that is there alone."""
    if own_tables.says_again(listing, name):
        return False
    if own_tables.is_own(listing.folder / name):  # also of a run without a number
        return True
    begin = listing.start_of(name, HEAD_BYTES)
    header = header_of(begin)
    names_metrics = any(common.step_axis(cell) or common.meaning(cell) for cell in header)
    if not header or not (names_metrics or (listing.files == (name,) and _has_numbers(begin))):
        return False
    return not lists_runs(listing, name)


def lists_runs(listing: Listing, name: str) -> bool:
    """Whether its lines are about runs beside it, one each."""
    begin = listing.start_of(name, HEAD_BYTES)
    lines = [line for line in text_of(begin).splitlines() if line.strip() and line[0] != "#"][:2]
    if not listing.folders or len(lines) < 2:
        return False
    cells = [cell.strip().strip('"') for cell in lines[1].split(delimiter(lines[0]))]
    return names_a_folder(listing, dict(zip(header_of(begin), cells)))


def _has_numbers(data: bytes) -> bool:
    lines = [line for line in text_of(data).splitlines() if line.strip() and line[0] != "#"]
    return any(is_number(cell.strip()) for line in lines[1:20] for cell in line.split(delimiter(lines[0])))


# ---- Runs


def sources(listing: Listing) -> list[Source]:
    return tabular.runs(listing, [name for name in listing.ending(*ENDS) if is_log(listing, name)], load)


def read(source: Source) -> History:
    if len(source.files) == 1 and own_tables.is_own(source.files[0]):
        return own_tables.read(source, load(source.files[0]))
    return tabular.read(source, load)


def load(path: Path) -> Table:
    return tabular.load(path, parse)
