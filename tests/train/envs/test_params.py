"""Are the parameters of every registered environment light, documented and checked?"""

from __future__ import annotations

import dataclasses
import subprocess
import sys

import pytest

from relab.config import envs as configs
from relab.config import registry
from relab.config.base import ConfigError, field_docs
from relab.train.envs.gym_register import EXPORTED

CLASSES = [registry.load(params) for params, _ in (*configs.ENVS.values(), configs.GYM)]


@pytest.mark.parametrize("name", configs.ENVS)
def test_names_agree(name):
    params, env = (registry.load(target) for target in configs.ENVS[name])
    assert dataclasses.fields(params)[0].name == "name"
    assert (params().name, env.name, env.Params) == (name, name, params)


@pytest.mark.parametrize("params", CLASSES, ids=lambda cls: cls.__name__)
def test_every_field_has_its_comment(params):
    assert params.__doc__
    assert [name for name, text in field_docs(params).items() if not text] == []


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (configs.CartPole(horizon=-1), "0 <= `horizon`"),
        (configs.Pendulum(horizon=-1), "0 <= `horizon`"),
        (configs.Herd(agents=0), "1 <= `agents`"),
        (configs.Herd(horizon=-1), "0 <= `horizon`"),
        (configs.Herd(wolf_speed=-0.1), "0 <= `wolf_speed`"),
        (configs.Herd(storm=1.5), "0 <= `storm` <= 1"),
        (configs.PickCube(horizon=-1), "0 <= `horizon`"),
        (configs.PickCubeGantry(threads=-1), "0 <= `threads`"),
        (configs.Gym(name="Acrobot-v1"), "must be gym:ID, but got 'Acrobot-v1'"),
        (configs.Gym(horizon=-2), "-1 <= `horizon`"),
        (configs.Gym(kwargs={"render_mode": "human"}), "must not hold render_mode"),
    ],
    ids=repr,
)
def test_impossible_parameters_are_refused(params, message):
    with pytest.raises(ConfigError, match=message):
        params.check()


@pytest.mark.parametrize("params", CLASSES, ids=lambda cls: cls.__name__)
def test_defaults_are_possible(params):
    made = params()
    if "check" in vars(params):
        made.check()


@pytest.mark.parametrize("gym_id", EXPORTED)
def test_gymnasium_gets_the_default_time_limit(gym_id):
    name, limit = EXPORTED[gym_id]
    assert registry.env_class(name)().spec.horizon == limit


def test_parameters_are_light():
    code = "import sys, relab.config.envs; sys.exit(bool({'numba', 'numpy', 'gymnasium'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
