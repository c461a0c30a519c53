"""relab probe: what does one measurement say about a checkpoint?"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from relab.base.documents import Document
from relab.base.places import printable
from relab.commands import dry_run
from relab.commands.options import Checkpoint, OfCheckpoint
from relab.commands.parsing import parse
from relab.config import layers, registry

EXAMPLES = """
  relab probe brave-otter                          which probes this run's algorithm has
  relab probe brave-otter fixed_point              where the critic goes, and how far that is
  relab probe brave-otter stability --checkpoint 320000 --json
  relab probe brave-otter fixed_point probes.fixed_point.samples=32768
"""


@dataclass(frozen=True)
class Probe(OfCheckpoint):
    """One measurement of a checkpoint, from random streams of its own: value, noise, n. Nothing is written."""

    words: tyro.conf.Positional[tuple[str, ...]] = ()
    """the probe; and settings of the section `probes` (key=value)"""
    checkpoint: Checkpoint = "latest"
    json: bool = False
    """print the rows as JSON lines"""


def main(words: Sequence[str]) -> int:
    args = parse(Probe, "probe", words, EXAMPLES)
    folder = args.folder()
    named = [word for word in args.words if "=" not in word]
    layers.require(len(named) <= 1, f"one probe is asked at a time, but got {', '.join(named)}")
    settings = layers.parse_overrides([word for word in args.words if "=" in word])
    from relab.record.run_folder import read_config
    from relab.train import probes

    settings_of_algo = read_config(folder).get("algo") or {}
    algo = str(settings_of_algo.get("name"))
    if not named:
        show_list(offered(folder, algo, args.trust), algo, args.json)
        return 0
    name = probes.check(named[0], algo)
    if args.dry_run:
        return dry_run.say([f"measure {name} of {dry_run.checkpoint_of(folder, args.checkpoint)}"], args.json)
    from relab.train.fresh import probe

    rows = probe(folder, args.checkpoint, name, settings, args.trust)
    show(rows, folder.name, args.json)
    if note := untaught(settings_of_algo, name):
        print(note, file=sys.stderr)
    return 0


def untaught(algo: Mapping[str, Any], probe: str) -> str:
    """Said of a critic that nobody taught: its numbers are those it began with."""
    if probe not in ("value_vs_rerun", "dream_vs_world") or algo.get("mode") != "model":
        return ""
    return "note: the world model alone learned in this run (mode=model): actor and critic are as they began"


def offered(folder: Path, algo: str, trust: bool) -> dict[str, str]:
    """Probe -> its question, of those that the run can be asked; code that nobody trusts is not run to find out."""
    from relab.train import probes

    names, unsure = probes.of(algo), ""
    if registry.named_code("algo", algo) and not trust:
        unsure = " (only if its agent has `value` and its settings have `gamma`; with --trust it is looked up)"
    elif algo not in registry.ALGOS:
        from relab.train.fresh import probes_of

        names = probes_of(folder, trust)
    return {name: probes.PROBES[name][2] + unsure for name in names}


def show_list(known: Mapping[str, str], algo: str, as_json: bool) -> None:
    from relab.base.jsonl import encode

    if as_json:
        print(encode(known).decode(), end="")
        return
    none = f"{printable(algo)} has no probes: its agent has no `value`, or its settings have no `gamma`"
    print("\n".join(f"{name:14} {text}" for name, text in known.items()) or none)


def show(rows: list[Document], name: str, as_json: bool) -> None:
    from relab.base.jsonl import encode

    for row in rows:
        if as_json:
            print(encode(row).decode(), end="")
            continue
        head = f"{row['probe']} of {printable(name)} at step {row['step']:,} (iteration {row['iteration']:,})"
        noise = "" if math.isnan(row["noise"]) else f" ± {row['noise']:.2g} (standard error)"
        print(f"{head}\n  {row['metric']} = {row['value']:.6g}{noise}, n = {row['n']:,}")
        rest = {
            k: v
            for k, v in row.items()
            if k not in ("step", "iteration", "probe", "metric", "value", "noise", "n", "unit")
        }
        print("\n".join(f"    {key:22} {value_text(value)}" for key, value in rest.items()))


def value_text(value: Any) -> str:
    """Six digits; a number within 1 % of 1 also as its distance to it, which six digits would hide."""
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    near = 0 < abs(value - 1.0) < 0.01
    return f"{value:.6g}" + (
        f" (1 - {1.0 - value:.3g})" if near and value < 1 else f" (1 + {value - 1.0:.3g})" if near else ""
    )
