"""Does a run say how many rules are about it, whatever its algorithm is called?"""

from __future__ import annotations

from pathlib import Path

import pytest

from relab.health.applied import applied
from relab.health.engine import ask_run
from relab.health.examine import load_view
from relab.health.rule import all_rules
from relab.health.view import View
from relab.history import History

ROOT = Path(__file__).resolve().parent / "histories" / "healthy"


def counted(name: str):
    view, rules = load_view(ROOT / name, name), list(all_rules(plugins=False).values())
    return applied(rules, view, ask_run(rules, view)[1])


@pytest.mark.parametrize(("name", "algo"), [("cartpole", "ppo"), ("dqn-cartpole", "dqn"), ("a2c-acrobot", "a2c")])
def test_rules_are_counted_per_algorithm(name, algo):
    found = counted(name)
    assert found.algo == algo
    assert 10 < found.asked < found.apply < found.known
    assert f"{found.apply} of {found.known} rules apply to {algo}" in str(found)


def test_more_rules_apply_to_ppo_than_to_dqn():
    assert counted("cartpole").apply > counted("dqn-cartpole").apply


def test_rules_of_replay_methods_are_not_asked_of_ppo():
    rules = list(all_rules(plugins=False).values())
    _, gone = ask_run(rules, load_view(ROOT / "cartpole", "x"))
    assert not {"exploration-never-ends", "temperature-stuck"} & {each.slug for each in gone}


@pytest.mark.parametrize(
    ("name", "family"),
    [("PPO", "ppo"), ("MaskablePPO", "ppo"), ("ppo_continuous_action", "ppo"), ("DDPG", "td3"), ("QRDQN", "dqn"),
     ("dreamer_v3", "dreamerv3"), ("", None)],
)  # fmt: skip
def test_variants_belong_to_their_family(name, family):
    assert View(History(Path(), config={"algo": {"name": name}}), "x").algo == family
