"""How long does `relab examine` take? Of one foreign run and of a folder of a hundred, from start to exit.

Run as `python -m benchmarks.examine RUNS [--repeats 5]`, with a folder of healthy_runs.py or fault_runs.py. Processor
seconds stand beside those of the clock: they say what a busy machine hides. Modules are compiled before, as pip does
when it installs them: where PYTHONDONTWRITEBYTECODE is set, every call would compile them anew (0.4 s of 0.9).
"""

from __future__ import annotations

import argparse
import resource
import shutil
import sys
import tempfile
from pathlib import Path

from benchmarks import common

GOALS = {"one run": 0.7, "100 runs": 5.0}  # seconds


def leaves(root: Path) -> list[Path]:
    """Folders of single runs: those that outcomes.jsonl lists."""
    from benchmarks.peers.healthy_listing import outcomes

    return [root / row["path"] for row in outcomes(root) if row.get("tool") != "relab"]


def gathered(runs: list[Path], many: int, folder: Path) -> Path:
    """Copies of as many runs, some of them twice where there are too few."""
    for number in range(many):
        shutil.copytree(runs[number % len(runs)], folder / f"run-{number:03}")
    return folder


def measured(path: Path, repeats: int, compiled: Path) -> dict[str, object]:
    """Seconds by the clock and of the processor; the first round warms the disk, compiles, and is dropped."""
    env = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(compiled)}
    wall, used = [], []
    for _ in range(repeats + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        wall.append(common.timed([sys.executable, "-m", "relab.cli", "examine", path], env).seconds)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return {"clock": common.summary(wall[1:]), "processor": common.summary(used[1:])}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", type=Path)
    parser.add_argument("--repeats", type=int, default=5)
    args = parser.parse_args()
    started = common.machine()
    common.warn_if_busy(started)
    runs = leaves(args.runs)
    with tempfile.TemporaryDirectory() as folder:
        places = {"one run": runs[0], "100 runs": gathered(runs, 100, Path(folder) / "many")}
        seconds = {name: measured(place, args.repeats, Path(folder) / "compiled") for name, place in places.items()}
    for name, times in seconds.items():
        clock, used = (times[kind]["median"] for kind in ("clock", "processor"))  # type: ignore[index]
        print(f"{name}: {clock:.2f} s by the clock, {used:.2f} s of the processor, {GOALS[name]:g} s asked")
    common.write("examine", {"seconds": seconds, "goals": GOALS}, started)


if __name__ == "__main__":
    main()
