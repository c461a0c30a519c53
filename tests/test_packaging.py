"""Do the parts that are handed out work alone? The notebooks, the site, and the wheel in an empty venv."""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from where import ROOT, histories

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
SITE = ROOT / ".venv-docs" / "bin" / "python"


def run(command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


def test_there_are_two_notebooks_without_outputs():
    assert [path.stem for path in NOTEBOOKS] == ["compare_and_figure", "read_sb3_logs"]
    cells = [cell for path in NOTEBOOKS for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]]
    assert not [cell for cell in cells if cell.get("outputs")], "outputs are made anew, and would tell of a machine"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_what_a_notebook_takes_from_relab_is_there(path):
    """At once, and not in the slow part alone: a function that had moved stopped one of them."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    lines = [line for cell in code for line in cell.split("\n")]
    tree = ast.parse("\n".join(line for line in lines if not line.startswith(("%", "!"))))
    names: dict[str, object] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("relab"):
            exec(compile(ast.Module([node], []), str(path), "exec"), names)
    used = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)]
    modules = [(names[node.value.id], node.attr) for node in used if isinstance(names.get(node.value.id), ModuleType)]
    assert [(module.__name__, attr) for module, attr in modules if not hasattr(module, attr)] == []


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the kernel's own libraries
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    import nbformat
    from nbclient import NotebookClient

    book = nbformat.read(path, as_version=4)
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = json.dumps([cell.get("outputs", []) for cell in book.cells])
    assert "image/png" in shown or "image/svg" in shown
    assert ("diverged" if "sb3" in path.stem else "compare-profile") in shown


# ---- The site

needs_mkdocs = pytest.mark.skipif(not SITE.exists(), reason="mkdocs is not there: make site")


def build_site(folder: Path, addition: str = "") -> subprocess.CompletedProcess[str]:
    """As `make site` does, from a copy, with something added to one page."""
    for name in ("docs", "src", "benchmarks", "examples"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("mkdocs.yml", "README.md", "CONTRIBUTING.md", "CHANGELOG.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / name)
    with open(folder / "docs" / "next.md", "a", encoding="utf-8") as page:
        page.write(f"\n{addition}\n")
    command = [str(SITE), "-m", "mkdocs", "build"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.slow
@needs_mkdocs
def test_the_site_builds_and_every_link_holds(tmp_path):
    done = build_site(tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    assert "callbacks/" in (tmp_path / "build" / "site" / "index.html").read_text(encoding="utf-8")
    assert (tmp_path / "build" / "site" / "callbacks" / "index.html").is_file()


@pytest.mark.slow
@needs_mkdocs
@pytest.mark.parametrize("link", ["[a](report.md#no-such-heading)", "[a](nowhere.md)", "[a](../src/relab/gone.py)"])
def test_a_link_to_nothing_fails_the_site(tmp_path, link):
    done = build_site(tmp_path, link)
    assert done.returncode != 0
    assert "next.md" in done.stderr


# ---- The wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Wheel and source archive as `make dist` makes them; the wheel is handed on."""
    out = tmp_path_factory.mktemp("dist")
    run([sys.executable, "-m", "build", "--outdir", out, ROOT], cwd=out)
    assert len(list(out.glob("relab-*.tar.gz"))) == 1
    (made,) = out.glob("relab-*.whl")
    return made


def venv(folder: Path, requirement: str) -> Path:
    run([sys.executable, "-m", "venv", folder])
    command = [
        folder / "bin" / "python",
        "-m",
        "pip",
        "install",
        "--quiet",
        "-c",
        ROOT / "constraints.txt",
        requirement,
    ]
    run(command)
    return folder / "bin"


def alone(tmp_path: Path) -> dict[str, str]:
    """Nothing of the repository is on the way of Python."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return kept | {"HOME": str(tmp_path), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_the_wheel_alone_reads_runs(wheel, tmp_path):
    bin_, env = venv(tmp_path / "light", str(wheel)), alone(tmp_path)
    said = run([bin_ / "relab", "examine", histories() / "healthy"], env=env, cwd=tmp_path)
    assert "runs" in said
    run([bin_ / "relab", "report", histories() / "healthy", "--out", tmp_path / "page.html"], env=env, cwd=tmp_path)
    assert (tmp_path / "page.html").stat().st_size > 20_000
    check = "import relab, relab.callbacks, importlib.util as u; print(u.find_spec('torch'), relab.__file__)"
    where = run([bin_ / "python", "-c", check], env=env, cwd=tmp_path)
    assert where.startswith("None ")
    assert str(tmp_path) in where, "the installed one, not the repository"


@pytest.mark.slow
def test_the_wheel_with_train_trains(wheel, tmp_path):
    bin_, env = venv(tmp_path / "whole", f"{wheel}[train]"), alone(tmp_path)
    words = ["train", "ppo", "env=cartpole", "seed=0", "total_steps=4096", "--name", "a"]
    run([bin_ / "relab", *words], env=env, cwd=tmp_path)
    assert "cartpole" in run([bin_ / "relab", "examine", "runs/a"], env=env, cwd=tmp_path)
