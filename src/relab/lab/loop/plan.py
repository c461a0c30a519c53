"""What does a loop do? A loop.yaml, checked before anything runs: the base, what may change, how better is measured.

question: Can PPO learn cartpole in 20,000 steps?
base: {algo: ppo, env: cartpole, algo.lr: 3.0e-5}      or `command` of your own program, and `evaluate`
budget: 20_000
metric: eval/return_det
smallest_effect: 20
seeds: {noise: 8, first: 3, confirm: 6, again: 2}
policy: {allow: {algo.lr: {low: 1e-5, high: 1e-2, log: true}}}
"""

from __future__ import annotations

import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.enclosed import own
from relab.base.near import hint
from relab.base.numbers import is_finite, is_number
from relab.config import layers
from relab.config.base import require, require_range
from relab.config.coerce import coerce
from relab.lab.execute import where
from relab.lab.execute.where import HERE, Where
from relab.lab.experiment import template, watcher
from relab.lab.experiment.question import Experiment, check_budget
from relab.lab.loop import policy as policies
from relab.lab.loop.policy import Policy
from relab.lab.measured import Measured, in_order

FILE = "loop.yaml"
SAMPLERS = ("auto", "sobol", "random", "optuna")
MODES = ("full", "quick")
SAVES = ("all", "best", "latest")
BASE = "base"  # the name of the first config
HIDDEN = {"eval/return_det": ("det", "mean"), "eval/return_sampled": ("sampled", "mean"),
          "eval/success_det": ("det", "success"), "eval/success_sampled": ("sampled", "success")}  # fmt: skip
GROWS = ("question", "log", "save_strategy", "execute")  # may change without making it another loop


@dataclass(frozen=True)
class Seeds:
    """How many seeds each stage has."""

    noise: int = 8  # runs of the base, all alike: the noise floor
    first: int = 3  # of a change, before more are paid for
    confirm: int = 6  # fresh ones of a change that looked better: these decide
    again: int = 2  # fresh ones of the present best, beside every confirmation

    @property
    def most(self) -> int:
        """Runs of a proposal that is confirmed twice, because once could not tell, and kept."""
        return self.first + 2 * (self.confirm + self.again) + self.noise

    def check(self) -> None:
        require_range("seeds.noise", self.noise, 3, 100)
        require_range("seeds.first", self.first, 1, 90)
        require_range("seeds.confirm", self.confirm, 3, 90)
        require_range("seeds.again", self.again, 0, 90)


@dataclass(frozen=True)
class Loop(Measured):
    """Propose, check, run, judge, keep or drop, again."""

    question: str
    base: Settings  # settings of the first config, or what fills the command's placeholders
    policy: Policy
    command: tuple[str, ...] = ()  # a foreign program's words with {placeholders}; empty: relab's own trainer
    evaluate: tuple[str, ...] = ()  # a foreign program that judges a finished {run} on the hidden {seed}
    resume: bool = False
    resume_command: tuple[str, ...] = ()
    range: tuple[float, float] | None = None  # what the metric can be at all
    budget: int | None = None
    seeds: Seeds = Seeds()
    proposals: int = 20  # of a block: these share the error
    error: float = 0.05  # how many keeps by luck there may be, over all that is ever proposed
    hidden: int = 50  # episodes of the deciding evaluation, on seeds that no proposal sees
    hidden_seed: int = 0  # gives other hidden seeds
    sampler: str = "auto"
    sampler_seed: int = 0
    at_once: int = 1  # keys that a sampled proposal changes
    findings: bool = True  # what rules call for comes first
    evaluator: tuple[str, ...] = ()  # files that are part of the evaluation, and locked
    stop_on: tuple[str, ...] = ()
    look_every: float = 15.0
    resume_mode: str = "fresh"  # fresh | continue: whether proposals begin with weights
    resume_from: str | None = None  # with `continue`: RUN@latest, RUN@best or RUN@STEP, what every run begins with
    save_strategy: str = "all"  # all | best | latest: whose checkpoints stay
    mode: str = "full"
    log: str | None = None
    quick: Settings = field(default_factory=dict)  # keys of this file that --mode quick sets instead
    execute: Where = HERE  # where the runs go, and what one takes there; what decides is evaluated at home

    @property
    def decides(self) -> str:
        """Which evaluation decides what is kept: hidden, evaluate (a program's own), or record."""
        if self.command:
            return "evaluate" if self.evaluate else "record"
        return "hidden" if self.at == "final" and self.metric in HIDDEN else "record"

    def experiment(self, variants: Mapping[str, Settings]) -> Experiment:
        """Its configs as the variants of an experiment: what runs, resumes and is read is the same."""
        shared = {each.name for each in fields(Experiment)} & {each.name for each in fields(Loop)} - {"seeds"}
        return Experiment(variants=dict(variants), seeds=(0,), **{key: getattr(self, key) for key in shared})

    def to_dict(self) -> Document:
        """As plain values for loop.yaml."""
        values: Document = {name: getattr(self, name) for name in in_order(Loop)}
        values |= {key: template.join(values[key]) for key in (*template.COMMANDS, "evaluate")}
        values |= {"policy": self.policy.to_dict(), "seeds": vars(self.seeds).copy(), "execute": self.execute.to_dict()}
        values |= {key: list(value) for key, value in values.items() if isinstance(value, tuple)}
        return {key: value for key, value in values.items() if value not in (None, "", [], {}, False)}


