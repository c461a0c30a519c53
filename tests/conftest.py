"""Shared by all tests: nothing of the user's is read or written, and nothing is left behind (apart.py says how)."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest
from hypothesis.internal.conjecture import providers

import apart
import kernels
from where import ROOT, SHARED

REPO = ROOT
BASE, WATCH, BEFORE = pytest.StashKey[Path](), pytest.StashKey[apart.Watch](), pytest.StashKey[set[str]]()
COMMON = pytest.StashKey[Path]()

# `make test` draws the same examples each time, so that it never fails by chance; `make test-all` searches on.
hypothesis.settings.register_profile("same", derandomize=True, database=None)
hypothesis.settings.register_profile("search", derandomize=False, database=None, print_blob=True)
hypothesis.settings.load_profile("same")

# Hypothesis would read the constants of all modules that are loaded, seconds in each process, and draw from them: then
# the examples depended on what was imported before.
providers._get_local_constants = lambda: providers._local_constants  # type: ignore[assignment]

# Tests keep hundreds of thousands of objects (torch, Numba, rules, parsed sources); looking through them all each time
# that a few more were made takes an eighth of the suite's time.
gc.set_threshold(100_000, 20, 100)

os.environ.setdefault("MUJOCO_GL", "off")  # looking for OpenGL takes seconds; the test about it looks itself

if "PYTEST_XDIST_WORKER" not in os.environ:
    for index in kernels.stale(REPO / "src" / "relab"):
        index.unlink(missing_ok=True)  # compiled anew by whoever calls it


def heed_signals() -> None:
    """A session that was started by nohup, or in the background, ignores signals; what it tests must not."""
    for number, heed in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) == signal.SIG_IGN:
            with contextlib.suppress(ValueError):  # not the main thread
                signal.signal(number, heed)


def pytest_configure(config: pytest.Config) -> None:
    heed_signals()
    called = not hasattr(config, "workerinput")  # by the user; a variable would reach sessions inside of tests too
    if called:
        if place := apart.memory():
            os.environ["TMPDIR"] = tempfile.tempdir = place
        config.stash[BEFORE] = apart.files(REPO)
        config.stash[COMMON] = Path(tempfile.mkdtemp(prefix="relab-tests-"))
        os.environ[SHARED] = str(config.stash[COMMON])  # where.py; processes that run tests find it
    if called and config.getoption("dist", "no") != "no":
        return  # other processes run the tests, and must start as this one did
    home, temporary = Path.home(), tempfile.gettempdir()
    config.stash[BASE] = Path(tempfile.mkdtemp(prefix="relab-tests-"))
    free = [temporary, REPO, os.environ.get("NUMBA_CACHE_DIR", ""), os.environ.get("PYTHONPYCACHEPREFIX", "")]
    apart.enter(config.stash[BASE])
    config.stash[WATCH] = apart.watch(REPO, home, free, os.environ[SHARED])


def pytest_unconfigure(config: pytest.Config) -> None:
    for key in (BASE, COMMON):
        if folder := config.stash.get(key, None):
            shutil.rmtree(folder, ignore_errors=True)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Said by the process that was called, when all others are done."""
    left = apart.left_behind(session.config.stash.get(BEFORE, None), REPO)
    if left:
        print(f"\nthe tests left {len(left)} files in the repository, but must write below tmp_path:")
        print(*left[:20], sep="\n")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of a test marked `some(n)`, n of its cases, evenly spread, run in `make test`; the others are slow."""
    families: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("some") and not item.get_closest_marker("slow"):
            families.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in families.values():
        (count,) = cases[0].get_closest_marker("some").args  # type: ignore[union-attr]
        usual = {round(i * (len(cases) - 1) / max(1, count - 1)) for i in range(count)}
        for i, case in enumerate(cases):
            if i not in usual:
                case.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True, scope="session")
def working_folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """An empty folder to stand in while modules set up what their tests share; it stays empty."""
    here, stash = Path.cwd(), request.config.stash
    folder = stash[BASE] / "work"
    folder.mkdir()
    os.chdir(folder)
    stash[WATCH].testing = True
    yield folder
    stash[WATCH].testing = False
    os.chdir(here)
    left, touched = sorted(path.name for path in folder.iterdir()), stash[WATCH].take()
    assert not left, f"a fixture wrote into the working folder: {left}"
    assert not touched, "touched beside the tests (by an import or a fixture):\n" + "\n".join(touched)


@pytest.fixture(autouse=True)
def apart_from_the_user(request: pytest.FixtureRequest, working_folder: Path) -> Iterator[None]:
    """Each test stands in a new, empty folder; touching what is the user's fails it."""
    stash, folder = request.config.stash, tempfile.mkdtemp(dir=request.config.stash[BASE])
    os.chdir(folder)
    yield
    os.chdir(working_folder)
    shutil.rmtree(folder, ignore_errors=True)
    touched = stash[WATCH].take()
    assert not touched, "\n".join(touched)
