"""What may a test see and touch? A home, caches and a working folder of its own; of the repository only what is in git.

`enter` gives this process, and with it all that it starts, an environment without the user's. `watch` notes whatever
is opened, listed, made or removed that belongs to the user: runs and logs beside the sources, the real home. The
fixtures in conftest.py turn a note into a failure of the test that caused it. Processes that a test starts are covered
by their environment alone.
"""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# What of the user's steers relab, git, the trackers that it writes for, or how wide and colourful a terminal is.
STEERING = ("RELAB_", "GIT_", "XDG_", "WANDB_", "MLFLOW_", "TRACKIO_", "SWANLAB_", "HYPOTHESIS_", "MPL", "MATPLOTLIB")
TERMINAL = {"COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "PAGER", "EDITOR", "VISUAL"}
FOLDERS = {"CACHE_HOME": ".cache", "CONFIG_HOME": ".config", "DATA_HOME": ".local/share", "STATE_HOME": ".local/state"}

# Of the repository: what git keeps, and what tools keep for themselves. All else is somebody's runs.
SOURCES = {"src", "tests", "docs", "examples", "benchmarks", ".ci", ".git", ".gitignore", "README.md", "CHANGELOG.md",
           "CONTRIBUTING.md",
           "LICENSE", "Makefile", "pyproject.toml", "constraints.txt", "mkdocs.yml"}  # fmt: skip
CACHES = {"__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache"}
READS = {"open", "os.listdir", "os.scandir", "sqlite3.connect"}
WRITES = {"os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.symlink", "os.link", "os.truncate", "shutil.rmtree"}
COMMON = ("histories", "fixtures")  # made for all tests (where.py)
CHANGING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


# ---- An environment of its own


def memory(place: str = "/dev/shm", least: int = 2**31) -> str:
    """Where temporary files are memory, in which a run of many small files takes a tenth of the time; else nothing.

    It must have room and let programs start; whoever has set TMPDIR has chosen a place.
    """
    if os.environ.get("TMPDIR") or not os.access(place, os.W_OK | os.X_OK):
        return ""
    stats = os.statvfs(place)
    return place if stats.f_bavail * stats.f_frsize >= least and not stats.f_flag & os.ST_NOEXEC else ""


def enter(base: Path) -> None:
    """Let this process and its children find a home, caches and settings below `base`, and none of the user's."""
    variables = environment(os.environ, base)
    for folder in [variables["HOME"], *(variables[f"XDG_{name}"] for name in FOLDERS), variables["XDG_RUNTIME_DIR"]]:
        Path(folder).mkdir(parents=True, exist_ok=True)
    os.environ.clear()
    os.environ.update(variables)


def environment(variables: Mapping[str, str], base: Path) -> dict[str, str]:
    """The variables that stay, and those that lead to `base`."""
    home = base / "home"
    kept = {name: value for name, value in variables.items() if not name.startswith(STEERING) and name not in TERMINAL}
    own = {"HOME": home, "XDG_RUNTIME_DIR": base / "runtime", "HYPOTHESIS_STORAGE_DIRECTORY": base / "hypothesis"}
    own |= {f"XDG_{name}": home / place for name, place in FOLDERS.items()}
    own |= {"GIT_CONFIG_GLOBAL": Path(os.devnull), "GIT_CONFIG_SYSTEM": Path(os.devnull)}
    if site.ENABLE_USER_SITE:  # packages that are installed for the user alone are found by way of the home
        own["PYTHONUSERBASE"] = Path(site.getuserbase())
    return kept | {name: str(place) for name, place in own.items()}


# ---- What is touched all the same


@dataclass
class Watch:
    """Notes of what was touched that is not for tests."""

    repo: Path
    home: Path
    free: tuple[str, ...] = ()  # folders that may lie in the home: Python, packages, temporary files, the sources
    common: str = ""  # a folder of all processes that run tests
    notes: list[str] = field(default_factory=list)
    testing: bool = False  # before that pytest itself starts processes where it was called

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and self.testing:
            self._child(*arguments[2:4])
        elif event in READS or event in WRITES:
            changes = event in WRITES or (event == "open" and bool((arguments[2] or 0) & CHANGING))
            for place in arguments[: 2 if event == "os.rename" else 1]:
                self._place(event, place, changes)

    def _place(self, event: str, place: Any, changes: bool) -> None:
        path = _absolute(place)
        if path and (why := self.objection(path, changes)):
            self.notes.append(f"{event} of {path}: {why}")

    def _child(self, folder: Any, variables: Any) -> None:
        """A process that finds neither this home nor another working folder sees all that is the user's."""
        if variables is not None and dict(variables).get(_like("HOME", variables)) in (None, str(self.home)):
            self.notes.append("a process was started without HOME: pass {**os.environ, ...} on")
        if _absolute(folder or ".") == str(self.repo):
            self.notes.append("a process was started in the repository, beside the user's runs: give it cwd=tmp_path")

    def objection(self, path: str, changes: bool) -> str:
        """Why a test must not touch this; empty where it may."""
        if _below(path, str(self.repo)):
            return self._of_repo(Path(path).relative_to(self.repo).parts, changes)
        if changes and self.common and path.startswith(tuple(f"{self.common}/{name}/" for name in COMMON)):
            return "other tests read it; copy what you change"
        if _below(path, str(self.home)) and not any(_below(path, place) for place in self.free):
            return "it is in the user's home"
        return ""

    def _of_repo(self, parts: tuple[str, ...], changes: bool) -> str:
        if not parts or CACHES & set(parts) or parts[0].startswith(".venv"):
            return ""
        if parts[0] not in SOURCES:
            return "it is the user's, not the repository's; tests work below tmp_path"
        return "tests leave the repository as it is; write below tmp_path" if changes and parts[0] != ".git" else ""

    def take(self) -> list[str]:
        """The notes so far, each once; they are forgotten."""
        notes, self.notes = list(dict.fromkeys(self.notes)), []
        return notes


def watch(repo: Path, home: Path, free: Iterable[str | os.PathLike[str]], common: str) -> Watch:
    """Begin to take notes; Python has no way to end it."""
    python = [sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(os.path.isabs, sys.path)]
    guard = Watch(repo, home, tuple(os.fspath(place) for place in [*python, *free] if os.fspath(place)), common)
    sys.addaudithook(guard)
    return guard


def _absolute(place: Any) -> str:
    if not isinstance(place, (str, bytes, os.PathLike)):
        return ""  # a number of an open file
    text = os.fsdecode(place)
    return "" if not text or text == ":memory:" or "\0" in text else os.path.abspath(text.removeprefix("file:"))


def _below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _like(name: str, variables: Mapping[Any, Any]) -> Any:
    return os.fsencode(name) if os.fsencode(name) in variables else name


# ---- What is left behind


def files(repo: Path) -> set[str]:
    """Every file and empty folder of the repository, ignored ones too, without git's own, caches and venvs."""
    paths = set()
    for here, folders, names in os.walk(repo):
        folders[:] = [name for name in folders if name not in CACHES | {".git"} and not name.startswith(".venv")]
        paths |= {os.path.join(here, name) for name in names or ([] if folders else ["."])}
    return {os.path.relpath(path, repo) for path in paths}


def left_behind(before: set[str] | None, repo: Path) -> list[str]:
    """What is there now and was not before."""
    return [] if before is None else sorted(files(repo) - before)
