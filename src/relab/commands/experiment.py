"""relab experiment: from a declared question to an answer, its report and its entry in the log."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relab.advise import tried
from relab.base import masks, terminal
from relab.base.places import printable
from relab.base.terminal import keep_going
from relab.base.text import duration, number
from relab.commands.options import Planned, ResultAsJson
from relab.commands.parsing import parse
from relab.commands.refusing import unless_refused
from relab.config.base import require
from relab.lab import experiment
from relab.lab.execute import where
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
  relab experiment question.yaml --on ray        on a Ray cluster; --on slurm: as jobs of Slurm
  relab experiment question.yaml --replicate     the same on as many fresh seeds: first, second and pooled answer
"""
INTERRUPTED = 130


@dataclass(frozen=True)
class ExperimentArgs(Planned):
    """A against B over seeds, on this machine, ending in yes, no, or cannot tell yet (docs/experiments.md).

    Call it again after Ctrl-C, a kill, or with more seeds: finished runs are never repeated.
    """

    root: Path = Path("experiments")
    """folder that holds the experiments"""
    queue: bool = False
    """add the runs that are missing to the queue ($RELAB_QUEUE, else `queue` here) and end; ask again for the answer"""
    replicate: bool = False
    """ask the same on as many fresh seeds too, in the folder NAME-replicate; both answers and the pooled one"""
    log: Path | None = None
    """the log that gets the entry; default: `log` of the file, else LOG.md in the folder of the experiments"""
    no_log: bool = False
    """write no entry"""
    json: ResultAsJson = False


def main(words: Sequence[str]) -> int:
    args = parse(ExperimentArgs, "experiment", words, EXAMPLES)
    plan = experiment.load(args.file)
    plan = replace(plan, execute=where.of(plan.execute.to_dict(), args.on))
    keep_going()
    folder = args.folder()
    if args.dry_run:
        experiment.check_cells(plan, folder)
        print(outline(plan, folder, args.replicate))
        return 0
    require(not (args.queue and args.only), "`--queue` adds all runs that are missing; leave --only out")
    require(not (args.on and args.only), "`--only` makes one run on this machine; leave --on out")
    require(not (args.replicate and args.only), "`--only` makes one run of one question; leave --replicate out")
    with unless_refused([folder, *([experiment.folder_of(folder)] if args.replicate else [])]) as answer:
        answer.code = start(args, plan, folder)
    return answer.code or 0


def start(args: ExperimentArgs, plan: experiment.Experiment, folder: Path) -> int | None:
    """The exit code; None where somebody said no."""
    parts = [part(plan, folder)]
    if args.replicate:
        parts.append(part(experiment.fresh(plan), experiment.folder_of(folder)))
    settled = all(experiment.settled(cell) for each in parts for cell in each.cells)
    if not settled and not consent([plan.command, plan.resume_command], args.yes, args.json):
        return None
    if args.queue:
        return max(enqueue(args, each.folder, each.cells) for each in parts)
    if args.only is not None:
        return run_one(args, plan, folder, parts[0].cells)
    log = None if args.no_log else args.log or Path(plan.log or args.root / experiment.LOG)
    try:
        return replicated(args, parts, log) if args.replicate else answered(args, parts[0], log)
    except experiment.Interrupted:
        return interrupted([cell for each in parts for cell in each.cells])


@dataclass(frozen=True)
class Part:
    """A question with its seeds, its folder and its runs."""

    plan: experiment.Experiment
    folder: Path
    cells: list[experiment.Cell]


def part(plan: experiment.Experiment, folder: Path) -> Part:
    return Part(plan, folder, experiment.prepare(plan, folder))


def answered(args: ExperimentArgs, one: Part, log: Path | None) -> int | None:
    again = experiment.tried_before(one.plan, one.folder, args.root, log)
    result = look_by_look(args, one, again)
    if result is None:
        return None
    done, answers = result
    written = ended(one.folder, log)
    if args.json:
        print_json(one.plan, answers, done, one.folder, written, again)
    else:
        print("\n".join(lines(answers, failures(one.cells, done), one.folder, written)))
    return 1 if done.failed else 0


def replicated(args: ExperimentArgs, parts: list[Part], log: Path | None) -> int | None:
    """What is missing of the question, then the same on fresh seeds; three answers side by side."""
    results = [result for each in parts if (result := look_by_look(args, each, [])) is not None]
    if len(results) < len(parts):
        return None
    failed = [text for each, (done, _) in zip(parts, results, strict=True) for text in failures(each.cells, done)]
    replications = experiment.replicate(parts[0].plan, parts[0].folder, *(answers for _, answers in results))
    written = [ended(each.folder, log) for each in parts]
    if args.json:
        print_replications(parts, replications, failed, written)
    else:
        print("\n".join(replicated_lines(parts, replications, failed, written)))
    return 1 if failed else 0


