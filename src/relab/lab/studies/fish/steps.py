"""How is each part of the fish study done? Functions of a folder that return plain values."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import time
from hashlib import sha256
from pathlib import Path

import numpy as np

from relab import stats
from relab.base.documents import Document
from relab.base.interrupts import Interrupted
from relab.base.jsonl import read_jsonl, write_atomic
from relab.base.processes import RELAB
from relab.config import layers
from relab.lab.studies import Carry, Say, making
from relab.record.history import History
from relab.record.run_folder import DETERMINISTIC

HERE = Path(__file__).parent
CORPUS = Path("../shared/corpus/fish")  # the log's own folders, which are not part of relab
NUMBERS = ("avg_final", "min_final", "early_death_100", "step_one_share", "death_p10")
THEIRS = {"avg_final": "summary/avg_final_survival_rate", "min_final": "summary/min_final_survival_rate",
          "early_death_100": "death_stats/early_death_fraction_100", "step_one_share": "step_one_death_ratio",
          "death_p10": "death_stats/p10"}  # fmt: skip
FROM = 24  # the iteration from which on evaluations are averaged
SCHOOLS = 3000  # of the simulated floor
KILL_AT, TOTAL = 44, 60
SMALL = ["algo=ppo", "env=fish", "envs=2", "minibatches=4", "eval.every=0", "save.every=40_000", "seed=7"]


# ---- Questions


def ask(name: str, fresh: bool = False) -> Carry:
    """A step that runs the experiment NAME.yaml of this folder to its answer."""

    def run(folder: Path, workers: int, say: Say) -> Document:
        text, answers, runs_of = making.carry_out(question(name, folder), folder, workers, say, fresh=fresh)
        arms = {arm: [of_run(run) for run in runs] for arm, runs in runs_of.items()}
        keys = ("verdict", "text", "delta", "low", "high", "names")
        return {
            "question": text,
            "answers": [{key: getattr(each, key) for key in keys} for each in answers],
            "arms": arms,
        }

    return run


def question(name: str, folder: Path) -> Path:
    """The experiment's file, with the files it names where they lie on this machine."""
    text = (HERE / f"{name}.yaml").read_text(encoding="utf-8")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "question.yaml"
    write_atomic(path, text.replace("src/relab/lab/studies/fish/", f"{HERE}/").encode())
    return path


def of_run(run: History) -> Document:
    """What the multi-evaluations and the gate of a run came to."""
    rows = [row for row in run.probes if row.get("probe") == "multi_eval"]
    outcomes = [event["decision"] for event in run.events if event.get("kind") == "gate"]
    series = {name: [row["values"][name] for row in rows] for name in NUMBERS}
    return {
        "seed": run.meta["seed"],
        "iterations": [row["iteration"] for row in rows],
        **series,
        "late": {name: late(rows, values) for name, values in series.items()},
        "gate": outcomes,
        "stage": outcomes.count("advance") - outcomes.count("rollback"),
    }


def late(rows: list[Document], values: list[float]) -> float:
    """The mean over the evaluations from iteration 24 on."""
    return float(np.mean([value for row, value in zip(rows, values) if row["iteration"] >= FROM]))


# ---- What no policy prevents


def floor(folder: Path, workers: int, say: Say) -> Document:
    """The share that dies in its first step under the study's starts: by the integral, and played."""
    from relab.base.streams import world_seeds
    from relab.config.envs import Fish as Params
    from relab.schedules.spawn import floor_after_moves, step_one_floor
    from relab.train.envs.base import Worlds
    from relab.train.envs.fish import Fish
    from relab.train.envs.fish_moves import KEEP

    base = layers.read_yaml(HERE / "control.yaml")["base"]
    law: Document = {
        key[4:]: tuple(x) if isinstance(x, list) else x for key, x in base.items() if key.startswith("env.")
    }
    worlds = Worlds(Fish(Params(agents=96, **law)), SCHOOLS)
    worlds.reset(world_seeds(0, "floor", SCHOOLS))
    lost_N = worlds.step(np.full(worlds.action_shape, KEEP)).terminated.mean(1)
    rho_N = np.hypot(worlds.state.predator[:, 0], worlds.state.predator[:, 1])
    grid = np.linspace(0.0, float(rho_N.max()), 120)
    exact_N = np.interp(rho_N, grid, [floor_after_moves(rho, law["escape_boost"]) for rho in grid])
    return {
        "centre": step_one_floor(0.0),
        "exact": float(exact_N.mean()),
        "played": float(lost_N.mean()),
        "noise": float(lost_N.std(ddof=1) / math.sqrt(SCHOOLS)),
        "fish": 96 * SCHOOLS,
        "schools": SCHOOLS,
    }


