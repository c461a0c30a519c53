"""How many agent-steps a second does PPO learn from, and what bounds it? 1,024 agents x 64 steps, 20 -> 4, 2x64 tanh.

Run as `python -m benchmarks.steady`. Beside relab's own engine the same loop runs with the readable autograd engine, in
the same process and interleaved, so that the ratio does not depend on how busy the machine is.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch

from benchmarks.common import machine, warn_if_busy, write
from benchmarks.reach_env import Reach
from relab.config.ppo import PPO
from relab.train.algos import ppo
from relab.train.algos.ppo_learner import TorchLearner
from relab.train.contract import Setup
from relab.train.kernels.blas import matmul

THREADS, ROUNDS = 2, 20
CFG = PPO(envs=1024, steps=64, epochs=4, minibatches=4, hidden=(64, 64))
ROWS = CFG.envs * CFG.steps


def make(autograd: bool, threads: int) -> ppo.State:
    state = ppo.init(Setup(Reach(), CFG, 0, 10**9, threads=threads))
    if autograd:
        agent = state.agent
        state.learner = TorchLearner(agent.net, agent.head, agent.params, 2048)
    return state


def one_round(state: ppo.State, autograd: bool) -> dict[str, float]:
    """Seconds of one iteration, by part."""
    torch.set_num_threads(THREADS if autograd else 1)  # relab's engine brings its own threads
    t0 = time.perf_counter()
    ppo.collect(state)
    t1 = time.perf_counter()
    ppo.update(state)
    t2 = time.perf_counter()
    return {"collect": t1 - t0, "update": t2 - t1, "all": t2 - t0}


def speed(rounds: list[dict[str, float]]) -> dict[str, Any]:
    each = [ROWS / r["all"] for r in rounds]
    parts = {name: float(np.median([r[name] for r in rounds])) for name in ("collect", "update")}
    return {
        "steps_per_s": ROWS / float(np.median([r["all"] for r in rounds])),
        "best": max(each),
        "each": each,
        "seconds": parts,
    }


def flops_per_step() -> float:
    """Multiply-adds x 2 of one agent-step: one policy pass to act, one value pass, `epochs` passes forth and back."""
    layers = [(20, 64), (64, 64)]
    actor, critic = sum(a * b for a, b in [*layers, (64, 4)]), sum(a * b for a, b in [*layers, (64, 1)])
    forth_and_back = 3 * (actor + critic) - 2 * layers[0][0] * layers[0][1]  # no gradient for the observations
    return 2.0 * (actor + critic + CFG.epochs * forth_and_back)


def product(m: int, n: int, k: int, a_turned: bool = False, b_turned: bool = False) -> float:
    """Seconds of one matrix product [m,k] x [k,n] on one thread, at its best."""
    a, b, c = (np.ones(size, np.float32) for size in (m * k, k * n, m * n))
    times = []
    for _ in range(200):
        start = time.perf_counter()
        matmul(a, a_turned, b, b_turned, c, m, n, k)
        times.append(time.perf_counter() - start)
    return min(times)


def products_per_row(rows: int = 1024) -> float:
    """Seconds that the products alone take, for one row learned from once."""
    total = 0.0
    for out in (4, 1):
        for n_in, n_out in ((20, 64), (64, 64), (64, out)):
            total += product(rows, n_out, n_in, b_turned=True) + product(n_out, n_in, rows, a_turned=True)
            total += product(rows, n_in, n_out) if n_in == 64 else 0.0
    return total / rows


def main() -> None:
    warn_if_busy(started := machine())
    engines = {"relab": make(False, THREADS), "relab, 1 thread": make(False, 1), "autograd": make(True, THREADS)}
    rounds: dict[str, list[dict[str, float]]] = {name: [] for name in engines}
    for k in range(ROUNDS + 2):
        for name, state in engines.items():
            found = one_round(state, name == "autograd")
            if k >= 2:  # the first rounds fill caches
                rounds[name].append(found)
    result: dict[str, Any] = {name: speed(found) for name, found in rounds.items()}
    torch.set_num_threads(1)
    peak, need = 2.0 * 1024 * 64 * 64 / product(1024, 64, 64, b_turned=True), flops_per_step()
    learned = CFG.epochs * ROWS  # rows of one update
    products = learned * products_per_row() / result["relab, 1 thread"]["seconds"]["update"]
    result["ratio to autograd"] = result["relab"]["steps_per_s"] / result["autograd"]["steps_per_s"]
    result["bound"] = {
        "flop_per_step": need,
        "sgemm_flop_per_s_and_thread": peak,
        "share of the sgemm peak": result["relab"]["steps_per_s"] * need / (THREADS * peak),
        "share of the update that is matrix products (1 thread)": products,
    }
    for name in engines:
        x = result[name]
        speeds = f"{x['steps_per_s']:>9,.0f} steps/s (median of {ROUNDS}; best {x['best']:,.0f})"
        print(f"{name:16} {speeds}, seconds {x['seconds']}")
    share = result["bound"]["share of the sgemm peak"]
    print(f"ratio to autograd {result['ratio to autograd']:.2f}; {share:.0%} of the sgemm peak")
    print(f"matrix products are {products:.0%} of an update on one thread; the rest is tanh, the loss and memory")
    write("steady", result, started)


if __name__ == "__main__":
    main()
