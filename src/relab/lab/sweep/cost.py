"""What will a sweep cost? Missing runs times the time of a run: measured where some are finished, else from a pilot."""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass

from relab.config import layers
from relab.config.base import ConfigError
from relab.formats.read import foreign_state
from relab.lab.experiment import cells as runs
from relab.lab.experiment.cells import Cell
from relab.lab.experiment.forecast import STARTUP_S, forecast
from relab.lab.sweep import ask
from relab.lab.sweep.trials import Sweeping, select
from relab.record.clock import elapsed

SAMPLE = 20  # finished runs that are timed
CHANCES = 3  # first runs of a foreign program, of which one must finish


@dataclass(frozen=True)
class Cost:
    """Of what is missing, fresh seeds of the winner included; a race makes it less."""

    runs: int
    finished: int
    seconds_per_run: float
    workers: int
    source: str  # pilot | finished runs

    @property
    def seconds(self) -> float:
        return math.ceil(self.runs / self.workers) * self.seconds_per_run

    def trials_in(self, seconds: float, seeds: int) -> int:
        """How many trials of so many seeds fit into a time."""
        return int(seconds / self.seconds_per_run * self.workers / seeds)


def missing(s: Sweeping) -> tuple[int, list[Cell]]:
    """How many runs are missing, and those whose trials are known."""
    todo = s.missing(s.cells(s.alive, s.plan.seeds))
    known = len(s.ledger.numbers) if s.plan.method == "optuna" else 0
    unknown = max(0, int(s.plan.trials or 0) - known) if s.plan.method == "optuna" else 0
    winner = None if todo or unknown else select(s)
    fresh = len(s.missing(s.cells([winner], s.plan.fresh))) if winner is not None else len(s.plan.fresh)
    return len(todo) + unknown * len(s.plan.seeds) + fresh, todo


def estimate(s: Sweeping, workers: int) -> Cost:
    """Before anything is started, but for a pilot; of a foreign program its first run, which counts."""
    if s.plan.method == "optuna" and not s.ledger.points:
        first(s)
    done = [cell for cell in s.cells(s.ledger.points, s.plan.seeds) if runs.finished(cell)]
    n, todo = missing(s)
    if n and not done:
        seconds = pilot(s, todo, workers)
        return Cost(missing(s)[0], 0, seconds * steps_of(s, todo), workers, "pilot")
    seconds = statistics.median(map(seconds_of, done[:SAMPLE])) if n else 0.0
    return Cost(n, len(done), seconds, workers, "finished runs")


def first(s: Sweeping) -> None:
    """Optuna's first trial: what it costs is known before the others are asked for."""
    study = ask.study(s.plan, s.folder)
    number, point = next(iter(ask.open_trials(s.plan, study).items()), None) or ask.ask(s.plan, study)
    (s.ledger.numbers[str(number)],) = s.add([point])
    s.save()


def pilot(s: Sweeping, todo: list[Cell], workers: int) -> float:
    """Seconds of a run; a foreign program's first runs may fail, as long as one of the first few does not."""
    for cell in todo[:CHANCES] if s.plan.command else todo[:1]:
        try:
            return forecast(s.experiment, [cell, *todo], s.folder, workers).seconds_per_run
        except ConfigError as error:
            if not s.plan.command or runs.status(cell) != "failed":
                raise
            s.ledger.failed[cell.folder.name] = runs.why_failed(cell)
            s.save()
            problem = error
    raise problem


def seconds_of(cell: Cell) -> float:
    """What a finished run took, start-up included."""
    known = foreign_state.read_state(cell.folder).get("seconds")
    if isinstance(known, (int, float)):
        return float(known)
    took = elapsed(runs.read(cell))
    return STARTUP_S + (took if math.isfinite(took) else 0.0)


def steps_of(s: Sweeping, cells: list[Cell]) -> float:
    """How much longer than the first trial, which the pilot was, trials are on average: by their steps."""
    trials = list(dict.fromkeys(cell.variant for cell in cells))
    if s.plan.command or not any("total_steps" in s.ledger.points[trial] for trial in trials):
        return 1.0
    steps = {t: layers.read_yaml(s.folder / "variants" / f"{t}.yaml")["total_steps"] for t in trials}
    return statistics.fmean(steps.values()) / steps[next(iter(s.ledger.points))]
