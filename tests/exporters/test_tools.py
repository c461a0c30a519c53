"""Do the real libraries read what is written? A Python that has them is named by RELAB_TOOLS_PYTHON, else .venv-sb3's.

    python -m venv V && V/bin/pip install tensorboard mlflow-skinny 'wandb<0.20'
    RELAB_TOOLS_PYTHON=V/bin/python make test-all

Newer releases of wandb read .wandb files with a program of their own, which has no door from Python.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

from relab.exporters.convert import convert
from relab.exporters.naming import named
from relab.importers import find

ROOT = Path(__file__).resolve().parents[2]
PYTHON = os.environ.get("RELAB_TOOLS_PYTHON") or str(ROOT / ".venv-sb3" / "bin" / "python")
NEEDS = {"tensorboard": "import tensorboard", "mlflow": "import mlflow.store.tracking.file_store",
         "wandb": "import wandb.sdk.internal.datastore"}  # fmt: skip
SOURCES = {"sb3": ROOT / "tests/importers/fixtures/sb3", "jsonl": ROOT / "tests/importers/fixtures/jsonl"}

pytestmark = pytest.mark.slow


def read_back(tool: str, folder: Path) -> dict[str, dict[str, list[list]]]:
    try:
        there = subprocess.run([PYTHON, "-c", NEEDS[tool]], capture_output=True, check=False).returncode == 0
    except OSError:
        there = False
    if not there:
        pytest.skip(f"{PYTHON} has no {tool} that can be asked; see the head of this file")
    script = [PYTHON, str(Path(__file__).with_name("read_back.py")), tool, str(folder)]
    return json.loads(subprocess.run(script, capture_output=True, text=True, check=True).stdout)


def number(value: str) -> float:
    return float(json.loads(value) if value.startswith('"') else value)


@pytest.mark.parametrize("source", list(SOURCES))
@pytest.mark.parametrize("tool", list(NEEDS))
def test_the_library_reads_every_number(tool, source, tmp_path):
    done = convert(SOURCES[source], tool, tmp_path / "out")
    found = read_back(tool, tmp_path / "out")
    for run, row in zip(find.load_all(SOURCES[source]).runs, done.runs, strict=True):
        theirs = found[row["as"]]
        for name, column, _ in named(run.history, "relab"):
            kind = np.float32 if tool == "tensorboard" else np.float64
            got = np.array([number(value) for _, value in theirs[name]], np.float64)
            np.testing.assert_array_equal(got, column.values.astype(kind).astype(np.float64), err_msg=name)
            if tool != "wandb":  # which counts rows
                assert [step for step, _ in theirs[name]] == column.steps.tolist()
