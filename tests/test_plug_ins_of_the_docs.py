"""Do the pages on environments and importers lead from an empty folder to a plug-in that works, as they are written?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from where import ROOT

NAMED = re.compile(r"`([\w/.-]+\.(?:py|toml))`(?:: [^\n]*)?:\n\n```\w+\n(.*?)```", re.S)


def write_plug_in(page: str, folder: Path) -> None:
    """The files that a page names before their text, and what `pip install -e .` makes of its entry points."""
    for name, text in NAMED.findall((ROOT / "docs" / page).read_text(encoding="utf-8")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name']}-{project['version']}.dist-info"
    info.mkdir()
    info.joinpath("METADATA").write_text(f"Name: {project['name']}\nVersion: {project['version']}\n")
    groups = project["entry-points"].items()
    lines = [f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in points.items()) for group, points in groups]
    info.joinpath("entry_points.txt").write_text("\n".join(lines))


def call(folder: Path, *words: str) -> str:
    paths = os.pathsep.join([str(folder), str(ROOT / "src")])
    done = subprocess.run([sys.executable, "-m", *words], cwd=folder, capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": paths})  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


TINY = ("total_steps=64", "algo.envs=2", "algo.steps=8", "algo.minibatches=1", "eval.episodes=2")


@pytest.mark.slow  # compiles kernels of its own
def test_an_environment_from_nothing(tmp_path: Path) -> None:
    write_plug_in("environments.md", tmp_path)
    assert "2 passed" in call(tmp_path, "pytest", "tests", "-q", "-p", "no:cacheprovider")
    words = ("relab.cli", "train", "ppo", "env=corridor", "env.length=12")
    assert "env.length" in call(tmp_path, *words, "--print-config")
    call(tmp_path, *words, *TINY, "--quiet")


def test_an_importer_from_nothing(tmp_path: Path) -> None:
    write_plug_in("importers.md", tmp_path)
    assert "1 passed" in call(tmp_path, "pytest", "tests", "-q", "-p", "no:cacheprovider")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "weights.log").write_text("weightlog 0.001\n100 1.5 -0.6 3\n200 2.5 -0.5 4\n")
    assert "weightlog" in call(tmp_path, "relab.cli", "examine", "logs")


def test_files_are_found_by_the_words_before_them() -> None:
    file = "A file, `a/b.py`:\n\n```python\nx = 1\n```\n\n"
    page = file + "Its test, `t.py`: what it does:\n\n```python\ny\n```\n\n`no.py`\n"
    assert NAMED.findall(page) == [("a/b.py", "x = 1\n"), ("t.py", "y\n")]


@pytest.mark.parametrize("page", ["environments.md", "importers.md"])
def test_the_way_into_the_tree_names_files_that_are_there(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").partition("**In the tree")[2].partition("\n## ")[0]
    named = set(re.findall(r"(?:src|tests)/[\w/]+\.py", text)) - {
        "src/relab/train/envs/corridor.py", "tests/train/envs/test_corridor.py", "src/relab/formats/read/weightlog.py",
    }  # fmt: skip
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []
