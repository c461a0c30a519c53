"""Does one step of training shrink every error of the critic, and how fast? The spectral radius of the true update.

    e -> J e,  J = 1 - s A / sqrt(N),  s = sqrt(B) alpha_w: B T rows, summed, over sqrt(B) T
Eigenvalues near 0 (the slow directions) come from Krylov vectors of A^-1, the outer ones (which can make |1 - s lambda|
exceed 1) from those of A. value: 1 - radius, which is under 0 where training diverges. That J is the update training
really makes is checked apart, by calling training's own code on a batch of its own shape, with and without a push on w.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from relab.base.streams import generator
from relab.train.algos import tracking_ac as ac
from relab.train.probes.linear import Linear, arnoldi, times
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Room
from relab.train.probes.tracking_round import TrackingRound


class Pair(NamedTuple):
    """An eigenvalue with its right vector, and |A x - lambda x| / |lambda|."""

    value: complex
    vector: np.ndarray
    residual: float


def stability(at: TrackingRound) -> list[ProbeResult]:
    system, cfg, s = at.linear, at.state.cfg, at.state
    scale = math.sqrt(cfg.trajectories) * cfg.alpha_w / math.sqrt(system.size)
    start: Any = generator(s.seed, f"probe/stability/{at.iteration}").standard_normal(system.size)
    extreme, turned = outermost(system, start, scale, at.cfg.stability.krylov)
    growth = power(system, start, scale, at.cfg.stability.power_iters)
    if "step_scale" not in at.memory:  # once a run: it is a question about the code
        at.memory["step_scale"] = step_scale(at, start)
    measured = float(at.memory["step_scale"])
    lag = 1.0 - abs(1.0 - scale * extreme.value)
    noise = scale * error_of_eigenvalue(system, extreme, turned)
    more = {
        "radius": 1.0 - lag, "eigenvalue": float(extreme.value.real), "eigenvalue_imag": float(extreme.value.imag),
        "eigen_residual": extreme.residual, "one_minus_growth": 1.0 - growth,
        "power_iters": at.cfg.stability.power_iters, "step_scale": cfg.step_scale, "step_scale_measured": measured,
        "step_scale_ratio": ratio(measured, cfg.step_scale),
        "iterations_to_halve": math.log(2.0) / lag if lag > 0 else None, "stable": lag >= 0,
        "sure": abs(lag) > 2 * noise,
    }  # fmt: skip
    return [ProbeResult("stability", "one_minus_radius", lag, noise, system.n, "per iteration", more)]


def ratio(a: float, b: float) -> float:
    return a / b if b else math.nan


def outermost(system: Linear, start: np.ndarray, scale: float, size: int) -> tuple[Pair, np.ndarray]:
    """The eigenvalue of A with the largest |1 - s lambda|, and its left vector."""
    outer = lambda turned: pairs(lambda v: system.steered(v, turned), start, size)  # noqa: E731
    inner = lambda turned: [  # noqa: E731
        p._replace(value=1.0 / p.value) for p in pairs(lambda v: system.backwards(v, turned), start, size) if p.value
    ]
    candidates = [(p, side) for side in (outer, inner) for p in side(False)]
    best, side = max(candidates, key=lambda each: abs(1.0 - scale * each[0].value))
    image = system.steered(best.vector.real) + 1j * system.steered(best.vector.imag)
    rest = np.linalg.norm(image - best.value * best.vector) / max(abs(best.value), 1e-300)
    left = min(side(True), key=lambda p: abs(p.value - best.value))
    return best._replace(residual=float(rest)), left.vector


def pairs(apply: Any, start: np.ndarray, size: int) -> list[Pair]:
    """Ritz values and vectors."""
    V, H = arnoldi(apply, start, min(size, len(start) - 1))
    m = H.shape[1]
    values, vectors = np.linalg.eig(H[:m])
    tail = abs(H[m, m - 1]) if H.shape[0] > m else 0.0
    good = [k for k in range(m) if tail * abs(vectors[-1, k]) <= 1e-2 * abs(values[k])]  # those that have settled
    return [Pair(complex(values[k]), V[:, :m] @ vectors[:, k], math.nan) for k in good or range(m)]


def error_of_eigenvalue(system: Linear, pair: Pair, left: np.ndarray) -> float:
    """lambda = mean over transitions of rho (y.phi)(psi.x) / (y.x), to first order in the sample's error."""
    right, y = pair.vector, np.conj(left)
    weight = np.vdot(left, right)
    if abs(weight) < 1e-12:
        return math.nan
    per_row = along(system.phi, y) * along(system.psi, right) * system.rho / weight
    return system.spread(np.real(per_row))


def along(x_BN: np.ndarray, v: np.ndarray) -> np.ndarray:
    """X v of a complex vector."""
    parts = np.empty((2, len(x_BN)))
    for out, part in zip(parts, (v.real, v.imag)):
        times(x_BN, np.ascontiguousarray(part), out)
    return parts[0] + 1j * parts[1]


def power(system: Linear, v: np.ndarray, scale: float, steps: int) -> float:
    """Growth in the last of some steps of J from a random start: what a power iteration shows before it converges."""
    growth = 1.0
    for _ in range(steps):
        v = v / np.linalg.norm(v)
        v = v - scale * system.steered(v)
        growth = float(np.linalg.norm(v))
    return growth


def step_scale(at: TrackingRound, push: np.ndarray) -> float:
    """By what does training multiply a sum over its batch? From two calls of its own code, which differ in w by a push.

    U(w + v) - U(w) - v = -(scale / sqrt(N)) sum rho phi (psi.v); the sum is taken here, from features made here.
    """
    s, agent, n = at.state, at.state.agent, at.state.cfg.batch
    batch = at.sample("step", agent.behaviour, n)
    after = []
    for w in (agent.w, agent.w + push):
        ac.appraise(s, batch, w)
        after.append(ac.critic_step(w, batch.grad_N, s.cfg))
    moved = after[1] - after[0] - push
    summed = -n * at.system_of(batch, batch.next_TBKA, Room()).apply(push) / math.sqrt(len(push))
    return float(moved @ summed / max(float(summed @ summed), 1e-300))
