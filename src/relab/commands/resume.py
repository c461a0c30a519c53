"""relab resume: go on where a run stood."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from relab.base.interrupts import go_on, stops_say
from relab.base.places import printable
from relab.commands import dry_run
from relab.commands.options import DryRun, OneRun, ProgressAsJson, Quiet, RunsFolder, Trust, own_run
from relab.commands.parsing import parse
from relab.config.base import require
from relab.train import screen

EXAMPLES = """
  relab resume brave-otter             any unique part of the name, the id, or the folder
  relab resume runs/2026-11-16-brave-otter
  relab resume brave-otter --dry-run   from which step it would go on
"""


@dataclass(frozen=True)
class Resume:
    """Continue a run from its last complete checkpoint, under the same name and to the same bytes."""

    run: OneRun
    settings: tyro.conf.Positional[tuple[str, ...]] = ()
    """none: with other settings it would be another run, which `relab train --parent` makes"""
    runs: RunsFolder = Path("runs")
    trust: Trust = False
    json: ProgressAsJson = False
    quiet: Quiet = False
    dry_run: DryRun = False


def further(folder: Path) -> str:
    """How a run with other settings begins with the weights of this one."""
    return printable(f"relab train --parent {folder} start_from={folder} total_steps=STEPS")


def planned(folder: Path, trust: bool) -> list[str]:
    """What --dry-run says; settings that the record may not name are refused, as without it."""
    from relab.config import layers
    from relab.record.run_folder import read_meta
    from relab.train import checkpoint

    cfg, last = layers.from_record(folder, trust), checkpoint.last(folder / "checkpoints")
    if read_meta(folder).get("status") == "finished":
        return [f"do nothing: {folder.name} is complete; to train on: {further(folder)}"]
    start = f"step {checkpoint.step_of(last):,} ({last})" if last else "its beginning: it has no checkpoint yet"
    return [f"go on with {folder.name} from {start}, up to {cfg.total_steps:,} steps"]


def main(words: Sequence[str]) -> int:
    args = parse(Resume, "resume", words, EXAMPLES)
    folder = own_run(args.run, args.runs)
    require(not args.settings, f"a run goes on as it was begun, but got {', '.join(args.settings)}: schedules follow"
            f" `total_steps`, so that another one makes another run; begin it with the weights of this one:"
            f" {further(folder)}")  # fmt: skip
    if args.dry_run:
        return dry_run.say(planned(folder, args.trust), args.json)
    with stops_say(lambda: go_on(folder, " --trust" * args.trust)):
        from relab.commands.train import exit_code
        from relab.train import session

        outcome = session.resume(folder, screen.choose(args.json, args.quiet), args.trust)
    if outcome.why == session.COMPLETE and not args.json:
        print(f"{printable(folder.name)}: {outcome.why} ({outcome.step:,} steps)\n  to train on: {further(folder)}")
    return exit_code(outcome, args.quiet)
