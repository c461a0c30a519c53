"""relab study: one of the studied systems, from its configs to a page that holds measured beside known."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import tyro

from relab.base.documents import Document
from relab.base.terminal import keep_going
from relab.commands.options import Workers
from relab.commands.parsing import parse, renamed

if TYPE_CHECKING:
    from relab.lab.studies import Step

EXAMPLES = """
  relab study                      which studies there are
  relab study NAME                 says what it will cost, then asks
  relab study NAME --yes           runs what is missing, writes the page of results
  relab study NAME --full --dry-run   what the whole of it would cost
  relab study NAME --fresh --yes   asks its questions once more, on seeds that had no part in the answers
"""
INTERRUPTED = 130


@dataclass(frozen=True)
class Study:
    """A studied system as configs, experiments and known answers (docs/studies).

    Call it again to go on after a stop: finished steps are not repeated.
    """

    name: tyro.conf.Positional[str | None] = None
    """which; without it, the studies are listed"""
    full: bool = False
    """everything, not only what is quick; says its cost first"""
    fresh: bool = False
    """its questions once more, on as many fresh seeds, in the folder NAME-fresh"""
    dry_run: bool = False
    """only say what it would do and cost"""
    yes: bool = False
    """start without asking"""
    workers: Workers = None
    root: Path = Path("studies")
    """folder that holds the studies' runs and results, one folder each"""
    json: bool = False
    """print the plan or the results as JSON; asks nothing"""


def main(words: Sequence[str]) -> int:
    args = parse(Study, "study", renamed(words, "--plan", "--dry-run"), EXAMPLES)
    from relab.lab import studies

    if args.name is None:
        show(args.json, listed(), "\n".join(f"{name:8} {text}" for name, text in listed().items()) or "no studies")
        return 0
    study = studies.module(args.name)
    steps = on_fresh_seeds(args.name, study.plan(args.full)) if args.fresh else study.plan(args.full)
    root = args.root / f"{args.name}{'-fresh' if args.fresh else ''}"
    if args.dry_run:
        show(args.json, planned(root, steps), "\n".join(plan_lines(root, steps)))
        return 0
    return carry_out(args, study, steps, root)


def carry_out(args: Study, study: Any, steps: list[Step], root: Path) -> int:
    from relab.base.interrupts import Interrupted
    from relab.base.jsonl import write_atomic
    from relab.lab.execute.slots import cores
    from relab.lab.studies import run

    keep_going()
    if not (args.json or agreed(args, root, steps)):
        return 0
    try:
        run.run(root, steps, args.workers or cores(), say)
    except (Interrupted, KeyboardInterrupt):
        done = len(steps) - len(run.missing(root, steps))
        print(f"interrupted: {done} of {len(steps)} steps are done; call it again to go on", file=sys.stderr)
        return INTERRUPTED
    results = run.results(root, steps)
    page = root / "results.md"
    text = study.page(results)
    write_atomic(page, text.encode())
    show(args.json, {name: result.to_json() for name, result in results.items()}, f"{text}\nresults: {page}")
    return 0


def on_fresh_seeds(name: str, steps: list[Step]) -> list[Step]:
    """Its questions, on seeds that had no part in their answers."""
    from relab.config.base import require

    again = [replace(step, run=step.again) for step in steps if step.again]
    require(bool(again), f"the study {name} declares no question that can be asked again; leave out --fresh")
    return again


def listed() -> dict[str, str]:
    from relab.lab import studies

    return {name: studies.module(name).SUMMARY for name in studies.STUDIES}


# ---- The cost


def planned(root: Path, steps: list[Step]) -> Document:
    from relab.lab.studies.run import kept

    rows = [{"step": s.name, "what": s.what, "seconds": s.seconds, "done": kept(root, s) is not None} for s in steps]
    return {"steps": rows, "seconds": sum(row["seconds"] for row in rows if not row["done"])}


def plan_lines(root: Path, steps: list[Step]) -> list[str]:
    """A line a step, then what is left to pay."""
    from relab.base.text import duration

    outline = planned(root, steps)
    rows = [f"  {row['step']:14} {'done' if row['done'] else duration(row['seconds']):>8}  {row['what']}"
            for row in outline["steps"]]  # fmt: skip
    left = outline["seconds"]
    return [*rows, f"  left: {duration(left)} of one core" if left else "  all steps are done"]


def agreed(args: Study, root: Path, steps: list[Step]) -> bool:
    """Say what it costs; ask unless --yes, or there is nothing left to pay."""
    from relab.config.base import require

    print("\n".join(plan_lines(root, steps)), flush=True)
    if args.yes or not planned(root, steps)["seconds"]:
        return True
    require(sys.stdin.isatty(), "nobody can be asked here (standard input is no terminal); add --yes to start")
    return input("  start? [y/N] ").strip().lower() in ("y", "yes")


# ---- Saying it


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def show(as_json: bool, body: Document, text: str) -> None:
    from relab.base.jsonl import encode

    print(encode(body).decode() if as_json else text, end="" if as_json else "\n")
