"""Is nothing lost and nothing done twice on machines that die, refuse or are wanted back? The border is made up.

Everything else is real: the desk is a folder, and each job of the made-up engine is a process of relab's own node.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Sequence
from pathlib import Path

import pytest

from relab.config.base import ConfigError
from relab.lab.execute import cluster, engines, local, node, release, where
from relab.lab.execute.cluster import Cluster, JobState
from relab.lab.execute.desk import Desk, End, Order
from relab.lab.execute.local import Job
from relab.lab.execute.where import Where

ONE_LINE = "import sys; open(sys.argv[1], 'a').write('done\\n')"
SLOW = "import sys, time; open(sys.argv[1], 'a').write('begun\\n'); time.sleep(float(sys.argv[2]));" + ONE_LINE[11:]


class Machines:
    """An engine at whose border each job is a process here; `kill` takes a machine away, job and all."""

    every_s, limits = 0.0, False

    def __init__(self, cores: int = 4, source: str | None = None) -> None:
        self.cores, self.jobs, self.sizes, self.source = (
            cores,
            dict[str, subprocess.Popen[bytes]](),
            list[int](),
            source,
        )

    def send(self, at: Desk, ids: Sequence[str]) -> str:
        self.sizes.append(len(ids))
        job = f"job-{len(self.jobs)}"
        words = [sys.executable, "-m", "relab.lab.execute.node", str(at.folder), job, *ids]
        self.jobs[job] = subprocess.Popen(words, start_new_session=True)
        return job

    def states(self, jobs: Collection[str]) -> dict[str, JobState]:
        return {job: JobState("running") for job in jobs if job in self.jobs and self.jobs[job].poll() is None}

    def drop(self, job: str) -> None:
        self.jobs[job].terminate()

    def kill(self, job: str) -> None:
        os.killpg(self.jobs[job].pid, signal.SIGKILL)
        self.jobs[job].wait()

    def room(self) -> int:
        return self.cores

    def close(self) -> None:
        for process in self.jobs.values():
            process.wait(30)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "SETTLE_S", 0.05)
    monkeypatch.setattr(cluster, "SILENT_S", 0.5)


def jobs(folder: Path, count: int, code: str = ONE_LINE, *more: str) -> list[Job]:
    """Each writes a line into a file of its own, by which it can be counted."""
    folder.mkdir(exist_ok=True)
    names = [f"run-{i}" for i in range(count)]
    return [Job(name, list, lambda path=folder / name: "done" in text(path), folder / "logs" / f"{name}.log",  # type: ignore[misc]
                elsewhere=[sys.executable, "-c", code, str(folder / name), *more], relab=False)
            for name in names]  # fmt: skip


def text(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def run(folder: Path, todo: list[Job], machines: Machines, at: Where | None = None, **words: object) -> local.Result:
    executor = Cluster(machines, folder, at or Where(on="slurm"))
    return local.run(todo, 1, at=executor, **words)  # type: ignore[arg-type]


# ---- Once each


def test_all_are_done_once_in_packs(tmp_path: Path) -> None:
    machines, todo = Machines(), jobs(tmp_path, 7)
    result = run(tmp_path, todo, machines, Where(on="slurm", pack=3))
    assert sorted(result.finished) == sorted(job.name for job in todo)
    assert [text(tmp_path / job.name) for job in todo] == ["done\n"] * 7
    assert machines.sizes == [3, 3, 1]


def test_at_most_k_are_given_away_at_once(tmp_path: Path) -> None:
    machines = Machines(cores=2)
    executor = Cluster(machines, tmp_path, Where(on="slurm", at_once=2))
    assert local.run(jobs(tmp_path, 4), 1, at=executor).failed == []
    assert machines.sizes == [1, 1, 1, 1]
    assert not Cluster(machines, tmp_path, Where(on="slurm", at_once=1)).sent


def test_a_machine_that_dies_is_replaced_and_its_run_done_again(tmp_path: Path) -> None:
    machines = Machines()
    todo = jobs(tmp_path, 1, SLOW, "0.3")
    killed = []

    def look(names: Collection[str]) -> list[str]:
        if names and not killed:
            killed.append(names)
            machines.kill("job-0")
        return []

    result = run(tmp_path, todo, machines, look=look, every_s=0.01)
    assert result.finished == ["run-0"]
    assert killed
    assert len(machines.jobs) == 2
    assert text(tmp_path / "run-0").count("done") == 1


def test_a_program_that_fails_is_not_tried_again(tmp_path: Path) -> None:
    machines = Machines()
    result = run(tmp_path, jobs(tmp_path, 1, "import sys; print('why'); sys.exit(3)"), machines)
    assert result.failed == ["run-0"]
    assert len(machines.jobs) == 1
    assert "why" in text(tmp_path / "logs" / "run-0.log")


def test_a_run_that_loses_three_machines_has_failed(tmp_path: Path) -> None:
    machines = Machines()
    result = run(tmp_path, jobs(tmp_path, 1, "import os, signal; os.kill(os.getppid(), signal.SIGKILL)"), machines)
    assert result.failed == ["run-0"]
    assert len(machines.jobs) == local.TRIES


# ---- Being asked to end


def test_what_a_watcher_stops_ends_and_is_not_started_again(tmp_path: Path) -> None:
    machines = Machines()
    result = run(tmp_path, jobs(tmp_path, 1, SLOW, "60"), machines, look=list, every_s=0.01)
    assert result.stopped == ["run-0"]
    assert len(machines.jobs) == 1


def test_time_that_is_up_is_no_death(tmp_path: Path) -> None:
    """Each job may take a moment; the program goes on from its file, and needs five jobs: more than three deaths."""
    code = ("import sys, time, pathlib; p = pathlib.Path(sys.argv[1]); n = len(p.read_text()) if p.exists() else 0;"
            "p.write_text('x' * (n + 1)); time.sleep(60 if n < 4 else 0); p.write_text('done')")  # fmt: skip
    machines = Machines()
    result = run(tmp_path, jobs(tmp_path, 1, code), machines, Where(on="slurm", minutes=0.2 / 60))
    assert result.finished == ["run-0"]
    assert len(machines.jobs) >= 5 > local.TRIES


def test_a_cancelled_sweep_leaves_nothing_running(tmp_path: Path) -> None:
    machines = Machines()
    executor = Cluster(machines, tmp_path, Where(on="slurm"))
    (job,) = jobs(tmp_path, 1, SLOW, "60")
    executor.submit(local.Work(job.name, tuple(job.elsewhere), job.log))
    executor.watch()
    while not text(tmp_path / "run-0"):
        time.sleep(0.02)
    executor.close()
    assert all(process.poll() is not None for process in machines.jobs.values())
    assert executor.collect()[0].cancelled


# ---- A submitter that was killed


def test_what_an_engine_still_has_is_waited_for_and_not_sent_again(tmp_path: Path) -> None:
    machines, (job,) = Machines(), jobs(tmp_path, 1, SLOW, "0.5")
    first = Cluster(machines, tmp_path, Where(on="slurm"))
    first.submit(local.Work(job.name, tuple(job.elsewhere), job.log))
    first.watch()  # and then it is killed
    result = run(tmp_path, [job], machines)
    assert result.finished == ["run-0"]
    assert len(machines.jobs) == 1
    assert text(tmp_path / "run-0") == "begun\ndone\n"


def test_a_try_waits_until_the_one_before_it_is_dead(tmp_path: Path) -> None:
    at = Desk(tmp_path).make()
    at.live("run-0.1", "job-0", "elsewhere")
    log = tmp_path / "logs" / "x.log"
    words = [sys.executable, "-c", ""]
    at.put(Order("run-0.2", words, False, str(log), str(tmp_path), silent_s=0.3, source=release.release()))
    began = time.monotonic()
    node.carry_out(str(at.folder), ["run-0.2"])
    assert time.monotonic() - began >= 0.3, "the other one could still have been writing"
    assert (at.end("run-0.2") or End(1, 0)).code == 0


# ---- Machines that cannot


def test_another_relab_at_the_other_end_is_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "release", lambda: "relab 9.9.9, code 00000000")
    with pytest.raises(
        ConfigError, match=r"has relab \S+ code \w+, but the runs were submitted by relab 9\.9\.9, code"
    ):
        run(tmp_path, jobs(tmp_path, 1), Machines())
    assert text(tmp_path / "run-0") == ""


def test_a_folder_that_the_other_end_cannot_write_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (job,) = jobs(tmp_path, 1)
    job.log = tmp_path / "file" / "x.log"
    with pytest.raises(ConfigError, match="cannot write to"):
        run(tmp_path, [job], Machines())


# ---- What was said


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"on": "moon"}, "must be local or ray[:address] or slurm, but is 'moon'"),
        ({"cors": 2}, "unknown key `execute.cors`; the nearest known one is `cores`"),
        ({"cores": 0}, "`execute.cores` must be at least 1"),
        ({"on": "slurm:x"}, "only Ray has an address"),
        ({"on": "ray", "partition": "short"}, "`execute.partition` is for Slurm"),
        ({"on": "slurm", "lines": ["--x\nrm -rf /"]}, "options of sbatch"),
        ({"minutes": -1}, "`execute.minutes` must be above 0"),
        (3, "must be an engine or a table"),
    ],
)
def test_a_slip_is_told_with_its_key(values: object, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        where.of(values)
    assert said in str(error.value)


def test_the_command_line_counts_more_than_the_file() -> None:
    assert where.of({"on": "slurm", "cores": 2}, "ray:1.2.3.4:6379").address == "1.2.3.4:6379"
    assert where.of("slurm").to_dict() == {"on": "slurm"}
    assert engines.of(Where(), Path()) is None
