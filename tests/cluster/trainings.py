"""What do the tests on real clusters train? Two short PPO runs on CartPole, asked for as a user would ask."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

MARK = "relab-cluster-result"
STARTED: list[subprocess.Popen[str]] = []
STEPS = int(os.environ.get("CLUSTER_STEPS", "300_000"))  # some seconds of training: less on a busy machine
QUESTION = """
question: does a smaller clip range learn as much
base: {{env: cartpole, total_steps: {steps}, algo.envs: 8, algo.steps: 64, eval.every: {every}, eval.episodes: 5,
       save.every: {every}{base}}}
variants: {{usual: {{}}, smaller: {{algo.clip: 0.1}}}}
seeds: 1
{more}
"""


def experiment(
    folder: Path, engine: str, steps: int = STEPS, more: str = "", base: str = "", env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    (folder / "q.yaml").write_text(
        QUESTION.format(steps=steps, every=max(2048, STEPS // 20), more=more, base=f", {base}" if base else "")
    )
    words = [sys.executable, "-m", "relab.cli", "experiment", "q.yaml", "--yes", "--no-log", "--json", "--on", engine]
    with open(folder / "out.txt", "a") as out:
        process = subprocess.Popen(words, cwd=folder, stdout=out, stderr=subprocess.STDOUT, text=True, env=env)
    STARTED.append(process)
    return process


def end_all() -> None:
    """What a test that failed has left running."""
    while STARTED:
        process = STARTED.pop()
        if process.poll() is None:
            process.terminate()
            process.wait(60)


def finish(process: subprocess.Popen[str], folder: Path, code: int = 0, seconds: float = 1800) -> str:
    process.wait(seconds)
    out = (folder / "out.txt").read_text()
    assert process.returncode == code, out
    return out


def runs(folder: Path) -> Path:
    return folder / "experiments" / "q" / "runs"


def trained(folder: Path) -> dict[str, bytes]:
    """What must be the same wherever a run was made: rows, evaluations, weights."""
    names = ("metrics.jsonl", "evals.jsonl", "checkpoints/step-*/*.safetensors")
    root = runs(folder)
    return {str(path.relative_to(root)): path.read_bytes() for name in names for path in sorted(root.glob(f"*/{name}"))}


def same(folder: Path, home: dict[str, bytes]) -> None:
    away = trained(folder)
    assert away.keys() == home.keys()
    assert [name for name in home if away[name] != home[name]] == []


def statuses(folder: Path) -> list[str]:
    return [json.loads(path.read_text())["status"] for path in sorted(runs(folder).glob("*/meta.json"))]


def events(folder: Path, word: str) -> int:
    """How many runs have this among their events."""
    return sum(f'"{word}"' in path.read_text() for path in runs(folder).glob("*/events.jsonl"))


def begun(folder: Path) -> bool:
    """A run has a checkpoint behind it, and is not done."""
    going = [
        path for path in runs(folder).glob("*/checkpoints/latest.json") if json.loads(path.read_text())["step"] > 0
    ]
    return any('"finished"' not in (path.parent.parent / "meta.json").read_text() for path in going)


def wait_for(true: Callable[[], object], what: str, seconds: float = 900) -> None:
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, f"no {what} after {seconds:g} s"
        time.sleep(0.05)


def later(true: Callable[[], bool], do: Callable[[], None]) -> threading.Thread:
    """Do it once something is true, while the test goes on."""

    def wait() -> None:
        while not true():
            time.sleep(0.05)
        do()

    thread = threading.Thread(target=wait, daemon=True)
    thread.start()
    return thread


def report(what: str, began: float, folder: Path) -> None:
    """For the table in docs/cluster.md."""
    print(f"\n{MARK} {what}: {len(statuses(folder))} runs, {statuses(folder).count('finished')} finished,"
          f" {events(folder, 'resume')} resumed, {time.monotonic() - began:.0f} s", flush=True)  # fmt: skip
