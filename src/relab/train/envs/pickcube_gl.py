"""How does a pickcube look? As MuJoCo renders it, where OpenGL works without a screen: by EGL, else by OSMesa.

Which of them works is asked of a process of its own, once, when the first picture is wanted: PyOpenGL can load one
platform a process, and a driver that crashes must not take a run with it. MUJOCO_GL=egl or osmesa names one, MUJOCO_GL=
off none; without any, pickcube_draw.py draws.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import os
import subprocess
from itertools import pairwise
from typing import Any

import numpy as np

from relab.base import processes

BACKENDS = ("egl", "osmesa")
HEIGHT, WIDTH = 480, 640  # of MuJoCo's own buffer
GEOMS = 200
PATIENCE_S = 60.0
GOAL_RGBA, ARM_RGBA, PAPER = (0.2, 0.65, 0.3, 0.5), (0.75, 0.77, 0.8, 1.0), (250, 250, 246)
THICK = 0.025  # metres: radius of the rods that the arm is shown as
TRIAL = "import importlib, sys; importlib.import_module('mujoco.' + sys.argv[1]).GLContext(8, 8).make_current()"


@functools.cache
def backend() -> str | None:
    """The first that makes a context in a process of its own; None where none does."""
    named = os.environ.get("MUJOCO_GL", "").strip().lower()
    return next((name for name in ((named,) if named else BACKENDS) if name in BACKENDS and works(name)), None)


def works(name: str) -> bool:
    env = {key: value for key, value in os.environ.items() if key != "PYOPENGL_PLATFORM"} | {"MUJOCO_GL": name}
    try:
        done = subprocess.run([*processes.PYTHON, "-c", TRIAL, name], env=env, capture_output=True, timeout=PATIENCE_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


class Painter:
    """Pictures of one model's worlds."""

    def __init__(self, mujoco: Any, model: Any, name: str) -> None:
        self.mujoco, self.model = mujoco, model
        self.context = importlib.import_module(f"mujoco.{name}").GLContext(WIDTH, HEIGHT)
        self.context.make_current()
        model.vis.headlight.ambient[:] = 0.45  # of pictures alone
        self.render = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_150)
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.render)
        self.scene, self.option = mujoco.MjvScene(model, GEOMS), mujoco.MjvOption()
        atexit.register(self.close)  # while its libraries are still there
        self.camera = mujoco.MjvCamera()
        self.camera.lookat[:] = (0.0, 0.0, 0.15)
        self.camera.distance, self.camera.azimuth, self.camera.elevation = 1.4, 125.0, -22.0

    def close(self) -> None:
        self.render.free()
        self.context.free()

    def picture(self, data: Any, links_L3: np.ndarray, goal_3: np.ndarray, near: float) -> np.ndarray:
        """uint8[H,W,3]: the world, the arm as rods, and a ball as large as what counts as placed."""
        mujoco = self.mujoco
        self.context.make_current()
        mujoco.mjv_updateScene(self.model, data, self.option, mujoco.MjvPerturb(), self.camera,
                               int(mujoco.mjtCatBit.mjCAT_ALL), self.scene)  # fmt: skip
        self.add(mujoco.mjtGeom.mjGEOM_SPHERE, near, goal_3, GOAL_RGBA)
        for start, end in pairwise(links_L3):
            rod = self.add(mujoco.mjtGeom.mjGEOM_CAPSULE, THICK, start, ARM_RGBA)
            mujoco.mjv_connector(rod, int(mujoco.mjtGeom.mjGEOM_CAPSULE), THICK, start, end)
        view = mujoco.MjrRect(0, 0, WIDTH, HEIGHT)
        mujoco.mjr_render(view, self.scene, self.render)
        image: np.ndarray = np.empty((HEIGHT, WIDTH, 3), np.uint8)
        mujoco.mjr_readPixels(image, None, view, self.render)
        image[(image == 0).all(2)] = PAPER  # where nothing is
        return np.flipud(image).copy()

    def add(self, kind: Any, size: float, at_3: np.ndarray, rgba: tuple[float, ...]) -> Any:
        """One more thing in the scene, which the physics knows nothing of."""
        geom = self.scene.geoms[self.scene.ngeom]
        self.mujoco.mjv_initGeom(geom, int(kind), np.full(3, size), np.asarray(at_3, np.float64), np.eye(3).reshape(-1),
                                 np.array(rgba, np.float32))  # fmt: skip
        self.scene.ngeom += 1
        return geom
