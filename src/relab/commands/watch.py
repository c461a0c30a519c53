"""relab watch: one run while it trains, in the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relab.base.places import printable
from relab.base.text import wrap
from relab.commands.options import AsJson, OneRun, RunsFolder
from relab.commands.parsing import parse
from relab.config.base import require
from relab.record import names

EXAMPLES = """
  relab watch brave-otter                     its evaluations, stages, gates and findings as they come
  relab watch brave-otter --bell              and the terminal's bell for each warning or error
  relab watch logs/sb3_run --json             one JSON line for each piece of news, any tool's log
"""


@dataclass(frozen=True)
class Watch:
    """Follow one run while it trains: rows, evaluations, events and findings, until it ends. Writes nothing.

    `relab serve` shows the same in a browser, for all runs of a folder.
    """

    run: OneRun
    every: float = 1.0
    """seconds between two looks"""
    bell: bool = False
    """ring the terminal's bell for each new warning or error"""
    runs: RunsFolder = Path("runs")
    json: AsJson = False


def main(words: Sequence[str]) -> int:
    args = parse(Watch, "watch", words, EXAMPLES)
    require(args.every > 0, f"`--every` must be more than 0 seconds, but is {args.every}")
    from relab.base.jsonl import encode
    from relab.web.following import follow

    try:
        for news in follow(names.place(args.run, args.runs), args.every):
            if args.json:
                print(encode(news.to_json()).decode(), end="", flush=True)
                continue
            severity = f"{news.severity}: " if news.severity else ""
            print(
                "\n".join(lines(f"{news.step:>12,}  {news.kind:10}  ", printable(f"{severity}{news.text}"))), flush=True
            )
            if args.bell and news.severity in ("warning", "error"):
                print("\a", end="", flush=True)
    except KeyboardInterrupt:
        pass
    return 0


def lines(head: str, text: str) -> list[str]:
    """A piece of news, folded below its own beginning in a terminal; one line where a program reads."""
    if not sys.stdout.isatty():
        return [f"{head}{text}"]
    return wrap(text, max(shutil.get_terminal_size().columns - 1, 60), head)
