"""How does a config become a run? The only loop that touches disk, clock or screen.

    iterate -> metrics row -> (evaluate) -> (companions) -> (checkpoint)

until total_steps of the algorithm's clock, eval.stop_at, or a signal. Companions go along with the loop: probes,
curricula, gates. What an algorithm is to the loop stands in contract.py, how a run starts and goes on in session.py.

Nothing that decides what happens next looks at the clock, so a run that was killed and resumed writes the same bytes.
"""

from __future__ import annotations

import contextlib
import math
import os
import resource
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from relab.base import terminal
from relab.base.interrupts import Interrupts
from relab.base.jsonl import RecordError
from relab.config import registry
from relab.config.run import RunConfig
from relab.record.run_folder import Record
from relab.train import checkpoint
from relab.train.contract import Algorithm, ContractError, DivergedError, State, Stopwatch
from relab.train.envs.check_static import EnvError
from relab.train.evaluation import Evaluator, Played, Progress, note_best, point_to_best
from relab.train.replay import Data
from relab.train.rollout import STEP_CAP
from relab.train.screen import Screen, Silent


@dataclass(frozen=True)
class Ending:
    """How a call of train() or resume() ended."""

    folder: Path
    status: str  # finished | interrupted | failed
    why: str
    step: int
    best: dict[str, Any] | None = None


class Companion(Protocol):
    """What goes along with the loop and acts between its iterations; its state is part of every checkpoint.

    The run's setting of that name, unless it is null, brings it along (session.COMPANIONS); its seconds: time/NAME_s.
    """

    def before(self, trainer: Trainer) -> None: ...  # the next iteration has not begun: stages may change here

    def after(self, trainer: Trainer, metrics: dict[str, float]) -> None: ...  # its row is written: measure, decide

    def to_tree(self) -> dict[str, Any]: ...  # arrays and plain values, one level deep

    def load(self, tree: dict[str, Any]) -> None: ...


NUMBERS = (int, float, np.number, np.bool_)
WITH = "with_"  # a companion's key in a checkpoint: with_NAME


