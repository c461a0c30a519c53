"""relab's own run folders."""

from __future__ import annotations

import orjson

from relab.base.documents import Document
from relab.base.jsonl import loads
from relab.formats.read.source import Listing, Source
from relab.record import glossary, history
from relab.record.history import History

META = ("schema", "status", "spec", "heartbeat", "config_hash")


def sniff(listing: Listing) -> bool:
    """Other tools write files of these names too; one that cannot be read is taken for relab's, and reported."""
    return _is_ours(listing, "meta.json") or _is_ours(listing, "metrics.jsonl")


def _is_ours(listing: Listing, name: str) -> bool:
    if name not in listing.files:
        return False
    start = listing.start_of(name, 1 << 16).removeprefix(b"\xef\xbb\xbf")
    try:
        row = loads(start.split(b"\n", 1)[0] if name.endswith(".jsonl") else start)
    except orjson.JSONDecodeError:  # broken, or longer than what was read
        return not start.lstrip().startswith(b"{") or any(b'"%s"' % mark.encode() in start for mark in (*META, "axis"))
    marks = META if name == "meta.json" else ("axis", *glossary.METRICS)
    return isinstance(row, dict) and (not row or any(mark in row for mark in marks))


def sources(listing: Listing) -> list[Source]:
    return [Source("relab", listing.folder)]


def read(source: Source) -> History:
    run = history.load(source.path)
    origin = run.meta.get("converted")
    if isinstance(origin, dict):
        _recover(run, origin)
    return run


def _recover(run: History, origin: Document) -> None:
    """A run that `relab convert` wrote is still another tool's: its format, and what that calls its metrics."""
    if isinstance(origin.get("format"), str):
        run.source = origin["format"]
    tables = {key: origin.get(key) for key in ("mapping", "factors", "keys")}
    mapping, factors, keys = ({} if not isinstance(t, dict) else t for t in tables.values())
    run.mapping = {name: ours for name, ours in mapping.items() if isinstance(ours, str) and ours in run.columns}
    run.factors = {name: float(f) for name, f in factors.items() if isinstance(f, (int, float)) and f}
    run.keys = {key: ours for key, ours in keys.items() if isinstance(ours, str)}
