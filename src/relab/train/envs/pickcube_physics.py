"""How do many pickcubes move at once? A batch of MuJoCo worlds, each of which is its row of numbers.

A row (mjSTATE_INTEGRATION) is all that a world's future depends on: time, positions, velocities, controls, outer forces
and the solver's warm start. It is the same memory that MuJoCo reads and writes, so copying a row copies a world, to any
slot of any batch on any number of threads. What is derived from rows (tool, touching) is current after each verb here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from relab.config.base import ConfigError

SUBSTEPS = 5  # of 0.01 s: 20 actions a second
RUNAWAY = 1e4  # positions or speeds beyond are a simulation that blew up


def engine(env: str) -> Any:
    """MuJoCo, which only these environments need."""
    try:
        import mujoco
        import mujoco.batch
    except ImportError as error:
        raise ConfigError(f"`env={env}` needs MuJoCo 3.17 or newer, but it cannot be imported ({error}); install it:"
                          " pip install 'relab[mujoco]'") from error  # fmt: skip
    return mujoco


class Simulation:
    """n worlds of one model."""

    def __init__(self, mujoco: Any, model: Any, n: int, threads: int) -> None:
        self.batch = batch = mujoco.batch.Batch(model, n, nthread=threads, persistent=True)
        self.stage = int(mujoco.mjtStage.mjSTAGE_VEL)  # what sensors of positions need; costs nothing extra after steps
        self.errors = mujoco.batch.SimulationError
        self.row = batch.state  # float64[N,S]
        self.qpos, self.qvel, self.ctrl = (batch.bind(name) for name in ("qpos", "qvel", "ctrl"))
        sensors_NS = batch.bind("sensordata")
        self.tool = sensors_NS[:, :7]  # float64[N,7]: position, quaternion
        self.gap = sensors_NS[:, 7:9]  # float64[N,2]: from each pad to the cube, at most 1 mm; below 0: they touch
        self.start_S = self.row[0].copy()  # of a world at rest, as the model describes it

    def begin(self, ids: np.ndarray, qpos_KQ: np.ndarray) -> None:
        """Put worlds at rest at these positions; nothing of what they were is left."""
        self.row[ids] = self.start_S
        self.qpos[ids] = qpos_KQ
        self.derive(ids)

    def derive(self, ids: np.ndarray) -> None:
        """After rows were written: bring what is derived from them up to date."""
        if len(ids):
            self.batch.forward(np.unique(ids), stage=self.stage)  # it takes them in order, each once

    def advance(self, target_NU: np.ndarray) -> np.ndarray:
        """One control step. Returns bool[N]: worlds that MuJoCo could not move; they stand where they were."""
        before_NS = self.row.copy()
        failed_N = np.zeros(len(self.row), bool)
        self.ctrl[:] = target_NU
        try:
            self.batch.step(nstep=SUBSTEPS, stage=self.stage)
        except self.errors as error:
            failed_N[error.ids] = True
        with np.errstate(invalid="ignore"):
            sound_N = (np.abs(self.qpos).max(1) < RUNAWAY) & (np.abs(self.qvel).max(1) < RUNAWAY)
        failed_N |= ~sound_N | ~np.isfinite(self.row).all(1)
        if failed_N.any():
            self.row[failed_N] = before_NS[failed_N]
            self.derive(np.flatnonzero(failed_N))
        return failed_N
