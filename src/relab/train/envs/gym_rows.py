"""Can a Gymnasium world be put back without playing it again? Those on MuJoCo can: a world is its row of numbers.

A row holds MuJoCo's state (mjSTATE_INTEGRATION) and all that was derived from it, as it stood: after a step MuJoCo's
positions of bodies are those of one step before, and rewards are made of them. Whether that is all that a world is made
of, its own code decides; a trial tells: a world put back must go on to the bit as the first one did.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TRIAL = 5  # steps before the row is taken, and as many after it
# What MuJoCo derives and an environment may read: positions, velocities and forces, whose sizes the model fixes.
DERIVED = (
    "xpos xquat xmat xipos ximat xanchor xaxis geom_xpos geom_xmat site_xpos site_xmat cam_xpos cam_xmat light_xpos"
    " light_xdir subtree_com subtree_linvel subtree_angmom cdof cdof_dot cinert cvel cacc cfrc_int cfrc_ext ten_length"
    " ten_velocity actuator_length actuator_velocity actuator_force qfrc_bias qfrc_passive qfrc_actuator qfrc_smooth"
    " qfrc_constraint qfrc_inverse qacc qacc_smooth sensordata energy"
).split()


class Rows:
    """Reads and writes the rows of one kind of world."""

    def __init__(self, env: Any) -> None:
        import mujoco

        self.mujoco, self.what = mujoco, int(mujoco.mjtState.mjSTATE_INTEGRATION)
        model, data = env.unwrapped.model, env.unwrapped.data
        self.size = mujoco.mj_stateSize(model, self.what)
        self.names = [name for name in DERIVED if isinstance(getattr(data, name, None), np.ndarray)]
        self.width = self.size + sum(getattr(data, name).size for name in self.names)

    def read(self, env: Any) -> np.ndarray:
        model, data = env.unwrapped.model, env.unwrapped.data
        row: np.ndarray = np.empty(self.width)
        self.mujoco.mj_getState(model, data, row[: self.size], self.what)
        at = self.size
        for name in self.names:
            array = getattr(data, name)
            row[at : at + array.size] = array.reshape(-1)
            at += array.size
        return row

    def write(self, env: Any, row: np.ndarray) -> None:
        model, data = env.unwrapped.model, env.unwrapped.data
        self.mujoco.mj_setState(model, data, np.ascontiguousarray(row[: self.size]), self.what)
        at = self.size
        for name in self.names:
            array = getattr(data, name)
            array[...] = row[at : at + array.size].reshape(array.shape)
            at += array.size


def on_mujoco(env: Any) -> bool:
    """Whether MuJoCo moves it, told without importing MuJoCo."""
    inside = env.unwrapped
    kinds = (type(getattr(inside, name, None)) for name in ("model", "data"))
    return [kind.__name__ for kind in kinds if kind.__module__.startswith("mujoco")] == ["MjModel", "MjData"]


def rows_of(make: Callable[[], Any], act: Callable[[Any], Any]) -> Rows | None:
    """How worlds of this kind are read and put back; None where they are not on MuJoCo, or a row does not hold them."""
    first, second = make(), make()
    try:
        if not on_mujoco(first):
            return None
        rows = Rows(first)
        return rows if faithful(rows, first, second, act) else None
    finally:
        first.close()
        second.close()


def faithful(rows: Rows, first: Any, second: Any, act: Callable[[Any], Any]) -> bool:
    """A world, and another one of another seed that is put where it stands, go the same way to the bit."""
    space = first.action_space
    space.seed(0)
    first.reset(seed=0)
    for _ in range(TRIAL):
        first.step(act(space.sample()))
    second.reset(seed=1)
    second.step(act(space.sample()))
    rows.write(second, rows.read(first))
    for _ in range(TRIAL):
        action = act(space.sample())
        one, two = first.step(action), second.step(action)
        if not np.array_equal(one[0], two[0], equal_nan=True) or one[1:4] != two[1:4]:
            return False
    return True
