"""How fast is a TensorBoard file of 100,000 scalars read? relab's reader beside EventAccumulator, turn by turn.

Run as `python -m benchmarks.tfevents [PYTHON]`; PYTHON has tensorboard, by default that of `make bench-peers`.
Neither side's imports count. relab checks every checksum, as the peer does. Target: under 0.8 s, and 4 times as fast.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.common import ROOT, machine, summary, timed, warn_if_busy, write
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
    begin = time.perf_counter()
    found = tfevents.read(path)
    seconds = time.perf_counter() - begin
    points = sum(len(series.steps) for series in found.scalars.values())
    if points != POINTS or found.notes:
        raise RuntimeError(f"{POINTS} points were written, but {points} read, with these notes: {found.notes}")
    return seconds


def theirs(python: Path, path: Path) -> float:
    found = json.loads(timed([python, PEER_SCRIPT, path, 1]).stdout)
    if found["points"] != POINTS:
        raise RuntimeError(f"{POINTS} points were written, but TensorBoard reads {found['points']}")
    return float(found["seconds"][0])


def main() -> None:
    python = Path(sys.argv[1]) if len(sys.argv) > 1 else PEER
    if not python.exists():
        raise SystemExit(f"TensorBoard runs in its own venv, but there is no {python}: run `make bench-peers`")
    warn_if_busy(started := machine())
    with tempfile.TemporaryDirectory() as folder:
        path, write_s = make(Path(folder))
        pairs = [(ours(path), theirs(python, path)) for _ in range(ROUNDS)]
    mine, peer = summary([a for a, _ in pairs]), summary([b for _, b in pairs])
    ratio = round(peer["median"] / mine["median"], 2)
    print(f"{POINTS:,} scalars: relab {mine['median']} s, EventAccumulator {peer['median']} s, {ratio} times as long")
    result = {"points": POINTS, "tags": TAGS, "write_s": round(write_s, 3), "relab_s": mine, "peer_s": peer}
    write("tfevents", {**result, "peer": "tensorboard EventAccumulator", "ratio": ratio}, started)


if __name__ == "__main__":
    main()
