"""relab serve: the dashboard, in a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import tyro

from relab.commands.parsing import parse
from relab.config.base import require

EXAMPLES = """
  relab serve                                   the runs below this folder
  relab serve logs/                             of any tool; nothing is written there
  relab serve runs/ --port 9000
  ssh -L 8450:localhost:8450 lab                then open http://localhost:8450 here
  relab serve runs/ --host 0.0.0.0              open to others: prints an address with a token that they need
  relab serve runs/ --webhook http://localhost:9999/finding
"""
PORT = 8450


@dataclass(frozen=True)
class Serve:
    """Show runs in a browser while they train: what is new, tables over seeds, curves, findings, comparisons, the log.

    Listens on this machine alone (127.0.0.1). Reads only below the folder, follows no link out of it, and loads nothing
    from the net. Ctrl-C ends it.
    """

    path: tyro.conf.Positional[Path] = Path()
    """folder of runs, of any format"""
    port: int | None = None
    """port to listen on; default: 8450, or the next one that is free"""
    host: str = "127.0.0.1"
    """address to listen on; another one than this machine's own is open to others, who need the token"""
    name: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """a further name that the server is known by in a browser, e.g. behind a proxy; may be given several times"""
    webhook: str | None = None
    """address that is told each new finding as JSON (POST); default: none"""
    open: bool = False
    """open the page in a browser"""


def main(words: Sequence[str]) -> int:
    args = parse(Serve, "serve", words, EXAMPLES)
    require(args.path.is_dir(), f"{args.path} is no folder; give a folder of runs")
    require(args.port is None or 0 <= args.port < 65536, f"`--port` must be 0 to 65535, but is {args.port}")
    from relab.web import guard, serving

    token = guard.new_token()
    server = serving.listening(args.host, PORT if args.port is None else args.port, args.port is not None)
    where = serving.address(args.host, server, token)

    def ready() -> None:
        print(f"relab serves {args.path.resolve()} at {where}   (Ctrl-C ends it)", flush=True)
        if not guard.is_loopback(args.host):
            print("relab: others can reach this address; only who has the token in it gets in", flush=True)
        if args.open:
            import webbrowser

            webbrowser.open(where)

    serving.serve(args.path, server, args.host, token, args.name, args.webhook, ready)
    return 0
