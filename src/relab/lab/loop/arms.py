"""Which runs does a loop have, how are missing ones made, and what did they come to?

loops/NAME/loop.yaml, lock.json, journal      what was asked, the locked evaluator, what happened
loops/NAME/variants/p003.yaml                       the whole resolved settings of each config
loops/NAME/proposals/p003.yaml                      each proposal as a next_config.yaml against a run of its parent
loops/NAME/runs/p003-s3000                          one run folder per config and seed
loops/NAME/begun.json                               which runs the loop has begun itself
loops/NAME/hidden/                                  what the deciding evaluation gave
loops/NAME/state/, stopped/, logs/                  as an experiment has them
loops/NAME/notes/, LOG.md, report.md, best.json, latest.json

A run of relab's trainer starts from its proposal's file, so that it names its parent, fails if the parent had other
values than the proposal says, and carries the prediction that it will be scored by.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from relab.base.documents import Settings
from relab.base.enclosed import own, subfolder
from relab.base.errors import UserError
from relab.base.interrupts import Interrupted, Interrupts
from relab.base.jsonl import RecordError
from relab.base.processes import RELAB
from relab.config import registry
from relab.config.base import require
from relab.lab.execute import engines, local
from relab.lab.experiment import cells as runs
from relab.lab.experiment import watcher
from relab.lab.experiment.cells import Cell
from relab.lab.experiment.conclude import check_metric, outcome
from relab.lab.experiment.question import Experiment
from relab.lab.loop import audit, begun, deciding, lock, variants
from relab.lab.loop.allowance import Allowance
from relab.lab.loop.deciding import Number
from relab.lab.loop.journal import Journal
from relab.lab.loop.keys import Key
from relab.lab.loop.plan import BASE, Loop
from relab.record.history import History
from relab.record.run_folder import clear_begun
from relab.stats import keeping

LOST = "resumed-run-lost-its-start"
TAMPERED = "tampered"  # folder of marks: runs that were made while the evaluator was other
POLL_S = 0.1
Tell = Callable[[str], None]


@dataclass
class Arms:
    """The configs of a loop and their runs."""

    plan: Loop
    folder: Path
    journal: Journal
    workers: int
    tell: Tell = print
    watch: Callable[[int, int], None] | None = None
    time: Allowance = field(default_factory=Allowance)  # of this call
    base: str = ""  # the hash of the base's settings as the loop's file has them; empty where nobody worked them out
    began: set[str] | None = None  # runs that this loop has begun; None where nobody wrote them down
    known: dict[str, Number] = field(default_factory=dict)  # run -> what it came to where it counts
    logged: dict[str, float] = field(default_factory=dict)  # run -> what it logged itself

    # ---- What there is

    def settings(self, config: str) -> Settings:
        """The flat resolved settings of a config."""
        return variants.read(self.folder, config, variants.known(self.journal.state, self.base))

    @property
    def experiment(self) -> Experiment:
        names = [path.stem for path in sorted((self.folder / "variants").glob("*.yaml"))]
        if not self.plan.command:
            return self.plan.experiment({name: {} for name in names})
        budget = ("budget",) if self.plan.budget is not None else ()
        return self.plan.experiment({name: {k: v for k, v in self.settings(name).items() if k not in budget}
                                     for name in names})  # fmt: skip

    @property
    def trust(self) -> bool:
        """Code that the loop's own file names is its asker's word."""
        flat = self.settings(BASE)
        return (
            bool(registry.trust_word(flat.get("env.name"), flat.get("algo.name"))) if not self.plan.command else False
        )

    @property
    def key(self) -> Key:
        """What the loop seals with; whoever makes one of its runs alone has none."""
        assert self.journal.key is not None
        return self.journal.key

    def cell(self, config: str, seed: int) -> Cell:
        return Cell(config, seed, self.folder / "runs" / f"{config}-s{seed}")

    def cells(self, config: str, seeds: Sequence[int]) -> list[Cell]:
        return [self.cell(config, seed) for seed in seeds]

    # ---- Making them

    def check(self) -> None:
        """What decides is what the loop began with; TamperedError where it is not."""
        lock.check(self.plan, self.folder, self.journal.state.lock)
        variants.check(self.folder, variants.known(self.journal.state, self.base))

    def run(self, cells: Sequence[Cell]) -> None:
        """All of these, finished and judged; what failed has no number. Raises Interrupted, Tampered, OutOfTime."""
        self.set_aside(cells)
        self.check()
        self.wait_for(cells)
        at_once = self.plan.execute.at_once or self.workers
        while todo := [cell for cell in cells if not runs.settled(cell) and not self.gave_up(cell)]:
            self.make(part := self.time.fitting(todo, [*self.complete(), *cells], at_once))
            if not self.set_aside(cells) and len(part) == len(todo):
                break
        self.check()
        began = time.monotonic()
        judged = deciding.judge(self.plan, self.folder, cells, self.key, self.workers, self.trust)
        self.check()
        self.time.judged(judged, time.monotonic() - began)
        self.note_flaws(cells)

    def make(self, todo: Sequence[Cell]) -> None:
        """Run these, all of which are missing."""
        e = self.experiment
        try:
            jobs = [self.guarded(runs.job(e, cell, self.folder), cell) for cell in todo]
            if not self.plan.execute.here:
                self.begin(todo)
            at = engines.of(self.plan.execute, self.folder)
            done = local.run(jobs, self.workers, self.watch, self.look(todo), self.plan.look_every, at,
                             self.plan.execute.env)  # fmt: skip
            self.check()
        except lock.TamperedError:
            self.mark(todo)
            raise
        if done.interrupted:
            raise Interrupted
        self.note_failures([cell for cell in todo if cell.folder.name in done.failed])

    def wait_for(self, cells: Sequence[Cell]) -> None:
        """Runs of a call that was killed go on without it: they come to their end, and are not begun a second time."""
        left = [cell for cell in cells if self.plan.execute.here and not runs.settled(cell) and runs.busy(cell)]
        if left:  # elsewhere the engine is asked
            self.tell(f"  {', '.join(cell.folder.name for cell in left)}: still running since an earlier call, which"
                      " was killed; waiting for the end")  # fmt: skip
        with Interrupts() as stop:
            while any(map(runs.busy, left)):
                if stop.caught:
                    raise Interrupted
                time.sleep(POLL_S)

    def run_one(self, name: str) -> tuple[Cell, local.Result]:
        """One run by its name, on this machine, for a loop that goes on elsewhere; nothing but the run is written."""
        config, _, seed = name.rpartition("-s")
        known = config in self.experiment.variants and seed.isdecimal()
        require(known, f"`--only` must be a run of {self.folder}, such as {BASE}-s0, but is {name!r}")
        cell = self.cell(config, int(seed))
        job = self.guarded(runs.job(self.experiment, cell, self.folder), cell)
        return cell, local.run([job], 1)

    def look(self, cells: Sequence[Cell]) -> local.Look | None:
        """Who looks at running runs: for what the file says, and for those with weights whether they lose them."""
        started = any(self.settings(config).get("start_from") for config in {cell.variant for cell in cells})
        stop_on = (*self.plan.stop_on, *([LOST] if started else []))
        return watcher.Watcher(stop_on, {cell.folder.name: cell.folder for cell in cells}).look if stop_on else None

    def guarded(self, job: local.Job, cell: Cell) -> local.Job:
        """The same job, with the evaluator looked at before it starts and after it ends."""
        before, after = job.command, job.ended
        if not self.plan.command:
            before = partial(self.command, cell)

        def start() -> list[str]:
            self.check()
            self.begin([cell])
            return before()

        def ended(code: int, seconds: float, stopped: bool) -> None:
            if after is not None:
                after(code, seconds, stopped)
            self.check()

        job.command, job.ended = start, ended
        return job

    def command(self, cell: Cell) -> list[str]:
        """Train the cell from its proposal, or resume it where an earlier try left a record."""
        if cell.variant == BASE or runs.status(cell) is not None:
            return runs.command(cell, self.folder, self.plan.question)
        clear_begun(cell.folder)
        start = self.settings(cell.variant).get("start_from")
        words = [str(self.folder / "proposals" / f"{cell.variant}.yaml"), f"seed={cell.seed}",
                 *([f"start_from={start}"] if start else [])]  # fmt: skip
        where = ["--runs", str(cell.folder.parent), "--name", cell.folder.name, "--quiet"]
        return [*RELAB, "train", *words, *where, *(["--trust"] if self.trust else [])]

    def gave_up(self, cell: Cell) -> bool:
        """Whether it failed before for a reason that would come again."""
        return any(row["run"] == cell.folder.name and row["kind"] == "failed" for row in self.journal.state.void)

    def note_failures(self, cells: Sequence[Cell]) -> None:
        for cell in cells:
            self.journal.add("void", run=cell.folder.name, kind="failed", why=runs.why_failed(cell)[:500])

    def note_flaws(self, cells: Sequence[Cell]) -> None:
        """Runs that do not count are written down once, with the reason; so are those that lost their start."""
        known = {row["run"] for row in [*self.journal.state.void, *self.journal.state.restored]}
        for cell in cells:
            name = cell.folder.name
            if name in known or not runs.settled(cell):
                continue
            if watcher.stopped(cell.folder).get("slug") == LOST:
                self.restore(cell)
            flaws = audit.flaws(self.plan, cell, self.read(cell), self.settings(BASE), self.number(cell))
            if flaws:
                self.journal.add("void", run=name, kind="audit", why=flaws[0])
                self.known.pop(name, None)
                self.tell(f"  {name} does not count: {flaws[0]}")

    def restore(self, cell: Cell) -> None:
        """The start of a run that lost it is what the next one begins with again; the run does not take its place."""
        start = str(self.settings(cell.variant).get("start_from") or "fresh weights")
        self.journal.add("restored", run=cell.folder.name, start=start, why=watcher.stopped(cell.folder).get("message"))
        self.tell(f"  {cell.folder.name} lost its start and was stopped; {start} stays the start")

    # ---- A tampered evaluator

    def mark(self, cells: Sequence[Cell]) -> None:
        subfolder(self.folder, TAMPERED)
        for cell in cells:
            if cell.folder.exists():
                own(self.folder, f"{TAMPERED}/{cell.folder.name}").touch()

    def set_aside(self, cells: Sequence[Cell]) -> int:
        """Runs that were made while the evaluator was other, or that this loop has not begun, are moved away, and run
        again; how many there were."""
        moved = 0
        for cell in cells:
            name = cell.folder.name
            mark = own(self.folder, f"{TAMPERED}/{name}")
            planted = self.began is not None and name not in self.began and begun.there(self.folder, name)
            if not (mark.is_file() or planted):
                continue
            place = own(subfolder(self.folder, "void"), f"{name}-{len(list((self.folder / 'void').glob(name + '-*')))}")
            if cell.folder.exists():
                shutil.move(cell.folder, place)
            for other in begun.places(name):
                own(self.folder, other).unlink(missing_ok=True)
            mark.unlink(missing_ok=True)
            self.known.pop(name, None)
            self.logged.pop(name, None)
            why = "was there before this loop began it" if planted else "was made while the evaluator was other"
            self.tell(f"  {name} {why}: it is kept in {place}, and runs again")
            moved += 1
        return moved

    def begin(self, cells: Sequence[Cell]) -> None:
        """These start now; what lies there of one that never did is none of the loop's."""
        if self.began is None:
            return
        new = [cell for cell in cells if cell.folder.name not in self.began]
        self.set_aside(new)
        if new:
            self.began |= {cell.folder.name for cell in new}
            begun.write(self.folder, self.key, self.began)

    # ---- What they came to

    def read(self, cell: Cell) -> History:
        return runs.read(cell)

    def number(self, cell: Cell) -> Number:
        """Where it counts, in the metric's own sign."""
        name = cell.folder.name
        if name not in self.known:
            self.known[name] = self._number(cell)
        return self.known[name]

    def _number(self, cell: Cell) -> Number:
        gone = next((row for row in self.journal.state.void if row["run"] == cell.folder.name), None)
        if gone is not None:
            return Number(math.nan, 0, str(gone["why"]))
        if not runs.settled(cell):
            return Number(math.nan, 0, f"it is {runs.status(cell) or 'not there'}")
        if self.plan.decides != "record":
            return deciding.number(self.plan, self.folder, cell.folder.name, self.key)
        counted = outcome(self.experiment, self.read(cell))
        return Number(counted.value, counted.episodes, counted.note)

    def values(self, cells: Sequence[Cell]) -> np.ndarray:
        """Larger is better; a run without a number counts as the worst of all that are known."""
        x = self.plan.sign * np.array([self.number(cell).value for cell in cells], np.float64)
        return self._filled(x, [self.number(cell).value for cell in self.complete()])

    def open_values(self, cells: Sequence[Cell]) -> np.ndarray:
        """The same by what the runs logged themselves: all that a proposal may learn from."""
        x = self.plan.sign * np.array([self._logged(cell) for cell in cells], np.float64)
        return self._filled(x, [*self.logged.values()])

    def _logged(self, cell: Cell) -> float:
        name = cell.folder.name
        if name not in self.logged:
            try:
                run = self.read(cell) if runs.settled(cell) else None
            except (RecordError, UserError, OSError):
                run = None
            self.logged[name] = math.nan if run is None else outcome(self.experiment, run).value
        return self.logged[name]

    def _filled(self, x: np.ndarray, known: Sequence[float]) -> np.ndarray:
        every = self.plan.sign * np.array([*known], np.float64)
        good = np.concatenate([x[np.isfinite(x)], every[np.isfinite(every)]])
        return np.where(np.isfinite(x), x, good.min()) if len(good) else x

    def complete(self) -> list[Cell]:
        return [self.cell(*pair) for group in self.journal.state.cells().values() for pair in group]

    def spread(self, *more: Sequence[Cell]) -> keeping.Spread:
        """The noise between seeds, of every run there is, dropped ones too."""
        groups = [[self.cell(*pair) for pair in group] for group in self.journal.state.cells().values()]
        known = {cell.folder.name for group in groups for cell in group}
        groups += [[cell for cell in group if cell.folder.name not in known] for group in more]
        return keeping.pooled([np.array([self.number(cell).value for cell in group]) for group in groups])

    def bounds(self) -> tuple[float, float]:
        """What the metric can be, in the sign in which larger is better."""
        first = next((cell for cell in self.complete() if runs.settled(cell)), None)
        low, high = audit.bounds(self.plan, self.read(first) if first is not None else None)
        return (low, high) if self.plan.sign > 0 else (-high, -low)

    def check_metric(self, cells: Sequence[Cell]) -> None:
        """A metric that no run has is a mistake in the file, said after the first runs and not after all of them."""
        check_metric(self.experiment, [self.read(cell) for cell in cells if runs.settled(cell)])
