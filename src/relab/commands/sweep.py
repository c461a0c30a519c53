"""relab sweep: many configs, seeds inside, cost asked first; ends in what each axis does and a winner's worth."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from relab.base import masks
from relab.base.terminal import keep_going
from relab.base.text import duration
from relab.commands.experiment import INTERRUPTED, Progress, by, consent
from relab.commands.options import Planned, ResultAsJson
from relab.commands.parsing import parse
from relab.commands.refusing import unless_refused
from relab.config.base import require

if TYPE_CHECKING:
    from relab.lab import sweep
    from relab.lab.ending import Written

EXAMPLES = """
  relab sweep sweep.yaml                         forecasts the cost, then asks
  relab sweep sweep.yaml --dry-run               lists the runs, starts and writes nothing
  relab sweep sweep.yaml --yes                   runs what is missing, ends in a winner and its report
  relab sweep sweep.yaml --yes --retry-failed    runs that failed are tried once more
  relab sweep sweep.yaml --yes --on slurm        as jobs of Slurm; --on ray: on a Ray cluster
  relab sweep sweep.yaml --yes --json
"""
DAY = 86_400.0


@dataclass(frozen=True)
class SweepArgs(Planned):
    """Many configs over seeds: what each axis does, which truly differ, what the winner is worth (docs/sweep.md).

    Call it again after Ctrl-C, a kill, or with more seeds, trials or values: finished runs are never repeated.
    """

    root: Path = Path("sweeps")
    """folder that holds the sweeps"""
    retry_failed: bool = False
    """try failed runs again; else they are kept as what they are, data"""
    json: ResultAsJson = False


def main(words: Sequence[str]) -> int:
    from relab.lab import sweep
    from relab.lab.execute import where

    args = parse(SweepArgs, "sweep", words, EXAMPLES)
    require(args.workers is None or args.workers >= 1, f"--workers must be at least 1, but is {args.workers}")
    plan = sweep.load(args.file)
    plan = replace(plan, execute=where.of(plan.execute.to_dict(), args.on, args.workers))
    folder = args.folder()
    if args.dry_run:
        return dry(plan, folder, args.json)
    keep_going()
    if args.only is not None:
        return run_one(args, plan, folder)
    with unless_refused([folder]) as answer:
        answer.code = start(args, plan, folder)
    return answer.code or 0


def start(args: SweepArgs, plan: sweep.Sweep, folder: Path) -> int | None:
    """The exit code; None where somebody said no."""
    from relab.lab import sweep
    from relab.lab.execute.slots import cores
    from relab.lab.sweep import text

    sweeping = sweep.prepare(plan, folder, args.retry_failed)
    if sweep.missing(sweeping)[0] and not consent([plan.command, plan.resume_command], args.yes, args.json):
        return None
    workers, progress = args.workers or cores(), Progress()
    try:
        if not (args.json or agreed(args, sweeping, workers)):
            return None
        quiet = args.json
        winner = sweep.run(sweeping, workers, None if quiet else progress, None if quiet else print)
    except sweep.Interrupted:
        progress.close()
        left = sweep.missing(sweeping)[0]
        print(f"interrupted: {left} runs are missing; call it again to go on", file=sys.stderr)
        return INTERRUPTED
    progress.close()
    analysis = sweep.analyse(sweeping, winner)
    written = ended(folder)
    if args.json:
        print_json(analysis, folder, written)
    else:
        pages = [f"report: {page}" for page in written.pages[-1:]]
        print("\n".join([*text.lines(analysis, folder), *pages, *written.problems]))
    return 0 if winner is not None else 1


def run_one(args: SweepArgs, plan: sweep.Sweep, folder: Path) -> int:
    from relab.lab import sweep

    if not consent([plan.command, plan.resume_command], args.yes, args.json):
        return 1
    cell, done = sweep.run_one(plan, folder, str(args.only))
    print(f"{args.only}: {sweep.status(cell)}")
    return INTERRUPTED if done.interrupted else 1 if done.failed else 0


def dry(plan: sweep.Sweep, folder: Path, as_json: bool) -> int:
    """The runs that would be started, by name; optuna's are not known yet."""
    from relab.base.jsonl import encode
    from relab.lab import sweep

    preview, fresh = sweep.preview(plan, folder), len(plan.fresh)
    if as_json:
        print(encode({**vars(preview), "confirm": fresh}).decode(), end="")
        return 0
    later = f", {plan.trials} trials that optuna chooses" if plan.method == "optuna" else ""
    print(f"{masks.mask(plan.question)}\n  {preview.cells} cells{later}, {preview.cells - len(preview.missing)} there;"
          f" {preview.runs} runs to do, {fresh} fresh seeds for the winner included")  # fmt: skip
    print("\n".join(f"  {name}" for name in preview.missing))
    return 0


# ---- Before


def agreed(args: SweepArgs, sweeping: sweep.Sweeping, workers: int) -> bool:
    """Say what it costs; ask unless --yes."""
    from relab.lab import sweep

    plan, n = sweeping.plan, len(sweeping.ledger.points)
    of = f"{plan.trials} trials by optuna" if plan.method == "optuna" else f"{n} trials ({plan.method})"
    print(f"{masks.mask(plan.question)}\n  {' x '.join(each.key for each in plan.axes)}: {of} x"
          f" {len(plan.seeds)} seeds, by {by(sweeping.experiment)}", flush=True)  # fmt: skip
    if plan.command and not args.yes:
        print("  the first run is made now, for the forecast (it counts)", flush=True)
    cost = sweep.estimate(sweeping, workers)
    if not cost.runs:
        print("  all runs are finished")
        return True
    print(f"  forecast: {cost_text(cost, plan)}", flush=True)
    if args.yes:
        return True
    must_ask()
    return input("  start? [y/N] ").strip().lower() in ("y", "yes")


def cost_text(cost: sweep.Cost, plan: sweep.Sweep) -> str:
    total = duration(cost.seconds)
    most = "at most " if plan.racing else ""
    each = f"{duration(cost.seconds_per_run)} ({cost.source})"
    text = f"{cost.runs:,} runs of about {each}, {cost.workers} at a time: {most}{total}"
    if cost.seconds < DAY or plan.method == "optuna":
        return text
    a_day = cost.trials_in(DAY, len(plan.seeds))
    return f"{text}; `method: sobol` with `trials: {max(2, a_day)}` takes a day" if a_day >= 2 else text


def must_ask() -> None:
    require(sys.stdin.isatty(), "nobody can be asked here (standard input is no terminal); add --yes to start")


# ---- After


def ended(folder: Path) -> Written:
    from relab.lab.ending import of_sweep  # pages and logs: not before there is something to write

    return of_sweep(folder)


def print_json(analysis: sweep.Analysis, folder: Path, written: Written) -> None:
    from relab.base.jsonl import encode

    pages = [str(page) for page in written.pages]
    row = {**analysis.to_json(), "sweep": str(folder), "report": pages, "problems": written.problems}
    print(encode(masks.masked(row)).decode(), end="")
