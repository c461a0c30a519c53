"""How do pages hear what is new? A stream of events to each page that is open (server-sent events), few and small.

An event only says what has changed; the page then asks for it as it would have anyway. A page that does not listen
misses nothing but the haste: events of one kind that it has not taken yet become one.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterable
from dataclasses import dataclass, field
from typing import Any

import orjson

MOST_STREAMS = 32
BEAT_S = 15.0  # between two signs of life of a stream
RETRY_MS = 2000  # after which a browser tries again


@dataclass(eq=False)
class Stream:
    """One page that listens."""

    loop: asyncio.AbstractEventLoop
    runs: frozenset[str]  # whose rows it wants to hear of
    waiting: dict[str, Any] = field(default_factory=dict)  # kind -> what is to be said
    called: asyncio.Event = field(default_factory=asyncio.Event)
    over: bool = False


class Live:
    """All pages that listen."""

    def __init__(self, most: int = MOST_STREAMS) -> None:
        self.most = most
        self._streams: set[Stream] = set()
        self._lock = threading.Lock()

    def join(self, runs: Iterable[str]) -> Stream | None:
        """A new stream; None where there are as many as may be."""
        stream = Stream(asyncio.get_running_loop(), frozenset(runs))
        with self._lock:
            if len(self._streams) >= self.most:
                return None
            self._streams.add(stream)
        return stream

    def greet(self, stream: Stream, kind: str, data: Any) -> None:
        """What a page must know that was made before it listened."""
        _put(stream, kind, data)

    def leave(self, stream: Stream) -> None:
        with self._lock:
            self._streams.discard(stream)

    @property
    def count(self) -> int:
        with self._lock:
            return len(self._streams)

    @property
    def wanted(self) -> set[str]:
        """Names of the runs that somebody looks at."""
        with self._lock:
            return {name for stream in self._streams for name in stream.runs}

    def say(self, kind: str, data: Any, about: Iterable[str] | None = None) -> None:
        """To all, or to those who look at one of these runs; from any thread."""
        names = None if about is None else set(about)
        with self._lock:
            chosen = [stream for stream in self._streams if names is None or names & stream.runs]
        for stream in chosen:
            stream.loop.call_soon_threadsafe(_put, stream, kind, data)

    def end(self) -> None:
        """The server stops: no page keeps it waiting."""
        with self._lock:
            streams = [*self._streams]
        for stream in streams:
            stream.over = True
            stream.loop.call_soon_threadsafe(stream.called.set)


def _put(stream: Stream, kind: str, data: Any) -> None:
    stream.waiting[kind] = data
    stream.called.set()


async def events(live: Live, stream: Stream) -> AsyncIterator[bytes]:
    """The text of a stream."""
    try:
        yield f"retry: {RETRY_MS}\n\n".encode()
        while not stream.over:
            try:
                await asyncio.wait_for(stream.called.wait(), BEAT_S)
            except TimeoutError:
                yield b": still here\n\n"
                continue
            stream.called.clear()
            waiting, stream.waiting = stream.waiting, {}
            for kind, data in waiting.items():
                yield b"event: %s\ndata: %s\n\n" % (kind.encode(), orjson.dumps(data))
    finally:
        live.leave(stream)
