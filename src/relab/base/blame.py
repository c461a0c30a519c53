"""Whose fault is an error that nobody foresaw? relab's, or of a plug-in whose code the error passed through."""

from __future__ import annotations

import sys
import traceback
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from relab.base.errors import UserError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FAULT = 70  # the exit code of sysexits.h for an internal error
PLUGINS: dict[str, str] = {}  # top-level package -> the name under which its code was loaded
HERE = Path(__file__).parents[1]


def load(point: EntryPoint) -> Any:
    """What an installed package offers; the package is known as a plug-in from then on."""
    note(point.name, point.value)
    return point.load()


def note(name: str, target: str) -> None:
    """Code of "package.module:attr" is run as the plug-in `name`."""
    top = target.partition(":")[0].partition(".")[0]
    if top not in ("", "relab"):
        PLUGINS.setdefault(top, name)


def reason(error: BaseException) -> str:
    """Why one of many things could not be done while the others go on: kind and message, and whose fault it is."""
    said = f"{type(error).__name__}: {error}"
    return said if isinstance(error, (UserError, OSError, MemoryError)) else f"{said} (a fault of {culprit(error)})"


def tell(error: BaseException) -> int:
    """Print the traceback and whom to send it to; the exit code."""
    traceback.print_exception(error)
    print(f"relab: this is a fault of {culprit(error)}: please report it with the lines above", file=sys.stderr)
    return FAULT


def of_plugin(error: BaseException) -> bool:
    """Whether an error came out of a plug-in's own code: an environment that lacks a file, say."""
    passed = frames(error)
    return bool(passed) and any(_top(frame) in PLUGINS for frame, _ in passed)


def culprit(error: BaseException) -> str:
    """`relab` with the last of its lines, or the plug-in with the last of its own."""
    if whose := plugin(error):
        return f"{whose} or of relab"
    ours = [(frame, line) for frame, line in frames(error) if _top(frame) == "relab"]
    return f"relab ({_path(ours[-1][0])}:{ours[-1][1]})" if ours else "relab"


def plugin(error: BaseException) -> str:
    """The plug-in whose code an error passed through, with the last of its lines; empty where there is none."""
    foreign = [(frame, line) for frame, line in frames(error) if _top(frame) in PLUGINS]
    if not foreign:
        return ""
    frame, line = foreign[-1]
    return f"the plug-in {PLUGINS[_top(frame)]} ({_path(frame)}:{line})"


def frames(error: BaseException) -> list[tuple[FrameType, int]]:
    """The frames an error passed through, with their lines, outermost first; those of its cause are the innermost."""
    mine = list(traceback.walk_tb(error.__traceback__))
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return mine + (frames(cause) if cause is not None else [])


def _top(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _path(frame: FrameType) -> str:
    """As short as one finds it: below relab's own folder, else as Python knows it."""
    path = Path(frame.f_code.co_filename)
    return f"relab/{path.relative_to(HERE).as_posix()}" if path.is_relative_to(HERE) else str(path)
