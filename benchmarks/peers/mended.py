# ruff: noqa: C408 - settings read like the keyword arguments they become
"""Does what `relab next` proposes mend a sick run? Twelve bad settings: run, ask, change, run again.

    .venv-sb3/bin/python -m benchmarks.peers.mended OUT --relab .venv/bin/relab [--seeds 50 51] [--only NAME ...]

The proposal is taken as it is typed (`relab next --json`): its change, and nothing else, is made to the settings of the
same script or library. A run is mended when what it learned reaches its task's level (tasks.py), which the sick one did
not. OUT/mended.jsonl has a line for each pair that was made; those listed are not made again.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.peers import making, plan, scripts, tasks

LIST = "mended.jsonl"
Settings = dict[str, Any]


class Bad(NamedTuple):
    name: str
    tool: str
    algo: str
    task: str
    settings: Settings


KINDS = [
    Bad("learning rate 0.1", "sb3", "ppo", "CartPole-v1", dict(learning_rate=0.1)),
    Bad("learning rate 1e-7", "sb3", "td3", "PointReach-v0", dict(learning_rate=1e-7)),
    Bad("a buffer of 100", "sb3", "dqn", "CartPole-v1", dict(buffer_size=100)),
    Bad("target copied every million steps", "cleanrl", "dqn", "CartPole-v1", dict(target_network_frequency=10**6)),
    Bad("gamma 0.2", "sb3", "ppo", "CartPole-v1", dict(gamma=0.2)),
    Bad("entropy bonus of 5", "cleanrl", "ppo", "CartPole-v1", dict(ent_coef=5.0)),
    Bad("value loss with the weight 0", "sb3", "a2c", "PointReach-v0", dict(vf_coef=0.0)),
    Bad("epsilon stays at 0.9", "sb3", "dqn", "CliffWalk-v0", dict(exploration_final_eps=0.9)),
    Bad("learning starts after the end", "cleanrl", "dqn", "Catch-v0", dict(learning_starts=10**6)),
    Bad("clip range 5", "sb3", "ppo", "CartPole-v1", dict(clip_range=5.0, learning_rate=5e-3)),
    Bad("200 epochs", "cleanrl", "ppo", "CartPole-v1", dict(update_epochs=200, learning_rate=3e-3)),
    Bad("temperature 100", "sb3", "sac", "Pendulum-v1", dict(ent_coef=100.0)),
]


def settings_of(kind: Bad) -> Settings:
    base = (plan.SB3 if kind.tool == "sb3" else plan.CLEANRL)[kind.algo]["a"]
    return base | {"gamma": plan.gamma(kind.task, base["gamma"])} | kind.settings


def made(kind: Bad, seed: int, settings: Settings, folder: Path) -> float:
    """The level of what was learned with these settings."""
    folder.mkdir(parents=True)
    if kind.tool == "cleanrl":
        policy = scripts.by_script(kind.algo, kind.task, seed, settings, folder / "runs")
    else:
        place = folder / f"{kind.algo}/{kind.task}_1"
        policy = making.by_sb3(kind.algo, kind.task, seed, settings, place, ("csv", "eval", "zip"))
    return making.evaluated(policy, tasks.ALL[kind.task])


def proposal(folder: Path, relab: list[str]) -> dict[str, Any]:
    done = subprocess.run([*relab, "next", str(folder), "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)["proposal"]  # type: ignore[no-any-return]


def typed(words: str) -> Iterator[tuple[str, Any]]:
    """`learning_rate=0.0003` or `--learning-rate 0.0003`, as settings."""
    tokens = words.replace("=", " ").split()
    for key, value in zip(tokens[::2], tokens[1::2], strict=True):
        try:
            number = float(value)
        except ValueError:
            yield key.strip("-").replace("-", "_"), value
            continue
        yield key.strip("-").replace("-", "_"), int(number) if number.is_integer() and "." not in value else number


def pair(kind: Bad, seed: int, out: Path, relab: list[str]) -> dict[str, Any]:
    name = f"{kind.name.replace(' ', '-')}-s{seed}-{time.time_ns()}"
    settings = settings_of(kind)
    before = made(kind, seed, settings, out / name / "sick")
    advice = proposal(out / name / "sick", relab)
    change = dict(typed(advice["command"])) if advice["diff"] else {}
    after = made(kind, seed, settings | change, out / name / "changed") if change else before
    return {"kind": kind.name, "tool": kind.tool, "algo": kind.algo, "task": kind.task, "seed": seed, "path": name,
            "before": before, "was_sick": not tasks.reached(kind.task, before), "proposed": change,
            "source": advice.get("source", ""), "why": advice.get("why", advice.get("rationale", ""))[:200],
            "after": after, "mended": tasks.reached(kind.task, after)}  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--relab", nargs="+", default=[".venv/bin/relab"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[50])
    parser.add_argument("--only", nargs="+", default=[])
    args = parser.parse_args()
    torch.set_num_threads(1)
    args.out.mkdir(parents=True, exist_ok=True)
    path = args.out / LIST
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    listed = {(row["kind"], row["seed"]) for row in rows}
    for seed in args.seeds:
        for kind in (k for k in KINDS if (k.name, seed) not in listed and (not args.only or k.name in args.only)):
            row = pair(kind, seed, args.out, args.relab)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"{kind.name} s{seed}: {row['before']:.4g} -> {row['after']:.4g}, {row['proposed']}", flush=True)


if __name__ == "__main__":
    main()
