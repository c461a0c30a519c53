"""Are Stable-Baselines3 folders read with signs, scales, episodes and evaluations, and is nothing unpickled?"""

from __future__ import annotations

import csv
import io
import json
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find, sb3, sb3_files
from relab.record.history import History
from relab.record.state import group_key

FIXTURES = Path(__file__).parent / "fixtures" / "sb3"
PPO = FIXTURES / "ppo_cartpole_seed0"


def read(folder: Path) -> History:
    (run,) = find.load_all(folder).runs
    assert run.source.format == "sb3"
    return run.history


def written(folder: Path, name: str) -> np.ndarray:
    """A column of progress.csv as the csv module reads it."""
    rows = csv.DictReader(io.StringIO((folder / "progress.csv").read_text()))
    return np.array([float(row[name]) for row in rows if row[name]])


@pytest.mark.parametrize(
    ("theirs", "ours", "factor"),
    [
        ("train/entropy_loss", "policy/entropy", -1.0),
        ("train/value_loss", "value/loss", 0.5),
        ("train/approx_kl", "policy/kl", 1.0),
        ("train/clip_fraction", "policy/clip_share", 1.0),
        ("train/explained_variance", "value/explained_variance", 1.0),
        ("rollout/ep_rew_mean", "return/mean_100", 1.0),
        ("time/fps", "time/sps_mean", 1.0),
    ],
)
def test_signs_and_scales(theirs, ours, factor):
    history = read(PPO)
    np.testing.assert_allclose(history.column(ours).values, written(PPO, theirs) * factor)
    assert history.mapping[theirs] == ours


def test_the_entropy_starts_near_its_maximum():
    assert read(PPO).column("policy/entropy").values[0] == pytest.approx(np.log(2), abs=0.01)


def test_steps_are_those_of_all_environments():
    history = read(PPO)
    assert history.column("return/mean_100").steps.tolist()[:3] == [512, 1024, 1536]
    assert set(history.axes.values()) == {"env_steps"}


def test_settings_seed_and_environment_come_from_the_model_and_the_monitor():
    history = read(PPO)
    algo = history.config["algo"]
    assert algo["name"] == "ppo"
    assert (algo["lr"], algo["clip"], algo["epochs"], algo["envs"], algo["steps"]) == (3e-4, 0.2, 10, 4, 128)
    assert algo["minibatches"] == 4  # 4 * 128 rows in parts of 128
    assert history.meta["seed"] == 0
    assert history.meta["spec"]["env"] == "CartPole-v1"
    assert history.meta["spec"]["action"] == {"kind": "discrete", "dim": 1, "n": [2], "low": [], "high": []}


def test_a_config_beside_the_files_is_read_and_the_model_counts_more(tmp_path):
    shutil.copy(PPO / "progress.csv", tmp_path)
    (tmp_path / "progress.json").write_text('{"time/total_timesteps": 1}\n{"time/total_timesteps": 2}\n')  # a log
    typed = {"algo": "PPO", "env": "CartPole-v1", "seed": 7, "lr": 0.5, "ppo": {"n_steps": 64}, "note": "mine"}
    (tmp_path / "config.json").write_text(json.dumps(typed))
    history = read(tmp_path)
    assert history.config["algo"] | {"clip": 0} == {"name": "ppo", "lr": 0.5, "steps": 64, "clip": 0}
    assert (history.meta["seed"], history.meta["spec"]["env"]) == (7, "CartPole-v1")
    assert history.config["foreign"]["note"] == "mine"
    assert not history.problems
    for model in PPO.glob("*.zip"):
        shutil.copy(model, tmp_path)
    assert read(tmp_path).config["algo"]["lr"] == read(PPO).config["algo"]["lr"]


def test_seeds_of_one_config_belong_together():
    runs = find.load_all(FIXTURES).runs
    keys = {run.name: group_key(run.history, run.name) for run in runs}
    assert keys["ppo_cartpole_seed0"] == keys["ppo_cartpole_seed1"]
    assert keys["ppo_cartpole_seed0"] != keys["dqn_cartpole_seed0"]


def test_episodes_of_the_monitors_give_the_returns_of_each_row():
    history = read(PPO)
    mean, count = history.column("return/mean"), history.column("return/episodes")
    assert mean.steps[0] == 512
    # until a hundred episodes are over, SB3's own mean is over all of them
    assert mean.values[0] == pytest.approx(history.column("return/mean_100").values[0])
    both = (mean.values * count.values)[:2].sum() / count.values[:2].sum()
    assert both == pytest.approx(history.column("return/mean_100").values[1])
    assert "foreign/rollout/ep_len_mean" in history.columns


def test_evaluations_keep_their_episodes():
    history = read(PPO)
    with np.load(PPO / "evaluations.npz") as arrays:
        results, steps = arrays["results"], arrays["timesteps"]
    assert [row["step"] for row in history.evals] == steps.tolist()
    assert [e["return"] for e in history.evals[0]["episodes"]] == results[0].tolist()
    np.testing.assert_allclose(history.column("eval/return_det").values, results.mean(1))
    assert history.axes["eval/return_det"] == "env_steps"
    assert history.evals[0]["noise"] == pytest.approx(results[0].std(ddof=1) / 5**0.5)


