"""Do the real libraries read what is written? A Python that has them is named by RELAB_TOOLS_PYTHON, else .venv-sb3's.

    python -m venv V && V/bin/pip install tensorboard mlflow-skinny 'wandb<0.20'
    RELAB_TOOLS_PYTHON=V/bin/python make test-all

Releases of wandb from 0.20 on read .wandb files with a program of their own, which has no door from Python: there
`wandb sync` itself uploads them, to a server that this test plays.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find
from relab.formats.write.convert import convert
from relab.formats.write.naming import named
from where import ROOT, fixtures

PYTHON = os.environ.get("RELAB_TOOLS_PYTHON") or str(ROOT / ".venv-sb3" / "bin" / "python")
NEEDS = {"tensorboard": "import tensorboard", "mlflow": "import mlflow.store.tracking.file_store",
         "wandb": "import wandb.sdk.internal.datastore"}  # fmt: skip
SOURCES = {name: fixtures() / name for name in ("sb3", "jsonl")}

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
    by_run = read_back(tool, tmp_path / "out")
    for run, row in zip(find.load_all(SOURCES[source]).runs, done.runs, strict=True):
        theirs = by_run[row.folder]
        for name, column, _ in named(run.history, "relab"):
            kind = np.float32 if tool == "tensorboard" else np.float64
            values = np.array([number(value) for _, value in theirs[name]], np.float64)
            np.testing.assert_array_equal(values, column.values.astype(kind).astype(np.float64), err_msg=name)
            if tool != "wandb":  # which counts rows
                assert [step for step, _ in theirs[name]] == column.steps.tolist()


# ---- wandb sync


class Server(ThreadingHTTPServer):
    """As much of W&B's server as an upload needs: says yes to everything and keeps the rows."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Answer)
        self.rows: dict[str, list[dict]] = {}  # run's id -> what arrived
        self.about: dict[str, dict] = {}

    def run(self, words: dict) -> dict:
        variables = words["variables"]
        self.about[variables["name"]] = self.about.get(variables["name"], {}) | {
            k: v for k, v in variables.items() if v
        }
        project = {"id": "p", "name": "relab", "entity": {"id": "e", "name": "me"}}
        bucket = {"id": "b", "name": variables["name"], "displayName": variables.get("displayName"), "config": "{}",
                  "description": "", "sweepName": None, "historyLineCount": 0, "project": project}  # fmt: skip
        return {"data": {"upsertBucket": {"bucket": bucket, "inserted": True}}}


class Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def log_message(self, *words) -> None:
        """Nothing is printed."""

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        data = gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data
        answer: dict = {"data": {}}
        if self.path == "/graphql" and b"upsertBucket" in data:
            answer = self.server.run(json.loads(data))
        elif self.path.endswith("/file_stream"):
            history = (json.loads(data).get("files") or {}).get("wandb-history.jsonl", {"content": []})
            mine = self.server.rows.setdefault(self.path.split("/")[-2], [])
            mine += [json.loads(line) for line in history["content"]]
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server():
    with Server() as running:
        threading.Thread(target=running.serve_forever, daemon=True).start()
        yield running
        running.shutdown()


def test_wandb_sync_uploads_every_row(server, tmp_path):
    wandb = Path(PYTHON).with_name("wandb")
    if not shutil.which(wandb) or read_version(wandb) < (0, 20):
        pytest.skip(f"{wandb} is no wandb from 0.20 on; see the head of this file")
    done = convert(SOURCES["sb3"], "wandb", tmp_path / "out")
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "WANDB_API_KEY": "0" * 40,
           "WANDB_BASE_URL": f"http://127.0.0.1:{server.server_port}", "WANDB_ERROR_REPORTING": "false"}  # fmt: skip
    folders = [str(tmp_path / "out" / row.folder) for row in done.runs]
    process = subprocess.run([wandb, "sync", *folders], env=env, cwd=tmp_path, capture_output=True, text=True,
                             timeout=300, check=True)  # fmt: skip
    assert "Skipped" not in process.stdout + process.stderr
    for run, row in zip(find.load_all(SOURCES["sb3"]).runs, done.runs, strict=True):
        (path,) = (tmp_path / "out" / row.folder).glob("*.wandb")
        arrived = sorted(server.rows[path.stem.removeprefix("run-")], key=lambda line: line["_step"])
        assert server.about[path.stem.removeprefix("run-")]["displayName"] == row.folder.removeprefix("offline-")
        for name, column, _ in named(run.history, "relab"):
            values = [float(line[name]) for line in arrived if name in line]
            np.testing.assert_array_equal(values, column.values, err_msg=f"{run.name} {name}")


def read_version(wandb: Path) -> tuple[int, ...]:
    output = subprocess.run([wandb, "--version"], capture_output=True, text=True, check=False).stdout
    return tuple(int(part) for part in output.split()[-1].split(".")[:2]) if output.strip() else (0,)
