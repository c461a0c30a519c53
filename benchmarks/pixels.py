"""How many pictures of CartPole are drawn in a second, and how long does an update of Dreamer from pictures take?

Run as `python -m benchmarks.pixels`, one thread. Processor time counts: a busy machine stretches only the clock's.
The drawing is held against drawing 400 x 600 (CartPole.render) and making that small (envs/resize.py).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from benchmarks.common import machine, summary, warn_if_busy, write
from benchmarks.dreamer import milliseconds
from relab.config.dreamer import Dreamer
from relab.config.envs import CartPole as Params
from relab.train.algos import dreamer
from relab.train.algos.dreamer import frames, learning, sequences
from relab.train.contract import Setup
from relab.train.envs import resize
from relab.train.envs.base import Worlds
from relab.train.envs.cartpole import CartPole

RECIPE = Dreamer(envs=16, learning_starts=512, sequences=8, length=25, deter=128, stoch=16, bins=41, gamma=0.99)
WORLDS, TURNS = 16, 5


def drawing() -> dict[str, object]:
    """Pictures in a processor second: of 64 x 64 drawn at that size, and drawn large and made small."""
    env = CartPole(Params(pixels=64))
    worlds = Worlds(env, WORLDS)
    worlds.reset(np.arange(WORLDS))

    def large() -> None:
        for i in range(WORLDS):
            resize.square(worlds.render(i), 64)

    works: dict[str, tuple[Callable[[], object], int]] = {
        "drawn at 64 x 64": (lambda: env.observe(worlds.state, worlds.obs), 200),
        "drawn at 400 x 600, made small": (large, 2),
    }
    result = {}
    for name, (work, times) in works.items():
        work()
        result[name] = summary([WORLDS * 1e3 / milliseconds(work, times)[0] for _ in range(TURNS)], 0)
    return result


def update() -> dict[str, object]:
    """Processor milliseconds of an update at the sizes of pixels.yaml, of its parts, and of a step of 16 worlds."""
    s = dreamer.init(Setup(CartPole(Params(pixels=64)), RECIPE, 0, 10**6))
    while s.counts.agent_steps < 2_000:
        s.gathering.step(dreamer.Even(s.agent), s.counts)
    for _ in range(3):
        learning.update(s)
    rows, cfg = learning.drawn(s)[0], s.cfg
    batch, noise = learning.batch_of(s.agent, rows), s.uniform(cfg.length, cfg.sequences, cfg.stoch)
    course, m = s.agent.model.observe(batch, noise), s.agent.model
    feature = course.feature.detach()
    starts = sequences.starts(s.gathering.replay, s.draw, cfg.sequences, cfg.length)
    works: dict[str, Callable[[], object]] = {
        "update": lambda: learning.update(s),
        "images taken from the replay": lambda: frames.filled(s.gathering, starts, cfg.length),
        "encoder, forward and back": lambda: m.see(batch.obs).sum().backward(),
        "decoder, forward and back": lambda: m.obs_loss(batch.obs, feature).sum().backward(),
        "a step of 16 worlds": lambda: s.gathering.step(s.agent, s.counts),
    }
    return {name: summary([milliseconds(work, 4)[0] for _ in range(TURNS)], 1) for name, work in works.items()}


def main() -> None:
    torch.set_num_threads(1)
    here = machine()
    warn_if_busy(here)
    result = {"pictures_per_cpu_second": drawing(), "cpu_ms": update()}
    print(result)
    write("pixels", result, here)


if __name__ == "__main__":
    main()