def test_sac_has_a_temperature_and_a_box_of_actions():
    history = read(FIXTURES / "sac_pendulum_seed0")
    assert history.config["algo"]["name"] == "sac"
    assert history.column("optim/temperature").values[0] > 0.5
    assert "ent_coef" not in history.config["algo"]
    assert history.meta["spec"]["action"]["low"] == [-2.0]
    assert {"value/critic_loss", "policy/actor_loss", "data/updates"} <= set(history.columns)


def test_dqn_explores_less_and_less_and_its_loss_is_the_critics():
    history = read(FIXTURES / "dqn_cartpole_seed0")
    explored = history.column("policy/exploration").values
    assert explored[0] > explored[-1]
    assert "value/critic_loss" in history.columns
    assert history.mapping["train/loss"] == "value/critic_loss"


def test_passes_over_the_batch_are_not_taken_for_updates():
    assert "data/updates" not in read(PPO).columns
    assert "foreign/train/n_updates" in read(PPO).columns


def test_the_spread_of_actions_is_counted_in_half_ranges():
    action = {"kind": "continuous", "low": [-2.0, -2.0], "high": [2.0, 2.0]}
    assert sb3.names_for("ppo", {"action": action})["train/std"] == ("policy/std_mean", 0.5)
    assert "train/std" not in sb3.names_for("ppo", {"action": {"low": [-1.0, -2.0], "high": [1.0, 2.0]}})


def test_a_mean_over_another_window_is_not_called_the_mean_of_a_hundred():
    assert sb3.names_for("ppo", {}, window=20)["rollout/ep_rew_mean"][0] == "foreign/rollout/ep_rew_mean"


def test_monitors_alone_are_a_run_too():
    history = read(FIXTURES / "monitor_only" / "monitor")
    column = history.column("return/mean")
    rows = (FIXTURES / "monitor_only" / "monitor" / "0.monitor.csv").read_text().splitlines()[2:]
    lengths = [int(row.split(",")[1]) for row in rows]
    assert column.steps[-1] == sum(lengths)
    assert history.column("return/episodes").values.sum() == len(rows)


def test_settings_of_the_zoo_are_read_without_following_pythons_tags():
    history = read(FIXTURES / "zoo_ppo" / "CartPole-v1_1")
    text = (FIXTURES / "zoo_ppo" / "CartPole-v1_1" / "CartPole-v1" / "config.yml").read_text()
    assert "!!python/object" in text
    algo = history.config["algo"]
    assert (algo["lam"], algo["envs"], algo["steps"], algo["clip"]) == (0.8, 8, 32, "lin_0.2")
    assert history.meta["seed"] == 12
    assert history.config["total_steps"] == 100_000


def test_a_continued_run_whose_monitors_began_anew_does_not_mix_them_in(tmp_path):
    folder = shutil.copytree(PPO, tmp_path / "run")
    for path in folder.glob("*.monitor.csv"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    history = read(folder)
    assert "return/mean" not in history.columns
    assert any("writes its monitor files anew" in p.message for p in history.problems)


def test_monitors_and_evaluations_in_folders_of_their_own_belong_to_the_run(tmp_path):
    folder = shutil.copytree(PPO, tmp_path / "run")
    for name, pattern in (("monitor", "*.monitor.csv"), ("eval", "evaluations.npz")):
        (folder / name).mkdir()
        for path in folder.glob(pattern):
            path.rename(folder / name / path.name)
    history = read(folder)
    assert len(history.evals) == 4
    assert "return/mean" in history.columns


class Bomb:
    def __reduce__(self):
        return (pytest.fail, ("something was unpickled",))


def test_pickled_values_are_never_touched(tmp_path):
    folder = shutil.copytree(PPO, tmp_path / "run")
    np.savez(
        folder / "evaluations.npz",
        timesteps=np.array([1]),
        results=np.array([[Bomb()]], object),
        ep_lengths=np.ones((1, 1)),
    )
    with zipfile.ZipFile(folder / "final_model.zip", "w") as archive:
        archive.writestr("data", json.dumps({"seed": 4, "n_epochs": {":serialized:": pickle.dumps(Bomb()).hex()}}))
        archive.writestr("policy.pth", pickle.dumps(Bomb()))
    history = read(folder)
    assert history.evals == []
    assert any("small array of numbers" in p.message for p in history.problems)
    assert history.meta["seed"] == 4


@pytest.mark.parametrize("member", ["evaluations.npz", "final_model.zip"])
def test_archives_that_grow_when_unpacked_are_refused(tmp_path, member):
    folder = shutil.copytree(PPO, tmp_path / "run")
    inner = "data" if member == "final_model.zip" else "timesteps.npy"
    with zipfile.ZipFile(folder / member, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(inner, b" " * (sb3_files.MAX_ARRAY + 1))
    history = read(folder)
    assert any("more than" in p.message for p in history.problems)


def test_an_array_that_claims_to_be_huge_is_refused(tmp_path):
    folder = shutil.copytree(PPO, tmp_path / "run")
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (10**13,)})
    with zipfile.ZipFile(folder / "evaluations.npz", "w") as archive:
        archive.writestr("timesteps.npy", header.getvalue())
    assert any("small array of numbers" in p.message for p in read(folder).problems)


