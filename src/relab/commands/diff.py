"""relab diff: only what differs between two configs, biggest change first."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import tyro

from relab.base import masks
from relab.base.documents import Settings
from relab.base.numbers import is_number
from relab.base.places import printable
from relab.commands.options import AsJson, RunsFolder
from relab.commands.parsing import parse
from relab.config import layers
from relab.record import names

EXAMPLES = """
  relab diff brave-otter calm-lynx
  relab diff runs/a/config.yaml my_config.yaml --json
"""


@dataclass(frozen=True)
class Diff:
    """Config keys that differ between two runs (or YAML files), biggest change first; equal keys are not shown."""

    a: tyro.conf.Positional[str]
    """run (name, part of it, id, folder, file of another tool) or YAML file"""
    b: tyro.conf.Positional[str]
    """the same, to compare with"""
    runs: RunsFolder = Path("runs")
    json: AsJson = False


def main(words: Sequence[str]) -> int:
    args = parse(Diff, "diff", words, EXAMPLES)
    both = [read(word, args.runs) for word in (args.a, args.b)]
    changes = layers.diff(*(each.config for each in both))
    if args.json:
        from relab.base.jsonl import encode

        rows = [
            {
                "key": masks.mask(c.key),
                "a": masks.beside(c.key, shown(c.a)),
                "b": masks.beside(c.key, shown(c.b)),
                "size": c.size,
            }
            for c in changes
        ]
        print(encode({"a": args.a, "b": args.b, "changes": rows}).decode(), end="")
        return 0
    if not changes:
        print("no difference")
    width = max((len(masks.mask(c.key)) for c in changes), default=0)
    for c in changes:
        values = f"{masks.beside(c.key, c.a)!s} -> {masks.beside(c.key, c.b)!s}"
        times = "" if c.key == "seed" else ratio(c.a, c.b)
        print(printable(f"{masks.mask(c.key):{width}}  {values}{times}{origin(c.key, both)}"))
    return 0


class Said(NamedTuple):
    """A config as plain values, and the keys that the log alone tells."""

    config: Settings
    logged: Collection[str] = ()


def read(word: str, runs: Path) -> Said:
    """Nothing of the config is imported."""
    path = Path(word)
    if path.is_file() and path.suffix in (".yaml", ".yml"):
        return Said(layers.read_yaml(path))
    return settings_of(names.place(word, runs))


def settings_of(path: Path) -> Said:
    """The settings of the one run at a path, whichever tool wrote it."""
    from relab.formats.read import find, logged_settings

    sources = list(find.find(path))
    layers.require(len(sources) == 1, f"{path} must be one run, but holds {len(sources)}")
    run = find.read(sources[0])
    layers.require(bool(run.config), f"{path} has no settings in its record ({run.source})")
    return Said(run.config, logged_settings.of(run))


def origin(key: str, both: Sequence[Said]) -> str:
    return "  (read from the log)" if any(key in each.logged for each in both) else ""


def shown(value: Any) -> Any:
    return None if value is layers.MISSING else value


def ratio(a: Any, b: Any) -> str:
    """How many times as large, of two numbers above 0; -1 and the like are words.

    >>> ratio(0.1, 0.2), ratio(500, -1), ratio(True, 1)
    ('  (x2)', '', '')
    """
    numbers = all(is_number(x) and x > 0 for x in (a, b))
    return f"  (x{b / a:.4g})" if numbers else ""
