"""Do the rules that hold two accounts of one thing against each other bear noise, lag, exploration and other tasks?"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.health.engine import NotChecked
from relab.record.history import Column

STEPS = np.arange(1, 41) * 100


def played(levels: Any, mode: str = "sampled", spread: float = 5.0) -> list[dict[str, Any]]:
    """An evaluation of ten episodes each thousand steps."""
    rng, rows = np.random.default_rng(1), []
    for i, level in enumerate(levels):
        returns = level + spread * rng.standard_normal(10)
        episodes = [{"seed": k, "return": float(r), "length": 100} for k, r in enumerate(returns)]
        rows.append({"step": 500 * i, "axis": "agent_steps", "mode": mode, "episodes": episodes})
    return rows


def both(training: Any, evaluated: Any, mode: str = "sampled", config: Any = None, **more: Any):
    noise = 5 * np.random.default_rng(2).standard_normal(40)
    columns = {"return/mean": np.asarray(training) + noise, "return/std": np.full(40, 5.0),
               "return/episodes": np.full(40, 4.0), "return/length": np.full(40, 100.0)}  # fmt: skip
    view = made(columns | more, config or {"algo": {"name": "sac"}})
    for column in view.history.columns.values():
        column.steps[:] = STEPS
    view.history.evals = played(evaluated, mode)
    view.history.source = "relab"
    return view


RISING = np.linspace(0, 200, 9)
SLUG = "training-apart-from-evaluation"


def test_a_policy_that_learns_in_evaluations_alone_is_told():
    found = asked(SLUG, both(np.zeros(40), RISING))
    assert (found.severity, found.confidence) == ("warning", "high")
    assert "the actor that collects is another one" in found.message
    assert found.value > 100


@pytest.mark.parametrize(("worlds", "silent"), [(2, False), (16, True)])
def test_worlds_that_had_no_time_for_such_episodes_say_nothing(worlds: int, silent: bool):
    """4,000 steps of 16 worlds are 250 each: of episodes of 200 steps only those that failed early have ended."""
    view = both(np.zeros(40), RISING, config={"algo": {"name": "sac", "envs": worlds}})
    view.history.columns["eval/length_sampled"] = Column(500 * np.arange(9), np.full(9, 200.0))
    assert isinstance(asked(SLUG, view), NotChecked) == silent


def test_a_log_of_another_tool_gets_a_remark():
    """Next to no healthy run of theirs logs both, so that nobody knows how often it would be wrong there."""
    view = both(np.zeros(40), RISING)
    view.history.source = "rllib"
    assert asked(SLUG, view).severity == "info"


def test_an_evaluation_of_another_policy_is_told_with_its_side():
    found = asked(SLUG, both(np.linspace(0, 200, 40), np.zeros(9)))
    assert "evaluations play another policy" in found.message


@pytest.mark.parametrize(
    ("training", "evaluated"),
    [
        (np.linspace(0, 200, 40), RISING),
        (np.repeat(np.arange(8) * 25.0, 5), RISING),  # fast learning: training lags behind by up to 25
        (np.zeros(40), np.zeros(9)),  # nothing is learned
        (np.linspace(0, 200, 40), RISING + 20 * (-1) ** np.arange(9)),  # evaluations swing about training
        (np.concatenate([np.full(20, 0.0), np.full(20, 200.0)]), np.where(np.arange(9) > 4, 200.0, 100.0)),
    ],
)
def test_what_agrees_within_noise_and_lag_is_left_alone(training, evaluated):
    assert asked(SLUG, both(training, evaluated)) is None


def test_a_moment_at_which_the_policy_is_bad_is_no_other_policy():
    """Single evaluations of DQN fall far below the training around them, and come back."""
    swings = np.array([0, 0, 200, 200, 200, 60, 40, 199, 200.0])
    assert asked(SLUG, both(np.full(40, 201.0), swings)) is None
    falls = both(np.zeros(40), np.array([0, 40, 200, 150, 100, 80, 70, 60, 50.0]))
    assert asked(SLUG, falls).value > 40  # the actor that learns may lose what it had, and is another one all the same


def test_evaluations_that_stay_far_below_training_are_a_warning_whatever_their_mode():
    """Observations of another scale, or old parameters: every one of the last half is far below."""
    assert asked(SLUG, both(np.full(40, 200.0), np.zeros(9), "det")).severity == "warning"
    swings = np.array([0, 0, 0, 0, 0, 0, 0, 180, 0.0])
    assert asked(SLUG, both(np.full(40, 200.0), swings, "det")) is None


def test_noise_that_only_training_has_is_no_other_policy():
    view = both(np.linspace(0, 100, 40), RISING, "det")
    assert asked(SLUG, view) is None
    stays = both(np.zeros(40), RISING + 100, "det")
    assert asked(SLUG, stays).severity == "info"
    random = both(np.zeros(40), RISING, "det", policy__exploration=np.full(40, 0.5))
    random.history.columns["policy/exploration"] = random.history.columns.pop("policy__exploration")
    assert "explore as training does" in asked(SLUG, random).missing


def test_a_curriculum_trains_in_another_task():
    view = both(np.zeros(40), RISING, config={"algo": {"name": "ppo"}, "schedule": {"total": 9}})
    assert "one task" in asked(SLUG, view).missing


def test_few_evaluations_are_no_course():
    assert "3 evaluations" in asked(SLUG, both(np.zeros(40), RISING[:4])).missing


# ---- Rewards and returns


@pytest.mark.parametrize(
    ("reward", "told"), [(1000.0, True), (1.0, False), (5.0, False), (0.01, True), (-1000.0, False)]
)
def test_rewards_are_held_against_what_episodes_earned(reward, told):
    returns = np.linspace(20, 500, 30)
    view = made({"data/reward_mean": np.full(30, reward), "return/mean": returns, "return/length": returns})
    assert bool(asked("rewards-not-those-of-returns", view)) == told


def test_rewards_of_both_signs_are_no_scale():
    turns = np.where(np.arange(30) % 3 == 0, -2.0, 1.0)
    view = made({"data/reward_mean": 50 + turns, "return/mean": 10 * turns, "return/length": np.full(30, 10.0)})
    assert asked("rewards-not-those-of-returns", view) is None


def test_a_run_without_whole_episodes_is_not_checked():
    columns = {"data/reward_mean": np.full(30, 9.0), "return/mean": np.full(30, 1.0),
               "return/length": np.full(30, 10.0), "data/episodes": np.zeros(30)}  # fmt: skip
    assert "whole episodes" in asked("rewards-not-those-of-returns", made(columns)).missing


# ---- Exploration, targets


@pytest.mark.parametrize(("final", "told"), [(0.05, False), (0.12, False), (1.0, True), (0.0, False)])
def test_exploration_is_held_against_its_settings(final, told):
    share = np.concatenate([np.linspace(1, final, 10), np.full(20, final)])
    config = {"algo": {"name": "dqn", "epsilon_final": 0.05, "epsilon_until": 0.2}, "total_steps": 29_000}
    assert bool(asked("exploration-off-schedule", made({"policy/exploration": share}, config))) == told


@pytest.mark.parametrize(
    ("q", "target", "n", "told"),
    [
        (1.0, 1.02, 1, True),
        (60.0, 60.4, 1, False),
        (4.7, 4.9, 5, True),
        (60.0, 60.4, 5, False),
        (-40.0, -39.0, 1, False),
    ],
)
def test_targets_must_hold_what_the_critic_expects(q, target, n, told):
    columns = {"value/q_mean": np.full(30, q), "value/target_mean": np.full(30, target),
               "data/reward_mean": np.full(30, 1.0), "return/length": np.full(30, 100.0)}  # fmt: skip
    view = made(columns, {"algo": {"name": "dqn", "gamma": 0.99, "n_step": n}})
    assert bool(asked("targets-stand-still", view)) == told


def test_episodes_of_one_step_have_nothing_beyond_their_rewards():
    columns = {"value/q_mean": np.ones(30), "value/target_mean": np.ones(30), "data/reward_mean": np.ones(30),
               "return/length": np.ones(30)}  # fmt: skip
    assert "n_step" in asked("targets-stand-still", made(columns, {"algo": {"name": "dqn", "gamma": 0.99}})).missing


def test_actions_drawn_in_training_alone_are_no_other_actor():
    """Plain runs of Stable-Baselines3: training draws its actions, evaluations do not."""
    found = asked(SLUG, both(np.full(40, 20.0), RISING + 200, "det"))
    assert found.severity == "info"
    assert "chance in its actions costs the difference, or the actor that collects is another one" in found.message
