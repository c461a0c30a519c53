"""relab experiment: from a declared question to an answer, its report and its entry in the log."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from relab.advise import tried
from relab.base import terminal
from relab.base.places import printable
from relab.base.terminal import keep_going
from relab.base.text import duration, number
from relab.commands.parsing import named, parse
from relab.config.base import require
from relab.lab import experiment
from relab.lab.execute.local import Result
from relab.lab.execute.slots import cores

if TYPE_CHECKING:
    from relab.lab.ending import Written

EXAMPLES = """
  relab experiment question.yaml                 forecasts the cost, then asks
  relab experiment question.yaml --yes           runs what is missing, ends in an answer
  relab experiment question.yaml --yes --json
  relab experiment question.yaml --log LOG.md    the entry goes into this log
  relab experiment question.yaml --queue         adds its runs to the queue; `relab queue work` runs them
"""
INTERRUPTED = 130


@dataclass(frozen=True)
class ExperimentArgs:
    """A against B over seeds, on this machine, ending in yes, no, or cannot tell yet (docs/experiments.md).

    Call it again after Ctrl-C, a kill, or with more seeds: finished runs are never repeated.
    """

    file: tyro.conf.Positional[Path]
    """the question: a YAML file"""
    name: str | None = None
    """name of the experiment's folder; default: the file's name"""
    root: Path = Path("experiments")
    """folder that holds the experiments"""
    workers: int | None = None
    """runs at a time; default: one per core"""
    yes: bool = False
    """start without asking, the command of the file too"""
    queue: bool = False
    """add the runs that are missing to the queue ($RELAB_QUEUE, else `queue` here) and end; ask again for the answer"""
    only: str | None = None
    """make this run alone (VARIANT-sSEED), without an answer"""
    log: Path | None = None
    """the log that gets the entry; default: `log` of the file, else LOG.md in the folder of the experiments"""
    no_log: bool = False
    """write no entry"""
    json: bool = False
    """print the answers as JSON; asks nothing (a file with a `command` then needs --yes)"""


def main(words: Sequence[str]) -> int:
    args = parse(ExperimentArgs, "experiment", words, EXAMPLES)
    plan = experiment.load(args.file)
    keep_going()
    folder = args.root / args.file.stem if args.name is None else named(args.root, args.name)
    require(not (args.queue and args.only), "`--queue` adds all runs that are missing; leave --only out")
    cells = experiment.prepare(plan, folder)
    settled = all(map(experiment.settled, cells))
    if not settled and not consent([plan.command, plan.resume_command], args.yes, args.json):
        return 0
    if args.queue:
        return enqueue(args, folder, cells)
    if args.only is not None:
        return run_one(args, plan, folder, cells)
    log = None if args.no_log else args.log or Path(plan.log or args.root / experiment.LOG)
    again = experiment.tried_before(plan, folder, args.root, log)
    try:
        if not (args.json or agreed(args, plan, cells, folder, again)):
            return 0
    except experiment.Interrupted:
        return interrupted(cells)
    progress = Progress()
    done = experiment.run(plan, folder, cells, args.workers, None if args.json else progress)
    progress.close()
    if done.interrupted:
        return interrupted(cells)
    answers = experiment.conclude(plan, folder, cells)
    written = ended(folder, log)
    if args.json:
        print_json(plan, answers, done, folder, written, again)
    else:
        print("\n".join(lines(answers, failures(cells, done), folder, written)))
    return 1 if done.failed else 0


def interrupted(cells: list[experiment.Cell]) -> int:
    there = sum(map(experiment.settled, cells))
    print(f"interrupted: {there} of {len(cells)} runs are finished; call it again to go on", file=sys.stderr)
    return INTERRUPTED


# ---- One run, or all of them by a queue


def run_one(args: ExperimentArgs, plan: experiment.Experiment, folder: Path, cells: list[experiment.Cell]) -> int:
    from relab.base.jsonl import encode

    chosen = [cell for cell in cells if cell.folder.name == args.only]
    names = [cell.folder.name for cell in cells]
    require(bool(chosen), f"`--only` must be one of {', '.join(names[:20])}, but is {args.only!r}")
    done = experiment.run_some(plan, folder, chosen, 1)
    state = experiment.status(chosen[0])
    if args.json:
        print(encode({"run": str(chosen[0].folder), "status": state}).decode(), end="")
    else:
        print("\n".join([f"{args.only}: {state}", *failures(chosen, done)]))
    return INTERRUPTED if done.interrupted else 1 if done.failed else 0


def enqueue(args: ExperimentArgs, folder: Path, cells: list[experiment.Cell]) -> int:
    from relab.base.jsonl import encode
    from relab.commands.queue import Common
    from relab.lab.execute.queue import Queue

    place = Common().folder
    added, asked_before = experiment.enqueue(Queue(place), folder, args.root, cells)
    if args.json:
        print(encode({"queue": str(place), "added": added, "there": asked_before}).decode(), end="")
    else:
        print(f"{len(added)} of {len(cells)} runs added to {place} ({asked_before} were there,"
              f" {sum(map(experiment.settled, cells))} are finished)")  # fmt: skip
        print(f"next: relab queue work, then relab experiment {shlex.quote(str(args.file))} for the answer")
    return 0


# ---- Before


def agreed(
    args: ExperimentArgs,
    plan: experiment.Experiment,
    cells: list[experiment.Cell],
    folder: Path,
    again: list[experiment.Repeat],
) -> bool:
    """Say what was tried before and what it costs; ask unless --yes."""
    size = f"{len(plan.variants)} variants x {len(plan.seeds)} seeds"
    print(f"{plan.question}\n  {size}, compared by {by(plan)}", flush=True)
    for one in again:
        for line in tried.lines(one.change, one.hits, one.settings):
            print(printable(f"  {line}"), flush=True)
    if plan.command and not any(map(experiment.finished, cells)):
        print(f"  first run, for the forecast (it counts): {cells[0].folder.name}", flush=True)
    cost = experiment.forecast(plan, cells, folder, args.workers or cores())
    if not cost.runs:
        print("  all runs are finished")
        return True
    each, total = duration(cost.seconds_per_run), duration(cost.seconds)
    print(f"  forecast: {cost.runs} runs of about {each}, {cost.workers} at a time: {total}", flush=True)
    if args.yes:
        return True
    must_ask(args)
    return input("  start? [y/N] ").strip().lower() in ("y", "yes")


def must_ask(args: ExperimentArgs) -> None:
    there = args.yes or sys.stdin.isatty()
    require(there, "nobody can be asked here (standard input is no terminal); add --yes to start")


def consent(commands: Sequence[Sequence[str]], yes: bool, as_json: bool = False) -> bool:
    """Whether the programs that a file names may run: they are shown and asked for before the first of them starts.

    The file may be somebody else's, and a command can do anything. A file without one needs no consent.
    """
    shown = [printable(shlex.join(words)) for words in commands if words]
    if yes or not shown:
        return True
    programs = "\n".join(f"  {line}" for line in shown)
    require(sys.stdin.isatty() and not as_json, f"the file runs a program on this machine:\n{programs}\nnobody can be"
            " asked here whether it may (standard input is no terminal, or --json was given); read it, then add --yes"
            )  # fmt: skip
    print(f"the file runs a program on this machine:\n{programs}", flush=True)
    return input("  run it? [y/N] ").strip().lower() in ("y", "yes")


def by(plan: experiment.Experiment) -> str:
    """The one number of a run, in words."""
    level = number(plan.level) if plan.level is not None else ""
    words = {"final": f"the final {plan.metric}", "mean_last_m": f"the mean of the last {plan.last} {plan.metric}",
             "first_step_reaching": f"the first step at which {plan.metric} reaches {level}",
             "success_rate": "the success rate of the last evaluation"}[plan.at]  # fmt: skip
    return words + (", in pairs of one seed" if plan.paired else "")


@dataclass
class Progress:
    """One line that counts on a terminal; elsewhere a line at each quarter."""

    reported: int = 0
    open: bool = False  # a line on the terminal that has not ended

    def __call__(self, done: int, all_: int) -> None:
        text = f"  {done} of {all_} runs finished"
        if sys.stdout.isatty():
            with terminal.as_is():
                print(f"\r{text}", end="", flush=True)
            self.open = True
        elif 4 * done // all_ > 4 * self.reported // all_:
            print(text, flush=True)
        self.reported = done

    def close(self) -> None:
        if self.open:
            print()


# ---- After


def ended(folder: Path, log: Path | None) -> Written:
    from relab.lab.ending import of_experiment  # pages and logs: not before there is something to write

    return of_experiment(folder, log)


def failures(cells: list[experiment.Cell], done: Result) -> list[str]:
    """Each run that failed, and why."""
    gone = [cell for cell in cells if cell.folder.name in done.failed]
    return [f"{cell.folder.name} failed: {experiment.why_failed(cell)} (all of it: {cell.log})" for cell in gone]


def lines(answers: list[Any], failed: list[str], folder: Path, written: Written) -> list[str]:
    """Every seed's number, then the answers, then where things are."""
    first = answers[0]
    arms = [(first.names[0], first.a), *((x.names[1], x.b) for x in answers)]
    wide = max(20, *(len(name) for name, _ in arms))
    rows = [f"  {name:{wide}} {'  '.join(one(o) for o in arm) or 'no finished run'}" for name, arm in arms]
    rows += [x.text for x in answers]
    rows += [f"  {note}" for note in dict.fromkeys(note for x in answers for note in x.notes)]
    rows += ["found in the runs (relab examine):"] * bool(written.findings)
    rows += [f"  {text}" for text in [*written.findings, *failed, *written.problems]]
    rows += [f"report: {written.pages[-1]}"] if written.pages else []
    rows += [f"entry:  {written.log}"] if written.log else []
    return [*rows, "try next:", *(f"  {line}" for line in next_commands(folder, answers))]


