"""What do engines cost beside the runs themselves? Seconds of the submitter and files on the desk for each run.

python -m benchmarks.engines [RUNS]     an engine that does nothing, at the border; this machine with real programs

Real engines are measured by `make test-cluster`, which prints their overhead.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from benchmarks.common import machine, write
from relab.lab.execute import local
from relab.lab.execute.cluster import Cluster, JobState
from relab.lab.execute.desk import Desk, End
from relab.lab.execute.local import Job
from relab.lab.execute.where import Where


class Nothing:
    """An engine whose jobs have ended the moment they are sent."""

    every_s, limits = 0.0, True

    def send(self, desk: Desk, ids: Sequence[str]) -> str:
        for id_ in ids:
            desk.live(id_, "nothing", "nowhere")
            desk.write_end(id_, End(0, 0.0))
            DONE.add(desk.order(id_).name)
        return f"job-{ids[0]}"

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        return {}

    def drop(self, job: str) -> None: ...

    def room(self) -> int:
        return 1000

    def close(self) -> None: ...


DONE: set[str] = set()


def away(folder: Path, runs: int) -> dict[str, float]:
    DONE.clear()
    todo = [Job(f"cell-{i}", list, lambda name=f"cell-{i}": name in DONE, folder / "logs" / f"{i}.log",  # type: ignore[misc]
                elsewhere=["true"], relab=False) for i in range(runs)]  # fmt: skip
    began, cpu = time.monotonic(), time.process_time()
    result = local.run(todo, 1, at=Cluster(Nothing(), folder, Where(on="slurm")))
    assert len(result.finished) == runs
    files = [path for path in (folder / "engine").rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    return {"seconds_per_run": (time.monotonic() - began) / runs, "cpu_s_per_run": (time.process_time() - cpu) / runs,
            "files_per_run": len(files) / runs, "bytes_per_run": size / runs}  # fmt: skip


def here(folder: Path, runs: int) -> dict[str, float]:
    names = [str(folder / f"done-{i}") for i in range(runs)]
    todo = [Job(Path(name).name, lambda name=name: ["touch", name], Path(name).exists, folder / "logs" / "x.log")  # type: ignore[misc]
            for name in names]  # fmt: skip
    began = time.monotonic()
    result = local.run(todo, 2)
    assert len(result.finished) == runs
    return {"seconds_per_run": (time.monotonic() - began) / runs}


def main(words: Sequence[str]) -> None:
    runs = int(words[0]) if words else 1000
    row: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, count in (("few", runs), ("many", 4 * runs)):
            (Path(folder) / name).mkdir()
            row[f"submitter_{count}"] = away(Path(folder) / name, count)
            print(name, row[f"submitter_{count}"])
        row[f"local_{min(runs, 100)}"] = here(Path(folder), min(runs, 100))
    write("engines", {"machine": machine(), **row})


if __name__ == "__main__":
    main(sys.argv[1:])
