"""Is nothing lost and nothing done twice on machines that die, refuse or are wanted back? The border is made up.

Everything else is real: the desk is a folder, and each job of the made-up engine is a process of relab's own node.
"""

from __future__ import annotations

import fcntl
import json
import re
import socket
import subprocess
import sys
import time
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace

import pytest

from lab_machines import Machines
from relab import cli
from relab.base import processes
from relab.config.base import ConfigError
from relab.lab.execute import cluster, engines, local, node, ray_border, release, slurm_border, where
from relab.lab.execute.cluster import Cluster
from relab.lab.execute.desk import Desk, End, Order
from relab.lab.execute.engine_error import EngineError
from relab.lab.execute.local import Job
from relab.lab.execute.where import Where

ONE_LINE = "import sys; open(sys.argv[1], 'a').write('done\\n')"
SLOW = "import sys, time; open(sys.argv[1], 'a').write('begun\\n'); time.sleep(float(sys.argv[2]));" + ONE_LINE[11:]


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


def test_one_that_fails_on_a_machine_gets_one_try_on_another(tmp_path: Path) -> None:
    """A machine without a library, or with a full disk, fails whatever it is given."""
    machines = Machines(names=("broken", "sound"))
    code = "import os, sys; print('no such library') if os.environ['SLURMD_NODENAME'] == 'broken' else None;"
    code += " sys.exit(3) if os.environ['SLURMD_NODENAME'] == 'broken' else open(sys.argv[1], 'a').write('done')"
    result = run(tmp_path, jobs(tmp_path, 2, code), machines, Where(on="slurm", pack=2))
    assert result.failed == []
    assert machines.sizes == [2, 1, 1], "what is tried again is not packed with others"
    assert "it failed on broken (exit code 3); one more try, elsewhere" in text(tmp_path / "logs" / "run-0.log")


def test_one_that_fails_everywhere_has_failed_after_two_machines(tmp_path: Path) -> None:
    machines = Machines(names=("a", "b", "c"))
    assert run(tmp_path, jobs(tmp_path, 1, "import sys; sys.exit(3)"), machines).failed == ["run-0"]
    assert len(machines.jobs) == 2


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


def test_a_limit_that_is_always_over_before_the_run_begins_is_a_failure_that_says_so(tmp_path: Path) -> None:
    """A relab that never comes as far as its first file would stand in the line for ever."""
    machines = Machines()
    todo = jobs(tmp_path, 1)
    todo[0].elsewhere, todo[0].relab = ["serve", str(tmp_path), "--port", "0"], True  # lasts, and writes no file
    result = run(tmp_path, todo, machines, Where(on="slurm", minutes=0.01 / 60))
    assert result.failed == ["run-0"]
    assert len(machines.jobs) == node.VAIN
    assert "3 times in a row the time limit was over before the run had come any further" in text(todo[0].log)


@pytest.mark.parametrize("last", [0, 1, 2])
def test_a_run_that_came_further_has_its_next_limits_before_it(tmp_path: Path, last: int) -> None:
    desk = Desk(tmp_path).make()
    desk.write_end("r.1", End(-2, 1.0, again=True, vain=last))
    asked = node.Try(desk, Order("r.1", ["x"], True, str(tmp_path / "log"), str(tmp_path)), "", node.Stop())
    before = asked.reached()
    (tmp_path / "runs/r").mkdir(parents=True)
    (tmp_path / "runs/r/meta.json").write_text("{}")
    assert asked.reached() == before, "every try writes that"
    (tmp_path / "runs/r/metrics.jsonl").write_text("{}\n")
    assert asked.reached() != before
    end = asked.in_vain(End(-2, 1.0, again=True))
    assert (end.again, end.vain) == (last < 2, last + 1)  # Slurm has put the same job into its line again


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


# ---- An engine that does not answer for a while


def test_an_engine_that_is_begun_again_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines, answers = Machines(), iter([True, False, False])
    states = machines.states

    def sometimes(names: Collection[str]) -> dict[str, cluster.JobState]:
        if not next(answers, True):
            raise EngineError("Slurm refuses squeue: Unable to contact slurm controller")
        return states(names)

    monkeypatch.setattr(machines, "states", sometimes)
    assert run(tmp_path, jobs(tmp_path, 1, SLOW, "0.3"), machines).finished == ["run-0"]
    assert len(machines.jobs) == 1, "it was sent again"


