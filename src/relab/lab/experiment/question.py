"""What is asked? An experiment.yaml, checked before anything runs: question, variants, seeds, one number per run."""

from __future__ import annotations

import re
import typing
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from relab.base.documents import Document, Settings
from relab.base.near import hint
from relab.comparison import answer, outcomes
from relab.config import layers
from relab.config.base import require
from relab.config.coerce import coerce
from relab.lab.execute import where as places
from relab.lab.execute.where import HERE, Where
from relab.lab.experiment import template, watcher
from relab.lab.measured import Measured, in_order

INSTEAD = {"vary"}  # another way to write `variants`
EACH = "each"  # looks one by one
NOT_ASKED = ("seeds", "log", "look_every", "execute")  # may change without making it another question


@dataclass(frozen=True)
class Experiment(Measured):
    """A question, declared before its runs."""

    question: str
    variants: dict[str, Settings]  # name -> settings that differ; the first is the control
    base: Settings  # settings all variants share
    hypothesis: str | None = None  # "change X, expect Y", for the entry; stands before the first run
    command: tuple[str, ...] = ()  # a foreign program's words with {placeholders}; empty: relab's own trainer
    resume: bool = False  # the command itself goes on from what is in its {run} folder
    resume_command: tuple[str, ...] = ()  # what continues a run that was cut short
    paired: bool = False  # differences within seeds
    budget: int | None = None  # total_steps of relab's trainer, {budget} of a command
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    looks: tuple[int, ...] = ()  # seeds a variant at each declared look, rising; empty: open
    stop_on: tuple[str, ...] = ()  # findings (slugs, or `error`) on which a run is stopped
    look_every: float = 15.0  # seconds between looks at the running runs
    log: str | None = None  # where the entry goes; default: LOG.md beside the experiments
    execute: Where = HERE  # where the runs go, and what one takes there

    @property
    def comparisons(self) -> int:
        """Every other variant against the control."""
        return len(self.variants) - 1

    def settings(self, variant: str) -> Settings:
        """What a command's placeholders can be filled with, but for {seed} and {run}."""
        budget = {} if self.budget is None else {"budget": self.budget}
        return {**self.base, **self.variants[variant], **budget}

    def to_dict(self) -> Document:
        """As plain values for experiment.yaml; what was left out and means nothing is left out."""
        plain = asdict(self)
        values = {k: list(plain[k]) if isinstance(plain[k], tuple) else plain[k] for k in in_order(Experiment)}
        values |= {key: template.join(values[key]) for key in template.COMMANDS}
        values["execute"] = self.execute.to_dict()
        unsaid = {"execute": {}, "resume": False, "looks": [], "stop_on": [], "look_every": Experiment.look_every}
        return {k: v for k, v in values.items() if v not in (None, "") and (k not in unsaid or v != unsaid[k])}


KEYS = {each.name for each in fields(Experiment)} | INSTEAD


def load(path: Path) -> Experiment:
    """An experiment.yaml; unknown keys and impossible values are errors that say what would be right."""
    values = layers.read_yaml(path)
    plain = fields_of(values, path, Experiment, KEYS, ("vary", "variants", "stop_on", "looks", "execute"))
    seeds, looks = looks_of(values.get("looks"), plain["seeds"], "seeds" in values)
    experiment = Experiment(
        variants=variants_of(values, path), stop_on=watcher.names_of(values.get("stop_on")), looks=looks,
        execute=places.of(values.get("execute")), **plain | {"seeds": seeds},
    )  # fmt: skip
    check(experiment, path)
    return experiment


def fields_of(
    values: Mapping[str, Any], path: Path, kind: type, keys: Collection[str], special: Collection[str]
) -> Document:
    """What a declared question says, key by key, as the fields of its class; `special` keys are left to the caller."""
    for key in values:
        near = hint(key, sorted(keys), "; the nearest known one is `{}`")
        require(key in keys, f"unknown key `{key}` in {path}{near}")
    require(bool(values.get("question")), f"{path} needs a `question`: one sentence that the runs are to answer")
    types = typing.get_type_hints(kind)
    own = {"seeds", "base", *template.COMMANDS, *special}
    known = {k: coerce(v, types[k], k) for k, v in values.items() if k not in own}
    words: Document = {key: template.split(values[key], key) for key in template.COMMANDS if values.get(key)}
    require(
        "base" in values or "command" in words,
        f"{path} needs `base`: the settings that all variants share, with `env`; or the `command` of your own program",
    )
    return {"seeds": seeds_of(values.get("seeds", 5)), "base": dict(values.get("base") or {}), **words, **known}


