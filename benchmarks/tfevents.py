"""How fast is a TensorBoard file of 100,000 scalars read? relab's reader beside EventAccumulator, turn by turn.

Run as `python -m benchmarks.tfevents [PYTHON]`; PYTHON has tensorboard, by default that of `make bench-peers`.
Neither side's imports count. relab checks every checksum, as the peer does. Target: under 0.8 s, and 4 times as fast.
A million scalars, in processor seconds, tell what a log of many megabytes takes on a busy machine.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import ROOT, clocked, machine, summary, timed, warn_if_busy, write
from relab.formats.read import tfevents

PEER = ROOT / ".venv-sb3" / "bin" / "python"
PEER_SCRIPT = ROOT / "benchmarks" / "peers" / "tb_read.py"
POINTS, TAGS, ROUNDS = 100_000, 20, 5


def make(folder: Path) -> tuple[Path, float]:
    """A file as a training program writes it, and the seconds that took."""
    begin = time.perf_counter()
    with tfevents.Writer(folder) as writer:
        for k in range(POINTS // TAGS):
            for tag in range(TAGS):
                writer.scalar(f"losses/metric_{tag}", 0.1 * k + tag, 2048 * k)
    return writer.path, time.perf_counter() - begin


def ours(path: Path) -> float:
    return clocked(lambda: count(path, POINTS))[1]


def count(path: Path, expected: int) -> int:
    events = tfevents.read(path)
    points = sum(len(series.steps) for series in events.scalars.values())
    if points != expected or events.notes:
        raise RuntimeError(f"{expected} points were written, but {points} read, with these notes: {events.notes}")
    return points


def large(path: Path) -> dict[str, Any]:
    """Processor seconds for ten times as many points."""
    copy = path.with_name("events.out.tfevents.2.large")
    copy.write_bytes(path.read_bytes() * 10)
    return summary([clocked(lambda: count(copy, 10 * POINTS))[2] for _ in range(ROUNDS)])


def theirs(python: Path, path: Path) -> float:
    answer = json.loads(timed([python, PEER_SCRIPT, path, 1]).stdout)
    if answer["points"] != POINTS:
        raise RuntimeError(f"{POINTS} points were written, but TensorBoard reads {answer['points']}")
    return float(answer["seconds"][0])


def main() -> None:
    python = Path(sys.argv[1]) if len(sys.argv) > 1 else PEER
    if not python.exists():
        raise SystemExit(f"TensorBoard runs in its own venv, but there is no {python}: run `make bench-peers`")
    warn_if_busy(started := machine())
    with tempfile.TemporaryDirectory() as folder:
        path, write_s = make(Path(folder))
        million = large(path)
        pairs = [(ours(path), theirs(python, path)) for _ in range(ROUNDS)]
    mine, peer = summary([a for a, _ in pairs]), summary([b for _, b in pairs])
    ratio = round(peer["median"] / mine["median"], 2)
    print(f"{POINTS:,} scalars: relab {mine['median']} s, EventAccumulator {peer['median']} s, {ratio} times as long")
    result = {"points": POINTS, "tags": TAGS, "write_s": round(write_s, 3), "relab_s": mine, "peer_s": peer}
    result["million_cpu_s"] = million
    write("tfevents", {**result, "peer": "tensorboard EventAccumulator", "ratio": ratio}, started)


if __name__ == "__main__":
    main()
