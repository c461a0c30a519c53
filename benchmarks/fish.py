"""How fast are schools of fish: stepped, filmed, learned from? Run as `python -m benchmarks.fish`.

Targets: 3 M fish-steps/s with 25 fish on 2 threads; films of 48 fish at 200 frames/s; 60 iterations of PPO with 128
schools x 128 steps x 25 fish and 7 evaluations of 96 fish x 24 episodes in 5 minutes. The last is made of a few
iterations and one evaluation, multiplied. Seconds of the processor stand beside wall time: on a busy machine only they
can be trusted.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import clocked, machine, rates, warn_if_busy, write
from relab.base.media import write_film
from relab.config.envs import Fish as Params
from relab.config.ppo import PPO
from relab.train import rollout
from relab.train.algos import ppo
from relab.train.contract import Setup
from relab.train.envs.base import Worlds
from relab.train.envs.fish import Fish
from relab.train.kernels import jit

THREADS, REPEATS, STEPS = 2, 5, 60
SIZES = ((25, 2048), (96, 512), (256, 256))  # fish, schools
LAW: dict[str, Any] = {"jitter": 1.6, "pre_roll": 16, "escape_boost": 0.75}
CFG = PPO(envs=128, steps=128, epochs=4, minibatches=16, lr=1e-3, norm_return=True)
ITERATIONS, EVALUATIONS, MEASURED = 60, 7, 3


def stepping(fish: int, schools: int, threads: int) -> dict[str, float]:
    """Living fish stepped per second, random actions, resets and observations included."""
    jit.set_threads(threads)
    worlds, draw = Worlds(Fish(Params(agents=fish)), schools), np.random.default_rng(0)
    worlds.reset(np.arange(schools))
    actions_T = draw.integers(0, 5, (STEPS, schools, fish))

    def work() -> float:
        return float(sum(worlds.step(action).alive.sum() for action in actions_T))

    work()  # compiles
    return rates([clocked(work) for _ in range(REPEATS)])


def filming(suffix: str, frames: int = 300) -> dict[str, float]:
    """Pictures of 48 fish drawn and written per second."""
    worlds, draw = Worlds(Fish(Params(agents=48, **LAW)), 1), np.random.default_rng(0)
    worlds.reset(np.zeros(1, np.int64))
    actions_T = draw.integers(0, 5, (frames, 1, 48))

    def work() -> float:
        with tempfile.TemporaryDirectory() as folder:
            shots = (worlds.step(action) and worlds.render(0) for action in actions_T)
            return write_film(Path(folder) / f"film{suffix}", shots, 30)

    work()
    return rates([clocked(work) for _ in range(REPEATS)])


def learning() -> dict[str, Any]:
    """Seconds of 60 iterations and 7 evaluations, from a few of each."""
    jit.set_threads(THREADS)
    state = ppo.init(Setup(Fish(Params(**LAW)), CFG, 0, 10**9, threads=THREADS))

    def iterate() -> float:
        ppo.collect(state)
        ppo.update(state)
        return float(state.traj.alive_TB.sum())

    def evaluate() -> float:
        env = Fish(Params(agents=96, **LAW))
        return float(rollout.evaluate(env, state.agent, np.arange(24)).sim_steps)

    iterate()
    turns, (_, wall, cpu) = [clocked(iterate) for _ in range(MEASURED)], clocked(evaluate)
    rows, walls, cpus = (float(np.median([turn[k] for turn in turns])) for k in range(3))
    return {
        "rows_per_iteration": rows,
        "iteration_s": walls,
        "evaluation_s": wall,
        "all_s": ITERATIONS * walls + EVALUATIONS * wall,
        "all_processor_s": ITERATIONS * cpus + EVALUATIONS * cpu,
    }


def main() -> None:
    warn_if_busy(started := machine())
    result: dict[str, Any] = {"fish-steps": {}, "film": {}}
    for fish, schools in SIZES:
        for threads in (1, THREADS):
            found = stepping(fish, schools, threads)
            result["fish-steps"][f"{fish} fish, {threads} threads"] = found
            print(f"{fish:3} fish x {schools} schools, {threads} threads: {found}")
    for suffix in (".mp4", ".gif"):
        result["film"][suffix] = found = filming(suffix)
        print(f"film {suffix}: {found}")
    result["ppo, 60 iterations x 128 schools x 128 steps x 25 fish"] = found = learning()
    print(f"ppo: {found}")
    write("fish", result | {"load_1min_at_end": round(os.getloadavg()[0], 2)}, started)


if __name__ == "__main__":
    main()
