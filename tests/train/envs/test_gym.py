"""Gymnasium both ways: do its environments keep our contract, and ours its own?"""

from __future__ import annotations

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.utils.env_checker import check_env as gymnasium_check

from relab.config.envs import Gym as Params
from relab.train.algos.episode_metrics import episode_metrics, recent_returns
from relab.train.contract import Counts
from relab.train.envs.base import Worlds
from relab.train.envs.check import check_env
from relab.train.envs.gym_bridge import Gym
from relab.train.envs.gym_register import EXPORTED, register


class Toy(gymnasium.Env):
    """Sums its actions; terminates above 10, truncates by itself below -10; spaces as asked for."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 10}

    def __init__(self, action_space, observation_space=None, render_mode=None, jitter=False):
        self.action_space = action_space
        self.observation_space = observation_space or spaces.Box(-100, 100, (2,), np.float64)
        self.render_mode, self.jitter, self.got = render_mode, jitter, []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.total = float(self.np_random.uniform(-1, 1))
        self.observation_space.seed(seed)
        return self._look(), {}

    def _look(self):
        if isinstance(self.observation_space, spaces.Box):
            noise = np.random.random() if self.jitter else 0.0
            return np.array([self.total, noise])
        return self.observation_space.sample()

    def step(self, action):
        assert self.action_space.contains(action), action
        self.got.append(action)
        self.total += float(np.sum(action))
        return self._look(), self.total, self.total > 10, self.total < -10, {}

    def render(self):
        return np.full((8, 8, 3), 7, np.uint8)


@pytest.fixture(autouse=True, scope="module")
def toys():
    gymnasium.register("Toy-v0", entry_point=Toy, max_episode_steps=30)
    yield
    del gymnasium.registry["Toy-v0"]


def bridge(action_space, **kwargs) -> Gym:
    return Gym(Params(name="gym:Toy-v0", kwargs={"action_space": action_space, **kwargs}))


ACTION_SPACES = {
    "discrete": (spaces.Discrete(3, start=-1), "discrete", (3,)),
    "multi_discrete": (spaces.MultiDiscrete([2, 3]), "multi_discrete", (2, 3)),
    "multi_binary": (spaces.MultiBinary(2), "multi_discrete", (2, 2)),
    "multi_binary table": (spaces.MultiBinary((2, 2)), "multi_discrete", (2,) * 4),
    "box": (spaces.Box(-1, 1, (2,), np.float32), "continuous", ()),
    "box table": (spaces.Box(np.array([[-1.0, 0.0]]), np.array([[1.0, 2.0]]), dtype=np.float64), "continuous", ()),
}


@pytest.mark.parametrize("case", ACTION_SPACES)
def test_action_spaces(case):
    space, kind, n = ACTION_SPACES[case]
    env = bridge(space)
    assert (env.spec.action.kind, env.spec.action.n) == (kind, n)
    check_env(env, worlds=3, steps=60)


def test_discrete_actions_begin_where_the_space_does():
    worlds = Worlds(bridge(spaces.Discrete(3, start=-1)), 1)
    worlds.reset(np.arange(1))
    worlds.step(np.array([[0]]))
    assert worlds.state.envs[0].unwrapped.got == [-1]


OBS_SPACES = {
    "discrete": (spaces.Discrete(4), 4),
    "multi_discrete": (spaces.MultiDiscrete([2, 3]), 5),
    "multi_binary": (spaces.MultiBinary(3), 3),
    "dict": (spaces.Dict(a=spaces.Discrete(2), b=spaces.Box(0, 1, (2, 2))), 6),
    "tuple": (spaces.Tuple((spaces.Discrete(2), spaces.Box(0, 1, (1,)))), 3),
}


@pytest.mark.parametrize("case", OBS_SPACES)
def test_observation_spaces_are_flattened(case):
    space, size = OBS_SPACES[case]
    worlds = Worlds(bridge(spaces.Discrete(2), observation_space=space), 2)
    obs = worlds.reset(np.arange(2))
    assert obs.shape == (2, 1, size)
    assert np.isfinite(obs).all()
    if case == "discrete":
        assert obs.sum(-1).tolist() == [[1], [1]]  # one-hot


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (spaces.Text(3), "Discrete, MultiDiscrete, MultiBinary"),
        (spaces.Box(0, 9999, (1,), np.int64), "Box of floats"),
    ],
)
def test_other_action_spaces_are_refused(space, message):
    with pytest.raises(ValueError, match=message):
        bridge(space)


def test_observations_without_fixed_size_are_refused():
    with pytest.raises(ValueError, match="no fixed number of floats"):
        bridge(spaces.Discrete(2), observation_space=spaces.Sequence(spaces.Discrete(2)))


def test_ends_are_kept_apart():
    worlds = Worlds(bridge(spaces.Box(-20, 20, (1,), np.float32)), 2)
    worlds.reset(np.arange(2))
    step = worlds.step(np.array([20.0, -20.0]).reshape(2, 1, 1))
    assert step.terminated.ravel().tolist() == [True, False]
    assert step.truncated.ravel().tolist() == [False, True]
    assert [worlds.spec.ends[code] for code in step.end.flat] == ["terminated", "truncated"]
    row = episode_metrics([step.episodes], worlds.spec, Counts(), recent_returns())
    assert row["return/timeout"] == 0.5, "what an environment cuts by itself was cut by time as well"
    assert step.final_obs[0, 0, 0] > 10 > abs(step.obs[0, 0, 0])


@pytest.mark.parametrize(("horizon", "limit"), [(-1, 30), (0, None), (7, 7)])
def test_time_limit_is_the_registered_one_unless_told(horizon, limit):
    env = Gym(Params(name="gym:Toy-v0", kwargs={"action_space": spaces.Discrete(1)}, horizon=horizon))
    assert env.spec.horizon == limit
    worlds = Worlds(env, 1)
    worlds.reset(np.arange(1))
    lengths = []
    for _ in range(40):
        episodes = worlds.step(np.zeros((1, 1), np.int64)).episodes
        lengths += [] if episodes is None else episodes.length.tolist()
    assert lengths[:1] == ([] if limit is None else [limit])


def test_each_episode_has_a_seed_of_its_worlds_stream():
    worlds = Worlds(bridge(spaces.Discrete(2)), 2)
    first = worlds.reset(np.arange(2)).copy()
    for _ in range(30):
        step = worlds.step(np.zeros((2, 1), np.int64))
    assert step.truncated.all()
    assert (step.obs != first).any()
    assert worlds.reset(np.arange(2)).tobytes() == first.tobytes()


def test_long_episodes_are_replayed():
    worlds = Worlds(Gym(Params(name="gym:Toy-v0", kwargs={"action_space": spaces.Discrete(1)}, horizon=0)), 1)
    worlds.reset(np.arange(1))
    for _ in range(200):
        worlds.step(np.zeros((1, 1), np.int64))
    snap, obs = worlds.snapshot(), worlds.obs.copy()
    worlds.reset(np.arange(1) + 1)
    worlds.restore(snap)
    assert worlds.obs.tobytes() == obs.tobytes()
    assert worlds.state.acted.tolist() == [200]


def test_an_env_that_does_not_replay_is_said():
    worlds = Worlds(bridge(spaces.Discrete(2), jitter=True), 1)
    worlds.reset(np.arange(1))
    with pytest.warns(RuntimeWarning, match="is not deterministic"):
        worlds.restore(worlds.snapshot())


def test_pictures_come_from_the_env():
    worlds = Worlds(bridge(spaces.Discrete(2)), 1)
    worlds.reset(np.arange(1))
    assert worlds.render().tolist() == np.full((8, 8, 3), 7).tolist()


def test_an_id_may_name_the_module_that_registers_it():
    env = Gym(Params(name="gym:relab.train.envs.gym_register:relab/Pendulum-v1"))
    assert (env.spec.horizon, env.spec.obs_dim, env.spec.action.high) == (200, 3, (1.0,))


def test_render_mode_is_not_the_users_choice():
    with pytest.raises(ValueError, match="render_mode"):
        bridge(spaces.Discrete(2), render_mode="human")


# ---- ours there


@pytest.mark.parametrize("gym_id", EXPORTED)
def test_ours_pass_gymnasiums_checker(gym_id):
    gymnasium_check(gymnasium.make(gym_id).unwrapped)  # warnings are errors here


def test_registering_twice_changes_nothing():
    before = gymnasium.registry["relab/CartPole-v1"]
    register()
    assert gymnasium.registry["relab/CartPole-v1"] is before


def test_ours_have_gymnasiums_time_limit():
    env = gymnasium.make("relab/Pendulum-v1")
    env.reset(seed=0)
    flags = [env.step(env.action_space.sample())[2:4] for _ in range(200)]
    assert flags[-1] == (False, True)
    assert not any(any(pair) for pair in flags[:-1])


def test_actions_are_scaled_to_the_range():
    env = gymnasium.make("relab/Pendulum-v1").unwrapped
    env.reset(seed=0)
    env.step(np.array([-0.5], np.float32))
    assert env.worlds.state.torque.tolist() == [-1.0]


def test_the_last_observation_is_the_final_one():
    env = gymnasium.make("relab/CartPole-v1").unwrapped
    env.reset(seed=0)
    terminated = False
    while not terminated:
        obs, _, terminated, _, info = env.step(1)
    assert abs(obs[2]) > 0.2
    assert info == {"end": "fell"}


def test_pictures_and_their_absence():
    env = gymnasium.make("relab/CartPole-v1", render_mode="rgb_array")
    env.reset(seed=0)
    assert env.render().shape == (400, 600, 3)
    with pytest.raises(ValueError, match="ladder-value-v1 renders nothing"):
        gymnasium.make("relab/LadderValue-v1", render_mode="rgb_array")


def test_several_agents_do_not_fit():
    from relab.train.envs.gym_export import GymEnv

    with pytest.raises(ValueError, match="have one agent, but herd-v1 has 3"):
        GymEnv("herd-v1")
    assert GymEnv("herd-v1", agents=1).action_space.shape == (2,)


def test_registering_is_light():
    code = "import sys, relab.train.envs.gym_register; sys.exit('numba' in sys.modules or 'torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
