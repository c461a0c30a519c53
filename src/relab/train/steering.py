"""What does a schedule do to a run? It sets stages before an iteration, evaluates after it, and lets gates decide.

`before` hands the stage to the training environment: it holds from each world's next reset on, no world is cut short
for it. `after` counts the starts that were used, looks at alerts, and every `every` iterations plays a
multi-evaluation: worlds of its own, with parameters and a stage of their own, on seeds of the stream `multi/ITERATION`.
All of it is numbers of the record and state of the checkpoint, so a killed run decides the same again.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from relab.base.documents import Document, Settings, Tree
from relab.base.near import hint as near_hint
from relab.base.streams import world_seeds
from relab.config import layers, registry
from relab.config.base import ConfigError
from relab.config.run import RunConfig
from relab.schedules import course as courses
from relab.schedules import evaluated
from relab.schedules.evaluated import Episode
from relab.schedules.gate import GateState, ScheduleError
from relab.schedules.schedule import MultiEval, Schedule, from_mapping
from relab.schedules.sources import files_of, read_starts
from relab.schedules.stage import MINED, Plan, next_starts
from relab.train import rollout
from relab.train.envs.base import Worlds
from relab.train.kernels.rng import mix
from relab.train.tail_films import film_worst

Trainer = Any  # of relab.train.loop, which stands above: its state, record, progress and step are used
NOT_DEAD = ("time_limit", "cap", "unused")
STARTS = "starts"


def make(cfg: RunConfig, env: Any, fresh: bool = True) -> Steering:
    """The companion of a run with a schedule; ConfigError where the schedule and the environment do not fit.

    `fresh`: files of starts are read; else they come from a checkpoint, and no file is opened.
    """
    batch, iterations = cfg.batch, cfg.iterations
    if batch is None or iterations is None or not hasattr(cfg.algo, "envs"):
        raise ConfigError(f"`schedule` counts iterations and the worlds that they begin, but the settings of"
                          f" {cfg.algo.name} do not say how large an iteration is: they need `envs` (worlds) and"
                          " `batch` (rows of an iteration)")  # fmt: skip
    try:
        schedule = courses.with_total(from_mapping(cfg.schedule or {}), iterations)
        sources = {name: read_starts(name) for name in files_of(schedule)} if fresh else {}
    except ScheduleError as error:
        raise ConfigError(f"`schedule`: {error}") from None
    total = schedule.total or 0
    layers.require(iterations >= total, f"`schedule.total` = {total} iterations must fit into `total_steps`, but"
                   f" {cfg.total_steps:,} steps of {batch:,} rows are {iterations} where all agents live; set"
                   f" total_steps={total * batch}")  # fmt: skip
    layers.require(
        bool(schedule), "`schedule` sets nothing: it needs a curriculum, queues, phases, gates or multi_eval"
    )
    steering = Steering(cfg, env, schedule, sources)
    steering.check()
    steering.apply(1)  # the worlds begin before the first iteration
    return steering


class Steering:
    """A schedule and where it stands; goes along with the training loop."""

    def __init__(self, cfg: RunConfig, env: Any, schedule: Schedule, sources: Mapping[str, np.ndarray]):
        self.cfg, self.env, self.schedule, self.sources = cfg, env, schedule, dict(sources)
        self.keys: tuple[str, ...] = getattr(env, "stage_keys", ())  # optional in the contract
        self.course = courses.Course(schedule, cfg.algo.envs)
        self.judge = Judge(cfg, env, schedule.multi_eval) if schedule.multi_eval else None
        self.announced: dict[str, str] = {}  # what was on when an event last said so
        self.started = False  # before the first iteration; the worlds' first starts count to it
        self.mark = 0  # worlds begun before this iteration

    def check(self) -> None:
        """Does every key exist, does every gate get its numbers, does every stage say the same?"""
        plan, first = self.schedule.curriculum, self.keys[0] if self.keys else ""
        rows = [plan.values(k, plan.key or first) for k in range(len(plan.stages))] if plan else []
        needed = {key for row in rows for key in row} | set(self.course.stage(1, first))
        needed |= {self.key_of(queue) for queue in self.schedule.queues}
        name, unknown = self.env.spec.env, sorted(needed - set(self.keys))
        can = f"can be set: {', '.join(self.keys)}" if self.keys else "has no stages (stage_keys and set_stage)"
        layers.require(not unknown, f"`schedule` sets {', '.join(map(repr, unknown))}, but of {name} {can}")
        layers.require(all(set(row) == set(rows[0]) for row in rows),
                       "every stage of `schedule.curriculum` must set the same keys, but they differ")  # fmt: skip
        layers.require(not (self.schedule.gates and self.schedule.every is None),
                       "`schedule.gates` are checked every so many iterations: set `schedule.every`")  # fmt: skip
        layers.require(self.judge is None or self.schedule.every is not None,
                       "`schedule.multi_eval` runs every so many iterations: set `schedule.every`")  # fmt: skip
        self.check_metrics()
        self.try_stages()

    def try_stages(self) -> None:
        """Hand every stage to the environment once: a value it refuses must not end the run in the middle."""
        plan, steps = self.schedule.curriculum, [1]
        if plan:
            steps = [start + 1 for start in plan.starts]
        for gate in self.schedule.gates:
            for stage in range((gate.last or 0) + 1):
                self.course.gates[gate.name] = GateState(stage)
                for iteration in steps:
                    self.apply(iteration)
            self.course.gates[gate.name] = GateState()
        for iteration in steps:
            self.apply(iteration)

    def check_metrics(self) -> None:
        """A gate or alert on a number that never comes would be silent for ever."""
        from relab.record import glossary

        own = {f"multi/{name}" for name in self.judge.names()} if self.judge else set()
        traced = {f"schedule/{name}" for name in (*self.course.trace(1), *self.course.streaks())}
        known = [*own, *traced, *(n for n in glossary.METRICS if not n.startswith(("multi/", "time/")))]
        conditions = [c for g in self.schedule.gates for c in (*g.success, *g.failure)]
        for condition in (*conditions, *(alert.when for alert in self.schedule.alerts)):
            word = condition.metric
            exists = math.isfinite(courses.lookup(dict.fromkeys(known, 0.0), word)) or word.startswith("env/")
            hint = "" if own else "; `schedule.multi_eval` is not set"
            near = "" if exists else near_hint(word, [n.rpartition("/")[2] for n in known])
            layers.require(exists, f"`{condition}`: no such number{near}{hint}")

    def key_of(self, queue: Plan) -> str:
        return queue.key or STARTS

    # ---- Before an iteration

    def before(self, trainer: Trainer) -> None:
        iteration = trainer.state.counts.iteration + 1
        self.mark = trainer.state.worlds.begun if self.started else 0
        self.started = True
        self.apply(iteration)
        self.tell(trainer, iteration)

    def apply(self, iteration: int) -> None:
        """Hand everything that is on to the environment, changed or not: a resumed run needs it anew."""
        if self.keys:
            self.env.set_stage(self.values(iteration))

    def values(self, iteration: int) -> Settings:
        stage = self.course.stage(iteration, self.keys[0] if self.keys else "")
        return stage | {self.key_of(queue): self.starts(queue) for queue in self.schedule.queues}

    def starts(self, queue: Plan) -> np.ndarray:
        """The next entries of a queue, one for each world; none where it is over or its source is empty so far."""
        place = self.course.place(queue)
        source = queue.stages[place.stage].source
        mined = np.array(self.course.mined, np.float64).reshape(-1, 2)
        known = mined if source == MINED else self.sources.get(source, np.zeros((0, 2)))
        rows = [] if place.over else next_starts(queue, self.course.used[queue.name], self.course.worlds, len(known))
        return known[rows].reshape(-1, 2)

    def tell(self, trainer: Trainer, iteration: int) -> None:
        """An event for each part of the schedule that moved."""
        now, before = self.course.labels(iteration), self.announced
        shown = {key: value for key, value in self.values(iteration).items() if not isinstance(value, np.ndarray)}
        for part, label in now.items():
            if before.get(part) != label:
                kind = {"type": kind} if (kind := self.course.types().get(part)) else {}
                trainer.record.append_event("stage", trainer.step, iteration=iteration, schedule=part, stage=label,
                                            **kind, values=shown)  # fmt: skip
        self.announced = now

    # ---- After an iteration

    def after(self, trainer: Trainer, metrics: dict[str, float]) -> None:
        iteration = trainer.state.counts.iteration
        on = self.label(iteration)  # what was trained in this iteration
        stage = self.scalars(iteration)
        self.course.take(trainer.state.worlds.begun - self.mark)
        trace = {f"schedule/{name}": value for name, value in self.course.trace(iteration).items()} | stage
        fired = self.course.watch(iteration, metrics | trace)
        trace |= {f"schedule/{name}": value for name, value in self.course.streaks().items()}
        trainer.record.append_metrics(trainer.step, trace)
        for alert, check in fired:
            message = f"{alert.name}: {alert.when} for {check.streak} checks in a row (now {check.value:g})"
            trainer.record.append_event("alert", trainer.step, iteration=iteration, alert=alert.name, message=message,
                                        value=check.value, threshold=check.threshold)  # fmt: skip
        if self.schedule.every and iteration % self.schedule.every == 0:
            self.check_gates(trainer, iteration, metrics | trace, on)
        if self.judge is not None and self.judge.multi.has_final and self.is_last(trainer):
            self.evaluate_fully(trainer, iteration, on)

    def is_last(self, trainer: Trainer) -> bool:
        """Whether the run ends with this iteration, by its budget or by its goal."""
        return bool(trainer.over) or trainer.evaluator.reached_goal(trainer.step, trainer.progress)

    def scalars(self, iteration: int) -> dict[str, float]:
        """What was set, as far as it is numbers."""
        stage = self.values(iteration)
        return {f"stage/{key}": float(x) for key, x in stage.items() if isinstance(x, (int, float))}

    def label(self, iteration: int) -> dict[str, str]:
        """What is on, as the rows of evaluations keep it."""
        kinds = self.course.types()
        stage = ", ".join(self.course.labels(iteration).values())
        return {"stage": stage, "type": ", ".join(kinds.values())}

    def check_gates(self, trainer: Trainer, iteration: int, numbers: dict[str, float], on: dict[str, str]) -> None:
        if self.judge is not None:
            numbers = numbers | self.evaluate(trainer, iteration, on)
        for gate, decision in self.course.check(iteration, numbers):
            limit = courses.limit_of(gate, decision.state)
            more = {} if limit is None else {"phase_limit": limit}
            trainer.record.append_event("gate", trainer.step, gate=gate.name, **decision.to_dict(), **more)

    def evaluate(self, trainer: Trainer, iteration: int, on: dict[str, str]) -> dict[str, float]:
        """One multi-evaluation into the record; its numbers by their full names."""
        assert self.judge is not None
        multi = self.judge.multi
        row, sim_steps = self.judge.play(trainer.state.agent, iteration)
        trainer.progress.eval_steps += sim_steps
        numbers = {f"multi/{name}": value for name, value in row["values"].items()}
        trainer.record.append_metrics(trainer.step, numbers)
        self.keep(trainer, iteration, row, on)
        if multi.films:
            film_worst(trainer, self.judge, iteration, row["episodes"])
        worst = evaluated.worst([r for r in row["episodes"] if r.get("heading") is not None], multi.worst)
        self.course.mine([list(evaluated.velocity(r)) for r in worst])
        return numbers

    def keep(self, trainer: Trainer, iteration: int, row: Document, on: dict[str, str]) -> None:
        settings = {key.removeprefix("stage/"): value for key, value in self.scalars(iteration).items()}
        trainer.record.append_probe({"step": trainer.step, **row, **on, "settings": settings})

    def evaluate_fully(self, trainer: Trainer, iteration: int, on: dict[str, str]) -> None:
        """The one evaluation of all `episodes` at the end: numbers of their own, which no gate sees."""
        assert self.judge is not None
        row, sim_steps = self.judge.play(trainer.state.agent, iteration, full=True)
        trainer.progress.eval_steps += sim_steps
        numbers = {f"multi/full_{name}": value for name, value in row["values"].items()}
        trainer.record.append_metrics(trainer.step, numbers)
        self.keep(trainer, iteration, row, on)

    # ---- Keeping

    def to_tree(self) -> Tree:
        plain = {"course": self.course.to_dict(), "told": dict(self.announced), "started": self.started}
        arrays = {f"source_{k}": array for k, array in enumerate(self.sources.values())}
        return plain | {"sources": list(self.sources)} | arrays

    def load(self, tree: Tree) -> None:
        """State of a checkpoint; the starts come from it too, whatever became of their files."""
        self.course.load(tree["course"])
        self.announced, self.started = dict(tree["told"]), bool(tree["started"])
        self.sources = {name: np.asarray(tree[f"source_{k}"]) for k, name in enumerate(tree["sources"])}


def judge_of(cfg: RunConfig, env: Any) -> Judge:
    """What plays a run's multi-evaluations; ConfigError where it has none."""
    multi = from_mapping(cfg.schedule or {}).multi_eval
    layers.require(multi is not None, "the run has no `schedule.multi_eval`")
    return Judge(cfg, env, multi or MultiEval())


