"""Do shapes land where they should, in world units, with y upwards?"""

from __future__ import annotations

import numpy as np
import pytest

from relab.train.envs.draw import BLUE, PAPER, Canvas


def covered(canvas: Canvas) -> np.ndarray:
    """Pixels that are fully blue."""
    return (canvas.image() == BLUE).all(2)


def test_an_empty_canvas_is_paper():
    assert (Canvas(4, 6, span=1.0).image() == PAPER).all()


def test_a_box_fills_its_pixels():
    canvas = Canvas(10, 20, span=20.0)  # a pixel is a unit; (0, 0) is between the middle pixels
    canvas.box(5, 2, 4, 2, BLUE)
    rows, columns = np.nonzero(covered(canvas))
    assert (rows.min(), rows.max(), columns.min(), columns.max()) == (2, 3, 13, 16)
    assert covered(canvas).sum() == 8


@pytest.mark.parametrize(
    ("draw", "area"),
    [
        (lambda c: c.disc(0, 0, 0.5, BLUE), np.pi / 4),
        (lambda c: c.ring(0, 0, 0.5, 0.1, BLUE), 2 * np.pi * 0.5 * 0.1),
        (lambda c: c.line(-0.4, -0.4, 0.4, 0.4, 0.1, BLUE), 0.8 * 2**0.5 * 0.1 + np.pi * 0.05**2),
    ],
    ids=["disc", "ring", "line"],
)
def test_areas(draw, area):
    canvas = Canvas(200, 200, span=2.0)
    draw(canvas)
    cover = (canvas.pixels[..., 0] - PAPER[0]) / (BLUE[0] - PAPER[0])  # edges count in part
    assert cover.sum() / 100**2 == pytest.approx(area, rel=0.02)


def test_shapes_may_lie_outside():
    canvas = Canvas(10, 10, span=2.0)
    canvas.disc(5, 5, 1, BLUE)
    canvas.line(-5, -5, -4, 5, 0.1, BLUE)
    assert not covered(canvas).any()
