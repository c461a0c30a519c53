"""Where do tests find what does not lie beside them?"""

import atexit
import fcntl
import functools
import importlib
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
WRITTEN = 1_767_225_600  # seconds since 1970: when the logs were written, for all that the tests know
SHARED = "TESTS_SHARED_FOLDER"  # the variable with the folder that all processes of a test session have in common


@functools.cache
def histories() -> Path:
    """relab's own runs, sick and healthy."""
    return _made("histories", "health", "make_histories")


@functools.cache
def fixtures() -> Path:
    """Logs of other tools."""
    return _made("fixtures", "formats/read", "make_folder_fixtures")


def _made(name: str, place: str, module: str) -> Path:
    """What git holds of them and what follows; the first process that asks makes it, those that ask meanwhile wait."""
    shared = Path(os.environ.get(SHARED) or _for_this_process())
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / name).is_dir():
            shutil.rmtree(shared / f"{name}.part", ignore_errors=True)  # of a process that died
            _imported(TESTS / place, module).complete(shared / f"{name}.part")
            _age(shared / f"{name}.part")
            (shared / f"{name}.part").rename(shared / name)
    return shared / name


def _age(folder: Path) -> None:
    """A log that was written just now may still grow, and so rules wait; a fresh clone is not to change findings."""
    for path in [*folder.rglob("*"), folder]:
        os.utime(path, (WRITTEN, WRITTEN))


def _imported(place: Path, module: str) -> Any:
    sys.path.insert(0, str(place))
    try:
        return importlib.import_module(module)
    finally:
        sys.path.remove(str(place))


@functools.cache
def _for_this_process() -> str:
    """A script was called, not a test session."""
    folder = tempfile.mkdtemp(prefix="relab-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
