"""Does a loop improve what can be improved, keep nothing else, and survive a kill at each of its steps?"""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from loops import PROGRAM, PYTHON, calls, prepare, write

from relab import cli
from relab.base import processes
from relab.base.jsonl import read_jsonl
from relab.config.base import ConfigError
from relab.formats.read import foreign_state
from relab.lab import loop
from relab.lab.execute import local
from relab.lab.experiment import cells, foreign, template
from relab.lab.loop import imported, lock, written
from relab.lab.loop import journal as journals
from relab.lab.loop.journal import Journal
from relab.lab.loop.lock import TamperedError


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def rows(without: tuple[str, ...] = ("time", "seal")) -> list[dict]:
    """The journal but for the clock."""
    return [{k: v for k, v in row.items() if k not in without} for row in read_jsonl("loops/l/journal")[0]]


def steady(row: dict) -> dict:
    """An event without what depends on how fast the machine is."""
    proposal = {k: v for k, v in row.get("proposal", {}).items() if k not in ("cost", "files")}
    return {**row, **({"proposal": proposal} if proposal else {})}


def test_from_a_bad_start_it_finds_a_better_setting_and_says_how_sure():
    write(x=0.1)
    looping = prepare()
    assert looping.go(2) == "2 proposals, as asked"
    first, second = looping.state.trials
    assert first.kept, "0.1 -> about 0.8 gains 3.6 standard deviations of the noise"
    assert looping.state.best == "p001"
    assert second.parent == "p001", "the next change is made to what was kept"
    decided = first.decided
    assert decided["low"] > 0
    assert decided["delta"] > decided["floor"] > 0
    assert not set(first.first["seeds"]) & set(decided["seeds"]), "fresh seeds decide"
    assert not set(decided["seeds"]) & set(first.stands["seeds"]), "and it is measured again on yet others"


def test_a_call_prints_a_table_and_leaves_its_pages(capsys: pytest.CaptureFixture[str]):
    path = write(x=0.1)
    assert cli.main(["loop", str(path), "--runs", "1", "--yes"]) == 0
    said = capsys.readouterr().out
    assert "x: 0.1 -> " in said, "old and new value of every key"
    assert "keeps would be expected by chance" in said
    folder = Path("loops/l")
    for name in (
        "LOG.md",
        "loop.md",
        "loop.json",
        "report.html",
        "best.json",
        "latest.json",
        "notes/p001.txt",
        "lock.json",
    ):
        assert (folder / name).is_file(), name
    notes = (folder / "notes/p001.txt").read_text()
    for head in ("Summary", "Throughput: 2 steps a run, ", "Key metrics", "Runs: 13; seeds 1000 to 1001, 1100 to 1104,",
                 "its command logs nothing of it: derived batch, trainer statistics, utilisation", "Context",
                 "Diagnosis", "Action taken", "Rationale", "Checks", "Next steps"):  # fmt: skip
        assert head in notes, head
    assert "not recorded" not in notes, "what cannot be known is named once"
    title, _, answer = (folder / "LOG.md").read_text().split("\n")[1:4]
    assert "p001: x 0.1 → " in title, "what was changed, not the loop's question once more"
    assert answer.startswith("**Answer.** Kept: x 0.1 → ")
    assert (folder / "LOG.md").read_text().count("**Answer.**") == 1, "of one proposal"
    page = (folder / "report.html").read_text()
    start = page.index("Kept of 1 proposal: x 0.1 -&gt; ")
    assert page.index('class="answer') < start < page.index("<table") < page.index("<svg"), "sentence, table, curve"
    assert "where the base has -0." in page[start : start + 300]
    assert "time not recorded" not in page, "the loop has waited for it"
    best = json.loads((folder / "best.json").read_text())
    assert best["config"] == "p001"
    assert best["runs"] == 6, "the runs that had no part in choosing it"


