"""Is an environment found in the folder where its user stands, and is a wrong name answered with the right one?"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from relab import cli
from relab.config import envs, registry
from relab.config.base import ConfigError
from relab.train.envs.gym_bridge import Gym

HALL = """
import gymnasium
from gymnasium.envs.classic_control.cartpole import CartPoleEnv

class Hall(CartPoleEnv):
    pass

gymnasium.register("{id}", entry_point=Hall, max_episode_steps=20)
"""


@pytest.fixture
def hall(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A module in the current folder, which is not on the path, as for an installed command."""
    name = f"hall_{abs(hash(request.node.nodeid)):x}"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    (tmp_path / f"{name}.py").write_text(HALL.format(id=f"{name}-v0"))
    return name


def test_the_id_of_a_module_here(hall: str) -> None:
    assert Gym(envs.Gym(f"gym:{hall}:{hall}-v0")).spec.horizon == 20


def test_a_module_that_is_nowhere_says_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"No module named 'no_hall'; it is looked for in .* \({tmp_path}\)"):
        Gym(envs.Gym("gym:no_hall:Hall-v0"))


def test_a_class_of_gymnasium_is_answered_with_its_id(hall: str) -> None:
    with pytest.raises(ConfigError, match=f"is an environment of Gymnasium.*give env=gym:{hall}:ID"):
        registry.env_params_class(f"{hall}:Hall")


def test_a_film_that_lacks_a_package_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "pygame", None)  # as if it were not installed
    words = "train ppo env=gym:CartPole-v1 total_steps=64 algo.envs=2 algo.steps=8 algo.minibatches=1 eval.episodes=2"
    assert cli.main([*words.split(), "--runs", str(tmp_path), "--name", "x", "--quiet"]) == 0
    assert cli.main(["video", str(tmp_path / "x")]) == 64
    said = capsys.readouterr().err
    assert 'pip install "gymnasium[classic-control]"' in said.replace("_", "-")
    assert "Traceback" not in said
