"""relab loop: propose, check, run, judge, keep or drop, again; nothing is kept that luck could have made."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from relab.base import masks
from relab.base.places import printable
from relab.base.terminal import keep_going
from relab.base.text import duration, plural
from relab.commands.experiment import INTERRUPTED, consent
from relab.commands.options import Planned, ResultAsJson
from relab.commands.parsing import parse
from relab.commands.refusing import unless_refused
from relab.config.base import require

if TYPE_CHECKING:
    from relab.lab import loop

EXAMPLES = """
  relab loop loop.yaml --dry-run                  what it would cost and what may change; runs nothing
  relab loop loop.yaml --runs 10 --budget 2h      forecasts, asks, then ten proposals or two hours
  relab loop loop.yaml --runs 10 --yes            goes on where it was left; nothing is run twice
  relab loop loop.yaml --mode quick --yes         the smaller loop that `quick` in the file describes
  relab loop loop.yaml --check next_config.yaml   would this proposal be refused? runs nothing
  relab loop loop.yaml --runs 10 --yes --on slurm   its runs as jobs of Slurm; --on ray: on a Ray cluster
  relab loop loop.yaml --queue --runs 10          as an entry of the queue; `relab queue work` runs it
"""
UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0, "": 1.0}


@dataclass(frozen=True)
class LoopArgs(Planned):
    """Improve one metric by itself: propose, check, run, judge on hidden seeds, keep or drop, again (docs/loop.md).

    A file next_config.yaml in the loop's folder is taken as the next proposal and gets the same checks as any.
    """

    root: Path = Path("loops")
    """folder that holds the loops"""
    runs: int = 5
    """proposals to make in this call"""
    budget: str | None = None
    """time for this call: 90s, 30m, 2h; no proposal and no run is begun that may not fit"""
    mode: Literal["full", "quick"] = "full"
    """quick: the keys below `quick` in the file instead, in a folder of its own (NAME-quick)"""
    check: Path | None = None
    """only say whether this proposal would run, or why it is refused (exit code 64)"""
    accept: bool = False
    """take the journal as it stands, though not all rows of it carry this loop's seal: look through it first"""
    queue: bool = False
    """add this call to the queue ($RELAB_QUEUE, else `queue` here) and end"""
    json: ResultAsJson = False

    def folder(self) -> Path:
        whole = super().folder()
        return whole.with_name(f"{whole.name}-quick") if self.mode == "quick" else whole


def main(words: Sequence[str]) -> int:
    args = parse(LoopArgs, "loop", words, EXAMPLES)
    from relab.lab import loop
    from relab.lab.execute import where
    from relab.lab.loop import lock

    require(args.runs >= 0, f"`--runs` must be at least 0 proposals, but is {args.runs}")
    require(args.workers is None or args.workers >= 1, f"`--workers` must be at least 1, but is {args.workers}")
    if args.only is not None:
        return run_one(args)
    seconds = None if args.budget is None else seconds_of(args.budget)
    plan, folder = loop.load(args.file, args.mode), args.folder()
    plan = replace(plan, execute=where.of(plan.execute.to_dict(), args.on, args.workers))
    if args.dry_run:
        return dry(args, plan, folder)
    if args.check is not None:
        begun = (folder / lock.FILE).is_file()
        return checked(args, loop.look(plan, folder)) if begun else checked_apart(args, plan, folder.name)
    keep_going()
    with unless_refused([folder]) as answer:
        answer.code = start(args, plan, folder, seconds)
    return answer.code or 0


def run_one(args: LoopArgs) -> int:
    """One run of a loop that goes on elsewhere: its submitter has asked for consent."""
    from relab.lab import loop
    from relab.lab.experiment.cells import status

    require(args.on is None, "`--only` makes one run on this machine; leave --on out")
    plan = loop.kept(args.folder())
    if not consent([plan.command, plan.resume_command], args.yes, args.json):
        return 1
    cell, done = loop.run_one(args.folder(), str(args.only))
    print(f"{args.only}: {status(cell)}")
    return INTERRUPTED if done.interrupted else 1 if done.failed else 0


def seconds_of(text: str) -> float:
    """90s, 30m, 2h, 1d, or bare seconds.

    >>> seconds_of("1.5h")
    5400.0
    """
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([smhd]?)", text.strip())
    require(match is not None, f"`--budget` must be a time such as 90s, 30m or 2h, but is {text!r}")
    assert match is not None
    return float(match[1]) * UNITS[match[2]]


def start(args: LoopArgs, plan: loop.Loop, folder: Path, seconds: float | None) -> int | None:
    """The exit code; None where somebody said no."""
    from relab.lab import loop
    from relab.lab.execute.slots import cores

    if not consent([plan.command, plan.resume_command, plan.evaluate], args.yes, args.json):
        return None
    tell = (lambda line: None) if args.json else (lambda line: print(printable(line), flush=True))
    with loop.claimed(folder):
        return carried_out(args, loop.prepare(plan, folder, args.workers or cores(), tell, args.accept), seconds)


def carried_out(args: LoopArgs, looping: loop.Looping, seconds: float | None) -> int | None:
    from relab.lab import loop

    if args.queue:
        return enqueue(args)
    from relab.lab.loop import cost

    if args.json and seconds is not None:
        cost.forecast(looping, args.runs)  # what a run takes must be known before one is begun
    if not (args.json or agreed(args, looping, seconds)):
        return None
    from relab.lab.loop import written

    looping.written = written.of_trial
    try:
        why = looping.go(args.runs, seconds)
    except loop.Interrupted:
        written.of_loop(looping)
        print(
            f"interrupted after {plural(len(looping.state.trials), 'proposal')}; call it again to go on",
            file=sys.stderr,
        )
        return INTERRUPTED
    tell_end(args, looping, why)
    return 0


