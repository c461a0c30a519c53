"""What every benchmark shares: which machine, which commit, how long a process takes, where the numbers go."""

from __future__ import annotations

import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results"
QUIET = 0.5  # load average under which a machine counts as quiet
BIN = Path(sys.executable).parent  # the venv's programs; `resolve` would leave the venv


@dataclass(frozen=True)
class Timed:
    """One process from start to exit."""

    seconds: float
    stdout: str
    load: float  # load average of the last minute before it started: over 1 here means that others were working


def timed(command: Sequence[str | Path], env: Mapping[str, str] | None = None, cwd: Path = ROOT) -> Timed:
    """Run a process to its end; wall seconds include everything, imports too. A failing one raises with its output."""
    words, load = [str(word) for word in command], os.getloadavg()[0]
    start = time.perf_counter()
    done = subprocess.run(
        words, env={**os.environ, **(env or {})}, cwd=cwd, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - start
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(words)}` ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return Timed(seconds, done.stdout, load)


def summary(samples: Sequence[float], digits: int = 4) -> dict[str, Any]:
    """Median and all samples: a median alone hides what a busy machine did to the others."""
    return {
        "median": round(statistics.median(samples), digits),
        "n": len(samples),
        "samples": [round(sample, digits) for sample in samples],
    }


def clocked(work: Callable[[], float]) -> tuple[float, float, float]:
    """(what the work counted, wall seconds, processor seconds of this process and its children)"""
    before, start = sum(os.times()[:4]), time.perf_counter()
    done = work()
    return done, time.perf_counter() - start, sum(os.times()[:4]) - before


def rates(samples: list[tuple[float, float, float]]) -> dict[str, float]:
    wall, cpu = (sorted(done / max(x[k], 1e-9) for done, *x in samples) for k in (0, 1))
    return {
        "per_s": round(wall[len(wall) // 2]),
        "best_per_s": round(wall[-1]),
        "per_processor_s": round(cpu[len(cpu) // 2]),
    }


def machine() -> dict[str, Any]:
    """The machine in words that compare; no host or user name."""
    return {
        "cpu": cpu_name(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "load_1min": round(os.getloadavg()[0], 2),
    }


def warn_if_busy(started: Mapping[str, Any]) -> None:
    """Numbers from a busy machine mislead; they are written all the same, with the load beside them."""
    if started["load_1min"] > QUIET:
        print(f"the machine is busy: its load is {started['load_1min']}, and over {QUIET} times are not to be trusted")


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown"


def commit() -> str:
    """The commit that is measured, with `+changes` when files differ from it; `unknown` outside git."""
    head = git("rev-parse", "--short=12", "HEAD")
    if head is None:
        return "unknown"
    return head + ("+changes" if git("status", "--porcelain", "--", "src") else "")


def git(*words: str) -> str | None:
    try:
        done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def write(name: str, results: Mapping[str, Any], started: Mapping[str, Any] | None = None) -> Path:
    """benchmarks/results/NAME.json: results with commit, machine (as it was at the start, if given) and date."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    date = datetime.now(UTC).isoformat(timespec="seconds")
    content = {"benchmark": name, "date": date, "commit": commit(), "machine": started or machine(), **results}
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=1) + "\n")
    print(f"wrote {path.relative_to(ROOT)}")
    return path
