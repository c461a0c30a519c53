"""Do names of training libraries mean in relab what they mean there? Logs by rsl_rl, skrl, Tianshou and TorchRL."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find, libraries, tfevents
from relab.formats.read.source import FOREIGN
from relab.health.examine import examine
from relab.health.render import outcome
from relab.health.rule import all_rules
from relab.health.view import View
from relab.record import glossary
from relab.record.history import History
from where import fixtures

FIXTURES = fixtures()
BOARDS = FIXTURES / "boards"


def load(folder: Path) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert (loaded.broken, loaded.unread) == ([], [])
    return {run.name: run.history for run in loaded.runs}


def only(folder: Path) -> History:
    (history,) = load(folder).values()
    assert history.problems == []
    return history


def raw(folder: Path, tag: str) -> np.ndarray:
    (file,) = folder.rglob("events.out.*")
    return np.array(tfevents.read(file).scalars[tag].values)


@pytest.mark.parametrize("library", libraries.ALL, ids=lambda library: library.name)
def test_every_name_is_one_of_the_glossary_and_every_axis_too(library):
    meanings = [*library.names.values(), *(m for _, names in library.beside for m in names.values())]
    assert all(glossary.known(name) or name.startswith(FOREIGN) for name, _ in meanings)
    assert {axis for _, axis in library.axes} <= set(glossary.AXES)
    assert library.axes[-1][0] == ""  # so that every name has one


def test_libraries_do_not_take_each_others_logs():
    for library in libraries.ALL:
        for sign in library.signs:
            dialect = libraries.dialect_of([sign])
            assert dialect is not None
            assert dialect.library.name == library.name
    assert libraries.dialect_of(["charts/episodic_return", "rollout/ep_rew_mean", "train/loss", "eval/reward"]) is None


HEALTHY = ("boards", "d3rlpy", "torchrl", "spinup", "sample_factory", "acme")


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_log_is_not_called_sick_because_of_its_names(name):
    """rsl_rl's speed is of steps and its axis of iterations; Tianshou's two axes are told, and rightly."""
    slugs = {finding.slug for finding in examine(FIXTURES / name).findings if not all_rules()[finding.slug].footer}
    assert slugs <= {"mixed-step-axes"}


def test_few_evaluations_do_not_hide_the_returns_in_training():
    run = View(load(FIXTURES / "torchrl")["ppo_0"], "ppo_0")
    assert len(run.curve("eval/return_det")) == 3
    assert run.earned == "return/mean"
    assert outcome(run).startswith("120")
    assert " in training" in outcome(run)
    assert " in training" not in outcome(View(load(FIXTURES / "spinup")["sac_s0"], "sac_s0"))


# ---- rsl_rl


def test_rsl_rl_counts_iterations_and_the_last_hundred_episodes():
    history = only(BOARDS / "rsl_rl")
    assert set(history.axes.values()) == {"iteration"}
    returns = history.column("return/mean_100")
    assert returns.steps.tolist() == list(range(30))
    np.testing.assert_allclose(returns.values, raw(BOARDS / "rsl_rl", "Train/mean_reward"))
    assert history.column("return/length").values[-1] == 10.0  # the time limit of the task


def test_rsl_rl_has_no_half_in_its_value_loss_and_logs_the_entropy_itself():
    history = only(BOARDS / "rsl_rl")
    np.testing.assert_allclose(history.column("value/loss").values, 0.5 * raw(BOARDS / "rsl_rl", "Loss/value"))
    std, entropy = history.column("foreign/action_std").values, history.column("policy/entropy").values
    gaussian = 2 * (np.log(std) + 0.5 * np.log(2 * np.pi * np.e))  # of two components
    np.testing.assert_allclose(entropy, gaussian, atol=0.05)
    assert history.factors == {"value/loss": 0.5}


def test_rsl_rl_repeats_its_returns_over_seconds_which_are_no_steps():
    history = only(BOARDS / "rsl_rl")
    assert history.meta["not_read"] == ["Train/mean_episode_length/time", "Train/mean_reward/time"]
    assert not any(name.endswith("/time") for name in history.columns)


def test_rsl_rl_settings_as_isaaclab_keeps_them():
    history = only(BOARDS / "rsl_rl")
    algo = {"name": "ppo", "lr": 0.001, "gamma": 0.95, "lam": 0.9, "clip": 0.2, "epochs": 4, "minibatches": 2,
            "steps": 16, "ent_coef": 0.005, "value_coef": 1.0, "max_grad_norm": 1.0}  # fmt: skip
    assert history.config["algo"] == algo
    assert (history.meta["seed"], history.config["foreign"]["max_iterations"]) == (42, 30)


def test_with_curiosity_the_reward_of_the_task_counts():
    dialect = libraries.dialect_of(["Perf/total_fps", "Train/mean_reward", "Rnd/mean_extrinsic_reward"])
    assert dialect is not None
    assert dialect.names["Rnd/mean_extrinsic_reward"] == ("return/mean_100", 1.0)
    assert dialect.names["Train/mean_reward"] == ("foreign/Train/mean_reward", 1.0)


# ---- skrl


def test_skrl_names_and_its_algorithm_by_the_folder():
    history = only(BOARDS / "skrl")
    assert history.config["algo"]["name"] == "ppo"
    assert set(history.axes.values()) == {"env_steps"}
    assert history.column("return/length").values[-1] == 21.0  # 20 to the limit, and one in which Gymnasium resets
    mean, reward = history.column("return/mean").values[-1], history.column("data/reward_mean").values[-1]
    assert mean / 20 == pytest.approx(reward, rel=0.5)  # a return, not a reward of one step
    low, high = history.column("return/min").values, history.column("return/max").values
    assert (low <= history.column("return/mean").values).all()
    assert (history.column("return/mean").values <= high).all()
    assert history.factors == {"value/loss": 0.5}
    assert history.mapping["Loss / Entropy loss"] == "foreign/Loss / Entropy loss"  # times a scale nobody logs


def test_skrl_of_an_off_policy_agent():
    tags = ["Reward / Total reward (mean)", "Loss / Policy loss", "Loss / Critic loss", "Loss / Entropy loss",
            "Coefficient / Entropy coefficient"]  # fmt: skip
    dialect = libraries.dialect_of(tags)
    assert dialect is not None
    assert dialect.names["Loss / Policy loss"][0] == "policy/actor_loss"
    assert dialect.names["Loss / Entropy loss"][0] == "optim/temperature_loss"


# ---- Tianshou


def test_tianshou_names_and_both_of_its_axes():
    history = only(BOARDS / "tianshou")
    assert history.axes["return/mean"] == history.axes["eval/return_det"] == "env_steps"
    assert history.axes["policy/entropy"] == "iteration"  # one training step, with 40 gradient steps in it
    assert history.column("return/mean").values[0] == pytest.approx(21.5)
    assert history.column("policy/entropy").values[0] == pytest.approx(0.67)  # `ent_loss` is no loss
    assert history.column("value/loss").values[0] == pytest.approx(2.0)
    assert history.mapping["update/actor_loss/mean"] == "policy/loss"
    assert history.mapping["update/gradient_steps"] == "foreign/update/gradient_steps"  # of one update, not so far
    assert history.mapping["update/vf_loss/std"] == "foreign/update/vf_loss_std"


def test_tianshou_before_version_2_counts_gradient_steps():
    tags = ["update/gradient_step", "update/loss/actor", "update/alpha", "test/reward", "train/reward"]
    dialect = libraries.dialect_of(tags)
    assert dialect is not None
    assert dialect.axes["update/alpha"] == "updates"
    assert dialect.axes["test/reward"] == "env_steps"
    assert dialect.names["update/loss/actor"] == ("policy/actor_loss", 1.0)


# ---- TorchRL, Sample Factory, Spinning Up, Dopamine


def test_torchrl_files_are_metrics_of_one_run():
    runs = load(FIXTURES / "torchrl")
    assert sorted(runs) == ["ppo_0", "ppo_1"]
    history = runs["ppo_1"]
    assert history.problems == []
    assert history.column("return/mean").steps[0] == 2048
    assert history.column("return/mean").values[0] == 11.0
    assert history.mapping["train/kl_approx"] == "policy/kl_k1"
    assert history.mapping["train/loss_critic"] == "foreign/train/loss_critic"
    assert (history.meta["seed"], history.config["algo"]["lr"]) == (1, 0.0003)
    assert history.config["env"]["name"] == "Pendulum-v1"
    assert runs["ppo_0"].config["foreign"] == history.config["foreign"]  # two seeds of one config


def test_a_folder_called_scalars_with_other_tables_is_not_torchrls(tmp_path):
    (tmp_path / "scalars").mkdir()
    (tmp_path / "scalars" / "a.csv").write_text("step,reward\n1,2\n2,3\n")
    assert {source.format for source in find.find(tmp_path)} == {"csv"}


def test_sample_factory_is_read_from_its_hidden_folder():
    history = only(FIXTURES / "sample_factory")
    assert history.source == "sample_factory"
    assert history.column("return/mean_100").steps.tolist() == [20_000 * i for i in range(1, 13)]
    assert history.factors["value/loss"] == pytest.approx(0.5 / 0.25)  # without its coefficient, with 1/2
    assert history.column("value/loss").values[0] == pytest.approx(4.0)
    assert history.mapping["train/grad_norm"] == "foreign/train/grad_norm"  # after clipping
    assert history.config["algo"]["name"] == "appo"
    assert history.config["total_steps"] == 240_000
    assert history.meta["command"] == "--env=doom_basic --seed=3"
    assert not any(key.startswith("cli_args") or key == "experiment" for key in history.config["foreign"])


def test_a_population_is_a_run_per_policy_and_another_window_no_mean_of_100(tmp_path):
    folder = Path(shutil.copytree(FIXTURES / "sample_factory" / "doom_basic", tmp_path / "pbt"))
    shutil.copytree(folder / ".summary" / "0", folder / ".summary" / "1")
    config = json.loads((folder / "config.json").read_text()) | {"stats_avg": 10}
    (folder / "config.json").write_text(json.dumps(config))
    runs = load(tmp_path)
    assert sorted(runs) == ["pbt/policy0", "pbt/policy1"]
    assert runs["pbt/policy0"].mapping["reward/reward"] == "return/mean"


def test_spinning_up_tells_its_algorithms_by_their_columns():
    runs = load(FIXTURES / "spinup")
    ppo, sac = runs["ppo_s0"], runs["sac_s1"]
    assert (ppo.config["algo"]["name"], sac.config["algo"]["name"]) == ("ppo", "sac")
    assert (ppo.mapping["LossPi"], sac.mapping["LossPi"]) == ("policy/loss", "policy/actor_loss")
    assert ppo.mapping["KL"] == "policy/kl_k1"
    assert ppo.column("value/loss").values[0] == 20.0
    assert ppo.column("return/mean").steps.tolist() == [4000 * i for i in range(1, 13)]
    assert sac.column("eval/return_det").values[0] > sac.column("return/mean").values[0]
    assert (ppo.config["total_steps"], sac.config["foreign"]["tau"]) == (48_000, pytest.approx(0.005))


def test_addresses_in_spinning_ups_settings_do_not_split_its_seeds():
    runs = load(FIXTURES / "spinup")
    assert runs["ppo_s0"].config["foreign"] == runs["ppo_s1"].config["foreign"]
    assert not any("0x" in f"{key}{value}" for key, value in runs["ppo_s0"].config["foreign"].items())
    assert (runs["ppo_s0"].meta["seed"], runs["ppo_s1"].meta["seed"]) == (0, 1)


def test_the_parts_of_an_acme_run_are_one_run_over_the_actors_steps():
    runs = load(FIXTURES / "acme")
    assert list(runs) == ["20260101-000000/logs"]
    history = runs["20260101-000000/logs"]
    assert history.problems == []
    assert set(history.axes.values()) == {"env_steps"}
    assert history.column("return/mean").steps.tolist() == [200 * i for i in range(1, 13)]
    assert history.column("eval/return_det").values[0] == history.column("return/mean").values[0] + 1
    assert history.column("data/updates").values[-1] == 1800.0
    assert history.mapping["policy_loss"] == "policy/actor_loss"  # beside a critic's


def test_dopamine_counts_iterations_but_for_its_losses():
    dialect = libraries.dialect_of(["Train/AverageReturns", "Eval/AverageReturns", "HuberLoss", "CrossEntropyLoss"])
    assert dialect is not None
    assert dialect.names["Eval/AverageReturns"] == ("eval/return_det", 1.0)
    assert dialect.axes == {"Train/AverageReturns": "iteration", "Eval/AverageReturns": "iteration",
                            "HuberLoss": "env_steps", "CrossEntropyLoss": "env_steps"}  # fmt: skip
    assert "CrossEntropyLoss" not in dialect.names  # of distributions, no squared difference
