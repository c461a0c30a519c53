"""Does a loop notice what it did not write, go on where it was moved to, and say what it cannot read?"""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
from collections import Counter
from pathlib import Path

import pytest
from loops import PROGRAM, PYTHON, calls, prepare, write

from relab import cli
from relab.base.errors import UserError
from relab.base.places import state_folder
from relab.lab import loop
from relab.lab.loop import journal as journals
from relab.lab.loop import keys, lock
from relab.lab.loop.seal import ForgedError

JOURNAL = Path("loops/l/journal")
FORGED = '{"event":"proposed","time":"2026-01-01T00:00:00Z","k":1,"proposal":{"parent_config":"base","diff":{}}}\n'


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def key_files() -> list[Path]:
    return sorted((state_folder() / keys.FOLDER).glob("*.json"))


# ---- Rows


def test_rows_that_a_run_appends_stop_the_loop_at_once_and_at_every_call_after():
    forging = PROGRAM + (
        'if seed == 3:\n    with open(os.path.join(run, "..", "..", "journal"), "a") as file:\n'
        f"        file.write({FORGED!r})\n"
    )
    write(x=0.1, program=forging)
    with pytest.raises(ForgedError, match="another program wrote to it meanwhile"):
        prepare().go(1)
    with pytest.raises(ForgedError, match=r"1 of 2 do not \(row 2\): .*; take these rows out of it"):
        prepare()
    lines = JOURNAL.read_text().splitlines(keepends=True)
    JOURNAL.write_text("".join(line for line in lines if line != FORGED))
    prepare().go(1)
    assert Counter(calls())["base-s3"] == 1, "what ran before has not run again"


def change(lines: list[str]) -> list[str]:
    return [*lines[:1], lines[1].replace('"mean":', '"mean":9'), *lines[2:]]


@pytest.mark.parametrize(("forge", "says"), [
    (lambda lines: [*lines, FORGED], r"\(row 9\).*take these rows out"),
    (lambda lines: [*lines[:3], FORGED, FORGED, *lines[3:]], r"2 of 10 do not \(row 4, 5\).*take these rows out"),
    (lambda lines: [*lines, lines[3]], r"\(row 9\).*take these rows out"),
    (change, r"\(row 2, 3, 4, 5, 6 \.\.\.\).*put the journal back"),
    (lambda lines: [*lines[:2], *lines[3:]], r"\(row 3, 4, 5, 6, 7\).*put the journal back"),
    (lambda lines: lines[:-1], "must have the 8 rows that this loop wrote, but has 7"),
    (lambda lines: [lines[0], lines[2], lines[1], *lines[3:]], "put the journal back"),
    (lambda lines: [], "must have the 8 rows that this loop wrote, but it is gone"),
    (lambda lines: [FORGED], "the first of 1 has none"),
])  # fmt: skip
def test_rows_put_in_taken_out_changed_or_moved_are_told(forge, says: str):
    write(x=0.1)
    prepare().go(1)
    lines = JOURNAL.read_text().splitlines(keepends=True)
    assert len(lines) == 8, "begin, noise, proposed, first, decided, stands, scored, ended"
    JOURNAL.write_text("".join(forge(lines)))
    with pytest.raises(ForgedError, match=says):
        prepare()
    if forge(lines):
        with pytest.raises(ForgedError, match=says):
            loop.look(loop.load(Path("l.yaml")), Path("loops/l"))
    JOURNAL.write_text("".join(lines))
    prepare().go(0)


