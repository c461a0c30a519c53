"""Can a test see or touch what is the user's? A small project with this one's conftest, and users with much to see."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import apart
import made_up

HERE = Path(__file__).resolve().parent
SETTINGS = (
    '[tool.pytest.ini_options]\ntestpaths = ["tests"]\npythonpath = ["tests"]\naddopts = "-p no:cacheprovider -q"\n'
)


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """Someone whose home, caches and variables are full."""
    home = tmp_path / "user"
    for name in (".cache/relab/index.db", ".config/matplotlib/matplotlibrc", ".gitconfig", ".netrc"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("poison [\n")
    more = {"HOME": home, "XDG_CACHE_HOME": home / ".cache", "RELAB_QUEUE": home / "queue", "RELAB_RUN": home / "run",
            "GIT_DIR": home / "nothing", "GIT_CONFIG_GLOBAL": home / ".gitconfig", "COLUMNS": "20",
            "TMPDIR": tmp_path / "tmp"}  # fmt: skip
    (tmp_path / "tmp").mkdir()
    return {**os.environ, **{name: str(value) for name, value in more.items()}}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with this one's conftest, in which the user has worked."""
    repo = tmp_path / "repo"
    (repo / "tests").mkdir(parents=True)
    (repo / "src" / "relab").mkdir(parents=True)
    for name in ("conftest.py", "apart.py", "kernels.py", "syntax.py", "where.py"):
        shutil.copy(HERE / name, repo / "tests" / name)
    (repo / "pyproject.toml").write_text(SETTINGS)
    for name in ("runs/one/meta.json", "experiments/LOG.md", ".relab/state"):
        (repo / name).parent.mkdir(parents=True)
        (repo / name).write_text("poison [\n")
    return repo


