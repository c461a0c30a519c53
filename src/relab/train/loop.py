"""How does a config become a run? The only loop that touches disk, clock or screen.

    iterate -> metrics row -> (evaluate) -> (companions) -> (checkpoint)

until total_steps of the algorithm's clock, eval.stop_at, or a signal. Companions go along with the loop: probes,
curricula, gates. What an algorithm is to the loop stands in contract.py.

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

from relab.base import interrupts, terminal
from relab.base.enclosed import subfolder
from relab.base.interrupts import Interrupts, stops_say
from relab.base.jsonl import RecordError
from relab.config import layers, registry
from relab.config.run import RunConfig
from relab.record.provenance import usable_cores
from relab.record.run_folder import DETERMINISTIC, Record, clear_begun
from relab.schedules.sources import check_record
from relab.train import checkpoint
from relab.train.baseline import random_baseline
from relab.train.contract import Algorithm, ContractError, Setup, State, Stopwatch, clock_of
from relab.train.envs.check_static import EnvError
from relab.train.evaluation import Evaluator, Played, Progress, note_best, point_to_best, read_progress
from relab.train.kernels import jit
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

    The run's setting of that name, unless it is null, brings it along (COMPANIONS). Its seconds are time/NAME_s.
    """

    def before(self, trainer: Trainer) -> None: ...  # the next iteration has not begun: stages may change here

    def after(self, trainer: Trainer, metrics: dict[str, float]) -> None: ...  # its row is written: measure, decide

    def to_tree(self) -> dict[str, Any]: ...  # arrays and plain values, one level deep

    def load(self, tree: dict[str, Any]) -> None: ...


WITH = "with_"  # a companion's key in a checkpoint: with_NAME
COMPANIONS = {  # setting of the run -> "module:make", called with config, environment and whether the run is new
    "probes": "relab.train.probes.companion:make",
    "schedule": "relab.train.steering:make",
}


class ExitError(Exception):
    """Code of the environment or the algorithm asked the whole program to end, which no part of a run may do."""


