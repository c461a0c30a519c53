"""What is swept? A sweep.yaml, checked before anything runs: question, axes, how points are chosen, seeds in each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from relab.base.documents import Document, Settings
from relab.base.jsonl import write_atomic
from relab.comparison import answer
from relab.config import layers
from relab.config.base import require
from relab.config.coerce import coerce
from relab.lab.execute import where
from relab.lab.execute.where import HERE, Where
from relab.lab.experiment import template
from relab.lab.experiment.cells import check_same, check_seeds
from relab.lab.experiment.question import Experiment, check_budget, fields_of
from relab.lab.measured import Measured, in_order
from relab.lab.sweep import axis, expression, names
from relab.lab.sweep import points as chosen
from relab.lab.sweep.axis import Axis

METHODS = ("grid", "one_at_a_time", "random", "sobol", "optuna")
LISTED = ("grid", "one_at_a_time")  # by the values that the axes name
FRESH = 10_000  # the first seed of a confirmation: no selection uses those
GROWS = ("seeds", "trials", "axes", "confirm", "execute")  # may be added to, or changed
FILE = "sweep.yaml"


@dataclass(frozen=True)
class Racing:
    """When a variant may be dropped before all of its seeds have run."""

    least: int = answer.LEAST  # seeds of each variant before the first look
    looks: int = 3  # looks before the last seed


@dataclass(frozen=True)
class Sweep(Measured):
    """Many configs, each over seeds, and one number per run."""

    question: str
    axes: tuple[Axis, ...]
    base: Settings  # settings that all trials share
    command: tuple[str, ...] = ()  # a foreign program's words with {placeholders}; empty: relab's own trainer
    resume: bool = False
    resume_command: tuple[str, ...] = ()
    method: str = "grid"
    trials: int | None = None  # points of random, sobol and optuna
    sampler_seed: int = 0  # of random, sobol and optuna
    constraints: tuple[str, ...] = ()  # such as "lr * epochs <= 0.01"
    budget: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    racing: Racing | None = None
    confirm: int = 5  # fresh seeds for the winner
    names: dict[str, str] = field(default_factory=dict)  # axis -> what it is called in run ids
    execute: Where = HERE  # where the runs go, and what one takes there

    @property
    def fresh(self) -> tuple[int, ...]:
        """Seeds that no selection has seen."""
        return tuple(range(FRESH, FRESH + self.confirm))

    @cached_property
    def short(self) -> dict[str, str]:
        return names.shorts([each.key for each in self.axes], self.names)

    @cached_property
    def limits(self) -> chosen.Constraints:
        known = {**self.base, **{each.key: None for each in self.axes}}
        return [(text, expression.parse(text, known)) for text in self.constraints]

    def points(self) -> list[chosen.Point]:
        """All points; those of optuna are chosen while it runs."""
        if self.method == "grid":
            return chosen.grid(self.axes, self.limits, self.base)
        if self.method == "one_at_a_time":
            return chosen.one_at_a_time(self.axes, self.limits, self.base)
        return chosen.drawn(self.method, int(self.trials or 0), self.axes, self.limits, self.base, self.sampler_seed)

    def experiment(self, points: Mapping[str, chosen.Point]) -> Experiment:
        """Trials as the variants of an experiment: what runs, resumes and is read is the same."""
        fill = {each.key: each.otherwise for each in self.axes if each.otherwise is not None}
        variants = {name: {**{k: v for k, v in fill.items() if k not in point}, **point}
                    for name, point in points.items()}  # fmt: skip
        shared = {each.name for each in fields(Experiment)} & {each.name for each in fields(Sweep)}
        return Experiment(variants=variants, **{key: getattr(self, key) for key in shared})

    def to_dict(self) -> Document:
        """As plain values for sweep.yaml; what was left out and means nothing is left out."""
        values = {k: list(v) if isinstance(v, tuple) else v for k in KEYS_IN_ORDER for v in [getattr(self, k)]}
        values |= {key: template.join(values[key]) for key in template.COMMANDS}
        values["axes"] = {each.key: each.plain() for each in self.axes}
        values["racing"] = asdict(self.racing) if self.racing else None
        values["execute"] = self.execute.to_dict()
        return {k: v for k, v in values.items() if v not in (None, "", [], {}) and (k != "resume" or v)}


KEYS_IN_ORDER = tuple(in_order(Sweep))
KEYS = set(KEYS_IN_ORDER)


# ---- Reading


def load(path: Path) -> Sweep:
    """A sweep.yaml; unknown keys and impossible values are errors that say what would be right."""
    values = layers.read_yaml(path)
    known = fields_of(values, path, Sweep, KEYS, ("axes", "racing", "constraints", "names", "execute"))
    require(isinstance(values.get("axes"), Mapping) and bool(values["axes"]),
            f"{path} needs `axes`: {{setting: [values]}}, or {{setting: {{low: .., high: ..}}}}")  # fmt: skip
    sweep = Sweep(
        axes=tuple(axis.load(str(key), value) for key, value in values["axes"].items()),
        racing=racing_of(values.get("racing")), constraints=texts(values.get("constraints")),
        names={str(k): str(v) for k, v in (values.get("names") or {}).items()},
        execute=where.of(values.get("execute")), **known,
    )  # fmt: skip
    check(sweep, path)
    return sweep


def racing_of(value: Any) -> Racing | None:
    if not isinstance(value, Mapping):
        on = coerce(value, bool, "racing") if value is not None else False
        return Racing() if on else None
    odd = [key for key in value if key not in ("least", "looks")]
    require(not odd, f"`racing` takes `least` and `looks`, but has `{odd[0] if odd else ''}`")
    racing = Racing(**{key: coerce(number, int, f"racing.{key}") for key, number in value.items()})
    require(racing.least >= answer.LEAST, f"`racing.least` must be at least {answer.LEAST}, below which no interval has"
                                          f" been shown to hold, but is {racing.least}")  # fmt: skip
    require(racing.looks >= 1, f"`racing.looks` must be at least 1, but is {racing.looks}")
    return racing


def texts(value: Any) -> tuple[str, ...]:
    constraints = (value,) if isinstance(value, str) else tuple(value or ())
    require(
        all(isinstance(each, str) for each in constraints), f"`constraints` must be a list of texts, but is {value!r}"
    )
    return constraints


# ---- What cannot be swept


def check(s: Sweep, path: Path) -> None:
    require(s.method in METHODS, f"`method` must be one of {', '.join(METHODS)}, but got {s.method!r}")
    s.check_measure()
    require(s.confirm >= 0, f"`confirm` must be a number of fresh seeds, 0 for none, but got {s.confirm}")
    high = [seed for seed in s.seeds if FRESH <= seed < FRESH + max(s.confirm, 1000)]
    require(not high, f"seeds from {FRESH} on are kept for the confirmation, but `seeds` has {high[:3]}")
    check_method(s, path)
    axis.check_conditions(s.axes)
    both = [each.key for each in s.axes if each.key in s.base]
    require(not both, f"`{both[0] if both else ''}` is an axis and in `base`: take it out of one of them")
    strange = [key for key in s.names if key not in {each.key for each in s.axes}]
    require(not strange, f"`names` has {strange[0] if strange else ''!r}, which is no axis")
    check_runs(s, path)


def check_method(s: Sweep, path: Path) -> None:
    if s.method in LISTED:
        require(s.trials is None, "`trials` goes with random, sobol and optuna: a grid has as many points as it has")
    else:
        require(bool(s.trials) and int(s.trials or 0) > 0, f"`method: {s.method}` needs `trials`: how many points")
    require(s.method != "optuna" or s.racing is None, "`racing` goes with grid, random and sobol: optuna must hear"
                                                      " what a trial is worth before it chooses the next")  # fmt: skip
    enough = s.racing is None or len(s.seeds) > s.racing.least
    require(enough, f"`racing` needs more `seeds` than `least`, but there are {len(s.seeds)}: {path}")


def check_runs(s: Sweep, path: Path) -> None:
    """What the trials have in common with an experiment's variants, asked of them all, or of a few of optuna's."""
    if s.method == "optuna":
        points = chosen.drawn("random", 1, s.axes, s.limits, s.base, s.sampler_seed)
    else:
        points = s.points()
        require(len(points) >= 2, f"{path} must ask for two points or more, but has {len(points)}")
    short = s.short
    trials = {names.trial(point, short): point for point in points}
    e = s.experiment(trials)
    check_budget(e)
    if s.command:
        lost = [each.key for each in s.axes if each.when and each.otherwise is None]
        require(not lost, f"axis `{lost[0] if lost else ''}` is not always there: a command needs to know what fills"
                          " its placeholder then; give `otherwise`")  # fmt: skip
        template.check(e)
    else:
        wrong = [key for key, value in (("resume", s.resume), ("resume_command", s.resume_command)) if value]
        require(not wrong, f"`{wrong[0] if wrong else ''}` goes with `command`; relab's own runs resume by themselves")


# ---- The same sweep again


def keep(s: Sweep, folder: Path) -> None:
    """The folder belongs to one sweep: seeds, trials, values of a grid and fresh seeds may be added, nothing else."""
    check_again(s, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(folder / FILE, layers.format_yaml(s.to_dict()).encode())


def begun(folder: Path) -> bool:
    """Whether any run of it was ever started: before that, whoever saw the forecast may still change everything."""
    return (folder / FILE).exists() and (folder / "runs").is_dir() and any((folder / "runs").iterdir())


def check_again(s: Sweep, folder: Path) -> None:
    taken = (folder / "experiment.yaml").exists()
    require(not taken, f"{folder} belongs to an experiment; choose another --name or --root")
    if not begun(folder):
        return
    before, now = layers.read_yaml(folder / FILE), layers.parse_yaml(layers.format_yaml(s.to_dict()))
    check_same(before, now, GROWS, folder, "sweep")
    check_seeds(before["seeds"], s.seeds, folder)
    for key in ("trials", "confirm"):
        less = (now.get(key) or 0) < (before.get(key) or 0)
        require(not less, f"`{key}` may be raised but not lowered: {folder} has {before.get(key)}")
    check_axes(load(folder / FILE), s, folder)


def check_axes(before: Sweep, now: Sweep, folder: Path) -> None:
    old, new = ({each.key: each for each in s.axes} for s in (before, now))
    require(list(old) == list(new), f"{folder} sweeps {', '.join(old)}, not {', '.join(new)}; choose another --name")
    for key, was in old.items():
        if now.method not in LISTED:
            require(was == new[key], f"{folder}: axis `{key}` cannot change with method {now.method}, because every"
                                     " point would move; choose another --name")  # fmt: skip
            continue
        same = (was.when, was.otherwise) == (new[key].when, new[key].otherwise)
        require(same, f"{folder}: `when` and `otherwise` of axis `{key}` cannot change; choose another --name")
        first = now.method == "grid" or was.levels()[0] == new[key].levels()[0]
        require(
            first, f"{folder}: the first value of axis `{key}` is what all others are held against, and cannot change"
        )
        gone = [value for value in was.levels() if value not in new[key].levels()]
        require(not gone, f"values may be added to an axis but not taken away: {folder} has `{key}` {gone} too")
