"""Is what waits in a queue run once, in order, and by somebody, whoever is killed meanwhile?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from relab import cli
from relab.base import processes
from relab.base.jsonl import RecordError
from relab.config.base import ConfigError
from relab.lab.execute import control, submit
from relab.lab.execute import entry as entries
from relab.lab.execute.executor import Executor, Needs, Work
from relab.lab.execute.local import Local
from relab.lab.execute.outlook import describe
from relab.lab.execute.queue import STATES, Item, Queue
from relab.lab.execute.slots import Slots
from relab.lab.execute.worker import Worker, how_by_code

RELAB = [sys.executable, "-m", "relab.cli"]
SUBMITTER = """
import sys
from pathlib import Path
from relab.lab.execute import submit
from relab.lab.execute.queue import Queue
for i in range(int(sys.argv[2])):
    Queue(Path(sys.argv[1])).add(submit.program(["sh", "-c", f"sleep 0.1; echo {sys.argv[3]}{i} >> out"]))
"""


@pytest.fixture
def queue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Queue]:
    """An empty queue in the folder in which we stand; nothing of it is left running."""
    monkeypatch.chdir(tmp_path)
    yield Queue(tmp_path / "queue").make()
    for each in processes.ours():
        if f"{tmp_path}" in each.command:
            processes.end(each, 0.1)


def shell(queue: Queue, text: str, priority: int = 0, **needs: Any) -> Item:
    return queue.add(submit.program(["sh", "-c", text], **needs), priority)


def wait_for(there: Callable[[], Any], seconds: float = 30.0) -> Any:
    until = time.monotonic() + seconds
    while not (value := there()):
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)
    return value


def worker_process(*more: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([*RELAB, "queue", "work", "--workers", "1", *more], stdout=subprocess.DEVNULL)


def lines(path: str = "out") -> list[str]:
    return Path(path).read_text().split() if Path(path).exists() else []


def work(queue: Queue, workers: int = 1) -> Any:
    return Worker(queue, workers).run()


# ---- Nothing lost, nothing twice


def test_two_submitters_three_workers_one_of_them_killed(queue: Queue) -> None:
    adding = [subprocess.Popen([sys.executable, "-c", SUBMITTER, str(queue.folder), "30", who]) for who in "ab"]
    assert [each.wait() for each in adding] == [0, 0]
    workers = [worker_process() for _ in range(3)]
    wait_for(lambda: len(lines()) >= 10)
    victim = f"_{workers[0].pid}_"
    wait_for(lambda: any(victim in name.worker for name in queue.names("running")))
    workers[0].kill()
    workers[0].wait()
    assert [each.wait(60) for each in workers[1:]] == [0, 0]
    assert queue.counts() == {**dict.fromkeys(STATES, 0), "done": 60}
    assert Counter(lines()) == Counter([f"{who}{i}" for who in "ab" for i in range(30)])
    assert len(list((queue.folder / "results").glob("*.json"))) == 60


def test_only_one_of_many_gets_an_entry(queue: Queue) -> None:
    item = shell(queue, "true")
    claims = [queue.claim(item.name, f"worker_{i}") for i in range(5)]
    assert [claim is not None for claim in claims] == [True, False, False, False, False]
    assert queue.names("running")[0].worker == "worker_0"


def test_a_process_that_ends_after_its_worker_is_settled_by_the_next(queue: Queue) -> None:
    """Its exit code was seen by nobody, but it has written it down."""
    shell(queue, "while [ ! -e go ]; do sleep 0.02; done; echo x >> out; exit 3")
    worker = worker_process()
    wait_for(lambda: {each.job for each in processes.ours()} & {name.attempt for name in queue.names("running")})
    worker.kill()
    worker.wait()
    (orphan,) = [each for each in processes.orphans() if each.job == queue.names("running")[0].attempt]
    other = Worker(queue, 1)
    other.recover(grace_s=0.0)
    assert (other.haunted, queue.counts()["running"]) == (1, 1), "while its process lives, it is nobody else's"
    Path("go").touch()
    wait_for(lambda: not processes.is_there(orphan))
    assert work(queue).failed == 1
    assert (queue.counts()["failed"], lines()) == (1, ["x"])


def test_an_entry_whose_process_died_with_its_worker_is_tried_again(queue: Queue) -> None:
    shell(queue, "echo x >> out; [ -e go ] || sleep 60")
    worker = worker_process()
    wait_for(lines)
    worker.kill()
    worker.wait()
    (orphan,) = [each for each in processes.orphans() if each.job == queue.names("running")[0].attempt]
    processes.tell(orphan.pid, signal.SIGKILL)
    wait_for(lambda: not processes.is_there(orphan))
    Path("go").touch()
    assert work(queue).done == 1
    assert lines() == ["x", "x"]
    assert queue.names("done")[0].tries == 1


def test_a_worker_of_another_machine_is_dead_when_its_heart_stops(queue: Queue) -> None:
    item = shell(queue, "true")
    claimed = queue.claim(item.name, "elsewhere_00000000_12_34")
    assert claimed is not None
    assert work(queue).done == 0, "it beats"
    os.utime(claimed.path, (1, 1))
    assert work(queue).done == 1
    assert queue.result(item.name)["how"] == "lost"


def test_a_worker_whose_entry_was_taken_away_ends_its_process(queue: Queue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("relab.lab.execute.local.BEAT_S", 0.2)
    item = shell(queue, "echo x >> out; sleep 60")
    worker = Worker(queue, 1)
    wait_for(lambda: worker.step() and lines())
    running = next(queue.items(("running",)))
    assert queue.move(running, "done") is not None
    wait_for(lambda: not worker.step() and not worker.mine)
    assert queue.counts()["done"] == 1, "nor is it put back"
    assert not [each for each in processes.ours() if each.job == item.name.attempt]


def test_a_killed_process_is_tried_three_times_and_a_failing_one_once(queue: Queue) -> None:
    shell(queue, "echo k >> out; kill -9 $$")
    shell(queue, "echo f >> out; exit 1")
    assert work(queue).failed == 2
    assert Counter(lines()) == {"k": 3, "f": 1}
    outlooks = [describe(queue, item) for item in queue.items()]
    problems = {each.entry.words[2].split()[1]: each.problem for each in outlooks if each.entry and each.problem}
    assert problems["k"].startswith("exit code 137")
    assert problems["f"] == "exit code 1; it printed nothing"


# ---- Order, pause, cancel, retry


def test_priority_then_age(queue: Queue) -> None:
    for text, priority in (("a", 0), ("b", -1), ("c", 5), ("d", 0), ("e", 5)):
        shell(queue, f"echo {text} >> out", priority)
    assert work(queue).done == 5
    assert lines() == ["c", "e", "a", "d", "b"]
    with pytest.raises(ConfigError, match="-999 to 999"):
        shell(queue, "true", 1000)


def test_a_paused_queue_starts_nothing_and_a_paused_entry_lets_others_pass(queue: Queue) -> None:
    first, _ = shell(queue, "echo a >> out"), shell(queue, "echo b >> out")
    queue.pause(True)
    done = work(queue)
    assert (done.done, done.paused, lines()) == (0, True, [])
    queue.pause(False)
    assert control.pause(queue, first.id)[1] == "paused"
    assert work(queue).done == 1
    assert lines() == ["b"]
    assert control.resume(queue, first.id[:6])[1] == "waiting"
    assert work(queue).done == 1
    assert lines() == ["b", "a"]


def test_cancel_before_and_while_it_runs_and_retry(queue: Queue) -> None:
    waits, runs = shell(queue, "echo w >> out", -1), shell(queue, "echo r >> out; [ -e go ] || sleep 60")
    assert control.cancel(queue, waits.id)[1] == "cancelled"
    worker = Worker(queue, 1)
    wait_for(lambda: worker.step() and lines())
    assert "asked to end" in control.cancel(queue, runs.id)[1]
    wait_for(lambda: not worker.step())
    assert queue.counts()["cancelled"] == 2
    assert not queue.requests()
    with pytest.raises(ConfigError, match=r"is cancelled, but must be waiting or paused or running"):
        control.cancel(queue, runs.id)
    Path("go").touch()
    for item in (waits, runs):
        control.retry(queue, item.id)
    assert work(queue).done == 2
    assert lines() == ["r", "r", "w"]
    assert len(control.clear(queue, ("done", "cancelled"))) == 2
    kept = [path for folder in ("results", "codes", "logs", "asks") for path in (queue.folder / folder).iterdir()]
    assert kept == []


def test_what_runs_can_be_paused_and_goes_on_later(queue: Queue) -> None:
    item = shell(queue, "echo r >> out; [ -e go ] || sleep 60")
    worker = Worker(queue, 1)
    wait_for(lambda: worker.step() and lines())
    control.pause(queue, item.id)
    wait_for(lambda: not worker.step())
    assert queue.counts()["paused"] == 1
    Path("go").touch()
    control.resume(queue, item.id)
    assert work(queue).done == 1


def test_a_worker_that_is_told_to_end_puts_its_entries_back(queue: Queue) -> None:
    shell(queue, "echo x >> out; [ -e go ] || sleep 60")
    worker = worker_process()
    wait_for(lines)
    worker.send_signal(signal.SIGINT)
    assert worker.wait(30) == 130
    assert queue.counts()["waiting"] == 1
    Path("go").touch()
    assert work(queue).done == 1


# ---- Orphans


def test_an_orphan_is_found_and_ended_by_its_id(queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    item = shell(queue, "sleep 60 & echo x >> out; wait")
    worker = worker_process()
    wait_for(lines)
    assert item.name.attempt not in [each.job for each in processes.orphans()], "it has its worker"
    worker.kill()
    worker.wait()
    assert cli.main(["queue", "orphans", "--json"]) == 0
    rows = {row["job"]: row for row in json.loads(capsys.readouterr().out)["orphans"]}
    orphan = rows[item.name.attempt]
    assert orphan["ended"] is False
    assert cli.main(["doctor", "--json"]) in (0, 1)
    doctor = [line for line in json.loads(capsys.readouterr().out)["lines"] if line["name"] == "orphans"]
    assert doctor[0]["level"] == "warn"
    assert str(orphan["pid"]) in doctor[0]["found"]
    assert control.cancel(queue, item.id)[1] == "cancelled", "its worker is gone, so it is ended here"
    assert processes.birth(orphan["pid"]) is None
    assert item.name.attempt not in [each.job for each in processes.ours()], "the sleeping child is gone as well"


def test_a_process_with_a_used_id_is_not_ours() -> None:
    sleeper = subprocess.Popen(["sleep", "60"], start_new_session=True)
    try:
        born = processes.birth(sleeper.pid)
        assert processes.lives(sleeper.pid, born)
        assert not processes.lives(sleeper.pid, str(int(born or 0) + 1))
        stranger = processes.Ours(sleeper.pid, sleeper.pid, "17", "job", "owner", "")
        assert processes.end(stranger)
        assert sleeper.poll() is None, "it was left alone"
    finally:
        sleeper.kill()
        sleeper.wait()


def test_owners_are_known_by_place_id_and_birth() -> None:
    me = processes.myself()
    host, place, pid, birth = me.rsplit("_", 3)
    assert processes.is_alive(me) is True
    assert processes.is_alive(f"{host}_{place}_{pid}_{int(birth) + 1}") is False
    assert processes.is_alive(f"{host}_00000000_{pid}_{birth}") is None
    assert processes.is_alive("nonsense") is None


# ---- Slots


def watch_most(local: Local, works: list[Work]) -> int:
    for each in works:
        local.submit(each)
    most = 0
    while any(status.state != "ended" for status in local.watch()):
        most = max(most, len(local.running))
        time.sleep(0.01)
    return most


@pytest.mark.parametrize(
    ("cores", "memory_mb", "needs", "most"),
    [(4, None, Needs(1), 4), (4, None, Needs(2), 2), (4, 1000, Needs(1, 400), 2), (4, 1100, Needs(1), 2)],
)
def test_slots_by_core_and_memory(cores: int, memory_mb: float | None, needs: Needs, most: int, tmp_path: Path) -> None:
    """The last case: 512 MB until one of a kind has ended."""
    local = Local(Slots(cores, memory_mb))
    works = [Work(str(i), ("sleep", "0.3"), tmp_path / "log", needs=needs) for i in range(4)]
    assert watch_most(local, works) == most
    ended = local.collect()
    assert sorted(each.id for each in ended) == ["0", "1", "2", "3"]
    assert all(each.code == 0 and each.seconds >= 0.3 and each.rss_mb for each in ended)
    assert local.collect() == []


def test_what_could_never_fit_is_an_error_that_says_so(queue: Queue, tmp_path: Path) -> None:
    executor: Executor = Local(Slots(2, 1000.0))
    with pytest.raises(ConfigError, match=r"needs 1,500 MB, but there are 1,000 MB here"):
        executor.submit(Work("big", ("true",), tmp_path / "log", needs=Needs(1, 1500)))
    with pytest.raises(ConfigError, match=r"needs 3 cores, but there are 2 here"):
        executor.submit(Work("wide", ("true",), tmp_path / "log", needs=Needs(3)))
    large = shell(queue, "true", memory_mb=1e9)
    shell(queue, "true")
    summary = work(queue)
    assert summary.done == 1, "the others are run"
    assert "needs 1,000,000,000 MB" in summary.left[large.id]
    assert queue.counts()["waiting"] == 1


def test_memory_is_learned_from_what_ended(queue: Queue) -> None:
    code = "import sys; x = bytearray(200 * 2**20); sys.exit(0)"
    words = [sys.executable, "-c", code, "7"]
    queue.add(submit.program(words))
    assert worker_process().wait() == 0  # a small process: what it starts inherits its peak, in the kernel's books
    again = submit.program([*words[:-1], "8"])
    assert 200 < (queue.learned_mb(again.kind) or 0) < 400
    assert queue.learned_mb(submit.program(["true"]).kind) is None
    queue.add(again)
    entry = Worker(queue, 2).look(queue.names("waiting")[0])
    assert entry is not None
    assert entry.memory_mb == queue.learned_mb(again.kind)


# ---- relab's own runs


TINY = (
    "env=cartpole total_steps=40_000 algo.envs=8 algo.steps=16 algo.epochs=1 algo.minibatches=2 eval.every=4096"
    " eval.episodes=3"
).split()


def test_a_run_whose_worker_and_process_were_killed_is_resumed(
    queue: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["queue", "add", "--json", "train", "ppo", *TINY, "seed=3"]) == 0
    run = Path(json.loads(capsys.readouterr().out)["run"])
    worker = worker_process()
    wait_for(lambda: (run / "checkpoints" / "latest.json").exists() and lines(str(run / "metrics.jsonl")), 120)
    assert cli.main(["queue"]) == 0
    wait_for(lambda: shown_progress(capsys))
    worker.kill()
    worker.wait()
    for each in processes.orphans():
        if each.job == queue.names("running")[0].attempt:
            processes.tell(each.pid, signal.SIGKILL)
            wait_for(lambda each=each: not processes.is_there(each))
    assert work(queue).done == 1
    events = [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]
    assert [event["kind"] for event in events if event["kind"] in ("start", "resume", "finish")] == [
        "start", "resume", "finish",
    ]  # fmt: skip
    assert json.loads((run / "meta.json").read_text())["status"] == "finished"


def shown_progress(capsys: pytest.CaptureFixture[str]) -> bool:
    assert cli.main(["queue"]) == 0
    return " % of 40k steps, " in capsys.readouterr().out.replace("%", " %")


@pytest.mark.parametrize(
    ("words", "code", "says"),
    [
        (["add"], 64, "what is to be run?"),
        (["add", "--priority", "5"], 64, "what is to be run?"),
        (["add", "train", "ppo", "env=cartpol"], 64, "the nearest is 'cartpole-v1'"),
        (["add", "python", "x.py"], 64, "relab queue add -- python"),
        (["add", "--memory", "1e9", "--", "true"], 64, "needs 1,000,000,000 MB"),
        (["add", "--cores", "0", "--", "true"], 64, "`--cores` must be at least 1"),
        (["wrok"], 64, "no verb 'wrok'; the nearest is 'work'"),
        (["cancel", "ffff"], 2, "`ffff` means no entry"),
        (["cancel"], 64, "which entry?"),
        (["work", "--workers", "0"], 64, "must be at least 1"),
        (["list", "--queue", "nowhere"], 2, "there is no queue in nowhere"),
    ],
)
def test_what_cannot_be_is_said(
    words: list[str], code: int, says: str, queue: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["queue", *words]) == code
    assert says in capsys.readouterr().err
    assert sum(queue.counts().values()) == 0


def test_every_verb_speaks_json_and_help(queue: Queue, capsys: pytest.CaptureFixture[str]) -> None:
    id_ = shell(queue, "echo hello; exit 1").id
    for words in (["pause"], ["resume"], ["pause", id_], ["resume", id_], ["work"], ["show", id_], ["orphans"],
                  ["retry", "--failed"], ["cancel", id_], ["list"], ["retry", id_], ["clear"],
                  ["add", "--", "true"]):  # fmt: skip
        cli.main(["queue", words[0], "--json", *words[1:]])
        assert json.loads(capsys.readouterr().out)["schema"] == 1
        assert cli.main(["queue", words[0], "--help"]) == 0
        assert f"relab queue {words[0]}" in capsys.readouterr().out or words == ["list"]
    work(queue)
    assert cli.main(["queue", "show", id_]) == 0
    assert "    | hello" in capsys.readouterr().out
    shell(queue, "\x1b[31m")
    assert cli.main(["queue"]) == 0
    assert "\x1b" not in capsys.readouterr().out


# ---- Files


def test_names_hold_what_changes() -> None:
    name = entries.new_name(5)._replace(tries=3, worker=processes.myself())
    assert entries.parse(name.file) == name
    assert [entries.parse(file) for file in ("x.json", ".tmp", "0995-1-ab.0.json")] == [None] * 3
    assert how_by_code(0) == "done"
    assert [how_by_code(code) for code in (1, -9, 130, 137, 255)] == ["failed", "killed", "killed", "killed", "failed"]


def test_a_broken_entry_is_left_and_said_and_others_are_run(queue: Queue) -> None:
    broken, strange = shell(queue, "true"), shell(queue, "true")
    broken.path.write_text("{")
    strange.path.write_text('{"schema": 1, "words": ["true"]}')
    shell(queue, "true")
    summary = work(queue)
    assert (summary.done, len(summary.left)) == (1, 2)
    assert "must hold JSON" in summary.left[broken.id]
    assert "is no entry of a queue" in summary.left[strange.id]
    with pytest.raises(RecordError):
        queue.read(broken)
