"""Are the published and measured levels consistent with each other and with the environments themselves?"""

from __future__ import annotations

import pytest

from relab import cli
from relab.config import envs as configs
from relab.formats.read.facts import add_facts
from relab.record import levels
from relab.record.history import History
from relab.train.baseline import measure
from relab.train.envs.gym_bridge import Gym


def test_every_published_level_has_a_source_and_beats_the_random_policy():
    for level in levels.published():
        assert level.source in levels.SOURCES
        measured = levels.measured().get(level.env)
        if measured and level.env != "MountainCar-v0":  # where the random policy's -200 is also a published result
            assert level.mean > measured.random["return_mean"], level


@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1", "Pendulum-v1"])
def test_facts_agree_with_the_environment(env, monkeypatch):
    monkeypatch.setattr(
        "relab.train.baseline.EPISODES", 40
    )  # of 100: Gymnasium's are slow, and the error says how many
    world, facts = Gym(configs.Gym(name=f"gym:{env}")), levels.facts(env)
    assert facts["horizon"] == world.spec.horizon
    assert facts["action"]["kind"] == world.spec.action.kind
    again = measure(world)["baseline"]
    error = (facts["random"]["return_std"] ** 2 / facts["random"]["n"] + again["return_std"] ** 2 / again["n"]) ** 0.5
    assert abs(again["return_mean"] - facts["random"]["return_mean"]) < 4 * error


def test_a_log_keeps_what_it_says_itself(tmp_path):
    run = History(tmp_path, source="csv", meta={"spec": {"env": "CartPole-v1", "horizon": 200, "agents": None}})
    add_facts(run)
    assert run.meta["spec"]["horizon"] == 200
    assert run.meta["spec"]["reward_high"] == 1.0
    other = History(tmp_path, source="csv", meta={"spec": {"env": "Nobody-v0"}})
    add_facts(other)
    assert other.meta == {"spec": {"env": "Nobody-v0"}}


def test_explain_tells_the_levels(capsys):
    assert cli.main(["explain", "cartpole-v1"]) == 0
    out = capsys.readouterr().out
    assert "random policy: 22.2" in out
    assert "ppo: 500 ± 0 after 100,000 steps (zoo)" in out
    assert "rl-baselines3-zoo" in out
