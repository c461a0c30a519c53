"""Which runs are one config? Those with the same settings, unless the same seed then gave different numbers.

A reward wrapper or an edit of the code leaves no trace in the settings, but often one in the name: where two runs claim
one config and one seed (or say no seed), and their numbers part, they are no replicates, and the names of their folders
tell them apart.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from relab.formats.read import logged_settings
from relab.record.history import History
from relab.record.state import LOG_END, NAMED, experiment_name, group_key, seed_of, seedless
from relab.runs.course import TRAINED
from relab.runs.naming import display_name

ROUNDING = 1e-5  # of a value, and of 1: some logs keep half the digits
OUTCOME = re.compile(r"return|reward|success|survival|score")
TELLING = ("return/", "policy/", "value/", "model/", "optim/grad", "foreign/")
CLOCK = re.compile(r"(^|/)time/|fps|sps|_s$")
# What tools put into names that says when or the how-manieth, not what: times, dates, ids, and counters at the end.
STAMP = re.compile(r"(?i)(?:^|(?<=[-_./]))(?:\d{6,}|\d{4}-\d\d-\d\d|\d\d-\d\d-\d\d|(?=[a-z]*\d)[0-9a-f]{7,})(?=$|[-_./T])")
COUNTER = re.compile(r"[-_.]+\d{1,3}(?=$|/)")
LAST_DIGITS = re.compile(r"(?<=[^\W\d])\d{1,3}$")
MADE_UP = re.compile(r"(^|/)(\d{4}-\d\d-\d\d-[a-z]+-[a-z]+(-\d+)?|[a-z]+-[a-z]+-\d+)$")  # by relab, by W&B
ENDING_ID = re.compile(r"-[0-9a-f]{8}$")
FACTOR, FIRST_ROWS = 3.0, 5  # of returns, and rows at the start in which a second try is as good as the first


def made_up(name: str) -> bool:
    """Whether a tool made the name up, an id behind it or not: it says nothing of what the run is.

    >>> made_up("2026-11-18-calm-owl"), made_up("mlflow.db/exp/calm-owl-77-1f0c602a"), made_up("no_norm-2")
    (True, True, False)
    """
    return bool(MADE_UP.search(ENDING_ID.sub("", name)))


class Named(NamedTuple):
    """A run and the name that its tool shows, else the one it was found by."""

    history: History
    name: str

    @property
    def seed(self) -> Any:
        return seed_of(self.history, self.name)


class Parting(NamedTuple):
    """Where two runs first differ."""

    step: int
    metric: str
    a: float
    b: float

    @property
    def size(self) -> float:
        return apart(self.a, self.b)


def keys(runs: Sequence[tuple[History, str]]) -> list[str]:
    """A key for each run: those that share it are taken for seeds of one config."""
    named = [Named(history, display_name(history, name)) for history, name in runs]
    result = [group_key(*run) for run in runs]
    for marks in (_logged, _names):
        for key in dict.fromkeys(result):
            members = [i for i, each in enumerate(result) if each == key]
            for i, mark in zip(members, marks(key, [named[i] for i in members])):
                result[i] = key + mark
    return result


def _logged(_: str, runs: Sequence[Named]) -> list[str]:
    """What tells runs apart whose settings say nothing: values that their logs hold, where two are not the same."""
    every = [", ".join(f"{key}={value}" for key, value in logged_settings.of(run.history).items()) for run in runs]
    return [f" with {each}" if each else "" for each in every] if len(set(filter(None, every))) > 1 else []


def _names(key: str, runs: Sequence[Named]) -> list[str]:
    """The names of runs that the same settings and seed do not make the same; none where a name is the key already."""
    stems = None if key.startswith(NAMED) else _stems(runs) or _titles(runs)
    return [f" named {stem}" for stem in stems or ()]


def _titles(runs: Sequence[Named]) -> list[str] | None:
    """What the runs were said to be tries of (exp_name), where their names tell nothing; None where that does not."""
    titles = [stem(experiment_name(run.history)) for run in runs]
    return titles if len(set(titles)) > 1 and all(titles) and _part(runs, titles) else None


def same(a: tuple[History, str], b: tuple[History, str]) -> bool:
    """Whether two runs are of one config."""
    return len(set(keys([a, b]))) == 1


def settings_of(key: str) -> str:
    """The part of a key that stands for the settings; all of it where no name was needed."""
    return key.partition(" named ")[0]


def stem(name: str, counters: bool = False) -> str:
    """A run's name without its seed, times and ids; without counters at its end unless these are to stay.

    >>> stem("sac_x1000_s0"), stem("CartPole-v1__ppo__1__1700000000"), stem("scale_10", counters=True)
    ('sac_x1000', 'CartPole-v1__ppo', 'scale_10')
    """
    plain = STAMP.sub("", seedless(LOG_END.sub("", name)))
    plain = plain if counters else COUNTER.sub("", re.sub(r"[-_.=/]+$", "", plain))
    return re.sub(r"[-_.=]+(?=$|/)", "", plain).strip("/")


def stems_of(names: Sequence[str], counters: bool = False) -> list[str]:
    """The stems of names; where each run has its own number (r00, r01), without it."""
    stems = [stem(name, counters) for name in names]
    each_its_own = not counters and len(set(stems)) == len(stems)
    return [LAST_DIGITS.sub("", text) for text in stems] if each_its_own else stems


def _stems(runs: Sequence[Named]) -> list[str] | None:
    """What tells runs of the same settings apart; None where nothing has to, or nothing does."""
    if len(runs) < 2:
        return None
    for counters in (False, True):
        stems = stems_of([run.name for run in runs], counters)
        if len(set(stems)) < 2 or not all(stems) or all(made_up(run.name) for run in runs):
            continue
        seeds = {repr(run.seed) for run in runs}
        if counters and (len(seeds) > 1 or "None" in seeds or (_counted(stems) and not _scaled(runs))):
            continue  # the number says the how-manieth
        if _part(runs, stems):
            return stems
    return None


def _counted(stems: Sequence[str]) -> bool:
    """try-1, try-2, try-3; not scale-1, scale-10."""
    ends = sorted({int(end) for each in stems for end in re.findall(r"\d+", each)[-1:]})
    return ends == list(range(ends[0], ends[0] + len(ends))) if ends else False


def _scaled(runs: Sequence[Named]) -> bool:
    """Whether returns of two runs differ by a factor from the first rows on, before anything is learned: rewards are
    paid in other units, which no luck of a second try does."""
    return any(_times(a.history, b.history) >= FACTOR for a, b in itertools.pairwise(runs))


def _times(a: History, b: History) -> float:
    """How many times larger the returns of training are in one, as a median over the first rows that both have."""
    for name in (name for name in TRAINED if name in a.columns and name in b.columns):
        x, y = a.columns[name], b.columns[name]
        _, i, j = np.intersect1d(x.steps, y.steps, return_indices=True)
        one, two = x.values[i[:FIRST_ROWS]], y.values[j[:FIRST_ROWS]]
        if len(one) == FIRST_ROWS and bool((one * two > 0).all()):
            return float(np.exp(np.median(np.abs(np.log(one / two)))))
    return 1.0


def _part(runs: Sequence[Named], stems: Sequence[str]) -> bool:
    """Whether two runs of different names claim the same seed, or none, and differ; a failed one proves nothing."""
    firsts: dict[tuple[str, str], Named] = {}
    for run, each in zip(runs, stems):
        if run.history.meta.get("status") != "failed":
            firsts.setdefault((repr(run.seed), each), run)
    seeds: dict[str, list[Named]] = {}
    for (seed, _), run in firsts.items():
        seeds.setdefault(seed, []).append(run)
    pairs = (pair for same in seeds.values() for pair in itertools.pairwise(same))
    return any(parting(a.history, b.history) is not None for a, b in pairs)


def parting(a: History, b: History, rounding: float = ROUNDING) -> Parting | None:
    """Where two runs first part, at a step that both have: outcomes before the rest, the one that parts most.

    Training decides: worlds for evaluation have their own seeds, and often none. Evaluations do where nothing else can.
    """
    shared = [name for name in sorted(set(a.columns) & set(b.columns)) if not CLOCK.search(name)]
    training = [name for name in shared if not name.startswith("eval/") and _tells(a, b, name)]
    every = [_first(name, a, b, rounding) for name in training or shared]
    partings = [each for each in every if each is not None]
    partings = [each for each in partings if OUTCOME.search(each.metric)] or partings
    first = min((each.step for each in partings), default=0)
    now = [each for each in partings if each.step == first]
    return max(now, key=lambda each: (each.metric.endswith("/mean"), each.size), default=None)


def _tells(a: History, b: History, name: str) -> bool:
    """Whether runs that differ could differ in it: a count of episodes or a step size is the same in all."""
    both = np.intersect1d(a.columns[name].steps, b.columns[name].steps)
    return len(both) > 0 and name.startswith(TELLING)


def _first(name: str, a: History, b: History, rounding: float) -> Parting | None:
    x, y = a.columns[name], b.columns[name]
    steps, i, j = np.intersect1d(x.steps, y.steps, return_indices=True)
    with np.errstate(invalid="ignore"):  # infinite in both is the same
        unlike = np.flatnonzero(np.abs(x.values[i] - y.values[j]) > rounding * np.abs(x.values[i]) + rounding)
    if not len(unlike):
        return None
    k = unlike[0]
    return Parting(int(steps[k]), name, float(x.values[i[k]]), float(y.values[j[k]]))


def apart(x: float, y: float) -> float:
    """The difference over the larger of the two."""
    return abs(x - y) / max(abs(x), abs(y), 1e-12)
