"""What share of a school dies in the first step, whatever the policy does? Geometry of the start, exact.

A fish starts at a uniform angle and a radius ~ U(0, spawn), so it is dense in the middle: at a distance r it lies
within `reach` of a predator at distance rho with probability acos((r^2 + rho^2 - reach^2) / (2 r rho)) / pi (the share
of its circle that the predator covers), and the floor is the mean of that over r. A first move that does not depend on
where the fish is only changes the law of r; so does the start outwards (`boost`).
"""

from __future__ import annotations

import numpy as np

SPAWN, REACH, DT, SPEED = 8.0, 0.7, 0.1, 1.0
JITTER = np.radians(15.0)
NODES = 64  # of Gauss and Legendre, per smooth piece and dimension


def covered(r: np.ndarray, rho: float, reach: float = REACH) -> np.ndarray:
    """The share of the circle of radius r around the centre that a disc of radius `reach` at distance rho covers."""
    r = np.asarray(r, np.float64)
    if rho == 0.0:
        return (r < reach).astype(np.float64)
    cos = (r**2 + rho**2 - reach**2) / (2 * np.maximum(r, 1e-300) * rho)
    return np.arccos(np.clip(cos, -1.0, 1.0)) / np.pi


def step_one_floor(rho: float, reach: float = REACH, spawn: float = SPAWN) -> float:
    """P(a fish that starts at radius U(0, spawn) is within `reach` of a predator at distance rho); no one moves.

    >>> round(step_one_floor(0.0), 4), round(step_one_floor(3.0) * 3.0, 4)
    (0.0875, 0.0308)
    """
    if rho < 0 or reach <= 0 or spawn <= 0:
        raise ValueError(f"needs rho >= 0, reach > 0 and spawn > 0, but got {rho}, {reach}, {spawn}")
    low, high = sorted((abs(rho - reach), rho + reach))
    inside = min(low, spawn) if rho < reach else 0.0  # circles that the disc covers whole
    r, weight = _pieces(min(low, spawn), min(high, spawn))
    return float((inside + (weight * covered(r, rho, reach)).sum()) / spawn)


def floor_after_moves(rho: float, boost: float = 0.0, reach: float = REACH, spawn: float = SPAWN) -> float:
    """The same after the fish's own first step, at the speed it starts with: U(0, 1) in any direction, or 2 * boost
    outwards within 15 degrees. rho is the predator's distance after its first step: deaths are checked once both
    have moved.
    """
    size = 400  # the mean over a grid of midpoints: the integrand has corners, and 1e-5 is enough here
    u = (np.arange(size) + 0.5) / size
    r = spawn * (np.arange(8 * size) + 0.5) / (8 * size)
    angle = np.pi * (2 * u[::8] - 1) if boost == 0.0 else JITTER * (2 * u[::8] - 1)
    step = DT * SPEED * u[::16] if boost == 0.0 else np.array([DT * 2.0 * boost])
    along, across = step[:, None] * np.cos(angle), step[:, None] * np.sin(angle)
    radius = np.hypot(r[:, None, None] + along, across)
    return float(covered(radius, rho, reach).mean())


def _pieces(low: float, high: float) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights on [low, high]; r = middle - half cos(t) takes the root from both ends."""
    t, weight = np.polynomial.legendre.leggauss(NODES)
    t, weight = 0.5 * np.pi * (t + 1), 0.5 * np.pi * weight
    half = 0.5 * (high - low)
    return 0.5 * (low + high) - half * np.cos(t), half * np.sin(t) * weight
