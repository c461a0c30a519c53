"""When is a cube grasped, placed, at rest, and what does that pay? Plain functions of arrays with a row per world."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NEAR = 0.025  # metres: a cube this near to its goal is placed, one this near to the tool can be in the grip
GRIP = (0.012, 0.035)  # metres between which a finger stands that has the cube (half an edge is 0.02) in its grip


class Scene(NamedTuple):
    """What there is to see of each world."""

    arm: np.ndarray  # float64[N,J]: joints' positions
    arm_speed: np.ndarray  # float64[N,J]
    fingers: np.ndarray  # float64[N,2]
    finger_speed: np.ndarray  # float64[N,2]
    tool: np.ndarray  # float64[N,7]: the point between the finger tips, position and quaternion
    cube: np.ndarray  # float64[N,7]
    goal: np.ndarray  # float64[N,3]
    gap: np.ndarray  # float64[N,2]: from each pad to the cube; at most 0 where they touch


class Flags(NamedTuple):
    """The three things that make a success of it, each of which can be what is missing."""

    grasped: np.ndarray  # bool[N]
    placed: np.ndarray  # bool[N]
    static: np.ndarray  # bool[N]

    @property
    def success(self) -> np.ndarray:
        return self.placed & self.static


def distance(a_N: np.ndarray, b_N: np.ndarray) -> np.ndarray:
    return np.linalg.norm(a_N[:, :3] - b_N[:, :3], axis=1)


def grasped(scene: Scene) -> np.ndarray:
    """Both pads touch the cube, which is between them: pressing on it from above, or pushing it, is none."""
    finger_N = scene.fingers.mean(1)
    between_N = (finger_N > GRIP[0]) & (finger_N < GRIP[1])
    return (scene.gap <= 0).all(1) & between_N & (distance(scene.tool, scene.cube) < NEAR)


def flags(scene: Scene, still: float) -> Flags:
    """`still`: the fastest joint of an arm at rest."""
    placed_N = distance(scene.cube, scene.goal) <= NEAR
    return Flags(grasped(scene), placed_N, np.abs(scene.arm_speed).max(1) <= still)


def dense_reward(scene: Scene, f: Flags) -> np.ndarray:
    """[near the cube + g + g near the goal + placed at rest] / 5, each from 0 to 1; 1 on success."""
    speed_N = np.linalg.norm(scene.arm_speed, axis=1)
    reach_N = 1 - np.tanh(5 * distance(scene.tool, scene.cube))
    carry_N = 1 - np.tanh(5 * distance(scene.cube, scene.goal))
    rest_N = 1 - np.tanh(5 * speed_N)
    shaped_N = (reach_N + f.grasped + f.grasped * carry_N + f.placed * rest_N) / 5
    return np.where(f.success, 1.0, shaped_N)


def observation(scene: Scene) -> np.ndarray:
    """float64[N,D], D = 2 (J + 2) + 24."""
    columns = [
        scene.arm,
        scene.fingers,
        0.2 * scene.arm_speed,
        0.2 * scene.finger_speed,
        grasped(scene)[:, None],
        scene.tool,
        scene.goal,
        scene.cube,
        5 * (scene.cube[:, :3] - scene.tool[:, :3]),
        5 * (scene.goal - scene.cube[:, :3]),
    ]
    return np.concatenate(columns, axis=1)
