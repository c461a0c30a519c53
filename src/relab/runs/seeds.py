"""Which of the indexed runs differ in the seed alone, and what did they come to? No log is read: the index knows.

The groups are those of grouping.py as far as the index can tell: one set of settings, or one name without its seed where
a log holds no settings; runs of one config and seed whose numbers part are told apart by their names (identity.py).
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from relab.base.documents import Settings
from relab.config.views import meaning_hash
from relab.record.state import name_key
from relab.runs import identity, naming
from relab.runs.index import Index
from relab.runs.listing import ListedRun, Query, numbers, select
from relab.runs.naming import Nameable
from relab.stats import SeedMean, mean_over_seeds


@dataclass(frozen=True)
class SeedGroup:
    """Runs that differ in the seed alone, with the mean of their outcomes."""

    key: str  # stays the same when runs come and go
    label: str
    place: int  # among all groups of the folder: its colour, whatever else is hidden
    runs: list[ListedRun]
    settings: Settings = field(default_factory=dict)

    @functools.cached_property
    def distinct(self) -> list[ListedRun]:
        """One run per seed, finished ones before others, as grouping.Group has it."""
        kept: dict[str, ListedRun] = {}
        for run in sorted(self.runs, key=lambda run: run.state == "finished"):
            kept[repr(run.seed) if run.seed is not None else run.name] = run
        chosen = {id(run) for run in kept.values()}
        return [run for run in self.runs if id(run) in chosen]

    @functools.cached_property
    def metric(self) -> str:
        return next((run.metric for run in self.distinct if run.metric), "")

    @property
    def values(self) -> list[float]:
        """The outcome of each seed; NaN where a run has none, or is judged by another metric."""
        metric = self.metric
        return [run.outcome if run.outcome is not None and run.metric == metric else math.nan for run in self.distinct]

    @property
    def mean(self) -> SeedMean:
        return over_seeds(self, self.values)

    @property
    def env(self) -> str:
        return self.runs[0].env

    @property
    def algo(self) -> str:
        return self.runs[0].algo


def over_seeds(group: SeedGroup, values: Sequence[float]) -> SeedMean:
    """Mean and interval of one number a seed, within what the metric can be in any of the runs."""
    runs = group.distinct
    return mean_over_seeds(values, (min(run.low for run in runs), max(run.high for run in runs)))


def groups(index: Index, query: Query, every: Sequence[SeedGroup] | None = None) -> list[SeedGroup]:
    """The chosen runs in their groups, in the order of the query; names and colours are those among all runs.

    `every`: the groups of the whole folder as the index has it now, where somebody has them already.
    """
    known = whole(index) if every is None else every
    home = {run.rowid: group for group in known for run in group.runs}
    chosen = [number for number in numbers(index, query) if number in home]
    wanted = set(chosen)
    times = Counter(home[number].key for number in chosen)  # in the order of the first run of each
    by_key = {group.key: group for group in known}
    return [_part_of(by_key[key], wanted, many) for key, many in times.items()]


def _part_of(group: SeedGroup, wanted: set[int], many: int) -> SeedGroup:
    """The group with its chosen runs alone, in one order always, so that sums are the same to the last digit; the same
    group, with what is known of it, where all are."""
    if many == len(group.runs):
        return group
    return replace(group, runs=[run for run in group.runs if run.rowid in wanted])


def whole(index: Index) -> list[SeedGroup]:
    """All groups of a folder by the name of their first run, archived ones last; their colours are the report's."""
    settings = dict(index.settings())
    meant = {number: meaning_hash(flat) for number, flat in settings.items()}
    every: list[SeedGroup] = []
    for archived in (False, True):
        parts: dict[str, list[ListedRun]] = {}
        for run in select(index, Query(archived=archived, sort="name")).rows:
            known = settings.get(run.config) and not run.named
            key = f"config {meant[run.config]}" if known else name_key(run.name, run.folder)
            parts.setdefault(key, []).append(run)
        some = _grouped(parts, settings)
        places = naming.colour_places([group.label for group in some], [group.env for group in some])
        every += [replace(group, place=place) for group, place in zip(some, places)]
    return every


def _grouped(parts: Mapping[str, list[ListedRun]], settings: Mapping[int, Settings]) -> list[SeedGroup]:
    named = {key + mark: some for key, runs in parts.items() for mark, some in _by_name(key, runs).items()}
    if not named:
        return []
    every = [settings.get(runs[0].config, {}) for runs in named.values()]
    texts = naming.labels(
        [Nameable(flat, tuple(run.name for run in runs), runs[0].env) for flat, runs in zip(every, named.values())]
    )
    return [
        SeedGroup(_short(key, runs[0]), text, i, runs, flat)
        for i, ((key, runs), text, flat) in enumerate(zip(named.items(), texts, every))
    ]


def _by_name(key: str, runs: Sequence[ListedRun]) -> dict[str, list[ListedRun]]:
    """Runs of one config by the stems of their names, where one seed came to two numbers under two of them."""
    if len({repr(run.seed) for run in runs}) == len(runs):  # no seed came to two numbers
        return {"": list(runs)}
    stems = identity.stems_of([run.name for run in runs])
    telling = all(stems) and not all(identity.made_up(run.name) for run in runs)
    if not key.startswith("config ") or len(set(stems)) < 2 or not telling or not _part(runs, stems):
        return {"": list(runs)}
    parts: dict[str, list[ListedRun]] = {}
    for run, stem in zip(runs, stems):
        parts.setdefault(f" named {stem}", []).append(run)
    return parts


def _part(runs: Sequence[ListedRun], stems: Sequence[str]) -> bool:
    """Whether one seed, under two names, came to two numbers at one step; a failed run proves nothing. Of runs that
    name no seed, two names and two lengths are enough: nothing says that they are seeds of one config."""
    firsts: dict[str, tuple[str, int | None, float | None]] = {}
    for run, stem in zip(runs, stems):
        if run.state == "failed" or run.outcome is None:
            continue
        other, steps, outcome = firsts.setdefault(repr(run.seed), (stem, run.steps, run.outcome))
        if other == stem or outcome is None:
            continue
        if _unlike(outcome, run.outcome) if steps == run.steps else run.seed is None:
            return True
    return False


def _unlike(a: float, b: float) -> bool:
    return abs(a - b) > identity.ROUNDING * max(1.0, abs(a))


def _short(key: str, run: ListedRun) -> str:
    """A key for addresses; an archived run is of another group than those that are not."""
    return hashlib.blake2b(f"{key}\0{run.archived}".encode("utf-8", "replace"), digest_size=6).hexdigest()
