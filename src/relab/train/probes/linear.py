"""What does the critic's expected update do? A linear map, known through a sample, solved and iterated.

    w -> w + c sum rho phi (r - psi.w / sqrt(N)),  psi = phi - gamma mean phi(s', a')
    A = mean rho phi psi^T,  b = sqrt(N) mean rho phi r;  the fixed point w_sharp has A w_sharp = b
Features are float32; A is summed up in blocks of float32 products in float64 and only steers the refinement: residuals
are taken from the features themselves, in float64.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np
import torch

from relab.train.algos.fourier import FAST, add, dot
from relab.train.kernels.crew import Crew
from relab.train.kernels.jit import njit

BLOCK = 4096  # rows of one float32 product


class Solution(NamedTuple):
    """w_sharp, how exactly it solves A w = b (|b - A w| / |b|), and in how many refinements."""

    w: np.ndarray
    residual: float
    refinements: int


@njit(cache=True, nogil=True, fastmath=FAST)
def times(x_BN, v_N, out_B):
    """out = X v, float64."""
    for i in range(x_BN.shape[0]):
        out_B[i] = dot(v_N, x_BN[i])


@njit(cache=True, nogil=True, fastmath=FAST)
def times_turned(x_BN, c_B, out_N):
    """out = X^T c, float64."""
    out_N[:] = 0.0
    for i in range(x_BN.shape[0]):
        add(c_B[i], x_BN[i], out_N)


class Linear:
    """The system of one sample of n transitions, made by `worlds` trajectories."""

    def __init__(
        self, phi: np.ndarray, psi: np.ndarray, rho: np.ndarray, reward: np.ndarray, worlds: int, crew: Crew,
        spare: np.ndarray | None = None,
    ):  # fmt: skip
        self.phi, self.psi, self.rho, self.reward, self.worlds = phi, psi, rho, reward.astype(np.float64), worlds
        self.n, self.size = phi.shape
        self.crew, self.spare = crew, np.empty_like(phi) if spare is None else spare  # room of phi's size
        self.b = math.sqrt(self.size) * self.weighted(self.reward)

    def weighted(self, x_n: np.ndarray) -> np.ndarray:
        """mean rho x phi."""
        out: np.ndarray = np.empty(self.size)
        times_turned(self.phi, self.rho * x_n, out)
        return out / self.n

    def ahead(self, v: np.ndarray) -> np.ndarray:
        """psi.v for every transition."""
        out: np.ndarray = np.empty(self.n)
        times(self.psi, np.ascontiguousarray(v, np.float64), out)
        return out

    def apply(self, v: np.ndarray) -> np.ndarray:
        """A v, from the features."""
        return self.weighted(self.ahead(v))

    def delta(self, w: np.ndarray) -> np.ndarray:
        """The temporal differences under w."""
        return self.reward - self.ahead(w) / math.sqrt(self.size)

    @functools.cached_property
    def matrix(self) -> torch.Tensor:
        """A, summed up in blocks: good to about 1e-7 of its size."""
        total = torch.zeros((self.size, self.size), dtype=torch.float64)
        np.multiply(self.phi, (self.rho[:, None] / self.n).astype(np.float32), out=self.spare)
        weighted, psi = torch.from_numpy(self.spare), torch.from_numpy(self.psi)
        cut = np.linspace(0, self.size, self.crew.size + 1).astype(int)

        def work(k: int) -> None:  # a share of the columns each: torch's own threads spin when the machine is busy
            for i in range(0, self.n, BLOCK):
                total[:, cut[k] : cut[k + 1]] += weighted[i : i + BLOCK].T @ psi[i : i + BLOCK, cut[k] : cut[k + 1]]

        self.crew.share(work, self.crew.size)
        return total

    def steered(self, v: np.ndarray, turned: bool = False) -> np.ndarray:
        """A v (or A^T v) from the matrix: good to 1e-7 and much cheaper than from the features.

        Each of the crew has a share of the result. BLAS threads of numpy would spin against those of torch.
        """
        matrix, out = self.matrix.numpy(), np.empty(self.size)
        v, cut = np.ascontiguousarray(v, np.float64), np.linspace(0, self.size, self.crew.size + 1).astype(int)

        def work(k: int) -> None:
            mine = slice(cut[k], cut[k + 1])
            if turned:
                times_turned(matrix[:, mine], v, out[mine])
            else:
                times(matrix[mine], v, out[mine])

        self.crew.share(work, self.crew.size)
        return out

    @functools.cached_property
    def factors(self) -> tuple[torch.Tensor, torch.Tensor]:
        """LU of A and a little of the identity: a feature that the sample never shows leaves A without a rank."""
        little = 1e-10 * float(self.matrix.diagonal().abs().mean())
        nearly = self.matrix.clone()
        nearly.diagonal().add_(little)
        with self.crew.together():
            return torch.linalg.lu_factor(nearly)

    def backwards(self, v: np.ndarray, turned: bool = False) -> np.ndarray:
        """Nearly A^-1 v (or A^-T v)."""
        solved = torch.linalg.lu_solve(*self.factors, torch.from_numpy(v)[:, None], adjoint=turned)
        return solved[:, 0].numpy()

    def solve(self, tol: float, most: int = 20) -> Solution:
        """The fixed point by LU and iterative refinement, until the residual is small or no longer falls."""
        size, w = max(float(np.linalg.norm(self.b)), 1e-300), np.zeros(self.size)
        rest, residual = self.b, 1.0
        for k in range(most):
            better = w + self.backwards(rest)
            rest = self.b - self.apply(better)
            new = float(np.linalg.norm(rest)) / size
            if new >= residual:
                return Solution(w, residual, k)
            w, residual = better, new
            if residual <= 0.01 * tol:
                break
        return Solution(w, residual, k + 1)

    def spread(self, per_row: np.ndarray) -> float:
        """Standard error of the mean of a number per transition, counting trajectories."""
        per_world = per_row.reshape(-1, self.worlds).mean(0)
        return float(np.std(per_world, ddof=1) / math.sqrt(self.worlds))


# ---- Krylov spaces


def arnoldi(apply, start: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """(V [N, m + 1], H [m + 1, m]) with apply(V_m) = V_{m+1} H; m < size where the space is exhausted."""
    V, H = np.zeros((len(start), size + 1)), np.zeros((size + 1, size))
    V[:, 0] = start / np.linalg.norm(start)
    for k in range(size):
        x = apply(V[:, k])
        for _ in range(2):  # once more: rounding
            h = V[:, : k + 1].T @ x
            x -= V[:, : k + 1] @ h
            H[: k + 1, k] += h
        H[k + 1, k] = np.linalg.norm(x)
        if H[k + 1, k] <= 1e-13 * np.abs(H[: k + 1, k]).max(initial=1e-300):
            return V[:, : k + 1], H[: k + 1, : k + 1]
        V[:, k + 1] = x / H[k + 1, k]
    return V, H


class Iterated(NamedTuple):
    """Where the plain iteration stands when it stops."""

    w: np.ndarray
    steps: int
    last_step: float  # length of its last step
    converged: bool


def iterate(apply, b: np.ndarray, w: np.ndarray, step: float, most: int, tol: float) -> Iterated:
    """w <- w + step (b - A w) until a step is no longer than tol, at most `most` times: as it is written."""
    length = math.inf
    for k in range(most):
        change = step * (b - apply(w))
        w, length = w + change, float(np.linalg.norm(change))
        if length <= tol:
            return Iterated(w, k + 1, length, True)
    return Iterated(w, most, length, False)


def iterate_small(apply, b: np.ndarray, w: np.ndarray, step: float, most: int, tol: float, size: int = 16) -> Iterated:
    """The same, in the space of the first Krylov vectors of the residual, where thousands of steps cost nothing.

    With r_0 = b - A w the k-th residual is (1 - step A)^k r_0, and w_k - w_0 = step sum_j r_j. Exact as long as the
    space holds it all: `size` doubles until what leaves it is under 1e-9 of the way gone; else it is iterated.
    """
    rest = b - apply(w)
    start = float(np.linalg.norm(rest))
    if start * step <= tol:
        return Iterated(w + step * rest, 1, start * step, True)
    while size <= min(240, len(w)):
        V, H = arnoldi(apply, rest, size)
        m = H.shape[1]
        r, way, leaves, length, k = np.zeros(m), np.zeros(m), 0.0, math.inf, 0
        r[0] = start
        while k < most and length > tol:
            way += step * r
            length = step * float(np.linalg.norm(r))
            if H.shape[0] > m:
                leaves += step * abs(H[m, m - 1] * r[-1])
            r = r - step * (H[:m] @ r)
            k += 1
        if leaves <= 1e-9 * float(np.linalg.norm(way)):
            return Iterated(w + V[:, :m] @ way, k, length, length <= tol)
        size *= 2
    return iterate(apply, b, w, step, most, tol)
