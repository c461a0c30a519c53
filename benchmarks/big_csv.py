"""How long does `relab examine` take for a CSV of millions of rows, and how much memory? A process for each size.

Run as `python -m benchmarks.big_csv [ROWS ...]`. Ten columns; imports and reading count. Target: 5 million rows in
under 30 s on a quiet machine. The seconds of the processor are given beside those on the clock, which others lengthen.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import BIN, machine, warn_if_busy, write

SIZES = (200_000, 1_000_000, 5_000_000)
NAMES = ("global_step", "return", "episode_length", "policy_loss", "value_loss", "entropy", "approx_kl",
         "explained_variance", "learning_rate", "value_mean")  # fmt: skip
LINE = "%d,%.4f,%.1f" + ",%.6g" * 7 + "\n"


def make(path: Path, rows: int) -> int:
    """A log of a run that learns; returns its bytes."""
    rng = np.random.default_rng(0)
    with open(path, "w", encoding="utf-8") as file:
        file.write(",".join(NAMES) + "\n")
        for start in range(0, rows, 100_000):
            k = np.arange(start, min(rows, start + 100_000))
            file.write("".join(LINE % row for row in zip(*columns(k, k / rows, rng), strict=True)))
    return path.stat().st_size


def columns(k: np.ndarray, x: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    noise = rng.normal(size=(6, len(k)))
    return [16 * k, 500 * (1 - np.exp(-5 * x)) + 20 * noise[0], 100 + 5 * noise[1], 0.01 * noise[2],
            1 + rng.random(len(k)), 1.5 - x + 0.02 * noise[3], 0.01 * rng.random(len(k)),
            0.5 + 0.4 * x + 0.02 * noise[4], 3e-4 * (1 - x), 50 * x + noise[5]]  # fmt: skip


def examined(folder: Path) -> dict[str, float]:
    """Seconds and peak memory of one process, from start to exit."""
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen([BIN / "python", "-m", "relab.cli", "examine", folder], stdout=subprocess.DEVNULL)
    with process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, memory(process.pid))
            time.sleep(0.05)
    if process.returncode:
        raise RuntimeError(f"`relab examine {folder}` ended with exit code {process.returncode}")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": round(time.perf_counter() - start, 2), "processor_s": round(used, 2), "peak_mb": peak // 1000}


def memory(pid: int) -> int:
    """The most that a process has used so far, in kB; 0 where nothing tells."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def main() -> None:
    sizes = [int(word) for word in sys.argv[1:]] or SIZES
    warn_if_busy(started := machine())
    results: list[dict[str, Any]] = []
    for rows in sizes:
        with tempfile.TemporaryDirectory() as folder:
            size = make(Path(folder) / "progress.csv", rows)
            results.append({"rows": rows, "columns": len(NAMES), "mb": size // 1_000_000, **examined(Path(folder))})
        print(results[-1])
    write("big_csv", {"sizes": results}, started)


if __name__ == "__main__":
    main()
