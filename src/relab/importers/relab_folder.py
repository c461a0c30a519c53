"""relab's own run folders."""

from __future__ import annotations

from relab import history
from relab.history import History
from relab.importers.source import Listing, Source

MARKS = ("meta.json", "metrics.jsonl")


def sniff(listing: Listing) -> bool:
    return any(mark in listing.files for mark in MARKS)


def sources(listing: Listing) -> list[Source]:
    return [Source("relab", listing.folder)]


def read(source: Source) -> History:
    return history.load(source.path)
