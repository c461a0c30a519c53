"""How long does an update of SAC take? relab's kernels against the same update written in torch, one thread each.

Run as `python -m benchmarks.sac_updates`. The torch side is what libraries do: modules, autograd, one Adam each for
actor, critics and temperature, a loop over the parameters for the slow copies; the batch is drawn from arrays. Both are
measured in user seconds of the processor, in turns, so that a busy machine does not favour one of them.
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from itertools import chain

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Normal
from torch.nn.functional import mse_loss

from benchmarks.common import machine, summary, warn_if_busy, write
from relab.config.sac import SAC
from relab.train.algos import sac
from relab.train.contract import Setup, Stopwatch
from relab.train.envs.pendulum import Pendulum

OBS, DIM, ROWS, GAMMA, TAU = 3, 1, 10_000, 0.99, 0.005
CASES = (((256, 256), 256), ((64, 64), 256), ((64, 64), 128))
TURNS, UPDATES = 5, 100


def ours(hidden: tuple[int, ...], minibatch: int) -> Callable[[], object]:
    """An update as a run makes it: rows drawn, n-step returns, both gradients, temperature, slow copies."""
    s = sac.init(Setup(Pendulum(), SAC(hidden=hidden, minibatch=minibatch, steps=500), 0, 10**6))
    while s.counts.updates < 20:
        sac.iterate(s, Stopwatch())
    return lambda: sac.update(s)


def mlp(size: int, hidden: tuple[int, ...], out: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for width in hidden:
        layers, size = [*layers, nn.Linear(size, width), nn.ReLU()], width
    return nn.Sequential(*layers, nn.Linear(size, out))


class Torch:
    """The same update by autograd."""

    def __init__(self, hidden: tuple[int, ...], minibatch: int):
        self.actor, self.minibatch = mlp(OBS, hidden, 2 * DIM), minibatch
        self.critics, self.slow = ([mlp(OBS + DIM, hidden, 1) for _ in range(2)] for _ in range(2))
        self.weights = [list(chain(*(net.parameters() for net in nets))) for nets in (self.critics, self.slow)]
        self.log_alpha = torch.zeros(1, requires_grad=True)
        groups = (self.actor.parameters(), self.weights[0], [self.log_alpha])
        self.adam = [torch.optim.Adam(group, lr=3e-4) for group in groups]
        rng = np.random.default_rng(0)
        self.data = [rng.normal(size=(ROWS, k)).astype(np.float32) for k in (OBS, DIM, 1, 1, OBS)]

    def draw(self, obs: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_std = self.actor(obs).chunk(2, dim=1)
        policy = Normal(mean, log_std.clamp(-20, 2).exp())
        u = policy.rsample()
        action = torch.tanh(u)
        return action, (policy.log_prob(u) - torch.log(1 - action**2 + 1e-6)).sum(1, keepdim=True)

    def step(self, which: int, loss: Tensor) -> float:
        self.adam[which].zero_grad()
        loss.backward()
        self.adam[which].step()
        return loss.item()

    def update(self) -> None:
        rows = np.random.randint(ROWS, size=self.minibatch)
        obs, action, reward, goes_on, after = (torch.as_tensor(x[rows]) for x in self.data)
        drawn, logp = self.draw(obs)
        alpha = self.log_alpha.detach().exp()
        self.step(2, -(self.log_alpha * (logp - DIM).detach()).mean())
        with torch.no_grad():
            next_action, next_logp = self.draw(after)
            pair = torch.cat((after, next_action), 1)
            value = torch.minimum(*(net(pair) for net in self.slow)) - alpha * next_logp
            y = reward + GAMMA * goes_on * value
        pair = torch.cat((obs, action), 1)
        self.step(1, 0.5 * (mse_loss(self.critics[0](pair), y) + mse_loss(self.critics[1](pair), y)))
        pair = torch.cat((obs, drawn), 1)
        self.step(0, (alpha * logp - torch.minimum(*(net(pair) for net in self.critics))).mean())
        with torch.no_grad():
            for now, slow in zip(*self.weights, strict=True):
                slow.lerp_(now, TAU)


def milliseconds(update: Callable[[], object]) -> float:
    began = resource.getrusage(resource.RUSAGE_SELF).ru_utime
    for _ in range(UPDATES):
        update()
    return (resource.getrusage(resource.RUSAGE_SELF).ru_utime - began) / UPDATES * 1e3


def race(hidden: tuple[int, ...], minibatch: int) -> dict[str, object]:
    pair = {"relab": ours(hidden, minibatch), "torch": Torch(hidden, minibatch).update}
    for update in pair.values():  # warm
        milliseconds(update)
    taken: dict[str, list[float]] = {name: [] for name in pair}
    for _ in range(TURNS):
        for name, update in pair.items():
            taken[name].append(milliseconds(update))
    ratios = [b / a for a, b in zip(taken["relab"], taken["torch"], strict=True)]
    print(f"hidden {hidden}, minibatch {minibatch}: relab {np.median(taken['relab']):.2f} ms, torch"
          f" {np.median(taken['torch']):.2f} ms, {np.median(ratios):.1f} times")  # fmt: skip
    return {"hidden": list(hidden), "minibatch": minibatch, "times": summary(ratios, 2),
            **{f"{name}_ms": summary(found, 3) for name, found in taken.items()}}  # fmt: skip


def main() -> None:
    warn_if_busy(started := machine())
    torch.set_num_threads(1)
    write("sac_updates", {"unit": "user milliseconds an update", "cases": [race(*case) for case in CASES]}, started)


if __name__ == "__main__":
    main()
