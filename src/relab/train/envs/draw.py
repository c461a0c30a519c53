"""How does a state become a picture, with numpy alone? Smooth shapes on a small canvas, good enough for a video."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Colour = tuple[int, int, int]

PAPER: Colour = (250, 250, 247)
INK: Colour = (43, 45, 66)
GREY: Colour = (176, 180, 190)
WOOD: Colour = (202, 138, 84)
BLUE: Colour = (66, 110, 180)
GREEN: Colour = (126, 178, 109)
RED: Colour = (200, 70, 60)


class Canvas:
    """x to the right, y upwards, in units of the world: `span` units across the width, (0, 0) in the middle."""

    def __init__(self, height: int, width: int, span: float, paper: Colour = PAPER) -> None:
        self.scale = width / span
        self.pixels = np.empty((height, width, 3), np.float32)
        self.pixels[:] = paper

    def _paint(self, x: float, y: float, reach: float, colour: Colour, distance: Callable) -> None:
        """Blend `colour` where distance(dx, dy) <= 0 (units, seen from (x, y)), with an edge one pixel wide."""
        height, width, _ = self.pixels.shape
        column, row = x * self.scale + width / 2, height / 2 - y * self.scale
        size = reach * self.scale + 2
        left, right = np.clip((int(column - size), int(column + size) + 2), 0, width)
        top, bottom = np.clip((int(row - size), int(row + size) + 2), 0, height)
        dx = (np.arange(left, right) + 0.5 - column)[None, :] / self.scale
        dy = (row - np.arange(top, bottom) - 0.5)[:, None] / self.scale
        cover = np.clip(0.5 - distance(dx, dy) * self.scale, 0.0, 1.0)[..., None]
        patch = self.pixels[top:bottom, left:right]
        patch += cover.astype(np.float32) * (np.asarray(colour, np.float32) - patch)

    def disc(self, x: float, y: float, radius: float, colour: Colour) -> None:
        self._paint(x, y, radius, colour, lambda dx, dy: np.hypot(dx, dy) - radius)

    def ring(self, x: float, y: float, radius: float, width: float, colour: Colour) -> None:
        self._paint(x, y, radius + width, colour, lambda dx, dy: np.abs(np.hypot(dx, dy) - radius) - width / 2)

    def box(self, x: float, y: float, width: float, height: float, colour: Colour) -> None:
        def distance(dx, dy):
            return np.maximum(np.abs(dx) - width / 2, np.abs(dy) - height / 2)

        self._paint(x, y, max(width, height), colour, distance)

    def line(self, x0: float, y0: float, x1: float, y1: float, width: float, colour: Colour) -> None:
        """A segment with round ends."""
        along_x, along_y = x1 - x0, y1 - y0
        length2 = max(along_x**2 + along_y**2, 1e-12)

        def distance(dx, dy):
            t = np.clip((dx * along_x + dy * along_y) / length2, 0.0, 1.0)
            return np.hypot(dx - t * along_x, dy - t * along_y) - width / 2

        self._paint(x0, y0, length2**0.5 + width, colour, distance)

    def image(self) -> np.ndarray:
        """uint8[H,W,3]"""
        return np.rint(self.pixels).astype(np.uint8)
