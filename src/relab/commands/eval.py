"""relab eval: how good is a checkpoint, on episodes that nothing was selected on?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from relab.base.documents import Document
from relab.base.places import printable
from relab.base.text import plural
from relab.commands import dry_run
from relab.commands.options import EnvChanges, OfCheckpoint
from relab.commands.parsing import parse

EXAMPLES = """
  relab eval brave-otter
  relab eval brave-otter --checkpoint best --episodes 1000
  relab eval brave-otter --checkpoint 65536 --json
  relab eval brave-otter env.agents=96 --episodes 24    in larger schools than it was trained in
"""


@dataclass(frozen=True)
class Eval(OfCheckpoint):
    """First episodes of a checkpoint on fresh seeds, deterministic and sampled, with a 95 % interval of the mean."""

    changes: EnvChanges = ()
    episodes: int = 100
    """first episodes per mode"""
    seed: int = 0
    """another number gives other fresh episodes"""
    json: bool = False
    """print every episode as JSON"""


def main(words: Sequence[str]) -> int:
    args = parse(Eval, "eval", words, EXAMPLES)
    folder = args.folder()
    if args.dry_run:
        where = f" with {' '.join(args.changes)}" if args.changes else ""
        what = f"play {args.episodes:,} fresh episodes a mode{where}"
        return dry_run.say([f"{what} with {dry_run.checkpoint_of(folder, args.checkpoint)}",
                            "keep what came of it as an event of the run"], args.json)  # fmt: skip
    from relab.train import fresh

    evaluation = fresh.fresh(folder, args.checkpoint, args.episodes, args.seed, args.changes, args.trust)
    if args.json:
        from relab.base.jsonl import encode

        print(encode(evaluation).decode(), end="")
        return 0
    episodes = f"{plural(evaluation['worlds'], 'fresh episode')} a mode"
    print(f"{printable(folder.name)}, checkpoint {args.checkpoint}: step {evaluation['step']:,}, {episodes}")
    for mode, x in evaluation["modes"].items():
        print(f"  {mode:8} return {line(x)}")
    if evaluation["selected"]:
        print(printable(f"  {evaluation['selected']}"))
    return 0


def line(x: Document) -> str:
    """The mean of a mode with its interval and spread, or why there is none."""
    success = "" if x["success"] is None else f", success {x['success']:.1%}"
    if math.isnan(x["mean"]):
        return f"unknown (n = {x['n']}; an episode was not over when it was cut off: set a time limit){success}"
    spread = f"min {x['min']:.4g}, max {x['max']:.4g}{success}"
    if x["n"] < 2:
        return f"{x['mean']:.4g} (n = {x['n']}: one episode has no interval; --episodes 100), {spread}"
    sure = f"[{x['low']:.4g}, {x['high']:.4g}] (mean, 95 % t-interval, n = {x['n']})"
    return f"{x['mean']:.4g} {sure}, sd {x['sd']:.4g}, {spread}"