def test_the_key_is_the_users_alone_and_no_run_is_told(capsys):
    asking = PROGRAM + 'open("asked.txt", "a").write(str(dict(os.environ)) + " ".join(sys.argv))\n'
    write(x=0.1, program=asking)
    prepare().go(0)
    (path,) = key_files()
    secret = json.loads(path.read_text())["secret"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert secret not in Path("asked.txt").read_text()
    for file in (each for each in Path("loops").rglob("*") if each.is_file()):
        assert secret.encode() not in file.read_bytes(), file


def test_a_journal_may_be_one_row_ahead_of_its_key_as_a_kill_leaves_it():
    write(x=0.1)
    prepare().go(0)
    (path,) = key_files()
    body = json.loads(path.read_text())
    path.write_text(json.dumps({**body, "rows": body["rows"] - 1}))
    prepare().go(0)
    assert json.loads(path.read_text())["rows"] == len(JOURNAL.read_text().splitlines())


def test_without_its_key_a_loop_goes_on_only_where_somebody_vouches_for_it(capsys: pytest.CaptureFixture[str]):
    """On another machine, as another user, or begun by an earlier relab."""
    path = write(x=0.1)
    prepare().go(1)
    shutil.rmtree(state_folder())
    assert cli.main(["loop", str(path), "--runs", "0", "--yes"]) == 2
    assert "but this user has no key of it" in capsys.readouterr().err
    assert cli.main(["loop", str(path), "--runs", "0", "--yes", "--accept"]) == 0
    said = capsys.readouterr().out
    assert "the 8 rows of loops/l/journal were taken as they stand" in said
    assert "taken as they stood (--accept): the first 8 rows of the journal" in said
    assert cli.main(["loop", str(path), "--runs", "0", "--yes", "--accept"]) == 0, "nothing is left to vouch for"
    assert JOURNAL.read_text().count('"accepted"') == 1
    assert cli.main(["loop", str(path), "--runs", "0", "--yes"]) == 0
    assert max(Counter(calls()).values()) == 1


def test_a_loop_of_an_earlier_relab_has_no_seals_and_another_lock():
    write(x=0.1)
    prepare().go(1)
    rows = [journals.without_seal(json.loads(line)) for line in JOURNAL.read_text().splitlines()]
    JOURNAL.write_text("".join(json.dumps(row) + "\n" for row in rows))
    plan, place = loop.load(Path("l.yaml")), Path("loops/l")
    body = {"schema": 1, "evaluator": {"code old/program.py": "0" * 16}}
    (place / lock.FILE).write_bytes(lock.encode(lock.sealed(body, lock.hidden_seed(plan))))
    with pytest.raises(lock.TamperedError, match="must have schema 2, but has 1: another relab began this loop"):
        prepare()
    looping = loop.prepare(plan, place, 2, lambda line: None, accept=True)
    assert looping.state.trials[0].stage == "done"
    prepare().go(0)


def test_a_journal_of_nonsense_that_somebody_vouched_for_is_told_in_one_line():
    write(x=0.1)
    prepare().go(0)
    with open(JOURNAL, "a") as file:
        file.write('{"event":"first","k":7}\n')
    with pytest.raises(UserError, match="the first in loops/l/journal cannot follow what stands before it"):
        loop.prepare(loop.load(Path("l.yaml")), Path("loops/l"), 2, lambda line: None, accept=True)


def test_a_state_folder_that_cannot_be_written_is_told(monkeypatch: pytest.MonkeyPatch):
    Path("file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(Path("file").resolve()))
    write(x=0.1)
    with pytest.raises(UserError, match=r"keeps the key of its journal in .*: set XDG_STATE_HOME"):
        prepare()


def test_a_loop_whose_folder_was_deleted_begins_anew():
    write(x=0.1)
    prepare().go(0)
    shutil.rmtree("loops/l")
    prepare().go(0)
    assert Counter(calls())["base-s0"] == 2


# ---- Numbers

JUDGED = f"evaluate: {PYTHON} judge.py {{run}} {{seed}} {{episodes}}\n"


def judged() -> tuple[loop.Loop, Path]:
    """A loop whose `evaluate` gives all runs the same, and its folder."""
    path = write(x=0.1)
    Path("judge.py").write_text("print(1.5)\n")
    path.write_text(path.read_text() + JUDGED)
    prepare().go(0)
    return loop.load(path), Path("loops/l")


def test_whoever_knows_the_hidden_seed_still_forges_no_number():
    plan, place = judged()
    number = place / "hidden/base-s0.json"
    body = {"schema": 1, "run": "base-s0", "value": 99.0, "n": 5}
    number.write_bytes(lock.encode(lock.sealed(body, lock.hidden_seed(plan))))
    looping = prepare()
    cell = looping.arms.cell("base", 0)
    assert "was not made by this loop" in looping.arms.number(cell).why
    looping = prepare()
    looping.arms.run([cell])
    assert looping.arms.number(cell).value == 1.5, "it is evaluated again"


def test_a_number_that_was_not_sealed_before_a_kill_is_made_again():
    _, place = judged()
    number = place / "hidden/base-s0.json"
    number.rename(place / "hidden/.base-s0.raw")
    (place / "hidden/.base-s0.raw").write_text('{"schema": 1, "run": "base-s0", "value": 99.0}')
    looping = prepare()
    looping.arms.run([cell := looping.arms.cell("base", 0)])
    assert looping.arms.number(cell).value == 1.5
    assert not (place / "hidden/.base-s0.raw").exists()


def test_who_vouches_for_a_journal_vouches_for_its_numbers():
    plan, place = judged()
    shutil.rmtree(state_folder())
    Path("judge.py").touch()
    looping = loop.prepare(plan, place, 2, lambda line: None, accept=True)
    assert looping.arms.number(looping.arms.cell("base", 0)).value == 1.5, "without its evaluation made again"


# ---- Moved


def test_a_loop_that_was_moved_or_renamed_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """With its project, by itself, and under another name: nothing runs twice, and the program is still locked."""
    Path("one").mkdir()
    monkeypatch.chdir(tmp_path / "one")
    write(x=0.1)
    prepare().go(1)
    before = calls()
    monkeypatch.chdir(tmp_path)
    os.rename("one", "two")
    monkeypatch.chdir(tmp_path / "two")
    said: list[str] = []
    prepare(lines=said).go(0)
    assert said[0] == f"the loop was moved here from {tmp_path}/one/loops/l; it goes on"
    os.rename("loops/l", "loops/m")
    plan, told = loop.load(Path("l.yaml")), []
    loop.prepare(plan, Path("loops/m"), 2, told.append).go(0)
    assert told[0] == f"the loop was moved here from {tmp_path}/two/loops/l; it goes on"
    assert calls() == before
    Path("program.py").write_text(PROGRAM + "# other\n")
    with pytest.raises(lock.TamperedError, match=r"code program\.py"):
        loop.prepare(plan, Path("loops/m"), 2, told.append)


def test_a_copy_of_a_loop_does_not_go_on_beside_it():
    write(x=0.1)
    prepare().go(0)
    shutil.copytree("loops/l", "loops/copy")
    plan = loop.load(Path("l.yaml"))
    with pytest.raises(ForgedError, match=r"loops/copy is a copy of the loop in .*/loops/l"):
        loop.prepare(plan, Path("loops/copy"), 2, lambda line: None)
    loop.prepare(plan, Path("loops/copy"), 2, lambda line: None, accept=True).go(0)
    prepare().go(0)


# ---- What lies in the place of next_config.yaml


def make_pipe(path: Path) -> None:
    os.mkfifo(path)


def make_link(path: Path) -> None:
    Path("elsewhere.yaml").write_text("set: {x: 0.9}")
    path.symlink_to(Path("elsewhere.yaml").resolve())


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.path.relpath(path))


@pytest.mark.parametrize(("make", "kind"), [(make_pipe, "a pipe"), (Path.mkdir, "a folder"), (make_link, "a link"),
                                            (make_socket, "a socket")])  # fmt: skip
def test_what_is_no_file_is_refused_without_being_opened_and_the_loop_goes_on(make, kind: str):
    write(x=0.1)
    said: list[str] = []
    looping = prepare(lines=said)
    path = Path("loops/l/next_config.yaml")
    make(path)
    looping.go(1)
    (refusal,) = looping.state.refused
    assert refusal["why"] == f"loops/l/next_config.yaml must be a file, but is {kind}; put the file itself there"
    assert f"  refused: {refusal['why']}" in said
    assert not os.path.lexists(path)
    assert os.path.lexists("loops/l/refused/r001.yaml")
    assert looping.state.trials[0].proposal["source"] == "sampler"


def test_a_file_that_is_too_large_is_refused():
    write(x=0.1)
    looping = prepare()
    with open("loops/l/next_config.yaml", "wb") as file:
        file.truncate(1 << 26)
    looping.go(1)
    (refusal,) = looping.state.refused
    assert "bytes, and no more than" in refusal["why"]
    assert len(looping.state.trials) == 1


def test_what_cannot_be_moved_away_is_said_every_time(monkeypatch: pytest.MonkeyPatch):
    write(x=0.1)
    said: list[str] = []
    looping = prepare(lines=said)
    Path("loops/l/next_config.yaml").mkdir()
    monkeypatch.setattr(Path, "rename", lambda path, to: os.rename(path, path / "in itself"))
    looping.go(2)
    assert len(looping.state.refused) == 1
    assert sum("cannot be moved into refused/" in line for line in said) == 2


def test_a_check_of_a_pipe_does_not_wait(capsys: pytest.CaptureFixture[str]):
    path = write(x=0.1)
    os.mkfifo("pipe.yaml")
    assert cli.main(["loop", str(path), "--check", "pipe.yaml"]) != 0
    assert "pipe.yaml must be a file, but is a pipe" in capsys.readouterr().err