KEYS = {each.name for each in fields(Loop)} - {"mode"}
SPECIAL = ("policy", "seeds", "base", "evaluate", "range", "stop_on", "quick", "evaluator", "mode", "execute")


def load(path: Path, mode: str = "full") -> Loop:
    """A loop.yaml; unknown keys and impossible values are errors that say what would be right."""
    values = layers.read_yaml(path)
    require(mode in MODES, f"`--mode` must be quick or full, but is {mode!r}")
    quick = values.get("quick") or {}
    require(isinstance(quick, Mapping), f"`quick` must hold keys of this file, but is {quick!r:.80}")
    require(mode == "full" or bool(quick), f"--mode quick needs `quick` in {path}: what is smaller then, such as"
            " `quick: {budget: 5_000, proposals: 5}`")  # fmt: skip
    loop = of_values({**values, **quick} if mode == "quick" else dict(values), path)
    check(loop := replace(loop, mode=mode), path)
    return loop


def kept(folder: Path) -> Loop:
    """The loop of a folder as it was written down when it began, in the mode that it has."""
    path = own(folder, FILE)
    values = dict(layers.read_yaml(path))
    mode = str(values.pop("mode", "full"))
    return replace(of_values(values, path), mode=mode)


def of_values(values: Mapping[str, Any], path: Path) -> Loop:
    for key in values:
        near = hint(str(key), sorted(KEYS), "; the nearest known one is `{}`")
        require(key in KEYS, f"unknown key `{key}` in {path}{near}")
    require(bool(values.get("question")), f"{path} needs a `question`: one sentence that says what is to become better")
    require("base" in values or "command" in values, f"{path} needs `base`: the settings to begin with, with `env`; or"
            " the `command` of your own program")  # fmt: skip
    types = typing.get_type_hints(Loop)
    own = {*SPECIAL, *template.COMMANDS}
    known = {key: coerce(value, types[key], key) for key, value in values.items() if key not in own}
    words: Document = {
        key: template.split(values[key], key) for key in (*template.COMMANDS, "evaluate") if values.get(key)
    }
    return Loop(
        policy=policies.load(values.get("policy")), seeds=seeds_of(values.get("seeds")),
        base=settings_of(values, "base"), range=range_of(values.get("range")),
        stop_on=watcher.names_of(values.get("stop_on")), evaluator=policies.texts(values.get("evaluator"), "evaluator"),
        quick=settings_of(values, "quick"), execute=where.of(values.get("execute")), **words, **known,
    )  # fmt: skip


def settings_of(values: Mapping[str, Any], key: str) -> Settings:
    value = {} if values.get(key) is None else values[key]
    require(isinstance(value, Mapping), f"`{key}` must hold settings, such as {{env: cartpole}}, but is {value!r:.80}")
    return dict(value)


def seeds_of(value: Any) -> Seeds:
    shape = "`seeds` must be {noise, first, confirm, again}: how many seeds each stage has"
    require(value is None or isinstance(value, Mapping), f"{shape}, but is {value!r:.80}")
    names = {each.name for each in fields(Seeds)}
    odd = [key for key in value or {} if key not in names]
    require(not odd, f"{shape}, but has `{odd[0] if odd else ''}`")
    seeds = Seeds(**{key: coerce(number, int, f"seeds.{key}") for key, number in (value or {}).items()})
    seeds.check()
    return seeds


def range_of(value: Any) -> tuple[float, float] | None:
    if value is None:
        return None
    shape = f"`range` must be [lowest, highest], what the metric can be at all, but is {value!r:.80}"
    require(isinstance(value, (list, tuple)) and len(value) == 2, shape)
    low, high = (coerce(end, float, "range") for end in value)
    require(low < high, shape)
    return low, high


# ---- What cannot be


