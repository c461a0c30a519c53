"""Which runs belong together? Run folders at or below a path, grouped by config (all but the seed) and named."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relab.base.documents import Settings
from relab.config.views import MISSING, flatten
from relab.record.state import group_key, seed_of, seedless, state_of
from relab.record.history import History
from relab.formats.read import find
from relab.formats.read.hints import Hints
from relab.base.jsonl import RecordError
from relab.runs.verdict import Verdict, verdict_of


@dataclass
class Run:
    """A run as the report needs it."""

    history: History
    name: str
    seed: Any
    state: str  # status as recorded; stale where it says running and its heart stopped
    verdict: Verdict
    files: tuple[Path, ...] = ()  # what a foreign run was read from; its folder may hold anything besides


@dataclass
class Group:
    """Runs that differ in the seed alone."""

    key: str
    runs: list[Run] = field(default_factory=list)
    label: str = ""

    @property
    def config(self) -> Settings:
        return self.runs[0].history.config

    @property
    def distinct(self) -> list[Run]:
        """One run per seed: a seed that ran twice is no second sample. Finished ones count before others."""
        kept: dict[str, Run] = {}
        for run in sorted(self.runs, key=lambda r: r.state == "finished"):
            kept[repr(run.seed) if run.seed is not None else run.name] = run
        chosen = {id(run) for run in kept.values()}
        return [run for run in self.runs if id(run) in chosen]


def load(path: str | os.PathLike[str], now: float | None = None, hints: Hints | None = None) -> list[Group]:
    """All runs at or below `path`, in groups; RecordError where there are none that can be read."""
    loaded = find.load_all(path, hints)
    if not loaded.runs:
        raise RecordError(f"no run at or below {path} could be read: {loaded.broken[0][0].name}: {loaded.broken[0][1]}")
    return grouped([of_loaded(each, each.name, now) for each in loaded.runs])


def of_loaded(each: find.Loaded, name: str, now: float | None = None) -> Run:
    """A run as the importers found it, with the files that it was read from."""
    source = each.source
    files = source.files or ((source.path,) if source.path.is_file() else ())
    return replace(make_run(each.history, name, now), files=files)


def grouped(runs: Iterable[Run]) -> list[Group]:
    """Runs that differ in the seed alone, together; each group named by what sets it apart."""
    groups: dict[str, Group] = {}
    for run in runs:
        key = group_key(run.history, run.name)
        groups.setdefault(key, Group(key)).runs.append(run)
    ordered = sorted(groups.values(), key=lambda g: g.runs[0].name)
    for group, label in zip(ordered, labels(ordered)):
        group.label = label
    return ordered


def make_run(run: History, name: str, now: float | None = None) -> Run:
    """A run from its history: what a caller who has read it already puts into `grouped`."""
    return Run(run, name, seed_of(run, name), state_of(run, now), verdict_of(run))


# ---- Names of groups


def labels(groups: list[Group]) -> list[str]:
    """What tells the groups apart: ent_coef=0.3; the run's name where one group is all there is."""
    if len(groups) == 1:
        return [groups[0].runs[0].name if len(groups[0].runs) == 1 else _env_algo(groups[0])]
    if not any(group.config for group in groups):
        return [seedless(group.runs[0].name) for group in groups]
    keys = differing(groups)
    for some in ([k for k in keys if k.endswith("name")], keys[:3]):
        texts = [_values(group, some) for group in groups]
        if len(set(texts)) == len(texts):
            break
    else:
        texts = [f"{_env_algo(g)} {g.key[:6]}" if g.config else seedless(g.runs[0].name) for g in groups]
    stems = [_stem(g) for g in groups]
    stems_differ = all(stems) and len(set(stems)) == len(stems)
    return [stem if stem == text else f"{stem} ({text})" for stem, text in zip(stems, texts)] if stems_differ else texts


def _values(group: Group, keys: list[str]) -> str:
    flat = flatten(group.config)
    words = [(k.rpartition(".")[2], shown(flat.get(k, MISSING))) for k in keys]
    return ", ".join(value if key == "name" else f"{key}={value}" for key, value in words)


def _stem(group: Group) -> str:
    """bonus, where the runs are called bonus-s0, bonus-s1: an experiment names its variants so."""
    names = [run.name.rpartition("/")[2] for run in group.runs]
    stems = {seedless(name) for name in names}
    shared = len(stems) == 1 and len(names) > 1 and names[0].startswith(next(iter(stems)))  # the seed stands at the end
    return stems.pop() if shared else ""


def differing(groups: list[Group]) -> list[str]:
    """Config keys that are not the same in all groups; the seed is none of them."""
    flats = [flatten(g.config) for g in groups]
    keys = dict.fromkeys(k for flat in flats for k in flat if k != "seed")
    differing_keys = [k for k in keys if len({repr(flat.get(k, MISSING)) for flat in flats}) > 1]
    return sorted(differing_keys, key=lambda k: not k.endswith("name"))  # another environment says more than its settings


def shown(value: Any) -> str:
    return "(none)" if value is MISSING else "null" if value is None else str(value)


def _env_algo(group: Group) -> str:
    flat = flatten(group.config)
    names = [str(flat[key]) for key in ("algo.name", "env.name") if flat.get(key)]
    return " on ".join(names) or seedless(group.runs[0].name)
