"""relab mcp: the same answers for programs, over the Model Context Protocol."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from relab.commands.parsing import parse
from relab.config.base import require

EXAMPLES = """
  relab mcp runs/                                      serve the runs below runs/ on standard input and output
  relab mcp . --allow-run                              a program may also put trainings into the queue
  {"command": "relab", "args": ["mcp", "/path/to/runs"]}   in the settings of a client that starts its servers
"""


@dataclass(frozen=True)
class Mcp:
    """Answer a program's questions about the runs below a folder (Model Context Protocol, over stdio).

    Eight tools that only read: list_runs, examine, compare, curves, diff, search_notes, propose, explain. Each answer
    has at most 2,000 tokens and says what was left out. Nothing outside of the folder is read.
    """

    path: tyro.conf.Positional[Path] = Path()
    """folder of runs, of any format"""
    allow_run: bool = False
    """also offer queue and queue_run: a training is put into the queue of the folder; a person starts the worker"""


def main(words: Sequence[str]) -> int:
    args = parse(Mcp, "mcp", words, EXAMPLES)
    require(args.path.is_dir(), f"`relab mcp` serves a folder of runs, but there is none at {args.path}")
    from relab.web import mcp_guard, mcp_server

    server = mcp_server.server(args.path, args.allow_run)
    mcp_guard.put_up(args.path.resolve())
    server.run("stdio")
    return 0
