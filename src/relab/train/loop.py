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
import shlex
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from relab.base import terminal
from relab.base.documents import Document, Tree
from relab.base.interrupts import Interrupts
from relab.base.jsonl import DiskFullError, RecordError
from relab.config import registry
from relab.config.run import RunConfig
from relab.config.views import flatten
from relab.record.run_folder import Record, read_config
from relab.train import checkpoint, telling
from relab.train.conformity import check_row
from relab.train.contract import Algorithm, ContractError, DivergedError, State, Stopwatch
from relab.train.envs.check_static import EnvError
from relab.train.evaluation import Evaluator, Played, Progress, note_best, point_to_best
from relab.train.profile import Profile
from relab.train.replay import Data
from relab.train.rollout import STEP_CAP
from relab.train.screen import EARNED, UNITS, Pace, Screen, Silent
from relab.train.telling import Within
from relab.train.usage import Usage


@dataclass(frozen=True)
class Ending:
    """How a call of train() or resume() ended."""

    folder: Path
    status: str  # finished | interrupted | failed
    why: str
    step: int
    best: Document | None = None


class Companion(Protocol):
    """What goes along with the loop and acts between its iterations; its state is part of every checkpoint.

    The run's setting of that name, unless it is null, brings it along (session.COMPANIONS); its seconds: time/NAME_s.
    """

    def before(self, trainer: Trainer) -> None: ...  # the next iteration has not begun: stages may change here

    def after(self, trainer: Trainer, metrics: dict[str, float]) -> None: ...  # its row is written: measure, decide

    def to_tree(self) -> Tree: ...  # arrays and plain values, one level deep

    def load(self, tree: Tree) -> None: ...


