"""What is normal in this environment? Facts and published levels of common environments, each with its source.

Two tables. `levels_random.json` holds what benchmarks/random_levels.py measured: action space, time limit, the level
Gymnasium calls solved, and the return of a uniform random policy. TABLE holds returns that others reached and
published, with budget and protocol: to say "this is usual" or "others got further", never to prove a difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import orjson

from relab.base.documents import Document

SOURCES = {
    "zoo": "rl-baselines3-zoo, benchmark.md (commit 0088472): one trained agent a row, mean over some 150,000"
    " evaluation steps, deterministic actions",
    "cleanrl": "CleanRL, docs/rl-algorithms/ppo.md (commit 7a96de2): mean of the training episodes at the end, 3 seeds",
}

# env | algorithm | return | spread | steps | source
TABLE = """
CartPole-v1              | ppo |  500.0  |   0.0   | 100000  | zoo
CartPole-v1              | a2c |  500.0  |   0.0   | 500000  | zoo
CartPole-v1              | dqn |  500.0  |   0.0   | 50000   | zoo
CartPole-v1              | ppo |  490.04 |   6.12  | 500000  | cleanrl
Acrobot-v1               | ppo |  -73.506|  18.201 | 1000000 | zoo
Acrobot-v1               | a2c |  -83.353|  17.213 | 500000  | zoo
Acrobot-v1               | dqn |  -76.639|  11.752 | 100000  | zoo
Acrobot-v1               | ppo |  -86.36 |   1.32  | 500000  | cleanrl
MountainCar-v0           | ppo | -110.423|  19.473 | 1000000 | zoo
MountainCar-v0           | a2c | -111.263|  24.087 | 1000000 | zoo
MountainCar-v0           | dqn | -100.849|   9.925 | 120000  | zoo
MountainCar-v0           | ppo | -200.0  |   0.0   | 500000  | cleanrl
MountainCarContinuous-v0 | ppo |   88.343|   2.572 | 20000   | zoo
MountainCarContinuous-v0 | a2c |   91.166|   0.255 | 100000  | zoo
MountainCarContinuous-v0 | sac |   94.679|   1.134 | 50000   | zoo
MountainCarContinuous-v0 | td3 |   93.483|   0.075 | 300000  | zoo
MountainCarContinuous-v0 | ddpg|   93.512|   0.048 | 300000  | zoo
Pendulum-v1              | ppo | -172.225| 104.159 | 100000  | zoo
Pendulum-v1              | a2c | -162.965| 103.21  | 1000000 | zoo
Pendulum-v1              | sac | -156.995|  88.714 | 20000   | zoo
Pendulum-v1              | td3 | -151.855|  90.227 | 20000   | zoo
Pendulum-v1              | ddpg| -152.099|  94.282 | 20000   | zoo
LunarLander-v2           | ppo |  242.119|  31.823 | 1000000 | zoo
LunarLander-v2           | a2c |  155.751|  80.419 | 200000  | zoo
LunarLander-v2           | dqn |  154.382|  79.241 | 100000  | zoo
LunarLanderContinuous-v2 | ppo |  270.863|  32.072 | 1000000 | zoo
LunarLanderContinuous-v2 | sac |  260.39 |  65.467 | 500000  | zoo
LunarLanderContinuous-v2 | td3 |  207.451|  67.562 | 300000  | zoo
BipedalWalker-v3         | ppo |  213.299| 129.49  | 5000000 | zoo
BipedalWalker-v3         | a2c |  299.754|  23.459 | 5000000 | zoo
BipedalWalker-v3         | sac |  297.668|  33.06  | 500000  | zoo
BipedalWalker-v3         | td3 |  305.99 |  56.886 | 1000000 | zoo
Ant-v3                   | ppo | 1327.158| 451.577 | 1000000 | zoo
Ant-v3                   | sac | 4615.791|1354.111 | 1000000 | zoo
Ant-v3                   | td3 | 5813.274| 589.773 | 1000000 | zoo
HalfCheetah-v3           | ppo | 5819.099| 663.53  | 1000000 | zoo
HalfCheetah-v3           | a2c | 3041.174| 157.265 | 1000000 | zoo
HalfCheetah-v3           | sac | 9535.451| 100.47  | 1000000 | zoo
HalfCheetah-v3           | td3 | 9655.666| 969.916 | 1000000 | zoo
Hopper-v3                | ppo | 2410.435|  10.026 | 1000000 | zoo
Hopper-v3                | a2c |  733.454| 376.574 | 1000000 | zoo
Hopper-v3                | sac | 2325.547|1129.676 | 1000000 | zoo
Hopper-v3                | td3 | 3606.39 |   4.027 | 1000000 | zoo
Humanoid-v3              | sac | 6232.287| 279.885 | 2000000 | zoo
Humanoid-v3              | td3 | 5566.687|  14.544 | 2000000 | zoo
Swimmer-v3               | ppo |  281.561|   9.671 | 1000000 | zoo
Swimmer-v3               | sac |  345.568|   3.084 | 1000000 | zoo
Swimmer-v3               | td3 |  359.127|   1.244 | 1000000 | zoo
Walker2d-v3              | ppo | 3478.798| 821.708 | 1000000 | zoo
Walker2d-v3              | sac | 3863.203| 254.347 | 1000000 | zoo
Walker2d-v3              | td3 | 4717.823|  46.303 | 1000000 | zoo
BreakoutNoFrameskip-v4   | ppo |  398.033|  33.328 |10000000 | zoo
BreakoutNoFrameskip-v4   | a2c |  279.793| 122.177 |10000000 | zoo
BreakoutNoFrameskip-v4   | dqn |  358.327|  61.981 |10000000 | zoo
BreakoutNoFrameskip-v4   | ppo |  414.66 |  28.09  |10000000 | cleanrl
PongNoFrameskip-v4       | ppo |   20.989|   0.105 |10000000 | zoo
PongNoFrameskip-v4       | a2c |   17.292|   3.214 |10000000 | zoo
PongNoFrameskip-v4       | dqn |   20.602|   0.613 |10000000 | zoo
PongNoFrameskip-v4       | ppo |   20.36 |   0.2   |10000000 | cleanrl
BeamRiderNoFrameskip-v4  | ppo | 3397.0  |1662.368 |10000000 | zoo
BeamRiderNoFrameskip-v4  | ppo | 1915.93 | 484.58  |10000000 | cleanrl
QbertNoFrameskip-v4      | ppo |15627.108|3313.538 |10000000 | zoo
SeaquestNoFrameskip-v4   | ppo | 1783.636|  34.096 |10000000 | zoo
SpaceInvadersNoFrameskip-v4 | ppo | 960.331 | 425.355 |10000000 | zoo
"""

# Bounds of one step's reward, from the environments' own definitions in Gymnasium.
REWARDS = {
    "CartPole-v0": (1.0, 1.0), "CartPole-v1": (1.0, 1.0), "Acrobot-v1": (-1.0, 0.0), "MountainCar-v0": (-1.0, -1.0),
    "Pendulum-v1": (-16.2736044, 0.0), "MountainCarContinuous-v0": (-0.1, 100.0), "FrozenLake-v1": (0.0, 1.0),
}  # fmt: skip


@dataclass(frozen=True)
class Level:
    """A return that somebody reached and published."""

    env: str
    algo: str
    mean: float
    spread: float
    steps: int
    source: str


@cache
def published() -> tuple[Level, ...]:
    cells = [[cell.strip() for cell in line.split("|")] for line in TABLE.strip().splitlines()]
    return tuple(Level(env, algo, float(m), float(sd), int(n), src) for env, algo, m, sd, n, src in cells)


@dataclass(frozen=True)
class Measured:
    """What relab has measured of an environment, in the words of meta.spec."""

    action: Document
    horizon: int | None
    solved: float | None  # the level that Gymnasium calls solved
    random: Document  # what a random policy earns


@cache
def measured() -> dict[str, Measured]:
    """By the environment's id."""
    rows = orjson.loads(files("relab.record").joinpath("levels_random.json").read_bytes())["envs"]
    return {env: Measured(**row) for env, row in rows.items()}