def next_commands(folder: Path, answers: list[Any]) -> list[str]:
    """Five commands that go on from here, ready to be copied."""
    a, b = (shlex.quote(str(folder / "runs" / arm[0].run)) if arm else "RUN" for arm in (answers[0].a, answers[0].b))
    where = shlex.quote(str(folder))
    return [f"relab report {where} --open", f"relab examine {where} -v", f"relab diff {a} {b}", f"relab next {where}",
            f"relab examine {b} --against {a}"]  # fmt: skip


def one(outcome: Any) -> str:
    """A run's number; one that never got to the level is marked, and one that was stopped before its end."""
    return ("" if outcome.reached else ">") + number(outcome.value) + (" (stopped)" if outcome.stopped else "")


def print_json(
    plan: experiment.Experiment,
    answers: list[Any],
    done: Result,
    folder: Path,
    written: Written,
    again: list[experiment.Repeat],
) -> None:
    from relab.base.jsonl import encode

    row = {"question": plan.question, "answers": [x.to_dict() for x in answers], "failed": done.failed,
           "experiment": str(folder), "report": [str(page) for page in written.pages],
           "log": str(written.log) if written.log else None, "findings": written.findings,
           "problems": written.problems, "tried": [one.to_dict() for one in again]}  # fmt: skip
    print(encode(row).decode(), end="")
