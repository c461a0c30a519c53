"""Which environments collect a small batch in one call? Their physics and collecting's loop, compiled together.

Each stands at module level, so that Numba keeps it on disk. (Numba watches this file alone: after editing an
environment or collecting.py, delete the *.nbi files.)
"""

from __future__ import annotations

from relab.train import collecting
from relab.train.envs import cartpole as cart
from relab.train.envs import pendulum as pend
from relab.train.kernels.jit import njit


@njit(cache=True, nogil=True)
def cartpole(state, scene, actor, log_std, steps, fresh, rng, draws, rows, ends, first):
    return collecting.collect(cart.step_rows, cart.reset_rows, cart.observe_rows, state, scene, actor, log_std, steps,
                              fresh, rng, draws, rows, ends, first)  # fmt: skip


@njit(cache=True, nogil=True)
def pendulum(state, scene, actor, log_std, steps, fresh, rng, draws, rows, ends, first):
    return collecting.collect(pend.step_rows, pend.reset_rows, pend.observe_rows, state, scene, actor, log_std, steps,
                              fresh, rng, draws, rows, ends, first)  # fmt: skip
