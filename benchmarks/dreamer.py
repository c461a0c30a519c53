"""How long does an update of Dreamer take, and where does the time go? One thread, then two.

Run as `python -m benchmarks.dreamer`. The sizes are those of the research log (state, width 64, 8 sequences of 25 rows,
dreams of 15 steps). Measured are processor seconds as well as wall seconds: on a busy machine only the first mean
something. The parts are measured apart; the products' floor is their arithmetic at the speed of the machine's BLAS.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch

from benchmarks.common import machine, summary, warn_if_busy, write
from relab.config.dreamer import Dreamer
from relab.train.algos import dreamer
from relab.train.algos.dreamer import learning, sequences
from relab.train.algos.dreamer.state import State
from relab.train.contract import Setup
from relab.train.envs.cartpole import CartPole

LOG = Dreamer(envs=8, learning_starts=500, sequences=8, length=25, deter=64, bins=41, imagine=15)
CASES = {"log": LOG, "log_11_bins": replace(LOG, bins=11), "width_256": replace(LOG, deter=256, hidden=256, units=256)}
TURNS, UPDATES = 5, 10


def prepared(cfg: Dreamer, threads: int = 1) -> State:
    """A run with 2,000 steps in its replay, and a few updates behind it."""
    s = dreamer.init(Setup(CartPole(), cfg, 0, 10**6, threads=threads))
    while s.counts.agent_steps < 2_000:
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    for _ in range(5):
        learning.update(s)
    return s


def milliseconds(work: Callable[[], object], times: int = UPDATES) -> tuple[float, float]:
    """(of the processor, of the clock) for each call."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        work()
    return (time.process_time() - cpu) / times * 1e3, (time.perf_counter() - wall) / times * 1e3


def parts(s: State) -> dict[str, float]:
    """Processor milliseconds of the parts of an update, each by itself."""
    cfg, m, b = s.cfg, s.agent.model, s.agent.behaviour
    draw = lambda: sequences.draw(s.gathering.replay, s.draw, cfg.sequences, cfg.length)  # noqa: E731
    batch = learning.batch_of(s.agent, draw())
    noise = s.uniform(cfg.length, cfg.sequences, cfg.stoch)
    course = m.observe(batch, noise)
    dream = learning.dream_of(s, batch, course)
    ones = dream.hot.first(dream.returns.numel())

    def model() -> None:
        losses = m.losses(batch, m.observe(batch, noise))
        torch.stack([x.sum() for x in losses.values()]).sum().backward()

    works: dict[str, Callable[[], object]] = {
        "draw": draw,
        "model, forward and back": model,
        "dreams and what they earn": lambda: learning.dream_of(s, batch, course),
        "actor, back": lambda: b.actor_loss(dream, 1.0, 0.0)[0].sum().backward(retain_graph=True),
        "critic, forward and back": lambda: (
            b.critic_loss(b.critic(dream.feature[:-1], ones), dream.feature[:-1], dream.returns, ones).sum().backward()
        ),
        "optimiser": lambda: s.optimiser.step({"model": 1e-9, "actor": 1e-9, "critic": 1e-9}),
    }
    return {name: round(min(milliseconds(work)[0] for _ in range(3)), 2) for name, work in works.items()}


def products(cfg: Dreamer, obs: int, actions: int) -> float:
    """Multiplications of an update, in millions. In dreams latents are one-hot: their weights are added up instead."""
    L, D, U, H = cfg.stoch * cfg.classes, cfg.deter, cfg.units, cfg.hidden
    F, rows, steps = D + L, cfg.sequences * cfg.length, cfg.imagine
    deep = (cfg.layers - 1) * U * U
    actor, critic = (D * U + deep + U * n for n in (actions, cfg.bins))
    reward, goes_on = D * U + U * cfg.bins, D * U + U
    core, prior, post = (H + D) * 3 * D, D * H + H * L, D * H + H * L
    heads = F * U + deep + U * obs + 2 * F * U + U * (cfg.bins + 1)
    model = obs * U + deep + U * H + L * H + core + prior + post + heads
    behaviour = steps * (actor + core + prior) + (steps + 1) * (reward + goes_on + critic) + steps * critic
    back = steps * (2 * (actor + critic) - 2 * D * U)  # no gradient goes back into a dream
    return rows * (3 * model + behaviour + back) / 1e6


def blas_speed() -> float:
    """Multiplications in a second, in billions, of a product of the sizes of dreams."""
    x, w = torch.randn(200, 192), torch.randn(64, 192)
    return 200 * 192 * 64 / (min(milliseconds(lambda: x @ w.T, 300)[0] for _ in range(5)) * 1e6)


def measured(s: State) -> np.ndarray:
    """[turns, 2]: milliseconds of the processor and of the clock."""
    return np.array([milliseconds(lambda: learning.update(s)) for _ in range(TURNS)])


def main() -> None:
    torch.set_num_threads(1)
    here = machine()
    warn_if_busy(here)
    speed, result = blas_speed(), {}
    for name, cfg in CASES.items():
        s = prepared(cfg)
        turns, millions = measured(s), products(cfg, 4, 2)
        result[name] = {
            "cpu_ms": summary(turns[:, 0].tolist()), "wall_ms": summary(turns[:, 1].tolist()),
            "updates_per_cpu_second": round(1e3 / float(np.median(turns[:, 0])), 1), "parts_cpu_ms": parts(s),
            "two_threads_wall_ms": summary(measured(prepared(cfg, threads=2))[:, 1].tolist()),
            "products_millions": round(millions, 1), "products_floor_ms": round(millions / speed, 1),
        }  # fmt: skip
        print(name, result[name])
    write("dreamer", {"blas_billions_per_second": round(speed, 1), "cases": result}, here)


if __name__ == "__main__":
    main()
