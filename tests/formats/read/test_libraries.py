"""Do the libraries, run now, still write what the fixtures hold? Their newest releases, where there are any.

    python -m venv V && V/bin/pip install tensorboard tensorboardX wandb mlflow-skinny sqlalchemy alembic pandas \\
        optuna trackio swanlab hydra-core pyyaml
    RELAB_TOOLS_PYTHON=V/bin/python make test-all

`pip install d3rlpy rsl-rl-lib skrl tianshou torchrl` adds the training libraries. For Stable-Baselines3 and RL-Zoo,
`make bench-peers` or RELAB_TOOLS_PYTHON of a venv with rl_zoo3.
"""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from test_conformance import FIXTURES, check

from relab.config.views import flatten
from relab.formats.read import find
from where import ROOT

PYTHON = os.environ.get("RELAB_TOOLS_PYTHON") or str(ROOT / ".venv-sb3" / "bin" / "python")
# what is made: script, format, packages, where it lies
MADE = {
    "tensorboard": ("make_binary_fixtures.py", "tensorboard", "tensorboard tensorboardX", "tensorboard"),
    "wandb": ("make_binary_fixtures.py", "wandb", "wandb", "wandb"),
    "mlflow": ("make_binary_fixtures.py", "mlflow", "mlflow sqlalchemy", "mlflow"),
    "trackio": ("make_binary_fixtures.py", "trackio", "trackio", "trackio"),
    "swanlab": ("make_binary_fixtures.py", "swanlab", "swanlab", "swanlab"),
    "optuna": ("make_fixtures.py", "optuna", "optuna sqlalchemy", "optuna"),
    "hydra": ("make_fixtures.py", "csv", "hydra", "csv/hydra"),
    "d3rlpy": ("make_fixtures.py", "d3rlpy", "d3rlpy", "d3rlpy"),
    "rsl_rl": ("make_library_fixtures.py", "tensorboard", "rsl_rl tensorboard", "boards/rsl_rl"),
    "skrl": ("make_library_fixtures.py", "tensorboard", "skrl gymnasium", "boards/skrl"),
    "tianshou": ("make_library_fixtures.py", "tensorboard", "tianshou tensorboard", "boards/tianshou"),
    "torchrl": ("make_library_fixtures.py", "torchrl", "torchrl", "torchrl"),
    "zoo_run": ("make_fixtures.py", "sb3", "rl_zoo3", "sb3/zoo_run"),
}
pytestmark = pytest.mark.slow


def make(name: str, folder: Path) -> Path:
    script, _, packages, place = MADE[name]
    statement = f"import {', '.join(packages.split())}"
    try:
        there = subprocess.run([PYTHON, "-c", statement], capture_output=True, check=False).returncode == 0
    except OSError:
        there = False
    if not there:
        pytest.skip(f"{PYTHON} has no {packages}; see the head of this file")
    env = {**os.environ, "RELAB_FIXTURES": str(folder), "OMP_NUM_THREADS": "1"} | {"PYTHONPATH": ""}
    done = subprocess.run([PYTHON, script, name], cwd=Path(__file__).parent, env=env, capture_output=True, text=True,
                          timeout=580, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / place


def shape(loaded: find.LoadedRuns) -> Counter[tuple[str, ...]]:
    """The runs by what they have; names hold times and ids, which differ every time."""
    return Counter(tuple(sorted(run.history.columns)) for run in loaded.runs)


def settings(loaded: find.LoadedRuns) -> list[str]:
    return sorted(repr(sorted(flatten(run.history.config).items())) for run in loaded.runs)


@pytest.mark.parametrize("name", list(MADE))
def test_what_the_library_writes_now_is_read(name, tmp_path):
    now, before = find.load_all(make(name, tmp_path)), find.load_all(FIXTURES / MADE[name][3])
    assert (now.broken, now.unread) == ([], [])
    assert {run.source.format for run in now.runs} == {MADE[name][1]}
    for run in now.runs:
        check(run.history)
    assert shape(now) == shape(before)
    assert settings(now) == settings(before)
