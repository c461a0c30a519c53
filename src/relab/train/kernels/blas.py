"""Where is a matrix product that a Numba kernel can call? torch brings one: the BLAS routine sgemm in its own library.

Calling it from inside a kernel keeps a whole block of learning in one call without the interpreter's lock, so that
threads do not wait for each other. Where the symbol cannot be found `AVAILABLE` is False and autograd does the work.
"""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import llvmlite.binding
import numpy as np
import torch
from numba import types

from relab.train.kernels.jit import njit

SYMBOL = "relab_sgemm"
NO_TRANSPOSE, TRANSPOSE = 78, 84  # "N", "T"
AS_IS, TURNED = np.bool_(False), np.bool_(True)  # not False and True: Numba compiles a call for each literal it gets


def _find() -> int | None:
    """Address of sgemm with 32-bit integers (the Fortran interface every BLAS has)."""
    folder = Path(torch.__file__).parent / "lib"
    for name in ("libtorch_cpu.so", "libtorch_cpu.dylib", "torch_cpu.dll"):
        if (folder / name).exists():
            routine = getattr(ctypes.CDLL(str(folder / name)), "sgemm_", None)  # torch has it loaded already
            return None if routine is None else ctypes.cast(routine, ctypes.c_void_p).value
    return None


_address = _find()
AVAILABLE = _address is not None
if _address is not None:
    llvmlite.binding.add_symbol(SYMBOL, _address)

_char, _int, _real = types.CPointer(types.int8), types.CPointer(types.int32), types.CPointer(types.float32)
_sgemm: Any = types.ExternalFunction(
    SYMBOL, types.void(_char, _char, _int, _int, _int, _real, _real, _int, _real, _int, _real, _real, _int)
)


@njit(cache=True, nogil=True)
def matmul(a, a_turned, b, b_turned, c, m, n, k):
    """C[m,n] = op(A) op(B), row-major flat arrays; op turns A (stored [k,m]) or B (stored [n,k]) when asked to."""
    ints, reals, chars = np.empty(6, np.int32), np.empty(2, np.float32), np.empty(2, np.int8)
    # Fortran counts columns first: it is asked for C^T = op(B)^T op(A)^T, which is the same memory
    ints[0], ints[1], ints[2] = n, m, k
    ints[3], ints[4], ints[5] = k if b_turned else n, m if a_turned else k, n
    reals[0], reals[1] = 1.0, 1.0
    for i in range(m * n):  # C = 0 + ..., the same bytes as C = ...: where it is told not to add, MKL takes 10 % longer
        c[i] = np.float32(0.0)
    chars[0], chars[1] = TRANSPOSE if b_turned else NO_TRANSPOSE, TRANSPOSE if a_turned else NO_TRANSPOSE
    _sgemm(
        chars[0:].ctypes, chars[1:].ctypes, ints[0:].ctypes, ints[1:].ctypes, ints[2:].ctypes, reals[0:].ctypes,
        b.ctypes, ints[3:].ctypes, a.ctypes, ints[4:].ctypes, reals[1:].ctypes, c.ctypes, ints[5:].ctypes,
    )  # fmt: skip


@njit(cache=True, nogil=True)
def gemm(a, lda, a_turned, b, ldb, b_turned, c, ldc, m, n, k, keep):
    """C[m,n] = op(A) op(B) + keep * C, all row-major flat arrays whose rows lie lda, ldb and ldc numbers apart."""
    ints, reals, chars = np.empty(6, np.int32), np.empty(2, np.float32), np.empty(2, np.int8)
    ints[0], ints[1], ints[2] = n, m, k
    ints[3], ints[4], ints[5] = ldb, lda, ldc
    reals[0], reals[1] = 1.0, keep
    chars[0], chars[1] = TRANSPOSE if b_turned else NO_TRANSPOSE, TRANSPOSE if a_turned else NO_TRANSPOSE
    _sgemm(
        chars[0:].ctypes, chars[1:].ctypes, ints[0:].ctypes, ints[1:].ctypes, ints[2:].ctypes, reals[0:].ctypes,
        b.ctypes, ints[3:].ctypes, a.ctypes, ints[4:].ctypes, reals[1:].ctypes, c.ctypes, ints[5:].ctypes,
    )  # fmt: skip
