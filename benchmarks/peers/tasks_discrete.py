"""Which small tasks have a few actions to choose from? Grids, corridors, falling things, stocks and queues."""

from __future__ import annotations

import numpy as np

from benchmarks.peers.worlds import GymWorlds, Rows, Worlds

MOVES = np.array([(1, 0), (-1, 0), (0, 1), (0, -1), (0, 0)])


class CartPole(GymWorlds):
    env_id, inputs, choices = "CartPole-v1", 4, 2


class Acrobot(GymWorlds):
    env_id, inputs, choices = "Acrobot-v1", 6, 3


class GridWorld(Worlds):
    """Walk to a goal in a room of 5 by 5: -0.05 a step, +1 at the goal."""

    inputs, choices, horizon, size = 4, 4, 50, 5

    def setup(self) -> None:
        self.at, self.goal = np.zeros((self.n, 2), int), np.zeros((self.n, 2), int)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        cells = np.array([self.rng.choice(self.size**2, 2, replace=False) for _ in range(k)])
        self.at[who] = np.stack(np.divmod(cells[:, 0], self.size), 1)
        self.goal[who] = np.stack(np.divmod(cells[:, 1], self.size), 1)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = np.clip(self.at + MOVES[action], 0, self.size - 1)
        there = (self.at == self.goal).all(1)
        return np.where(there, 1.0, -0.05), there

    def observe(self) -> Rows:
        return np.concatenate([self.at, self.goal], 1) / 2 - 1

    def expert(self) -> Rows:
        gap = self.goal - self.at
        along = np.where(gap[:, 0] > 0, 0, 1)
        return np.where(gap[:, 0] != 0, along, np.where(gap[:, 1] > 0, 2, 3))


class Corridor(Worlds):
    """Ten cells; 0.2 waits at the near end, 1 at the far end."""

    inputs, choices, horizon, length = 2, 2, 60, 10

    def setup(self) -> None:
        self.at = np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        self.at[who] = 2

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = self.at + np.where(action == 1, 1, -1)
        near, far = self.at <= 0, self.at >= self.length - 1
        return np.where(far, 1.0, np.where(near, 0.2, -0.005)), near | far

    def observe(self) -> Rows:
        return np.stack([self.at / 5 - 1, self.clock / self.horizon], 1)

    def expert(self) -> Rows:
        return np.ones(self.n, int)


