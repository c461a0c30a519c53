"""How does a run of another library become a small history? python tests/health/thin_foreign.py FOLDER NAME...

The runs are made by benchmarks/peers (sb3_runs.py, sb3_faults.py, offline_runs.py) and by sheeprl as said at SHEEPRL.
Each is read by its importer, thinned as relab's own are, and written as a run folder, so that the faults in planted.py
can be planted into rows.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

from make_histories import ROOT, digits, spread, write_rows

# sheeprl exp=dreamer_v3 env=gym env.id=CartPole-v1 algo=dreamer_v3_XS algo.replay_ratio=0.4 algo.horizon=10 (small
# networks); freebits: algo.world_model.kl_free_nats=50; collapsed: kl_representation=50 kl_dynamic=50 kl_free_nats=0
SHEEPRL = {
    "dreamer-cartpole": "healthy/s0",
    "dynamics-never-trained": "freebits/s0",
    "posterior-collapsed": "collapsed/s0",
}
HEALTHY = {
    "dqn-cartpole": "dqn-CartPole-v1-s0", "sac-pendulum": "sac-Pendulum-v1-s0", "a2c-acrobot": "a2c-Acrobot-v1-s0",
    "awr-cartpole": "healthy/awr-s0", "iql-cartpole": "healthy/iql-s0",
    "dreamer-cartpole": SHEEPRL["dreamer-cartpole"],
}  # fmt: skip
FAULTY = {
    "steps-too-small": "lr-over-1000/dqn-CartPole-v1-s0", "steps-too-large": "lr-times-100/sac-Pendulum-v1-s0",
    "critic-expects-nothing": "lr-over-1000/sac-Pendulum-v1-s0",
    "value-sign-turned": "reward-negated/sac-Pendulum-v1-s0",
    "value-in-other-units": "reward-times-1000/td3-Pendulum-v1-s0",
    "replay-too-small": "buffer-tiny/sac-Pendulum-v1-s0", "rows-hardly-used": "updates-rare/dqn-CartPole-v1-s0",
    "temperature-drowns-reward": "temperature-huge/sac-Pendulum-v1-s0",
    "target-network-frozen": "target-never-updated/sac-Pendulum-v1-s0",
    "learning-never-started": "learning-starts-late/sac-Pendulum-v1-s0",
    "critic-loss-blow-up": "reward-times-1000/sac-Pendulum-v1-s0",
    "weights-at-cap": "cap-reached/awr-s0", "weights-uniform": "weights-uniform/iql-s0",
    "few-rows-decide": "few-rows-decide/awr-s0", "dynamics-never-trained": SHEEPRL["dynamics-never-trained"],
    "posterior-collapsed": SHEEPRL["posterior-collapsed"],
}  # fmt: skip
ENDS = {"dqn-cartpole": 35_000}  # of 50,000: there it had solved the task, and fell again later
ROWS, EVALUATIONS = 16, 6
DROPPED = ("time/", "foreign/", "return/std", "return/min", "return/max", "return/episodes", "eval/")
KEPT = ("eval/std_det", "eval/episodes", "eval/return_det", "eval/length_det")  # where evaluations have no episodes


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
        if not name.startswith(DROPPED) or (name in KEPT and not history.evals):
            for i in spread(len(steps), ROWS):
                at = int(steps[i])
                rows.setdefault(at, {"step": at, "axis": "agent_steps"})[name] = float(values[i])  # one agent each
    return [digits(rows[step]) for step in sorted(rows)]


def thin(source: Path, target: Path) -> None:
    from relab.config.yaml_io import write_yaml
    from relab.formats.read import find

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
    write_yaml(target / "config.yaml", small(history.config))
    meta = {"schema": 1, "id": target.name, "name": target.name, "status": "finished", "seed": history.meta.get("seed"),
            "command": "python -m benchmarks.peers", "packages": {}, "spec": history.meta.get("spec", {})}  # fmt: skip
    (target / "meta.json").write_text(json.dumps(meta) + "\n")


def small(config: dict[str, Any]) -> dict[str, Any]:
    """Hydra's configs have hundreds of keys: those of logging, devices and folders are left out."""
    gone = re.compile(r"/|^(metric|model_manager|fabric|checkpoint|hydra|root_dir|run_name|exp_name|torch|log_root)"
                      r"|layer_norm|_act|_target_|optimizer|cnn|mlp_keys|wrapper")  # fmt: skip
    kept = config | {"foreign": {k: v for k, v in config.get("foreign", {}).items() if not gone.search(k)}}
    return json.loads(json.dumps(kept))


if __name__ == "__main__":
    for name in sys.argv[2:]:
        kind, path = ("faulty", FAULTY[name]) if name in FAULTY else ("healthy", HEALTHY[name])
        thin(Path(sys.argv[1]) / path, ROOT / kind / name)
