"""relab eval: how good is a checkpoint, on episodes that nothing was selected on?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from relab import names
from relab.commands.parsing import parse
from relab.places import printable

EXAMPLES = """
  relab eval brave-otter
  relab eval brave-otter --checkpoint best --episodes 1000
  relab eval brave-otter --checkpoint 65536 --json
  relab eval brave-otter env.agents=96 --episodes 24    in larger schools than it was trained in
"""


@dataclass(frozen=True)
class Eval:
    """First episodes of a checkpoint on fresh seeds, deterministic and sampled, with a 95 % interval of the mean."""

    run: tyro.conf.Positional[str]
    """name, part of a name, id or folder of the run"""
    changes: tyro.conf.Positional[tuple[str, ...]] = ()
    """parameters of the environment to change for this (env.key=value)"""
    checkpoint: str = "best"
    """best, latest, or a step"""
    episodes: int = 100
    """first episodes per mode"""
    seed: int = 0
    """another number gives other fresh episodes"""
    runs: Path = Path("runs")
    """folder that holds the run folders"""
    trust: bool = False
    """run code that the record itself names (env or algo as package.module:Name, gym:module:Id)"""
    json: bool = False
    """print every episode as JSON"""


def main(words: Sequence[str]) -> int:
    args = parse(Eval, "eval", words, EXAMPLES)
    folder = names.find(args.run, args.runs)
    from relab import judge

    found = judge.fresh(folder, args.checkpoint, args.episodes, args.seed, args.changes, args.trust)
    if args.json:
        from relab.jsonl import encode

        print(encode(found).decode(), end="")
        return 0
    which = f"{printable(folder.name)}, checkpoint {args.checkpoint}"
    print(f"{which}: step {found['step']:,}, {found['worlds']} fresh episodes a mode")
    for mode, x in found["modes"].items():
        success = "" if x["success"] is None else f", success {x['success']:.1%}"
        spread = f"sd {x['sd']:.4g}, min {x['min']:.4g}, max {x['max']:.4g}{success}"
        sure = f"[{x['low']:.4g}, {x['high']:.4g}] (mean, 95 % t-interval, n = {x['n']})"
        print(f"  {mode:8} return {x['mean']:.4g} {sure}, {spread}")
    if found["selected"]:
        print(printable(f"  {found['selected']}"))
    return 0
