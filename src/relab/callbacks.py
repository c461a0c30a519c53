"""How does training elsewhere keep a record, and how is its user warned while it trains?

    model.learn(100_000, callback=SB3Callback("runs/mine"))         Stable-Baselines3
    writer = watch(writer, "runs/mine", args, algo="ppo")           CleanRL: what the writer gets, relab gets
    with Watch("runs/mine", {"lr": 3e-4}) as log: log.log(step, **numbers)

All three write a run folder (docs/record.md) and ask relab's rules about it every `every` steps. What they find is told
once, on stderr, and stands in events.jsonl. Looking waits where it would take more than SHARE of the training's time.
Whatever goes wrong here once training has begun (a full disk, a fault of relab) is told, and training goes on; only
what a user's own `tell` raises ends it.
Programs that have a copy of logger.py and no relab use its sb3_callback: a plainer record, and no warnings.
"""

from __future__ import annotations

import functools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from relab import logger
from relab.base.blame import reason
from relab.base.places import printable
from relab.base.text import number
from relab.formats.read import cleanrl, sb3, settings_files
from relab.formats.read.source import FOREIGN, Names, settings
from relab.health.examine import examine
from relab.health.render import tried
from relab.health.rule import Finding, all_rules
from relab.logger import Logger, _masked, action_spec, known_settings

SHARE = 0.01  # of the time since the start that looking may take
TELLING = ("warning", "error")  # an info is for who looks, not for who waits
Tell = Callable[[str, Finding], None]


def tell_stderr(text: str, finding: Finding) -> None:
    print(text, file=sys.stderr, flush=True)


