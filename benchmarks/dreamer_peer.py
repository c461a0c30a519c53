"""How many updates does Dreamer make in the time of one of sheeprl's? Same sizes, batch and sequence, in turns.

Run as `python -m benchmarks.dreamer_peer`, with `.venv-sheeprl` beside the checkout (peers/requirements-sheeprl.txt) or
`--peer PYTHON`. The sizes are sheeprl's XS (width 256, one layer, 32 x 32 latents, 255 bins, 16 sequences of 64 rows,
dreams of 15 steps), on CartPole's four numbers. Both get the same number of threads.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.common import ROOT, machine, summary, timed, warn_if_busy, write
from benchmarks.dreamer import milliseconds, prepared
from relab.config.dreamer import Dreamer
from relab.train.algos.dreamer import learning

XS = Dreamer(envs=8, learning_starts=600, sequences=16, length=64, deter=256, hidden=256, units=256, layers=1, stoch=32,
             classes=32, bins=255, imagine=15)  # fmt: skip
UPDATES, TURNS = 5, 2


def ours(threads: int) -> np.ndarray:
    """[updates, 2]: milliseconds of the processor and of the clock."""
    s = prepared(XS, threads)
    return np.array([milliseconds(lambda: learning.update(s), 1) for _ in range(UPDATES)])


def theirs(peer: Path, threads: int) -> np.ndarray:
    script = ROOT / "benchmarks" / "peers" / "sheeprl_dreamer.py"
    words = [peer, script, "--updates", str(UPDATES), "--threads", str(threads)]
    out = timed(words, {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}).stdout
    row = json.loads(out.splitlines()[-1])
    return 1e3 * np.array([row["processor_seconds"], row["seconds"]]).T


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--peer", type=Path, default=ROOT / ".venv-sheeprl" / "bin" / "python")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    args = parser.parse_args()
    torch.set_num_threads(1)
    here, result = machine(), {}
    warn_if_busy(here)
    for threads in args.threads:
        turns = [(ours(threads), theirs(args.peer, threads)) for _ in range(TURNS)]
        mine, peer = (np.concatenate([turn[i] for turn in turns]) for i in (0, 1))
        result[f"threads_{threads}"] = compared(mine, peer)
        print(threads, result[f"threads_{threads}"])
    write("dreamer_peer", {"cases": result}, here)


def compared(mine: np.ndarray, peer: np.ndarray) -> dict[str, Any]:
    """On a busy machine only the processor's time means something, and only with one thread."""
    cells = {f"{who}_{clock}_ms": summary(x[:, i].tolist(), 1) for who, x in (("relab", mine), ("sheeprl", peer))
             for i, clock in enumerate(("processor", "wall"))}  # fmt: skip
    cpu, wall = np.median(peer, 0) / np.median(mine, 0)
    return cells | {"times_as_many_updates_by_processor": round(float(cpu), 2),
                    "times_as_many_updates_by_clock": round(float(wall), 2)}  # fmt: skip


if __name__ == "__main__":
    main()