def look_by_look(args: ExperimentArgs, one: Part, again: list[experiment.Repeat]) -> tuple[Result, list[Any]] | None:
    """Runs up to each declared look until every comparison is decided; None where somebody said no to the cost."""
    agreement = False
    rounds = experiment.rounds(one.plan, one.cells)
    for look, cells in enumerate(rounds, 1):
        missing = not all(map(experiment.settled, cells))
        if (missing or len(rounds) == 1) and not agreement:
            agreement = args.json or agreed(args, one, again)
            if not agreement:
                return None
        done = carry_out(args, Part(one.plan, one.folder, cells))
        answers = experiment.conclude(one.plan, one.folder, cells)
        if done.failed or experiment.decided(answers) or look == len(rounds):
            break
        if not args.json:
            print(f"  look {look} of {len(rounds)}, at {one.plan.looks[look - 1]} seeds: cannot tell yet", flush=True)
    return done, answers


def carry_out(args: ExperimentArgs, one: Part) -> Result:
    progress = Progress()
    done = experiment.run(one.plan, one.folder, one.cells, args.workers, None if args.json else progress)
    progress.close()
    if done.interrupted:
        raise experiment.Interrupted
    return done


def outline(plan: experiment.Experiment, folder: Path, again: bool = False) -> str:
    """What --dry-run says: the question, the runs, where they go."""
    many = len(plan.variants) * len(plan.seeds)
    size = f"{len(plan.variants)} variants x {len(plan.seeds)} seeds = {many} runs, compared by {by(plan)}"
    program = [f"  each by: {shlex.join(masks.masked(plan.command))}"] if plan.command else []
    lines = [
        masks.mask(plan.question),
        f"  {size}",
        f"  variants: {', '.join(plan.variants)}",
        *program,
        f"  into {folder}",
    ]
    if again:
        fresh = experiment.fresh(plan).seeds
        lines.append(f"  once more on seeds {', '.join(map(str, fresh))}, into {experiment.folder_of(folder)}")
    end = "  nothing was run or written; without --dry-run the cost is told and asked for"
    return "\n".join(map(printable, [*lines, end]))


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
    done = experiment.run(plan, folder, chosen, 1, all_cells=False, where=where.Where())
    state = experiment.status(chosen[0])
    if args.json:
        print(encode({"run": str(chosen[0].folder), "status": state}).decode(), end="")
    else:
        print("\n".join([f"{args.only}: {state}", *failures(chosen, done)]))
    return INTERRUPTED if done.interrupted else 1 if done.failed else 0


def enqueue(args: ExperimentArgs, folder: Path, cells: list[experiment.Cell]) -> int:
    from relab.base.jsonl import encode
    from relab.commands.queue_options import Common
    from relab.lab.execute.queue import Queue

    place = Common().folder
    added, waiting = experiment.enqueue(Queue(place), folder, args.root, cells)
    if args.json:
        print(encode({"queue": str(place), "added": added, "there": waiting}).decode(), end="")
    else:
        print(f"{len(added)} of {len(cells)} runs added to {place} ({waiting} were there,"
              f" {sum(map(experiment.settled, cells))} are finished)")  # fmt: skip
        print(f"next: relab queue work, then relab experiment {shlex.quote(str(args.file))} for the answer")
    return 0


# ---- Before


def agreed(args: ExperimentArgs, one: Part, again: list[experiment.Repeat]) -> bool:
    """Say what was tried before and what it costs; ask unless --yes."""
    plan, cells, folder = one.plan, one.cells, one.folder
    size = f"{len(plan.variants)} variants x {len(plan.seeds)} seeds"
    print(f"{masks.mask(plan.question)}\n  {size}, compared by {by(plan)}", flush=True)
    for repeat in again:
        for line in tried.lines(repeat.change, repeat.hits, repeat.settings):
            print(printable(f"  {masks.mask(line)}"), flush=True)
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


def replicated_lines(
    parts: Sequence[Part], replications: Sequence[experiment.Replication], failed: list[str], written: Sequence[Written]
) -> list[str]:
    """Every seed's number of both, then three answers a comparison, side by side."""
    rows = []
    for each in replications:
        for which, x in (("first", each.first), ("second", each.second)):
            rows += [f"  {which:8} {name:20} {'  '.join(map(one, arm)) or 'no finished run'}"
                     for name, arm in zip(x.names, (x.a, x.b))]  # fmt: skip
        for name, x in (("first", each.first), ("second", each.second), ("pooled", each.pooled)):
            rows.append(f"{name + ':':8} {x.text}")
        rows += [each.text, *(f"  {note}" for note in each.pooled.notes)]
    rows += [f"  {text}" for text in [*failed, *(problem for w in written for problem in w.problems)]]
    rows += [f"report: {w.pages[-1]}" for w in written if w.pages]
    return [*rows, *([f"entry:  {written[-1].log}"] if written[-1].log else [])]


def print_replications(
    parts: Sequence[Part], replications: Sequence[experiment.Replication], failed: list[str], written: Sequence[Written]
) -> None:
    from relab.base.jsonl import encode

    row = {"question": parts[0].plan.question, "replications": [each.to_dict() for each in replications],
           "failed": failed, "experiments": [str(each.folder) for each in parts],
           "report": [str(page) for w in written for page in w.pages],
           "log": str(written[-1].log) if written[-1].log else None,
           "problems": [problem for w in written for problem in w.problems]}  # fmt: skip
    print(encode(masks.masked(row)).decode(), end="")


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
    print(encode(masks.masked(row)).decode(), end="")
