"""relab convert: runs of any tool, written in the format of another one."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import tyro

from relab.base.places import printable as clean
from relab.base.text import plural
from relab.commands.hinting import Hinting
from relab.commands.options import RunsFolder
from relab.commands.parsing import parse
from relab.commands.progress import Progress
from relab.record import names as run_names

if TYPE_CHECKING:
    from relab.formats.write.convert import Converted

EXAMPLES = """
  relab convert logs/ --to relab --out runs_of_sb3           every run below logs/ as a relab run folder
  relab convert runs/ --to tensorboard --out tb              then: tensorboard --logdir tb
  relab convert wandb/ --to csv --out tables --names original
  relab convert logs/ --to csv --out tables --dry-run        which runs that would be
  relab convert runs/ --to mlflow --out store                then: MLFLOW_TRACKING_URI=file:store/mlruns
  relab convert loops/cart/runs --to loop --out autopilot    override, config_diff, summary and notes of each run
"""
BROKEN = 2  # exit code: some runs could not be read


@dataclass(frozen=True)
class Convert:
    """Write every run at or below a path in another tool's format. The source is only read."""

    path: tyro.conf.Positional[str]
    """run (folder, name, part of it, id), folder of runs, or a file of any tool"""
    to: Literal["relab", "tensorboard", "csv", "mlflow", "wandb", "loop"]
    """format to write"""
    out: Path
    """folder to write into: new, empty, or an earlier conversion of the same"""
    names: Literal["relab", "original"] = "relab"
    """names of metrics and settings: relab's, or the tool's own with its signs and scales"""
    dry_run: bool = False
    """only list the runs that would be written"""
    json: bool = False
    """print what was written as JSON"""
    runs: RunsFolder = Path("runs")
    hints: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    from relab.formats.read.find import find
    from relab.formats.read.unread import summary as summary_of
    from relab.formats.write.convert import convert

    args = parse(Convert, "convert", words, EXAMPLES)
    path = Path(args.path) if Path(args.path).exists() else run_names.find(args.path, args.runs)
    if args.hints.show_mapping:
        print(args.hints.shown(path))
        return 0
    if args.hints.group:
        args.hints.check_group(path, [source.name for source in find(path)])
    if args.dry_run:
        from relab.formats.read.find import load_all

        runs = load_all(path, args.hints.of(path)).runs
        print("\n".join(clean(f"{run.name} ({run.source.format})") for run in runs))
        print(f"{plural(len(runs), 'run')} would be written to {args.out} as {args.to}; nothing was")
        return 0
    with Progress("converting run") as tell:
        done = convert(path, args.to, args.out, args.names, args.hints.of(path), tell)
    for gone in done.broken:
        print(clean(f"relab: not readable: {gone.run}: {gone.why}"), file=sys.stderr)
    if done.unread:
        more = "" if args.json or len(done.unread) == 1 else " (--json lists all)"
        print(clean(f"relab: {summary_of(done.unread)}{more}"), file=sys.stderr)
    if args.json:
        from relab.base.jsonl import encode

        print(encode({**done.to_json(), "out": str(args.out)}).decode(), end="")
    else:
        print(clean(summary(done.runs, args)))
    return BROKEN if done.broken else 0


def summary(runs: list[Converted], args: Convert) -> str:
    formats = ", ".join(dict.fromkeys(run.format for run in runs))
    values = sum(run.values for run in runs)
    many = plural(len(runs), "run")
    return f"{args.out}: {many} ({formats}) as {args.to}, {values:,} numbers"