def test_one_that_never_answers_again_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machines = Machines()
    monkeypatch.setattr(cluster, "PATIENCE_S", 0.2)
    executor = Cluster(machines, tmp_path, Where(on="slurm"))
    (job,) = jobs(tmp_path, 1)
    executor.submit(local.Work(job.name, tuple(job.elsewhere), job.log))

    def never(names: Collection[str]) -> dict[str, cluster.JobState]:
        raise EngineError("Slurm refuses squeue")

    monkeypatch.setattr(machines, "states", never)
    executor._send()
    executor._look()  # the first silence is no error
    time.sleep(0.25)
    with pytest.raises(EngineError, match="refuses squeue"):
        executor._look()
    machines.close()


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
    began = time.monotonic()
    at.live("run-0.1", "job-0", "elsewhere")
    log = tmp_path / "logs" / "x.log"
    words = [sys.executable, "-c", ""]
    at.put(Order("run-0.2", words, False, str(log), str(tmp_path), silent_s=0.3, source=release.release()))
    node.carry_out(str(at.folder), ["run-0.2"])
    assert time.monotonic() - began >= 0.3, "the other one could still have been writing"
    assert (at.end("run-0.2") or End(1, 0)).code == 0


def test_a_try_waits_until_nobody_writes_the_record_any_more(tmp_path: Path) -> None:
    """A process that a lost machine left behind gives no signs of life, but holds the lock of its run."""
    desk = Desk(tmp_path).make()
    (tmp_path / "runs/r").mkdir(parents=True)
    order = Order("r.2", ["x"], True, str(tmp_path / "log"), str(tmp_path), silent_s=0.05)
    with open(tmp_path / "runs/r/events.jsonl", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert not node.Try(desk, order, "", node.Stop()).alone()
    assert node.Try(desk, order, "", node.Stop()).alone()


BETWEEN = """
import sys, time
from pathlib import Path
from relab.lab.execute import local
folder = Path(sys.argv[1])
code = folder / "code" if sys.argv[2] == "kept" else None
program = f"import os, time; open({str(folder / 'pid')!r}, 'w').write(str(os.getpid()) + ' '); time.sleep(60)"
(folder / "logs").mkdir()
local.start(local.Work("x", (sys.executable, "-c", program), folder / "logs/x.log", code=code), "me")
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends a child with its parent")
@pytest.mark.parametrize("kind", ["bare", "kept"])
def test_what_a_killed_relab_had_started_for_an_engine_ends_with_it(tmp_path: Path, kind: str) -> None:
    """Ray kills the children of a worker that it ends, and so whoever was to pass the word on to the run below."""
    words = [sys.executable, "-c", BETWEEN, str(tmp_path), kind]
    process = node.start(Order("r.1", words, False, str(tmp_path / "log"), str(tmp_path)))
    while not text(tmp_path / "pid").endswith(" "):
        assert process.poll() is None, text(tmp_path / "log")
        time.sleep(0.02)
    pid = int(text(tmp_path / "pid"))
    process.kill()
    process.wait()
    until = time.monotonic() + 20
    while processes.birth(pid) is not None:
        assert time.monotonic() < until, "it lives on, and would write"
        time.sleep(0.02)


def test_a_program_whose_starter_was_killed_at_once_never_begins(tmp_path: Path) -> None:
    """Killed between fork and the moment at which the kernel knows whom to tell: then nobody would be told."""
    code = (
        "import os, signal, sys; from relab.base.leash import die_with\n"
        "child = os.fork()\n"
        "if child: os.waitpid(child, 0); sys.exit(0)\n"
        "die_with(os.getppid() + 1, signal.SIGTERM)\n"
        "open(sys.argv[1], 'w')\n"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "begun")], check=True)
    assert not (tmp_path / "begun").exists()


# ---- Machines that cannot


def test_another_relab_at_the_other_end_is_an_error_that_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "release", lambda: "relab 9.9.9, code 00000000")
    with pytest.raises(
        ConfigError, match=r"has relab \S+ code \w+, but the runs were submitted by relab 9\.9\.9, code"
    ):
        run(tmp_path, jobs(tmp_path, 3), machines := Machines())
    assert text(tmp_path / "run-0") == ""
    assert all(process.poll() is not None for process in machines.jobs.values()), "one refusal leaves the others behind"


def test_a_folder_that_the_other_end_cannot_write_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (job,) = jobs(tmp_path, 1)
    job.log = tmp_path / "file" / "x.log"
    with pytest.raises(ConfigError, match="cannot write to"):
        run(tmp_path, [job], Machines())


def test_what_travels_with_its_environment_is_for_its_user_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path).make()
    desk.put(Order("r.1", ["x"], True, str(tmp_path / "log"), str(tmp_path), env={"TOKEN": "x"}))
    (file,) = (desk.folder / "work").iterdir()
    assert file.stat().st_mode & 0o077 == 0


def test_a_desk_that_the_other_end_cannot_write_is_told_by_the_engine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be left there that says so: what is raised is all that comes home."""

    def write(self: Desk, id_: str, end: End) -> None:
        raise OSError(30, "Read-only file system", str(tmp_path / "engine/ends/r.1.json"))

    desk = Desk(tmp_path).make()
    desk.put(Order("r.1", ["x"], True, str(tmp_path / "log"), str(tmp_path), source="another relab"))
    monkeypatch.setattr(Desk, "write_end", write)
    with pytest.raises(EngineError, match=r"\S+ cannot write to \S+/engine/ends/r.1.json \(Read-only file system\)"):
        node.carry_out(str(desk.folder), ["r.1"])


def test_a_folder_that_the_other_end_does_not_see_is_an_error_with_both_ways_out(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"does not see \S+/nowhere: put it on a file system .*shared: false"):
        node.carry_out(str(tmp_path / "nowhere" / "engine"), ["run-0.1"])


class TaskError(Exception):
    cause = EngineError("box does not see /home/q: put it on a file system that all machines share")


def test_what_a_ray_worker_cannot_do_ends_the_call_and_is_not_waited_for(tmp_path: Path) -> None:
    """A task that raised would be taken for a lost machine, three times, or for an engine that is silent."""

    def get(task: object) -> None:
        raise TaskError

    border = ray_border.RayBorder.__new__(ray_border.RayBorder)
    errors = SimpleNamespace(RayTaskError=TaskError, TaskCancelledError=KeyError, RayError=OSError)
    border.ray = SimpleNamespace(get=get, exceptions=errors)
    border.tasks, border.desks = {"ray-1": "task"}, {}
    with pytest.raises(ConfigError, match="box does not see /home/q"):
        border._settle("ray-1", "task")


def test_ray_prints_no_log_of_a_lost_machine_between_our_lines() -> None:
    ray = SimpleNamespace(_private=SimpleNamespace(worker=SimpleNamespace(_worker_logs_enabled=True)))
    ray_border.keep_silent(ray)
    assert not ray._private.worker._worker_logs_enabled
    ray_border.keep_silent(SimpleNamespace(_private=SimpleNamespace(worker=SimpleNamespace())))  # another Ray


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
        ({"on": "slurm", "shared": False}, "`execute.shared: false` is for Ray"),
        ({"on": "ray", "scratch": "/fast"}, "`execute.scratch` goes with `shared: false`"),
        ({"on": "ray", "shared": False, "files": ["../x"]}, "`execute.files` must be files or folders below"),
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
    for values, on in (({"partition": "short"}, "slurm"), ({"shared": False}, "ray")):  # a file that names no engine
        assert where.of(where.of(values).to_dict(), on).on == on
    assert engines.of(Where(), Path()) is None


# ---- What engines have, in the table of `relab queue`


def test_the_queue_shows_what_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    at = Desk(tmp_path / "experiments" / "lr").make()
    for number, id_ in enumerate(("a-s0.1", "a-s1.1", "a-s2.1", "a-s2.2"), 1):
        at.keep_sent(f"ray-{number}", [id_])
    at.live("a-s0.1", "ray-1", "box")
    at.write_end("a-s2.2", End(0, 1.0, "box"))
    assert cli.main(["queue"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"state +engine +where +since +what +more\n", text)
    assert re.search(r"\nrunning +ray +box +\S+ +\S*experiments/lr: a-s0 +job ray-1\n", text)
    assert re.search(r"\nwaiting +ray +\S+ +\S*experiments/lr: a-s1 +job ray-2; for a worker of Ray\n", text)
    assert "a-s2" not in text, "it has ended, whatever became of its first try"
    assert cli.main(["queue", "--json"]) == 0
    away = json.loads(capsys.readouterr().out)["away"]
    rows = [(row["run"], row["state"], row["engine"], row["host"]) for row in away]
    assert rows == [("a-s0", "running", "ray", "box"), ("a-s1", "waiting", "ray", "")]


def test_one_table_has_all_engines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Entries of the queue here, a run on Ray whose submitter is gone, jobs of Slurm with its word why they wait."""
    monkeypatch.chdir(tmp_path)
    assert cli.main(["queue", "add", "--", "sleep", "9"]) == 0
    ray = Desk(tmp_path / "sweeps" / "s").make()
    ray.keep_sent("ray-t1", ["t1-s0.1"])
    path = ray.folder / "sent" / "t1-s0.1.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "by": gone()}))
    at = Desk(tmp_path / "loops" / "l").make()
    for number in ("17", "18"):
        at.keep_sent(number, [f"p001-s{number}.1"])
    monkeypatch.setattr(slurm_border, "states", lambda jobs: {"17": cluster.JobState("waiting", "Resources")})
    capsys.readouterr()
    assert cli.main(["queue"]) == 0
    table = [re.split(r"  +", line) for line in capsys.readouterr().out.splitlines()]
    states = [
        (line[0], line[1]) for line in table[table.index(["state", "engine", "where", "since", "what", "more"]) + 1 :]
    ]
    assert states == [("waiting", "here"), ("waiting", "slurm"), ("left", "ray"), ("left", "slurm")]
    more = [line[-1] for line in table[-3:]]
    assert more == ["job 17; Resources", "job ray-t1; its submitter is gone: the same call goes on with it",
                    "job 18; Slurm has it no more: the same call goes on with it"]  # fmt: skip


def gone() -> str:
    """A process of this machine that has ended."""
    code = "from relab.base import processes; print(processes.myself())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()


# ---- Slurm's script, and its words


def test_the_script_asks_for_what_was_said(tmp_path: Path) -> None:
    at = Desk(tmp_path)
    place = Where(on="slurm", cores=2, memory_mb=4000, gpus=1, minutes=90, partition="short", account="lab",
                  lines=("--constraint=avx512",), modules=("cuda/12.4",), venv="/v env", env={"A": "b c"})  # fmt: skip
    text = slurm_border.script(place, at, ["a-s0.1", "a b.1"])
    for line in (
        "--cpus-per-task=2", "--mem=4000M", "--gpus=1", "--time=1:30:00", "--signal=B:USR1@60", "--partition=short",
        "--account=lab", "--constraint=avx512", "--requeue",
    ):  # fmt: skip
        assert f"#SBATCH {line}\n" in text
    assert "module load cuda/12.4 || exit 78\nsource '/v env/bin/activate' || exit 78\nexport A='b c'\n" in text
    assert "\npython -P -m relab" in text
    assert "$SLURM_JOB_ID a-s0.1 'a b.1' &" in text
    assert subprocess.run(["bash", "-n"], input=text, text=True, check=False).returncode == 0


@pytest.mark.parametrize(("engine", "said"), [("slurm", "sbatch is not there"), ("ray", "pip install 'relab[ray]'")])
def test_an_engine_that_is_not_installed_is_an_error_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str, said: str
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(EngineError) as error:
        engines.of(Where(on=engine), tmp_path / "x")
    assert said in str(error.value)
    assert not (tmp_path / "x").exists()


def test_an_address_that_does_not_answer_is_an_error_at_once() -> None:
    """Ray itself ends the whole process after a while: nobody would be told."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(EngineError, match=rf"no Ray cluster answers at {address}: Connection refused"):
            ray_border.check_answers(address)
    ray_border.check_answers("auto")
    ray_border.check_answers(None)


def test_what_slurm_refuses_is_told_in_its_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in slurm_border.PROGRAMS:
        (tmp_path / name).write_text("#!/bin/sh\necho 'Unable to contact slurm controller' >&2; exit 1\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    with pytest.raises(EngineError, match=r"Slurm refuses sinfo: Unable to contact slurm controller"):
        engines.of(Where(on="slurm"), tmp_path / "x")
