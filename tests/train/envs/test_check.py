"""Does check_env pass every environment there is, and name what is wrong with each broken one?"""

from __future__ import annotations

import re

import pytest
from broken import BROKEN, Walker
from scripted import Params as ScriptedParams
from scripted import Scripted

from relab.config import envs as configs
from relab.config import registry
from relab.train.envs import check_moving
from relab.train.envs.check import check_env
from relab.train.envs.check_static import EnvError
from where import ROOT

DOCS = ROOT / "docs" / "environments.md"
SHORT = {"worlds": 3, "steps": 70}  # a step of real physics costs a hundred of the others
FOREIGN = ["gym:Acrobot-v1", "gym:MountainCarContinuous-v0"]


def make(name: str, **params):
    return registry.env_class(name)(registry.env_params_class(name)(name=name, **params))


@pytest.mark.parametrize("name", configs.ENVS)
def test_every_registered_env_keeps_the_contract(name):
    env = make(name)
    assert (env.name, env.spec.env, env.params.name) == (name, name, name)
    check_env(env, **(SHORT if name.startswith("pickcube") else {}))


@pytest.mark.parametrize(
    "params",
    [
        {"agent_reset": "alone"},
        {"agent_reset": "alone", "storm": 0.02, "agents": 2},
        {"action": "discrete", "storm": 0.02},
        {"agents": 1},
    ],
    ids=str,
)
def test_herd_keeps_it_in_every_variant(params):
    check_env(make("herd-v1", **params))


@pytest.mark.parametrize("name", FOREIGN)
def test_gymnasium_envs_keep_it(name):
    check_env(make(name), worlds=3, steps=100, render=False)  # classic_control draws with pygame, which is not required


@pytest.mark.parametrize("params", [{}, {"unused": 1, "agents": 3}, {"agent_reset": "alone", "horizon": None}], ids=str)
def test_the_scripted_env_of_these_tests_keeps_it(params):
    check_env(Scripted(ScriptedParams(**params)), steps=60)


def test_the_env_of_the_docs_is_a_plug_in_that_keeps_it(tmp_path, monkeypatch):
    code = next(block for block in re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.S) if "corridor-v1" in block)
    (tmp_path / "mylab").mkdir()
    (tmp_path / "mylab" / "corridor.py").write_text(code)
    monkeypatch.syspath_prepend(tmp_path)
    env = make("mylab.corridor:Corridor", length=5)
    check_env(env)
    assert env.spec.env == "corridor-v1"


def test_the_healthy_walker_passes():
    check_env(Walker(), steps=100)


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_env_is_told_what_is_wrong(fault):
    env_class, message = BROKEN[fault]
    with pytest.raises(EnvError, match=message) as caught:
        check_env(env_class(), steps=100)
    assert "Probable cause: " in str(caught.value)


def test_every_check_has_a_broken_env(monkeypatch):
    """Without any one of the moving checks, some fault would pass."""
    checks = [name for name in vars(check_moving) if name.startswith("check_") and name not in INNER]
    for name in checks:
        with monkeypatch.context() as patch:
            patch.setattr(check_moving, name, lambda *args, **kwargs: None)
            assert any(passes(BROKEN[fault]) for fault in GUARDS[name]), name


INNER = {"check_static", "check_flags", "check_codes", "check_numbers"}  # called by others
GUARDS = {
    "check_resets": ["mask ignored"],
    "check_observe": ["noise in observe"],
    "check_render": ["float picture"],
    "check_outcomes": ["bonus not declared", "NaN reward", "infinite info"],
    "check_dead_agents": ["reward after a death that never comes"],
    "check_action_range": ["does not clip"],
    "check_determinism": ["state on the object"],
    "check_independence": ["one stream for all"],
    "check_threads": ["threads matter"],
    "check_snapshot": ["forgets a field"],
    "check_clock": ["looks at the clock"],
}


def passes(case) -> bool:
    """Is the fault no longer reported by its own message?"""
    env_class, message = case
    try:
        check_env(env_class(), steps=30)
    except EnvError as error:
        return re.search(message, str(error)) is None
    return True
