"""What do engines cost beside the runs themselves? Seconds of the submitter and files on the desk for each run.

python -m benchmarks.engines [RUNS]             an engine that does nothing, at the border; this machine, real programs
python -m benchmarks.engines [RUNS] ray slurm   and these, real ones (tests/cluster): three nodes of Ray, two of Slurm

Programs do nothing (`touch`): what is measured is all that is not theirs. The load of the machine stands beside.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Collection, Sequence
from pathlib import Path

from benchmarks.common import machine, write
from relab.lab.execute import engines, local
from relab.lab.execute.cluster import Cluster, JobState
from relab.lab.execute.desk import Desk, End
from relab.lab.execute.local import Job
from relab.lab.execute.where import Where


class Nothing:
    """An engine whose jobs have ended the moment they are sent."""

    every_s, limits = 0.0, True

    def send(self, desk: Desk, ids: Sequence[str], avoid: Collection[str] = ()) -> str:
        for id_ in ids:
            desk.live(id_, "nothing", "nowhere")
            desk.write_end(id_, End(0, 0.0))
            DONE.add(desk.order(id_).name)
        return f"job-{ids[0]}"

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        return {}

    def drop(self, job: str) -> None: ...

    def places(self) -> int:
        return 1

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
    return {"seconds_per_run": (time.monotonic() - began) / runs, "load": os.getloadavg()[0]}


def real(folder: Path, runs: int, where: Where) -> dict[str, float]:
    """Seconds of a run that does nothing on a real engine; how many were not done, or done more than once."""
    folder.mkdir()
    names = [folder / f"done-{i}" for i in range(runs)]
    code = ["sh", "-c", 'echo done >> "$0"']
    todo = [Job(name.name, list, name.exists, folder / "logs" / f"{name.name}.log", elsewhere=[*code, str(name)],
                relab=False) for name in names]  # fmt: skip
    executor = engines.of(where, folder)
    before, began, cpu = os.getloadavg()[0], time.monotonic(), time.process_time()
    result = local.run(todo, 1, at=executor)
    seconds = time.monotonic() - began
    lines = [len(name.read_text().splitlines()) if name.exists() else 0 for name in names]
    row = {"runs": runs, "seconds_per_run": seconds / runs, "lost": lines.count(0), "twice": sum(n > 1 for n in lines)}
    row["submitter_cpu_s_per_run"] = (time.process_time() - cpu) / runs
    return row | {"failed": len(result.failed), "load_before": before, "load_after": os.getloadavg()[0]}


def clusters(folder: Path, runs: int, names: Sequence[str]) -> dict[str, object]:
    """Real engines, begun and ended here."""
    folder.mkdir()
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "cluster"))
    row: dict[str, object] = {}
    if "ray" in names:
        from ray_nodes import RayNodes

        with RayNodes() as nodes:
            at = f"ray:{nodes.address}"
            real(folder / "warm", 12, Where(on=at))  # workers that are there already, as in the middle of a sweep
            row["ray"] = real(folder / "ray", runs, Where(on=at))
            print("ray", row["ray"], flush=True)
            row["ray_pack_10"] = real(folder / "ray-packs", runs, Where(on=at, pack=10))
            print("ray, packs of ten", row["ray_pack_10"], flush=True)
    if "slurm" in names:
        from slurm_nodes import SlurmNodes

        with SlurmNodes() as daemons:
            os.environ.update(daemons.env)
            row["slurm"] = real(folder / "slurm", max(20, runs // 50), Where(on="slurm"))
            print("slurm", row["slurm"], flush=True)
            row["slurm_pack_10"] = real(folder / "slurm-packs", max(20, runs // 10), Where(on="slurm", pack=10))
            print("slurm, packs of ten", row["slurm_pack_10"], flush=True)
    return row


def main(words: Sequence[str]) -> None:
    runs = int(words[0]) if words and words[0].isdecimal() else 1000
    row: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, count in (("few", runs), ("many", 4 * runs)):
            (Path(folder) / name).mkdir()
            row[f"submitter_{count}"] = away(Path(folder) / name, count)
            print(name, row[f"submitter_{count}"])
        row[f"local_{min(runs, 100)}"] = here(Path(folder), min(runs, 100))
        print("local", row[f"local_{min(runs, 100)}"], flush=True)
        row |= clusters(Path(folder) / "real", runs, words)
    write("engines", {"machine": machine(), **row})


if __name__ == "__main__":
    main(sys.argv[1:])
