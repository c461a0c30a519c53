"""relab diff: only what differs between two configs, biggest change first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from relab.commands.options import AsJson, RunsFolder
from relab.commands.parsing import parse
from relab.record import names

if TYPE_CHECKING:
    from relab.runs.settings import RunSettings

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
    from relab.runs.settings import Difference

    args = parse(Diff, "diff", words, EXAMPLES)
    difference = Difference([read(word, args.runs) for word in (args.a, args.b)])
    if args.json:
        from relab.base.jsonl import encode

        print(encode({"schema": 1, "a": args.a, "b": args.b, "changes": difference.rows()}).decode(), end="")
        return 0
    print("\n".join(difference.lines() or [difference.alike]))
    return 0


def read(word: str, runs: Path) -> RunSettings:
    from relab.runs.settings import settings_of

    path = Path(word)
    is_yaml = path.is_file() and path.suffix in (".yaml", ".yml")
    return settings_of(path if is_yaml else names.place(word, runs))
