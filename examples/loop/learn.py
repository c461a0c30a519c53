"""Cross-entropy method on cart-pole, a linear policy, no packages: learn.py SPREAD ELITE NOTE SEED FOLDER STEPS

Draws ten policies around the best so far, keeps the ELITE best, and goes on from their mean and spread until all STEPS
are used up. Writes progress.csv (what a loop reads) and policy.json (what judge.py plays). NOTE is ignored on purpose.
"""

import json
import math
import random
import sys
from pathlib import Path

LIMIT = 500


def episode(weights: list[float], rng: random.Random, limit: int = LIMIT) -> int:
    """Steps until the pole falls (Barto, Sutton and Anderson 1983; Gymnasium's CartPole-v1)."""
    x, v, angle, spin = (rng.uniform(-0.05, 0.05) for _ in range(4))
    for step in range(limit):
        force = 10.0 if weights[0] * x + weights[1] * v + weights[2] * angle + weights[3] * spin > 0 else -10.0
        c, s = math.cos(angle), math.sin(angle)
        part = (force + 0.05 * spin * spin * s) / 1.1
        turn = (9.8 * s - c * part) / (0.5 * (4.0 / 3.0 - 0.1 * c * c / 1.1))
        push = part - 0.05 * turn * c / 1.1
        x, v, angle, spin = x + 0.02 * v, v + 0.02 * push, angle + 0.02 * spin, spin + 0.02 * turn
        if abs(x) > 2.4 or abs(angle) > 0.2095:
            return step + 1
    return limit


def learn(spread: float, elite: int, rng: random.Random, steps: int) -> tuple[list[float], list[tuple[int, float]]]:
    mean, std, used, rows = [0.0] * 4, [spread] * 4, 0, []
    while True:
        drawn = []
        for _ in range(10):
            if used == steps:
                return mean, rows
            weights = [rng.gauss(m, s) for m, s in zip(mean, std)]
            score = episode(weights, rng, min(LIMIT, steps - used))
            used += score
            drawn.append((score, weights))
        best = [weights for _, weights in sorted(drawn, key=lambda pair: -pair[0])[:elite]]
        mean = [sum(w[i] for w in best) / elite for i in range(4)]
        std = [max(0.01, (sum((w[i] - mean[i]) ** 2 for w in best) / elite) ** 0.5) for i in range(4)]
        rows.append((used, sum(score for score, _ in drawn) / len(drawn)))


if __name__ == "__main__":
    spread, elite, _, seed, folder, steps = sys.argv[1:]
    policy, rows = learn(float(spread), int(elite), random.Random(int(seed)), int(steps))
    lines = ["step,episode_reward", *(f"{step},{score}" for step, score in rows)]
    Path(folder, "progress.csv").write_text("\n".join(lines) + "\n")
    Path(folder, "policy.json").write_text(json.dumps(policy))
