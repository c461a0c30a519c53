"""Are the logs that follow from other files made once, whole, and for all processes of a session?"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import apart
import where
from relab.health.rule import all_rules

ASK = "import sys; sys.path.insert(0, sys.argv[1]); import where; print(where.histories())"
REAL = where.TESTS / "health" / "histories"


def test_every_rule_has_its_fault_and_git_holds_the_real_ones_alone(monkeypatch):
    monkeypatch.syspath_prepend(where.TESTS / "health")
    import gate_histories
    import make_histories
    import planted

    generated, real = ({path.name for path in (root / "faulty").iterdir()} for root in (where.histories(), REAL))
    assert generated == set(all_rules(plugins=False))
    planned = {*make_histories.EDITED, *planted.PLANTED, *gate_histories.FAULTS}
    assert generated - planned == real, "what can be made from other files is not committed"


def test_what_is_made_of_the_fixtures_is_not_in_git(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(where.TESTS / "formats" / "read")
    import make_folder_fixtures

    generated, real = files(where.fixtures()), files(where.TESTS / "formats" / "read" / "fixtures")
    for maker in make_folder_fixtures.MAKERS.values():
        maker(tmp_path)
    assert generated == real | files(tmp_path)
    assert not set(real) & set(files(tmp_path))


def test_no_log_looks_as_if_it_were_still_written():
    paths = [path for root in (where.histories(), where.fixtures()) for path in root.rglob("*")]
    assert {path.stat().st_mtime for path in paths} == {where.WRITTEN}


def test_processes_that_ask_at_once_share_one_copy(tmp_path):
    env = {**os.environ, where.SHARED: str(tmp_path)}
    processes = [subprocess.Popen([sys.executable, "-c", ASK, str(where.TESTS)], env=env, cwd=tmp_path, text=True,
                              stdout=subprocess.PIPE) for _ in range(2)]  # fmt: skip
    folders = [process.communicate()[0].strip() for process in processes]
    assert folders == [str(tmp_path / "histories")] * 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["histories", "histories.lock"]
    assert files(tmp_path / "histories") == files(where.histories())


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_script_leaves_no_copy_behind(tmp_path):
    env = {**{name: value for name, value in os.environ.items() if name != where.SHARED}, "TMPDIR": str(tmp_path)}
    folder = subprocess.run([sys.executable, "-c", ASK, str(where.TESTS)], env=env, cwd=tmp_path, text=True, check=True,
                          capture_output=True).stdout.strip()  # fmt: skip
    assert Path(folder).is_relative_to(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_test_that_changes_what_others_read_is_told(tmp_path):
    watch = apart.Watch(tmp_path / "repo", tmp_path / "home", (), str(tmp_path))
    inside = str(tmp_path / "histories" / "healthy" / "x")
    assert watch.objection(inside, changes=False) == ""
    assert "copy what you change" in watch.objection(inside, changes=True)
    assert watch.objection(str(tmp_path / "histories.part" / "x"), changes=True) == ""
