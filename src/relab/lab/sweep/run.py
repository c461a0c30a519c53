"""How does a sweep get done? Round by round of seeds, dropping what its interval says; then the winner on fresh seeds.

Everything is a function of the folder: killed or called again it goes on with what is missing. A finished run is never
repeated, a failed one only if it is asked for.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from relab.base.enclosed import listed, own
from relab.base.interrupts import Interrupted
from relab.config.base import require
from relab.lab.execute import engines, local
from relab.lab.experiment import cells as runs
from relab.lab.experiment.cells import Cell
from relab.lab.sweep import ask, plan, race, trials
from relab.lab.sweep.plan import Sweep
from relab.lab.sweep.points import Point
from relab.lab.sweep.trials import Sweeping

Watch = Callable[[int, int], None]
Tell = Callable[[str], None]
POLL_S = 0.2


def prepare(s: Sweep, folder: Path, retry: bool = False) -> Sweeping:
    """Write the sweep down and its points, but for those that optuna chooses later."""
    runs.check_own(folder)
    sweeping = Sweeping(s, folder, trials.open_ledger(folder))
    if not plan.begun(folder):
        sweeping.ledger = trials.Ledger()
    points = [] if s.method == "optuna" else s.points()
    runs.resolved(s.experiment({str(i): point for i, point in enumerate(points)}))  # wrong ones leave nothing behind
    if (folder / plan.FILE).exists() and not plan.begun(folder):  # what an earlier forecast of ours left behind
        for path in listed(folder, "variants"):
            if path.suffix == ".yaml" and path.is_file():
                path.unlink()
        own(folder, f"state/{ask.JOURNAL}").unlink(missing_ok=True)
    plan.keep(s, folder)
    if retry:
        sweeping.ledger.failed.clear()
    sweeping.add(points)
    sweeping.save()
    return sweeping


def run(s: Sweeping, workers: int, watch: Watch | None = None, tell: Tell | None = None) -> str | None:
    """Everything that is missing; the winner, or None where no run has a number. Raises Interrupted."""
    if s.plan.method == "optuna":
        run_optuna(s, workers, watch)
    else:
        run_rounds(s, workers, watch, tell)
    winner = trials.select(s)
    if winner is not None and s.plan.fresh:
        do(s, s.cells([winner], s.plan.fresh), workers, watch)
    return winner


def run_rounds(s: Sweeping, workers: int, watch: Watch | None, tell: Tell | None) -> None:
    *looks, every = race.rounds(s.plan)
    for seeds in looks:
        do(s, s.cells(s.alive, seeds), workers, watch)
        outcomes = trials.outcomes(s, s.alive, seeds)
        gone = race.drop(s.plan, outcomes, s.ledger.looks, len(s.ledger.points))
        s.ledger.dropped |= gone
        s.save()
        if tell is not None and gone:
            tell(f"  after {len(seeds)} seeds {len(gone)} of {len(outcomes)} trials are dropped")
    do(s, s.cells(s.alive, every), workers, watch)


def do(s: Sweeping, cells: list[Cell], workers: int, watch: Watch | None) -> None:
    """Run what is missing of these; what fails is written down with its last words and left alone."""
    while s.plan.execute.here and any(map(runs.busy, s.missing(cells))):  # elsewhere the engine is asked
        time.sleep(POLL_S)
    todo = s.missing(cells)
    if not todo:
        return
    at = engines.of(s.plan.execute, s.folder)
    done = local.run(runs.jobs(s.experiment, todo, s.folder), workers, watch, at=at, env=s.plan.execute.env)
    by_name = {cell.folder.name: cell for cell in todo}
    s.ledger.failed |= {name: runs.why_failed(by_name[name]) for name in done.failed}
    s.save()
    if done.interrupted:
        raise Interrupted


def run_one(s: Sweep, folder: Path, name: str) -> tuple[Cell, local.Result]:
    """One run of a sweep that is under way, by its name; nothing but the run itself is written."""
    sweeping = Sweeping(s, folder, trials.open_ledger(folder))
    every = sweeping.cells(sweeping.ledger.points, (*s.seeds, *s.fresh))
    chosen = [cell for cell in every if cell.folder.name == name]
    require(bool(chosen), f"`--only` must be one of the {len(every)} runs of {folder}, but is {name!r}")
    return chosen[0], local.run(runs.jobs(sweeping.experiment, chosen, folder), 1)


# ---- Optuna


def run_optuna(s: Sweeping, workers: int, watch: Watch | None) -> None:
    """As many trials at a time as keep the workers busy; each is told the mean over its seeds."""
    study = ask.study(s.plan, s.folder)
    batch = max(1, (s.plan.execute.at_once or workers) // len(s.plan.seeds))
    waiting = ask.open_trials(s.plan, study)
    while ask.completed(study) + failed(s, waiting) < int(s.plan.trials or 0):
        left = int(s.plan.trials or 0) - ask.completed(study) - failed(s, waiting)
        while len(waiting) < min(batch, left):
            number, point = ask.ask(s.plan, study)
            waiting[number] = point
        for number, point in waiting.items():
            (s.ledger.numbers[str(number)],) = s.add([point])
        s.save()
        do(s, s.cells(dict.fromkeys(s.ledger.numbers[str(n)] for n in waiting), s.plan.seeds), workers, watch)
        for number in list(waiting):
            ask.tell(study, number, worth(s, s.ledger.numbers[str(number)]))
            del waiting[number]


def failed(s: Sweeping, waiting: dict[int, Point]) -> int:
    """Trials whose runs gave no number at all: they have been paid for, and count."""
    known = {number: trial for number, trial in s.ledger.numbers.items() if int(number) not in waiting}
    return sum(not trials.scores(s.plan, trials.outcomes(s, [trial], s.plan.seeds)) for trial in known.values())


def worth(s: Sweeping, trial: str) -> float | None:
    """A trial's score among all, in the metric's own sign."""

    scores = trials.scores(s.plan, trials.outcomes(s, s.ledger.points, s.plan.seeds))
    return s.plan.sign * scores[trial] if trial in scores else None