class Catch(Worlds):
    """A ball falls eight rows through seven columns: +1 where the paddle is, -1 elsewhere."""

    inputs, choices, horizon, rows, columns = 3, 3, 20, 8, 7

    def setup(self) -> None:
        self.ball, self.paddle = np.zeros(self.n, int), np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.ball[who] = self.rng.integers(self.columns, size=k)
        self.paddle[who] = self.rng.integers(self.columns, size=k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.paddle = np.clip(self.paddle + action - 1, 0, self.columns - 1)
        down = self.clock + 1 >= self.rows
        return np.where(down, np.where(self.paddle == self.ball, 1.0, -1.0), 0.0), down

    def observe(self) -> Rows:
        return np.stack([self.ball / 3 - 1, self.paddle / 3 - 1, self.clock / self.rows], 1)

    def expert(self) -> Rows:
        return np.sign(self.ball - self.paddle) + 1


class CliffWalk(Worlds):
    """Four rows of eight; between start and goal the ground is missing: -1 there, +1 at the goal, -0.02 a step."""

    inputs, choices, horizon = 3, 4, 60

    def setup(self) -> None:
        self.at = np.zeros((self.n, 2), int)

    def begin(self, who: Rows) -> None:
        self.at[who] = (0, 0)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = np.clip(self.at + MOVES[action], 0, (7, 3))
        low, x = self.at[:, 1] == 0, self.at[:, 0]
        fell, there = low & (x > 0) & (x < 7), low & (x == 7)
        return np.where(there, 1.0, np.where(fell, -1.0, -0.02)), fell | there

    def observe(self) -> Rows:
        return np.stack([self.at[:, 0] / 3.5 - 1, self.at[:, 1] / 1.5 - 1, self.at[:, 1] == 0], 1)

    def expert(self) -> Rows:
        up = (self.at[:, 1] == 0) & (self.at[:, 0] < 7)
        return np.where(up, 2, np.where(self.at[:, 0] < 7, 0, 3))


class StateBandit(Worlds):
    """Twenty pulls; which of four arms pays depends on the state shown, and pay is noisy."""

    inputs, choices, horizon = 6, 4, 20
    best = np.array([2, 0, 3, 1, 0, 2])

    def setup(self) -> None:
        self.state = np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        self.state[who] = self.rng.integers(6, size=int(who.sum()))

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        pay = np.where(action == self.best[self.state], 1.0, 0.2) + 0.5 * self.rng.standard_normal(self.n)
        self.state = self.rng.integers(6, size=self.n)
        return pay, np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.eye(6)[self.state]

    def expert(self) -> Rows:
        return self.best[self.state]


class Lander(Worlds):
    """Fall from ten metres with one engine: the softer the landing, the more it pays; fuel costs a little."""

    inputs, choices, horizon = 2, 2, 120

    def setup(self) -> None:
        self.height, self.speed = np.zeros(self.n), np.zeros(self.n)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.height[who], self.speed[who] = self.rng.uniform(8, 10, k), self.rng.uniform(-1, 0, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.speed = self.speed + 0.1 * np.where(action == 1, 1.5, -1.0)
        self.height = self.height + 0.1 * self.speed
        down, lost = self.height <= 0, self.height > 12
        landing = 2.0 - 1.5 * np.abs(self.speed)
        return np.where(down, landing, np.where(lost, -3.0, -0.01 * (action == 1))), down | lost

    def observe(self) -> Rows:
        return np.stack([self.height / 5 - 1, self.speed / 2], 1)

    def expert(self) -> Rows:
        return (self.speed < -np.sqrt(np.maximum(1.6 * self.height, 0.04))).astype(int)


class Pursuit(Worlds):
    """Chase something that moves every other step, on a board of seven that wraps around."""

    inputs, choices, horizon, size = 2, 5, 40, 7

    def setup(self) -> None:
        self.gap = np.zeros((self.n, 2), int)

    def begin(self, who: Rows) -> None:
        self.gap[who] = np.array([(3, 2)]) * self.rng.choice([-1, 1], (int(who.sum()), 2))

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        flight = MOVES[self.rng.integers(5, size=self.n)] * (self.rng.random(self.n) < 0.5)[:, None]
        self.gap = (self.gap + flight - MOVES[action] + 3) % self.size - 3
        caught = (self.gap == 0).all(1)
        return np.where(caught, 1.0, -0.03), caught

    def observe(self) -> Rows:
        return self.gap / 3

    def expert(self) -> Rows:
        x, y = self.gap.T
        return np.where(np.abs(x) >= np.abs(y), np.where(x > 0, 0, 1), np.where(y > 0, 2, 3))


class Inventory(Worlds):
    """Order for tomorrow: a sale earns 1, a missed one costs 1, stock costs 0.1 a day."""

    inputs, choices, horizon = 2, 5, 40

    def setup(self) -> None:
        self.stock, self.demand = np.zeros(self.n, int), np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.stock[who], self.demand[who] = self.rng.integers(0, 10, k), 4

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.stock = np.minimum(self.stock + 2 * action, 30)
        self.demand = self.rng.poisson(4.0, self.n)
        sold = np.minimum(self.stock, self.demand)
        missed, self.stock = self.demand - sold, self.stock - sold
        return 0.25 * (sold - missed - 0.1 * self.stock), np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([self.stock / 10 - 1, self.demand / 5 - 1], 1)

    def expert(self) -> Rows:
        return np.clip((9 - self.stock) // 2, 0, 4)


class KeyDoor(Worlds):
    """The key lies at one end of nine cells, the door is at the other."""

    inputs, choices, horizon = 3, 2, 60

    def setup(self) -> None:
        self.at, self.key = np.zeros(self.n, int), np.zeros(self.n, bool)

    def begin(self, who: Rows) -> None:
        self.at[who], self.key[who] = self.rng.integers(3, 6, int(who.sum())), False

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = np.clip(self.at + np.where(action == 1, 1, -1), 0, 8)
        fresh = (self.at == 0) & ~self.key
        self.key = self.key | fresh
        through = (self.at == 8) & self.key
        return np.where(through, 1.0, np.where(fresh, 0.3, -0.01)), through

    def observe(self) -> Rows:
        return np.stack([self.at / 4 - 1, self.key, (self.at / 4 - 1) * self.key], 1)

    def expert(self) -> Rows:
        return self.key.astype(int)


class QueueControl(Worlds):
    """Serve a queue: slow is free, fast costs, waiting costs more the longer the queue."""

    inputs, choices, horizon = 2, 3, 60
    served, price = np.array([0.3, 1.0, 2.0]), np.array([0.0, 0.1, 0.3])

    def setup(self) -> None:
        self.queue, self.came = np.zeros(self.n, int), np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        self.queue[who], self.came[who] = self.rng.integers(0, 12, int(who.sum())), 0

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.came = self.rng.poisson(0.95, self.n)
        left = self.queue - self.rng.poisson(self.served[action])
        self.queue = np.clip(left, 0, None) + self.came
        self.queue = np.minimum(self.queue, 25)
        return -0.05 * self.queue - self.price[action], np.zeros(self.n, bool)

    def observe(self) -> Rows:
        return np.stack([self.queue / 6 - 1, self.came / 2 - 0.5], 1)

    def expert(self) -> Rows:
        return np.where(self.queue > 2, 2, np.where(self.queue > 0, 1, 0))


class Steering(Worlds):
    """Keep a car in a lane that bends: 1 for each step inside."""

    inputs, choices, horizon = 3, 3, 120

    def setup(self) -> None:
        self.side, self.heading, self.bend = np.zeros(self.n), np.zeros(self.n), np.zeros(self.n)

    def begin(self, who: Rows) -> None:
        k = int(who.sum())
        self.side[who], self.heading[who] = self.rng.uniform(-0.4, 0.4, k), self.rng.uniform(-0.1, 0.1, k)
        self.bend[who] = self.rng.uniform(-0.05, 0.05, k)

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.bend = 0.95 * self.bend + 0.01 * self.rng.standard_normal(self.n)
        self.heading = self.heading + 0.12 * (action - 1) + self.bend
        self.side = self.side + 0.3 * np.sin(self.heading)
        out = np.abs(self.side) > 1
        return np.where(out, 0.0, 1.0), out

    def observe(self) -> Rows:
        return np.stack([self.side, 2 * self.heading, 10 * self.bend], 1)

    def expert(self) -> Rows:
        pull = -0.5 * self.side - self.heading - self.bend
        return np.where(pull > 0.05, 2, np.where(pull < -0.05, 0, 1))


class Dodge(Worlds):
    """Stones fall in one of five lanes, always where one stood: step aside; 0.1 for each step alive."""

    inputs, choices, horizon = 3, 3, 80

    def setup(self) -> None:
        self.at, self.stone, self.drop = np.zeros(self.n, int), np.zeros(self.n, int), np.zeros(self.n, int)

    def begin(self, who: Rows) -> None:
        self.at[who] = 2
        self.throw(who)

    def throw(self, who: Rows) -> None:
        off = self.rng.integers(-1, 2, int(who.sum()))
        self.stone[who], self.drop[who] = np.clip(self.at[who] + off, 0, 4), 3

    def move(self, action: Rows) -> tuple[Rows, Rows]:
        self.at = np.clip(self.at + action - 1, 0, 4)
        self.drop = self.drop - 1
        landed = self.drop <= 0
        hit = landed & (self.at == self.stone)
        self.throw(landed & ~hit)
        return np.where(hit, -1.0, 0.1), hit

    def observe(self) -> Rows:
        return np.stack([self.at / 2 - 1, (self.stone - self.at) / 2, self.drop / 3], 1)

    def expert(self) -> Rows:
        aside = np.where(self.at == 4, 0, 2)
        return np.where(self.at == self.stone, aside, 1)
