"""What will it cost? A short pilot of relab's own trainer; of a foreign program the first run itself, which counts."""

from __future__ import annotations

import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import limits, masks
from relab.base.interrupts import Interrupted
from relab.base.processes import RELAB
from relab.config import layers
from relab.config.base import ConfigError, require
from relab.formats.read import foreign_state
from relab.lab.execute import local
from relab.lab.experiment import foreign
from relab.lab.experiment.cells import Cell, finished, read, run, settled
from relab.lab.experiment.conclude import column_of
from relab.lab.experiment.question import Experiment
from relab.record import history

STARTUP_S = 4.0  # process start and imports
PILOT = 6  # iterations


@dataclass(frozen=True)
class Forecast:
    """What the experiment will cost, from a pilot run."""

    runs: int
    seconds_per_run: float
    workers: int
    pilot: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return -(-self.runs // self.workers) * self.seconds_per_run


def forecast(e: Experiment, cells: list[Cell], folder: Path, workers: int) -> Forecast:
    """Seconds that the missing runs will take."""
    missing = [cell for cell in cells if not settled(cell)]
    if not missing:
        return Forecast(0, 0.0, workers)
    if e.command:
        return from_finished(e, cells, folder, workers)
    return from_pilot(e, folder, len(missing), workers)


# ---- Foreign programs


def from_finished(e: Experiment, cells: list[Cell], folder: Path, workers: int) -> Forecast:
    """From the runs that are finished; where there is none, the first one is run now, for real."""
    if not any(settled(cell) for cell in cells):
        first_run(e, cells[0], folder)
    done = [cell for cell in cells if settled(cell)]
    column_of(read(done[0]), e)  # a metric that is not there is said before the other runs are paid for
    seconds = statistics.median(float(foreign_state.read_state(cell.folder).get("seconds", 0.0)) for cell in done)
    return Forecast(len(cells) - len(done), seconds, workers)


def first_run(e: Experiment, cell: Cell, folder: Path) -> None:
    done = run(e, folder, [cell], 1)
    if done.interrupted:
        raise Interrupted
    require(not done.failed, f"the first run, {cell.folder.name}, failed: {foreign.why(cell.folder, cell.log)}"
                             f" (all of it: {cell.log})")  # fmt: skip


# ---- relab's own


def from_pilot(e: Experiment, folder: Path, runs: int, workers: int) -> Forecast:
    """From a few iterations of the control."""
    variant = folder / "variants" / f"{next(iter(e.variants))}.yaml"
    cfg = layers.from_dict(layers.read_yaml(variant))
    with tempfile.TemporaryDirectory() as root:
        pilot = pilot_job(cfg, variant, Path(root))
        done = local.run([pilot], 1)
        if done.interrupted:
            raise Interrupted
        if done.failed:
            said = limits.read_end(pilot.log, 4000).decode(errors="replace")
            raise ConfigError(f"the pilot run failed: {masks.mask(said)[-500:]}")
        trial_run = history.load(Path(root) / "pilot")
        column_of(trial_run, e)
        return cost(trial_run, cfg, runs, workers)


def pilot_job(cfg: Any, variant: Path, root: Path) -> local.Job:
    settings = {"total_steps": min(cfg.total_steps, PILOT * cfg.batch), "eval.stop_at": "null",
                "eval.every": 2 * cfg.batch, "seed": 0, **shortened(cfg)}  # fmt: skip
    words = [*(f"{key}={value}" for key, value in settings.items()), "--runs", str(root), "--name", "pilot", "--quiet"]
    done = Cell("", 0, root / "pilot")
    return local.Job("pilot", lambda: [*RELAB, "train", str(variant), *words], lambda: finished(done), root / "log")


def shortened(cfg: Any) -> dict[str, Any]:
    """A schedule ends with the pilot, and checks every other iteration of it: what an evaluation costs must be seen."""
    if not cfg.schedule:
        return {}
    return {"schedule.total": min(cfg.iterations, PILOT)} | ({"schedule.every": 2} if "every" in cfg.schedule else {})


def cost(run: history.History, cfg: Any, runs: int, workers: int) -> Forecast:
    """Per run: start-up, then steps at the median speed of the pilot's rows, then its evaluations at full length."""
    part = {name: run.column(f"time/{name}_s").values for name in ("collect", "update", "log")}
    per_row = float(np.median(sum(part.values())))
    horizon = (run.meta.get("spec") or {}).get("horizon") or 0
    evals = cfg.total_steps / cfg.eval.every + 1 if cfg.eval.every else 2
    lengths = run.column("eval/length_det").values.max(initial=1.0)
    took = float(run.column("time/eval_s").values.max(initial=0.0))
    eval_s = took * max(1.0, horizon / max(float(lengths), 1.0))
    seconds = STARTUP_S + cfg.total_steps / cfg.batch * per_row + evals * eval_s
    if cfg.schedule:
        checks = cfg.iterations / float(cfg.schedule.get("every") or cfg.iterations)
        seconds += checks * float(run.column("time/schedule_s").values.max(initial=0.0))
    return Forecast(runs, seconds, workers, {"row_s": per_row, "eval_s": eval_s, "evals": evals})
