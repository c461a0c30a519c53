"""Which tasks do the peers' runs use, and how good is good? Small worlds and three of Gymnasium's, with known levels.

    python -m benchmarks.peers.tasks      # measures random and expert anew and prints them beside LEVELS

TABLE tasks give runs to the reference table; HELD_OUT tasks and the LATER ones never do. A run reached its task's level
when it went three quarters of the way from the random policy to the solved level: one rule for all. `solved` is what
the expert of the task earns, written by hand; for Gymnasium's three it is the published threshold (CartPole 475,
Acrobot -100) or rl-baselines3-zoo's trained agents (Pendulum -160); their random levels stand in levels_random.json.
"""

from __future__ import annotations

import numpy as np

from benchmarks.peers import tasks_continuous as con
from benchmarks.peers import tasks_discrete as dis
from benchmarks.peers import tasks_later as later
from benchmarks.peers.worlds import GymWorlds, Worlds

TABLE: dict[str, type[Worlds]] = {
    "CartPole-v1": dis.CartPole, "Pendulum-v1": con.Pendulum, "GridWorld-v0": dis.GridWorld,
    "PointReach-v0": con.PointReach, "Acrobot-v1": dis.Acrobot, "DoubleIntegrator-v0": con.DoubleIntegrator,
    "Catch-v0": dis.Catch, "Crane-v0": con.Crane, "Corridor-v0": dis.Corridor, "Thermostat-v0": con.Thermostat,
    "CliffWalk-v0": dis.CliffWalk, "StateBandit-v0": dis.StateBandit, "Lander-v0": dis.Lander,
}  # fmt: skip
HELD_OUT: dict[str, type[Worlds]] = {
    "Pursuit-v0": dis.Pursuit, "TankLevel-v0": con.TankLevel, "Inventory-v0": dis.Inventory,
    "SineTracking-v0": con.SineTracking, "KeyDoor-v0": dis.KeyDoor, "TwoLinkReach-v0": con.TwoLinkReach,
    "QueueControl-v0": dis.QueueControl, "BallBeam-v0": con.BallBeam, "Steering-v0": dis.Steering,
    "Docking-v0": con.Docking, "Dodge-v0": dis.Dodge, "Mixing-v0": con.Mixing,
}  # fmt: skip
LATER: dict[str, type[Worlds]] = {"Traffic-v0": later.Traffic, "Lift-v0": later.Lift, "Hover-v0": later.Hover}
ALL = TABLE | HELD_OUT | LATER

LEVELS: dict[str, tuple[float, float]] = {  # (random, solved)
    "CartPole-v1": (22.2, 475.0), "Acrobot-v1": (-498.0, -100.0), "Pendulum-v1": (-1225.0, -160.0),
    "GridWorld-v0": (-0.90, 0.888), "PointReach-v0": (-44.0, -5.25), "DoubleIntegrator-v0": (-34.3, -1.48),
    "Catch-v0": (-0.725, 1.0), "Crane-v0": (-13.6, -2.42), "Corridor-v0": (0.293, 0.97),
    "Thermostat-v0": (-34.8, -6.26), "CliffWalk-v0": (-1.152, 0.84), "StateBandit-v0": (7.74, 19.9),
    "Lander-v0": (-2.86, 1.464),
    "Pursuit-v0": (-0.618, 0.857), "TankLevel-v0": (-16.2, -2.34), "Inventory-v0": (23.8, 35.1),
    "SineTracking-v0": (-115.9, -1.13), "KeyDoor-v0": (-0.121, 1.199), "TwoLinkReach-v0": (-81.2, -8.53),
    "QueueControl-v0": (-26.3, -15.7), "BallBeam-v0": (30.5, 99.6), "Steering-v0": (17.8, 120.0),
    "Docking-v0": (-15.1, -2.66), "Dodge-v0": (-0.096, 8.0), "Mixing-v0": (-57.1, -6.00),
    "Traffic-v0": (-26.5, -7.91), "Lift-v0": (-0.725, 0.912), "Hover-v0": (-1.90, 46.3),
}  # fmt: skip
WAY = 0.75  # of the way from random to solved


def reached(task: str, level: float) -> bool:
    """Whether a mean return counts as having learned the task. A return that is not a number never does."""
    low, top = LEVELS[task]
    return bool(level >= low + WAY * (top - low))


def played(make: type[Worlds], expert: bool, episodes: int = 400, seed: int = 7) -> float:
    """Mean return of the first episodes of each world: those that end early are not counted more often."""
    worlds = make(episodes, seed)
    worlds.reset()
    totals = np.full(episodes, np.nan)
    while np.isnan(totals).any():
        for episode in worlds.step(worlds.expert() if expert else worlds.random()).episodes:
            if np.isnan(totals[episode.world]):
                totals[episode.world] = episode.total
    return float(totals.mean())


def main() -> None:
    for name, make in ALL.items():
        if not issubclass(make, GymWorlds):
            print(f'    "{name}": ({played(make, False):.4g}, {played(make, True):.4g}),')


if __name__ == "__main__":
    main()
