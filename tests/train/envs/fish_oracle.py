"""The same pond in plain Python, one fish after the other and all pairs: slow, short, and nothing shared with relab."""

from __future__ import annotations

import math
from dataclasses import dataclass

R, DT = 10.0, 0.1


@dataclass
class Body:
    x: float
    y: float
    vx: float
    vy: float
    alive: bool = True


def steer(fish: Body, action: int) -> None:
    speed = math.hypot(fish.vx, fish.vy)
    if action == 0:
        heading = (fish.vx / speed, fish.vy / speed) if speed >= 0.01 else (1.0, 0.0)
        fish.vx, fish.vy = fish.vx + 0.1 * heading[0], fish.vy + 0.1 * heading[1]
        faster = math.hypot(fish.vx, fish.vy)
        if faster > 2:
            fish.vx, fish.vy = 2 * fish.vx / faster, 2 * fish.vy / faster
    if action in (1, 2):
        angle = math.atan2(fish.vy, fish.vx) + math.radians(30 if action == 1 else -30)
        fish.vx, fish.vy = speed * math.cos(angle), speed * math.sin(angle)
    if action == 3:
        fish.vx, fish.vy = 0.9 * fish.vx, 0.9 * fish.vy


def drift(body: Body, bounce: float) -> None:
    body.x, body.y = body.x + DT * body.vx, body.y + DT * body.vy
    far = math.hypot(body.x, body.y)
    if far > R:
        n = (body.x / far, body.y / far)
        body.x, body.y = R * n[0], R * n[1]
        out = body.vx * n[0] + body.vy * n[1]
        if out > 0:
            body.vx, body.vy = body.vx - (1 + bounce) * out * n[0], body.vy - (1 + bounce) * out * n[1]


def felt(me: Body, school: list[Body]) -> list[float]:
    others = [o for o in school if o is not me and o.alive and math.hypot(o.x - me.x, o.y - me.y) < 2]
    if not others:
        return [0, 0, 0, 1, 0, 0, 0]
    near = sorted(others, key=lambda o: math.hypot(o.x - me.x, o.y - me.y))[:6]
    k, speeds = len(near), [math.hypot(o.vx, o.vy) for o in near]
    mean = sum(speeds) / k
    apart = 0.0
    for o in near:
        d = math.hypot(o.x - me.x, o.y - me.y)
        apart += ((o.vx - me.vx) * (o.x - me.x) + (o.vy - me.vy) * (o.y - me.y)) / d / k
    return [
        min(len(others) / 6, 1),
        sum(o.x - me.x for o in near) / k / 2,
        sum(o.y - me.y for o in near) / k / 2,
        math.hypot(near[0].x - me.x, near[0].y - me.y) / 2,
        mean / 2,
        math.sqrt(sum((s - mean) ** 2 for s in speeds) / k) / 2,
        apart / 2,
    ]


def sight(me: Body, school: list[Body], predator: Body) -> list[float]:
    seen = [me.x / 10, me.y / 10, me.vx / 2, me.vy / 2, (10 - math.hypot(me.x, me.y)) / 10]
    dx, dy = predator.x - me.x, predator.y - me.y
    d, vision = math.hypot(dx, dy), 10 / 3
    spotted = [1, dx / vision, dy / vision, predator.vx / 2, predator.vy / 2, d / vision] if d <= vision else [0] * 6
    return seen + spotted + felt(me, school)


def step(
    school: list[Body], predator: Body, actions: list[int], density=0.0, target=0.5, divergence=0.0
) -> list[float]:
    """Moves everybody on; the reward of each fish that was alive before, 0 for the others."""
    before = [fish.alive for fish in school]
    for fish, action in zip(school, actions):
        if fish.alive:
            steer(fish, action)
            drift(fish, 0.5)
    predator.vy += 0.5 * DT
    drift(predator, 0.85)
    for fish in school:
        fish.alive = fish.alive and math.hypot(fish.x - predator.x, fish.y - predator.y) >= 0.7
    return [wage(f, school, predator, density, target, divergence) if b else 0.0 for f, b in zip(school, before)]


def wage(me: Body, school: list[Body], predator: Body, density: float, target: float, divergence: float) -> float:
    if not me.alive:
        return -50.0
    d, wall = math.hypot(me.x - predator.x, me.y - predator.y), 10 - math.hypot(me.x, me.y)
    feels = felt(me, school)
    total = 2 + (10 * d / (10 / 3) if d <= 10 / 3 else 5) - (2 * (1 - wall) if wall < 1 else 0)
    return 0.1 * (total - density * max(feels[0] - target, 0) + divergence * 2 * feels[6])
