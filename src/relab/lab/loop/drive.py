"""How does a loop get done? Propose, check, run, judge, keep or drop, score the prediction, propose again.

Every step is a function of the journal and of the runs' folders. Killed anywhere and called again, it goes on where it
was: a stage whose runs are there is not run again, and an event that was not written down is worked out to the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from relab.advise import tried
from relab.advise.proposal import Cost, diff_text
from relab.base.documents import Document
from relab.base.enclosed import own
from relab.base.jsonl import write_atomic
from relab.base.text import duration, number, plural
from relab.config import layers
from relab.config.base import require
from relab.lab.execute import local
from relab.lab.experiment import cells as runs
from relab.lab.experiment.cells import Cell, check_own, check_same
from relab.lab.loop import begun, deciding, dropped, lock, sampler, start, variants
from relab.lab.loop import journal as journals
from relab.lab.loop import plan as plans
from relab.lab.loop.allowance import SAMPLE, OutOfTime
from relab.lab.loop.arms import Arms, Tell
from relab.lab.loop.foresee import scored
from relab.lab.loop.journal import Journal, State, Trial
from relab.lab.loop.plan import BASE, Loop
from relab.lab.loop.proposing import Proposer
from relab.lab.sweep.cost import seconds_of
from relab.stats import keeping

EXPERIMENTS = Path("experiments")  # whose answers are heeded: what one has answered no is not tried again


@dataclass
class Looping:
    """A loop that is being carried out."""

    arms: Arms
    proposer: Proposer
    written: Callable[[Looping, Trial], None] = lambda loop, trial: None  # the write-up of a proposal that is done

    @property
    def plan(self) -> Loop:
        return self.arms.plan

    @property
    def journal(self) -> Journal:
        return self.arms.journal

    @property
    def state(self) -> State:
        return self.arms.journal.state

    # ---- One call

    def go(self, proposals: int, seconds: float | None = None) -> str:
        """So many proposals, within so much time; why it ended. Raises Interrupted, TamperedError, ForgedError."""
        self.arms.time.seconds = seconds
        try:
            return self.ended(self.do(proposals))
        except OutOfTime as why:
            return self.ended(str(why))

    def do(self, proposals: int) -> str:
        """What is open, then so many proposals; why it ended."""
        if self.state.noise is None:
            self.measure_noise()
        opened = self.state.open
        if opened is not None:
            self.finish(opened)
        done = 0
        while done < proposals:
            if self.price(1) > self.arms.time.left:
                return (f"the next proposal may take {duration(self.price(1))}, and {duration(self.arms.time.left)} of"
                        " the time are left")  # fmt: skip
            trial = self.propose()
            if trial is None:
                why = self.proposer.passed_over[-1] if self.proposer.passed_over else "nothing is left"
                return f"no further proposal: {why}"
            self.finish(trial)
            done += 1
        return f"{plural(done, 'proposal')}, as asked"

    def ended(self, why: str) -> str:
        self.journal.add("ended", why=why)
        return why

    # ---- The noise floor

    def measure_noise(self) -> None:
        """Runs of the base that differ in nothing but the seed."""
        n = self.plan.seeds.noise
        cells = self.arms.cells(BASE, range(n))
        self.arms.tell(f"A/A set: {n} runs of the base, alike but for the seed")
        self.arms.run(cells)
        self.arms.check_metric(cells)
        numbers = [self.arms.number(cell) for cell in cells]
        gone = [f"{cell.folder.name}: {x.why}" for cell, x in zip(cells, numbers) if not math.isfinite(x.value)]
        require(
            len(gone) < n - 1,
            f"the base must run: {len(gone)} of its {n} runs have no number ({gone[0] if gone else ''})",
        )
        x = np.array([each.value for each in numbers if math.isfinite(each.value)])
        sd = float(x.std(ddof=1))
        self.journal.add("noise", seeds=[cell.seed for cell in cells], n=len(x), mean=float(x.mean()), sd=sd, gone=gone)
        self.arms.tell(f"  {self.plan.metric} {number(float(x.mean()))}, standard deviation between seeds {number(sd)}"
                       f" ({len(x)} runs)")  # fmt: skip

    @property
    def doing(self) -> str:
        """Which step the journal has come to."""
        trial = self.state.open
        if self.state.noise is None:
            return "the A/A set"
        if trial is None:
            return f"between two proposals, {len(self.state.trials)} made so far"
        stages = {"first": "its first seeds", "confirm": "its fresh seeds", "further": "as many fresh seeds again",
                  "stands": "measuring it again", "score": "its score"}  # fmt: skip
        return f"{trial.name} ({diff_text(trial.proposal['diff'])}), {stages[trial.stage]}"

    # ---- Proposing

    def propose(self) -> Trial | None:
        """The next proposal, written down before anything of it runs."""
        idea = self.proposer.next()
        if idea is None:
            return None
        k = len(self.state.trials) + 1
        proposal = self.proposer.write(idea, k, self.cost())
        self.journal.add("proposed", k=k, proposal=proposal)
        trial = self.state.trials[-1]
        if idea.source == "dropped" and (path := dropped.waiting(self.arms.folder)) is not None:
            self.proposer.put_away(path)
        for line in lines_of(trial):
            self.arms.tell(line)
        return trial

    def cost(self) -> Cost:
        runs_ = self.plan.seeds.first
        one = self.seconds_per_run()
        more = self.plan.seeds.confirm + self.plan.seeds.again
        how = f"{runs_} runs first, {more} more if they look better"
        return Cost(self.plan.budget, None if one is None else one * runs_ / max(1, self.arms.workers), how)

    def seconds_per_run(self) -> float | None:
        """Of the finished runs, the deciding evaluation not included."""
        done = [cell for cell in self.arms.complete() if runs.settled(cell)][-SAMPLE:]
        return statistics.median(map(seconds_of, done)) if done else None

    def price(self, proposals: int) -> float:
        """Seconds that so many proposals may take, if half of them go on to a confirmation."""
        s, one = self.plan.seeds, self.seconds_per_run() or 0.0
        return proposals * one * math.ceil((s.first + 0.5 * (s.confirm + s.again)) / self.arms.workers)

    # ---- One proposal

    def finish(self, trial: Trial) -> None:
        """Every stage that is left of it."""
        steps = {"first": self.look_first, "confirm": self.confirm, "further": self.confirm_further,
                 "stands": self.measure_again, "score": self.score}  # fmt: skip
        while (stage := trial.stage) != "done":
            steps[stage](trial)
        self.written(self, trial)

    def base_cells(self, trial: Trial) -> list[Cell]:
        """Runs of its parent that had no part in choosing it."""
        return self.arms.cells(trial.parent, self.state.measured(trial.parent))

    def look_first(self, trial: Trial) -> None:
        cells = self.arms.cells(trial.name, trial.seeds("first", self.plan.seeds.first))
        self.arms.run(cells)
        base = self.base_cells(trial)
        look = keeping.first_look(
            self.arms.values(base), self.arms.values(cells), self.arms.spread(cells), self.plan.smallest_effect
        )
        void = self.void(cells)
        opened = float(np.mean(self.arms.open_values(cells)) - np.mean(self.arms.open_values(base)))
        self.journal.add("first", k=trial.k, seeds=[cell.seed for cell in cells], go_on=bool(look.go_on and not void),
                         delta=look.delta, error=look.error, open_delta=opened, void=void)  # fmt: skip
        then = "goes on to fresh seeds" if look.go_on and not void else "is dropped"
        self.arms.tell(f"  {plural(len(cells), 'first seed')}: {look.delta:+.4g} ± {number(look.error)}; it {then}"
                       f"{': ' + void if void else ''}")  # fmt: skip

    def void(self, cells: list[Cell]) -> str:
        """Why a change with these runs must not be kept; runs that merely failed count as the worst instead."""
        names = {cell.folder.name for cell in cells}
        row = next((row for row in self.state.void if row["run"] in names and row["kind"] == "audit"), None)
        return f"{row['run']} does not count: {row['why']}" if row else ""

    def confirm(self, trial: Trial) -> None:
        """Fresh seeds of the change, and some of the present best beside them."""
        cells = self.arms.cells(trial.name, trial.seeds("confirm", self.plan.seeds.confirm))
        again = self.arms.cells(trial.parent, trial.seeds("again", self.plan.seeds.again))
        self.decide(trial, cells, again, last=False)

    def confirm_further(self, trial: Trial) -> None:
        """As many fresh seeds again, where the first ones were ahead and could not tell; all of them decide."""
        assert trial.further is not None
        seeds = [*trial.further["seeds"], *trial.seeds("further", self.plan.seeds.confirm)]
        again = [*trial.further["again"], *trial.seeds("again_further", self.plan.seeds.again)]
        self.decide(trial, self.arms.cells(trial.name, seeds), self.arms.cells(trial.parent, again), last=True)

    def decide(self, trial: Trial, cells: list[Cell], again: list[Cell], last: bool) -> None:
        self.arms.run([*cells, *again])
        base = self.arms.values([*self.base_cells(trial), *again])
        mine = self.arms.values(cells)
        alpha = keeping.share(trial.k, self.plan.proposals, self.plan.error) / keeping.LOOKS
        made = keeping.decide(
            base, mine, alpha, self.arms.spread(cells, again), self.plan.smallest_effect, self.arms.bounds()
        )
        void = self.void(cells)
        error = keeping.standard_error(base, mine)
        more = not last and not void and keeping.ahead(made, error, self.plan.smallest_effect)
        keep = bool(made.keep and not void)
        row = made._asdict() | {"keep": keep, "error": error, "n": [len(base), len(mine)], "void": void}
        self.journal.add("further" if more else "decided", k=trial.k, seeds=[cell.seed for cell in cells],
                         again=[cell.seed for cell in again], **row)  # fmt: skip
        word = "kept, if other seeds bear it out" if keep else "as many fresh seeds again" if more else "not kept"
        why = void or keeping.REASONS[made.reason]
        self.arms.tell(f"  {len(mine)} fresh seeds against {len(base)}: {made.delta:+.4g} [{made.low:+.4g},"
                       f" {made.high:+.4g}], noise floor {number(made.floor)}; {word}: {why}")  # fmt: skip

    def measure_again(self, trial: Trial) -> None:
        """A kept change is measured once more: it becomes the baseline by runs that had no part in keeping it."""
        cells = self.arms.cells(trial.name, trial.seeds("stands", self.plan.seeds.noise))
        self.arms.run(cells)
        base, mine = self.arms.values(self.base_cells(trial)), self.arms.values(cells)
        look = keeping.first_look(base, mine, self.arms.spread(cells), self.plan.smallest_effect)
        stands = bool(look.go_on and not self.void(cells))
        self.journal.add("stands", k=trial.k, seeds=[cell.seed for cell in cells], stands=stands, delta=look.delta,
                         error=look.error)  # fmt: skip
        word = "it stands, and is what changes are made to now" if stands else "it does not stand, and is withdrawn"
        self.arms.tell(f"  measured again on {len(cells)} other seeds: {look.delta:+.4g}; {word}")

    def score(self, trial: Trial) -> None:
        """The prediction against every run of the change that was judged."""
        stages = [row for row in (trial.first, trial.decided) if row]
        mine = [cell for row in stages for cell in self.arms.cells(trial.name, row["seeds"])]
        made = scored(trial, self.arms.values(self.base_cells(trial)), self.arms.values(mine), self.plan.metric)
        self.journal.add("scored", k=trial.k, score=made.to_dict())


def lines_of(trial: Trial) -> list[str]:
    """A proposal for the terminal: every key that changes, with its old and its new value."""
    from relab.advise.proposal import Predicted, shown
    from relab.advise.render import predicted

    p = trial.proposal
    lines = [f"proposal {trial.k} ({p['source']}), a change of {trial.parent}:"]
    lines += [f"  {key}: {shown(each['from'])} -> {shown(each['to'])}" for key, each in p["diff"].items()]
    lines += [f"  because {p['rationale']}", f"  predicted {predicted(Predicted(**p['predicted']))}"]
    return lines + [f"  passed over {text}" for text in p["passed_over"][:2]]


# ---- Beginning


def prepare(plan: Loop, folder: Path, workers: int, tell: Tell = print, accept: bool = False) -> Looping:
    """Write the loop down, or take it up as it was left; the evaluator is locked from here on.

    `accept`: somebody vouches for a journal that was not written by this loop alone.
    """
    check_own(folder)
    keep(plan, folder)
    deciding.checked_program(plan)
    lock.keep(plan, folder, bool(journals.lines_of(folder)[0]), accept)
    lock.check(plan, folder)
    journal = journals.accepted(folder, tell) if accept else journals.opened(folder, tell)
    if accept and journal.state.begin is not None and journal.state.lock not in ("", lock.digest(folder)):
        journal.add("accepted", rows=len(journal.rows), lock=lock.digest(folder))
    lock.check(plan, folder, journal.state.lock)
    if accept and journal.key is not None:
        deciding.vouch(folder, journal.key)
        begun.vouch(folder, journal.key)
    base = variants.written(plans.resolved(plan))
    runs.write_variants({BASE: plans.resolved(plan)}, folder)
    assert journal.key is not None
    if journal.state.begin is None:
        begun.write(folder, journal.key, [])
        journal.add("begin", mode=plan.mode, decides=plan.decides, sampler=sampler.name_of(plan), hidden=plan.hidden,
                    lock=lock.digest(folder), begun=True)  # fmt: skip
    began = begun.read(folder, journal.key) if (journal.state.begin or {}).get("begun") else None
    arms = Arms(plan, folder, journal, workers, tell, base=variants.digest(base), began=began)
    looping = Looping(arms, Proposer(arms, tried.of_experiments(EXPERIMENTS)))
    for trial in journal.state.trials:
        settings = partial(looping.proposer.resolved, trial.proposal["diff"], trial.parent)
        variants.restore(folder, trial, settings, tell)
    arms.check()
    start.check(plan, folder, arms.settings(BASE), arms.trust)
    return looping


def look(plan: Loop, folder: Path) -> Looping:
    """A loop that has begun, as it stands, for questions about it; nothing is written, and it may be running."""
    check_own(folder)
    check_kept(plan, folder)
    journal = journals.looked_at(folder)
    lock.check(plan, folder, journal.state.lock)
    arms = Arms(plan, folder, journal, 1, lambda line: None)
    return Looping(arms, Proposer(arms, tried.of_experiments(EXPERIMENTS)))


def glance(folder: Path) -> Looping:
    """A loop that has begun, as its own folder tells it, for what may be proposed to it: nothing is written, and its
    evaluator is not looked at, which need not be on this machine. Nor is code imported that its files name: somebody
    may have sent the folder."""
    arms = Arms(plans.kept(folder), folder, Journal(folder), 1, lambda line: None)
    return Looping(arms, Proposer(arms, trusting=False))


def run_one(folder: Path, name: str) -> tuple[Cell, local.Result]:
    """One run of a loop that is under way, as its folder says; the evaluator is looked at before and after."""
    return Arms(plans.kept(folder), folder, Journal(folder), 1).run_one(name)


def keep(plan: Loop, folder: Path) -> None:
    """The folder belongs to one loop; anything but its words makes it another."""
    for other in ("experiment.yaml", "sweep.yaml"):
        require(not (folder / other).exists(), f"{folder} belongs to another kind of plan ({other}); choose another"
                                               " --name or --root")  # fmt: skip
    check_kept(plan, folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomic(own(folder, plans.FILE), layers.format_yaml(plan.to_dict()).encode())


def check_kept(plan: Loop, folder: Path) -> None:
    path = own(folder, plans.FILE)
    if path.exists() and (folder / "journal").exists():
        before, now = layers.read_yaml(path), layers.parse_yaml(layers.format_yaml(plan.to_dict()))
        check_same(before, now, plans.GROWS, folder, "loop")


def facts(loop: Looping) -> Document:
    """What a loop came to, for JSON."""
    state, plan = loop.state, loop.plan
    tests = state.tests()
    return {
        "schema": 1, "question": plan.question, "mode": plan.mode, "metric": plan.metric, "decides": plan.decides,
        "noise": state.noise, "best": state.best, "proposals": len(state.trials), "tested": len(tests),
        "kept": [t.name for t in state.trials if t.kept], "refused": len(state.refused), "void": state.void,
        "expected_by_chance": keeping.by_chance(tests, plan.proposals, plan.error),
        "trials": [trial_facts(t) for t in state.trials],
    }  # fmt: skip


def trial_facts(t: Trial) -> Document:
    return {"k": t.k, "name": t.name, "parent": t.parent, "verdict": t.verdict, "source": t.proposal["source"],
            "diff": t.proposal["diff"], "predicted": t.proposal["predicted"], "first": t.first, "further": t.further,
            "decided": t.decided, "stands": t.stands, "score": (t.scored or {}).get("score")}  # fmt: skip