def test_json_has_the_same(capsys: pytest.CaptureFixture[str]):
    path = write(x=0.1)
    assert cli.main(["loop", str(path), "--runs", "0", "--yes", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert (body["best"], body["trials"], body["expected_by_chance"]) == ("base", [], 0.0)
    assert body["noise"]["n"] == 6


def test_a_dry_run_tells_the_cost_and_makes_nothing(capsys: pytest.CaptureFixture[str]):
    path = write()
    assert cli.main(["loop", str(path), "--runs", "3", "--dry-run"]) == 0
    assert "6 runs alike for the noise floor, then 3 proposals: 6 runs if all are dropped" in capsys.readouterr().out
    assert not Path("loops").exists()
    assert not calls()


def test_time_that_does_not_suffice_begins_nothing():
    write()
    prepare().go(0)
    looping = prepare()
    assert "of the time are left" in looping.go(3, seconds=0.0)
    assert not looping.state.trials


def lasting(seconds: float) -> None:
    """Every run so far took that long, as their states say."""
    for path in Path("loops/l/state").glob("*.json"):
        path.write_text(json.dumps({**json.loads(path.read_text()), "seconds": seconds}))


def test_runs_that_may_not_fit_into_the_time_are_not_begun_and_the_next_call_makes_them(monkeypatch):
    """Two at a time, 100 seconds each: of five fresh seeds and one of the base, four fit into 250 seconds."""
    write(x=0.1)
    prepare().go(0)
    looping = prepare()
    trial = looping.propose()
    assert trial is not None
    looping.look_first(trial)
    assert trial.stage == "confirm"
    lasting(100.0)
    before, looping = len(calls()), prepare()
    made, time_ = looping.arms.make, looping.arms.time

    def take(todo: list[cells.Cell]) -> None:
        made(todo)
        time_.began -= 100.0 * math.ceil(len(todo) / 2)

    monkeypatch.setattr(looping.arms, "make", take)
    why = looping.go(0, seconds=250.0)
    assert len(calls()) == before + 4
    assert why.startswith("2 runs to go before the next decision (up to 1m40s each), and ")
    assert rows()[-1] == {"event": "ended", "why": why}
    assert prepare().go(0, seconds=99.0).startswith("2 runs to go")
    assert len(calls()) == before + 4, "none of them fits"
    assert prepare().go(0) == "0 proposals, as asked"
    assert max(Counter(calls()).values()) == 1
    assert prepare().state.open is None, "the next call with time enough goes on"


def test_the_first_runs_tell_what_one_takes():
    write(x=0.1)
    assert "6 runs to go" in prepare().go(3, seconds=0.0)
    assert not calls()


def test_what_was_refuted_is_not_tried_again():
    write(x=1.0)
    looping = prepare()
    looping.go(4)
    tried = [(t.parent, *((k, c["to"]) for k, c in t.proposal["diff"].items())) for t in looping.state.trials]
    assert len(tried) == len(set(tried)) == 4
    allowed = looping.plan.policy.axes
    for trial in looping.state.trials:
        for key, change in trial.proposal["diff"].items():
            axis = allowed[key]
            assert axis.at(0.05) <= change["to"] <= axis.at(0.95), "no proposal sits on a border"


# ---- Killed


def child(before: bool) -> bool:
    """Goes on in a process of its own, which is killed at its first event: whether the loop was at its end."""
    pid = os.fork()
    if pid == 0:
        real = Journal.add

        def add(self: Journal, event: str, **facts: object) -> dict:
            if not before:
                real(self, event, **facts)
            os.kill(os.getpid(), signal.SIGKILL)
            raise AssertionError

        try:
            looping = prepare()
            if looping.state.trials and looping.state.open is None:
                os._exit(0)
            Journal.add = add  # type: ignore[method-assign]
            looping.go(1 - len(looping.state.trials))
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_killed_before_and_after_every_event_it_comes_to_the_same_and_runs_nothing_twice():
    write(x=0.1)
    deaths = 0
    while not child(before=deaths % 2 == 0):
        deaths += 1
        assert deaths < 60
    killed, runs = [steady(row) for row in rows() if row["event"] != "ended"], calls()
    assert deaths >= 2 * 6, "noise, proposed, first, decided, stands, scored"
    assert max(Counter(runs).values()) == 1, "nothing ran twice"
    for place in ("loops", "calls.txt"):
        os.rename(place, f"killed-{place}")
    prepare().go(1)
    assert [steady(row) for row in rows() if row["event"] != "ended"] == killed
    assert sorted(calls()) == sorted(runs)


def test_a_program_that_ends_while_its_next_try_is_prepared_has_run_once():
    """The loop was killed, and its program ends after it was asked about and before it would be started again."""
    write(x=0.1)
    looping = prepare()
    looping.go(0)
    cell = looping.arms.cell("base", 0)
    foreign.keep(cell, {**foreign_state.read_state(cell.folder), "exit_code": None, "pid": None})
    job = looping.arms.guarded(cells.job(looping.arms.experiment, cell, looping.arms.folder), cell)
    real = lock.check

    def ends_now(plan: loop.Loop, folder: Path, journal_says: str = "") -> None:
        real(plan, folder)
        foreign.code_path(cell).write_text("0\n")  # as the shell around it writes

    assert not job.done()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lock, "check", ends_now)
        assert local.run([job], 1).finished == [job.name]
    assert calls().count("base-s0") == 1
    assert (cell.folder / "progress.csv").is_file(), "what it left is not thrown away"


WAITS = "import os, time\nwhile not os.path.exists('go'):\n    time.sleep(0.01)\n"  # for the test


class Told(list):
    """Lets the program end once the loop says that it waits for it."""

    def append(self, line: str) -> None:
        super().append(line)
        if "still running since an earlier call" in line:
            Path("go").touch()


def test_a_program_that_outlived_its_loop_is_waited_for_and_runs_once():
    write(x=0.1, program=WAITS + PROGRAM)
    pid = os.fork()
    if pid == 0:
        try:
            prepare().go(0)
        finally:
            os._exit(1)
    state = Path("loops/l/state/base-s0.json")
    while not (state.is_file() and '"pid"' in state.read_text()):
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    prepare(lines=Told()).go(0)
    assert Path("go").exists(), "it said so"
    assert Counter(calls()) == Counter(f"base-s{k}" for k in range(6))


def test_a_trainer_without_a_record_yet_is_waited_for():
    """relab's own: between its start and its first file there is nothing to lock, and a second one would fail."""
    looping = (write(x=0.1), prepare())[1]
    cell = looping.arms.cell("p001", 7)
    words = [sys.executable, "-c", "input()", "--runs", str(cell.folder.parent), "--name", cell.folder.name]
    marks = {**os.environ, processes.JOB: cell.folder.name, processes.OWNER: processes.myself()}
    with subprocess.Popen(words, stdin=subprocess.PIPE, env=marks, start_new_session=True) as child:
        assert cells.busy(cell)
        assert not cells.busy(looping.arms.cell("p001", 8))
        assert child.stdin is not None
        child.stdin.write(b"\n")
    assert not cells.busy(cell)


def test_half_a_row_of_the_journal_is_cut_off():
    write(x=0.1)
    looping = prepare()
    looping.go(0)
    path = Path("loops/l/journal")
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"event": "propo')
    again = prepare()
    assert again.state.noise == looping.state.noise
    again.journal.add("ended", why="a test")
    assert path.read_bytes().startswith(whole + b'{"event":"ended"')


# ---- Cheats


def drop(text: str) -> None:
    Path("loops/l").mkdir(parents=True, exist_ok=True)
    Path("loops/l/next_config.yaml").write_text(text)


@pytest.mark.parametrize(
    ("proposal", "why"),
    [
        ("set: {seed: 7}", "`seed` is locked and must not become 7: it is the seed"),
        ("set: {budget: 9000}", "`budget` is locked and must not become 9000: it is the budget"),
        ("set: {metric: other}", "`metric` is locked"),
        ("set: {x: 100}", "`x` must be a number from 0.01 to 10, but is proposed as 100; propose a value inside"),
        ("set: {z: 1}", "`z` (proposed: 1) is no setting of the parent; known: x, y; allowed are x, y"),
        ("diff: {x: {from: 0.2, to: 0.3}}", "must be changed from what the parent has, 0.1"),
        ("set: {x: 0.1}", "goes from 0.1 to itself"),
        ("config: {x: 0.5, y: 2.0}\nrationale: a larger x", "that nothing in it names: y 1.0 -> 2.0"),
    ],
)  # fmt: skip
def test_what_must_not_run_is_refused_before_anything_does(proposal: str, why: str):
    write(x=0.1)
    lines: list[str] = []
    looping = prepare(lines=lines)
    drop(proposal)
    assert list(looping.proposer.taken()) == []
    assert why in looping.state.refused[-1]["why"]
    assert calls() == []
    assert not Path("loops/l/next_config.yaml").exists(), "it was put away"
    assert Path("loops/l/refused/r001.yaml").read_text() == proposal


@pytest.mark.parametrize("predicted", ["{delta: abc, low: [1], high: x}", "{low: .nan, high: 1}", "{low: 2, high: 1}"])
@pytest.mark.some(1)
def test_a_dropped_prediction_that_is_no_number_is_refused_and_the_loop_goes_on(predicted: str):
    write(x=0.1)
    looping = prepare()
    drop(f"set: {{x: 0.9}}\nrationale: nearer to 1\npredicted: {predicted}")
    looping.go(1)
    (refusal,) = looping.state.refused
    assert "`predicted." in refusal["why"]
    assert len(looping.state.trials) == 1


def test_two_calls_on_one_folder_do_not_write_one_journal(capsys: pytest.CaptureFixture[str]):
    path = write(x=0.1)
    with journals.claimed(Path("loops/l")):
        assert cli.main(["loop", str(path), "--runs", "1", "--yes"]) == 64
    assert "another process goes on with the loop" in capsys.readouterr().err
    assert cli.main(["loop", str(path), "--runs", "1", "--yes"]) == 0


def test_a_proposal_is_checked_while_the_loop_is_running_and_nothing_is_written(capsys: pytest.CaptureFixture[str]):
    path = write(x=0.1)
    looping = prepare()
    looping.go(0)
    assert looping.propose() is not None
    Path("mine.yaml").write_text("set: {y: 2.0}")
    files = {file: file.stat().st_mtime_ns for file in Path("loops").rglob("*")}
    with journals.claimed(Path("loops/l")):
        assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 0
    said = capsys.readouterr().out
    assert "the loop is running: p001 (x 0.1 -> " in said
    assert "), its first seeds;" in said
    assert "would run, as a change of base: y 1 -> 2" in said
    assert {file: file.stat().st_mtime_ns for file in Path("loops").rglob("*")} == files
    assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 0
    assert "running" not in capsys.readouterr().out


def test_a_proposal_that_stands_in_the_journal_twice_counts_once():
    write(x=0.1)
    looping = prepare()
    looping.go(1)
    text = Path("loops/l/journal").read_text()
    (line,) = [each for each in text.splitlines() if '"event":"proposed"' in each]
    Path("loops/l/journal").write_text(text.replace(line, f"{line}\n{line}"))
    assert [trial.k for trial in Journal(Path("loops/l")).state.trials] == [1]


@pytest.mark.parametrize(("more", "says"), [("  constraints: [nosuch > 1]", "nosuch"), ("  lock: [z]", "no setting")])
def test_limits_of_a_program_are_read_before_anything_runs(more: str, says: str):
    path = write(more=more)
    with pytest.raises(ConfigError, match=says):
        loop.load(path)


def test_an_evaluator_that_is_no_file_is_refused():
    write(more="evaluator: [nobody.py]")
    with pytest.raises(ConfigError, match=r"`evaluator` must name files, but 'nobody\.py' is none"):
        prepare()


def test_a_dropped_proposal_that_is_fine_runs_next_and_is_scored():
    write(x=0.1)
    looping = prepare()
    drop("set: {x: 0.9}\nrationale: nearer to 1\npredicted: {delta: 3.5, low: 1.0, high: 6.0}")
    looping.go(1)
    (trial,) = looping.state.trials
    assert trial.proposal["diff"] == {"x": {"from": 0.1, "to": 0.9}}
    assert trial.proposal["source"] == "dropped"
    assert trial.scored["score"]["verdict"] == "hit"
    assert Path("loops/l/proposals/p001-dropped.yaml").is_file()


def test_what_an_experiment_has_answered_no_is_refused(capsys: pytest.CaptureFixture[str]):
    path, place = write(x=0.1), Path("experiments/larger-x")
    place.mkdir(parents=True)
    command = template.join(loop.load(path).command)
    asked = {"command": command, "base": {"x": 0.1, "y": 1.0}, "variants": {"as now": {}, "larger": {"x": 0.9}}}
    (place / "experiment.yaml").write_text(json.dumps(asked))
    row = {"names": ["as now", "larger"], "verdict": "no", "text": "no: my_score +0.1 [-0.2, +0.3]", "n": [5, 5]}
    (place / "answer.json").write_text(json.dumps({"answers": [row]}))
    Path("mine.yaml").write_text("set: {x: 0.9}")
    assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 64
    said = capsys.readouterr().err
    assert "x 0.1 -> 0.9 was answered no before: no: my_score +0.1 [-0.2, +0.3] (experiments/larger-x)" in said
    Path("mine.yaml").write_text("set: {x: 0.8}")
    assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 0


def test_a_run_that_does_not_count_is_not_named_as_the_best():
    write(x=0.1, program=PROGRAM.replace("score = 4", "score = 1715 if seed == 0 else 4"))
    looping = prepare()
    looping.go(0)
    assert looping.state.void[0]["run"] == "base-s0"
    trial = journals.Trial(1, "base", {})
    written.pointers(looping, trial)
    best = json.loads(Path("loops/l/best.json").read_text())
    assert best["run"] != "base-s0"
    assert best["value"] == max(looping.arms.number(looping.arms.cell("base", seed)).value for seed in range(1, 6))


def test_check_says_what_would_be_refused(capsys: pytest.CaptureFixture[str]):
    path = write(x=0.1)
    Path("mine.yaml").write_text("set: {x: 0.5}")
    assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 0
    assert "would run, as a change of base: x 0.1 -> 0.5" in capsys.readouterr().out
    Path("mine.yaml").write_text("set: {x: 0.011}")
    assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 0, "within a step of ten"
    Path("mine.yaml").write_text("set: {seed: 3}")
    assert cli.main(["loop", str(path), "--check", "mine.yaml"]) == 64
    assert not calls()
    assert not Path("loops").exists(), "a check leaves nothing behind"


@pytest.mark.parametrize(("old", "new", "says"), [
    ("base: {x: 0.1, y: 1.0}", "base: [1]", "`base` must hold settings"),
    ("base: {x: 0.1, y: 1.0}", "base: {x: .nan, y: 1.0}", "`base.x` must be a finite number, but is nan"),
    ("base: {x: 0.1, y: 1.0}", "base: {x: .inf, y: 1.0}", "`base.x` must be a finite number, but is inf"),
    ("smallest_effect: 0.5", "smallest_effect: .nan", "`smallest_effect` must be a finite number"),
    ("smallest_effect: 0.5", "smallest_effect: .inf", "`smallest_effect` must be a finite number"),
    ("range: [-100, 100]", "range: [-100, .inf]", "`range.1` must be a finite number"),
    ("findings: false", "findings: false\nbudget: .inf", "`budget`"),
    ("findings: false", "findings: false\nbudget: .nan", "`budget`"),
    ("findings: false", "findings: false\nevaluator: 5", "`evaluator` must be a list of texts, but is 5"),
    ("findings: false", "findings: false\nquick: [1]", "`quick` must hold keys of this file"),
    ("findings: false", "findings: false\nstop_on: 5", "`stop_on`"),
    ("policy:", "policy:\n  lock: 5", "`policy.lock` must be a list of texts, but is 5"),
    ("policy:", "policy:\n  constraints: 5", "`policy.constraints` must be a list of texts, but is 5"),
    ("policy:", "policy:\n  constraints: ['" + "-" * 400 + "x < 1']", "must not be nested more than 60 deep"),
    ("policy:", "policy:\n  constraints: ['" + "not " * 120 + "x < 1']", "must not be nested more than 60 deep"),
])  # fmt: skip
def test_wrong_types_and_numbers_without_end_are_told_in_one_line(capsys, old: str, new: str, says: str):
    path = write(x=0.1)
    path.write_text(path.read_text().replace(old, new))
    assert cli.main(["loop", str(path), "--dry-run"]) == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert says in line


@pytest.mark.parametrize(("text", "says"), [
    ("diff: {x: {from: 0.1, to: 0.5}}\nset: {y: 2.0}", "holds `diff` and `set`, of which one would be dropped"),
    ("diff: {x: {from: 0.1, to: 0.5}}\noverride: {x: 0.5}", "holds `diff` and `override`"),
    ("set: {x: 0.5}\noverride: {x: 0.4}", "`x` is 0.4 in `override` and 0.5 in `set`"),
    ("config: {x: 0.5, y: 1.0}\nset: {x: 0.4}", "`x` is named as 0.4"),
])  # fmt: skip
def test_a_proposal_says_once_what_it_changes(capsys, text: str, says: str):
    Path("mine.yaml").write_text(text)
    assert cli.main(["loop", str(write(x=0.1)), "--check", "mine.yaml"]) == 64
    assert says in capsys.readouterr().err


def test_a_tampered_evaluator_stops_the_loop_and_what_ran_meanwhile_runs_again():
    write(x=0.1)
    prepare().go(0)
    good = Path("program.py").read_text()
    Path("program.py").write_text(good.replace("4 - 4 *", "99 - 4 *"))
    with pytest.raises(TamperedError, match=r"program.py .* -> .*; put it back"):
        prepare()
    Path("program.py").write_text(good)
    looping = prepare()
    real = looping.arms.guarded

    def tampering(job, cell):  # the program is changed while its own run is going on
        made = real(job, cell)
        start = made.command

        def begin() -> list[str]:
            words = start()
            Path("program.py").write_text(good + "\n# other\n")
            return words

        made.command = begin
        return made

    looping.arms.guarded = tampering  # type: ignore[method-assign]
    with pytest.raises(TamperedError):
        looping.go(1)
    assert looping.state.trials[0].first is None, "nothing was decided by it"
    Path("program.py").write_text(good)
    again = prepare()
    again.go(0)
    assert again.state.trials[0].stage == "done"
    assert list(Path("loops/l/void").iterdir()), "the run is kept aside"


HELPED = "import sys; sys.path.insert(0, '.'); import scoring.rules\n" + PROGRAM  # -I leaves the folder out


def test_modules_beside_the_evaluator_are_locked_with_it():
    """The program imports a package, which imports a module by dots; a third file is nobody's."""
    write(x=0.1, program=HELPED)
    Path("scoring").mkdir()
    for name, text in {"__init__": "", "rules": "from . import weights", "weights": "W = 1.0"}.items():
        Path(f"scoring/{name}.py").write_text(text)
    Path("stranger.py").write_text("")
    looping = prepare()
    looping.go(0)
    kept = lock.read_json(Path("loops/l"), lock.FILE)["evaluator"]
    assert {key for key in kept if "scoring/" in key} == {
        f"code scoring/{n}.py" for n in ("__init__", "rules", "weights")
    }
    Path("stranger.py").write_text("1")
    lock.check(looping.plan, looping.arms.folder)
    Path("scoring/weights.py").write_text("W = 2.0")
    with pytest.raises(TamperedError, match=r"code scoring/weights\.py"):
        looping.go(1)
    Path("scoring/weights.py").write_text("W = 1.0")
    lock.check(looping.plan, looping.arms.folder)
    Path("math.py").write_text("def log10(x): return 0.0")  # Python would find this one first
    with pytest.raises(TamperedError, match=r"code math\.py \(none -> "):
        lock.check(looping.plan, looping.arms.folder)


def test_compiled_files_do_not_decide_in_the_place_of_locked_ones():
    """A package folder or a module that is there compiled alone, and a forged copy in __pycache__."""
    write(x=0.1, program="import sys; sys.path.insert(0, '.'); import helper\n" + PROGRAM)
    Path("helper.py").write_text("")
    looping = prepare()
    looping.go(0)
    for name in ("helper/__init__.pyc", "helper.pyc", "math.pyc", "math.cpython-311-x86_64-linux-gnu.so"):
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).write_bytes(b"")
        with pytest.raises(TamperedError, match="none -> "):
            lock.check(looping.plan, looping.arms.folder)
        Path(name).unlink()
    Path("__pycache__").mkdir(exist_ok=True)
    forged, others = Path("__pycache__/helper.cpython-311.pyc"), Path("__pycache__/stranger.cpython-311.pyc")
    forged.write_bytes(b"")
    others.write_bytes(b"")
    lock.forget_bytecode(looping.plan)
    assert (forged.exists(), others.exists()) == (False, True)


