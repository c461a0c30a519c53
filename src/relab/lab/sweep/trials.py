"""Which trials and runs does a sweep have, and what is known of them? Kept in trials.json; the runs' own folders rule.

sweeps/<id>/sweep.yaml     the sweep as it was asked
sweeps/<id>/trials.json    its points, what was dropped and why, what failed and why
sweeps/<id>/variants/      each trial's resolved settings
sweeps/<id>/runs/          b0p005_aw0p02_s0_4bd77e92: one folder per trial and seed
sweeps/<id>/state/, logs/  as an experiment has them
sweeps/<id>/sweep.json, report.md, report.html
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from relab.base.documents import Document
from relab.base.jsonl import RecordError, encode, read_json, write_atomic
from relab.comparison.outcomes import Outcome
from relab.comparison.task import bounds_at
from relab.lab.experiment import cells as runs
from relab.lab.experiment.cells import Cell
from relab.lab.experiment.conclude import check_metric, find_column, outcome
from relab.lab.experiment.question import Experiment
from relab.lab.sweep import names
from relab.lab.sweep.plan import Sweep
from relab.lab.sweep.points import Point

FILE = "trials.json"


@dataclass
class Ledger:
    """What cannot be read from the runs' folders."""

    points: dict[str, Point] = field(default_factory=dict)  # trial -> its values, in the order of their beginning
    dropped: dict[str, Document] = field(default_factory=dict)  # trial -> when, and the interval that says so
    failed: dict[str, str] = field(default_factory=dict)  # run -> why
    looks: list[list[int]] = field(default_factory=list)  # (seeds, trials) of each look of a race
    numbers: dict[str, str] = field(default_factory=dict)  # optuna's number -> trial


@dataclass
class Sweeping:
    """A sweep and its folder."""

    plan: Sweep
    folder: Path
    ledger: Ledger
    known: dict[str, Outcome] = field(default_factory=dict)  # run -> its number: a finished run changes no more
    bounds: dict[str, tuple[float, float]] = field(default_factory=dict)  # trial -> the lowest and highest number

    @property
    def experiment(self) -> Experiment:
        return self.plan.experiment(self.ledger.points)

    def cell(self, trial: str, seed: int) -> Cell:
        name = names.run(self.ledger.points[trial], self.plan.short, seed)
        return Cell(trial, seed, self.folder / "runs" / name)

    def cells(self, trials: Iterable[str], seeds: Iterable[int]) -> list[Cell]:
        """Seed by seed, so that whatever was cut short has about as many of each trial."""
        trials = list(trials)
        return [self.cell(trial, seed) for seed in seeds for trial in trials]

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Neither finished nor known to fail."""
        return [cell for cell in cells if cell.folder.name not in self.ledger.failed and not runs.finished(cell)]

    @property
    def alive(self) -> list[str]:
        return [trial for trial in self.ledger.points if trial not in self.ledger.dropped]

    def save(self) -> None:
        """With the names of all runs that are asked for: readers of the folder see what is missing."""
        planned = [cell.folder.name for cell in self.cells(self.alive, self.plan.seeds)]
        write_atomic(self.folder / FILE, encode({**asdict(self.ledger), "planned": planned}, indent=True))

    def add(self, points: Iterable[Point]) -> list[str]:
        """Points that are new become trials; their settings are written down."""
        short = self.plan.short
        named = {names.trial(point, short): point for point in points}
        new = {name: point for name, point in named.items() if name not in self.ledger.points}
        if new:
            settings = runs.resolved(self.plan.experiment(new))  # a wrong one leaves nothing behind
            self.folder.mkdir(parents=True, exist_ok=True)
            runs.write_variants(settings, self.folder)
            self.ledger.points |= new
            self.save()
        return list(named)


def open_ledger(folder: Path) -> Ledger:
    """As it was left; empty for a new sweep."""
    if not (folder / FILE).exists():
        return Ledger()
    known, kept = vars(Ledger()), read_json(folder, FILE)
    odd = [key for key, value in kept.items() if key != "planned" and type(value) is not type(known.get(key))]
    if odd:
        raise RecordError(f"{folder / FILE} is no ledger: `{odd[0]}` is {kept[odd[0]]!r:.40}; delete it, and"
                          " the sweep is taken up from its runs, without what was dropped or failed")  # fmt: skip
    return Ledger(**{key: value for key, value in kept.items() if key != "planned"})


# ---- Numbers


def outcomes(s: Sweeping, trials: Iterable[str], seeds: Iterable[int]) -> dict[str, list[Outcome]]:
    """Trial -> one number a run, in the order of the seeds; a failed run is one without a number, and says why."""
    e, seeds, read = s.experiment, list(seeds), []
    by_trial: dict[str, list[Outcome]] = {trial: [] for trial in trials}
    for cell in (s.cell(trial, seed) for trial in by_trial for seed in seeds):
        name = cell.folder.name
        if name not in s.known and runs.finished(cell):
            read.append(runs.read(cell))
            s.known[name] = replace(outcome(e, read[-1]), seed=cell.seed, run=name)
            if cell.variant not in s.bounds:
                s.bounds[cell.variant] = bounds_at(read[-1], e.at, find_column(read[-1], e.metric) or e.metric)
        if name in s.known:
            by_trial[cell.variant].append(s.known[name])
        elif name in s.ledger.failed:
            why = f"failed: {s.ledger.failed[name]}"
            by_trial[cell.variant].append(Outcome(math.nan, cell.seed, name, note=why))
    if not any(math.isfinite(x.value) for x in s.known.values()):
        check_metric(e, read)
    return by_trial


def scores(s: Sweep, by_trial: dict[str, list[Outcome]]) -> dict[str, float]:
    """What trials are ranked by, higher is better: the mean, with the worst number of all for each run that has none.

    A trial whose failing seeds were simply left out would win by failing.
    """
    has = {trial for trial, group in by_trial.items() if any(math.isfinite(x.value) for x in group)}
    return {trial: float(np.mean(values)) for trial, values in filled(s, by_trial).items() if trial in has}


def filled(s: Sweep, by_trial: dict[str, list[Outcome]]) -> dict[str, list[float]]:
    """Each run's number, higher is better; the worst of all for a run that has none or never reached the level."""
    sign = s.sign
    worst = min((sign * x.value for group in by_trial.values() for x in group if math.isfinite(x.value)),
                default=math.nan)  # fmt: skip
    return {trial: [sign * x.value if math.isfinite(x.value) and x.reached else worst for x in group]
            for trial, group in by_trial.items()}  # fmt: skip


def best(s: Sweep, by_trial: dict[str, list[Outcome]]) -> str | None:
    ranked = scores(s, by_trial)
    return max(ranked, key=lambda trial: ranked[trial]) if ranked else None


def select(s: Sweeping) -> str | None:
    """The best of those still in the race, on the seeds of the selection alone."""
    return best(s.plan, outcomes(s, s.alive, s.plan.seeds))