def test_successes_are_kept_where_they_were_written(tmp_path):
    folder = shutil.copytree(PPO, tmp_path / "run")
    np.savez(
        folder / "evaluations.npz",
        timesteps=np.array([10, 20]),
        results=np.ones((2, 4)),
        ep_lengths=np.full((2, 4), 7),
        successes=np.array([[True, False, False, False], [True, True, True, False]]),
    )
    assert read(folder).column("eval/success_det").values.tolist() == [0.25, 0.75]


def test_episodes_of_impossible_length_are_left_out_and_infinite_returns_kept(tmp_path):
    rows = ["5,5,1", "6,nan,2", "inf,7,3", "7,-3,4", "8,1e400,5", "9,4,6"]
    (tmp_path / "monitor.csv").write_text('#{"t_start": 0, "env_id": "X-v0"}\nr,l,t\n' + "\n".join(rows) + "\n")
    history = read(tmp_path)
    assert history.column("return/episodes").values.sum() == 3
    assert history.column("return/max").values.max() == np.inf
    assert history.column("return/mean").steps.tolist() == [5, 12, 16]
    assert "3 episodes have no return or no length" in history.problems[0].message


@pytest.mark.parametrize("lengths", [[[np.nan]], [[1.0], [2.0]]])
def test_evaluations_that_make_no_sense_are_problems(tmp_path, lengths):
    folder = shutil.copytree(PPO, tmp_path / "run")
    arrays = {"timesteps": np.array([1]), "results": np.array([[1.0]]), "ep_lengths": np.array(lengths)}
    np.savez(folder / "evaluations.npz", **arrays)
    history = read(folder)
    assert history.evals == []
    assert history.problems[0].file == "evaluations.npz"


def test_a_broken_header_of_an_array_is_a_problem(tmp_path):
    folder = shutil.copytree(PPO, tmp_path / "run")
    with zipfile.ZipFile(folder / "evaluations.npz", "w") as archive:
        archive.writestr("timesteps.npy", b"\x93NUMPY\x01\x00\x10\x00{'descr': '<f8',(")
    assert read(folder).problems[0].file == "evaluations.npz"


def test_the_last_step_says_that_a_run_is_over():
    assert read(PPO).meta["status"] == "finished"
    assert "status" not in read(FIXTURES / "zoo_ppo" / "CartPole-v1_1").meta  # 4,096 of 100,000


def test_a_schedule_that_is_a_function_is_told_without_its_address():
    text = sb3_files._schedule({"value_schedule": "<function linear.<locals>.<lambda> at 0x7fa97f648540>"})
    assert text == "<function linear.<locals>.<lambda>>"


# ---- A run of RL-Zoo itself


@pytest.fixture
def zoo_run(tmp_path):
    return shutil.copytree(FIXTURES / "zoo_run" / "ppo", tmp_path / "ppo")


def test_a_folder_of_rl_zoo_is_read_whole(zoo_run):
    loaded = find.load_all(zoo_run)
    assert (loaded.broken, loaded.unread) == ([], [])
    runs = {run.name: run.history for run in loaded.runs}
    assert list(runs) == ["CartPole-v1_1", "CartPole-v1_2"]
    first, second = runs.values()
    assert [run.problems for run in runs.values()] == [[], []]
    assert [row["step"] for row in first.evals] == [1000, 2000, 3000, 4000]
    assert all(len(row["episodes"]) == 5 for row in first.evals)
    assert first.column("return/mean").steps[-1] <= 4096
    assert (first.config["seed"], first.config["algo"]["name"], first.config["env"]["name"]) == (
        12,
        "ppo",
        "CartPole-v1",
    )
    assert (first.config["algo"]["envs"], first.config["algo"]["lam"], first.config["algo"]["epochs"]) == (8, 0.8, 20)
    assert (first.config["total_steps"], second.config["total_steps"]) == (4096, 2048)
    assert [run.meta["status"] for run in runs.values()] == ["finished", "finished"]
    assert first.meta["spec"]["action"]["kind"] == "discrete"


def test_a_run_of_rl_zoo_says_the_same_before_it_has_a_model(zoo_run):
    """-1 in args.yml is no budget, and a schedule is told as it was typed."""
    before = {run.name: run.history.config for run in find.load_all(zoo_run).runs}
    for path in zoo_run.rglob("*.zip"):
        path.unlink()
    for run in find.load_all(zoo_run).runs:
        whole, now = before[run.name], run.history.config
        assert now["total_steps"] == whole["total_steps"]
        assert (now["algo"]["clip"], now["algo"]["lr"]) == (whole["algo"]["clip"], whole["algo"]["lr"])
        assert "status" not in run.history.meta
