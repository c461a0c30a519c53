"""What does a swarm look like? A picture in perspective: the box they fly in, drones as crosses, shadows, trails.

Pick-and-place: boxes brown with the drone's colour inside, the drops that they belong to as rings of that colour on the
floor, a box that hangs below its drone on a thread. Race: the rings, the first of those that nobody has passed
strongest. Hover: targets as small crosses, a thread from each drone to its own. The camera stands outside, a little
above, and looks at the middle.
"""

from __future__ import annotations

import functools
import math
from itertools import pairwise
from typing import Any

import numpy as np

from relab.train.envs import draw
from relab.train.envs import drones_tasks as tasks
from relab.train.envs.drones_physics import DT, QW, X, Z
from relab.train.envs.drones_tasks import BOX, CARRY, GROUND, HALF_X, HALF_Y, HALF_Z, HOVER, LAY, LED, PICK, RACE, RING
from relab.train.envs.drones_view import frame
from relab.train.kernels.jit import njit

HEIGHT, WIDTH = 420, 640
EYE, CENTRE = np.array([36.0, -68.0, 36.0]), np.array([-3.0, 0.0, -9.0])
ZOOM = 515.0  # pixels a metre at a distance of one metre
SIZE = 8.0  # a drone is drawn this many times as large as it is, or nobody would see it
FLOOR_Z = -HALF_Z
COLOURS = ((66, 110, 180), (200, 70, 60), (126, 178, 109), (202, 138, 84), (140, 90, 170), (60, 150, 160),
           (190, 90, 140), (110, 110, 110))  # fmt: skip
SHADOW, RIM_COLOUR = (206, 206, 200), (214, 160, 40)


def camera() -> np.ndarray:
    """Rows: to the right, upwards, into the picture."""
    ahead = CENTRE - EYE
    ahead /= np.linalg.norm(ahead)
    right = np.cross(ahead, [0.0, 0.0, 1.0])
    right /= np.linalg.norm(right)
    return np.stack([right, np.cross(right, ahead), ahead])


LOOK = camera()


def project(points: np.ndarray) -> np.ndarray:
    """Points [n,3] of the world -> [n,3]: column, row, pixels a metre there."""
    seen = (np.asarray(points, np.float64).reshape(-1, 3) - EYE) @ LOOK.T
    scale = ZOOM / np.maximum(seen[:, 2], 1.0)
    return np.stack([WIDTH / 2 + seen[:, 0] * scale, HEIGHT / 2 - seen[:, 1] * scale, scale], axis=1)


@njit(cache=True)
def paint(pixels, x0, y0, x1, y1, width, red, green, blue, cover):
    """A segment with round ends and an edge one pixel wide, blended by `cover`; from a point to itself it is a disc."""
    dx, dy, half = x1 - x0, y1 - y0, 0.5 * width
    length = max(dx * dx + dy * dy, 1e-9)
    for r in range(max(int(min(y0, y1) - half - 1), 0), min(int(max(y0, y1) + half + 2), pixels.shape[0])):
        for c in range(max(int(min(x0, x1) - half - 1), 0), min(int(max(x0, x1) + half + 2), pixels.shape[1])):
            px, py = c + 0.5 - x0, r + 0.5 - y0
            t = min(max((px * dx + py * dy) / length, 0.0), 1.0)
            share = half + 0.5 - math.sqrt((px - t * dx) ** 2 + (py - t * dy) ** 2)
            if share > 0.0:
                share = min(share, 1.0) * cover
                pixels[r, c, 0] = np.uint8(pixels[r, c, 0] + share * (red - pixels[r, c, 0]) + 0.5)
                pixels[r, c, 1] = np.uint8(pixels[r, c, 1] + share * (green - pixels[r, c, 1]) + 0.5)
                pixels[r, c, 2] = np.uint8(pixels[r, c, 2] + share * (blue - pixels[r, c, 2]) + 0.5)


