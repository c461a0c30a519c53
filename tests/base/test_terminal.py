"""Does text reach a terminal that cannot show it, and does work go on when nobody can read about it?"""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from relab.base import terminal
from relab.base.jsonl import read_jsonl
from relab.cli import main
from relab.record.run_folder import read_meta
from relab.train import screen
from small_runs import SMALL, fingerprint, run

RELAB = f"{sys.executable} -m relab.cli"
WORDS = " ".join(f"{key}={value}" for key, value in SMALL.items())
LISTENERS = {
    "ascii": "{} | cat",
    "closed": "{} >&-",
    "all closed": "{} <&- >&- 2>&-",
    "full": "{} > /dev/full",
    "unread": "{} | head -n 1",
}
WHY = {"closed": "is closed", "all closed": "is closed", "full": "has no room left", "unread": "nobody reads"}


def bash(line: str, **env: str) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-c", f"set -o pipefail; {line}"]
    return subprocess.run(words, capture_output=True, text=True, env=os.environ | env, timeout=120)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole") / "run"
    run(folder)
    return folder


# `make test` has a process for each way to be unseen and for each command, `make test-all` for every pair of them.
ALSO = {"all closed", "full", "unread"}


@pytest.mark.parametrize("kind", [pytest.param(k, marks=[pytest.mark.slow] * (k in ALSO)) for k in LISTENERS])
@pytest.mark.some(1)
def test_the_screen_never_ends_a_run(kind: str, whole: Path, tmp_path: Path) -> None:
    train = f"{RELAB} train ppo {WORDS} --runs {tmp_path} --name run"
    done = bash(LISTENERS[kind].format(train), PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert fingerprint(tmp_path / "run") == fingerprint(whole)
    assert read_meta(tmp_path / "run")["status"] == "finished"
    rows, problems = read_jsonl(tmp_path / "run" / "events.jsonl")
    warnings = [row["message"] for row in rows if row["kind"] == "warning"]
    assert not problems
    if kind == "ascii":
        assert "det " in done.stdout
        assert " +- " in done.stdout
        assert (warnings, done.stderr) == ([], "")
        return
    assert len(warnings) == 1
    assert WHY[kind] in warnings[0]
    if kind != "all closed":
        assert len(done.stderr.splitlines()) == 1
        assert WHY[kind] in done.stderr


BASE = {key: json.loads(value) if value != SMALL["env"] else value for key, value in SMALL.items()}
OWN = {"base": BASE | {"algo": "ppo", "total_steps": 256}, "vary": {"algo.lr": [0.001, 0.003]},
       "metric": "eval/return_det"}  # fmt: skip
PROGRAM = "import sys; open(sys.argv[2] + '/progress.csv', 'w').write('step,score\\n1,0\\n2,' + sys.argv[1])"
OTHERS = {"command": f'{sys.executable} -I -S -c "{PROGRAM}" {{lr}} {{run}} {{seed}}', "metric": "score",
          "variants": {"a": {"lr": 1}, "b": {"lr": 3}}}  # fmt: skip


@pytest.mark.parametrize("kind", ["closed", "full"])
@pytest.mark.parametrize("runs", [OTHERS, pytest.param(OWN, marks=pytest.mark.slow)], ids=["another's", "own"])
@pytest.mark.some(1)
def test_an_experiment_goes_on_unseen(kind: str, runs: dict[str, Any], tmp_path: Path) -> None:
    file = tmp_path / "lr.yaml"
    question = {"question": "does lr matter?", "direction": "higher", "smallest_effect": 1, "seeds": [0], **runs}
    file.write_text(json.dumps(question))
    words = f"{RELAB} experiment {file} --root {tmp_path / 'e'} --yes --workers 1 --no-log"
    done = bash(LISTENERS[kind].format(words))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "e" / "lr" / "answer.json").exists()
    assert [line for line in done.stderr.splitlines() if WHY[kind] in line]
    assert "Traceback" not in done.stderr


READING = [
    "examine {run}",
    "report {run} --out {out}/page.html",
    "explain policy/kl",
    "runs {runs}",
    "diff {run} {run}",
    "--help",
    "train --help",
    "train ppo env=cartpole --print-config",
    "doctor",
]
KINDS = ("closed", "full", "ascii", "unread")


def pairs() -> Iterator[Any]:
    for i, words in enumerate(READING):
        for kind in KINDS:
            usual = i == 0 or kind == KINDS[i % len(KINDS)]
            yield pytest.param(words, kind, marks=() if usual else pytest.mark.slow)


@pytest.mark.parametrize(("words", "kind"), list(pairs()))
def test_a_reading_command_says_that_nobody_can_read_it(words: str, kind: str, whole: Path, tmp_path: Path) -> None:
    command = LISTENERS[kind].format(f"{RELAB} {words}".format(run=whole, runs=whole.parent, out=tmp_path))
    done = bash(command, **{"PYTHONIOENCODING": "ascii"} if kind == "ascii" else {})
    if kind in ("closed", "full"):
        assert done.returncode == 2, done.stderr
        (line,) = done.stderr.splitlines()
        assert WHY[kind] in line
    else:
        assert (done.returncode, done.stderr) == (0, "")
        assert kind == "unread" or done.stdout.isascii()


def test_json_for_a_program_is_escaped_not_changed(tmp_path: Path) -> None:
    folder = tmp_path / "größe ± 1"
    run(folder, total_steps="128")
    done = bash(f"{RELAB} examine '{folder}' --json", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert json.loads(done.stdout)["path"] == str(folder)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("481 ± 3 … a → b – c", "481 +- 3 ... a -> b - c"),
        ("█░ │┃ ┏┓ ●", "#. || ++ o"),
        ("σ² Γ µ ≥ 中 é \udcff", "sigma^2 Gamma mu >= ? e ?"),
    ],
)
def test_stand_ins_can_be_read(text: str, shown: str) -> None:
    assert text.encode("ascii", terminal.TEXT).decode() == shown
    assert json.loads(b'"%s"' % text.encode("ascii", terminal.JSON)) == text


def test_what_the_terminal_knows_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "latin-1"))
    screen.say("5 ± 1 …\n")
    assert raw.getvalue() == b"5 \xb1 1 ...\n"


def test_a_stream_is_told_lost_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    closed = io.StringIO()
    closed.close()
    monkeypatch.setattr(sys, "stdout", closed)
    for _ in range(3):
        screen.say("text")
    assert terminal.lost() == "standard output is closed"
    assert capsys.readouterr().err.count("standard output is closed") == 1


# ---- Ctrl-C


INTERRUPTED = [
    "examine {run}",
    "compare {run}",
    "report {run}",
    "runs {run}",
    "doctor",
    "diff {run} {run}",
    "note {run}",
]


@pytest.mark.parametrize("words", INTERRUPTED)
def test_ctrl_c_is_one_line(
    words: str, whole: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("relab.config.registry.load", lambda _: interrupt)
    assert main(words.format(run=whole).split()) == 130
    assert capsys.readouterr().err == "relab: interrupted\n"


WAITING = """
import sys, time, relab.cli, relab.health.examine as health
def wait(*_, **__):
    print("here", flush=True)
    time.sleep(60)
health.examine_loaded = wait
sys.exit(relab.cli.main(["examine", *sys.argv[1:]]))
"""


def test_ctrl_c_in_a_process_that_reads(whole: Path) -> None:
    words = [sys.executable, "-c", WAITING, str(whole)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "here\n"
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, "relab: interrupted\n")
