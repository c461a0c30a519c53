"""How does a command become an entry? Checked when it is added, not when its turn comes in the middle of the night."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from relab.base import processes
from relab.config.base import require
from relab.lab.execute.entry import Entry
from relab.lab.execute.slots import Slots, cores, machine_mb
from relab.record import names


def program(words: Sequence[str], needs_cores: int = 1, memory_mb: float | None = None) -> Entry:
    """Any program, as it would be called here."""
    return checked(Entry(tuple(words), False, os.getcwd(), cores=needs_cores, memory_mb=memory_mb))


def relab(
    words: Sequence[str],
    run: Path | None = None,
    key: str | None = None,
    needs_cores: int = 1,
    memory_mb: float | None = None,
) -> Entry:
    """A command of relab; `run` is the folder that a training makes, by which it is resumed."""
    where = None if run is None else os.path.abspath(run)
    return checked(Entry(tuple(words), True, os.getcwd(), where, key, {}, needs_cores, memory_mb))


def checked(entry: Entry) -> Entry:
    require(entry.cores >= 1, f"`--cores` must be at least 1, but is {entry.cores}")
    mb = entry.memory_mb
    require(mb is None or mb > 0, f"`--memory` must be a number of MB above 0, but is {mb}")
    return replace(entry, by=processes.myself())


def check_size(entry: Entry) -> None:
    """What this machine could never run is an error at once."""
    Slots(cores(), machine_mb()).check(entry.needs, "it")


def new_run() -> str:
    """A name for a run that is yet to be: date-adjective-animal and a bit of its id, since nobody holds the name."""
    id_ = names.new_id()
    return f"{names.name_for(id_, datetime.date.today())}-{id_[:4]}"
