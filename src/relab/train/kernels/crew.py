"""Who shares the work of one process? A few threads that run kernels side by side, each with one BLAS thread."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch


class Crew:
    """`share(work)` calls work(0) ... work(size - 1) at the same time and waits for all of them."""

    def __init__(self, size: int):
        self.size = size
        # without this each thread would start BLAS threads of its own, and they would spin against each other
        alone = lambda: torch.set_num_threads(1)  # noqa: E731
        self.pool = ThreadPoolExecutor(size, initializer=alone) if size > 1 else None

    def share(self, work: Callable[[int], None], pieces: int) -> None:
        """Worker k of n takes pieces k, k + n, k + 2n ...; with one piece nobody is woken."""
        if self.pool is None or pieces < 2:
            for worker in range(self.size):
                work(worker)
        else:
            list(self.pool.map(work, range(self.size)))

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Inside, one call of BLAS or LAPACK has all threads: for work that cannot be cut into pieces."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.size)
        try:
            yield
        finally:
            torch.set_num_threads(before)