def session(project: Path, user: dict[str, str], *bodies: str, workers: int = 0) -> tuple[int, str]:
    """pytest as the user would call it, in the repository's root, with a test of each body."""
    text = "import os, pathlib, sqlite3, subprocess, sys\nREPO = pathlib.Path(__file__).resolve().parents[1]\n"
    for number, body in enumerate(bodies):
        lines = "".join(f"    {line}\n" for line in body.splitlines())
        text += f"\ndef test_{number}(tmp_path):\n{lines}"
    (project / "tests" / "test_it.py").write_text(text)
    script = "import os, sys, pytest; os.chdir(sys.argv[1]); sys.exit(pytest.main(sys.argv[2:]))"
    command = [sys.executable, "-c", script, str(project), *(["-n", str(workers)] if workers else [])]
    done = subprocess.run(command, env=user, cwd=project.parent, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


# ---- What a test finds

FINDS_NOTHING = """
assert not os.listdir("."), "a working folder of its own"
assert "user" not in os.path.expanduser("~") and "user" not in os.environ["XDG_CACHE_HOME"]
assert not [name for name in os.environ if name.startswith("RELAB_")] and "COLUMNS" not in os.environ
child = "import os; print(os.listdir('.'), os.path.expanduser('~'), os.environ.get('RELAB_QUEUE'))"
out = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True).stdout
assert out.split() == ["[]", os.environ["HOME"], "None"]
told = subprocess.run(["git", "config", "--list"], capture_output=True, text=True)
assert (told.returncode, told.stdout, told.stderr) == (0, "", "")
open("here.txt", "w").close()
"""


@pytest.mark.parametrize("workers", [0, 1], ids=["alone", "shared out"])
@pytest.mark.some(1)
def test_a_test_finds_nothing_of_the_user(project, user, workers):
    code, out = session(project, user, FINDS_NOTHING, workers=workers)
    assert code == 0, out
    assert "1 passed" in out
    assert not (project / "here.txt").exists()


# ---- What fails a test

USERS, HOME, LEFT = "it is the user's", "it is in the user's home", "leave the repository as it is"
TOUCHES = {
    '(REPO / "experiments/LOG.md").read_text()': USERS,
    'list((REPO / "runs").iterdir())': USERS,
    'os.listdir(REPO / "runs")': USERS,
    'try:\n    open(REPO / ".relab/none")\nexcept OSError:\n    pass': USERS,
    'sqlite3.connect(REPO / "runs/x.db").close()': USERS,
    'os.chdir(REPO)\nopen("experiments/LOG.md").close()': USERS,
    'open(REPO.parent / "user" / ".netrc").close()': HOME,
    '(REPO / "src" / "new.py").write_text("")': LEFT,
    '(REPO / "docs").mkdir()': LEFT,
    'os.rename(REPO / "pyproject.toml", tmp_path / "x")\nos.rename(tmp_path / "x", REPO / "pyproject.toml")': LEFT,
    'subprocess.run([sys.executable, "-c", ""], env={})': "without HOME",
    'subprocess.run([sys.executable, "-c", ""], cwd=REPO)': "in the repository",
}


def test_what_is_the_users_fails_the_test_that_touches_it(project, user):
    code, out = session(project, user, *TOUCHES)
    assert code == 1, out
    assert f"{len(TOUCHES)} passed, {len(TOUCHES)} errors" in out, "each test is failed after it has run"
    errors = dict(re.findall(r"ERROR at teardown of test_(\d+) .*?^E +AssertionError: (.*?)$", out, re.M | re.S))
    assert [body for n, (body, why) in enumerate(TOUCHES.items()) if why not in errors[str(n)]] == [], out


@pytest.mark.parametrize("workers", [0, 1], ids=["alone", "shared out"])
@pytest.mark.some(1)
def test_what_a_child_leaves_behind_fails_the_session(project, user, workers):
    child = 'subprocess.run([sys.executable, \'-c\', f\'open({str(REPO / "runs" / "left")!r}, "w")\'], check=True)'
    cache = '(REPO / "src" / "__pycache__").mkdir()\n(REPO / "src" / "__pycache__" / "x.pyc").touch()'  # is no fault
    code, out = session(project, user, child, cache, workers=workers)
    assert "2 passed" in out, out
    assert code == 1, out
    assert "the tests left 1 files in the repository, but must write below tmp_path:\nruns/left" in out


# ---- The parts


def test_python_and_temporary_files_in_the_home_are_free(tmp_path):
    home = tmp_path / "home"
    watch = apart.Watch(home / "code" / "relab", home, (str(home / ".pyenv"), str(home / "tmp")))
    for path, free in ((".pyenv/lib/x.py", True), ("tmp/x", True), (".ssh/config", False), (".pyenv2/x", False)):
        assert (watch.objection(str(home / path), changes=True) == "") == free, path
    assert watch.objection(str(home / "code/relab/src/relab/cli.py"), changes=False) == ""
    assert watch.objection(str(home / "code/relab/.venv/bin/python"), changes=False) == ""
    assert watch.objection(str(home / "code/relab/sweeps/x"), changes=False)


def test_temporary_files_are_memory_where_there_is_room_and_nobody_chose_a_place(tmp_path, monkeypatch):
    monkeypatch.delenv("TMPDIR", raising=False)
    assert apart.memory(str(tmp_path), least=1) == str(tmp_path)
    assert apart.memory(str(tmp_path), least=2**62) == ""
    assert apart.memory(str(tmp_path / "none"), least=1) == ""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert apart.memory(str(tmp_path), least=1) == ""


@pytest.mark.slow  # a whole demo; CI makes it before the tests anyway
def test_the_demo_before_the_tests_changes_no_test(tmp_path, user):
    """Tests that ask what was tried before, called in a folder where all of it was."""
    made_up.answered(tmp_path / "experiments", "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", [100, 20])
    made_up.answered(tmp_path / "experiments", "back", "{a: {lr: 0.3}, b: {lr: 0.001}}", [100, 20])
    names = [f"{HERE}/advise/test_tried.py", "-k", "cannot_be_read or next_tells or experiments_and_their"]
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={HERE.parent}", *names]
    done = subprocess.run([*command, "-c", str(HERE.parent / "pyproject.toml")], env=user, cwd=tmp_path, text=True,
                          capture_output=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 passed" in done.stdout
