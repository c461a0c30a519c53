"""Where do tests find what does not lie beside them?"""

import atexit
import fcntl
import functools
import os
import shutil
import sys
import tempfile
from pathlib import Path

TESTS = Path(__file__).resolve().parent
ROOT = TESTS.parent
FIXTURES = TESTS / "formats" / "read" / "fixtures"  # logs of other tools
SHARED = "TESTS_SHARED_FOLDER"  # the variable with the folder that all processes of a test session have in common


@functools.cache
def histories() -> Path:
    """relab's own runs, sick and healthy: the first process that asks makes them, those that ask meanwhile wait."""
    shared = Path(os.environ.get(SHARED) or _for_this_process())
    made = shared / "histories"
    with open(shared / "histories.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not made.is_dir():
            _complete(shared / "histories.part")
            (shared / "histories.part").rename(made)
    return made


def _complete(folder: Path) -> None:
    sys.path.insert(0, str(TESTS / "health"))
    try:
        import make_histories
    finally:
        sys.path.remove(str(TESTS / "health"))
    shutil.rmtree(folder, ignore_errors=True)  # of a process that died
    make_histories.complete(folder)


def _for_this_process() -> str:
    """A script was called, not a test session."""
    folder = tempfile.mkdtemp(prefix="relab-tests-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
