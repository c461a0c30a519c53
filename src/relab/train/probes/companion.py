"""When are probes asked during training? On a schedule, when the loss stands still, and after the last iteration.

They read the state and draw from streams of their own, so that a run's metrics are the same bytes with and without.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.config import registry
from relab.config.base import require
from relab.config.probes import Plateau
from relab.config.run import RunConfig
from relab.train import probes
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Room, Round

LOSSES = ("value/td_loss", "value/critic_loss", "value/loss", "policy/loss")  # the first that is logged may stand still


class ProbeCompanion:
    """Goes along with the training loop (train.Companion)."""

    def __init__(self, cfg: RunConfig, env: Any):
        agent = registry.algo_module(cfg.algo.name).make_agent(cfg.algo, env.spec, cfg.seed, cfg.device, cfg.threads)
        known = probes.for_agent(probes.of(cfg.algo.name), cfg.algo, agent)
        require(bool(known), f"`probes` is set, but {cfg.algo.name} has none (its agent has no `value`, or its settings"
                " no `gamma`); set probes=null")  # fmt: skip
        assert cfg.probes is not None, "made only for runs with probes"
        self.run, self.cfg, self.env = cfg, cfg.probes, env
        self.round = probes.round_class(cfg.algo.name)
        self.names = [name for name in known if getattr(cfg.probes, name).enabled]
        self.memory: Tree = {}
        self.room = Room()
        self.losses: list[float] = []
        self.last_plateau = -self.cfg.plateau.cooldown  # iteration of the last round that a plateau asked for

    def before(self, trainer: Any) -> None: ...

    def after(self, trainer: Any, metrics: dict[str, float]) -> None:
        iteration = int(trainer.state.counts.iteration)
        self.note_loss(trainer, iteration, metrics)
        why = self.due(iteration, bool(trainer.over))
        if why:
            kept = {"memory": self.memory, "room": self.room}
            at = self.round.of(self.run, self.env, trainer.state, trainer.step, **kept)
            for result in ask(at, self.names):
                trainer.record.append_probe(result.row(trainer.step, iteration) | {"asked_by": why})

    def note_loss(self, trainer: Any, iteration: int, metrics: dict[str, float]) -> None:
        """What may stand still; an algorithm that logs no loss has no plateau, which is said once."""
        window = self.cfg.plateau.window
        seen = [metrics[name] for name in LOSSES if name in metrics][:1]
        self.losses = [*self.losses, *seen][-window:]
        if self.cfg.plateau.enabled and not self.losses and iteration >= max(window, self.cfg.plateau.min_iter):
            trainer.warn("plateau", f"`probes.plateau` waits for a loss that stands still, but {self.run.algo.name}"
                         f" has logged none of {', '.join(LOSSES)} so far: no plateau can be seen")  # fmt: skip

    def due(self, iteration: int, last: bool) -> str:
        """Why probes are asked for after this iteration; empty: they are not."""
        every, plateau = self.cfg.every, self.cfg.plateau
        if last or (every and iteration > 1 and (iteration - 1) % every == 0):
            return "schedule"
        ready = iteration >= plateau.min_iter and iteration - self.last_plateau >= plateau.cooldown
        if plateau.enabled and ready and len(self.losses) == plateau.window and stands_still(self.losses, plateau):
            self.last_plateau = iteration
            return "plateau"
        return ""

    def to_tree(self) -> Tree:
        return {"losses": list(self.losses), "asked": self.last_plateau, **self.memory}

    def load(self, tree: Tree) -> None:
        self.losses, self.last_plateau = list(tree["losses"]), int(tree["asked"])
        self.memory = {key: tree[key] for key in ("w_sharp", "step_scale") if key in tree}


def ask(at: Round, names: list[str]) -> list[ProbeResult]:
    """The results of some probes, in order."""
    return [result for name in names for result in registry.load(probes.PROBES[name][0])(at)]


def stands_still(losses: list[float], cfg: Plateau) -> bool:
    """Whether the slope is under z of its own standard errors: relative to the noise, whatever the loss's size."""
    y = np.array(losses)
    x = np.arange(len(y)) - (len(y) - 1) / 2
    slope = float(x @ y / (x @ x))
    rest = y - y.mean() - slope * x
    error = float(np.sqrt(rest @ rest / (len(y) - 2) / (x @ x)))
    return bool(np.isfinite(y).all()) and abs(slope) <= cfg.z * error


def make(cfg: RunConfig, env: Any, fresh: bool = True) -> ProbeCompanion:
    return ProbeCompanion(cfg, env)
