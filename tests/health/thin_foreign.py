"""How does a run of another library become a small history? python tests/health/thin_foreign.py SB3_FOLDER [NAME]

The runs are made by benchmarks/peers/sb3_runs.py. Each is read by its importer, thinned as relab's own are, and written
as a run folder, so that the faults in planted.py can be planted into rows.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from make_histories import ROOT, digits, spread, write_rows

RUNS = {"dqn-cartpole": "dqn-CartPole-v1-s0", "sac-pendulum": "sac-Pendulum-v1-s0", "a2c-acrobot": "a2c-Acrobot-v1-s0"}
ENDS = {"dqn-cartpole": 35_000}  # of 50,000: there it had solved the task, and fell again later
ROWS, EVALUATIONS = 16, 6
DROPPED = ("time/", "foreign/", "return/std", "return/min", "return/max", "return/episodes", "eval/")


def cut(history: Any, last: int) -> None:
    """The run as if it had been planned to end there."""
    for name, (steps, values) in history.columns.items():
        history.columns[name] = type(history.columns[name])(steps[steps <= last], values[steps <= last])
    history.evals = [row for row in history.evals if row["step"] <= last]
    history.config["total_steps"] = last


def rows_of(history: Any) -> list[dict[str, Any]]:
    """Columns as rows by step, each column thinned by itself."""
    rows: dict[int, dict[str, Any]] = {}
    for name, (steps, values) in history.columns.items():
        if not name.startswith(DROPPED):
            for i in spread(len(steps), ROWS):
                at = int(steps[i])
                rows.setdefault(at, {"step": at, "axis": "agent_steps"})[name] = float(values[i])  # one agent each
    return [digits(rows[step]) for step in sorted(rows)]


def thin(source: Path, target: Path) -> None:
    from relab.configs.yaml_io import write_yaml
    from relab.importers import find

    (run,) = find.load_all(source).runs
    history = run.history
    if target.name in ENDS:
        cut(history, ENDS[target.name])
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    write_rows(target / "metrics.jsonl", rows_of(history))
    write_rows(target / "timing.jsonl", [])
    write_rows(target / "events.jsonl", [])
    kept = [history.evals[i] | {"axis": "agent_steps"} for i in spread(len(history.evals), EVALUATIONS)]
    write_rows(target / "evals.jsonl", [digits(row) for row in kept])
    write_yaml(target / "config.yaml", history.config)
    meta = {"schema": 1, "id": target.name, "name": target.name, "status": "finished", "seed": history.meta.get("seed"),
            "command": "python -m benchmarks.peers.sb3_runs", "packages": {"stable-baselines3": "2"},
            "spec": history.meta.get("spec", {})}  # fmt: skip
    (target / "meta.json").write_text(json.dumps(meta) + "\n")


if __name__ == "__main__":
    for name, folder in RUNS.items():
        if len(sys.argv) == 2 or name in sys.argv[2:]:
            thin(Path(sys.argv[1]) / folder, ROOT / "healthy" / name)