class DivergedError(Exception):
    """Parameters or losses are no longer numbers; nothing after this could mean anything."""


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
        spent = self.progress.eval_steps
        return row | {"data/eval_steps": spent, "data/sim_steps": self.state.counts.env_steps + spent}

    def accompany(self, verb: str, aside: dict[str, float], *given: Any) -> None:
        """Let every companion act, and add its seconds to `aside`."""
        for name, companion in self.companions.items():
            began = time.perf_counter()
            getattr(companion, verb)(self, *given)
            aside[name] += time.perf_counter() - began

    def due_to_save(self) -> bool:
        every = self.cfg.save.every
        return self.progress.last_eval == self.step or bool(every and self.step >= self.progress.next_save)

    def check_finite(self, metrics: dict[str, float]) -> None:
        """Stop at the first step whose parameters are not numbers: nothing that follows could mean anything."""
        if not math.isfinite(metrics.get("optim/param_norm", 0.0)):
            bad = [name for name, x in metrics.items() if not math.isfinite(x)]
            more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
            raise DivergedError(
                f"parameters are not finite after step {self.step} (not finite: {', '.join(bad[-5:])}{more});"
                f" lower `lr` (now {metrics.get('optim/lr', math.nan):g}) or"
                " look at data/reward_max and optim/grad_norm_max before it"
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
        then = {
            "finished": [f"relab eval {run} --checkpoint {judged} --episodes 100"],
            "interrupted": [f"relab resume {run}"],
            "failed": [],
        }
        sps = (self.step - self.began_step) / max(elapsed, 1e-9)
        facts = {"status": status, "why": why, "step": self.step, "elapsed_s": elapsed, "sps": sps, "folder": str(run)}
        facts["began_step"] = self.began_step
        self.screen.end(facts | {"best": self.progress.best, "next": then[status]})
        self.note_screen()
        self.record.close()
        return Ending(run, status, why, self.step, self.progress.best)


# ---- Starting and going on


@contextlib.contextmanager
def failures_told(record: Record, step: Callable[[], int] = lambda: 0) -> Iterator[None]:
    """Whatever ends a run from within is written into its record, as far as there still is one, and raised."""
    try:
        yield
    except BaseException as error:
        stopped = isinstance(error, KeyboardInterrupt)
        signal = getattr(error, "signal", "SIGINT")
        what = f"{signal} received" if stopped else f"{type(error).__name__}: {error}"
        told = {"signal": signal} if stopped else {"message": what}
        with contextlib.suppress(RecordError, OSError):  # the folder itself, or its disk, may be what failed
            record.append_event("interrupt" if stopped else "error", step(), **told)
        with contextlib.suppress(RecordError, OSError):
            record.update_meta(status="interrupted" if stopped else "failed", why=what)
        record.close()
        raise


@contextlib.contextmanager
def exits_are_errors() -> Iterator[None]:
    """An environment that calls sys.exit() would end the whole program, with code 0 as if all had gone well."""
    try:
        yield
    except SystemExit as error:
        raise ExitError(f"the run failed: its environment or its algorithm raised {error!r}, which would have ended the"
                        " whole program; let it raise another error") from error  # fmt: skip


def make_env(cfg: RunConfig) -> Any:
    return registry.env_class(cfg.env.name)(cfg.env)


def start(
    cfg: RunConfig,
    folder: Path,
    provenance: dict[str, str],
    meta: dict[str, Any],
    screen: Screen | None = None,
    env: Any = None,
) -> Ending:
    """Train a new run in an empty folder until it ends. `meta`: command, commit, machine and such, as far as known."""
    with exits_are_errors(), stops_say(lambda: what_is_left(folder)):
        return begin(cfg, folder, provenance, meta, screen or Silent(), env or make_env(cfg)).run()


def begin(
    cfg: RunConfig, folder: Path, provenance: dict[str, str], meta: dict[str, Any], screen: Screen, env: Any
) -> Trainer:
    """A run before its first step, with its record."""
    spec = env.spec.to_dict() | {"random": random_baseline(env, layers.to_dict(cfg)["env"])}
    facts = {"seed": cfg.seed, "threads": cfg.threads, "spec": spec, "deterministic": cfg.device == "cpu"}
    facts["load"] = {"one_minute": os.getloadavg()[0], "cores": usable_cores()}
    record = Record.create(folder, layers.to_dict(cfg), provenance, facts | meta)
    with failures_told(record):
        record.append_event("start", 0, pid=os.getpid())
        screen.start(head_facts(cfg, record))
        trainer = prepare(cfg, record, env, screen)
        note_beginning(trainer)
    return trainer


def resume(folder: Path, screen: Screen | None = None, trust: bool = False) -> Ending:
    """Go on from the last complete checkpoint, to the same bytes that an uninterrupted run would have written.

    `trust`: code that the record names may be imported, and files be opened.
    """
    with exits_are_errors(), stops_say(lambda: what_is_left(folder)):
        record = Record.open(folder, repair=False)
        if record.meta["status"] == "finished":
            record.close()
            step = int(record.meta.get("step", 0))
            return Ending(folder, "finished", "nothing to do, the run is complete", step)
        return go_on(record, screen or Silent(), trust).run()


def go_on(record: Record, screen: Screen, trust: bool) -> Trainer:
    """A run where it stood. Whatever fails before that, the attempt leaves the record as it was."""
    try:
        cfg = layers.from_record(record.folder, trust)
        fresh = checkpoint.last(record.folder / "checkpoints") is None
        if fresh and cfg.schedule is not None and not trust:
            check_record(cfg.schedule, os.fspath(record.folder))
        trainer = prepare(cfg, record, make_env(cfg), screen, fresh=fresh)
        name, lengths = stand(trainer)
    except BaseException:
        record.close()
        raise
    with failures_told(record, lambda: trainer.step):
        record.repair()
        step = cut_back(trainer, name, lengths)
        if step == 0:
            note_beginning(trainer)  # a run that was killed early may not have come to it
        record.update_meta(status="running", why=None)
        record.append_event("resume", step, pid=os.getpid())
        screen.start(head_facts(cfg, record))
        screen.note(f"  resumed at step {step:,}")
    return trainer


def what_is_left(folder: Path) -> str:
    """For whoever pressed Ctrl-C; what has not become a run is cleared away."""
    clear_begun(folder)
    return interrupts.go_on(folder) if (folder / "meta.json").exists() else interrupts.NO_RUN


def note_beginning(trainer: Trainer) -> None:
    """Fingerprints of the weights before any learning: runs that begin alike have the same."""
    params = trainer.state.to_tree()["params"]
    parts = {name: checkpoint.fingerprint({name: each}) for name, each in params.items()}
    trainer.record.update_meta(init=checkpoint.fingerprint(params), init_parts=parts)


def stand(trainer: Trainer) -> tuple[str | None, dict[str, int]]:
    """Put the last checkpoint into the trainer -> its name and the lengths of the record's files then; writes nothing.

    Where there is none yet the run begins anew.
    """
    root = trainer.folder / "checkpoints"
    name = checkpoint.last(root)
    lengths = dict.fromkeys(DETERMINISTIC, 0) if name is None else take(trainer, root, name)
    trainer.record.check_cuts(lengths)
    return name, lengths


def cut_back(trainer: Trainer, name: str | None, lengths: dict[str, int]) -> int:
    """Make the record that of the checkpoint (None: of a run that has none yet); returns the step."""
    root = trainer.folder / "checkpoints"
    step = -1  # before the first checkpoint, which is that of step 0
    if name is not None:
        step = trainer.step
        checkpoint.point(root, "latest", name, step)
        point_to_best(root, trainer.progress)
    checkpoint.clean(root, step)
    trainer.record.truncate(lengths)
    trainer.data.cut()
    trainer.began_step = max(step, 0)
    return trainer.began_step


def take(trainer: Trainer, root: Path, name: str) -> dict[str, int]:
    """Put a checkpoint into the trainer -> lengths of the record's files at that step."""
    tree, progress = checkpoint.load(root, name)
    with checkpoint.taking(root / name):
        lengths = progress.pop("lengths")
        checkpoint.check_like(lengths, dict.fromkeys(DETERMINISTIC, 0), "lengths.")
        trainer.data.restore(progress.pop("data", {}))
        for companion_name, companion in trainer.companions.items():
            companion.load(tree.pop(WITH + companion_name))
        tree["counts"] = {"updates": 0, "episodes": 0} | tree["counts"]  # which not every algorithm used to count
        checkpoint.check_like(tree, checkpoint.split(trainer.state.to_tree())[1])
        trainer.state.load(tree)
        trainer.progress = read_progress(progress)
        if name != f"step-{trainer.step:012d}":
            raise ValueError(f"its `counts` are those of step {trainer.step}")
    return lengths


def check_device(device: str) -> None:
    """Is the device there? Asked before a run folder is made."""
    import torch

    kind = device.partition(":")[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    layers.require(there[kind], f"`device={device}` must be usable by torch, but {kind} is not available here; try cpu")


def prepare(cfg: RunConfig, record: Record, env: Any, screen: Screen, fresh: bool = True) -> Trainer:
    """Import the algorithm (and with it torch), lay out the state.

    `fresh`: no checkpoint follows.
    """
    algo = registry.algo_module(cfg.algo.name)
    clock = clock_of(algo, cfg.algo.name)
    jit.set_threads(cfg.threads)
    if note := getattr(algo, "first_time", str)():
        screen.note(f"  {note}")
    companions = companions_of(cfg, env, fresh)  # first: a schedule sets the stage that the worlds begin in
    data = Data(record.folder)
    state = algo.init(setup_of(cfg, env, data))
    subfolder(record.folder, "checkpoints")
    apart = make_env(cfg) if cfg.schedule is not None else env  # a schedule changes the environment of training
    return Trainer(cfg, record, env, algo, state, screen, Evaluator(cfg, apart), clock, data, companions)


def setup_of(cfg: RunConfig, env: Any, data: Data | None = None) -> Setup:
    return Setup(env, cfg.algo, cfg.seed, cfg.total_steps, cfg.device, cfg.threads, data or Data())


def companions_of(cfg: RunConfig, env: Any, fresh: bool = True) -> dict[str, Companion]:
    asked = {name: make for name, make in COMPANIONS.items() if getattr(cfg, name, None) is not None}
    return {name: registry.load(make)(cfg, env, fresh) for name, make in asked.items()}


def derived(cfg: RunConfig) -> dict[str, Any]:
    """The numbers that follow from the config, without those that say the same thing again per world."""
    numbers = layers.derived(cfg)
    short = {name.rpartition(".")[2]: value for name, value in reversed(numbers.items())}  # the run's own win
    same = ("actors", short["agents"]), ("agents", 1)  # the run's `agents` are the environment's actors
    return {name: short[name] for name in reversed(short) if (name, short[name]) not in same}


def head_facts(cfg: RunConfig, record: Record) -> dict[str, Any]:
    meta = record.meta
    facts = {
        "name": record.folder.name,
        "id": meta["id"],
        "folder": str(record.folder),
        "algo": cfg.algo.name,
        "env": cfg.env.name,
    }
    facts |= {"seed": cfg.seed, "config_hash": meta["config_hash"], "derived": derived(cfg)}
    return facts | {"random": meta["spec"].get("random")}
