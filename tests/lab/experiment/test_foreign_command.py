"""Does an experiment run anybody's program, find what it wrote, and survive all the ways in which it can go wrong?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from relab import cli
from relab.config.base import ConfigError
from relab.formats.read import find, foreign_state
from relab.lab import experiment
from relab.lab.execute import keeper
from relab.lab.experiment import foreign, template

PROGRAM = """
import csv, os, pathlib, random, signal, sys, time
clip, seed, run, mode = float(sys.argv[1]), int(sys.argv[2]), pathlib.Path(sys.argv[3]), sys.argv[4]
calls = pathlib.Path("calls.txt")
with open(calls, "a") as file:
    file.write(f"{run.name} {sorted(p.name for p in run.iterdir())}\\n")
if mode == "exit1":
    sys.exit("no such environment")
if mode == "nothing":
    (run / "notes.md").write_text("hello")
    sys.exit(0)
rng = random.Random(seed)
for part in ("a", "b") if mode == "two" else ("",):
    (run / part).mkdir(exist_ok=True)
    with open(run / part / "progress.csv", "w") as file:
        table = csv.writer(file)
        table.writerow(["step", "episode_reward", "my_score"])
        for i in range(1, 11):
            table.writerow([100 * i, 100 * clip * i + rng.gauss(0, 3), -clip])
            file.flush()
            if mode == "die" and i == 5 and len(calls.read_text().splitlines()) == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            if mode == "hang":
                time.sleep(60)
"""
ASKED = """
question: Is a clip of 0.3 better?
command: {python} program.py {{clip}} {{seed}} {{run}} {mode}
metric: {metric}
smallest_effect: 20
vary: {{clip: [0.1, 0.3]}}
seeds: {seeds}
"""
SWEEP = """
question: Which clip?
command: {python} program.py {{clip}} {{seed}} {{run}} hang
metric: episode_reward
smallest_effect: 20
axes: {{clip: [0.1, 0.3]}}
seeds: 2
confirm: 0
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write the program and the question, and stand in their folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.py").write_text(PROGRAM)

    def write(mode: str = "fine", metric: str = "episode_reward", seeds: int = 1, more: str = "") -> Path:
        path = tmp_path / "clip.yaml"
        path.write_text(ASKED.format(python=sys.executable, mode=mode, metric=metric, seeds=seeds) + more)
        return path

    return write


def calls() -> list[str]:
    return Path("calls.txt").read_text().splitlines()


def state(name: str = "clip=0.1-s0") -> dict:
    return json.loads(Path("experiments/clip/state", f"{name}.json").read_text())


