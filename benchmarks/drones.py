"""How fast is a swarm: stepped, filmed, learned from? Run as `python -m benchmarks.drones`.

Targets: 5 M agent-steps/s of the environment on 2 threads; training with 1,792 drones (224 worlds x 8) and 16 steps,
one epoch: two layers of 128 at 150 k agent-steps/s end to end, an LSTM of 128 at 50 k. The network of a published
experiment (an encoder of 256 and an LSTM of 256, 538.6 k parameters) is reported at 1 and 12 epochs. Our physics and
our network code, not theirs: numbers compare with that experiment's log (33.5 k to 48.8 k agent-steps/s end to end, on
another machine) as levels only. Seconds of the processor stand beside wall time: on a busy machine only they can be
trusted.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.common import clocked, machine, rates, warn_if_busy, write
from relab.base.media import write_film
from relab.config.envs import Drones as Params
from relab.config.ppo import PPO
from relab.train.algos import ppo
from relab.train.contract import Setup
from relab.train.envs.base import Worlds
from relab.train.envs.drones import Drones
from relab.train.kernels import jit

THREADS, REPEATS, DRONE_STEPS = 2, 5, 1_000_000  # the processor's clock ticks every 10 ms
WORLDS = (224, 2048)  # as it is trained, and a large batch
SWARM: dict[str, Any] = {"envs": 224, "steps": 16, "bptt": 16, "epochs": 1, "minibatches": 1, "norm_obs": False}
NETS: dict[str, dict[str, Any]] = {
    "MLP 2 x 128, 1 epoch": {"hidden": (128, 128)},
    "MLP 2 x 64, 1 epoch": {"hidden": (64, 64)},
    "MLP 2 x 64, as the preset learns (3 epochs of 8 minibatches)": {
        "hidden": (64, 64), "envs": 112, "steps": 32, "epochs": 3, "minibatches": 8, "norm_obs": True,
    },
    "LSTM 128, 1 epoch": {"hidden": (128,), "rnn": "lstm", "rnn_size": 128, "chunk": 28_672},
    "minGRU 128, 1 epoch": {"hidden": (128,), "rnn": "mingru", "rnn_size": 128, "chunk": 28_672},
    "encoder 256 + LSTM 256, 1 epoch": {"hidden": (256,), "rnn": "lstm", "rnn_size": 256, "chunk": 28_672},
    "encoder 256 + LSTM 256, 12 epochs": {
        "hidden": (256,), "rnn": "lstm", "rnn_size": 256, "chunk": 28_672, "epochs": 12,
    },
}  # fmt: skip


def stepping(task: str, worlds_n: int, threads: int) -> dict[str, float]:
    """Drones stepped per second, actions around hovering, resets and observations included."""
    jit.set_threads(threads)
    worlds, draw = Worlds(Drones(Params(task=task)), worlds_n), np.random.default_rng(0)
    worlds.reset(np.arange(worlds_n))
    actions_T = draw.uniform(-0.4, -0.08, (20, worlds_n, 8, 4)).astype(np.float32)
    steps = DRONE_STEPS // (8 * worlds_n)

    def work() -> float:
        for t in range(steps):
            worlds.step(actions_T[t % 20])
        return float(8 * worlds_n * steps)

    work()  # compiles
    return rates([clocked(work) for _ in range(REPEATS)])


def filming(frames: int = 100) -> dict[str, float]:
    """Pictures of 8 drones drawn and written per second."""
    worlds, draw = Worlds(Drones(Params()), 1), np.random.default_rng(0)
    worlds.reset(np.zeros(1, np.int64))
    actions_T = draw.uniform(-0.4, -0.08, (frames, 1, 8, 4))

    def work() -> float:
        with tempfile.TemporaryDirectory() as folder:
            shots = (worlds.step(action) and worlds.render(0) for action in actions_T)
            return write_film(Path(folder) / "film.mp4", shots, 20)

    work()
    return rates([clocked(work) for _ in range(3)])


def learning(settings: dict[str, Any], repeats: int) -> dict[str, Any]:
    """Agent steps per second of acting and learning, and the parameters of the network."""
    jit.set_threads(THREADS)
    state = ppo.init(Setup(Drones(Params()), PPO(**SWARM | settings), 0, 10**9, threads=THREADS))

    def iterate() -> float:
        ppo.collect(state)
        ppo.update(state)
        return float(state.traj.alive_TB.sum())

    iterate()
    return {"parameters": state.agent.params.flat.numel(), **rates([clocked(iterate) for _ in range(repeats)])}


def main() -> None:
    warn_if_busy(started := machine())
    result: dict[str, Any] = {"agent-steps": {}, "training": {}}
    for task in ("pick_place", "hover", "race"):
        for n in WORLDS:
            for threads in (1, THREADS):
                rate = stepping(task, n, threads)
                result["agent-steps"][f"{task}, {n} worlds x 8, {threads} threads"] = rate
                print(f"{task}, {n} worlds x 8 drones, {threads} threads: {rate}")
    result["film"] = filming()
    print(f"film: {result['film']}")
    for name, settings in NETS.items():
        result["training"][name] = rate = learning(settings, 2 if settings.get("epochs", 1) > 1 else 4)
        print(f"{name}: {rate}")
    write("drones", result | {"load_1min_at_end": round(os.getloadavg()[0], 2)}, started)


if __name__ == "__main__":
    main()
