"""Is a table about runs, not of one? A line for each run, which names its folder: results that somebody gathered."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePosixPath

from relab.formats.read.source import Listing

NAMING = ("path", "run", "run_dir", "run_folder", "run_name", "folder", "dir", "directory", "logdir", "log_dir", "name")


def names_a_folder(listing: Listing, row: Mapping[str, object]) -> bool:
    """Whether a row says in one of its cells which folder beside the table it is about."""
    cells = [value for key, value in row.items() if key.strip().lower() in NAMING and isinstance(value, str)]
    return any(_is_folder(listing, PurePosixPath(cell.strip())) for cell in cells if 0 < len(cell) < 1000)


def _is_folder(listing: Listing, path: PurePosixPath) -> bool:
    inside = not path.is_absolute() and path.parts and ".." not in path.parts and path.parts[0] in listing.folders
    try:
        return bool(inside) and (listing.folder / path).is_dir()
    except (OSError, ValueError):  # too long, or not a name at all
        return False
