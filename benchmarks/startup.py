"""How fast does relab answer? Wall seconds of the commands that do not train, beside a bare Python's."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks import common

Command = list[str | Path]
HELP_GOAL = 0.3  # seconds that `relab --help` may take


def two_runs(folder: Path) -> list[Path]:
    """Two short runs with different settings, for `relab diff` to compare."""
    for lr in ("1e-3", "3e-4"):
        words = ["train", "ppo", "env=ladder-value", f"lr={lr}", "total_steps=2048", "--runs", str(folder)]
        common.timed([common.BIN / "relab", *words])
    return sorted(path.parent for path in folder.rglob("config.yaml"))


def commands(runs: list[Path]) -> dict[str, Command]:
    python, relab = sys.executable, common.BIN / "relab"
    return {
        "python, nothing imported": [python, "-c", "pass"],
        "relab --help": [relab, "--help"],
        "relab train --help": [relab, "train", "--help"],
        "relab diff": [relab, "diff", *runs],
        "import relab.config": [python, "-c", "import relab.config.layers"],
        "import relab.record.history": [python, "-c", "import relab.record.history"],
        "import numpy": [python, "-c", "import numpy"],
        "import torch": [python, "-c", "import torch"],
        "import numba": [python, "-c", "import numba"],
    }


def measure(todo: Mapping[str, Command], repeats: int) -> dict[str, list[float]]:
    """Round after round over all commands, so that noise does not fall on one alone; the first round is dropped."""
    samples: dict[str, list[float]] = {name: [] for name in todo}
    for _ in range(repeats + 1):
        for name, command in todo.items():
            samples[name].append(common.timed(command).seconds)
    return {name: seconds[1:] for name, seconds in samples.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    args = parser.parse_args()
    started = common.machine()
    common.warn_if_busy(started)
    with tempfile.TemporaryDirectory() as folder:
        samples = measure(commands(two_runs(Path(folder))), args.repeats)
    seconds = {name: common.summary(times) for name, times in samples.items()}
    for name, times in seconds.items():
        print(f"{times['median']:7.3f} s  {name}")
    met = seconds["relab --help"]["median"] < HELP_GOAL
    common.write("startup", {"seconds": seconds, "help_under_goal": met, "help_goal": HELP_GOAL}, started)


if __name__ == "__main__":
    main()
