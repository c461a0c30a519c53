"""What does CartPole look like in 64 x 64 pixels? Drawn at that size by a kernel, never drawn large and made small.

Grey, one channel, multiples of 1/255 so that a byte holds a pixel exactly. Edges are smooth: a pixel that is covered by
half is half as bright, so positions finer than a pixel can be seen. The pole is drawn thick and four times as long as
to scale: true to scale its tip would move by 2.3 pixels until it falls, drawn so by 9.
"""

from __future__ import annotations

import math

import numpy as np

from relab.train.kernels.jit import njit

f32 = np.float32
# all in pixels of a picture of 64 x 64
PER_METRE = 11.25  # the track ends 27 pixels from the middle
AXLE = 52.0  # row
CART = (6.0, 4.0)  # half of width and height
CART_GREY, POLE_GREY = 0.5, 1.0
POLE_LENGTH, POLE_HALF = 44.0, 2.5


@njit(cache=True, nogil=True)
def observe_rows(body, side, obs_NAD):
    """Pictures of all worlds, flat, row by row."""
    for i in range(body.shape[0]):
        draw(body[i, 0], body[i, 2], side, obs_NAD[i, 0])


@njit(cache=True, nogil=True)
def draw(x, angle, side, picture):
    size = side / 64.0
    column, row = side / 2 + x * PER_METRE * size, AXLE * size
    picture[:] = f32(0.0)
    draw_cart(column, row, size, side, picture)
    draw_pole(column, row, angle, size, side, picture)


@njit(cache=True, nogil=True)
def draw_cart(column, row, size, side, picture):
    wide, high = CART[0] * size, CART[1] * size
    for r in range(max(0, int(row - high) - 1), min(side, int(row + high) + 2)):
        for c in range(max(0, int(column - wide) - 1), min(side, int(column + wide) + 2)):
            outside = max(abs(c + 0.5 - column) - wide, abs(r + 0.5 - row) - high)
            blend(picture, r * side + c, 0.5 - outside, CART_GREY)


@njit(cache=True, nogil=True)
def draw_pole(column, row, angle, size, side, picture):
    """A segment with round ends, over the cart."""
    along, up, half = POLE_LENGTH * size * math.sin(angle), POLE_LENGTH * size * math.cos(angle), POLE_HALF * size
    square = along * along + up * up
    left, right = min(column, column + along) - half, max(column, column + along) + half
    for r in range(max(0, int(row - up - half) - 1), min(side, int(row + half) + 2)):
        for c in range(max(0, int(left) - 1), min(side, int(right) + 2)):
            dx, dy = c + 0.5 - column, row - r - 0.5
            share = min(max((dx * along + dy * up) / square, 0.0), 1.0)
            outside = math.sqrt((dx - share * along) ** 2 + (dy - share * up) ** 2) - half
            blend(picture, r * side + c, 0.5 - outside, POLE_GREY)


@njit(cache=True, nogil=True)
def blend(picture, at, cover, grey):
    """Paint a pixel as far as it is covered, in steps of 1/255."""
    if cover > 0:
        mixed = picture[at] + min(cover, 1.0) * (grey - picture[at])
        picture[at] = f32(round(mixed * 255)) / f32(255)