class Cut(Exception):  # noqa: N818 - somebody asked to stop, which is no error
    """Asked to stop; what was going on is done anew when the run goes on."""


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
    profile: Profile = field(default_factory=Profile)  # of some iterations, where it was asked for
    progress: Progress = field(default_factory=Progress)
    began: float = field(default_factory=time.perf_counter)
    began_step: int = 0
    earned: float | None = None  # mean return of recent episodes, for the screen
    earned_by: str = "return/mean_100"  # the metric that it is
    pace: Pace = field(default_factory=Pace)
    usage: Usage = field(default_factory=Usage)
    stopping: Callable[[], str] = str  # the signal that asks for it; empty while there is none
    took: float | None = None  # seconds of the last iteration
    last_steps: int = 0  # of the last iteration
    within: Within | None = None  # listens to the iteration that is going on
    forecast_said: bool = False
    unseen: bool = False  # nobody can read the screen, and the record says so
    warned: set[str] = field(default_factory=set)  # what this session has warned of
    shown: dict[str, float] = field(default_factory=dict)  # of the last row: what it is judged by, if no return
    album: Callable[[Trainer, int], None] | None = None  # keeps pictures, where that was asked for

    @property
    def step(self) -> int:
        return int(getattr(self.state.counts, self.clock))

    @property
    def folder(self) -> Path:
        return self.record.folder

    # ---- The loop

    def run(self) -> Ending:
        with failures_recorded(self.record, lambda: self.step), Interrupts(True, self.say_wait) as signals:
            try:
                status, why = self.loop(signals)
            except (DivergedError, EnvError) as error:
                self.record.append_event("error", self.step, message=str(error), repeats=True)
                status, why = "failed", str(error)
                self.record.update_meta(diverged=isinstance(error, DivergedError))
            finally:
                getattr(self.algo, "close", lambda state: None)(self.state)  # optional in the contract
        return self.end(status, why)

    def loop(self, signals: Interrupts) -> tuple[str, str]:
        """Train until something ends it: (status, why)."""
        self.stopping = lambda: signals.caught
        self.warn_of_endless(self.record.meta["spec"].get("random") or {}, "the random policy")
        try:
            why = self.train()
        except Cut:
            self.save()
            self.record.append_event("interrupt", self.step, signal=signals.caught)
            return "interrupted", f"{signals.caught} received"
        self.save()
        if why == self.over:
            self.record.append_event("finish", self.step)
        return "finished", why

    def train(self) -> str:
        """Until there is nothing left to do -> why; Cut where somebody asks to stop."""
        if self.progress.last_eval < 0:
            with self.usage.timed("eval_s"):
                self.evaluate()  # the level before any learning, and it may already be enough
            with self.usage.timed("save_s"):
                self.save()
        if self.progress.owed is not None:
            self.judge(self.progress.owed, {})
        while True:
            self.cut_short()
            if self.evaluator.reached_goal(self.step, self.progress):
                self.record.append_event("stop", self.step, reason="eval.stop_at", best=self.progress.best)
                return f"{self.evaluator.metric} reached eval.stop_at = {self.cfg.eval.stop_at:g}"
            if self.over:
                break
            self.iterate()
        if self.progress.last_eval != self.step:
            with self.usage.timed("eval_s"):
                self.evaluate()
        if self.step < self.cfg.total_steps:
            self.record.append_event("stop", self.step, reason=self.over)
        return self.over

    @property
    def over(self) -> str:
        """Why there is nothing left to train; empty while there is."""
        total = (self.cfg.schedule or {}).get("total")
        if total is not None and self.state.counts.iteration >= int(total):
            return f"schedule.total = {total} iterations reached"
        return "total_steps reached" if self.step >= self.cfg.total_steps else ""

    def iterate(self) -> None:
        spent = dict.fromkeys(("collect_s", "update_s", "log_s", "eval_s", "save_s"), 0.0)
        self.accompany("before", spent)
        before, learned = self.step, self.state.counts.updates
        watch, t0 = self.profile.watch(learned), time.perf_counter()
        watch.tell = self.within = Within(self)
        metrics = self.advance(watch)
        t1 = time.perf_counter()
        self.record.append_metrics(self.step, metrics)
        self.check_finite(metrics)
        spent |= watch.split(t1 - t0)
        spent["log_s"], self.took = time.perf_counter() - t1, t1 - t0
        self.note_profile(self.profile.note(self.folder))
        spent |= self.profile.spent()
        if self.album is not None:  # before the checkpoint: a run that is killed after it would never make it up
            self.album(self, before)
        self.judge(metrics, spent)
        self.note_time(self.step - before, self.state.counts.updates - learned, spent, metrics, watch.within)

    def note_profile(self, place: Path | None) -> None:
        if place is not None:
            self.record.append_event("profile", self.step, folder=place.name)
            self.screen.note(f"  profile written to {place}")

    def judge(self, metrics: dict[str, float], spent: dict[str, float]) -> None:
        """What follows a row: evaluate, let companions measure, keep. Cut short, a checkpoint says that it is owed."""
        t0 = time.perf_counter()
        if self.cfg.eval.every and self.step >= self.progress.next_eval:
            self.progress.owed = {name: float(x) for name, x in metrics.items()}
            self.evaluate()
        self.progress.owed = None
        spent["eval_s"] = time.perf_counter() - t0
        self.accompany("after", spent, metrics)
        t1 = time.perf_counter()
        if self.due_to_save():
            self.save()
        spent["save_s"] = time.perf_counter() - t1

    def advance(self, watch: Stopwatch) -> dict[str, float]:
        """One iteration of the algorithm -> its row; its clock must have moved, or nothing would ever be due."""
        before = self.step
        try:
            with np.errstate(over="ignore", invalid="ignore"):  # check_finite says it
                row = self.algo.iterate(self.state, watch)
        except (OSError, RecordError):  # a replay writes; where the whole folder is gone, that is what to say
            self.record.check_there()
            raise
        stands = getattr(self.state.counts, self.clock)
        if not isinstance(stands, (int, np.integer)) or self.step <= before:
            raise ContractError(f"an iteration must move the clock of {self.cfg.algo.name} ({self.clock}) on, but it"
                                f" stands at {stands:,}; count whole numbers in `iterate`, or declare another"
                                " CLOCK")  # fmt: skip
        check_row(row, self.cfg.algo.name)
        spent, counts = self.progress.eval_steps, self.state.counts
        return row | {"data/eval_steps": spent, "data/sim_steps": counts.env_steps + counts.rerun_steps + spent}

    def cut_short(self, *_: Any) -> None:
        if self.stopping():
            raise Cut

    def say_wait(self) -> None:
        """Somebody asked to stop, and would think that nobody had heard it; said once, at the signal or as soon as it
        takes long."""
        waits = self.took is None or self.took > telling.QUICK_S or (self.within is not None and self.within.is_long)
        if waits and "stopping" not in self.warned:
            self.warned.add("stopping")
            about = "which may compile kernels" if self.took is None else f"the last took {self.took:.0f} s"
            self.screen.note(f"  stopping once this iteration is over ({about}), then all is saved; Ctrl-C again ends"
                             " at once, and what came after the last checkpoint is lost")  # fmt: skip

    def accompany(self, verb: str, spent: dict[str, float], *facts: Any) -> None:
        """Let every companion act, and add its seconds to `spent`."""
        for name, companion in self.companions.items():
            began = time.perf_counter()
            getattr(companion, verb)(self, *facts)
            spent[f"{name}_s"] = spent.get(f"{name}_s", 0.0) + time.perf_counter() - began

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

    def check_weights(self, tree: Mapping[str, Any]) -> None:
        """Not every algorithm logs a norm; what is kept, or judged, must be numbers all the same."""
        arrays = {name: np.asarray(array) for name, array in checkpoint.split({"params": tree["params"]})[0].items()}
        bad = [name.removeprefix("params.") for name, x in arrays.items() if x.dtype.kind == "f" and not all_finite(x)]
        if bad:
            more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
            raise DivergedError(f"parameters are not finite at step {self.step} ({', '.join(bad[:5])}{more}); look at"
                                " its metrics before it")  # fmt: skip

    def note_time(
        self, steps: int, updates: int, spent: dict[str, float], metrics: dict[str, float], within: dict[str, float]
    ) -> None:
        elapsed, done = time.perf_counter() - self.began, self.step - self.began_step
        sps, mean = steps / max(sum(spent.values()), 1e-9), done / max(elapsed, 1e-9)
        row = {f"time/{name}": x for name, x in spent.items()}
        row |= self.usage.row(steps, spent, within, self.cfg.device)
        row |= {
            "time/sps": sps,
            "time/sps_mean": mean,
            "time/updates_per_s": updates / max(sum(spent.values()), 1e-9),
            "time/learned_per_s": updates * (self.cfg.minibatch or 0) / max(sum(spent.values()), 1e-9),
            "time/elapsed_s": elapsed,
            "time/load": os.getloadavg()[0],
        }
        self.record.append_timing(self.step, row)
        self.record.heartbeat()
        learning, self.last_steps = self.step > getattr(self.cfg.algo, "learning_starts", -1), steps
        self.pace.add(steps, sum(spent.values()), learning)
        eta = self.left() if learning else None
        shown: Document = {"step": self.step, "total_steps": self.cfg.total_steps, "axis": self.clock, "eta_s": eta}
        shown |= {"sps": self.pace.sps or sps, "episodes": self.state.counts.episodes}
        by = next((name for name in EARNED if name in metrics), self.earned_by)
        self.earned, self.earned_by = metrics.get(by, self.earned), by
        self.shown = instead = {name: metrics[name] for name in getattr(self.algo, "SHOWN", ()) if name in metrics}
        shown |= {"shown": instead} if instead else {}
        self.screen.iteration(shown | {"return": self.earned, "earned": by, "metrics": metrics})
        self.note_screen()

    def left(self) -> float | None:
        """Seconds; unknown before there was a row whose speed is told. A schedule may end the run before its steps."""
        ahead, total = max(self.cfg.total_steps - self.step, 0), (self.cfg.schedule or {}).get("total")
        if total is not None:
            ahead = min(ahead, max(int(total) - self.state.counts.iteration, 0) * self.last_steps)
        return ahead / max(self.pace.sps, 1e-9) if self.pace.sps else None

    def note_screen(self) -> None:
        """A screen that takes nothing any more is told of once, in the record; training goes on."""
        lost = "" if isinstance(self.screen, Silent) else terminal.lost()
        if lost and not self.unseen:
            self.unseen = True
            self.record.append_event("warning", self.step, message=f"{lost}; training went on unseen")

    # ---- Judging

    def evaluate(self) -> None:
        self.check_weights(self.state.to_tree())
        played = self.evaluator.play(self.state.agent, self.step, self.progress, self.cut_short)
        for row in played.rows:
            self.record.append_eval(row)
        self.warn_of_endless(played.open_ends, f"the evaluation at step {self.step:,}")
        stays = getattr(self.algo, "POLICY_STAYS", False)  # optional in the contract
        best = not stays and note_best(self.progress, self.candidate(played))
        modes = {mode: {"mean": level.mean, "noise": level.se} for mode, level in played.modes.items()}
        facts = {"step": self.step, "n": self.cfg.eval.episodes, "outcome": self.evaluator.outcome}
        self.screen.evaluation(facts | {"modes": modes, "best": best} | ({"stays": True} if stays else {}))

    def candidate(self, played: Played) -> Document:
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
        progress["data_sums"] = self.data.sums()
        tree = self.state.to_tree()
        self.check_weights(tree)
        tree |= {WITH + name: c.to_tree() for name, c in self.companions.items()}
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
        self.note_profile(self.profile.finish(self.folder))
        counts = self.state.counts
        steps = counts.env_steps + counts.rerun_steps + self.progress.eval_steps  # with the last evaluation
        self.record.update_meta(status=status, why=why, step=self.step, sim_steps=steps)
        run = self.folder
        judged = "best" if self.progress.best else "latest"  # without a return there is no best
        trust = registry.trust_word(self.cfg.env.name, self.cfg.algo.name)
        judge = f"relab eval {run} --checkpoint {judged} --episodes 100{trust}"
        use = getattr(self.algo, "then", lambda folder, cfg: judge)  # optional in the contract
        then = {
            "finished": [use(run, self.cfg)],
            "interrupted": [f"relab resume {run}{trust}"],
            "failed": [],
        }
        sps = (self.step - self.began_step) / max(elapsed, 1e-9)
        facts = {"status": status, "why": why, "step": self.step, "elapsed_s": elapsed, "sps": sps, "folder": str(run)}
        self.usage.unit = UNITS[self.clock]
        facts |= {"began_step": self.began_step, "axis": self.clock, "usage": self.usage.line(), "shown": self.shown}
        self.screen.end(facts | {"best": self.progress.best, "next": then[status]})
        self.note_screen()
        self.record.close()
        return Ending(run, status, why, self.step, self.progress.best)


def trusting(message: str, folder: Path) -> str:
    """The command that goes on with a run, with the word that it needs where its record names code."""
    flat = flatten(read_config(folder))
    command = f"relab resume {shlex.quote(str(folder))}"
    trust = registry.trust_word(flat.get("env.name"), flat.get("algo.name"))
    return message.replace(f"`{command}`", f"`{command}{trust}`")


def all_finite(array: np.ndarray) -> bool:
    return bool(np.isfinite(array).all())


@contextlib.contextmanager
def failures_recorded(record: Record, step: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Whatever ends a run from within is written into its record, as far as there still is one, and raised."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, DiskFullError):
            error.args = (trusting(str(error), record.folder),)
        stopped = isinstance(error, KeyboardInterrupt)
        signal = getattr(error, "signal", "SIGINT")
        what = f"{signal} received" if stopped else f"{type(error).__name__}: {error}"
        facts = {"signal": signal} if stopped else {"message": what}
        with contextlib.suppress(RecordError, OSError):  # the folder itself, or its disk, may be what failed
            record.append_event("interrupt" if stopped else "error", step(), **facts)
        with contextlib.suppress(RecordError, OSError):
            record.last_words("interrupted" if stopped else "failed", what)
        record.close()
        raise