def test_a_foreign_program_ends_in_an_answer_a_report_and_an_entry(
    ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ask(seeds=5)
    assert cli.main(["experiment", str(path), "--yes", "--workers", "2"]) == 0
    out = capsys.readouterr().out
    assert "first run, for the forecast (it counts): clip=0.1-s0" in out
    assert "forecast: 9 runs of about" in out
    assert "Yes: clip=0.3 is better than clip=0.1, by +200 [" in out
    assert "(final episode_reward, + is better; 97.5 % interval, 5 and 5 seeds)" in out
    assert len(calls()) == 10
    assert all(line.endswith(" []") for line in calls()), "each run finds its folder, and finds it empty"
    report, log = Path("experiments/clip/report.html"), Path("experiments/LOG.md")
    assert f"report: {report}" in out
    assert f"entry:  {log}" in out
    assert "Yes: clip=0.3 is better" in report.read_text()
    before = log.read_bytes()
    assert cli.main(["experiment", str(path), "--yes"]) == 0
    assert "all runs are finished" in capsys.readouterr().out
    assert len(calls()) == 10, "nothing ran twice"
    assert log.read_bytes() == before, "the same files give the same entry"


def test_what_the_experiment_knows_reaches_every_reader(ask: Callable[..., Path]) -> None:
    assert cli.main(["experiment", str(ask(seeds=2)), "--yes", "--no-log"]) == 0
    runs = {run.name: run.history for run in find.load_all("experiments/clip").runs}
    assert len(runs) == 4
    one = next(run for name, run in runs.items() if "clip=0.3-s1" in name)
    assert (one.meta["seed"], one.config["seed"], one.config["foreign"]["clip"]) == (1, 1, 0.3)
    assert (one.meta["status"], one.meta["exit_code"], one.meta["variant"]) == ("finished", 0, "clip=0.3")
    assert one.meta["command"].startswith(f"{sys.executable} program.py 0.3 1 ")
    assert len({run.meta["config_hash"] for run in runs.values()}) == 2, "grouped by variant"
    assert not Path("experiments/LOG.md").exists()


@pytest.mark.parametrize("how", ["--dry-run", "--yes", "--json --yes"])
def test_secrets_of_a_question_are_not_printed(
    how: str, ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ask("fine --api-key SECRETex123abc")
    path.write_text(path.read_text().replace("better?", "better? password=SECRETq1"))
    assert cli.main(["experiment", str(path), "--no-log", *how.split()]) == 0
    told = "".join(capsys.readouterr())
    assert "better? password=***" in told
    assert "SECRET" not in told


DAMAGED = [5, [5], [["a", "b"]], [[]], [[True, 5]], None]


def test_damaged_looks_are_refused_with_what_must_hold(
    ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path, kept = str(ask(seeds=2)), Path("experiments/clip/answer.json")
    assert cli.main(["experiment", path, "--yes", "--no-log"]) == 0
    body = json.loads(kept.read_text())
    for looks in (None, [], *({"clip=0.3": each} for each in DAMAGED)):
        kept.write_text(json.dumps({**body, "looks": looks}))
        assert cli.main(["experiment", path, "--yes", "--no-log"]) == 64
        told = capsys.readouterr().err
        assert f"`looks` in {kept} must hold the seeds of every earlier answer" in told
        assert "delete the file" in told
    kept.unlink()
    assert cli.main(["experiment", path, "--yes", "--no-log"]) == 0


@pytest.mark.parametrize("metric", ["my_score", "foreign/my_score"])
@pytest.mark.some(1)
def test_the_tools_own_name_is_a_metric(metric: str, ask: Callable[..., Path]) -> None:
    path = ask(seeds=5, metric=metric, more="direction: lower\n")
    assert cli.main(["experiment", str(path), "--yes", "--no-log"]) == 0
    kept = json.loads(Path("experiments/clip/answer.json").read_text())["answers"][0]
    assert kept["delta"] == pytest.approx(0.2)
    assert kept["metric"] == metric


def test_an_unknown_metric_is_said_after_one_run(ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["experiment", str(ask(seeds=5, metric="my_scor")), "--yes"]) == 64
    assert "`metric` is my_scor, but clip=0.1-s0 has no such column; it has " in capsys.readouterr().err
    assert len(calls()) == 1


def test_a_killed_program_starts_again_from_an_empty_folder(ask: Callable[..., Path]) -> None:
    assert cli.main(["experiment", str(ask("die")), "--yes"]) == 0
    assert calls()[:2] == ["clip=0.1-s0 []", "clip=0.1-s0 []"]
    assert (state()["tries"], state()["exit_code"]) == (2, 0)
    assert len(foreign.read(Path("experiments/clip/runs/clip=0.1-s0")).columns) >= 2


@pytest.mark.parametrize(
    "how", ["resume: true\n", "resume_command: {python} program.py {{clip}} {{seed}} {{run}} again\n"]
)
def test_a_program_that_resumes_keeps_its_folder(how: str, ask: Callable[..., Path]) -> None:
    path = ask("die", more=how.format(python=sys.executable))
    assert cli.main(["experiment", str(path), "--yes"]) == 0
    assert calls()[:2] == ["clip=0.1-s0 []", "clip=0.1-s0 ['progress.csv']"]
    assert state()["command"][-1] == ("again" if "command" in how else "die")


@pytest.mark.parametrize(
    ("mode", "says"),
    [
        ("exit1", "exit code 1; its last words: no such environment"),
        ("nothing", "it wrote only notes.md below its {run} folder, and no run that relab can read"),
        ("two", "it wrote 2 runs below its {run} folder (a"),
    ],
)
def test_a_first_run_that_is_of_no_use_stops_the_experiment(
    mode: str, says: str, ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["experiment", str(ask(mode)), "--yes"]) == 64
    err = capsys.readouterr().err
    assert "the first run, clip=0.1-s0, failed: " in err
    assert says in err
    assert len(calls()) == 1, "the others are not paid for"
    assert cli.main(["experiment", str(ask(mode)), "--yes", "--json"]) == 1, "without a forecast each is tried"
    assert len(calls()) == 3
    assert json.loads(capsys.readouterr().out)["failed"] == ["clip=0.1-s0", "clip=0.3-s0"]


def test_a_program_that_is_not_there(ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    path = ask()
    path.write_text(path.read_text().replace(sys.executable, "./no-such-program"))
    assert cli.main(["experiment", str(path), "--yes"]) == 64
    assert "./no-such-program could not be started: No such file or directory" in capsys.readouterr().err
    assert state()["exit_code"] == 127


def test_an_interrupt_ends_the_program_and_the_next_call_starts_it_anew(ask: Callable[..., Path]) -> None:
    path = ask("hang")
    words = [sys.executable, "-m", "relab.cli", "experiment", str(path), "--yes"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    wait_for(lambda: Path("calls.txt").exists() and "pid" in state())
    pid = state()["pid"]
    process.send_signal(signal.SIGINT)
    assert b"interrupted: 0 of 2 runs are finished; call it again" in process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert foreign.birth(pid) is None, "nothing is left running"
    assert foreign_state.status(state()) == "interrupted"
    program = Path("program.py")
    program.write_text(program.read_text().replace("time.sleep(60)", "pass"))
    assert cli.main(["experiment", str(path), "--yes"]) == 0
    assert calls()[:2] == ["clip=0.1-s0 []", "clip=0.1-s0 []"]


def test_a_program_that_outlived_a_killed_experiment_is_not_joined_by_a_second(ask: Callable[..., Path]) -> None:
    path = ask("hang")
    words = [sys.executable, "-m", "relab.cli", "experiment", str(path), "--yes"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_for(lambda: Path("calls.txt").exists() and "pid" in state())
    process.kill()
    process.wait()
    pid = state()["pid"]
    question = experiment.load(path)
    cells = experiment.prepare(question, Path("experiments/clip"))
    with pytest.raises(ConfigError, match=f"process {pid} of an earlier call still runs clip=0.1-s0"):
        foreign.command(question, cells[0])
    os.kill(pid, signal.SIGKILL)  # what keeps its exit code: the program itself still writes
    wait_for(lambda: foreign.birth(pid) is None)
    with pytest.raises(ConfigError, match=f"process {pid} of an earlier call still runs clip=0.1-s0"):
        foreign.command(question, cells[0])
    os.killpg(pid, signal.SIGKILL)
    wait_for(lambda: foreign.alive(cells[0]) is None)
    assert foreign.command(question, cells[0])[2:4] == ["0.1", "0"]


def orphaned(words: list[str], began: Callable[[], bool]) -> None:
    """Start relab, kill it once a program of its runs, and let that program end by itself."""
    process = subprocess.Popen([sys.executable, "-m", "relab.cli", *words], stdout=subprocess.DEVNULL)
    wait_for(began)
    process.kill()
    process.wait()
    assert not Path("go").exists()
    Path("go").touch()


@pytest.fixture
def slow(ask: Callable[..., Path]) -> Path:
    """A program that waits for a file named `go`, then does its work and prints that it is done."""
    path = ask("hang")
    program = Path("program.py")
    wait = "    while not os.path.exists('go'): time.sleep(0.02)"
    program.write_text(program.read_text().replace("    time.sleep(60)", wait) + "\nprint('done')\n")
    return path


def test_a_program_that_ended_after_its_experiment_was_killed_has_run_once(
    slow: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    orphaned(["experiment", str(slow), "--yes"], lambda: Path("calls.txt").exists() and "pid" in state())
    wait_for(Path("experiments/clip/state/clip=0.1-s0.code").exists)
    assert state()["exit_code"] is None, "nobody was there"
    assert cli.main(["experiment", str(slow), "--yes"]) == 0
    assert calls() == ["clip=0.1-s0 []", "clip=0.3-s0 []"], "each ran once"
    assert (state()["tries"], state()["exit_code"], foreign_state.status(state())) == (1, 0, "finished")
    assert 0 < state()["seconds"] < 60
    assert sorted(os.listdir("experiments/clip/state")) == ["clip=0.1-s0.json", "clip=0.3-s0.json"]


def test_a_program_that_ended_after_its_sweep_was_killed_has_run_once(slow: Path) -> None:
    sweep = Path("sweep.yaml")
    sweep.write_text(SWEEP.format(python=sys.executable))
    words = ["sweep", str(sweep), "--yes", "--workers", "1"]
    orphaned(words, lambda: Path("calls.txt").exists() and any(Path("sweeps").glob("*/state/*.json")))
    wait_for(lambda: any(Path("sweeps").glob("*/state/*.code")))
    assert cli.main(words) == 0
    assert len(calls()) == len(set(calls())) == 4, "each ran once"


@pytest.mark.parametrize(("deed", "status"), [("sys.exit(3)", "failed"), ("os.kill(os.getpid(), 9)", "failed")])
def test_a_program_that_failed_unseen_is_run_again(deed: str, status: str, slow: Path) -> None:
    program = Path("program.py")
    whole = program.read_text()
    program.write_text(whole.replace("print('done')", deed))
    orphaned(["experiment", str(slow), "--yes"], lambda: Path("calls.txt").exists() and "pid" in state())
    wait_for(Path("experiments/clip/state/clip=0.1-s0.code").exists)
    cells = experiment.prepare(experiment.load(slow), Path("experiments/clip"))
    assert foreign_state.status(foreign.known(cells[0])) == status
    assert state()["exit_code"] == (3 if "exit" in deed else -9)
    program.write_text(whole)
    assert cli.main(["experiment", str(slow), "--yes"]) == 0
    assert calls()[:2] == ["clip=0.1-s0 []", "clip=0.1-s0 []"]


def test_a_program_that_was_told_to_end_has_not_finished(slow: Path) -> None:
    """With exit code 0, as one that saves on SIGTERM does."""
    program = Path("program.py")
    program.write_text(program.read_text().replace("rng =", "signal.signal(15, lambda *_: sys.exit(0))\nrng ="))
    words = [sys.executable, "-m", "relab.cli", "experiment", str(slow), "--yes"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wait_for(lambda: Path("experiments/clip/runs/clip=0.1-s0/progress.csv").exists() and "pid" in state())
    process.kill()
    process.wait()
    os.killpg(state()["pid"], signal.SIGTERM)  # as `relab queue orphans --end` does
    wait_for(Path("experiments/clip/state/clip=0.1-s0.code").exists)
    cells = experiment.prepare(experiment.load(slow), Path("experiments/clip"))
    assert foreign_state.status(foreign.known(cells[0])) == "interrupted"
    Path("go").touch()
    assert cli.main(["experiment", str(slow), "--yes"]) == 0
    assert calls()[:2] == ["clip=0.1-s0 []", "clip=0.1-s0 []"]


def test_a_program_that_nobody_wrote_down_is_found_by_its_folder(slow: Path) -> None:
    """relab was killed between starting it and keeping its process id."""
    words = [sys.executable, "-m", "relab.cli", "experiment", str(slow), "--yes"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    wait_for(lambda: Path("calls.txt").exists() and "pid" in state())
    process.kill()
    process.wait()
    pid = state()["pid"]
    cells = experiment.prepare(experiment.load(slow), Path("experiments/clip"))
    foreign.keep(cells[0], {key: value for key, value in state().items() if key not in ("pid", "birth")})
    assert foreign.alive(cells[0]) == pid
    Path("go").touch()
    wait_for(lambda: foreign.alive(cells[0]) is None)
    assert foreign_state.status(state()) == "finished"


def test_a_program_that_ends_while_it_is_looked_for_is_not_run_again(
    ask: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was running when the run was not done yet, and had ended when nobody was found who still writes."""
    question = experiment.load(ask())
    first, second = experiment.prepare(question, Path("experiments/clip"))
    words = foreign.command(question, first)

    def looked_for_too_late() -> list[object]:
        if not Path("calls.txt").exists():
            subprocess.run(keeper.around(foreign.code_path(first).resolve(), words), check=True)
        return []

    monkeypatch.setattr(foreign, "ours", looked_for_too_late)
    result = experiment.run(question, Path("experiments/clip"), [first, second], workers=1)
    assert result.finished == ["clip=0.1-s0", "clip=0.3-s0"]
    assert calls() == ["clip=0.1-s0 []", "clip=0.3-s0 []"], "each ran once"


def test_a_call_killed_right_after_it_made_a_folder_is_no_stranger(ask: Callable[..., Path]) -> None:
    question = experiment.load(ask())
    cells = experiment.prepare(question, Path("experiments/clip"))
    cells[0].folder.mkdir(parents=True)  # and then kill -9: the state file is not there yet
    assert foreign.command(question, cells[0])[2:4] == ["0.1", "0"]
    assert foreign_state.read_state(cells[0].folder)["tries"] == 1


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not what():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.05)


def test_a_folder_of_somebody_else_is_not_deleted(ask: Callable[..., Path]) -> None:
    theirs = Path("experiments/clip/runs/clip=0.1-s0/thesis.csv")
    theirs.parent.mkdir(parents=True)
    theirs.write_text("mine\n")
    assert cli.main(["experiment", str(ask()), "--yes"]) == 64
    assert theirs.read_text() == "mine\n"


# ---- Placeholders


def test_words_are_filled_and_never_read_by_a_shell() -> None:
    words = template.split("prog --x={x} '{a b}' {{raw}} {flags} $HOME;ls", "command")
    values = {"x": "1; rm -rf *", "a b": "two words", "flags": ["-f", "3"]}
    assert template.fill(words, values) == ["prog", "--x=1; rm -rf *", "two words", "{raw}", "-f", "3", "$HOME;ls"]
    assert template.fill(["{flags}", "{on}"], {"flags": [], "on": True}) == ["true"]
    assert template.split(template.join(words), "command") == words
    assert template.split(["a b", "{seed}"], "command") == ("a b", "{seed}")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("{clip} {seed}", "{clp} {seed}"), r"`command` has \{clp\}, for which variant clip=0.1 has no value"),
        (("{clip} {seed}", "0.1 {seed}"), r"`clip` of variant clip=0.1 is not used by the command: write \{clip\}"),
        (("{clip} {seed}", "{clip}"), r"needs \{seed\}: without it all seeds would be the same run"),
        (("{run}", "out"), r"needs \{run\}"),
        (("{run}", "{run:>3}"), "plain placeholders"),
        (("{run}", "{run} {"), "a brace that is none of a placeholder"),
        (("{run}", "{run} {}"), "plain placeholders"),
        (("{run} fine", "{run} 'fine"), "can be split into words, but No closing quotation"),
        (("vary: {clip: [0.1, 0.3]}", "vary: {clip: [0.1, null]}"), r"\{clip\} must be a number or text"),
        (
            ("vary: {clip: [0.1, 0.3]}", "variants: {a: {clip: 1}, b: {}}"),
            r"\{clip\}, for which variant b has no value",
        ),
        (("seeds: 1", "seeds: 1\nbase: {seed: 3}"), "base sets `seed`, which relab fills in by itself"),
        (("seeds: 1", "seeds: 1\nbudget: 100"), "`budget` of variant clip=0.1 is not used by the command"),
    ],
)
def test_a_command_that_cannot_be_filled(change: tuple[str, str], says: str, ask: Callable[..., Path]) -> None:
    path = ask()
    assert change[0] in path.read_text()
    path.write_text(path.read_text().replace(*change))
    with pytest.raises(ConfigError, match=says):
        experiment.load(path)


def test_a_budget_fills_its_placeholder(ask: Callable[..., Path]) -> None:
    path = ask(more="budget: 5_000\n")
    path.write_text(path.read_text().replace("{run} fine", "{run} fine --steps {budget}"))
    question = experiment.load(path)
    assert template.fill(question.command, {**question.settings("clip=0.1"), "seed": 0, "run": "x"})[-1] == "5000"


# ---- Before the first program runs


def answers(monkeypatch: pytest.MonkeyPatch, *words: str) -> list[str]:
    """Somebody at a terminal who gives these answers; what he was asked."""
    left, prompts = list(words), []
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda text: (prompts.append(text), left.pop(0))[1])
    return prompts


@pytest.mark.parametrize("more", [[], ["--json"], ["--queue"], ["--only", "clip=0.1-s0"]])
def test_a_command_is_shown_and_not_run_where_nobody_can_be_asked(
    more: list[str], ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["experiment", str(ask()), *more]) == 64
    err = capsys.readouterr().err
    assert f"{sys.executable} program.py" in err
    assert "add --yes" in err
    assert not Path("calls.txt").exists()
    assert not Path("queue").exists()
    assert not Path("experiments").exists(), "what was refused leaves nothing behind"


def test_a_command_is_asked_for_before_the_first_run(
    ask: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = answers(monkeypatch, "n")
    assert cli.main(["experiment", str(ask())]) == 0
    assert prompts == ["  run it? [y/N] "]
    assert f"{sys.executable} program.py" in capsys.readouterr().out
    assert not Path("calls.txt").exists()
    assert not Path("experiments").exists(), "nor does what somebody said no to"
    prompts = answers(monkeypatch, "y", "n")
    assert cli.main(["experiment", str(ask())]) == 0
    assert prompts == ["  run it? [y/N] ", "  start? [y/N] "]
    assert len(calls()) == 1, "the first run, for the forecast"
    assert list(Path("experiments").glob("*/experiment.yaml")), "which counts, and so does its question"


def test_a_sweep_asks_for_its_command_too(
    ask: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = ask().read_text().replace("vary:", "axes:")
    Path("sweep.yaml").write_text(text)
    for more in ([], ["--json"]):
        assert cli.main(["sweep", "sweep.yaml", *more]) == 64
        assert f"{sys.executable} program.py" in capsys.readouterr().err
    assert answers(monkeypatch, "n") == []
    assert cli.main(["sweep", "sweep.yaml"]) == 0
    assert not Path("calls.txt").exists()


def test_what_a_command_shows_is_all_there_is(ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]) -> None:
    """No escape sequence of the file's hides a part of it."""
    path = ask()
    path.write_text(path.read_text().replace("program.py", 'program.py "\\e[2K"'))
    assert cli.main(["experiment", str(path)]) == 64
    assert "\x1b" not in capsys.readouterr().err


# ---- Runs that broke off by themselves


def test_a_variant_whose_runs_fail_is_not_judged_by_the_others(
    ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """Three of eight runs of B ended with an error, and the answer was a yes by the five that were left."""
    path = ask(mode="fine", seeds=8)
    path.write_text(path.read_text().replace("smallest_effect: 20", "smallest_effect: 2"))
    program = PROGRAM.replace("100 * clip * i", "5 * clip * i")
    broken = 'if clip > 0.2 and seed in (1, 4, 6):\n    sys.exit("out of memory")\nrng = '
    Path("program.py").write_text(program.replace("rng = ", broken, 1))
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--json"]) == 1
    reply = json.loads(capsys.readouterr().out)["answers"][0]
    assert (reply["verdict"], reply["n"]) == ("cannot tell yet", [8, 5])
    assert (
        "it would be yes without the runs that have no number, but not if those had gone against it" in reply["notes"]
    )
    assert "clip=0.3: seeds 1, 4, 6 have no number (failed) and are left out of delta" in reply["notes"]
    Path("program.py").write_text(program)
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--json"]) == 0, "asked again, they are run again"
    assert json.loads(capsys.readouterr().out)["answers"][0]["verdict"] == "yes"


@pytest.mark.parametrize(("ending", "why"), [
    ('os.kill(os.getpid(), signal.SIGKILL)', "failed"),
    ('break', "ended at step 300, others of its variant at 1,000"),
])  # fmt: skip
def test_runs_that_are_killed_or_end_at_their_peak_do_not_make_a_variant_look_better(
    ask: Callable[..., Path], capsys: pytest.CaptureFixture[str], ending: str, why: str
) -> None:
    """Of three of eight runs that were killed nothing was said, and those that left with exit code 0 at their peak
    counted as whole: both were a plain yes."""
    path = ask(mode="fine", seeds=8)
    path.write_text(path.read_text().replace("smallest_effect: 20", "smallest_effect: 2"))
    program = PROGRAM.replace("100 * clip * i", "5 * clip * i + (200 if clip > 0.2 and seed in (1, 4, 6) else 0)")
    early = f"            if clip > 0.2 and seed in (1, 4, 6) and i == 3:\n                {ending}\n"
    flush = "            file.flush()\n"
    Path("program.py").write_text(program.replace(flush, flush + early, 1))
    cli.main(["experiment", str(path), "--yes", "--no-log", "--json"])
    reply = json.loads(capsys.readouterr().out)["answers"][0]
    assert (reply["verdict"], reply["n"]) == ("cannot tell yet", [8, 5])
    assert f"clip=0.3: seeds 1, 4, 6 have no number ({why}) and are left out of delta" in reply["notes"]


def test_a_run_whose_record_says_that_it_failed_has_no_number(
    ask: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """The program caught its own error, closed its record as failed and ended with exit code 0."""
    path = ask(mode="fine", metric="eval/return_det", seeds=5)
    Path("program.py").write_text("""
import sys
from relab.logger import Logger
clip, seed, run = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
log = Logger(run, config={"clip": clip}, seed=seed, env="CartPole-v1", algo="ppo")
for i in range(1, 11):
    log.evaluation(100 * i, returns=[10.0 * i + clip * 100 + seed] * 5)
log.close("failed" if clip > 0.2 and seed == 3 else "finished", "parameters are not finite")
""")
    cli.main(["experiment", str(path), "--yes", "--no-log", "--json"])
    reply = json.loads(capsys.readouterr().out)["answers"][0]
    assert reply["n"] == [5, 4]
    assert [run["note"] for run in reply["b"] if run["value"] == "NaN"] == ["failed, as its own record says"]
