"""Why does memory that was just freed cost time again? glibc gives large blocks back, and every page is made anew.

A learner that needs the same few megabytes in every update paid 2,000 page faults, 5 of 42 ms, for each of them.
"""

from __future__ import annotations

import ctypes
import functools

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
KEPT = 1 << 28  # bytes that stay with the process


@functools.cache
def keep() -> bool:
    """Freed memory stays with this process from now on; False where the C library has no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and all(mallopt(which, KEPT) == 1 for which in (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD))
