"""Does a run say how many rules are about it, whatever its algorithm is called?"""

from __future__ import annotations

from pathlib import Path

import pytest

from relab.health.applied import applied
from relab.health.engine import ask_run
from relab.health.examine import load_view
from relab.health.rule import all_rules
from relab.health.view import View
from relab.record.history import History
from where import histories

ROOT = histories() / "healthy"


def counted(name: str):
    view, rules = load_view(ROOT / name, name), list(all_rules(plugins=False).values())
    return applied(rules, view, ask_run(rules, view)[1])


RUNS = [("cartpole", "ppo"), ("dqn-cartpole", "dqn"), ("a2c-acrobot", "a2c"), ("sac-pendulum", "sac"),
        ("awr-cartpole", "awr"), ("iql-cartpole", "iql"), ("dreamer-cartpole", "dreamer")]  # fmt: skip


@pytest.mark.parametrize(("name", "algo"), RUNS)
def test_rules_are_counted_per_algorithm(name, algo):
    found = counted(name)
    assert found.algo == algo
    assert 10 < found.checked < found.apply < found.known
    assert f"{found.apply} of {found.known} rules apply to {algo}" in str(found)


def kinds(config, spec):
    """How many rules apply to a run of these settings, and in which words that is said."""
    view, rules = (
        View(History(Path(), config=config, meta={"spec": spec}), "x"),
        list(all_rules(plugins=False).values()),
    )
    counts = applied(rules, view, [])
    return counts.apply, str(counts).partition(" rules apply ")[2].partition(",")[0]


def test_what_two_counts_of_one_algorithm_differ_in_is_said():
    """Rules about sigma are not about discrete actions, and those of AWR not about a fine-tuning with PPO."""
    ppo, discrete, continuous = (
        {"algo": {"name": "ppo"}},
        {"action": {"kind": "discrete"}},
        {"action": {"kind": "continuous"}},
    )
    cases = [kinds(ppo, discrete), kinds(ppo, continuous), kinds(ppo, {}), kinds({}, discrete)]
    cases += [kinds({"algo": {"name": "finetune", "update": update}}, continuous) for update in ("ppo", "awr")]
    assert [words for _, words in cases] == [
        "to ppo with discrete actions", "to ppo with continuous actions", "to ppo", "to discrete actions",
        "to finetune with continuous actions", "to finetune and awr with continuous actions",
    ]  # fmt: skip
    assert len({count for count, _ in cases}) == len(cases)


def test_more_rules_apply_to_ppo_than_to_dqn():
    assert counted("cartpole").apply > counted("dqn-cartpole").apply


def test_rules_of_replay_methods_are_not_asked_of_ppo():
    rules = list(all_rules(plugins=False).values())
    _, gone = ask_run(rules, load_view(ROOT / "cartpole", "x"))
    assert not {"exploration-never-ends", "temperature-stuck"} & {each.slug for each in gone}


@pytest.mark.parametrize(
    ("name", "family"),
    [("PPO", "ppo"), ("MaskablePPO", "ppo"), ("ppo_continuous_action", "ppo"), ("DDPG", "td3"), ("QRDQN", "dqn"),
     ("dreamer_v3", "dreamer"), ("IQL", "iql"), ("AWAC", "awr"), ("", None)],
)  # fmt: skip
def test_variants_belong_to_their_family(name, family):
    assert View(History(Path(), config={"algo": {"name": name}}), "x").algo == family


def test_a_sac_run_passes_rules_that_are_about_sac():
    """Of the rules for replay methods, most have their data in what Stable-Baselines3 logs by itself."""
    rules = list(all_rules(plugins=False).values())
    view = load_view(ROOT / "sac-pendulum", "x")
    mine = {rule.slug for rule in rules if "sac" in rule.algos}
    gone = {each.slug for each in ask_run(rules, view)[1]}
    assert len(mine) >= 15
    assert len(mine - gone) >= 13, sorted(mine & gone)


@pytest.mark.parametrize(
    ("name", "own"), [("awr-cartpole", "awr"), ("iql-cartpole", "iql"), ("dreamer-cartpole", "dreamer")]
)
def test_offline_methods_and_world_models_have_rules_of_their_own(name, own):
    rules = list(all_rules(plugins=False).values())
    mine = {rule.slug for rule in rules if own in rule.algos and "ppo" not in rule.algos}
    gone = {each.slug for each in ask_run(rules, load_view(ROOT / name, "x"))[1]}
    assert len(mine - gone) >= 3, sorted(mine & gone)
