"""Who shares the work of one process? A few threads that run kernels side by side, each with one BLAS thread."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import torch


def one_blas_thread() -> None:
    """For algorithms that call BLAS from kernels: its own threads spin when the machine is busy, and change the last
    digits of sums."""
    torch.set_num_threads(1)


class Crew:
    """`share(work)` calls work(0) ... work(size - 1) at the same time and waits for all of them."""

    def __init__(self, size: int):
        self.size = size
        # without this each thread would start BLAS threads of its own, and they would spin against each other
        self.pool = ThreadPoolExecutor(size, initializer=one_blas_thread) if size > 1 else None

    def share(self, work: Callable[[int], None], pieces: int) -> None:
        """Worker k of n takes pieces k, k + n, k + 2n ...; with one piece nobody is woken."""
        if self.pool is None or pieces < 2:
            for worker in range(self.size):
                work(worker)
        else:
            list(self.pool.map(work, range(self.size)))

    def both(self, work: Callable[[int], None]) -> None:
        """work(0) here and work(1) on another thread at the same time; one after the other where there is none."""
        second = None if self.pool is None else self.pool.submit(work, 1)
        work(0)
        work(1) if second is None else second.result()

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """Inside, one call of BLAS or LAPACK has all threads: for work that cannot be cut into pieces."""
        before = torch.get_num_threads()
        torch.set_num_threads(self.size)
        try:
            yield
        finally:
            torch.set_num_threads(before)
