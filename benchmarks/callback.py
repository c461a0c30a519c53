"""What does relab's callback cost a training of Stable-Baselines3? PPO on CartPole with it and without it, in turns.

Run as `python -m benchmarks.callback`. CPU seconds are compared, which a busy machine disturbs least; `share` is what
the callback itself measured: writing and looking, of the wall time of the training, the last look after it included.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from benchmarks.common import ROOT, machine, summary, timed, warn_if_busy, write

PEER = ROOT / ".venv-sb3" / "bin" / "python"
STEPS, PAIRS = 30_000, 3


def main() -> None:
    warn_if_busy(started := machine())
    rows: dict[str, list[dict[str, float]]] = {"with": [], "without": []}
    with tempfile.TemporaryDirectory() as root:
        for pair in range(PAIRS):
            for how in ("with", "without") if pair % 2 else ("without", "with"):
                rows[how].append(once(how, Path(root) / f"{how}-{pair}"))
    cpu = {how: [row["cpu_s"] for row in some] for how, some in rows.items()}
    ratios = [a / b for a, b in zip(cpu["with"], cpu["without"], strict=True)]
    shares = [row["share"] for row in rows["with"]]
    looks = [int(row["looks"]) for row in rows["with"]]
    print(f"{STEPS:,} steps: the callback took {max(shares):.2%} of the time at most ({looks} looks);"
          f" CPU time with it / without it: {statistics.median(ratios):.3f}")  # fmt: skip
    write("callback", {"steps": STEPS, "share": summary(shares), "looks": looks, "cpu ratio": summary(ratios),
                       "cpu seconds": {how: summary(some, 2) for how, some in cpu.items()}}, started)  # fmt: skip


def once(how: str, folder: Path) -> dict[str, float]:
    script = ROOT / "benchmarks" / "peers" / "sb3_callback.py"
    done = timed([PEER, script, how, folder, str(STEPS)], env={"OMP_NUM_THREADS": "1"})
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