def name_of(env: str) -> str:
    """An environment as it is looked up, however a tool spells it: relab's cartpole-v1 is CartPole-v1.

    >>> name_of("gym:CartPole-v1"), name_of("cartpole-v1")
    ('cartpole-v1', 'cartpole-v1')
    """
    return env.removeprefix("gym:").removeprefix("relab/").lower()


def of(env: str, algo: str | None = None) -> list[Level]:
    """Published levels of an environment, best first; of one algorithm where it is named."""
    name = name_of(env)
    matches = [x for x in published() if x.env.lower() == name and algo in (None, x.algo)]
    return sorted(matches, key=lambda x: -x.mean)


def facts(env: str) -> Document:
    """What a log of this environment does not say, in the words of meta.spec; empty for one that is not listed."""
    row = measured().get(env)
    if row is None:
        return {}
    low, high = REWARDS.get(env, (None, None))
    spec = {
        "env": env,
        "action": row.action,
        "horizon": row.horizon,
        "random": row.random,
        "reward_low": low,
        "reward_high": high,
    }
    return {key: value for key, value in spec.items() if value is not None}


def solved(env: str) -> float | None:
    """The level that Gymnasium calls solved; relab's cartpole-v1 is CartPole-v1.

    >>> solved("CartPole-v1"), solved("gym:cartpole-v1"), solved("Pendulum-v1")
    (475.0, 475.0, None)
    """
    row = _by_lower_case().get(name_of(env))
    return row.solved if row is not None else None


@cache
def _by_lower_case() -> dict[str, Measured]:
    return {env.lower(): row for env, row in measured().items()}


def describe(env: str) -> list[str]:
    """The tables' lines about an environment, for people."""
    row, lines = measured().get(env), []
    if row is not None:
        r = row.random
        lines.append(
            f"random policy: {r['return_mean']:.4g} (standard deviation {r['return_std']:.3g}, {r['n']} episodes)"
        )
        lines += [f"called solved by Gymnasium: {row.solved:g}"] if row.solved is not None else []
    lines += [f"{x.algo}: {x.mean:.4g} ± {x.spread:.3g} after {x.steps:,} steps ({x.source})" for x in of(env)]
    return lines