def line(pixels: np.ndarray, points: Any, width: float, colour: draw.Colour, cover: float = 1.0) -> None:
    """Through points of the world, `width` pixels wide."""
    red, green, blue = (float(c) for c in colour)
    seen = project(np.asarray(points))
    for a, b in pairwise(seen):
        paint(pixels, a[0], a[1], b[0], b[1], width, red, green, blue, cover)


def circle(centre: np.ndarray, normal: np.ndarray, radius: float, points: int = 25) -> np.ndarray:
    """A circle around `centre` across `normal`, closed."""
    side = np.cross(normal, [0.0, 0.0, 1.0] if abs(normal[2]) < 0.9 else [1.0, 0.0, 0.0])
    side /= np.linalg.norm(side)
    angle = np.linspace(0.0, 2.0 * np.pi, points)[:, None]
    return centre + radius * (np.cos(angle) * side + np.sin(angle) * np.cross(normal, side))


def cube(centre: np.ndarray, half: float) -> list[np.ndarray]:
    """The edges of a cube, as lines."""
    flat = half * np.array([(-1, -1), (1, -1), (1, 1), (-1, 1), (-1, -1)])
    low, high = (centre + np.column_stack([flat, np.full(5, z)]) for z in (-half, half))
    return [low, high, *(np.stack([low[k], high[k]]) for k in range(4))]


@functools.cache
def room() -> np.ndarray:
    """The picture without anybody in it: floor, grid and edges of the box."""
    pixels = np.empty((HEIGHT, WIDTH, 3), np.uint8)
    pixels[:] = draw.PAPER
    for at in np.arange(-HALF_X, HALF_X + 1, 10.0):
        line(pixels, [(at, -HALF_Y, FLOOR_Z), (at, HALF_Y, FLOOR_Z)], 1.0, (214, 214, 208))
        line(pixels, [(-HALF_X, at, FLOOR_Z), (HALF_X, at, FLOOR_Z)], 1.0, (214, 214, 208))
    corners = [(-HALF_X, -HALF_Y), (HALF_X, -HALF_Y), (HALF_X, HALF_Y), (-HALF_X, HALF_Y), (-HALF_X, -HALF_Y)]
    for z in (FLOOR_Z, HALF_Z):
        line(pixels, [(x, y, z) for x, y in corners], 1.3, draw.GREY)
    for x, y in corners[:4]:
        line(pixels, [(x, y, FLOOR_Z), (x, y, HALF_Z)], 1.3, draw.GREY)
    return pixels


def drone(pixels: np.ndarray, body: np.ndarray, arm: float, colour: draw.Colour) -> None:
    """Two arms and four rotors, turned as the drone is."""
    turn = np.array(frame(*body[QW : QW + 4])).reshape(3, 3)
    tips = body[X : Z + 1] + SIZE * arm * (np.array([(1, 0, 0), (0, 1, 0), (-1, 0, 0), (0, -1, 0)]) @ turn.T)
    line(pixels, tips[[0, 2]], 2.4, colour)
    line(pixels, tips[[1, 3]], 2.4, colour)
    for tip in project(tips):
        paint(pixels, tip[0], tip[1], tip[0], tip[1], 4.0, 43.0, 45.0, 66.0, 0.8)


def shade(pixels: np.ndarray, at: np.ndarray, arm: float) -> None:
    """Its shadow on the floor, and a thread up to it that tells how high it flies."""
    foot = np.array([at[0], at[1], FLOOR_Z])
    c, r, scale = project(foot)[0]
    red, green, blue = map(float, SHADOW)
    paint(pixels, c - 0.5 * scale * arm, r, c + 0.5 * scale * arm, r, 5.0, red, green, blue, 1.0)
    line(pixels, [foot, at], 0.8, SHADOW, 0.8)


