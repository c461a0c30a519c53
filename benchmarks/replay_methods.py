"""How many updates a second do DQN and SAC make, beside Stable-Baselines3? Same network, batch and ratio of updates.

Run as `python -m benchmarks.replay_methods` on a quiet machine, after `make bench-peers`. One world, one update a step,
one thread each; acting, the environment and the replay are part of it, as they are of the peer's. relab on its own
version of the environment and on Gymnasium's; all lanes in turn, three times.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from typing import Any

from benchmarks import common
from relab.config import registry
from relab.config.layers import Layer, resolve
from relab.train.contract import Setup, Stopwatch

PEER = common.ROOT / ".venv-sb3" / "bin" / "python"
PEER_SCRIPT = common.ROOT / "benchmarks" / "peers" / "sb3_replay.py"
ROUNDS, STARTS = 3, 1000
TASKS = {  # algorithm -> (relab's environment, Gymnasium's, units per layer, transitions of a minibatch, steps)
    "dqn": ("cartpole", "gym:CartPole-v1", 64, 64, 6000),
    "sac": ("pendulum", "gym:Pendulum-v1", 256, 256, 3000),
}


def relab(algo: str, env: str, hidden: int, batch: int, steps: int) -> float:
    """Updates a second of the algorithm, without a record."""
    settings = {"algo": algo, "env": env, "algo.envs": 1, "algo.hidden": [hidden, hidden], "algo.minibatch": batch,
                "algo.learning_starts": STARTS, "algo.updates_per_step": 1.0, "algo.replay": 100_000,
                "total_steps": steps}  # fmt: skip
    cfg = resolve([Layer("benchmark", settings)], presets=False).config
    module = registry.algo_module(algo)
    state = module.init(Setup(registry.env_class(cfg.env.name)(cfg.env), cfg.algo, 0, steps))
    watch, began = Stopwatch(), 0.0
    while state.counts.agent_steps < steps:
        module.iterate(state, watch)
        if not began and state.counts.updates:
            began, before = time.perf_counter(), state.counts.updates
    return (state.counts.updates - before) / (time.perf_counter() - began)


def peer(algo: str, hidden: int, batch: int, steps: int) -> float:
    words = [algo, "--steps", str(steps), "--batch", str(batch), "--hidden", str(hidden)]
    said = json.loads(common.timed([PEER, PEER_SCRIPT, *words]).stdout.splitlines()[-1])
    return said["updates"] / said["seconds"]


def main() -> None:
    common.warn_if_busy(started := common.machine())
    result: dict[str, Any] = {}
    for algo in sys.argv[1:] or TASKS:
        own, gym, hidden, batch, steps = TASKS[algo]
        relab(algo, own, hidden, batch, STARTS + 200)  # compiles
        lanes: dict[str, list[float]] = {"relab": [], "relab on Gymnasium's": [], "Stable-Baselines3": []}
        for _ in range(ROUNDS):
            lanes["relab"].append(relab(algo, own, hidden, batch, steps))
            lanes["relab on Gymnasium's"].append(relab(algo, gym, hidden, batch, steps))
            lanes["Stable-Baselines3"].append(peer(algo, hidden, batch, steps))
        medians = {lane: statistics.median(each) for lane, each in lanes.items()}
        result[algo] = {"updates_per_s": medians, "each": lanes, "hidden": hidden, "batch": batch}
        for lane, speed in medians.items():
            ratio = speed / medians["Stable-Baselines3"]
            print(f"{algo}  {lane:22} {speed:8,.0f} updates/s  {ratio:.1f}x")
    common.write("replay_methods", result, started)


if __name__ == "__main__":
    main()
