"""Does a loop notice what a run put, changed or took away in the files that say what is measured, and how?"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from loops import PROGRAM, PYTHON, calls, prepare, write

from relab.lab import loop
from relab.lab.loop import journal as journals
from relab.lab.loop import lock, written
from relab.lab.loop.seal import ForgedError

JOURNAL = Path("loops/l/journal")
PLACE = Path("loops/l")
JUDGED = f"evaluate: {PYTHON} judge.py {{run}} {{seed}} {{episodes}}\n"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def judged(program: str = PROGRAM, judge: str = "print(1.5)\n") -> Path:
    """The file of a loop with an `evaluate`."""
    path = write(x=0.1, program=program)
    Path("judge.py").write_text(judge)
    path.write_text(path.read_text() + JUDGED)
    return path


# ---- The lock


def test_a_lock_that_was_removed_is_not_made_anew_from_a_changed_evaluator():
    path = judged()
    prepare().go(0)
    (PLACE / lock.FILE).unlink()
    Path("judge.py").write_text("print(430)\n")
    with pytest.raises(lock.TamperedError, match=r"lock.json must be there, as this loop has begun, but is gone"):
        prepare()
    assert not (PLACE / lock.FILE).exists()
    looping = loop.prepare(loop.load(path), PLACE, 2, lambda line: None, accept=True)
    assert looping.state.lock == lock.digest(PLACE)
    assert len(looping.state.accepted) == 1
    prepare().go(0)


def test_a_run_that_removes_the_lock_stops_the_loop():
    removing = 'if seed == 5:\n    os.unlink(os.path.join(run, "..", "..", "lock.json"))\n'
    write(x=0.1, program=PROGRAM + removing)
    with pytest.raises(lock.TamperedError, match="but is gone"):
        prepare().go(0)


def test_a_lock_that_was_forged_with_the_hidden_seed_is_not_the_one_in_the_journal():
    path = judged()
    prepare().go(0)
    plan = loop.load(path)
    Path("judge.py").write_text("print(430)\n")
    body = {"schema": lock.SCHEMA, "evaluator": lock.evaluator(plan)}
    (PLACE / lock.FILE).write_bytes(lock.encode(lock.sealed(body, lock.hidden_seed(plan))))
    with pytest.raises(lock.TamperedError, match="must be the one that the loop began with"):
        prepare()
    with pytest.raises(lock.TamperedError, match="must be the one that the loop began with"):
        loop.look(plan, PLACE)


def test_a_journal_of_an_earlier_relab_names_no_lock_and_goes_on():
    path = judged()
    prepare().go(0)
    rows = [journals.without_seal(json.loads(line)) for line in JOURNAL.read_text().splitlines()]
    rows[0].pop("lock")
    JOURNAL.write_text("".join(json.dumps(row) + "\n" for row in rows))
    looping = loop.prepare(loop.load(path), PLACE, 2, lambda line: None, accept=True)
    assert looping.state.lock == ""
    prepare().go(0)


# ---- What each config is


def test_a_run_that_rewrites_the_bases_settings_stops_the_loop_and_the_next_call_goes_on():
    flag = Path("rewrite")
    rewriting = """
if seed == 5 and os.path.exists("rewrite"):
    place = os.path.join(run, "..", "..", "variants", "base.yaml")
    text = open(place).read()
    open(place, "w").write(text.replace("x: 0.1", "x: 1.0"))
