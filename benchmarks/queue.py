"""What does a queue cost a run, and does it lose or repeat any? 1,000 programs that do nothing, through `relab queue`.

Run as `python -m benchmarks.queue`. Each program adds a line with its number to one file, so that what was lost or run
twice is counted from what happened, not from what the queue says. First one submitter and one worker with one slot: the
seconds a run, less those that the same programs take one after the other without a queue, are its overhead. Then two
submitters and two workers as processes of their own, all at once.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from benchmarks.common import machine, warn_if_busy, write
from relab.lab.execute import submit
from relab.lab.execute.queue import Queue

RUNS = 1000
WORK = [sys.executable, "-m", "relab.cli", "queue", "work", "--workers", "1", "--json"]
SUBMIT = [sys.executable, "-m", "benchmarks.queue", "submit"]


def words(number: str) -> list[str]:
    return ["sh", "-c", f"echo {number} >> out"]


def add(queue: Queue, first: int, count: int) -> float:
    """Seconds that adding took."""
    start = time.perf_counter()
    for i in range(first, first + count):
        queue.add(submit.program(words(str(i))))
    return time.perf_counter() - start


def bare(count: int, folder: Path) -> float:
    """The same programs without a queue, a hundred of them: seconds each."""
    start = time.perf_counter()
    for i in range(count):
        subprocess.run(words(f"bare{i}"), cwd=folder, check=True)
    return (time.perf_counter() - start) / count


def counted(queue: Queue, out: Path) -> dict[str, Any]:
    seen = Counter(out.read_text().split())
    return {
        "runs": RUNS,
        "lost": RUNS - len(seen),
        "twice": sum(count > 1 for count in seen.values()),
        "counts": {state: count for state, count in queue.counts().items() if count},
    }


def alone(root: Path) -> dict[str, Any]:
    """One submitter, then one worker with one slot."""
    os.chdir(root)
    queue = Queue(root / "queue").make()
    adding = add(queue, 0, RUNS)
    load, start = os.getloadavg()[0], time.perf_counter()
    subprocess.run(WORK, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    seconds = time.perf_counter() - start
    found = counted(queue, root / "out")
    each = bare(100, root)
    return {**found, "load": load, "seconds": seconds, "adding_s_each": adding / RUNS, "bare_s_each": each,
            "overhead_s_each": seconds / RUNS - each + adding / RUNS}  # fmt: skip


def together(root: Path) -> dict[str, Any]:
    """Two submitters and two workers at once; the workers stay until all is done."""
    os.chdir(root)
    queue = Queue(root / "queue").make()
    load, start = os.getloadavg()[0], time.perf_counter()
    half = RUNS // 2
    adding = [subprocess.Popen([*SUBMIT, str(queue.folder), str(first), str(half)]) for first in (0, half)]
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    working = [subprocess.Popen([*WORK, "--stay"], **silent) for _ in range(2)]  # type: ignore[call-overload]
    while any(each.poll() is None for each in adding) or queue.names("waiting") or queue.names("running"):
        time.sleep(0.05)
    seconds = time.perf_counter() - start
    for each in working:
        each.terminate()
        each.wait()
    shares = Counter(str(queue.result(name)["worker"]) for name in queue.names("done"))
    return {**counted(queue, root / "out"), "load": load, "seconds": seconds, "seconds_each": seconds / RUNS,
            "runs_by_worker": sorted(shares.values())}  # fmt: skip


def main() -> None:
    if sys.argv[1:2] == ["submit"]:
        add(Queue(Path(sys.argv[2])), int(sys.argv[3]), int(sys.argv[4]))
        return
    warn_if_busy(started := machine())
    home = os.getcwd()
    results = {}
    for name, measure in {"one worker": alone, "two submitters, two workers": together}.items():
        with tempfile.TemporaryDirectory() as root:
            os.environ["PYTHONPATH"] = os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])
            results[name] = measure(Path(root))
            os.chdir(home)
        print(f"{name}: {results[name]}")
    write("queue", {"target": "nothing lost or run twice, overhead under 0.3 s a run", **results}, started)


if __name__ == "__main__":
    main()
