"""Who examines and compares while the pages are served? A process of its own: pages are not kept waiting, and what it
reads is given back when it ends.

It is asked with plain data and answers with plain data. What it says is what `relab examine` and `relab compare` say.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from threading import Lock, Timer
from typing import Any

QUESTIONS = ("relab.web.examining", "relab.web.advising", "relab.web.comparing")
FIRST_S = 60.0  # in which somebody waits for the first answers: only later do other processes come first
JOBS_EACH = 200  # a process is made anew after so many: memory that was once taken is given back


class Desk:
    """One process, started with the first question."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._pool: ProcessPoolExecutor | None = None
        self._makes_way = FIRST_S

    def ask(self, question: Callable[..., Any], *about: Any) -> Future[Any]:
        """Ask a function of a module of relab; what a killed process left unanswered is asked of a new one."""
        with self._lock:
            try:
                return self._there().submit(question, *about)
            except BrokenProcessPool:
                self._pool = None
                return self._there().submit(question, *about)

    def warm(self) -> None:
        """Start the process and let it import what it needs, while the server starts: the first to ask waits less."""
        self.ask(_ready)

    def _there(self) -> ProcessPoolExecutor:
        if self._pool is None:
            spawned = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(1, spawned, _begin, (self._makes_way,), max_tasks_per_child=JOBS_EACH)
            self._makes_way = 0.0
        return self._pool

    def close(self) -> None:
        with self._lock:
            if self._pool is not None:
                workers = list((self._pool._processes or {}).values())  # what they work on nobody waits for any more
                self._pool.shutdown(wait=False, cancel_futures=True)
                for worker in workers:
                    worker.kill()


def named(question: str, *about: Any) -> Any:
    """Ask a function by its name, module:function: one of a wing that trains, which pages do not import."""
    module, _, name = question.partition(":")
    return getattr(importlib.import_module(module), name)(*about)


def _begin(makes_way: float) -> None:
    """Ctrl-C is for the server, which ends this process; and others come first where the cores are few."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setpriority"):
        later = Timer(makes_way, _make_way)
        later.daemon = True
        later.start()


def _make_way() -> None:
    """By number: on Linux nice() would be that of the timer's thread alone."""
    os.setpriority(os.PRIO_PROCESS, os.getpid(), os.getpriority(os.PRIO_PROCESS, os.getpid()) + 5)


def _ready() -> None:
    for name in QUESTIONS:
        importlib.import_module(name)