class Watch:
    """A run folder that is looked at while it is written; a context manager that notes how the run ended."""

    def __init__(
        self,
        folder: str,
        config: Mapping[str, Any] | None = None,
        *,
        seed: int | None = None,
        env: str | None = None,
        algo: str | None = None,
        every: int = 10_000,
        tell: Tell = tell_stderr,
        names: Names | None = None,
        keys: Mapping[str, str] | None = None,
        spec: Mapping[str, Any] | None = None,
    ):
        if every < 1:
            raise ValueError(f"`every` is a number of steps and must be at least 1, but is {every}")
        all_rules()  # imported now, so that no step waits for it
        self.started = time.perf_counter()
        self.every, self.tell, self.names = every, tell, dict(cleanrl.NAMES if names is None else names)
        flat = {key: value for key, value in (config or {}).items() if not settings_files.is_place(key)}
        flat |= {key: value for key, value in (("seed", seed), ("env", env), ("algo", algo)) if value is not None}
        self.record = Record(folder, flat, known_settings(flat) if keys is None else keys, spec or {})
        self.seconds = 0.0  # spent on writing and looking
        self.looks = 0
        self.blind = False  # a look has failed, and would again
        self.faults: set[str] = set()  # what went wrong, each told once
        self.warned: list[Finding] = []
        self._looked = 0  # step of the last look
        self._cost = 0.0  # of the last look

    @property
    def folder(self) -> Path:
        return Path(self.record.folder)

    @property
    def share(self) -> float:
        """How much of the time since the start went into writing and looking."""
        return self.seconds / max(time.perf_counter() - self.started, 1e-9)

    def log(self, step: int, **metrics: Any) -> None:
        """One row at a step, under the tool's names or relab's; then a look, if it is time for one."""
        self.row(step, metrics)

    def row(self, step: int, metrics: Mapping[str, Any]) -> None:
        """The same of a mapping, whatever its names."""
        begun = time.perf_counter()
        with self.unharmed("a row was not kept"):
            self.record.row(step, dict(self._translated(name, value) for name, value in metrics.items()))
        self.seconds += time.perf_counter() - begun
        if self.record.last - self._looked >= self.every and self._may_look():
            self.look(self.record.last)

    def evaluation(self, step: int, returns: Iterable[float], lengths: Iterable[int] | None = None) -> None:
        """The episodes of an evaluation with deterministic actions."""
        begun = time.perf_counter()
        with self.unharmed("an evaluation was not kept"):
            self.record.evaluation(step, returns, lengths)
        self.seconds += time.perf_counter() - begun

    def look(self, step: int) -> list[Finding]:
        """Ask every rule about the rows so far; what is new is told, and returned."""
        begun, new = time.perf_counter(), self._new()
        self.warned += new
        for finding in new:
            with self.unharmed("a warning was not kept"):
                self.record.event("warning", step, slug=finding.slug, message=finding.message)
        self._looked, self._cost, self.looks = step, time.perf_counter() - begun, self.looks + 1
        self.seconds += self._cost
        for finding in new:
            self.tell(warning(finding, step), finding)  # which may stop the training: that is its user's choice
        return new

    def _new(self) -> list[Finding]:
        """What rules find that was not told yet; none where they cannot be asked."""
        known, self.blind, new = {finding.slug for finding in self.warned}, True, list[Finding]()
        with self.unharmed("relab cannot look at this run while it trains"):
            fired = [f for f in examine(self.folder).main if f.severity in TELLING and f.slug not in known]
            causes = known | {f.slug for f in fired}
            new = [f for f in fired if f.explained_by not in causes]  # a symptom of what is told says nothing more
            self.blind = False
        return new

    @contextmanager
    def unharmed(self, what: str) -> Iterator[None]:
        """Inside, nothing that goes wrong reaches the training: it is told, once for each kind."""
        try:
            yield
        except Exception as error:  # whatever it is: hours of training are worth more than a row
            if what not in self.faults:
                self.faults.add(what)
                why = reason(error) if self.blind else f"{type(error).__name__}: {error}"
                print(printable(f"relab: {what} ({why}); training goes on"), file=sys.stderr, flush=True)

    def close(self, status: str = "finished", why: str = "") -> None:
        """A last look, which costs training nothing, and the end of the record."""
        if self.record.meta["status"] != "running":
            return
        with self.unharmed("the end of the run was not kept"):
            self.record.close(status, why)  # first: an unfinished run is judged with more patience
        try:
            self.look(self.record.last)
        finally:
            with self.unharmed("the end of the run was not kept"):
                self.record.release()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, kind: Any, error: Any = None, *_: Any) -> None:
        if kind is None:
            return self.close()
        status = "interrupted" if issubclass(kind, KeyboardInterrupt) else "failed"
        return self.close(status, f"{kind.__name__}: {error}")

    def _may_look(self) -> bool:
        """Whether one more look that costs as much as the last one stays within SHARE of the time."""
        return not self.blind and self.seconds + self._cost <= SHARE * (time.perf_counter() - self.started)

    def _translated(self, name: str, value: Any) -> tuple[str, Any]:
        ours, factor = self.names.get(name, (name, 1.0))
        return ours.removeprefix(FOREIGN), value if factor == 1.0 else factor * float(value)


def warning(finding: Finding, step: int) -> str:
    """relab at step 20,480: kl-too-high since 2,048: ...; try: lr 0.1 → 0.003 (relab explain kl-too-high)"""
    since = f" since {finding.onset:,}" if finding.onset is not None else ""
    tries = f"; try: {'; '.join(tried(one) for one in finding.suggest[:2])}" if finding.suggest else ""
    return (f"relab at step {step:,}: {finding.severity}: {finding.slug}{since}: {finding.message}{tries}"
            f" (relab explain {finding.slug})")  # fmt: skip


class Record(Logger):
    """The logger, with settings under relab's names, and the step it has come to."""

    def __init__(self, folder: str, flat: Mapping[str, Any], keys: Mapping[str, str], spec: Mapping[str, Any]):
        self.last, nested = 0, plain(settings(flat, keys))
        env, algo = (nested.get(part, {}).get("name") for part in ("env", "algo"))
        super().__init__(folder, None, nested.get("seed"), env, algo)
        self._replace("config.yaml", json.dumps(_masked(nested), indent=1))
        self.meta["spec"].update(spec)
        self.meta["keys"] = {key: keys[key] for key in flat if key in keys}
        self._write_meta()

    def row(self, step: int, metrics: Mapping[str, Any]) -> None:
        self.last = max(self.last, int(step))
        super().row(step, metrics)

    def release(self) -> None:
        """Files that were opened again after the end."""
        for file in self._files.values():
            file.close()
        self._files = {}


