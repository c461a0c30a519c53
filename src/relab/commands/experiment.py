"""relab experiment: from a declared question to an answer."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from relab import experiment, screen
from relab.commands.parsing import parse
from relab.config import require

EXAMPLES = """
  relab experiment question.yaml                 forecasts the cost, then asks
  relab experiment question.yaml --yes           runs what is missing, ends in an answer
  relab experiment question.yaml --yes --json
"""


@dataclass(frozen=True)
class Experiment:
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
    """start without asking"""
    json: bool = False
    """print the answers as JSON"""


def main(words: Sequence[str]) -> int:
    args = parse(Experiment, "experiment", words, EXAMPLES)
    asked = experiment.load(args.file)
    folder = args.root / (args.name or args.file.stem)
    cells = experiment.prepare(asked, folder)
    if not (args.json or agreed(args, asked, cells, folder)):
        return 0
    done = experiment.run(asked, folder, cells, args.workers, None if args.json else tell)
    if done.interrupted:
        print(
            f"interrupted: {len(done.finished)} of {len(cells)} runs are finished; call it again to go on",
            file=sys.stderr,
        )
        return 130
    answers = experiment.conclude(asked, folder, cells)
    if args.json:
        from relab.jsonl import encode

        print(encode({"question": asked.question, "answers": [x.to_dict() for x in answers]}).decode(), end="")
    else:
        print("\n".join(report(asked, answers, done.failed, folder)))
    return 1 if done.failed else 0


def agreed(args: Experiment, asked: experiment.Experiment, cells: list[experiment.Cell], folder: Path) -> bool:
    """Say what it costs; ask unless --yes."""
    size = f"{len(asked.variants)} variants x {len(asked.seeds)} seeds"
    print(f"{asked.question}\n  {size}, compared by {asked.at} {asked.metric}")
    cost = experiment.forecast(asked, cells, folder, args.workers or experiment.cores())
    if not cost.runs:
        print("  all runs are finished")
        return True
    each, total = screen.duration(cost.seconds_per_run), screen.duration(cost.seconds)
    print(f"  forecast: {cost.runs} runs of about {each}, {cost.workers} at a time: {total}", flush=True)
    if args.yes:
        return True
    require(sys.stdin.isatty(), "nobody can be asked here (standard input is no terminal); add --yes to start")
    return input("  start? [y/N] ").strip().lower() in ("y", "yes")


def tell(done: int, all_: int) -> None:
    print(f"  {done} of {all_} runs finished", flush=True)


def report(asked: experiment.Experiment, answers: list, failed: list[str], folder: Path) -> list[str]:
    """Every seed's number, then the answers."""
    lines = []
    first = answers[0]
    for name, arm in [(first.names[0], first.a), *((x.names[1], x.b) for x in answers)]:
        lines.append(f"  {name:20} {'  '.join(screen.number(o.value) for o in arm)}")
    for x in answers:
        lines.append(x.text)
        lines += [f"  {note}" for note in x.notes]
    if failed:
        lines.append(f"  failed: {', '.join(failed)} (see {folder / 'logs'})")
    return [*lines, f"  experiment: {folder}"]
