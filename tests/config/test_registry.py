"""Does each name lead to its class, its newest version or the user's plug-in, importing no more than asked?"""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from dataclasses import is_dataclass
from importlib.metadata import EntryPoint

import pytest

from relab.config import layers, registry
from relab.config.base import ConfigError, field_docs
from relab.config.ppo import PPO

PLUGIN = """
from __future__ import annotations
from dataclasses import dataclass

@dataclass(frozen=True)
class Params:
    name: str = ""
    size: int = 3  # how big

class Env:
    Params = Params

class Bare:
    Params = 5

@dataclass(frozen=True)
class Nameless:
    size: int = 3

class Unnamed:
    Params = Nameless

@dataclass(frozen=True)
class Config:
    name: str = "mine"
    lr: float = 1.0
    batch: int = 8
    minibatch: int = 8

def init(): ...
"""


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """A module of the user next to where he works, and entry points that lead to it."""
    (tmp_path / "my_plugin.py").write_text(PLUGIN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [p for p in sys.path if p])
    points = [
        EntryPoint("swarm-v2", "my_plugin:Env", "relab.envs"),
        EntryPoint("swarm-v10", "my_plugin:Env", "relab.envs"),
        EntryPoint("broken-v1", "my_plugin:Missing", "relab.envs"),
        EntryPoint("mine", "my_plugin", "relab.algos"),
    ]
    points_of = lambda group: [p for p in points if p.group == group]  # noqa: E731
    monkeypatch.setattr(importlib.metadata, "entry_points", points_of)
    caches = (registry._entry_points, registry._plugin, layers.schema)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()
    sys.modules.pop("my_plugin", None)


def test_short_names_mean_the_newest_version(monkeypatch):
    pair = ("a:b", "c:d")
    monkeypatch.setattr(registry, "builtin_envs", lambda: {"walk-v2": pair, "walk-v10": pair, "walk-on-v11": pair})
    assert registry.resolve_env_name("walk") == "walk-v10"
    assert registry.resolve_env_name("walk-v2") == "walk-v2"
    assert registry.resolve_env_name("walk-on") == "walk-on-v11"


@pytest.mark.parametrize("name", registry.env_names())
def test_each_environment_has_light_documented_parameters(name):
    cls = registry.env_params_class(name)
    assert is_dataclass(cls)
    assert cls().name == name
    assert next(iter(field_docs(cls))) == "name"
    assert all(field_docs(cls).values())


def test_each_algorithm_has_its_config():
    assert registry.algo_config_class("ppo") is PPO
    assert [registry.algo_config_class(name)().name for name in registry.algo_names()] == registry.algo_names()


@pytest.mark.parametrize(
    ("kind", "name", "nearest"),
    [("env", "cartpol", "cartpole-v1"), ("env", "cartpole-v9", "cartpole-v1"), ("algo", "pp0", "ppo")],
)
def test_unknown_names_get_the_nearest(kind, name, nearest):
    resolve = {"env": registry.resolve_env_name, "algo": registry.resolve_algo_name}[kind]
    with pytest.raises(ConfigError, match=f"got '{name}'; the nearest is '{nearest}'"):
        resolve(name)


def test_gym_ids_stay_as_they_are():
    assert registry.resolve_env_name("gym:Acrobot-v1") == "gym:Acrobot-v1"
    assert registry.env_params_class("gym:Acrobot-v1").__name__ == "Gym"
    with pytest.raises(ConfigError, match=r"must be one of .* got .gym:.; or give gym:ID"):
        registry.resolve_env_name("gym:")


def test_a_class_of_the_user_by_its_path(plugin):
    resolved = layers.resolve([layers.Layer("command line", {"env": "my_plugin:Env", "size": "5"})])
    assert (resolved.config.env.name, resolved.config.env.size) == ("my_plugin:Env", 5)
    assert registry.env_class("my_plugin:Env").__name__ == "Env"


def test_entry_points_offer_names(plugin):
    assert registry.resolve_env_name("swarm") == "swarm-v10"
    assert registry.env_class("swarm").__name__ == "Env"
    resolved = layers.resolve([layers.Layer("command line", {"env": "swarm", "algo": "mine", "lr": "2"})])
    assert (resolved.config.env.name, resolved.config.env.size, resolved.config.algo.lr) == ("swarm-v10", 3, 2.0)
    assert registry.algo_module("mine").__name__ == "my_plugin"
    assert registry.algo_module("my_plugin:Config").__name__ == "my_plugin"
    with pytest.raises(ConfigError, match="the nearest is 'swarm-v2'"):
        registry.resolve_env_name("swarm-v3")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("no_such_package.x:Env", "must be importable as no_such_package.x:Env, but ModuleNotFoundError"),
        ("my_plugin:Nothing", "AttributeError"),
        ("broken", "my_plugin:Missing"),
        ("my_plugin:Bare", "must have a dataclass `Params`"),
        ("my_plugin:Unnamed", "must have the field `name: str`"),
    ],
)
def test_broken_plugins_say_what_is_missing(plugin, name, message):
    with pytest.raises(ConfigError, match=message):
        registry.env_params_class(name)


def test_built_in_names_never_scan_the_installed_packages():
    code = (
        "import sys, relab.config.registry as r\n"
        "r.env_params_class('cartpole'); r.algo_config_class('ppo'); r.env_params_class('gym:Acrobot-v1')\n"
        "print(*({'importlib.metadata', 'torch', 'numba', 'gymnasium', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
