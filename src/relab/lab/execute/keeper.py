"""How did a program end, if whoever started it was killed before? A small shell around it keeps its exit code.

The shell outlives whoever started it, takes no signal for itself, and says whether it was sent one: a program that ends
with 0 because it was told to has not finished its work.
"""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from relab.base import leash, limits

LONGEST = 100  # bytes of what the shell writes
SCRIPT = (
    'file=$1; shift; told=; trap "told=told" TERM INT HUP; "$@"; code=$?;'
    ' echo $code $told > "$file.tmp" && mv -f "$file.tmp" "$file"; exit $code'
)
KEEPER = ("/bin/sh", "-c", SCRIPT, "relab")


class Kept(NamedTuple):
    """How a program ended."""

    code: int  # as a shell gives it: 137 for signal 9
    stopped: bool  # told to end while it ran


def around(file: Path, words: Sequence[str], tied: bool = False) -> tuple[str, ...]:
    """The words that run a program and keep its exit code; `tied`: it is told to end when the shell is gone."""
    return (*KEEPER, str(file), *(leash.TO_PARENT if tied else ()), *words)


def read(file: Path) -> Kept | None:
    """None while it runs, and where it was killed together with its shell."""
    try:
        code, *stopped = limits.read_text(file, LONGEST).split()
        return Kept(int(code), bool(stopped))
    except (OSError, ValueError):
        return None


def signed(code: int) -> int:
    """Exit codes above 128 are signals, as shells write them.

    >>> signed(137), signed(3)
    (-9, 3)
    """
    return 128 - code if 128 < code < 193 else code


def check_program(word: str, cwd: Path | None = None) -> None:
    """OSError for a program that cannot be started: the shell would only say so in its own words."""
    path = os.path.join(cwd, word) if cwd is not None and os.path.dirname(word) else word
    if shutil.which(path) is None:
        number = errno.EACCES if os.path.exists(path) else errno.ENOENT
        raise OSError(number, os.strerror(number), word)
