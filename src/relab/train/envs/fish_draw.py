"""What does a school look like? A picture in a tenth of a millisecond, so that films are made faster than they play."""

from __future__ import annotations

import functools
import math

import numpy as np

from relab.train.envs import draw
from relab.train.envs.fish_moves import CATCH, RADIUS, STILL
from relab.train.kernels.jit import njit

SIZE, SPAN = 400, 21.0  # pixels and units along a side
WATER: draw.Colour = (224, 236, 243)
BODY, TAIL = 0.2, 0.12  # radii


@functools.cache
def pond() -> np.ndarray:
    """The picture without anybody in it."""
    canvas = draw.Canvas(SIZE, SIZE, SPAN)
    canvas.disc(0.0, 0.0, RADIUS, WATER)
    canvas.ring(0.0, 0.0, RADIUS, 0.08, draw.INK)
    return canvas.image()


@njit(cache=True)
def paint(pixels, x, y, radius, red, green, blue):
    """A disc with an edge one pixel wide; x to the right, y upwards, in units."""
    scale = pixels.shape[1] / SPAN
    column, row, reach = x * scale + pixels.shape[1] / 2, pixels.shape[0] / 2 - y * scale, radius * scale
    for r in range(max(int(row - reach - 1), 0), min(int(row + reach + 2), pixels.shape[0])):
        for c in range(max(int(column - reach - 1), 0), min(int(column + reach + 2), pixels.shape[1])):
            cover = reach + 0.5 - math.sqrt((r + 0.5 - row) ** 2 + (c + 0.5 - column) ** 2)
            if cover > 0.0:
                cover = min(cover, 1.0)
                pixels[r, c, 0] = np.uint8(pixels[r, c, 0] + cover * (red - pixels[r, c, 0]) + 0.5)
                pixels[r, c, 1] = np.uint8(pixels[r, c, 1] + cover * (green - pixels[r, c, 1]) + 0.5)
                pixels[r, c, 2] = np.uint8(pixels[r, c, 2] + cover * (blue - pixels[r, c, 2]) + 0.5)


@njit(cache=True)
def paint_school(pixels, x, y, vx, vy, here, died, predator):
    """The predator with its reach, the dead where they died, the living with a tail behind them."""
    paint(pixels, predator[0], predator[1], CATCH, 240.0, 200.0, 190.0)
    for a in range(x.shape[0]):
        if died[a] > 0:
            paint(pixels, x[a], y[a], 0.1, 176.0, 180.0, 190.0)
    paint(pixels, predator[0], predator[1], 0.5, 200.0, 70.0, 60.0)
    for a in range(x.shape[0]):
        if here[a]:
            speed = math.sqrt(vx[a] ** 2 + vy[a] ** 2)
            hx, hy = (vx[a] / speed, vy[a] / speed) if speed >= STILL else (1.0, 0.0)
            paint(pixels, x[a] - 0.25 * hx, y[a] - 0.25 * hy, TAIL, 66.0, 110.0, 180.0)
            paint(pixels, x[a], y[a], BODY, 66.0, 110.0, 180.0)


def picture(x, y, vx, vy, here, died, predator) -> np.ndarray:
    """uint8[400,400,3] of one school."""
    pixels = pond().copy()
    paint_school(pixels, x, y, vx, vy, here, died, predator)
    return pixels
