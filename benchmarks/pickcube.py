"""How fast are pickcubes with a policy in the loop? Run as `python -m benchmarks.pickcube`.

Target: 15,000 control steps/s (75,000 of MuJoCo's) with the Panda on 2 threads, actions by PPO's 3 x 128 policy. The
threads are those of the physics; the policy has one. Seconds of the processor stand beside wall time: on a busy machine
only they can be trusted.
"""

from __future__ import annotations

import os
from typing import Any

from benchmarks.common import clocked, machine, rates, warn_if_busy, write
from relab.config.ppo import PPO
from relab.train.algos import ppo
from relab.train.contract import Setup
from relab.train.envs.pickcube import PickCube, PickCubeGantry

CFG = PPO(envs=256, steps=20, hidden=(128, 128, 128))
REPEATS = 5


def collecting(env: type[PickCube], threads: int) -> dict[str, float]:
    """Control steps per second: observe, act, step, reset and keep for learning, but not learn."""
    state = ppo.init(Setup(env(env.Params(reward="dense", threads=threads)), CFG, 0, 10**9))

    def work() -> float:
        ppo.collect(state)
        return float(CFG.batch)

    work()  # compiles
    return rates([clocked(work) for _ in range(REPEATS)])


def main() -> None:
    warn_if_busy(started := machine())
    result: dict[str, Any] = {}
    for env in (PickCubeGantry, PickCube):
        for threads in (1, 2):
            result[f"{env.name}, {threads} threads"] = speed = collecting(env, threads)
            print(f"{env.name}, {CFG.envs} worlds, {threads} threads of physics: {speed}")
    write("pickcube", result | {"load_1min_at_end": round(os.getloadavg()[0], 2)}, started)


if __name__ == "__main__":
    main()
