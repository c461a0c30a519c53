"""What do all parts agree on? What may reach a terminal, where caches lie, after how long a silent run is dead."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable
from pathlib import Path

from relab.base.numbers import is_number

STALE_S = 120.0  # a running run renews its heartbeat about every ten seconds
GROWING_S = 30.0  # a log that says nothing of its end is taken for growing this long: copies are new files as well
WHOLE = 0.9  # of the planned steps: a log may end a few rows before the run did


def printable(text: str) -> str:
    """Names and messages come from strangers' folders: no control characters reach the terminal.

    >>> printable("a\\x1b[31mb")
    'a?[31mb'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def run_state(status: str, own: bool, quiet_s: Callable[[], float]) -> str:
    """finished, interrupted or failed as recorded; a run that says it is running is stale when its heart stopped.

    A foreign run that says nothing is running while its files change, else ended (in whatever way). `quiet_s` tells for
    how long there was no sign of life; it is asked only where that decides.
    """
    if status != "running" and (status or own):
        return status or "unknown"
    alive = quiet_s() <= (STALE_S if status == "running" else GROWING_S)
    return "running" if alive else "stale" if status == "running" else "ended"


def cut_short(steps: int | None, planned: object) -> bool:
    """Whether a run ended well before its planned steps; False where nobody says how many these are."""
    known = is_number(planned) and 0 < planned < math.inf
    return known and steps is not None and steps < WHOLE * planned  # type: ignore[operator]


def true_status(status: str, ours: bool, steps: int | None, planned: object) -> str:
    """A status as a record has it, but for "finished" of a program that relab did not train with (`ours`) and that
    stopped on its way: it ends without an error too.

    >>> true_status("finished", False, 10, 100), true_status("finished", True, 10, 100)
    ('ended', 'finished')
    """
    return "ended" if status == "finished" and not ours and cut_short(steps, planned) else status


def address(folder: Path) -> str:
    """What a command finds a run by: its name, where it lies in runs/, else its folder."""
    here, folder = Path.cwd(), folder.absolute()
    if folder.parent == here / "runs":
        return shlex.quote(folder.name)
    return shlex.quote(str(folder.relative_to(here) if folder.is_relative_to(here) else folder))


def cache_folder() -> Path:
    """relab's folder in the user's cache; whatever is in it can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relab"


def state_folder() -> Path:
    """relab's folder in the user's state: what is in it cannot be made again."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "relab"
