"""How many updates a second do DQN and SAC make, beside Stable-Baselines3? Same network, batch, threads and ratio.

Run as `python -m benchmarks.replay_methods [CASE ...]` on a quiet machine, after `make bench-peers`. One world, one
update a step; acting, the environment and the replay are part of it, as they are of the peer's. relab on its own
version of the environment and on Gymnasium's; all lanes in turn. The ratio is the median over the rounds, each by the
speeds of that round: by the clock, and by the processor where others keep the machine busy.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from benchmarks import common
from relab.config import registry
from relab.config.layers import Layer, resolve
from relab.train.contract import Setup, Stopwatch

PEER = common.ROOT / ".venv-sb3" / "bin" / "python"
PEER_SCRIPT = common.ROOT / "benchmarks" / "peers" / "sb3_replay.py"
PEER_NAME = "Stable-Baselines3"
ROUNDS, STARTS = 5, 1000


class Case(NamedTuple):
    """What both do."""

    algo: str
    env: str
    hidden: int  # units of each of two layers
    batch: int  # transitions of a minibatch
    steps: int
    threads: int = 1


class Pace(NamedTuple):
    """Updates a second, by the clock and by the processor (all threads)."""

    clock: float
    processor: float


GYM = {"cartpole": "gym:CartPole-v1", "pendulum": "gym:Pendulum-v1"}
CASES = {
    "dqn": Case("dqn", "cartpole", 64, 64, 6000),
    "sac": Case("sac", "pendulum", 256, 256, 2500),
    "sac, two threads": Case("sac", "pendulum", 256, 256, 2500, 2),
    "sac, 64 units": Case("sac", "pendulum", 64, 256, 3500),
}


def relab(case: Case, env: str) -> Pace:
    """The algorithm without a record."""
    settings = {"algo": case.algo, "env": env, "algo.envs": 1, "algo.hidden": [case.hidden] * 2,
                "algo.minibatch": case.batch, "algo.learning_starts": STARTS, "algo.updates_per_step": 1.0,
                "algo.replay": 100_000, "total_steps": case.steps}  # fmt: skip
    cfg = resolve([Layer("benchmark", settings)], presets=False).config
    module = registry.algo_module(case.algo)
    env_made = registry.env_class(cfg.env.name)(cfg.env)
    state = module.init(Setup(env_made, cfg.algo, 0, case.steps, threads=case.threads))
    watch, began, before = Stopwatch(), (0.0, 0.0), 0
    while state.counts.agent_steps < case.steps:
        module.iterate(state, watch)
        if not before and state.counts.updates:
            began, before = (time.perf_counter(), time.process_time()), state.counts.updates
    done = state.counts.updates - before
    return Pace(done / (time.perf_counter() - began[0]), done / (time.process_time() - began[1]))


def peer(case: Case) -> Pace:
    words = [case.algo]
    for name in ("steps", "batch", "hidden", "threads"):
        words += [f"--{name}", str(getattr(case, name))]
    said = json.loads(common.timed([PEER, PEER_SCRIPT, *words]).stdout.splitlines()[-1])
    return Pace(said["updates"] / said["seconds"], said["updates"] / said["processor_seconds"])


def race(name: str, case: Case) -> dict[str, Any]:
    relab(case._replace(steps=STARTS + 200), case.env)  # compiles
    rounds, loads = [], []
    for _ in range(ROUNDS):
        loads.append(round(os.getloadavg()[0], 2))
        rounds.append({"relab": relab(case, case.env), "relab on Gymnasium's": relab(case, GYM[case.env]),
                       PEER_NAME: peer(case)})  # fmt: skip
    lanes = {lane: report(name, lane, rounds) for lane in rounds[0]}
    return {**case._asdict(), "load_1min": loads, "lanes": lanes}


def report(name: str, lane: str, rounds: Sequence[dict[str, Pace]]) -> dict[str, Any]:
    """One lane: updates a second in each round, and the median of its ratios to the peer."""
    by_clock, by_processor = ([each[lane][i] for each in rounds] for i in range(2))
    times = [statistics.median(each[lane][i] / each[PEER_NAME][i] for each in rounds) for i in range(2)]
    print(f"{name}  {lane:22} {statistics.median(by_clock):8,.0f} updates/s {times[0]:.2f}x, {times[1]:.2f}x by the"
          " processor", flush=True)  # fmt: skip
    return {"updates_per_s": common.summary(by_clock, 1), "updates_per_processor_s": common.summary(by_processor, 1),
            "times_the_peer": round(times[0], 2), "times_by_processor": round(times[1], 2)}  # fmt: skip


def main() -> None:
    common.warn_if_busy(started := common.machine())
    path = common.RESULTS / "replay_methods.json"
    known = json.loads(path.read_text()).get("cases", {}) if path.exists() else {}
    for name in sys.argv[1:] or CASES:
        known[name] = {"commit": common.commit(), **race(name, CASES[name])}
        common.write("replay_methods", {"cases": known}, started)


if __name__ == "__main__":
    main()
