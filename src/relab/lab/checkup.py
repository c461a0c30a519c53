"""Is everything here as relab needs it? Install, machine, folders and runs, a line each, with its remedy.

Light and quick: packages are looked up, not imported; torch is asked in a process of its own, and only by --deep.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import relab
from relab.base import blame, processes
from relab.base.documents import Document
from relab.base.places import STALE_S, cache_folder
from relab.record.provenance import cpu_name, memory_mb, usable_cores
from relab.runs import glance

OK, WARN, BROKEN = "ok", "warn", "broken"
USED_FOR = {"torch": "networks", "numba": "fast environments", "llvmlite": "fast environments",
            "gymnasium": "env=gym:...", "safetensors": "checkpoints", "imageio-ffmpeg": "relab video, mp4"}  # fmt: skip
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
LOOK_S = 0.6  # seconds spent on looking for runs


@dataclass(frozen=True)
class Line:
    """One thing that was looked at."""

    group: str
    name: str
    level: str
    state: str  # how it stands, in words; `found` for programs
    remedy: str = ""

    def to_json(self) -> dict[str, str]:
        names = {"group": self.group, "name": self.name, "level": self.level}
        return names | {"found": self.state, "remedy": self.remedy}


PACKAGE = Path(relab.__file__).parent  # all of it: kernels lie beside the code that holds them


def checkup(path: Path, deep: bool = False) -> list[Line]:
    """All checks; one that breaks is a line too."""
    checks: list[Callable[[], Iterator[Line]]] = [install, extras, machine, threads, gpu, kernels, clock]
    checks += [lambda: places(path), lambda: runs_here(path), left_behind, engines_here]
    checks += [torch_works] if deep else []
    lines: list[Line] = []
    for check in checks:
        try:
            lines += check()
        except Exception as error:  # a strange system must not hide the other lines
            name = getattr(check, "__name__", "check").strip("<>")
            lines.append(Line("check", name, WARN, f"could not be done: {blame.reason(error)}"))
    return lines


def engines_here() -> Iterator[Line]:
    """Which of the engines of --on answer; one that is not installed is no fault."""
    from relab.lab.execute.engines import offers

    for offer in offers():
        silent = offer.there and bool(offer.remedy)
        yield Line("engines", offer.engine, WARN if silent else OK, offer.state, offer.remedy if silent else "")


# ---- Install


def install() -> Iterator[Line]:
    from relab import __version__

    version = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info >= (3, 11)
    yield Line("install", "relab", OK, f"{__version__} in {Path(__file__).parents[1]}")
    yield Line("install", "python", OK if fits else BROKEN, version, "" if fits else "relab needs Python 3.11 or newer")
    missing = [(name, why) for name, least, extra in requirements() if not extra and (why := lacks(name, least))]
    have = sum(not extra for _, _, extra in requirements()) - len(missing)
    for name, why in missing:
        yield Line("install", name, BROKEN, why, f"pip install '{name}'")
    yield Line("install", "packages", BROKEN if missing else OK, f"{have} of {have + len(missing)} that reading needs")
    git = shutil.which("git")
    yield Line("install", "git", OK if git else WARN, git or "not found",
               "" if git else "without it a run does not know the commit it was made from")  # fmt: skip


def extras() -> Iterator[Line]:
    needed = [(name, least) for name, least, extra in requirements() if extra == "train"]
    bad = {name: why for name, least in needed if (why := lacks(name, least))}
    have = ", ".join(f"{name} {version(name)}" for name, _ in needed if name not in bad)
    if not bad:
        yield Line("install", "train", OK, have)
        return
    missing = "; ".join(f"{name} {why} ({USED_FOR.get(name, 'training')})" for name, why in bad.items())
    yield Line("install", "train", WARN, missing + (f"; there: {have}" if have else ""),
               "only for train, resume, eval and video: pip install 'relab[train]'")  # fmt: skip


def requirements() -> list[tuple[str, str, str]]:
    """(package, least version, extra) of what relab asks for."""
    rows = []
    for text in metadata.requires("relab") or []:
        match = re.match(r"([\w.-]+)\s*(?:\[.*?\])?\s*(?:\(?>=\s*([\d.]+))?", text)
        extra = re.search(r"extra\s*==\s*['\"](\w+)['\"]", text)
        if match:
            rows.append((match[1], match[2] or "0", extra[1] if extra else ""))
    return rows


def version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def lacks(name: str, least: str) -> str:
    """Why a package does not do; empty where it does."""
    have = version(name)
    if have is None:
        return "missing"
    return "" if numbers(have) >= numbers(least) else f"is {have}, but {least} or newer is needed"


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", text.partition("+")[0])[:3])


# ---- Machine


def machine() -> Iterator[Line]:
    cores, every = usable_cores(), os.cpu_count() or 1
    quota = cpu_quota()
    limits = f", of {every} in the machine" if every != cores else ""
    few = quota is not None and quota < cores
    yield Line("machine", "cores", WARN if few else OK, f"{cores} ({cpu_name() or 'unknown processor'}){limits}"
               + (f", but the container may use {quota:.3g}" if few else ""),
               f"start at most {max(int(quota or 1), 1)} workers" if few else "")  # fmt: skip
    if hasattr(os, "getloadavg"):
        load = os.getloadavg()[0]
        busy = load > cores
        yield Line("machine", "load", WARN if busy else OK, f"{load:.1f} in the last minute",
                   "others are working: speeds measured now are too low" if busy else "")  # fmt: skip
    yield memory()


def memory() -> Line:
    total, free = memory_mb(), free_memory_mb()
    if total is None:
        return Line("machine", "memory", WARN, "unknown", "this system does not tell")
    sizes = f"{total / 1024:.1f} GB" + (f", {free / 1024:.1f} GB free" if free is not None else "")
    low = free is not None and free < 500
    return Line(
        "machine", "memory", WARN if low else OK, sizes, "a run needs about 0.5 GB: end something" if low else ""
    )


def free_memory_mb() -> float | None:
    """What a new process may take: of the machine, or of the container if that is less."""
    try:
        text = Path("/proc/meminfo").read_text()
    except OSError:  # not Linux
        return None
    match = re.search(r"MemAvailable:\s+(\d+) kB", text)
    limits_mb = [int(match[1]) / 1024] if match else []
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        limits_mb += [(int(limit) - used) / 2**20] if limit.isdigit() else []
    except (OSError, ValueError):
        pass
    return min(limits_mb, default=None)


def cpu_quota() -> float | None:
    """Cores that a container may use on average; None without a limit."""
    try:
        quota, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def threads() -> Iterator[Line]:
    variables = {name: os.environ[name] for name in THREADS if os.environ.get(name)}
    wrong = {n: v for n, v in variables.items() if not v.isdigit() or not 1 <= int(v) <= usable_cores()}
    shown = ", ".join(f"{name}={value}" for name, value in variables.items())
    remedy = f"set {', '.join(wrong)} to a number from 1 to {usable_cores()}, or not at all" if wrong else ""
    settings = shown or "not set: relab trains with one thread a run"
    yield Line("machine", "threads", WARN if wrong else OK, settings, remedy)


def gpu() -> Iterator[Line]:
    names = nvidia_names()
    if not names:
        yield Line("machine", "gpu", OK, "none found; relab trains on processors")
        return
    yield Line("machine", "gpu", OK, f"{', '.join(names)} (--deep asks torch whether it can use it)")


def nvidia_names() -> list[str]:
    names = []
    for file in sorted(Path("/proc/driver/nvidia/gpus").glob("*/information")):
        match = re.search(r"Model:\s*(.+)", file.read_text(errors="replace"))
        names.append(match[1].strip() if match else "NVIDIA")
    return names or (["NVIDIA"] if Path("/dev/nvidia0").exists() else [])


def kernels() -> Iterator[Line]:
    """Numba keeps compiled kernels beside the code, or below NUMBA_CACHE_DIR."""
    if version("numba") is None:
        return
    cache = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(cache) if cache else PACKAGE
    compiled = list(folder.rglob("*.nbi"))
    stale = 0 if cache else sum(map(is_stale, compiled))
    writable = os.access(folder, os.W_OK) or (cache is not None and not folder.exists())
    if not writable:
        yield Line("install", "kernels", WARN, f"{folder} cannot be written",
                   "set NUMBA_CACHE_DIR to a folder of yours, or kernels may compile in every process")  # fmt: skip
        return
    older = f", {stale} of them older than their code: these compile again when used" if stale else ""
    none = "none yet: the first run on this machine compiles for about 15 s"
    yield Line("install", "kernels", OK, f"{len(compiled)} compiled in {folder}{older}" if compiled else none)


def is_stale(kernel: Path) -> bool:
    """Whether the file that a compiled kernel stands in is newer: __pycache__/returns.gae-14.py311.nbi, returns.py."""
    source = kernel.parent.parent / f"{kernel.name.partition('.')[0]}.py"
    return not source.exists() or source.stat().st_mtime > kernel.stat().st_mtime


def clock() -> Iterator[Line]:
    """Heartbeats compare the clock with times that other machines wrote."""
    newest = Path(__file__).stat().st_mtime
    late = time.time() < newest - 86_400
    zone = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
    yield Line(
        "machine", "clock", WARN if late else OK, zone, "it is before relab was installed: set it" if late else ""
    )


# ---- Folders


def places(path: Path) -> Iterator[Line]:
    for name, folder in {
        "runs folder": path,
        "cache folder": cache_folder(),
        "temporary": Path(tempfile.gettempdir()),
    }.items():
        yield place(name, folder, needed=name != "cache folder")


def place(name: str, folder: Path, needed: bool) -> Line:
    """Can it be written, is there room, and is its clock ours?"""
    there = nearest_there(folder)
    free = shutil.disk_usage(there).free
    room = f"{folder}" + ("" if folder.exists() else " (not there yet)") + f", {free / 1e9:.1f} GB free"
    bad = BROKEN if needed else WARN
    try:
        with tempfile.TemporaryFile(dir=there) as file:
            file.write(b"x")
            file.flush()
            skew = os.fstat(file.fileno()).st_mtime - time.time()
    except OSError as error:
        remedy = "write there as another user, or choose a folder with --runs" if needed else "set XDG_CACHE_HOME"
        return Line("folders", name, bad, f"{folder} cannot be written: {error.strerror or error}", remedy)
    if abs(skew) > 5:
        return Line("folders", name, WARN, f"{room}; its clock is {skew:+.0f} s off",
                    "runs there may look stale or alive when they are not: set the clocks")  # fmt: skip
    if free < 1e9:
        return Line("folders", name, WARN, room, "little room: relab runs disk shows what can go")
    return Line("folders", name, OK, room)


def nearest_there(folder: Path) -> Path:
    """The folder itself, or the first above it that exists."""
    folder = Path(os.path.abspath(folder))
    while not folder.is_dir() and folder != folder.parent:
        folder = folder.parent
    return folder


# ---- Runs


def runs_here(path: Path) -> Iterator[Line]:
    """Which formats are here, and which runs say that they run but do not, or hang."""
    if not path.is_dir():
        yield Line("runs", "formats", OK, f"no {path} here yet")
        return
    formats, own, done = survey(path)
    shown = ", ".join(f"{count:,} {name}" for name, count in formats.most_common())
    more = "" if done else f" so far: the look ended after {LOOK_S:g} s (relab runs counts all)"
    yield Line("runs", "formats", OK, (shown or "no runs of any format that relab reads") + f" below {path}" + more)
    states: dict[str, list[str]] = {"stale": [], "hung": [], "ahead": []}
    for name, folder, meta in own:
        for state in problems_of(folder, meta):
            states[state].append(name)
    yield from state_lines(states, done)


def state_lines(states: dict[str, list[str]], done: bool) -> Iterator[Line]:
    words = {
        "stale": ("say that they run, but their process is gone", "relab resume RUN goes on with one"),
        "hung": ("have a process that writes no heartbeat", "look at it; end it by its id (events.jsonl has the pid)"),
        "ahead": ("have a heartbeat from the future", "set the clocks of the machines that share this folder"),
    }
    nobody = "none" if done else "none so far"
    for state, (what, remedy) in words.items():
        some = states[state]
        names = ", ".join(some[:3]) + (f" and {len(some) - 3} more" if len(some) > 3 else "")
        yield Line("runs", state, WARN if some else OK, f"{names} {what}" if some else nobody, remedy if some else "")


def left_behind() -> Iterator[Line]:
    """What a killed relab left running on this machine."""
    orphans = processes.orphans()
    some = ", ".join(f"{each.pid} ({each.job})" for each in orphans[:3]) + (" ..." if len(orphans) > 3 else "")
    yield Line("runs", "orphans", WARN if orphans else OK,
               f"{len(orphans)} processes that a killed relab started still run: {some}" if orphans else "none",
               "relab queue orphans --end ends them" if orphans else "")  # fmt: skip


def survey(path: Path) -> tuple[Counter[str], list[tuple[str, bytes, Any]], bool]:
    """(runs by format, relab's with their meta.json, whether all was seen): first bytes only, for a limited time."""
    from relab.formats.read import find  # noqa: F401 - before the time begins
    from relab.runs.index import look_through

    base = os.fsencode(os.path.realpath(path))
    walk = look_through(base, {}, until=time.monotonic() + LOOK_S)
    own = [(os.fsdecode(below).lstrip("/") or ".", base + below, meta) for below, _, meta in walk.changed]
    return Counter(source.format for source in walk.foreign) + Counter({"relab": len(own)}), own, not walk.cut


def problems_of(folder: bytes, meta: Any) -> list[str]:
    """What is wrong with a run that says it is running."""
    if not isinstance(meta, dict) or meta.get("status") != "running":
        return []
    quiet = time.time() - glance.utc(meta.get("heartbeat"))
    if quiet < -60:
        return ["ahead"]
    return [] if quiet <= STALE_S else ["hung" if is_written(folder) else "stale"]


def is_written(folder: bytes) -> bool:
    """Whether a process on this machine has the record open: it holds a lock on events.jsonl."""
    try:
        import fcntl

        fd = os.open(folder + b"/events.jsonl", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (ImportError, OSError):
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    finally:
        os.close(fd)
    return False


# ---- What takes seconds


def torch_works() -> Iterator[Line]:
    """Import torch elsewhere, multiply two matrices, ask for a GPU: a broken install may hang or crash."""
    import subprocess

    code = (
        "import torch; x = torch.ones(64, 64); assert float((x @ x).sum()) == 64 ** 3; g = torch.cuda.is_available();"
        " print(torch.__version__, torch.get_num_threads(), torch.cuda.get_device_name(0) if g else 'no GPU', sep='|')"
    )
    try:
        done = subprocess.run([*processes.PYTHON, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    except subprocess.TimeoutExpired:
        yield Line("install", "torch", BROKEN, "did not answer within 120 s", "pip install --force-reinstall torch")
        return
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        missing = version("torch") is None
        yield Line("install", "torch", WARN if missing else BROKEN, last[:200],
                   "pip install 'relab[train]'" if missing else "pip install --force-reinstall torch")  # fmt: skip
        return
    version_text, count, name = done.stdout.strip().split("|")
    yield Line("install", "torch", OK, f"{version_text} computes; {count} threads by default; {name}")


def worst(lines: list[Line]) -> str:
    levels = [line.level for line in lines]
    return BROKEN if BROKEN in levels else WARN if WARN in levels else OK


def to_json(lines: list[Line]) -> Document:
    return {"schema": 1, "level": worst(lines), "lines": [line.to_json() for line in lines]}
