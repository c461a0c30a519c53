"""Are RLlib's results read on both of its stacks, with the clipped value loss kept apart from the real one?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find, rllib
from relab.record.history import History

FIXTURES = Path(__file__).parent / "fixtures" / "rllib"
NEW, OLD = FIXTURES / "new_stack" / "PPO_CartPole-v1_00000", FIXTURES / "old_stack" / "PPO_CartPole-v1_00000"


def read(folder: Path) -> History:
    (run,) = find.load_all(folder).runs
    assert run.source.format == "rllib"
    return run.history


def rows(folder: Path) -> list[dict]:
    return [json.loads(line) for line in (folder / "result.json").read_text().splitlines()]


@pytest.mark.parametrize("folder", [NEW, OLD])
def test_steps_settings_and_state(folder):
    history = read(folder)
    assert history.column("policy/entropy").steps.tolist() == [400 * i for i in range(1, 7)]
    algo = history.config["algo"]
    assert (algo["name"], algo["lr"], algo["epochs"], algo["clip"], algo["minibatches"]) == ("ppo", 1e-3, 2, 0.3, 4)
    assert history.meta["seed"] == 3
    assert history.meta["spec"]["env"] == "CartPole-v1"
    assert history.meta["status"] == "finished"


def test_the_new_stack_tells_the_returns_of_the_iteration():
    history, written = read(NEW), rows(NEW)
    returns = [row["env_runners"]["episode_return_mean"] for row in written]
    np.testing.assert_allclose(history.column("return/mean").values, returns)
    assert "return/mean_100" not in history.columns
    assert history.column("data/iteration").values.tolist() == [1, 2, 3, 4, 5, 6]


def test_the_old_stack_tells_the_mean_of_a_hundred_episodes():
    history = read(OLD)
    returns = [row["env_runners"]["episode_reward_mean"] for row in rows(OLD)]
    np.testing.assert_allclose(history.column("return/mean_100").values, returns)
    assert "return/mean" not in history.columns


def test_the_value_loss_is_the_unclipped_one():
    history = read(NEW)
    learner = [row["learners"]["default_policy"] for row in rows(NEW)]
    np.testing.assert_allclose(history.column("value/loss").values, [row["vf_loss_unclipped"] / 2 for row in learner])
    assert max(row["vf_loss"] for row in learner) <= 10.0 < max(row["vf_loss_unclipped"] for row in learner)
    assert "value/loss" not in read(OLD).columns  # all that the old stack says is clipped


@pytest.mark.parametrize("folder", [NEW, OLD])
def test_evaluations_explore_unless_the_config_says_otherwise(folder, tmp_path):
    assert read(folder).column("eval/return_sampled").steps.tolist() == [800, 1600, 2400]
    names = rllib.names_for(["evaluation/env_runners/episode_return_mean"], {"evaluation_config.explore": False})
    assert names["evaluation/env_runners/episode_return_mean"] == ("eval/return_det", 1.0)


def test_several_policies_stay_foreign(tmp_path):
    folder = shutil.copytree(NEW, tmp_path / "PPO_two")
    written = rows(NEW)
    for row in written:
        row["learners"]["other"] = row["learners"]["default_policy"]
    (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in written))
    history = read(folder)
    assert "policy/entropy" not in history.columns
    assert "foreign/learners/other/entropy" in history.columns


def test_timers_are_no_counters():
    assert "foreign/timers/training_iteration" in read(NEW).columns


def test_a_trainable_of_ones_own_is_read_by_the_common_names(tmp_path):
    folder = tmp_path / "train_fn_1"
    folder.mkdir()
    lines = [{"training_iteration": i, "trial_id": "a", "mean_reward": 2 * i, "config": {"lr": 0.1}} for i in (1, 2)]
    (folder / "result.json").write_text("".join(json.dumps(line) + "\n" for line in lines))
    history = read(folder)
    assert history.column("return/mean").values.tolist() == [2, 4]
    assert history.axes["return/mean"] == "iteration"
    assert history.config["algo"]["lr"] == 0.1


def test_an_iteration_in_which_no_episode_ended_is_a_gap_and_not_a_number_gone_wrong(tmp_path):
    folder = shutil.copytree(OLD, tmp_path / "PPO_gap")
    written = rows(OLD)
    written[1]["env_runners"]["episode_reward_mean"] = float("nan")
    written[2]["info"]["learner"]["default_policy"]["learner_stats"]["entropy"] = float("nan")
    (folder / "result.json").write_text("".join(json.dumps(row) + "\n" for row in written))
    history = read(folder)
    assert history.column("return/mean_100").steps.tolist() == [400, 1200, 1600, 2000, 2400]
    assert np.isnan(history.column("policy/entropy").values[2])
    counts = [column for name, column in read(NEW).columns.items() if name.endswith("num_trainable_parameters")]
    assert all(np.isfinite(column.values).all() for column in counts)  # written once, NaN in all later rows
    assert counts