def trail(pixels: np.ndarray, points: np.ndarray, tick: int, at: np.ndarray, colour: draw.Colour) -> None:
    """The way behind a drone, older parts fainter; points are a ring whose newest entry `tick` tells."""
    newest = (tick // tasks.EVERY) % tasks.TRAIL
    way = np.concatenate([np.roll(points, -newest - 1, axis=0), at[None]]).astype(np.float64)
    for k in range(len(way) - 1):
        line(pixels, way[k : k + 2], 1.6, colour, 0.75 * (k + 1) / len(way))


def picture(state: Any, i: int) -> np.ndarray:
    """uint8[420,640,3] of one world."""
    pixels, task = room().copy(), int(state.task[i])
    body, goal, order = state.body[i], state.goal[i], np.argsort(-np.linalg.norm(state.body[i, :, :3] - EYE, axis=1))
    if task == RACE:
        paint_rings(pixels, state, i)
    for a in order:
        shade(pixels, body[a, :3], float(state.build[i, a, 4]))
        if task != RACE:
            paint_goal(pixels, body[a], goal[a], int(state.phase[i, a]), task, COLOURS[a % len(COLOURS)])
    for a in order:  # the farthest first
        colour = COLOURS[a % len(COLOURS)]
        trail(pixels, state.trail[i, a], int(state.tick[i]), body[a, :3], colour)
        drone(pixels, body[a], float(state.build[i, a, 4]), colour)
    return pixels


PHASES = {tasks.APPROACH: "approach", tasks.DESCEND: "descend", tasks.CARRY: "carry", tasks.DROP: "drop"}


def caption(state: Any, i: int) -> str:
    """How long the world has lasted, and what its drones are about."""
    task, began = int(state.task[i]), f"{state.tick[i] * DT:.1f} s"
    if task == PICK:
        counts = [(word, int((state.phase[i] == phase).sum())) for phase, word in PHASES.items()]
        return f"{began}  " + ", ".join(f"{n} {word}" for word, n in counts if n)
    if task == RACE:
        rings = state.tally[i, :, tasks.RINGS]
        return f"{began}  rings passed: {int(rings.min())} to {int(rings.max())} of {len(state.rings[i])}"
    away = np.linalg.norm(state.goal[i, :, LED : LED + 3] - state.body[i, :, :3], axis=1)
    return f"{began}  metres to the target: {away.min():.1f} to {away.max():.1f}"


def paint_goal(pixels: np.ndarray, body: np.ndarray, goal: np.ndarray, phase: int, task: int, colour: Any) -> None:
    """Where a drone has to go: its box and drop, or the point to hover at."""
    if task == PICK:
        line(pixels, circle(goal[LAY : LAY + 3], np.array([0.0, 0.0, 1.0]), 1.2), 1.6, colour)
        for edge in cube(goal[BOX : BOX + 3], 0.5):
            line(pixels, edge, 1.6, draw.WOOD)
        line(pixels, [goal[BOX : BOX + 3]] * 2, 4.0, colour)
        if phase >= CARRY:
            line(pixels, [body[:3], goal[BOX : BOX + 3]], 1.2, draw.INK)
        elif goal[BOX + 2] <= GROUND:
            line(pixels, [goal[BOX : BOX + 3], goal[LAY : LAY + 3]], 0.8, colour, 0.25)
    elif task == HOVER:
        target = goal[LED : LED + 3]
        for axis in np.eye(3):
            line(pixels, [target - 0.8 * axis, target + 0.8 * axis], 1.3, colour)
        line(pixels, [body[:3], target], 0.8, colour, 0.3)


def paint_rings(pixels: np.ndarray, state: Any, i: int) -> None:
    """All rings, each with its direction; those that every drone has passed are faint."""
    passed = int(state.tally[i, :, tasks.RINGS].min())
    for k, ring in enumerate(state.rings[i]):
        cover = 0.3 if k < passed else 1.0
        line(pixels, circle(ring[:3], ring[3:], RING), 2.4 if k == passed else 1.6, RIM_COLOUR, cover)
        line(pixels, [ring[:3], ring[:3] + 1.5 * ring[3:]], 1.4, RIM_COLOUR, cover)
