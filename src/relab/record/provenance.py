"""Which code, packages and machine made this run? Gathered beside a run's start, and never a reason for it to fail.

>>> pending = start()          # git begins to work in the background
>>> facts = pending.collect()  # a second of imports later; keys: commit, patch, untracked, packages, machine
"""

from __future__ import annotations

import hashlib
import os
import re
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from relab.base import masks, processes

if TYPE_CHECKING:
    from subprocess import Popen
    from threading import Thread

PATCH_CAP = 200_000  # bytes of the uncommitted patch that are kept
MARGIN = 4096  # bytes beyond the cap that are looked at, so that the cut makes no half secret
MAX_UNTRACKED = 100  # names of untracked files that are kept
MAX_BYTES = 50_000_000  # of an answer of git; what is longer is not read to its end
MAX_DRIVERS = 200  # filters and the like that a configuration may name

# The repository may be a stranger's: no program that its configuration names may run, and nothing may be written.
# Empty switches a monitor off in every version of git, where `false` was once taken for a program of that name.
GIT = ("git", "--no-pager", "-c", "core.fsmonitor=", "-c", f"core.hooksPath={os.devnull}",
       "-c", "diff.autoRefreshIndex=false", "-c", "safe.bareRepository=explicit")  # fmt: skip
# A partial clone would fetch what it lacks, by any program.
QUIET = {"GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat", "LC_ALL": "C",
         "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}  # fmt: skip
DRIVER = re.compile(r"(filter|diff)\.(.+)\.(?:clean|smudge|process|required|textconv|command)", re.DOTALL)
OFF = {
    "filter": {"clean": "", "smudge": "", "process": "", "required": "false"},
    "diff": {"textconv": "", "command": ""},
}
COMMANDS = {
    "commit": ("rev-parse", "HEAD"),
    "patch": ("diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv", "--submodule=short",
              "--ignore-submodules=dirty", "--"),  # of a changed submodule git would ask its own configuration
    "untracked": ("ls-files", "--others", "--exclude-standard", "-z"),
}  # fmt: skip


class Patch(TypedDict):
    """What is not committed, in meta.json."""

    text: str  # up to a cap
    bytes: int
    sha256: str
    cut: bool


class Untracked(TypedDict):
    """Files that git does not know, in meta.json."""

    count: int
    files: list[str]  # the first ones


class Machine(TypedDict):
    """What the numbers depend on beside the code, in meta.json."""

    host: str
    system: str
    cpu: str
    cores: int
    memory_mb: int | None
    python: str


class Origin(TypedDict):
    """What a run was made from and on, in meta.json; None for what git could not tell."""

    commit: str | None
    patch: Patch | None
    untracked: Untracked | None
    packages: dict[str, str]
    machine: Machine


@dataclass
class Pending:
    """Git at work in the background: one question after the other, each answer up to a limit."""

    cwd: Path
    answers: dict[str, bytes | None] = field(default_factory=dict)
    process: Popen[bytes] | None = None
    thread: Thread | None = None
    stopped: bool = False

    def collect(self, timeout: float = 5.0) -> Origin:
        """All facts; None for what git could not tell (no repository, no git, too slow)."""
        self._wait(timeout)
        texts, self.answers = self.answers, {}
        commit = (texts.get("commit") or b"").decode(errors="replace").strip() or None
        return {
            "commit": commit,
            "patch": describe_patch(texts.get("patch")) if commit else None,
            "untracked": describe_untracked(texts.get("untracked")),
            "packages": packages(),
            "machine": machine(),
        }

    def _wait(self, timeout: float) -> None:
        thread, self.thread = self.thread, None
        if thread is None:
            return
        thread.join(timeout)
        self.stopped = True
        process = self.process
        if thread.is_alive() and process is not None:
            processes.tell(process.pid, signal.SIGKILL)
            thread.join(timeout)

    def run(self) -> None:
        """Ask git; in its own thread, so that whoever waits for torch does not wait for git."""
        drivers = switched_off(self._ask("config", "--null", "--list", "--name-only"))
        top = self._ask("rev-parse", "--show-toplevel")
        commands = COMMANDS if drivers is not None and top and is_own(top) else {"commit": COMMANDS["commit"]}
        for name, words in commands.items():
            self.answers[name] = self._ask(*words, before=drivers or ())

    def _ask(self, *words: str, before: tuple[str, ...] = ()) -> bytes | None:
        """What git says, up to a limit; None where it fails, or has been stopped."""
        import subprocess

        if self.stopped:
            return None
        try:
            self.process = process = subprocess.Popen(
                [*GIT, *before, *words], cwd=self.cwd, env={**os.environ, **QUIET}, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
            )  # fmt: skip
        except OSError:  # no git here, or no folder
            return None
        with process:
            assert process.stdout is not None
            output = process.stdout.read(MAX_BYTES)
            whole = not process.stdout.read(1)
            if not whole:
                processes.tell(process.pid, signal.SIGKILL)
        self.process = None
        return output if (process.returncode == 0 or not whole) and not self.stopped else None


def start(cwd: str | os.PathLike[str] | None = None) -> Pending:
    """Start asking git about the working folder; returns at once."""
    import threading

    pending = Pending(Path(cwd or os.getcwd()))
    pending.thread = threading.Thread(target=pending.run, name="relab-git", daemon=True)
    pending.thread.start()
    return pending


def switched_off(names: bytes | None) -> tuple[str, ...] | None:
    """Options that switch off each filter and each driver that the configuration names; None where that cannot be done.

    `git diff` cleans a changed file by the filter that .gitattributes asks for, and no option forbids it.

    >>> switched_off(b"core.bare\\0diff.pdf.textconv\\0")
    ('-c', 'diff.pdf.textconv=', '-c', 'diff.pdf.command=')
    """
    keys = (names or b"").decode("utf-8", "surrogateescape").split("\0")
    drivers = {(m[1], m[2]) for key in keys if (m := DRIVER.fullmatch(key))}
    unsafe = any("=" in driver for _, driver in drivers)  # -c ends a name there
    if names is None or len(drivers) > MAX_DRIVERS or unsafe:
        return None
    pairs = [f"{kind}.{name}.{key}={value}" for kind, name in sorted(drivers) for key, value in OFF[kind].items()]
    return tuple(word for pair in pairs for word in ("-c", pair))


def is_own(top: bytes) -> bool:
    """Whether the files that git would read belong to the repository; its configuration may name any other folder."""
    return os.path.lexists(os.path.join(os.fsdecode(top.rstrip(b"\n")), ".git"))


def describe_patch(patch: bytes | None) -> Patch | None:
    """The patch up to a cap, with the size and hash of all that was read; None where git did not answer."""
    if patch is None:
        return None
    patch = without_touched(patch)
    text = masks.mask(patch[: PATCH_CAP + MARGIN].decode(errors="replace"))[:PATCH_CAP]
    return {
        "text": text,
        "bytes": len(patch),
        "sha256": hashlib.sha256(patch).hexdigest(),
        "cut": len(patch) > PATCH_CAP,
    }


def without_touched(patch: bytes) -> bytes:
    """Without the bare headers of files that were touched but not changed (git lists them when it may not refresh)."""
    lines = patch.splitlines(keepends=True)
    head = b"diff --git "
    following = [*lines[1:], head]
    return b"".join(a for a, b in zip(lines, following) if not (a.startswith(head) and b.startswith(head)))


def describe_untracked(names: bytes | None) -> Untracked | None:
    """Files that neither the commit nor the patch holds: their number and the first names."""
    if names is None:
        return None
    files = [name.decode(errors="replace") for name in names.split(b"\0") if name]
    return {"count": len(files), "files": files[:MAX_UNTRACKED]}


def packages() -> dict[str, str]:
    """Installed packages and versions, from the names of their dist-info folders: reading all metadata is slow."""
    versions: dict[str, str] = {}
    for folder in sys.path:
        for name, version in _packages_in(folder or "."):
            versions.setdefault(name, version)  # the first on the path is the one that is imported
    return dict(sorted(versions.items()))


def _packages_in(folder: str) -> list[tuple[str, str]]:
    try:
        entries = os.listdir(folder)
    except OSError:  # zip files and missing folders stand on the path, too
        return []
    pairs = [entry.removesuffix(".dist-info").split("-") for entry in entries if entry.endswith(".dist-info")]
    return [(pair[0].lower().replace("_", "-"), pair[1]) for pair in pairs if len(pair) == 2]


def machine() -> Machine:
    """What the numbers depend on beside the code: processor, cores, memory, system, Python."""
    import platform

    return {
        "host": platform.node(),
        "system": f"{platform.system()} {platform.release()}",
        "cpu": cpu_name() or platform.machine(),
        "cores": usable_cores(),
        "memory_mb": memory_mb(),
        "python": platform.python_version(),
    }


def usable_cores() -> int:
    """Cores this process may use, which a container or batch system can limit."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cpu_name() -> str | None:
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            return next((line.partition(":")[2].strip() for line in file if line.startswith("model name")), None)
    except OSError:  # not Linux
        return None


def memory_mb() -> int | None:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    except (AttributeError, ValueError, OSError):  # Windows, or a system that does not tell
        return None
