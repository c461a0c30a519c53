"""What is a drone paid for? The change of a total, which says how well it stands now, that of a guide, and events.

The total of pick-and-place is that of a published experiment, hover's and race's that of PufferLib's drone_swarm (the
way to the target), hover's with its performance added. Alone they are faint from afar: a metre nearer is worth 0.01, as
much as a hundredth of a neighbour's distance. The guide (`env.guide` times as much, 0: none) pays for every metre, as
PufferLib's newest drones do (0.7 and 0.9 there), and for standing still at the target.
Performance is a number in [0, 1] for each task, as PufferLib defines it: hover, a moving mean of how still a drone
stands at its target; race, rings passed of all; pick-and-place: 1 after the first perfect delivery.
"""

from __future__ import annotations

import math

from relab.train.envs.drones_physics import FASTEST, SPIN, cut
from relab.train.kernels.jit import lean

FAR = math.sqrt(60.0**2 + 60.0**2 + 20.0**2)  # from corner to corner
A_METRE, STILL = 0.5, 4.0  # of the guide: what a metre of the way is worth, and standing still at the target
STILL_HOVER = 40.0  # the same where hovering is all: beside races, whose rewards are large, less was hardly learned
CLOSE = 1.0  # a neighbour nearer than this costs CROWDED
CROWDED = 1.0
GRIP_PAYS, HOVER_PAYS, DELIVERY_PAYS, RING_PAYS, CRASH_COSTS = 1.0, 0.25, 1.0, 1.0, 1.0
GUIDED_RING, GUIDED_CRASH = 8.0, 20.0  # what a guide adds to those two: beside it they would weigh little. With a
# crash at a fifth of that, haste was worth that half of the races ended on a ring
KEEP = 0.98  # of the moving mean of hover's performance, a tick


@lean()
def reach(tick):
    """D: the distance within which a drone is near its target; it shrinks within an episode."""
    return max(1.6, 77.0 - 0.5 * tick)


@lean()
def tolerance(tick):
    """k: how far off a grip and a delivery may be, in units of the strict one; it shrinks within an episode."""
    return max(1.0, 15.0 - 0.095 * tick)


@lean(forceinline=True)
def pick_total(tx, ty, tz, vx, vy, vz, sink, spin, D, crowded):
    """(total, its share for the position) of pick-and-place; (tx, ty, tz) leads to the target, which sinks at -sink."""
    d = math.sqrt(tx * tx + ty * ty + tz * tz) + 1e-8
    v = math.sqrt(vx * vx + vy * vy + (vz - sink) ** 2)
    near, position = min(max(1.0 - d / D, 0.0), 1.0), math.exp(-d / (0.63 * D))
    calm = min(max(2.0 * math.exp(-10.0 * (v - 0.05)) - 1.0, -1.0), 1.0)
    approach = min(d / D, 1.0) * cut((vx * tx + vy * ty + vz * tz) / d / FASTEST, 0.5)
    hover = 0.5 if d < 0.2 * D and v < 0.2 else 0.0
    total = 1.13 * position + 0.15 * near * calm - 2.0 * spin / SPIN + 2.2 * approach + 1.5 * hover - crowded
    return cut(total, 1.0), position


@lean(forceinline=True)
def stillness(d, v, spin):
    """How well a drone hovers now: distance to its target, speed, rate of rotation."""
    return 1.0 / (1.0 + 0.05 * (70.0 * d + 15.0 * v + 1.5 * spin))
