"""pickcube-v1, pickcube-gantry-v1: grasp a cube, carry it to a goal in the air and hold still, within 50 actions.

After ManiSkill's PickCube, written afresh on MuJoCo: a Panda arm (7 joints) or three slides with the same gripper. How
robots are built stands in pickcube_models.py, how they move in pickcube_physics.py, what counts in pickcube_task.py.
Known answers: random actions succeed in about none of the episodes; a scripted gripper (approach, close, lift, carry)
on the gantry in nearly all.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from relab.config import envs as configs
from relab.record.spec import Action, Channel, Spec
from relab.train.envs import pickcube_draw, pickcube_gl, pickcube_models, pickcube_task
from relab.train.envs.pickcube_models import CUBE, OPEN, Robot
from relab.train.envs.pickcube_physics import Simulation, engine
from relab.train.kernels import jit, rng

SUCCESS, ERROR = 2, 3  # end codes
SPREAD = 0.1  # metres: cube and goal start within this of the middle, along x and y
HIGHEST = 0.3  # metres: of a goal above the cube's place on the table
NOISE = 0.02  # standard deviation of each joint at the start, rad or m
RAIL = 0.55  # metres: height of the gantry's rail in pictures
CLOSED = -0.01  # target of a closed finger: beyond what it can reach, so that it presses


class State(NamedTuple):
    sim: Simulation  # moves the rows and says what follows from them
    row: np.ndarray  # float64[N,S]: the worlds, in MuJoCo's words; the simulation's own memory
    goal: np.ndarray  # float64[N,3]
    rng: np.ndarray  # uint64[N]


class PickCube:
    name = "pickcube-v1"
    Params: type[configs.PickCube] = configs.PickCube
    left = -0.7  # leftmost x of pictures

    def __init__(self, params: configs.PickCube | None = None) -> None:
        self.params = params = params or self.Params()
        self.robot = robot = self.build()
        self.mujoco = engine(self.name)
        self.model = self.mujoco.MjModel.from_xml_string(robot.xml)
        self.joints = len(robot.home)
        bound = (1.0,) * (self.joints + 1)
        self.spec = Spec(
            env=self.name,
            obs_dim=2 * (self.joints + 2) + 24,
            action=Action("continuous", dim=len(bound), low=tuple(-x for x in bound), high=bound),
            horizon=params.horizon or None,
            channels=(
                Channel("grasped", reducer="max"),
                Channel("placed", reducer="max"),
                Channel("static", reducer="last"),
                Channel("grasped_last", reducer="last"),
                Channel("placed_last", reducer="last"),
            ),
            ends=("running", "time_limit", "success", "simulation_error"),
            success_ends=("success",),
            outcome="success",
            reward_low=0.0,
            reward_high=1.0,
            renders=True,
        )

    def build(self) -> Robot:
        return pickcube_models.panda()

    def allocate(self, n: int) -> State:
        sim = Simulation(self.mujoco, self.model, n, self.params.threads or jit.threads())
        return State(sim, sim.row, np.zeros((n, 3)), np.zeros(n, np.uint64))

    def reset(self, state: State, worlds_N: np.ndarray) -> None:
        ids = np.flatnonzero(worlds_N)
        streams_K, place_K6, noise_KJ = state.rng[ids], np.empty((len(ids), 6)), np.empty((len(ids), self.joints))
        rng.fill_uniform(streams_K, place_K6)
        rng.fill_normal(streams_K, noise_KJ)
        state.rng[ids] = streams_K
        state.goal[ids] = SPREAD * (2 * place_K6[:, :3] - 1)
        state.goal[ids, 2] = CUBE + HIGHEST * place_K6[:, 2]
        cube_K2, half_K = SPREAD * (2 * place_K6[:, 3:5] - 1), math.pi * (place_K6[:, 5] - 0.5)  # half of the yaw
        arm_KJ = np.array(self.robot.home) + NOISE * noise_KJ
        flat_K = np.zeros(len(ids))
        rest = [flat_K + OPEN, flat_K + OPEN, cube_K2, flat_K + CUBE, np.cos(half_K), flat_K, flat_K, np.sin(half_K)]
        state.sim.begin(ids, np.column_stack([arm_KJ, *rest]))

    def step(self, state: State, alive_NA: np.ndarray, action_NAK: np.ndarray, out) -> None:
        failed_N = state.sim.advance(self.targets(state.sim, action_NAK[:, 0]))
        scene = self.scene(state)
        flags = pickcube_task.flags(scene, self.robot.still)
        success_N = flags.success & ~failed_N
        reward_N = pickcube_task.dense_reward(scene, flags) if self.params.reward == "dense" else success_N
        out.reward[:, 0] = np.where(failed_N, 0.0, reward_N)
        cut_N = success_N if self.params.success == "cuts" else np.zeros_like(success_N)
        out.terminated[:, 0], out.truncated[:, 0] = success_N & ~cut_N, failed_N | cut_N
        out.end[:, 0] = np.where(success_N, SUCCESS, np.where(failed_N, ERROR, 0))
        out.info[:, :, 0] = (*flags, flags.grasped, flags.placed)

    def targets(self, sim: Simulation, action_NK: np.ndarray) -> np.ndarray:
        """float64[N,J+2]: joints go on from where they are, fingers to an opening."""
        action_NK = np.clip(action_NK.astype(np.float64), -1.0, 1.0)
        arm_NJ = sim.qpos[:, : self.joints] + self.robot.reach * action_NK[:, :-1]
        finger_N1 = CLOSED + (OPEN - CLOSED) * (action_NK[:, -1:] + 1) / 2
        return np.concatenate([arm_NJ, finger_N1, finger_N1], axis=1)

    def scene(self, state: State) -> pickcube_task.Scene:
        sim, j = state.sim, self.joints
        return pickcube_task.Scene(
            arm=sim.qpos[:, :j],
            arm_speed=sim.qvel[:, :j],
            fingers=sim.qpos[:, j : j + 2],
            finger_speed=sim.qvel[:, j : j + 2],
            tool=sim.tool,
            cube=sim.qpos[:, j + 2 :],
            goal=state.goal,
            gap=sim.gap,
        )

    def observe(self, state: State, obs_NAD: np.ndarray) -> None:
        obs_NAD[:, 0] = pickcube_task.observation(self.scene(state))

    def save(self, state: State) -> dict[str, np.ndarray]:
        return {"row": state.row, "goal": state.goal, "rng": state.rng}

    def load(self, state: State, parts: dict[str, np.ndarray], rows: np.ndarray) -> None:
        for name, array in self.save(state).items():
            array[rows] = parts[name]
        state.sim.derive(rows)

    @functools.cached_property
    def painter(self) -> pickcube_gl.Painter | None:
        """None where there is no OpenGL without a screen."""
        name = pickcube_gl.backend()
        return pickcube_gl.Painter(self.mujoco, self.model, name) if name is not None else None

    def render(self, state: State, i: int) -> np.ndarray:
        data = state.sim.batch.get_data(i)
        if self.painter is not None:
            return self.painter.picture(data, self.links(data), state.goal[i], pickcube_task.NEAR)
        return self.drawing(state, i, data)

    def drawing(self, state: State, i: int, data: Any) -> np.ndarray:
        corners_83 = pickcube_draw.SIGNS_83 * CUBE @ data.geom("cube").xmat.reshape(3, 3).T
        pose = pickcube_draw.Pose(
            links_L3=self.links(data),
            pads_23=np.stack([data.geom(name).xpos for name in ("left", "right")]),
            cube_83=corners_83 + data.geom("cube").xpos,
            goal_3=state.goal[i],
            grasped=bool(pickcube_task.grasped(self.scene(state))[i]),
        )
        return pickcube_draw.picture(pose, self.left)

    def links(self, data: Any) -> np.ndarray:
        """float64[L,3]: the points that the arm is drawn through, the hand last."""
        return np.array(data.xpos[1 : self.model.body("hand").id + 1])


class PickCubeGantry(PickCube):
    name = "pickcube-gantry-v1"
    Params = configs.PickCubeGantry
    left = -0.3

    def build(self) -> Robot:
        return pickcube_models.gantry()

    def links(self, data: Any) -> np.ndarray:
        hand_3 = data.body("hand").xpos
        return np.array([(hand_3[0], hand_3[1], RAIL), hand_3])
