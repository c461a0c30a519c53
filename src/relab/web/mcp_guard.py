"""What may the server's own process open? Files below its folder, Python's and relab's own, and relab's cache.

Every path of a call is checked where it comes in (mcp_tools.place). This stands behind that: code that looks beside or
above a run, at its parent or its experiment, meets the same wall. An audit hook hears of every file that Python opens
and every folder that it lists; it cannot be taken off again, so only `relab mcp` itself puts it up.
"""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

from relab.base.places import cache_folder

HEARD = ("open", "os.listdir", "os.scandir", "sqlite3.connect")
# What Python asks a machine: cores, memory, random numbers, time zones, libraries.
SYSTEM = ("/proc", "/sys", "/dev/null", "/dev/urandom", "/etc/localtime", "/usr/lib", "/usr/share")


def put_up(root: Path) -> None:
    sys.addaudithook(hook(root))


def hook(root: Path) -> Callable[[str, tuple[Any, ...]], None]:
    """Refuses what lies outside; reading outside is a PermissionError, as if the system forbade it."""
    allowed = tuple(os.path.realpath(path) for path in (root, *own_places()))

    def heard(event: str, args: tuple[Any, ...]) -> None:
        if event in HEARD and args and isinstance(args[0], (str, bytes, os.PathLike)):
            text = os.fsdecode(args[0]).removeprefix("file://").removeprefix("file:").partition("?")[0]
            path = os.path.realpath(text)
            if not any(path == place or path.startswith(place.rstrip(os.sep) + os.sep) for place in allowed):
                raise PermissionError(f"{path} lies outside of {root}, and `relab mcp` reads nothing there")

    return heard


def own_places() -> list[str | Path]:
    """Where Python, the installed packages, relab and its cache lie."""
    installed = [path for name, path in sysconfig.get_paths().items() if name != "data"]
    package = Path(__file__).resolve().parents[1]
    imported = [path for path in sys.path if path and path != os.getcwd()]
    return [*installed, *imported, package, cache_folder(), *SYSTEM]
