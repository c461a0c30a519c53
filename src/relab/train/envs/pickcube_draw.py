"""How does a pickcube look without a graphics card? From the side (left) and from above (right), as a drawing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from relab.train.envs import draw

Point = tuple[float, float]

SIZE = 320  # pixels along each edge of a view
RIGHT, FLOOR = 0.25, -0.05  # metres: rightmost x of both views, lowest z of the one from the side
SIGNS_83 = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], float)
EDGES = [(a, b) for a in range(8) for b in range(a) if np.abs(SIGNS_83[a] - SIGNS_83[b]).sum() == 2]


class Pose(NamedTuple):
    """One world, as far as a picture shows it."""

    links_L3: np.ndarray  # from the base to the hand
    pads_23: np.ndarray
    cube_83: np.ndarray  # corners
    goal_3: np.ndarray
    grasped: bool


def picture(pose: Pose, left: float) -> np.ndarray:
    """uint8[H,W,3]; `left`: leftmost x, from which both views take their scale."""
    wide = RIGHT - left
    canvas = draw.Canvas(SIZE, 2 * SIZE, span=2 * wide)
    table = -wide / 2 - FLOOR  # where z = 0 stands on the canvas
    canvas.line(-wide, table, 0, table, 0.006, draw.GREY)
    canvas.line(0, -wide, 0, wide, 0.003, draw.GREY)  # between the views
    for across, up, axis in ((-wide - left, table, 2), (-left, 0.0, 1)):

        def flat(points: np.ndarray, across=across, up=up, axis=axis) -> list[Point]:
            return [(float(p[0]) + across, float(p[axis]) + up) for p in points]

        view(canvas, pose, flat)
    return canvas.image()


def view(canvas: draw.Canvas, pose: Pose, flat: Callable[[np.ndarray], list[Point]]) -> None:
    """One look at it; `flat` says where a point stands on the canvas."""
    links, cube = flat(pose.links_L3), flat(pose.cube_83)
    canvas.disc(*flat(pose.goal_3[None])[0], 0.025, draw.GREEN)
    for a, b in EDGES:
        canvas.line(*cube[a], *cube[b], 0.008, draw.RED)
    for start, end in pairwise(links):
        canvas.line(*start, *end, 0.02, draw.INK)
    for pad in flat(pose.pads_23):
        canvas.line(*links[-1], *pad, 0.008, draw.GREY)
        canvas.disc(*pad, 0.011, draw.BLUE if pose.grasped else draw.INK)
