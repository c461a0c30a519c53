"""Which point next, by what earlier ones were worth? Optuna's ask and tell on a journal file (extra `relab[optuna]`).

The journal lies in the sweep's state/ folder. Trials that were asked for and never told (the sweep was killed) are
taken up again before new ones are asked for.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from relab.base import streams
from relab.base.documents import Settings
from relab.base.enclosed import own, subfolder
from relab.config.base import ConfigError, require
from relab.lab.sweep.axis import Axis
from relab.lab.sweep.plan import Sweep
from relab.lab.sweep.points import TRIES, Point, allowed

JOURNAL = "optuna-journal"  # no ending that would make it a log of runs


def study(s: Sweep, folder: Path) -> Any:
    """The sweep's study, as it was left."""
    try:
        import optuna
        from optuna.storages import JournalStorage
        from optuna.storages.journal import JournalFileBackend
    except ImportError:
        raise ConfigError(
            "`method: optuna` needs Optuna 5: pip install 'relab[optuna]'; or use random or sobol"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = folder / "state" / JOURNAL
    own(subfolder(folder, "state"), JOURNAL)
    direction = "minimize" if s.at == "first_step_reaching" or s.direction == "lower" else "maximize"
    storage = JournalStorage(JournalFileBackend(str(path)))
    optuna_study = optuna.create_study(storage=storage, study_name="sweep", direction=direction, load_if_exists=True)
    # a sampler starts its draws anew in each process: by how many trials there are, so that none is drawn twice
    seed = streams.seed_for(s.sampler_seed, "optuna", len(optuna_study.trials)) % 2**32
    optuna_study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
    return optuna_study


def open_trials(s: Sweep, optuna_study: Any) -> dict[int, Point]:
    """Trials that were begun and not told; one that was cut off while being asked is told as failed."""
    from optuna.trial import TrialState

    points = {}
    for trial in optuna_study.get_trials(states=(TrialState.RUNNING,)):
        point = rebuilt(s, trial.params)
        if point is None:
            optuna_study.tell(trial.number, state=TrialState.FAIL)
        else:
            points[trial.number] = point
    return points


def rebuilt(s: Sweep, params: Settings) -> Point | None:
    point: Point = {}
    for axis in s.axes:
        if axis.is_on(point):
            if axis.key not in params:
                return None
            point[axis.key] = written(axis, params[axis.key])
    return point


def written(axis: Axis, value: Any) -> Any:
    """As it is written into files and read again; the same, whether asked just now or taken up again."""
    return float(f"{value:.12g}") if axis.is_range and not axis.whole else value


def ask(s: Sweep, optuna_study: Any) -> tuple[int, Point]:
    """A point that satisfies the constraints; those that do not are told as failed, and cost nothing."""
    from optuna.trial import TrialState

    for _ in range(TRIES):
        trial = optuna_study.ask()
        point: Point = {}
        for axis in s.axes:
            if axis.is_on(point):
                point[axis.key] = suggest(trial, axis)
        if allowed(point, s.limits, s.base):
            return int(trial.number), point
        optuna_study.tell(trial, state=TrialState.FAIL)
    require(False, f"optuna found no point that satisfies {' and '.join(s.constraints)} in {TRIES} tries")
    raise AssertionError  # require has raised


def suggest(trial: Any, axis: Axis) -> Any:
    if axis.values:
        return trial.suggest_categorical(axis.key, list(axis.values))
    if axis.whole:
        return trial.suggest_int(axis.key, int(axis.low), int(axis.high), log=axis.log)
    return written(axis, trial.suggest_float(axis.key, axis.low, axis.high, log=axis.log))


def tell(optuna_study: Any, number: int, value: float | None) -> None:
    """What a trial was worth; None or NaN: it failed."""
    from optuna.trial import TrialState

    if value is None or not math.isfinite(value):
        optuna_study.tell(number, state=TrialState.FAIL)
    else:
        optuna_study.tell(number, value)


def completed(optuna_study: Any) -> int:
    """Trials that were told a number."""
    from optuna.trial import TrialState

    return len(optuna_study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,)))
