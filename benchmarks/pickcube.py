"""How fast are pickcubes with a policy in the loop? Run as `python -m benchmarks.pickcube`.

Target: 15,000 control steps/s (75,000 of MuJoCo's) with the Panda on 2 threads, actions by PPO's 3 x 128 policy. The
threads are those of the physics; the policy has one. Seconds of the processor stand beside wall time: on a busy machine
only they can be trusted.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import clocked, machine, rates, warn_if_busy, write
from relab.base.streams import world_seeds
from relab.config.ppo import PPO
from relab.train import rollout
from relab.train.algos import ppo
from relab.train.algos.finetune import gathering, policies, rerollout
from relab.train.contract import Setup
from relab.train.envs.base import Worlds
from relab.train.envs.pickcube import PickCube, PickCubeGantry
from relab.train.rollout import Trajectory

CFG = PPO(envs=256, steps=20, hidden=(128, 128, 128))
REPEATS = 5
STATES = 50


def collecting(env: type[PickCube], threads: int) -> dict[str, float]:
    """Control steps per second: observe, act, step, reset and keep for learning, but not learn."""
    state = ppo.init(Setup(env(env.Params(reward="dense", threads=threads)), CFG, 0, 10**9))

    def work() -> float:
        ppo.collect(state)
        return float(CFG.batch)

    work()  # compiles
    return rates([clocked(work) for _ in range(REPEATS)])


def again(env: type[PickCube], start: str, log_std: float, threads: int) -> dict[str, float]:
    """Steps per second of re-rollouts: 32 copies of each of 50 states of a start's own batch, half of them with the
    action, cut after 25 steps; and what 5,000 states would take at that speed."""
    instance = env(env.Params(threads=threads))
    policy = policies.load(start, instance.spec, Path(), "start")
    policy.params["log_std"].detach().fill_(log_std)
    worlds = Worlds(instance, 50)
    worlds.reset(world_seeds(0, "env", 50))
    traj = Trajectory.allocate(50, instance.spec, 50, policy.head.action_buffer(1), 0)
    batch = gathering.gather(worlds, policy, traj, rollout.start(worlds, policy, world_seeds(0, "action", 50)), True)
    rows = np.linspace(0, 2499, STATES).astype(int)
    snaps = {name: x.reshape(2500, *x.shape[2:])[rows] for name, x in batch.worlds.items()}
    action, slots = policy.to_env(batch.action.reshape(2500, -1)[rows]), Worlds(instance, 256)

    def work() -> float:
        draw = np.random.default_rng(0)
        return float(rerollout.reruns(slots, policy, snaps, action, 16, 0.8, 25, rerollout.Ways(), draw).sim_steps)

    steps = work()
    speed = rates([clocked(work) for _ in range(3)])
    needed = steps * 5000 / STATES
    return speed | {
        "steps_a_copy": round(steps / (32 * STATES), 2),
        "processor_s_for_5000": round(needed / speed["per_processor_s"]),
    }


def main() -> None:
    warn_if_busy(started := machine())
    result: dict[str, Any] = {}
    for env in (PickCubeGantry, PickCube):
        for threads in (1, 2):
            result[f"{env.name}, {threads} threads"] = speed = collecting(env, threads)
            print(f"{env.name}, {CFG.envs} worlds, {threads} threads of physics: {speed}")
    for env, start, log_std in ((PickCubeGantry, "shipped:pickcube-gantry@65536", -2.0),
                                (PickCube, "shipped:pickcube@262144", -1.5)):  # fmt: skip
        result[f"{env.name}, re-rollouts"] = speed = again(env, start, log_std, 2)
        print(f"{env.name}, re-rollouts of {STATES} x 32, 2 threads of physics: {speed}")
    write("pickcube", result | {"load_1min_at_end": round(os.getloadavg()[0], 2)}, started)


if __name__ == "__main__":
    main()