def test_a_lock_that_was_written_by_a_run_locks_nothing():
    write(x=0.1)
    looping = prepare()
    looping.go(0)
    place = Path("loops/l") / lock.FILE
    body = json.loads(place.read_text())
    place.write_text(json.dumps(body))
    lock.check(looping.plan, looping.arms.folder)
    body["evaluator"] |= {"code of another": "0" * 16}
    place.write_text(json.dumps(body))
    with pytest.raises(TamperedError, match=r"lock\.json itself, which was not written by this loop"):
        lock.check(looping.plan, looping.arms.folder)


def test_what_a_program_imports_is_read_and_not_run():
    folder = Path("code")
    files = {"run.py": "def f():\n    import late\ntry:\n    import a.b\nexcept ImportError: pass\nimport os, json",
             "late.py": "raise SystemExit", "a/b.py": "from .. import outside\nfrom . import c\nimport late",
             "a/c.py": "this is no Python", "unused.py": "", "b.py": ""}  # fmt: skip
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    Path("outside.py").write_text("")
    assert imported.beside(folder / "run.py") == [folder / name for name in ("a/b.py", "a/c.py", "late.py")]


def test_a_program_that_is_run_by_its_name_is_locked():
    write(x=0.1)
    Path("l.yaml").write_text(Path("l.yaml").read_text().replace("program.py", "-m program"))
    plan = loop.load(Path("l.yaml"))
    assert Path("program.py").resolve() in lock.files(plan)


