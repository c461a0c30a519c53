"""Who solves CartPole first, relab or Stable-Baselines3? Wall seconds from process start to exit, evaluations included.

Solved: mean return >= 475 over 20 first episodes with deterministic actions. For each seed in turn: relab with an empty
Numba cache (cold), relab again (warm), the peer with each thread count; so all meet the same noise. The peer is given
the thread count with the better median. Needs `make bench-peers`.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import common

PEER = common.ROOT / ".venv-sb3" / "bin" / "python"
PEER_SCRIPT = common.ROOT / "benchmarks" / "peers" / "sb3_cartpole.py"
GOAL, EPISODES = 475.0, 20
PEER_EVERY = 2048  # the best of 1024, 2048, 4096 and 8192 for the peer: stops early enough, evaluates rarely enough
PEER_THREADS = (1, 2)

Result = dict[str, Any]


def race_relab(seed: int, cache: Path) -> Result:
    """One relab run with its own folder; what it reached is read from its record, not from what it prints."""
    with tempfile.TemporaryDirectory() as runs:
        command: list[str | Path] = [common.BIN / "relab", "train", "ppo", "env=cartpole", f"seed={seed}"]
        command += [f"eval.stop_at={GOAL:g}", f"eval.episodes={EPISODES}", "--runs", runs]
        took = common.timed(command, env={"NUMBA_CACHE_DIR": str(cache)})
        step, mean = last_evaluation(Path(runs))
    return {"seed": seed, "seconds": took.seconds, "load": took.load, "steps": step, "reached": mean >= GOAL}


def last_evaluation(runs: Path) -> tuple[int, float]:
    """Step and mean return of the last deterministic evaluation of the only run in a folder."""
    (path,) = runs.rglob("evals.jsonl")
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    row = [row for row in rows if row["mode"] == "det"][-1]
    returns = [float(episode["return"]) for episode in row["episodes"]]
    if len(returns) != EPISODES:
        raise RuntimeError(
            f"an evaluation must hold {EPISODES} episodes, but {path} has {len(returns)} at {row['step']}"
        )
    return int(row["step"]), statistics.fmean(returns)


def race_peer(seed: int, threads: int) -> Result:
    """One Stable-Baselines3 run."""
    options = {"seed": seed, "threads": threads, "every": PEER_EVERY, "episodes": EPISODES, "goal": GOAL}
    words = [word for key, value in options.items() for word in (f"--{key}", str(value))]
    took = common.timed([PEER, PEER_SCRIPT, *words])
    said = json.loads(took.stdout.splitlines()[-1])
    return {
        "seed": seed,
        "seconds": took.seconds,
        "load": took.load,
        "steps": said["steps"],
        "reached": said["reached"],
    }


def race(seeds: Sequence[int]) -> dict[str, list[Result]]:
    """All lanes, interleaved seed by seed."""
    lanes: dict[str, list[Result]] = {}
    for seed in seeds:
        with tempfile.TemporaryDirectory() as cache:
            add(lanes, "relab_cold", race_relab(seed, Path(cache)))
            add(lanes, "relab_warm", race_relab(seed, Path(cache)))
        for threads in PEER_THREADS:
            add(lanes, f"sb3_threads_{threads}", race_peer(seed, threads))
    return lanes


def add(lanes: dict[str, list[Result]], lane: str, result: Result) -> None:
    lanes.setdefault(lane, []).append(result)
    end = "solved" if result["reached"] else "NOT solved"
    line = f"{result['seconds']:6.2f} s  {end} after {result['steps']:,} steps  (load {result['load']:.1f})"
    print(f"seed {result['seed']}  {lane:14s} {line}", flush=True)


def judge(lanes: dict[str, list[Result]]) -> dict[str, Any]:
    """Medians, and how many times as long the peer needs."""
    seconds = {lane: [result["seconds"] for result in results] for lane, results in lanes.items()}
    medians = {lane: statistics.median(samples) for lane, samples in seconds.items()}
    peer = min((lane for lane in lanes if lane.startswith("sb3")), key=medians.__getitem__)
    return {
        "goal": f"mean return >= {GOAL:g} over {EPISODES} first episodes, deterministic",
        "solved": {lane: f"{sum(r['reached'] for r in results)} of {len(results)}" for lane, results in lanes.items()},
        "seconds": {lane: common.summary(samples) for lane, samples in seconds.items()},
        "peer": {"lane": peer, "library": "stable-baselines3 2.9.2", "evaluates_every": PEER_EVERY},
        "ratio_warm": round(medians[peer] / medians["relab_warm"], 2),
        "ratio_cold": round(medians[peer] / medians["relab_cold"], 2),
        "ratio_warm_each_seed": [round(a / b, 2) for a, b in zip(seconds[peer], seconds["relab_warm"])],
        "lanes": lanes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="seeds 0 .. N-1")
    args = parser.parse_args()
    if not PEER.exists():
        raise SystemExit(f"the peer runs in its own venv, but there is no {PEER}: run `make bench-peers`")
    started = common.machine()
    common.warn_if_busy(started)
    result = judge(race(range(args.seeds)))
    print(f"the peer needs {result['ratio_warm']} times as long as relab warm, {result['ratio_cold']} as relab cold")
    common.write("cartpole_race", result, started)


if __name__ == "__main__":
    main()
