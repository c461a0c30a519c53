"""How fast does a config train? A few iterations of it, in a process of its own, ended once they tell its speed.

    python -m relab.lab.experiment.pilot VARIANT.yaml FOLDER

The config stays as it is, total_steps too, which schedules and checks rest on: only how many iterations are waited for
is decided here. Whatever an iteration is to the algorithm, the record's rows say how many steps of its clock it was.
"""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base.documents import Settings
from relab.base.errors import UserError
from relab.config import layers
from relab.config.layers import Layer
from relab.train import device, session
from relab.train.loop import Trainer
from relab.train.screen import Silent

ITERATIONS = 6  # that learn
WAIT_S = 20.0  # for a method with a replay to begin to learn


class Watch(Silent):
    """Sees iterations pass, asks for one evaluation among them, and ends the run when it has seen enough."""

    def __init__(self) -> None:
        self.trainer: Trainer | None = None
        self.began, self.seen, self.learned = time.monotonic(), 0, 0

    def iteration(self, row: Mapping[str, Any]) -> None:
        self.seen += 1
        self.learned += row["metrics"].get("data/updates", 1) > 0  # what is not counted begins at once
        if self.seen == 1 and self.trainer is not None:
            self.trainer.progress.next_eval = 0  # due in the next iteration, and timed with it
        late = time.monotonic() - self.began > WAIT_S and self.seen >= ITERATIONS
        if self.learned >= ITERATIONS or late:
            signal.raise_signal(signal.SIGINT)


def settings(cfg: Any) -> Settings:
    """What a pilot does otherwise: evaluations when Watch asks for one, a schedule's every other iteration."""
    every = {"schedule.every": 2} if cfg.schedule and "every" in cfg.schedule else {}
    return {"seed": 0, "eval.stop_at": None, "eval.every": cfg.total_steps, **every}


def train(variant: Path, folder: Path) -> None:
    file = layers.file_layer(variant)
    resolved = layers.resolve([file, Layer("pilot", settings(layers.resolve([file]).config))])
    cfg, watch = resolved.config, Watch()
    device.check(cfg.device)
    env = session.make_env(cfg)
    with session.exits_are_errors():
        inherited = session.inherited_by(cfg, env, folder.parent)
        trainer = session.begin(cfg, folder, resolved.provenance, {"command": "pilot"}, watch, env, inherited)
        watch.trainer = trainer
        trainer.run()


def main(words: list[str]) -> int:
    try:
        train(Path(words[0]), Path(words[1]))
    except UserError as error:
        print(f"relab: {error}", file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