class Judge:
    """Plays multi-evaluations: the policy of training in an environment of their own."""

    def __init__(self, cfg: RunConfig, env: Any, multi: MultiEval):
        self.multi, self.cfg = multi, cfg
        changes = {f"env.{key}": value for key, value in multi.env.items()}
        changes |= {} if multi.agents is None else {"env.agents": multi.agents}
        params = layers.replace(cfg, changes).env if changes else cfg.env
        self.env = registry.env_class(cfg.env.name)(params)
        spec, theirs = self.env.spec, env.spec
        same = (spec.seen, spec.action) == (theirs.seen, theirs.action)
        layers.require(same, f"`schedule.multi_eval.env` must keep observations and actions, but has {spec.seen} and"
                       f" {spec.action.kind} where training has {theirs.seen} and {theirs.action.kind}")  # fmt: skip
        if multi.stage:
            layers.require(bool(getattr(self.env, "stage_keys", ())), f"{spec.env} has no stages for multi_eval.stage")
            self.env.set_stage(multi.stage)
        unknown = sorted(set(multi.deaths) - set(spec.ends))
        layers.require(not unknown, f"`multi_eval.deaths`: {spec.env} ends by {', '.join(spec.ends)}, not {unknown}")
        self.worlds: dict[int, Worlds | None] = {}  # by their number

    @property
    def horizon(self) -> int:
        return int(self.env.spec.horizon or rollout.STEP_CAP)

    def names(self) -> list[str]:
        """The numbers it gives, by their bare names."""
        plain = evaluated.summarise([Episode(0, 1, ())], 1, self.multi.early).values
        channels = {channel.name for channel in self.env.spec.channels}
        return [*plain, "return", *(evaluated.CONCENTRATION if channels.issuperset(self.multi.start) else ())]

    def play(
        self, agent: Any, iteration: int, frames: rollout.Frames | None = None, full: bool = False
    ) -> tuple[Document, int]:
        """(row for the record, world steps it took): first episodes of so many worlds, of more where it is `full`."""
        multi = self.multi
        count, stream = (multi.episodes, "multi/full") if full else (multi.while_training, f"multi/{iteration}")
        seeds = world_seeds(self.cfg.seed if multi.seed_base is None else multi.seed_base, stream, count)
        worlds = self.worlds.setdefault(count, None) or Worlds(self.env, count)
        self.worlds[count] = worlds
        batch = rollout.evaluate(self.env, agent, seeds, (multi.mode,), frames, worlds)
        played = batch.played(multi.mode)
        episodes = self.episodes(played)
        result = evaluated.summarise(episodes, self.horizon, multi.early)
        values = result.values | {"return": float(np.nanmean(batch.world_means(multi.mode)))}
        values |= evaluated.concentration([e.to_dict() for e in episodes], multi.sector, multi.fast)
        noise, low, high = ({name: ends[k] for name, ends in result.ends.items()} for k in range(3))
        name = evaluated.FULL if full else evaluated.PROBE
        row = {"probe": name, "value": values["avg_final"], "noise": noise.get("avg_final"),
               "n": len(episodes), "unit": "share", "iteration": iteration, "mode": multi.mode,
               "horizon": self.horizon, "configured": count, "values": values, "noises": noise, "low": low,
               "high": high, "effective": result.effective, "episodes": [e.to_dict() for e in episodes],
               "deaths": deaths_of(episodes)}  # fmt: skip
        return row, batch.sim_steps

    def floor(self, worlds: int = 2000) -> tuple[float, float, int]:
        """(share, standard error over worlds, worlds): who dies in the first step under random actions."""
        spec, n = self.env.spec, max(2, min(worlds, 200_000 // self.env.spec.agents))
        policy, seeds = rollout.RandomPolicy(spec.action), world_seeds(self.cfg.seed, "floor", n)
        sample = Worlds(self.env, n)
        sample.reset(seeds)
        used = sample.alive.copy()
        acted = policy.act(
            sample.obs.reshape(n * spec.agents, -1), np.zeros((n, 0)), mix(np.repeat(seeds, spec.agents))
        )
        step = sample.step(policy.to_env(acted.action).reshape(rollout.action_shape(spec.action, n, spec.agents)))
        share_N = (step.terminated & used).sum(1) / used.sum(1)
        return float(share_N.mean()), float(share_N.std(ddof=1) / math.sqrt(n)), n

    def episodes(self, played: list[Document]) -> list[Episode]:
        worlds: dict[int, list[Document]] = {}
        for row in played:
            worlds.setdefault(row["seed"], []).append(row)
        return [self.episode(seed, rows) for seed, rows in worlds.items()]

    def episode(self, seed: int, rows: list[Document]) -> Episode:
        deaths = tuple(sorted(row["length"] for row in rows if self.died(row)))
        start = [rows[0].get("info", {}).get(name) for name in self.multi.start]
        heading, speed = start if None not in start else (None, None)
        return Episode(seed, len(rows), deaths, heading, speed)

    def died(self, row: Document) -> bool:
        if self.multi.deaths:
            return row["end"] in self.multi.deaths
        survived = row.get("info", {}).get("survived")
        if survived is not None:
            return bool(survived < 0.5)
        return row["end"] not in (*NOT_DEAD, *self.env.spec.success_ends)


def deaths_of(episodes: list[Episode]) -> list[list[int]]:
    """[step, deaths] in order of steps: the histogram in full."""
    steps, counts = np.unique([d for e in episodes for d in e.deaths], return_counts=True)
    return [[int(step), int(n)] for step, n in zip(steps, counts)]