def variants_of(values: Mapping[str, Any], path: Path) -> dict[str, Settings]:
    """`variants: {name: settings}`, or `vary: {key: [values]}` which names them by their value."""
    require(("vary" in values) != ("variants" in values), f"{path} needs either `vary` or `variants`, and not both")
    if "variants" in values:
        return unique([(safe(str(name)), dict(settings or {})) for name, settings in values["variants"].items()])
    require(
        len(values["vary"]) == 1, f"`vary` takes one key, but got {', '.join(values['vary'])}; use `variants` for more"
    )
    key, options = next(iter(values["vary"].items()))
    return unique([(safe(f"{key.rpartition('.')[2]}={option}"), {key: option}) for option in options])


def unique(pairs: list[tuple[str, Document]]) -> dict[str, Settings]:
    """Two variants that would share a folder are an error, not one variant."""
    names = [name for name, _ in pairs]
    twice = sorted({name for name in names if names.count(name) > 1})
    require(not twice, f"variants need different names, but {', '.join(twice)} is there more than once")
    return dict(pairs)


def safe(name: str) -> str:
    """A variant's name as a folder's name."""
    return re.sub(r"[^\w.=+-]+", "_", name).strip(".") or "_"


def seeds_of(value: Any) -> tuple[int, ...]:
    seeds = tuple(range(value)) if isinstance(value, int) else tuple(value)
    require(
        len(set(seeds)) == len(seeds) > 0, f"`seeds` must be a number of seeds or different seeds, but got {value!r}"
    )
    return seeds


def looks_of(value: Any, seeds: tuple[int, ...], said: bool) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """(seeds, looks): `looks: [5, 8, 15]`, `each` for every number from five on, 1 for one at all seeds."""
    if value is None:
        return seeds, ()
    say = f"`looks` must be rising numbers of seeds such as [5, 8, 15], `each` or 1, but got {value!r}"
    if isinstance(value, (list, tuple)):
        require(all(type(n) is int for n in value) and list(value) == sorted(set(value)) and len(value) > 0, say)
        seeds, looks = seeds if said else tuple(range(value[-1])), tuple(value)
    else:
        require(value in (1, EACH), say)
        looks = (len(seeds),) if value == 1 else tuple(range(answer.LEAST, len(seeds) + 1))
    least = answer.LEAST
    require(
        len(looks) > 0 and looks[0] >= least,
        f"`looks` begin at {least} seeds, below which there is no answer, but got {value!r} with {len(seeds)} seeds",
    )
    require(looks[-1] == len(seeds), f"the last look is at all `seeds`, but got {looks[-1]} and {len(seeds)} seeds")
    return seeds, looks


# ---- What cannot be asked


def check(e: Experiment, path: Path) -> None:
    require(len(e.variants) >= 2, f"{path} needs at least two variants, but has {', '.join(e.variants)}")
    e.check_measure()
    require(e.look_every > 0, f"`look_every` must be a number of seconds above 0, but got {e.look_every}")
    allowed = outcomes.PAIRED
    require(not e.paired or e.at in allowed, f"`paired` goes with at: {' or '.join(allowed)}, but `at` is {e.at}")
    check_budget(e)
    if e.command:
        template.check(e)
    else:
        keys = [key for key, value in (("resume", e.resume), ("resume_command", e.resume_command)) if value]
        require(not keys, f"`{keys[0] if keys else ''}` goes with `command`; relab's own runs resume by themselves")


def check_budget(e: Experiment) -> None:
    """`budget` is total_steps of relab's trainer: said twice, it must be said the same."""
    require(e.budget is None or e.budget > 0, f"`budget` must be a number of steps above 0, but got {e.budget}")
    if e.command or e.budget is None:
        return
    for where, settings in {"base": e.base, **{f"variant {k}": v for k, v in e.variants.items()}}.items():
        steps = coerce(settings.get("total_steps", e.budget), int, "total_steps")
        require(
            steps == e.budget, f"`budget` is {e.budget}, but total_steps of {where} is {steps}; leave one of them out"
        )
