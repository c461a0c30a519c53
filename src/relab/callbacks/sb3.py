"""What does SB3Callback do at each moment of learn(), and what does it keep of a model of Stable-Baselines3?"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from relab import logger
from relab.base.text import number
from relab.callbacks.watching import Tell, Watch, tell_stderr
from relab.formats.read import sb3
from relab.formats.read.source import FOREIGN
from relab.logger import action_spec


@functools.cache
def sb3_callback() -> type:
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
        self.gathered = 0  # steps, as the model counts them, whose episodes are among them
        self.evaluated: dict[int, int] = {}
        self.trained: Any = None  # the model of the last learn()
        self.rows: Any = None
        self.before = 0  # steps of calls of learn() before this one, where it counts from 0 again

    def _on_training_start(self) -> None:
        if self.trained is not None and self.trained is self.model:
            self._go_on()
        else:
            self._begin()
        self.trained = self.model
        self._stop_rows()  # of a learn() that did not come to its end
        self.rows = self.writer(self._keep)
        self.model.logger.output_formats.append(self.rows)

    def _go_on(self) -> None:
        """learn() once more on the same model: the same run, whose steps are counted on."""
        if self.num_timesteps < self.gathered:  # counted from 0 again
            self.before += self.gathered
        self.gathered = self.num_timesteps
        self.watch.go_on(self.before + self.model._total_timesteps)

    def _begin(self) -> None:
        facts, spec = sb3_facts(self.model), sb3_spec(self.model, self.training_env)
        keys = sb3.KEYS | (sb3.ON_POLICY_KEYS if facts["algo"] in sb3.ON_POLICY else {})
        names = {**sb3.names_for(facts["algo"], spec), LAST_100: (FOREIGN + LAST_100, 1.0)}
        self.watch = Watch(self.folder, facts, every=self.every, tell=self.tell, names=names, keys=keys, spec=spec)
        if getattr(self.model, "_n_updates", 0):  # loaded, or trained before
            self.watch.record.meta["resumed"] = True

    def _on_step(self) -> bool:
        self._gather()
        return True

    def _on_training_end(self) -> None:
        left = dict(self.model.logger.name_to_value)  # since the last dump
        if left and self.before + self.num_timesteps > self.watch.record.last:
            self._keep(left, self.num_timesteps)
        self._stop_rows()
        self._keep_evaluations()
        if self.num_timesteps < self.model._total_timesteps:
            self.watch.stopped("a callback ended the training", self.before + self.num_timesteps)
        self.watch.close()

    def _stop_rows(self) -> None:
        if self.rows in self.model.logger.output_formats:  # else somebody has set another logger
            self.model.logger.output_formats.remove(self.rows)

    def _gather(self) -> None:
        """The episodes that ended in this step, once: an EvalCallback before this one lets a row be written first."""
        if self.gathered != self.model.num_timesteps:
            self.gathered = self.model.num_timesteps
            with self.watch.unharmed("episodes of training were not kept"):
                self.episodes += [info["episode"] for info in self.locals.get("infos", ()) if "episode" in info]

    def _keep(self, values: Mapping[str, Any], step: int) -> None:
        self._gather()
        self._keep_evaluations()
        row: dict[str, float] = {}
        for name, value in values.items():
            with self.watch.unharmed("a number was not kept"):
                row |= {name: float(value)} if isinstance(value, (int, float, np.number)) else {}
        episodes, self.episodes = self.episodes, []
        with self.watch.unharmed("episodes of training were not kept"):
            row |= episode_numbers(episodes)
        self.watch.row(self.before + step, row)

    def _keep_evaluations(self) -> None:
        """Single episodes, where an EvalCallback beside this one keeps them (its log_path is set)."""
        for each in all_callbacks(self.locals.get("callback")):
            with self.watch.unharmed("evaluations were not kept"):
                self._keep_those_of(each)

    def _keep_those_of(self, each: Any) -> None:
        for k in range(self.evaluated.get(id(each), 0), len(getattr(each, "evaluations_results", ()))):
            step, returns = each.evaluations_timesteps[k], each.evaluations_results[k]
            self.watch.evaluation(self.before + step, returns, each.evaluations_length[k])
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
    return [one for each in inner for one in all_callbacks(each)] if isinstance(inner, (list, tuple)) else [callback]


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
    try:
        ends = [float(value(left)) for left in (1.0, 0.5, 0.0)]
    except Exception:  # a user's function, and training may never ask it for its end
        return None
    return ends[0] if len(set(ends)) == 1 else f"{number(ends[0])} to {number(ends[-1])}"


def sb3_spec(model: Any, envs: Any) -> dict[str, Any]:
    """Action space and time limit as meta.spec has them."""
    try:
        limit = envs.get_attr("spec")[0].max_episode_steps
    except (AttributeError, IndexError):  # an environment that nobody registered
        limit = None
    return {key: value for key, value in (("action", action_spec(model.action_space)), ("horizon", limit)) if value}
