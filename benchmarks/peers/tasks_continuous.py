"""Which small tasks are steered by a continuous action? Points, masses, cranes, tanks and arms."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.worlds import GymWorlds, Rows, Worlds


class Pendulum(GymWorlds):
    env_id, inputs, dims, high = "Pendulum-v1", 3, 1, 2.0


class PointReach(Worlds):
    """Bring a point to a goal on a table; the distance is the cost."""

    inputs, dims, horizon = 4, 2, 40

    def setup(self) -> None:
        self.at, self.goal = np.zeros((self.n, 2)), np.zeros((self.n, 2))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.at[who], self.goal[who] = self.rng.uniform(-1, 1, (k, 2)), self.rng.uniform(-1, 1, (k, 2))

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = np.clip(self.at + 0.1 * action, -1.5, 1.5)
        return -np.linalg.norm(self.at - self.goal, axis=1), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.concatenate([self.at, self.goal - self.at], 1)

    def expert(self) -> Rows:
        return np.clip((self.goal - self.at) / 0.1, -1, 1)


class DoubleIntegrator(Worlds):
    """Push a mass on a line to rest at zero, at a quadratic cost."""

    inputs, dims, horizon = 2, 1, 80

    def setup(self) -> None:
        self.x, self.v = np.zeros(self.n), np.zeros(self.n)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.x[who], self.v[who] = self.rng.uniform(-2, 2, k), self.rng.uniform(-0.5, 0.5, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        u = action[:, 0]
        self.v = np.clip(self.v + 0.1 * u, -3, 3)
        self.x = np.clip(self.x + 0.1 * self.v, -5, 5)
        return -0.1 * (self.x**2 + 0.1 * self.v**2 + 0.05 * u**2), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([self.x, self.v], 1)

    def expert(self) -> Rows:
        return np.clip(-1.5 * self.x - 2.0 * self.v, -1, 1)[:, None]


class Crane(Worlds):
    """Drive a trolley to zero with a load on a rope that swings."""

    inputs, dims, horizon = 4, 1, 100

    def setup(self) -> None:
        self.x, self.v, self.swing, self.rate = np.zeros((4, self.n))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.x[who], self.v[who] = self.rng.uniform(-2, 2, k), 0
        self.swing[who], self.rate[who] = self.rng.uniform(-0.2, 0.2, k), 0

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        push = action[:, 0]
        self.v = np.clip(0.98 * self.v + 0.1 * push, -2, 2)
        self.rate = 0.97 * self.rate - 0.1 * (4.0 * np.sin(self.swing) + push)
        self.swing = np.clip(self.swing + 0.1 * self.rate, -1.5, 1.5)
        self.x = np.clip(self.x + 0.1 * self.v, -4, 4)
        return -0.1 * (np.abs(self.x) + np.abs(self.swing)), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([self.x / 2, self.v, 2 * self.swing, self.rate], 1)

    def expert(self) -> Rows:
        return np.clip(-1.0 * self.x - 1.6 * self.v + 0.5 * self.rate, -1, 1)[:, None]


class Thermostat(Worlds):
    """Hold a room at a wish that changes while the weather wanders."""

    inputs, dims, horizon = 3, 1, 60

    def setup(self) -> None:
        self.room, self.wish, self.weather = np.zeros((3, self.n))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.room[who], self.wish[who], self.weather[who] = self.rng.uniform(-1, 1, (3, k))

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.weather = 0.95 * self.weather + 0.1 * self.rng.standard_normal(self.n)
        self.room = self.room + 0.2 * action[:, 0] + 0.1 * (self.weather - self.room)
        turn = self.rng.random(self.n) < 0.05
        self.wish = np.where(turn, self.rng.uniform(-1, 1, self.n), self.wish)
        return -np.abs(self.room - self.wish), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([self.room, self.wish - self.room, self.weather], 1)

    def expert(self) -> Rows:
        need = (self.wish - self.room) - 0.1 * (self.weather - self.room)
        return np.clip(need / 0.2, -1, 1)[:, None]


class TankLevel(Worlds):
    """Fill the second of two tanks to a mark; each empties into the next, faster the fuller it is."""

    inputs, dims, horizon = 3, 1, 80

    def setup(self) -> None:
        self.first, self.second, self.mark = np.zeros((3, self.n))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.first[who], self.second[who] = self.rng.uniform(0, 1, (2, k))
        self.mark[who] = self.rng.uniform(0.2, 0.9, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        inflow = 0.15 * (action[:, 0] + 1) / 2
        through, out = 0.1 * np.sqrt(self.first), 0.1 * np.sqrt(self.second)
        self.first = np.clip(self.first + inflow - through, 0, 1.5)
        self.second = np.clip(self.second + through - out, 0, 1.5)
        return -np.abs(self.second - self.mark), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([2 * self.first - 1, 2 * self.second - 1, 3 * (self.mark - self.second)], 1)

    def expert(self) -> Rows:
        wish = np.clip(self.mark + 3 * (self.mark - self.second), 0, 1.5)
        inflow = np.clip(0.1 * np.sqrt(wish) + 0.5 * (wish - self.first), 0, 0.15)
        return (2 * inflow / 0.15 - 1)[:, None]


class SineTracking(Worlds):
    """Follow a point that swings to and fro, each time at another pace."""

    inputs, dims, horizon = 3, 1, 80

    def setup(self) -> None:
        self.x, self.phase, self.pace = np.zeros((3, self.n))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.x[who], self.phase[who] = self.rng.uniform(-1, 1, k), self.rng.uniform(0, 6.28, k)
        self.pace[who] = self.rng.uniform(0.05, 0.15, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.x = np.clip(self.x + 0.25 * action[:, 0], -2, 2)
        self.phase = self.phase + self.pace
        return -((self.x - np.sin(self.phase)) ** 2), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([self.x, np.sin(self.phase) - self.x, 8 * self.pace * np.cos(self.phase)], 1)

    def expert(self) -> Rows:
        return np.clip((np.sin(self.phase + self.pace) - self.x) / 0.25, -1, 1)[:, None]


class TwoLinkReach(Worlds):
    """Bring the hand of an arm of two links to a goal, by the speed of its joints."""

    inputs, dims, horizon = 8, 2, 60

    def setup(self) -> None:
        self.joints, self.goal = np.zeros((self.n, 2)), np.zeros((self.n, 2))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.joints[who] = self.rng.uniform(-1, 1, (k, 2)) + np.array([0, 1.5])
        angle, far = self.rng.uniform(-1.5, 1.5, k), self.rng.uniform(0.6, 1.5, k)
        self.goal[who] = np.stack([far * np.cos(angle), far * np.sin(angle)], 1)

    def hand(self) -> Rows:
        first, both = self.joints[:, 0], self.joints.sum(1)
        return np.stack([np.cos(first) + np.cos(both), np.sin(first) + np.sin(both)], 1)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.joints = self.joints + 0.15 * action
        self.joints[:, 1] = np.clip(self.joints[:, 1], 0.1, 3.0)
        return -np.linalg.norm(self.hand() - self.goal, axis=1), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        turned = [np.cos(self.joints), np.sin(self.joints)]
        return np.concatenate([*turned, self.goal, self.goal - self.hand()], 1)

    def expert(self) -> Rows:
        gap, first, both = self.goal - self.hand(), self.joints[:, 0], self.joints.sum(1)
        row = np.stack([-np.sin(both), np.cos(both)], 1)
        jacobian = np.stack([row + np.stack([-np.sin(first), np.cos(first)], 1), row], 2)
        damped = jacobian.transpose(0, 2, 1) @ jacobian + 0.02 * np.eye(2)
        pull = np.linalg.solve(damped, jacobian.transpose(0, 2, 1) @ gap[:, :, None])[:, :, 0]
        return np.clip(pull / 0.15, -1, 1)


class BallBeam(Worlds):
    """Keep a ball on a beam by tilting it: up to 1 for each step near the middle."""

    inputs, dims, horizon = 2, 1, 100

    def setup(self) -> None:
        self.x, self.v = np.zeros((2, self.n))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.x[who], self.v[who] = self.rng.uniform(-0.5, 0.5, k), self.rng.uniform(-0.5, 0.5, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.v = self.v + 0.15 * action[:, 0] + 0.03 * self.rng.standard_normal(self.n)
        self.x = self.x + 0.1 * self.v
        off = np.abs(self.x) > 1
        return np.where(off, 0.0, 1.0 - self.x**2), off

    def observe(self) -> Rows:
        return np.stack([2 * self.x, self.v], 1)

    def expert(self) -> Rows:
        return np.clip(-4 * self.x - 3 * self.v, -1, 1)[:, None]


class Docking(Worlds):
    """Bring a drifting craft to rest at a dock in the plane."""

    inputs, dims, horizon = 4, 2, 80

    def setup(self) -> None:
        self.at, self.speed = np.zeros((self.n, 2)), np.zeros((self.n, 2))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.at[who], self.speed[who] = self.rng.uniform(-2, 2, (k, 2)), self.rng.uniform(-0.5, 0.5, (k, 2))

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.speed = np.clip(0.97 * self.speed + 0.1 * action, -2, 2)
        self.at = np.clip(self.at + 0.1 * self.speed, -4, 4)
        cost = np.linalg.norm(self.at, axis=1) + 0.1 * np.linalg.norm(self.speed, axis=1)
        return -0.1 * cost, np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.concatenate([self.at, self.speed], 1)

    def expert(self) -> Rows:
        return np.clip(-1.5 * self.at - 2.0 * self.speed, -1, 1)


class Mixing(Worlds):
    """Two taps, hot and cold: hit a wished flow and a wished warmth that change now and then."""

    inputs, dims, horizon = 4, 2, 60

    def setup(self) -> None:
        self.taps, self.wish = np.zeros((self.n, 2)), np.zeros((self.n, 2))

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.taps[who], self.wish[who] = self.rng.uniform(-1, 1, (2, k, 2))

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.taps = np.clip(self.taps + 0.3 * action, -1, 1)
        turn = self.rng.random(self.n) < 0.04
        self.wish = np.where(turn[:, None], self.rng.uniform(-1, 1, (self.n, 2)), self.wish)
        flow, warmth = self.taps.mean(1), (self.taps[:, 0] - self.taps[:, 1]) / 2
        wish = self.wish.mean(1), (self.wish[:, 0] - self.wish[:, 1]) / 2
        return -np.abs(flow - wish[0]) - np.abs(warmth - wish[1]), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.concatenate([self.taps, self.wish], 1)

    def expert(self) -> Rows:
        return np.clip((self.wish - self.taps) / 0.3, -1, 1)
