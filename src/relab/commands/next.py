"""relab next: what to run next, with its reasons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import tyro

from relab.advise.proposal import Proposal
from relab.commands import dry_run
from relab.commands.hinting import Hinting
from relab.commands.options import AsJson, RunsFolder
from relab.commands.parsing import parse
from relab.config.base import require

EXAMPLES = """
  relab next brave-otter                       what its findings call for, as a change of settings
  relab next brave-otter --write               the same as a file that `relab train` runs
  relab train runs/brave-otter/next_config.yaml seed=1
  relab next experiments/clip                  what follows from an experiment's answer
  relab next --history                         how good the predictions were, run by run
"""


@dataclass(frozen=True)
class Next:
    """Propose the next config: one change, why, what to expect, what it costs. Or say why no run is called for."""

    path: tyro.conf.Positional[str] = "runs"
    """run (folder, name, part of it, id), folder of runs, or folder of an experiment"""
    write: bool = False
    """write next_config.yaml into that folder"""
    history: bool = False
    """show the predictions of all runs below that came from a proposal, each with its score"""
    against: str | None = None
    """run to hold the findings against; else the parent, where a run has one"""
    runs: RunsFolder = Path("runs")
    root: Path = Path("experiments")
    """folder that holds the experiments: what was answered is not proposed again"""
    json: AsJson = False
    dry_run: bool = False
    """with --write: say where the file would go, and write nothing"""
    known: Hinting = field(default_factory=Hinting)


def main(words: Sequence[str]) -> int:
    args = parse(Next, "next", words, EXAMPLES)
    if args.history:
        return history(args)
    from relab.advise import proposal, propose, render, tried
    from relab.health.examine import examine_loaded
    from relab.notebook.log import earlier
    from relab.record import names

    path = names.place(args.path, args.runs)
    if args.known.show_mapping:
        print(args.known.shown(path))
        return 0
    against = None if args.against is None else names.place(args.against, args.runs)
    report = examine_loaded(args.known.load(path), path, against, hints=args.known.of(path))
    advice = propose(report, path, [*earlier(args.root), *tried.around(path)])
    wrote = None
    if args.write and not args.dry_run and isinstance(advice, Proposal) and advice.runs_here:
        wrote = proposal.write(advice)
    if args.json:
        from relab.base.jsonl import encode

        row = {"schema": 1, "path": str(path), "proposal": advice.to_dict(), "written": wrote and str(wrote)}
        print(encode(row).decode(), end="")
        return 0
    print(render.text(advice))
    if isinstance(advice, Proposal):
        print(render.clean(how_to_run(advice, args.path, wrote, args.write)))
    if args.dry_run:
        here = isinstance(advice, Proposal) and advice.runs_here and args.write
        return dry_run.say([f"write {Path(advice.folder) / proposal.FILE}" if here else "write nothing"])  # type: ignore[union-attr]
    return 0


def history(args: Next) -> int:
    """Every prediction and what became of it; nothing is written."""
    from relab.advise import calibration, score
    from relab.formats.read import find
    from relab.record import names

    require(not args.write, "--write puts a proposal into a file; it does not go with --history")
    path = names.place(args.path, args.runs)
    scores = score.collect((each.history for each in find.load_all(path).runs), [args.runs, args.root])
    if args.json:
        from relab.base.jsonl import encode

        row = {"schema": 1, "path": str(path), "scores": [one.to_dict() for one in scores],
               "calibration": calibration.calibration(scores).to_dict()}  # fmt: skip
        print(encode(row).decode(), end="")
    else:
        print(calibration.text(scores))
    return 0


def how_to_run(proposal: Proposal, path: str, wrote: Path | None, to_write: bool) -> str:
    """The last line: what to type."""
    if not proposal.runs_here:
        reason = "(nothing is written: `relab train` cannot run this) " if to_write else ""
        if proposal.source == "answer":
            return f"  {'then':12}{reason}{proposal.command}"
        new = f"no run of this config has seed {proposal.seeds[0]} yet" if proposal.seeds else "its log gives no seed"
        where = f"   (in the program that trained it; {new})"
        return f"  {'set':12}{reason}{proposal.command}{where}"
    return f"  {'run it':12}{'' if wrote else f'relab next {path} --write && '}{proposal.command}"