# ---- What the log holds


def log(folder: Path, workers: int, say: Say) -> Document:
    """The evaluations of the log's own runs, where its folder is here."""
    from relab.formats.read.find import load_all

    if not CORPUS.is_dir():
        return {"missing": CORPUS.name}
    return {"runs": [of_log(each.name, each.history) for each in load_all(CORPUS).runs]}


def of_log(name: str, run: History) -> Document:
    columns = {ours: run.column(f"foreign/multi_eval/{theirs}") for ours, theirs in THEIRS.items()}
    iterations = columns["avg_final"].steps.tolist()
    values = {ours: column.values.tolist() for ours, column in columns.items()}
    rows = [{"iteration": each} for each in iterations]
    known = {ours: late(rows, each) for ours, each in values.items()} if max(iterations) >= FROM else {}
    return {"run": name, "iterations": iterations, **values, "late": known}


# ---- The same bytes


def same_bytes(folder: Path, workers: int, say: Say) -> Document:
    """Two runs of one command, and a third that is killed and resumed; digests of what they wrote."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = layers.read_yaml(HERE / "control.yaml")["base"]["schedule"]
    settings = folder / "small.yaml"
    layers.write_yaml(settings, {"schedule": plan, "total_steps": TOTAL * 2 * 128 * 25})
    for name in ("first", "second", "killed"):
        if not (folder / name / "meta.json").exists():
            say(f"  {name}")
            train(folder, settings, name, kill=name == "killed")
    if iteration_of(folder / "killed") < TOTAL:
        relab("resume", str(folder / "killed"))
    resumed = any(row["kind"] == "resume" for row in read_jsonl(folder / "killed" / "events.jsonl")[0])
    digests = {name: digest(folder / name) for name in ("first", "second", "killed")}
    return {"digests": digests, "same": len(set(digests.values())) == 1, "resumed": resumed}


def train(folder: Path, settings: Path, name: str, kill: bool) -> None:
    words = ["train", str(settings), *SMALL, "--runs", str(folder), "--name", name, "--quiet"]
    if not kill:
        relab(*words)
        return
    process = subprocess.Popen([*RELAB, *words], start_new_session=True)
    while process.poll() is None and iteration_of(folder / name) < KILL_AT:
        time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def relab(*words: str) -> None:
    done = subprocess.run([*RELAB, *words], capture_output=True, text=True, check=False)
    if done.returncode in (130, -signal.SIGINT):
        raise Interrupted
    layers.require(done.returncode == 0, f"relab {' '.join(words)} failed: {done.stderr.strip()[-500:]}")


def iteration_of(run: Path) -> int:
    if not (run / "metrics.jsonl").exists():
        return 0
    rows, _ = read_jsonl(run / "metrics.jsonl")
    return max((int(row.get("data/iteration", 0)) for row in rows), default=0)


def digest(run: Path) -> str:
    """Of all that must not depend on the clock, and of the last weights."""
    from relab.train.checkpoint import read_pointer

    pointer = read_pointer(run / "checkpoints", "latest") or {}
    weights = sorted((run / "checkpoints" / str(pointer.get("folder"))).glob("*.safetensors"))
    total = sha256()
    for path in [*(run / name for name in DETERMINISTIC), *weights]:
        total.update(path.read_bytes() if path.exists() else b"")
    return total.hexdigest()[:16]


def interval(values: list[float]) -> tuple[float, float, float]:
    """Mean and 95 % interval over seeds; no ends under five."""
    ends = stats.mean_over_seeds(values)
    return float(ends[0]), float(ends[1]), float(ends[2])
