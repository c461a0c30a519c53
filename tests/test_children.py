"""Do files of a user's that are called like modules of the standard library break relab, or any process it starts?"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import relab
from relab.base import processes

SRC = Path(relab.__file__).parents[1]
HOSTILE = ("queue", "random", "tokenize", "types", "json", "numpy", "socket", "tempfile", "inspect", "signal")
SMALL = ("env=cartpole total_steps=256 algo.envs=4 algo.steps=16 algo.epochs=1 algo.minibatches=1 eval.every=256"
         " eval.episodes=2 eval.stop_at=null").split()  # fmt: skip
EXPERIMENT = """\
question: does it
metric: eval/return_det
direction: higher
smallest_effect: 1
base: {{algo: ppo, env: {env}, total_steps: 256, algo.envs: 4, algo.steps: 16, algo.epochs: 1, algo.minibatches: 1,
  eval.every: 256, eval.episodes: 2}}
vary: {{algo.lr: [0.001, 0.002]}}
seeds: [0]
"""
ENV = """\
import random
from relab.train.envs.cartpole import CartPole as Env
assert random.random() < 1, "the standard library's"
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    """A working folder whose files end whoever imports them."""
    place = tmp_path / "work"
    place.mkdir()
    for name in HOSTILE:
        (place / f"{name}.py").write_text(
            f"open({str(tmp_path / 'imported')!r}, 'a').write('{name} ')\nraise SystemExit(9)\n"
        )
    return place


@pytest.fixture
def run(folder, tmp_path):
    """relab as its console script starts it, in that folder."""
    script = tmp_path / "bin" / "relab"
    script.parent.mkdir()
    script.write_text("import sys\nfrom relab.cli import main\nsys.exit(main())\n")

    def call(*words: str, start: tuple[str, ...] = (str(script),), code: int = 0, **more: str) -> str:
        clean = {k: v for k, v in os.environ.items() if k != processes.SAFE}
        env = {**clean, "PYTHONPATH": str(SRC), **more}
        done = subprocess.run(
            [sys.executable, *start, *words], cwd=folder, env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == code, done.stdout + done.stderr
        assert not (tmp_path / "imported").exists(), (tmp_path / "imported").read_text()
        return done.stdout + done.stderr

    return call


@pytest.mark.slow
def test_every_command_works_beside_hostile_files(run, folder):
    run("train", "ppo", *SMALL, "--name", "a", "--quiet")
    run("examine", "runs/a", "--json")
    run("report", "runs/a", "--out", "page.html")
    run("runs", "--json")
    run("explain", "lr")


@pytest.mark.slow  # two more processes that import torch
def test_evaluating_works_beside_hostile_files(run, folder):
    run("train", "ppo", *SMALL, "--name", "a", "--quiet")
    run("eval", "a", "--episodes", "2")


@pytest.mark.slow  # some processes that import torch
def test_an_experiment_starts_its_children_safely_and_they_find_an_environment_of_the_working_folder(run, folder):
    (folder / "mine.py").write_text(ENV)
    (folder / "e.yaml").write_text(EXPERIMENT.format(env="'mine:Env'"))
    run("experiment", "e.yaml", "--name", "x", "--yes", "--workers", "1")
    assert len(list((folder / "experiments/x/runs").glob("*/meta.json"))) == 2


@pytest.mark.slow  # by the same words as training beside hostile files, in three more processes
def test_a_queue_starts_its_children_safely_and_they_find_an_environment_of_the_working_folder(run, folder):
    (folder / "mine.py").write_text(ENV)
    run("queue", "add", "train", "ppo", "env=mine:Env", *SMALL[1:], "--name", "q")
    run("queue", "work", "--workers", "1")
    assert '"finished"' in (folder / "runs/q/meta.json").read_text()


@pytest.mark.slow  # by the same processes that an experiment has
def test_a_sweep_starts_its_children_safely(run, folder):
    text = EXPERIMENT.format(env="cartpole").replace("vary:", "axes:") + "confirm: 0\n"
    (folder / "s.yaml").write_text(text)
    run("sweep", "s.yaml", "--name", "s", "--yes", "--workers", "1")
    assert list((folder / "sweeps/s/runs").glob("*/meta.json"))


@pytest.mark.parametrize("path", ["{}", "{}:", ":{}"])
@pytest.mark.some(1)
def test_the_working_folder_is_searched_last_however_relab_is_started(run, folder, path):
    (folder / "types.py").unlink()  # Python itself does not start beside it
    where = path.replace(":", os.pathsep).format(SRC)
    run("runs", ".", "--json", start=("-m", "relab.cli"), PYTHONPATH=where)
    run("runs", ".", "--json", PYTHONPATH=where)


@pytest.mark.parametrize("name", ["typing", "re", "enum", "shlex"])
def test_a_module_of_the_standard_library_is_not_taken_from_the_working_folder(run, tmp_path, name):
    own = tmp_path / "own"
    own.mkdir()
    (own / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write('{name}')\n")
    run("-c", f"import os; os.chdir({str(own)!r}); os.execv({sys.executable!r}, [{sys.executable!r}, '-m', 'relab.cli',"
        " 'runs', '.', '--json'])", start=("-P",))  # fmt: skip


@pytest.mark.slow  # two processes that import torch
def test_processes_of_the_fault_suite_start_safely(run, tmp_path):
    """A case that does not exist is refused by the child itself: it came as far as our code."""
    script = tmp_path / "bin" / "faults"
    script.write_text(
        "from pathlib import Path\nfrom relab.lab.faults.suite import Case, make_all\n"
        "if __name__ == '__main__':\n"
        "    try:\n        make_all(Path('out'), [Case(None, 'nowhere', 0)], 2, print)\n"
        "    except KeyError as error:\n        print('refused', error)\n"
    )
    assert "refused 'nowhere'" in run(start=(str(script),))


def test_the_environment_is_as_before(monkeypatch):
    monkeypatch.delenv(processes.SAFE, raising=False)
    with processes.safe_path():
        assert os.environ[processes.SAFE] == "1"
    assert processes.SAFE not in os.environ
    monkeypatch.setenv(processes.SAFE, "yes")
    with processes.safe_path():
        pass
    assert os.environ[processes.SAFE] == "yes"


def test_python_is_started_by_the_words_of_one_module():
    """sys.executable elsewhere would start a Python that searches the working folder first."""
    places = []
    for file in sorted((SRC / "relab").rglob("*.py")):
        if file.name != "processes.py" and "executable" in (text := file.read_text()):
            tree = ast.parse(text)
            places += [f"{file}:{node.lineno}" for node in ast.walk(tree)
                      if isinstance(node, ast.Attribute) and node.attr == "executable"]  # fmt: skip
    assert places == []