def test_a_number_that_cannot_be_is_not_kept():
    """The cheat of a success rate of 1,715: far better than everything, and void."""
    write(x=0.1, program=PROGRAM.replace("score = 4", "score = 1715 if x > 0.5 else 4"))
    looping = prepare()
    drop("set: {x: 0.9}")
    looping.go(1)
    (trial,) = looping.state.trials
    assert trial.verdict == "dropped"
    assert "my_score must lie in -100 to 100, but is 1715" in trial.first["void"]


def test_a_run_that_goes_on_for_longer_than_it_may_does_not_count():
    more = "budget: 2\n"
    longer = PROGRAM.replace('f"2,{score}"', 'f"{2 if x < 0.5 else 50},{score}"')
    path = write(x=0.1, more=more, program=longer)
    path.write_text(path.read_text().replace("{seed} {run}", "{seed} {run} {budget}"))
    looping = prepare()
    drop("set: {x: 0.9}")
    looping.go(1)
    (trial,) = looping.state.trials
    assert trial.verdict == "dropped"
    assert "its budget must be 2 steps, but it went on to step 50" in trial.first["void"]


def test_every_event_is_documented():
    text = journals.__doc__ or ""
    for event in journals.FOLDS:
        assert f"\n    {event} " in text, event


def test_a_number_that_the_run_wrote_itself_beside_the_hidden_ones_decides_nothing():
    """A run that plants its own verdict is evaluated all the same."""
    planting = PROGRAM + (
        'planted = os.path.join(run, "..", "..", "hidden")\n'
        "os.makedirs(planted, exist_ok=True)\n"
        "name = os.path.basename(run)\n"
        'with open(os.path.join(planted, name + ".json"), "w") as file:\n'
        '    print(\'{"schema": 1, "run": "\' + name + \'", "value": 99.0, "n": 5}\', file=file)\n'
    )
    more = f"evaluate: {PYTHON} judge.py {{run}} {{seed}} {{episodes}}\n"
    path = write(x=0.1, more="", program=planting)
    Path("judge.py").write_text("print(1.5)\n")
    path.write_text(path.read_text() + more)
    looping = prepare()
    drop("set: {x: 0.9}")
    looping.go(1)
    (trial,) = looping.state.trials
    assert trial.verdict == "dropped", "all runs are worth the same"
    numbers = [json.loads(file.read_text())["value"] for file in Path("loops/l/hidden").glob("*.json")]
    assert set(numbers) == {1.5}


def test_a_run_whose_own_file_names_another_seed_does_not_count():
    other = PROGRAM + (
        'with open(os.path.join(run, "config.json"), "w") as file:\n'
        "    print('{\"seed\": %d}' % (seed if x < 0.5 else 999), file=file)\n"
    )
    write(x=0.1, program=other)
    looping = prepare()
    drop("set: {x: 0.9}")
    looping.go(1)
    (trial,) = looping.state.trials
    assert trial.verdict == "dropped"
    assert "but its record has 999" in trial.first["void"]