def tell_end(args: LoopArgs, looping: loop.Looping, why: str) -> None:
    """The loop's pages are written, and what it came to is printed; `why`: it ended."""
    from relab.lab import loop
    from relab.lab.loop import written

    pages = written.of_loop(looping)
    if not args.json:
        print("\n".join(map(printable, [why, *written.summary(looping), *(f"page:   {page}" for page in pages)])))
        return
    from relab.base.jsonl import encode

    place = {"loop": str(looping.arms.folder), "pages": [str(page) for page in pages]}
    print(encode(masks.masked({**loop.facts(looping), "ended": why, **place})).decode(), end="")


# ---- Before


def outline(plan: loop.Loop, runs: int, finished: int = 0) -> list[str]:
    """What a call may cost at least and at most, in runs, and what may change."""
    s = plan.seeds
    least, most = runs * s.first, runs * s.most
    steps = f" of {plan.budget:,} steps" if plan.budget else ""
    noise = "" if finished else f"{s.noise} runs alike for the noise floor, then "
    return [
        masks.mask(plan.question),
        f"  {noise}{plural(runs, 'proposal')}: {plural(least, 'run')} if all are dropped at once, at most {most} if"
        f" all are kept{steps}",
        f"  may change: {', '.join(f'{each.key} {span(each)}' for each in plan.policy.allow)}",
        f"  kept by luck: at most {plan.error:g} expected over everything that is ever proposed",
    ]  # fmt: skip


def span(each: object) -> str:
    from relab.lab.sweep.axis import Axis

    assert isinstance(each, Axis)
    return (
        f"({', '.join(map(str, each.values))})"
        if each.values
        else f"({each.low:g} to {each.high:g}{', log' * each.log})"
    )


def dry(args: LoopArgs, plan: loop.Loop, folder: Path) -> int:
    from relab.lab.loop import deciding, journal

    state = journal.looked_at(folder).state
    if args.json:
        from relab.base.jsonl import encode

        s = plan.seeds
        runs = {"noise": 0 if state.noise else s.noise, "least": args.runs * s.first,
                "most": args.runs * s.most}  # fmt: skip
        row = {"dry_run": True, "loop": str(folder), "proposals": args.runs, "runs": runs, "steps_per_run": plan.budget,
               "decides": plan.decides}  # fmt: skip
        print(encode(masks.masked(row)).decode(), end="")
        return 0
    there = f"  {plural(len(state.trials), 'proposal')} made so far; the best config is {state.best}"
    program = [f"  each by: {shlex.join(plan.command)}"] if plan.command else []
    lines = [*outline(plan, args.runs, bool(state.noise)), *program, f"  what decides: {deciding.said(plan)}", there]
    end = "  nothing was run or written; without --dry-run the time is told and asked for"
    print("\n".join(map(printable, [*lines, f"  into {folder}", end])))
    return 0


def agreed(args: LoopArgs, looping: loop.Looping, seconds: float | None) -> bool:
    """Say what it costs; ask unless --yes."""
    from relab.lab.loop import cost

    for line in outline(looping.plan, args.runs, bool(looping.state.noise)):
        print(printable(line), flush=True)
    least, most = cost.forecast(looping, args.runs)
    limit = f", ended after {duration(seconds)}" if seconds is not None else ""
    print(f"  forecast: {duration(least)} to {duration(most)}{limit}", flush=True)
    if args.yes:
        return True
    require(sys.stdin.isatty(), "nobody can be asked here (standard input is no terminal); add --yes to start")
    return input("  start? [y/N] ").strip().lower() in ("y", "yes")


# ---- Other things to do with it


def checked(args: LoopArgs, looping: loop.Looping) -> int:
    """Whether a proposal would run; a refusal is an error, as for every setting that cannot be used."""
    from relab.advise.proposal import diff_text
    from relab.lab import loop

    assert args.check is not None
    busy = looping.doing if loop.running(looping.arms.folder) else None
    if busy is not None and not args.json:
        print(printable(f"the loop is running: {busy}; checked against what stands in its journal now"), flush=True)
    idea = looping.proposer.from_file(args.check)
    if args.json:
        from relab.base.jsonl import encode

        print(
            encode(
                {"would_run": True, "running": busy, "parent": idea.parent, "diff": idea.change, "checks": idea.checks}
            ).decode(),
            end="",
        )
    else:
        print(printable(f"would run, as a change of {idea.parent}: {diff_text(idea.change)}"))
        print("\n".join(printable(f"  {name:10} {text}") for name, text in idea.checks.items()))
    return 0


def checked_apart(args: LoopArgs, plan: loop.Loop, name: str) -> int:
    """The same for a loop that has not begun: in a folder that is gone afterwards, so that none is made for a check."""
    from tempfile import TemporaryDirectory

    from relab.lab import loop

    with TemporaryDirectory() as place:
        return checked(args, loop.prepare(plan, Path(place) / name, 1, lambda line: None))


def enqueue(args: LoopArgs) -> int:
    from relab.commands.queue_options import Common
    from relab.lab.execute import submit
    from relab.lab.execute.queue import Queue

    options = {"--runs": args.runs, "--budget": args.budget, "--mode": args.mode, "--name": args.name,
               "--root": args.root, "--workers": args.workers, "--on": args.on}  # fmt: skip
    words = [
        "loop",
        str(args.file),
        "--yes",
        *(w for key, x in options.items() if x is not None for w in (key, str(x))),
    ]
    place = Common().folder
    entry = Queue(place).add(submit.relab(words, key=str(args.folder().resolve())))
    print(f"added to {place} as {entry.id[:8]}; next: relab queue work")
    return 0
