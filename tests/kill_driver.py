"""Kills training runs with SIGKILL at the k-th call that touches the disk, resumes them, and compares the bytes.

Usage: python kill_driver.py FOLDER POINTS [SEED]. Prints JSON: {"calls": n, "points": [{"at", "same", "different"}]}.
All runs are forked from one warm process, so that a kill costs tenths of a second. Between two such calls the disk does
not change: the points cover every state a kill can leave behind (torn last lines are tests/test_record.py's part).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from relab import train
from runs import fingerprint, run

TOUCHING = ("write", "fsync", "rename", "replace", "ftruncate", "mkdir", "unlink", "rmdir")


def count_calls(limit: int | None, report: Path | None) -> None:
    """Wrap the calls that touch the disk; kill this process before the `limit`-th, or keep count in `report`."""
    seen = [0]

    def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **kw: Any) -> Any:
            seen[0] += 1
            if seen[0] == limit:
                os.kill(os.getpid(), signal.SIGKILL)
            found = call(*args, **kw)
            if report is not None and limit is None:
                with open(report, "w") as file:
                    file.write(str(seen[0]))
            return found

        return counted

    for name in TOUCHING:
        setattr(os, name, wrap(getattr(os, name)))


def in_child(work: Callable[[], Any]) -> int:
    """Run `work` in a forked process; its exit status (negative: the signal that killed it)."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_run(folder: Path, at: int) -> None:
    count_calls(at, None)
    run(folder)


def main(root: Path, points: int, seed: int) -> dict[str, Any]:
    root.mkdir(parents=True, exist_ok=True)
    run(root / "warm", total_steps="128")
    report = root / "calls"

    def reference() -> None:
        count_calls(None, report)
        run(root / "reference")

    assert in_child(reference) == 0
    calls, wanted = int(report.read_text()), fingerprint(root / "reference")
    rng = random.Random(seed)
    spread = (
        [int(calls * (k + 0.5) / points) for k in range(points)] if points <= 3 else rng.sample(range(8, calls), points)
    )
    found = []
    for at in spread:
        folder = root / f"killed-{at}"
        status = in_child(lambda folder=folder, at=at: killed_run(folder, at))  # type: ignore[misc]
        assert status == -signal.SIGKILL, f"the run was to be killed at call {at} of {calls}, but ended with {status}"
        if not (folder / "meta.json").exists():  # killed before there was a run
            found.append({"at": at, "same": True, "different": []})
            continue
        status = in_child(lambda folder=folder: train.resume(folder))  # type: ignore[misc]
        got = fingerprint(folder) if status == 0 else {}
        different = [name for name in wanted if got.get(name) != wanted[name]]
        found.append({"at": at, "same": not different, "different": different})
    return {"calls": calls, "points": found}


if __name__ == "__main__":
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    print(json.dumps(main(Path(sys.argv[1]), int(sys.argv[2]), seed)))
