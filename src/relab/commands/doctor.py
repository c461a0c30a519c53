"""relab doctor: is everything here as relab needs it?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import tyro

from relab.base.places import printable
from relab.commands.options import AsJson
from relab.commands.parsing import parse

if TYPE_CHECKING:
    from relab.lab.checkup import Line

EXAMPLES = """
  relab doctor
  relab doctor logs/ --json
  relab doctor --deep                 imports torch as well: a few seconds
"""
MARKS = {"ok": "ok", "warn": "warn", "broken": "BROKEN"}


@dataclass(frozen=True)
class Doctor:
    """Check the install, the machine, the folders and the runs in them; what is wrong comes with its remedy.

    Exit code 1 if something is broken; a warning is none.
    """

    path: tyro.conf.Positional[Path] = Path("runs")
    """folder of runs to look at"""
    deep: bool = False
    """import torch and let it compute, in a process of its own"""
    json: AsJson = False


def main(words: Sequence[str]) -> int:
    args = parse(Doctor, "doctor", words, EXAMPLES)
    from relab.lab import checkup

    lines = checkup.checkup(args.path, args.deep)
    if args.json:
        import orjson

        print(orjson.dumps(checkup.to_json([safe(line) for line in lines]), option=orjson.OPT_INDENT_2).decode())
    else:
        print(text([safe(line) for line in lines]))
    return 1 if checkup.worst(lines) == checkup.BROKEN else 0


def safe(line: Line) -> Line:
    """Names of folders come from anywhere: no control characters, no halves of characters."""
    clean = [printable(part) for part in (line.state, line.remedy)]
    return replace(line, state=clean[0], remedy=clean[1])


def text(lines: Sequence[Line]) -> str:
    groups = dict.fromkeys(line.group for line in lines)
    rows = []
    for group in groups:
        for i, line in enumerate(each for each in lines if each.group == group):
            rows.append(f"{group if i == 0 else '':9}{MARKS[line.level]:7}{line.name:13}{line.state}")
            rows += [f"{'':29}-> {line.remedy}"] if line.remedy else []
    count = {level: sum(line.level == level for line in lines) for level in MARKS}
    return "\n".join([*rows, f"{count['ok']} ok, {count['warn']} to look at, {count['broken']} broken"])
