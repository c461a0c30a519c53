"""What do all parts agree on? What may reach a terminal, where caches lie, after how long a silent run is dead."""

from __future__ import annotations

import os
from pathlib import Path

STALE_S = 120.0  # a running run renews its heartbeat about every ten seconds


def printable(text: str) -> str:
    """Names and messages come from strangers' folders: no control characters reach the terminal.

    >>> printable("a\\x1b[31mb")
    'a?[31mb'
    """
    return "".join(c if c.isprintable() else "?" for c in text)


def cache_folder() -> Path:
    """relab's folder in the user's cache; whatever is in it can be made again."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "relab"