def plain(data: Any) -> Any:
    """As JSON has it; whatever else a script keeps among its settings becomes text."""
    return json.loads(json.dumps(data, default=str))


# ---- A script with a SummaryWriter


def watch(writer: Any, folder: str, args: Any = None, **facts: Any) -> Watched:
    """A SummaryWriter whose numbers go to a relab record as well: `writer = watch(writer, "runs/mine", args)`.

    `args` are the script's settings, as CleanRL parses them; `facts` are those of Watch (algo, seed, env, every).
    """
    config = dict(args if isinstance(args, Mapping) else vars(args) if args is not None else {})
    return Watched(writer, Watch(folder, config, **facts))


class Watched:
    """The writer as it was; each scalar also goes to the watch, one row a step."""

    def __init__(self, writer: Any, record: Watch):
        self.writer, self.relab = writer, record
        self._step: int | None = None
        self._row: dict[str, list[float]] = {}

    def add_scalar(self, tag: str, scalar_value: Any, global_step: int | None = None, *more: Any, **named: Any) -> None:
        self.writer.add_scalar(tag, scalar_value, global_step, *more, **named)
        if global_step is None:
            return
        if global_step != self._step:
            self._flush_row()
        with self.relab.unharmed("a number was not kept"):
            self._step, value = int(global_step), float(scalar_value)
            self._row.setdefault(tag, []).append(value)

    def close(self) -> None:
        self._flush_row()
        self.relab.close()
        self.writer.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.writer, name)

    def _flush_row(self) -> None:
        """Episodes that end in the same step are one number: their mean."""
        row, self._row = self._row, {}
        if row and self._step is not None:
            self.relab.row(self._step, {tag: sum(values) / len(values) for tag, values in row.items()})


# ---- Stable-Baselines3


def __getattr__(name: str) -> Any:
    """SB3Callback is made when it is first asked for: nobody else waits for torch."""
    if name == "SB3Callback":
        return _sb3_callback()
    raise AttributeError(f"module 'relab.callbacks' has no attribute {name!r}; it has SB3Callback, Watch and watch")


@functools.cache
def _sb3_callback() -> type:
    from stable_baselines3.common.callbacks import BaseCallback
    from stable_baselines3.common.logger import KVWriter

    class Rows(KVWriter):
        """What Stable-Baselines3 dumps into its own files, as one more of them."""

        def __init__(self, write: Callable[[Mapping[str, Any], int], None]):
            self._write = write

        def write(self, key_values: Mapping[str, Any], key_excluded: Mapping[str, Any], step: int = 0) -> None:
            self._write(key_values, step)

        def close(self) -> None:
            pass

    class SB3Callback(SB3Moments, BaseCallback):
        """Records a run of Stable-Baselines3 and warns while it trains; `watch` is the Watch behind it."""

        writer = Rows

    return SB3Callback


LAST_100 = "rollout/ep_len_mean"  # `return/length` is that of the episodes since the last row (episode_numbers)