"""
    write(x=0.1, program=PROGRAM + rewriting)
    flag.touch()
    with pytest.raises(lock.TamperedError, match=r"variants/base.yaml must be as this loop wrote it, but is other"):
        prepare().go(1)
    flag.unlink()
    looping = prepare()
    looping.go(1)
    assert looping.arms.settings("base")["x"] == 0.1
    assert looping.state.trials[0].stage == "done"


@pytest.mark.parametrize("name", ["variants/p001.yaml", "proposals/p001.yaml"])
def test_a_proposals_files_are_those_that_its_row_names(name: str):
    write(x=0.1)
    looping = prepare()
    looping.go(1)
    before = (PLACE / name).read_bytes()
    (PLACE / name).write_bytes(before + b"# more\n")
    with pytest.raises(lock.TamperedError, match=f"{name} must be as this loop wrote it"):
        looping.arms.check()
    said: list[str] = []
    prepare(lines=said).go(0)
    assert (PLACE / name).read_bytes() == before
    assert said[0] == f"loops/l/{name} was other than this loop wrote it, and is written anew"


# ---- What Python finds first


@pytest.mark.parametrize("name", ["re.py", "json.pyc", "random/__init__.py"])
def test_a_module_with_a_standard_name_beside_the_evaluator_is_a_change_of_it(name: str):
    """The evaluator imports json, which imports re."""
    judged(judge="import json\nprint(1.5)\n")
    prepare().go(0)
    Path("helper.py").write_text("")
    Path("random").mkdir()
    prepare()
    Path(name).write_text("")
    with pytest.raises(lock.TamperedError, match=f"the evaluator must stay as it was .*{name}"):
        prepare()


# ---- Numbers


def test_a_raw_number_beside_an_evaluate_command_is_ignored_and_removed():
    judge = (
        "import os, sys\nrun = sys.argv[1]\n"
        "raw = os.path.join(run, '..', '..', 'hidden', f'.{os.path.basename(run)}.raw')\n"
        'open(raw, \'w\').write(\'{"schema":1,"run":"%s","value":444.0,"n":5}\\n\' % os.path.basename(run))\n'
        "print(1.5)\n"
    )
    judged(judge=judge)
    looping = prepare()
    looping.go(0)
    assert looping.arms.number(looping.arms.cell("base", 0)).value == 1.5
    assert not list(PLACE.glob("hidden/.*.raw"))


# ---- Copies


def test_a_stale_copy_that_is_called_while_the_loop_is_away_does_not_lock_it_out():
    path = write(x=0.1)
    prepare().go(0)
    shutil.copytree("loops/l", "loops/stale")
    prepare().go(1)
    os.rename("loops/l", "away")
    with pytest.raises(ForgedError, match="the others were taken out"):
        loop.prepare(loop.load(path), Path("loops/stale"), 2, lambda line: None)
    os.rename("away", "loops/l")
    said: list[str] = []
    prepare(lines=said).go(0)
    assert said == []


# ---- The log, and what is dropped


def test_a_link_in_the_place_of_the_log_is_not_written_through():
    write(x=0.1)
    said: list[str] = []
    looping = prepare(lines=said)
    elsewhere = Path("elsewhere.md")
    elsewhere.write_text("mine\n")
    (PLACE / "LOG.md").symlink_to(elsewhere.resolve())
    looping.go(1)
    written.enter(looping, looping.state.trials[0])
    assert elsewhere.read_text() == "mine\n"
    assert any("the log was not written: loops/l/LOG.md is a link" in line for line in said)


@pytest.mark.parametrize("text", ['{set: {x: 0.5}, rationale: "a \\ud800 b"}', '{set: {x: "\\udfff"}}',
                                  '{"\\ud800": 1, set: {x: 0.5}}'])  # fmt: skip
def test_half_a_pair_in_a_dropped_file_is_refused_and_the_loop_goes_on(text: str):
    write(x=0.1)
    looping = prepare()
    (PLACE / "next_config.yaml").write_text(text)
    looping.go(1)
    (refusal,) = looping.state.refused
    assert "must hold text that can be written as UTF-8" in refusal["why"]
    assert looping.state.trials[0].stage == "done"


# ---- Runs

PLANTING = """
import json
if os.path.exists("plant") and seed == 0:
    place = os.path.join(run, "..", "..")
    for name in ("base-s4", "base-s5"):
        state = json.load(open(os.path.join(place, "state", "base-s0.json")))
        state |= {"seed": int(name[-1]), "exit_code": 0, "seconds": 0.1}
        os.makedirs(os.path.join(place, "runs", name), exist_ok=True)
        with open(os.path.join(place, "runs", name, "progress.csv"), "w") as file:
            print("step,my_score", "1,0", "2,99", sep="\\n", file=file)
        with open(os.path.join(place, "state", f"{name}.json"), "w") as file:
            json.dump(state, file)
"""


def test_runs_that_another_run_planted_are_set_aside_and_run():
    Path("plant").touch()
    write(x=0.1, program=PROGRAM + PLANTING)
    said: list[str] = []
    looping = prepare(lines=said)
    looping.go(0)
    planted = {line.split()[0] for line in said if "was there before this loop began it" in line}
    assert planted == {"base-s4", "base-s5"}
    assert Counter(calls())["base-s4"] == 1, "it was run by the loop too"
    assert looping.state.noise["mean"] < 20
    prepare().go(0)
    assert Counter(calls())["base-s4"] == 1


def test_the_list_of_begun_runs_is_the_loops_own():
    path = write(x=0.1)
    prepare().go(0)
    whole = (PLACE / "begun.json").read_text()
    (PLACE / "begun.json").write_text(whole.replace("base-s5", "base-s9"))
    with pytest.raises(ForgedError, match=r"but was not written by it: .*--accept"):
        prepare()
    (PLACE / "begun.json").unlink()
    with pytest.raises(ForgedError, match=r"must name the runs that this loop has begun, but is gone"):
        prepare()
    loop.prepare(loop.load(path), PLACE, 2, lambda line: None, accept=True).go(0)
    assert max(Counter(calls()).values()) == 1
