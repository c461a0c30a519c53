"""Which code, packages and machine made this run? Gathered beside a run's start, and never a reason for it to fail.

>>> pending = start()          # git begins to work in the background
>>> facts = pending.collect()  # a second of imports later; keys: commit, patch, untracked, packages, machine
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from relab import masks

PATCH_CAP = 200_000  # bytes of the uncommitted patch that are kept
MARGIN = 4096  # bytes beyond the cap that are looked at, so that the cut makes no half secret
MAX_UNTRACKED = 100  # names of untracked files that are kept
# Nothing in the repository's configuration may run a program, and nothing may be written.
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "diff.autoRefreshIndex=false")
COMMANDS = {
    "commit": ("rev-parse", "HEAD"),
    "patch": ("diff", "HEAD", "--no-color", "--no-ext-diff", "--no-textconv"),
    "untracked": ("ls-files", "--others", "--exclude-standard", "-z"),
}


@dataclass
class Pending:
    """Git commands under way, writing to temporary files, so that none can block on a full pipe."""

    cwd: Path
    running: dict[str, tuple[Any, IO[bytes]]] = field(default_factory=dict)

    def collect(self, timeout: float = 5.0) -> dict[str, Any]:
        """All facts; None for what git could not tell (no repository, no git, too slow)."""
        texts = {name: _finish(process, file, timeout) for name, (process, file) in self.running.items()}
        self.running = {}
        commit = (texts.get("commit") or b"").decode().strip() or None
        return {
            "commit": commit,
            "patch": describe_patch(texts.get("patch")) if commit else None,
            "untracked": describe_untracked(texts.get("untracked")),
            "packages": packages(),
            "machine": machine(),
        }


def start(cwd: str | os.PathLike[str] | None = None) -> Pending:
    """Start asking git about the working folder; returns at once."""
    import subprocess

    pending = Pending(Path(cwd or os.getcwd()))
    env = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    for name, words in COMMANDS.items():
        file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by collect
        try:
            process = subprocess.Popen(
                [*GIT, *words],
                cwd=pending.cwd,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.DEVNULL,
            )
        except OSError:  # no git here
            file.close()
            continue
        pending.running[name] = (process, file)
    return pending


def _finish(process: Any, file: IO[bytes], timeout: float) -> bytes | None:
    import subprocess

    with file:
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            return None
        file.seek(0)
        return file.read() if code == 0 else None


def describe_patch(patch: bytes | None) -> dict[str, Any] | None:
    """The patch up to a cap, with the size and hash of all of it; None where git did not answer."""
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


def describe_untracked(names: bytes | None) -> dict[str, Any] | None:
    """Files that neither the commit nor the patch holds: their number and the first names."""
    if names is None:
        return None
    found = [name.decode(errors="replace") for name in names.split(b"\0") if name]
    return {"count": len(found), "files": found[:MAX_UNTRACKED]}


def packages() -> dict[str, str]:
    """Installed packages and versions, from the names of their dist-info folders: reading all metadata is slow."""
    found: dict[str, str] = {}
    for folder in sys.path:
        for name, version in _packages_in(folder or "."):
            found.setdefault(name, version)  # the first on the path is the one that is imported
    return dict(sorted(found.items()))


def _packages_in(folder: str) -> list[tuple[str, str]]:
    try:
        entries = os.listdir(folder)
    except OSError:  # zip files and missing folders stand on the path, too
        return []
    pairs = [entry.removesuffix(".dist-info").split("-") for entry in entries if entry.endswith(".dist-info")]
    return [(pair[0].lower().replace("_", "-"), pair[1]) for pair in pairs if len(pair) == 2]


def machine() -> dict[str, Any]:
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
