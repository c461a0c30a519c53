"""Which tasks came after the rules had met all others? Lights, a lift and a drone, for the second held-out part."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.worlds import Rows, Worlds


class Traffic(Worlds):
    """Two roads cross: who has green? Cars that wait cost, and a change of the light loses a step."""

    inputs, choices, horizon = 4, 2, 60
    rate = np.array([0.9, 0.4])

    def setup(self) -> None:
        self.cars, self.light = np.zeros((self.n, 2), int), np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.cars[who], self.light[who] = self.rng.integers(0, 8, (k, 2)), self.rng.integers(2, size=k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        same = action == self.light
        self.light = np.asarray(action).astype(int)
        left = np.zeros((self.n, 2), int)
        left[np.arange(self.n), self.light] = np.where(same, 3, 0)
        self.cars = np.minimum(np.maximum(self.cars - left, 0) + self.rng.poisson(self.rate, (self.n, 2)), 30)
        return -0.03 * self.cars.sum(1), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        green = self.light == 1
        return np.stack([self.cars[:, 0] / 5 - 1, self.cars[:, 1] / 5 - 1, green, ~green], 1)

    def expert(self) -> Rows:
        here, there = self.cars[np.arange(self.n), self.light], self.cars[np.arange(self.n), 1 - self.light]
        return np.where((there > 3) & (there > 1.5 * here), 1 - self.light, self.light)


class Lift(Worlds):
    """Fetch somebody on one of six floors, bring him to another: 0.5 for each door that opens right."""

    inputs, choices, horizon, floors = 4, 3, 60, 6

    def setup(self) -> None:
        self.at, self.want, self.goal = np.zeros((3, self.n), int)
        self.aboard = np.zeros(self.n, bool)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.at[who], self.want[who] = self.rng.integers(self.floors, size=(2, k))
        self.goal[who] = (self.want[who] + self.rng.integers(1, self.floors, k)) % self.floors
        self.aboard[who] = False

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = np.clip(self.at + np.array([-1, 1, 0])[action], 0, self.floors - 1)
        opened, target = action == 2, np.where(self.aboard, self.goal, self.want)
        right = opened & (self.at == target)
        arrived = right & self.aboard
        self.aboard = self.aboard | right
        return np.where(right, 0.5, np.where(opened, -0.05, -0.02)), arrived

    def observe(self) -> Rows:
        target = np.where(self.aboard, self.goal, self.want)
        return np.stack([self.at / 2.5 - 1, (target - self.at) / 2, target == self.at, self.aboard], 1)

    def expert(self) -> Rows:
        gap = np.where(self.aboard, self.goal, self.want) - self.at
        return np.where(gap > 0, 1, np.where(gap < 0, 0, 2))


class Hover(Worlds):
    """Hold a drone at a wished height in gusts: the gap costs, falling to the ground ends it."""

    inputs, dims, horizon = 3, 1, 100

    def setup(self) -> None:
        self.height, self.speed, self.wish = np.zeros((3, self.n))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.height[who], self.speed[who] = self.rng.uniform(1, 3, k), self.rng.uniform(-0.5, 0.5, k)
        self.wish[who] = self.rng.uniform(1.5, 2.5, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        gust = 0.05 * self.rng.standard_normal(self.n)
        self.speed = 0.98 * self.speed + 0.1 * (2.0 * action[:, 0] - 0.3) + gust
        self.height = np.minimum(self.height + 0.1 * self.speed, 5.0)
        down = self.height <= 0
        gap = np.abs(self.height - self.wish)
        return np.where(down, -5.0, 0.5 - 0.5 * np.minimum(gap, 2.0)), down

    def observe(self) -> Rows:
        return np.stack([self.height - 2, self.speed, self.wish - self.height], 1)

    def expert(self) -> Rows:
        return np.clip(1.5 * (self.wish - self.height) - 1.2 * self.speed + 0.15, -1, 1)[:, None]