class SB3Moments:
    """What SB3Callback does at each moment of learn(); the attributes without a value are BaseCallback's."""

    model: Any
    training_env: Any
    locals: dict[str, Any]
    num_timesteps: int
    writer: Callable[[Callable[[Mapping[str, Any], int], None]], Any]
    watch: Watch

    def __init__(self, folder: str, every: int = 10_000, tell: Tell = tell_stderr):
        super().__init__()
        self.folder, self.every, self.tell = folder, every, tell
        self.episodes: list[Mapping[str, float]] = []
        self.gathered = 0  # steps whose episodes are among them
        self.evaluated: dict[int, int] = {}

    def _on_training_start(self) -> None:
        facts, spec = sb3_facts(self.model), sb3_spec(self.model, self.training_env)
        keys = sb3.KEYS | (sb3.ON_POLICY_KEYS if facts["algo"] in sb3.ON_POLICY else {})
        names = {**sb3.names_for(facts["algo"], spec), LAST_100: (FOREIGN + LAST_100, 1.0)}
        self.watch = Watch(self.folder, facts, every=self.every, tell=self.tell, names=names, keys=keys, spec=spec)
        self.rows = self.writer(self._keep)
        self.model.logger.output_formats.append(self.rows)

    def _on_step(self) -> bool:
        self._gather()
        return True

    def _on_training_end(self) -> None:
        left = dict(self.model.logger.name_to_value)  # since the last dump
        if left and self.num_timesteps > self.watch.record.last:
            self._keep(left, self.num_timesteps)
        if self.rows in self.model.logger.output_formats:  # else somebody has set another logger
            self.model.logger.output_formats.remove(self.rows)
        self._keep_evaluations()
        self.watch.close()

    def _gather(self) -> None:
        """The episodes that ended in this step, once: an EvalCallback before this one lets a row be written first."""
        if self.gathered != self.model.num_timesteps:
            self.gathered = self.model.num_timesteps
            with self.watch.unharmed("episodes of training were not kept"):
                self.episodes += [info["episode"] for info in self.locals.get("infos", ()) if "episode" in info]

    def _keep(self, values: Mapping[str, Any], step: int) -> None:
        self._gather()
        self._keep_evaluations()
        row = {name: float(x) for name, x in values.items() if isinstance(x, (int, float, np.number))}
        episodes, self.episodes = self.episodes, []
        with self.watch.unharmed("episodes of training were not kept"):
            row |= episode_numbers(episodes)
        self.watch.row(step, row)

    def _keep_evaluations(self) -> None:
        """Single episodes, where an EvalCallback beside this one keeps them (its log_path is set)."""
        for each in all_callbacks(self.locals.get("callback")):
            with self.watch.unharmed("evaluations were not kept"):
                self._keep_those_of(each)

    def _keep_those_of(self, each: Any) -> None:
        for k in range(self.evaluated.get(id(each), 0), len(getattr(each, "evaluations_results", ()))):
            step, returns = each.evaluations_timesteps[k], each.evaluations_results[k]
            self.watch.evaluation(step, returns, each.evaluations_length[k])
            self.evaluated[id(each)] = k + 1


def episode_numbers(episodes: list[Mapping[str, float]]) -> dict[str, float]:
    """Of the training episodes that ended since the last row."""
    if not episodes:
        return {}
    returns, lengths = (np.array([float(e[key]) for e in episodes]) for key in ("r", "l"))
    ends = {"mean": returns.mean(), "std": returns.std(), "min": returns.min(), "max": returns.max()}
    numbers = {**ends, "episodes": len(returns), "length": lengths.mean()}
    return {f"return/{name}": float(value) for name, value in numbers.items()}


def all_callbacks(callback: Any) -> list[Any]:
    inner = getattr(callback, "callbacks", None)
    return [one for each in inner for one in all_callbacks(each)] if inner is not None else [callback]


PASSING = ("num_timesteps", "verbose", "start_time", "tensorboard_log")  # no settings
SCHEDULES = ("learning_rate", "clip_range", "clip_range_vf")  # a number, or a function of the share that remains


def sb3_facts(model: Any) -> dict[str, Any]:
    """The model's settings as it calls them; schedules as the value they keep, or as both of their ends."""
    known = logger.sb3_facts(model)
    named = {key: value for key, value in vars(model).items() if key[0] != "_" and key not in PASSING}
    named |= {key: scheduled(named.get(key)) for key in SCHEDULES} | logger.sb3_structure(model)
    facts = {key: x for key, x in named.items() if isinstance(x, (bool, int, float, str))}
    facts |= {"algo": known["algo"], "total_timesteps": known["config"]["total_timesteps"]}
    more = {"env": known["env"], "minibatches": known["config"].get("n_minibatches")}
    return facts | {key: value for key, value in more.items() if value}


def scheduled(value: Any) -> Any:
    if not callable(value):
        return value
    ends = [float(value(left)) for left in (1.0, 0.5, 0.0)]
    return ends[0] if len(set(ends)) == 1 else f"{number(ends[0])} to {number(ends[-1])}"


def sb3_spec(model: Any, envs: Any) -> dict[str, Any]:
    """Action space and time limit as meta.spec has them."""
    try:
        limit = envs.get_attr("spec")[0].max_episode_steps
    except (AttributeError, IndexError):  # an environment that nobody registered
        limit = None
    return {key: value for key, value in (("action", action_spec(model.action_space)), ("horizon", limit)) if value}