def check(x: Loop, path: Path) -> None:
    x.check_measure()
    check_finite(x)
    require_range("error", x.error, 0, 0.5, open_="low")
    require_range("proposals", x.proposals, 1, 1000)
    require_range("hidden", x.hidden, 2, limits.EPISODES)
    require_range("at_once", x.at_once, 1)
    for key, value, known in (("sampler", x.sampler, SAMPLERS), ("save_strategy", x.save_strategy, SAVES),
                              ("resume_mode", x.resume_mode, ("fresh", "continue"))):  # fmt: skip
        require(value in known, f"`{key}` must be one of {', '.join(known)}, but is {value!r}")
    e = x.experiment({BASE: {}})
    check_budget(e)
    if x.command:
        check_command(x, e)
    else:
        check_own(x, path)


def check_finite(x: Loop) -> None:
    """Numbers that are none, or have no end, can be neither trained with nor compared."""
    own = {each.name: getattr(x, each.name) for each in fields(x)}
    numbers = {**own, **{f"base.{key}": value for key, value in layers.flatten(x.base).items()},
               **{f"range.{i}": end for i, end in enumerate(x.range or ())}}  # fmt: skip
    odd = next((key for key, value in numbers.items() if is_number(value) and not is_finite(value)), None)
    require(odd is None, f"`{odd}` must be a finite number, but is {numbers.get(odd or '')}")


def check_command(x: Loop, e: Experiment) -> None:
    """Every allowed key fills a placeholder; what the evaluation is called with must not move."""
    template.check(e)
    strange = [each.key for each in x.policy.allow if each.key not in x.base]
    require(not strange, f"`policy.allow` has `{strange[0] if strange else ''}`, which `base` gives no first value:"
                         " add it there, and {placeholder} to the command")  # fmt: skip
    unknown = [key for key in x.policy.lock if key not in x.base]
    require(not unknown, f"`policy.lock` has `{unknown[0] if unknown else ''}`, which is no setting of `base`")
    x.policy.limits(x.base)  # a constraint that cannot be read is an error before anything runs
    require(x.resume_mode == "fresh", "`resume_mode: continue` goes with relab's own trainer; a command resumes as"
                                      " its own settings say")  # fmt: skip
    if not x.evaluate:
        return
    used = [name for word in x.evaluate for name in template.names_in(word, "evaluate")]
    require("run" in used and "seed" in used, "`evaluate` needs {run}, the folder of the finished run, and {seed}, the"
            " hidden seed")  # fmt: skip
    odd = [name for name in used if name not in ("run", "seed", "episodes")]
    require(not odd, f"`evaluate` may use {{run}}, {{seed}} and {{episodes}}, but has {{{odd[0] if odd else ''}}}: what"
                     " judges a run must not depend on what is proposed")  # fmt: skip


def check_own(x: Loop, path: Path) -> None:
    """The base resolves, and every allowed key is one of its settings."""
    wrong = [key for key in ("resume", "resume_command", "evaluate") if getattr(x, key)]
    require(not wrong, f"`{wrong[0] if wrong else ''}` goes with `command`; relab's own runs resume and are judged by"
                       " themselves")  # fmt: skip
    check_start(x)
    flat = layers.flatten(resolved(x))
    leaves = layers.schema(str(flat["algo.name"]), str(flat["env.name"]))
    for each in x.policy.allow:
        key = layers.find_key(each.key, leaves)  # an unknown one is an error with the nearest known
        require(key == each.key, f"`policy.allow` has `{each.key}`: write the whole key, `{key}`")
    strange = [key for key in x.policy.lock if key not in flat]
    require(not strange, f"`policy.lock` has `{strange[0] if strange else ''}`, which is no setting of the base")
    x.policy.limits(flat)


def check_start(x: Loop) -> None:
    """Weights that every run begins with, the base's too: a change is not helped by training that others lack."""
    on = x.resume_mode == "continue"
    word = x.resume_from or ""
    require(on == bool(word), "`resume_mode: continue` and `resume_from: RUN@best` (or @latest, @STEP) go together, but"
            f" got resume_mode: {x.resume_mode} and resume_from: {word or 'nothing'}")  # fmt: skip
    name = word.rpartition("@")[2]
    good = not on or ("@" in word and (name in ("latest", "best") or name.isdecimal()))
    require(good, f"`resume_from` must be RUN@latest, RUN@best or RUN@STEP, but is {word!r:.80}")
    both = [key for key in ("start_from", "start_parts") if key in layers.flatten(x.base)]
    require(not (on and both), "`base` and `resume_from` both say what runs begin with: leave one of them out")


def resolved(x: Loop) -> Settings:
    """The base with every setting, without a seed; or what fills a command's placeholders."""
    start = {"start_from": x.resume_from} if x.resume_mode == "continue" else {}
    e = x.experiment({BASE: start})
    if x.command:
        return e.settings(BASE)
    from relab.lab.experiment.cells import variant_settings

    return variant_settings(e, BASE)
