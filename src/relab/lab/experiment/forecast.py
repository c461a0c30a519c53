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
from relab.base.jsonl import RecordError
from relab.base.processes import PYTHON
from relab.config import layers
from relab.config.base import ConfigError, require
from relab.formats.read import foreign_state
from relab.lab.execute import local
from relab.lab.experiment import foreign
from relab.lab.experiment.cells import Cell, read, run, settled
from relab.lab.experiment.conclude import column_of
from relab.lab.experiment.question import Experiment
from relab.record import history
from relab.record.run_folder import read_meta

STARTUP_S = 4.0  # process start and imports
PILOT = "relab.lab.experiment.pilot"  # the module that a pilot runs as, so that nothing here imports torch


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
        pilot = pilot_job(variant, Path(root))
        done = local.run([pilot], 1)
        if done.interrupted:
            raise Interrupted
        if done.failed:
            said = limits.read_end(pilot.log, 4000).decode(errors="replace")
            raise ConfigError(f"the pilot run failed: {masks.mask(said)[-500:]}")
        trial_run = history.load(Path(root) / "pilot")
        column_of(trial_run, e)
        return cost(trial_run, cfg, runs, workers)


def pilot_job(variant: Path, root: Path) -> local.Job:
    folder = root / "pilot"
    words = [*PYTHON, "-m", PILOT, str(variant), str(folder)]
    return local.Job("pilot", lambda: words, lambda: pilot_is_over(folder), root / "log")


def pilot_is_over(folder: Path) -> bool:
    """Whether a pilot is over, and not because it failed."""
    try:
        return read_meta(folder)["status"] in ("finished", "interrupted")
    except (RecordError, OSError):
        return False


def cost(run: history.History, cfg: Any, runs: int, workers: int) -> Forecast:
    """Per run: start-up, then iterations at the median speed of the pilot's, then its evaluations at full length."""
    per_row, steps = speed(run)
    iterations = cfg.total_steps / steps
    horizon = (run.meta.get("spec") or {}).get("horizon") or 0
    evals = cfg.total_steps / cfg.eval.every + 1 if cfg.eval.every else 2
    lengths = run.column("eval/length_det").values.max(initial=1.0)
    took = float(run.column("time/eval_s").values.max(initial=0.0))
    eval_s = took * max(1.0, horizon / max(float(lengths), 1.0))
    seconds = STARTUP_S + iterations * per_row + evals * eval_s
    if cfg.schedule:
        checks = iterations / float(cfg.schedule.get("every") or iterations)
        seconds += checks * float(run.column("time/schedule_s").values.max(initial=0.0))
    return Forecast(runs, seconds, workers, {"row_s": per_row, "steps": steps, "eval_s": eval_s, "evals": evals})


def speed(run: history.History) -> tuple[float, float]:
    """Seconds of an iteration that learns, and its steps on the algorithm's clock, from the rows themselves."""
    parts = [run.column(f"time/{name}_s") for name in ("collect", "update", "log")]
    took = np.sum([part.values for part in parts], axis=0)
    at = np.asarray(parts[0].steps, np.float64)
    steps = float(np.median(np.diff(at, prepend=0.0)))
    learns = np.isin(at, learning(run)) if "data/updates" in run.columns else np.ones(len(at), bool)
    return float(np.median(took[learns] if learns.any() else took)), max(steps, 1.0)


def learning(run: history.History) -> np.ndarray:
    """The steps of the rows after which something had been learned."""
    updates = run.column("data/updates")
    return np.asarray(updates.steps)[np.asarray(updates.values) > 0]