@dataclass
class Trainer:
    """One run in progress."""

    cfg: RunConfig
    record: Record
    env: Any
    algo: Algorithm
    state: State
    screen: Screen
    evaluator: Evaluator
    clock: str  # the counter that is this run's step
    data: Data  # what checkpoints do not copy
    companions: dict[str, Companion] = field(default_factory=dict)
    progress: Progress = field(default_factory=Progress)
    began: float = field(default_factory=time.perf_counter)
    began_step: int = 0
    earned: float | None = None  # mean return of the last 100 episodes, for the screen
    pace: float | None = None  # recent agent-steps per second, for the screen
    unseen: bool = False  # nobody can read the screen, and the record says so
    warned: set[str] = field(default_factory=set)  # what this session has warned of

    @property
    def step(self) -> int:
        return int(getattr(self.state.counts, self.clock))

    @property
    def folder(self) -> Path:
        return self.record.folder

    # ---- The loop

    def run(self) -> Ending:
        with failures_told(self.record, lambda: self.step), Interrupts(second_raises=True) as signals:
            try:
                status, why = self.loop(signals)
            except (DivergedError, EnvError) as error:
                self.record.append_event("error", self.step, message=str(error))
                status, why = "failed", str(error)
        return self.end(status, why)

    def loop(self, signals: Interrupts) -> tuple[str, str]:
        """Train until something ends it: (status, why)."""
        self.warn_of_endless(self.record.meta["spec"].get("random") or {}, "the random policy")
        if self.progress.last_eval < 0:
            self.evaluate()  # the level before any learning, and it may already be enough
            self.save()
        while True:
            if signals.caught:
                self.save()
                self.record.append_event("interrupt", self.step, signal=signals.caught)
                return "interrupted", f"{signals.caught} received"
            if self.evaluator.reached_goal(self.step, self.progress):
                self.record.append_event("stop", self.step, reason="eval.stop_at", best=self.progress.best)
                self.save()
                return "finished", f"{self.evaluator.metric} reached eval.stop_at = {self.cfg.eval.stop_at:g}"
            if self.over:
                break
            self.iterate()
        if self.progress.last_eval != self.step:
            self.evaluate()
        if self.step < self.cfg.total_steps:
            self.record.append_event("stop", self.step, reason=self.over)
        self.save()
        self.record.append_event("finish", self.step)
        return "finished", self.over

    @property
    def over(self) -> str:
        """Why there is nothing left to train; empty while there is."""
        total = (self.cfg.schedule or {}).get("total")
        if total is not None and self.state.counts.iteration >= int(total):
            return f"schedule.total = {total} iterations reached"
        return "total_steps reached" if self.step >= self.cfg.total_steps else ""

    def iterate(self) -> None:
        aside = dict.fromkeys(self.companions, 0.0)
        self.accompany("before", aside)
        watch, before, t0 = Stopwatch(), self.step, time.perf_counter()
        metrics = self.advance(watch)
        t2 = time.perf_counter()
        self.record.append_metrics(self.step, metrics, self.clock)
        self.check_finite(metrics)
        t3 = time.perf_counter()
        if self.cfg.eval.every and self.step >= self.progress.next_eval:
            self.evaluate()
        t4 = time.perf_counter()
        self.accompany("after", aside, metrics)
        t5 = time.perf_counter()
        if self.due_to_save():
            self.save()
        spent = {
            "collect_s": watch.seconds["collect"],
            "update_s": t2 - t0 - watch.seconds["collect"],
            "log_s": t3 - t2,
            "eval_s": t4 - t3,
            "save_s": time.perf_counter() - t5,
        }
        spent |= {f"{name}_s": seconds for name, seconds in aside.items()}
        self.note_time(self.step - before, spent, metrics)

    def advance(self, watch: Stopwatch) -> dict[str, float]:
        """One iteration of the algorithm -> its row; its clock must have moved, or nothing would ever be due."""
        before = self.step
        row = self.algo.iterate(self.state, watch)
        if self.step <= before:
            raise ContractError(f"an iteration must move the clock of {self.cfg.algo.name} ({self.clock}) on, but it"
                                f" stands at {self.step:,}; count in `iterate`, or declare another CLOCK")  # fmt: skip
        for name, value in row.items():
            if not isinstance(value, NUMBERS):
                raise ContractError(f"a metric of `iterate` must be one number, but {self.cfg.algo.name} gave `{name}`"
                                    f" as {value!r:.80}; use float(...)")  # fmt: skip
        spent = self.progress.eval_steps
        return row | {"data/eval_steps": spent, "data/sim_steps": self.state.counts.env_steps + spent}

    def accompany(self, verb: str, aside: dict[str, float], *facts: Any) -> None:
        """Let every companion act, and add its seconds to `aside`."""
        for name, companion in self.companions.items():
            began = time.perf_counter()
            getattr(companion, verb)(self, *facts)
            aside[name] += time.perf_counter() - began

    def due_to_save(self) -> bool:
        every = self.cfg.save.every
        return self.progress.last_eval == self.step or bool(every and self.step >= self.progress.next_save)

    def check_finite(self, metrics: dict[str, float]) -> None:
        """Stop at the first step whose parameters are not numbers: nothing that follows could mean anything."""
        if not math.isfinite(metrics.get("optim/param_norm", 0.0)):
            bad = [name for name, x in metrics.items() if not math.isfinite(x)]
            more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
            what = "`lr`" if hasattr(self.cfg.algo, "lr") else "the learning rate"  # not every algorithm calls it so
            rate = f"lower {what} (now {metrics['optim/lr']:g}) or " if "optim/lr" in metrics else ""
            seen = [name for name in ("data/reward_max", "optim/grad_norm_max") if name in metrics]
            raise DivergedError(
                f"parameters are not finite after step {self.step} (not finite: {', '.join(bad[-5:])}{more});"
                f" {rate}look at {' and '.join(seen) or 'its metrics'} before it"
            )

    def note_time(self, steps: int, spent: dict[str, float], metrics: dict[str, float]) -> None:
        elapsed, done = time.perf_counter() - self.began, self.step - self.began_step
        sps, mean = steps / max(sum(spent.values()), 1e-9), done / max(elapsed, 1e-9)
        usage = resource.getrusage(resource.RUSAGE_SELF)
        row = {f"time/{name}": x for name, x in spent.items()}
        row |= {
            "time/sps": sps,
            "time/sps_mean": mean,
            "time/elapsed_s": elapsed,
            "time/rss_mb": usage.ru_maxrss / 1024,
            "time/load": os.getloadavg()[0],
        }
        self.record.append_timing(self.step, row, self.clock)
        self.record.heartbeat()
        shown = {"step": self.step, "total_steps": self.cfg.total_steps} | self.forecast(sps)
        self.earned = metrics.get("return/mean_100", self.earned)
        self.screen.iteration(shown | {"return": self.earned, "metrics": metrics})
        self.note_screen()

    def note_screen(self) -> None:
        """A screen that takes nothing any more is told of once, in the record; training goes on."""
        lost = "" if isinstance(self.screen, Silent) else terminal.lost()
        if lost and not self.unseen:
            self.unseen = True
            self.record.append_event("warning", self.step, message=f"{lost}; training went on unseen")

    def forecast(self, sps: float) -> dict[str, float | None]:
        """Recent speed and the time left; not from the first row, which may have compiled kernels."""
        if self.pace is None:
            self.pace = 0.0
            return {"sps": sps, "eta_s": None}
        self.pace = 0.8 * self.pace + 0.2 * sps if self.pace else sps
        return {"sps": self.pace, "eta_s": max(self.cfg.total_steps - self.step, 0) / max(self.pace, 1e-9)}

    # ---- Judging

    def evaluate(self) -> None:
        played = self.evaluator.play(self.state.agent, self.step, self.progress)
        for row in played.rows:
            self.record.append_eval(row | {"axis": self.clock})
        self.warn_of_endless(played.open_ends, f"the evaluation at step {self.step:,}")
        best = note_best(self.progress, self.candidate(played))
        modes = {mode: {"mean": level.mean, "noise": level.se} for mode, level in played.modes.items()}
        self.screen.evaluation({"step": self.step, "n": self.cfg.eval.episodes, "modes": modes, "best": best})

    def candidate(self, played: Played) -> dict[str, Any]:
        """What is held against the best so far: the evaluation, never a number of training."""
        return self.evaluator.candidate(played, self.step)

    # ---- Warning

    def warn(self, about: str, message: str) -> None:
        """Say it on the screen and in the record, once; training goes on."""
        if about not in self.warned:
            self.warned.add(about)
            self.record.append_event("warning", self.step, message=message)
            self.screen.note(f"  warning: {message}")

    def warn_of_endless(self, played: Mapping[str, Any], whose: str) -> None:
        """An episode that never ends has no return: no curve, no best checkpoint, nothing to compare."""
        limit, known = self.env.spec.horizon, hasattr(self.cfg.env, "horizon")
        if not played.get("cut") or 0 < (limit or 0) <= STEP_CAP:  # the random policy is not waited for as long
            return
        has = f"a time limit of {limit:,} steps" if limit else "no time limit"
        remedy = "set a shorter one, e.g. env.horizon=1000" if limit else "set one, e.g. env.horizon=1000"
        remedy = remedy if known else "set `horizon` of its spec"
        self.warn("endless", f"{played['cut']} of {played['n']} episodes of {whose} were not over after"
                             f" {played['cap']:,} steps, and {self.env.spec.env} has {has}: what does not end has no"
                             f" return, and is missing from curves, `best` and comparisons; {remedy}")  # fmt: skip

    # ---- Keeping

    def save(self) -> None:
        root, p, cfg = self.folder / "checkpoints", self.progress, self.cfg.save
        p.next_save = (self.step // cfg.every + 1) * cfg.every if cfg.every else 0
        progress = asdict(p) | {"lengths": self.record.lengths(), "data": self.data.lengths()}
        tree = self.state.to_tree() | {WITH + name: c.to_tree() for name, c in self.companions.items()}
        name = checkpoint.save(root, self.step, tree, progress)
        checkpoint.point(root, "latest", name, self.step)
        point_to_best(root, p)
        checkpoint.prune(root, cfg.keep)
        if self.data.stores:  # of the checkpoints that a run may go on from; an older `best` only acts
            newest = checkpoint.steps(root)[-(cfg.keep or 1) :]
            self.data.forget([checkpoint.read_progress(root, each)["data"] for each in newest])
        self.record.append_event("checkpoint", self.step, folder=name)

    def end(self, status: str, why: str) -> Ending:
        elapsed = time.perf_counter() - self.began
        self.record.update_meta(status=status, why=why, step=self.step)
        run = self.folder
        judged = "best" if self.progress.best else "latest"  # without a return there is no best
        trust = "" if registry.is_ours(self.cfg.env.name, self.cfg.algo.name) else " --trust"  # code that it names
        then = {
            "finished": [f"relab eval {run} --checkpoint {judged} --episodes 100{trust}"],
            "interrupted": [f"relab resume {run}{trust}"],
            "failed": [],
        }
        sps = (self.step - self.began_step) / max(elapsed, 1e-9)
        facts = {"status": status, "why": why, "step": self.step, "elapsed_s": elapsed, "sps": sps, "folder": str(run)}
        facts["began_step"] = self.began_step
        self.screen.end(facts | {"best": self.progress.best, "next": then[status]})
        self.note_screen()
        self.record.close()
        return Ending(run, status, why, self.step, self.progress.best)


@contextlib.contextmanager
def failures_told(record: Record, step: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Whatever ends a run from within is written into its record, as far as there still is one, and raised."""
    try:
        yield
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt)
        signal = getattr(error, "signal", "SIGINT")
        what = f"{signal} received" if stopped else f"{type(error).__name__}: {error}"
        facts = {"signal": signal} if stopped else {"message": what}
        with contextlib.suppress(RecordError, OSError):  # the folder itself, or its disk, may be what failed
            record.append_event("interrupt" if stopped else "error", step(), **facts)
        with contextlib.suppress(RecordError, OSError):
            record.update_meta(status="interrupted" if stopped else "failed", why=what)
        record.close()
        raise
