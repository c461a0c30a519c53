"""What of Gymnasium trains with what? Every id that can be made here (slow), a handful of them, and odd spaces."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from relab.config.base import ConfigError
from small_runs import run

REPLAY = {"algo__steps": "32", "algo__learning_starts": "60", "algo__minibatch": "16", "algo__hidden": "[8]"}
SETTINGS = {
    "ppo": {"algo__envs": "4", "algo__steps": "16", "algo__minibatches": "2", "algo__hidden": "[8]"},
    "dqn": REPLAY,
    "sac": REPLAY,
}  # fmt: skip
IDS = tuple(gymnasium.registry)
A_FEW = ("CartPole-v1", "MountainCarContinuous-v0", "Blackjack-v1", "FrozenLake-v1", "Taxi-v4")


def trains(folder: Path, name: str, algo: str, **more: str) -> str:
    """finished, or the sentence that refuses it."""
    more |= {"env__horizon": "50"}  # some have no time limit, and random episodes of theirs take minutes
    try:
        return run(folder / algo, algo=algo, env=f"gym:{name}", total_steps="150", eval__every="0",
                   eval__episodes="2", save__every="0", **SETTINGS[algo], **more).status  # fmt: skip
    except ConfigError as refused:
        return str(refused)


def fits(algo: str, space: spaces.Space) -> bool:
    """As the table of docs/environments.md has it."""
    continuous = isinstance(space, spaces.Box) and space.dtype.kind == "f"
    if algo == "sac":
        return continuous and space.is_bounded()  # type: ignore[attr-defined]
    return algo == "ppo" or isinstance(space, spaces.Discrete)


def walk(folder: Path, name: str) -> None:
    space = gymnasium.make(name, disable_env_checker=True).action_space
    for algo in SETTINGS:
        said = trains(folder, name, algo)
        assert (said == "finished") == fits(algo, space), (algo, said)
        assert said == "finished" or (f"{algo} needs" in said and "try algo=" in said)


@pytest.mark.filterwarnings("ignore:.*out of date.*:DeprecationWarning")
@pytest.mark.parametrize("name", A_FEW)
def test_a_few_ids_train_with_what_can_take_their_actions(name: str, tmp_path: Path) -> None:
    walk(tmp_path, name)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*out of date.*:DeprecationWarning")
@pytest.mark.parametrize("name", IDS)
def test_every_id_trains_with_what_can_take_its_actions(name: str, tmp_path: Path) -> None:
    try:
        gymnasium.make(name, disable_env_checker=True).close()
    except (gymnasium.error.Error, ImportError) as lacking:
        said = trains(tmp_path, name, "ppo")
        assert "must be an id that Gymnasium can make" in said
        pytest.skip(f"a package is missing: {lacking}")
    walk(tmp_path, name)


# ---- Odd spaces

ACTIONS = {
    "starts at -1": spaces.Discrete(3, start=-1), "one choice": spaces.Discrete(1),
    "table": spaces.MultiDiscrete([[2, 3]]),
    "bits": spaces.MultiBinary(2), "square": spaces.Box(-1, 1, (2, 2)), "scalar": spaces.Box(-1, 1, ()),
    "no bound": spaces.Box(-np.inf, np.inf, (2,)), "half a bound": spaces.Box(0, np.inf, (1,)),
    "point": spaces.Box(1, 1, (1,)), "counts": spaces.Box(-2, 5, (2,), np.int32),
}  # fmt: skip
REFUSED = {
    "pair": (spaces.Tuple((spaces.Discrete(2), spaces.Discrete(2))), "put a gymnasium.ActionWrapper around it"),
    "many counts": (spaces.Box(0, 10**6, (1,), np.int64), "at most 1,024 integers a component"),
    "nothing": (spaces.Box(-1, 1, (0,)), "must have an action"),
}
SEEN = {
    "image": spaces.Box(0, 255, (4, 4, 3), np.uint8), "number": spaces.Discrete(5, start=3),
    "numbers": spaces.MultiDiscrete([3, 4]), "bits": spaces.MultiBinary(3), "scalar": spaces.Box(-1, 1, ()),
    "pair": spaces.Tuple((spaces.Discrete(3), spaces.Box(-1, 1, (2,)))),
    "named": spaces.Dict(a=spaces.Discrete(3), b=spaces.Box(-1, 1, (2, 2))),
}  # fmt: skip
UNSEEN = {
    "list": (spaces.Sequence(spaces.Discrete(2)), "no fixed number of floats"),
    "nothing": (spaces.Box(-1, 1, (0,)), "must show something"),
}


class Odd(gymnasium.Env):
    """Seven steps, and spaces by name."""

    def __init__(self, action: str = "", obs: str = "") -> None:
        actions = ACTIONS | {name: space for name, (space, _) in REFUSED.items()}
        self.action_space = actions.get(action, spaces.Discrete(2))
        seen = SEEN | {name: space for name, (space, _) in UNSEEN.items()}
        self.observation_space = seen.get(obs, spaces.Box(-1, 1, (2,)))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        self.at = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        self.at += 1
        return self.observation_space.sample(), 1.0, self.at == 7, False, {}


@pytest.fixture(autouse=True, scope="module")
def odd() -> Iterator[None]:
    gymnasium.register("Odd-v0", entry_point=Odd, max_episode_steps=30)
    yield
    del gymnasium.registry["Odd-v0"]


@pytest.mark.parametrize("name", ACTIONS)
@pytest.mark.some(4)
def test_odd_actions_train_or_are_refused_with_what_to_do(name: str, tmp_path: Path) -> None:
    for algo in SETTINGS:
        said = trains(tmp_path, "Odd-v0", algo, env__kwargs=json.dumps({"action": name}))
        assert (said == "finished") == fits(algo, ACTIONS[name]), (algo, said)
        assert said == "finished" or "try algo=" in said


@pytest.mark.parametrize("name", SEEN)
def test_odd_observations_are_flattened(name: str, tmp_path: Path) -> None:
    algo = "ppo" if name == "image" else "dqn"  # which has no encoder
    assert trains(tmp_path, "Odd-v0", algo, env__kwargs=json.dumps({"obs": name})) == "finished"


@pytest.mark.parametrize(("key", "name", "said"), [
    *(("action", name, said) for name, (_, said) in REFUSED.items()),
    *(("obs", name, said) for name, (_, said) in UNSEEN.items()),
])  # fmt: skip
def test_what_no_algorithm_can_take_is_refused_before_there_is_a_run(
    key: str, name: str, said: str, tmp_path: Path
) -> None:
    assert said in trains(tmp_path, "Odd-v0", "ppo", env__kwargs=json.dumps({key: name}))
    assert not (tmp_path / "ppo").exists()
