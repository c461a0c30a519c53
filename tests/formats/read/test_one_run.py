"""Are all files of one run read as one run, and is what its folders are called used where nothing better says it?"""

from __future__ import annotations

import doctest
import json
import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab import cli
from relab.formats.read import find, path_names
from relab.formats.read.tfrecords import pack
from relab.formats.write.convert import convert
from relab.record.clock import took
from where import ROOT

FIXTURES = ROOT / "tests" / "formats" / "read" / "fixtures" / "sb3"
PPO = FIXTURES / "ppo_cartpole_seed0"
MONITOR = '#{"t_start": 1690000000.0, "env_id": "CartPole-v1"}\nr,l,t\n20.0,20,0.1\n30.0,30,0.2\n40.0,40,0.3\n'


def events(folder: Path, aside: Path) -> None:
    """What Stable-Baselines3 logs as an event file of that folder, and nothing else of the run."""
    convert(PPO / "progress.csv", "tensorboard", aside, "original")
    folder.mkdir(parents=True, exist_ok=True)
    for path in aside.rglob("*tfevents*"):
        shutil.copy(path, folder)


def only(root: Path) -> find.Loaded:
    (run,) = find.load_all(root).runs
    return run


def test_event_files_beside_evaluations_and_a_model_are_one_run(tmp_path):
    folder = tmp_path / "logs" / "CartPole-v1_1"
    events(folder, tmp_path / "aside")
    shutil.copy(PPO / "evaluations.npz", folder)
    shutil.copy(next(PPO.glob("*.zip")), folder / "model.zip")
    history, whole = only(tmp_path / "logs").history, only(PPO).history
    assert history.source == "sb3"
    assert history.config["algo"]["lr"] == whole.config["algo"]["lr"] == 3e-4
    assert len(history.evals) == len(whole.evals) > 0
    for name in ("policy/kl", "policy/entropy", "value/loss", "return/mean_100"):
        np.testing.assert_allclose(history.column(name).values, whole.column(name).values, rtol=1e-6)


def test_a_model_beside_an_event_file_gives_its_settings(tmp_path):
    events(tmp_path / "logs", tmp_path / "aside")
    shutil.copy(next(PPO.glob("*.zip")), tmp_path / "logs" / "model.zip")
    history = only(tmp_path / "logs").history
    assert (history.config["algo"]["clip"], history.meta["seed"]) == (0.2, 0)
    assert history.column("policy/kl").values[0] == pytest.approx(only(PPO).history.column("policy/kl").values[0])


def test_the_only_event_files_below_are_the_runs_and_two_folders_of_them_are_two_runs(tmp_path):
    events(tmp_path / "logs" / "tb" / "PPO_1", tmp_path / "aside")
    shutil.copy(PPO / "evaluations.npz", tmp_path / "logs")
    assert "policy/kl" in only(tmp_path / "logs").history.columns
    events(tmp_path / "logs" / "tb" / "PPO_2", tmp_path / "beside")
    with open(next((tmp_path / "logs" / "tb" / "PPO_2").iterdir()), "ab") as file:
        file.write(pack(b"\x09" + bytes(8)))  # else it would be a copy
    assert len(find.load_all(tmp_path / "logs").runs) == 3


def test_a_monitor_file_with_a_name_is_a_run(tmp_path):
    for name, second in (("first", "0"), ("second", "1")):
        (tmp_path / f"{name}.monitor.csv").write_text(MONITOR.replace("1690000000", f"169000000{second}"))
    runs = find.load_all(tmp_path).runs
    assert [(run.name, run.source.format) for run in runs] == [
        ("first.monitor.csv", "sb3"),
        ("second.monitor.csv", "sb3"),
    ]
    history = runs[0].history
    assert history.column("return/mean").values.tolist() == [20.0, 30.0, 40.0]
    assert history.column("return/mean").steps.tolist() == [20, 50, 90]
    assert history.meta["spec"]["env"] == "CartPole-v1"
    assert only(tmp_path / "second.monitor.csv").history.source == "sb3", "also where the file itself is given"


def test_a_named_monitor_beside_the_rest_of_a_run_belongs_to_it_and_evaluation_episodes_are_left_out(tmp_path):
    shutil.copy(PPO / "evaluations.npz", tmp_path)
    (tmp_path / "train.monitor.csv").write_text(MONITOR)
    (tmp_path / "eval.monitor.csv").write_text(MONITOR)
    history = only(tmp_path).history
    assert history.column("return/mean").values.tolist() == [20.0, 30.0, 40.0]
    assert [p.file for p in history.problems] == ["eval.monitor.csv"]


def test_what_folders_are_called_is_used_and_says_so(tmp_path):
    folder = tmp_path / "logs" / "ppo" / "Acrobot-v1_1"
    folder.mkdir(parents=True)
    (folder / "progress.csv").write_text("step,reward\n1,2.0\n2,3.0\n")
    history = only(tmp_path / "logs").history
    assert (history.config["env"]["name"], history.config["algo"]["name"]) == ("Acrobot-v1", "ppo")
    assert history.meta["spec"]["horizon"] == 500, "the table of levels is asked with it"
    assert history.provenance == dict.fromkeys(("env.name", "algo.name"), "from the folder's name")


def test_a_monitor_file_alone_tells_how_long_a_run_took(tmp_path):
    (tmp_path / "monitor.csv").write_text(MONITOR)
    assert took(only(tmp_path).history) == 0.3
    (tmp_path / "monitor.csv").write_text(MONITOR.replace("r,l,t", "r,l,x"))
    assert math.isnan(took(only(tmp_path).history))
    shutil.copy(PPO / "progress.csv", tmp_path)
    (tmp_path / "monitor.csv").write_text(MONITOR)
    assert took(only(tmp_path).history) == took(find.load_all(PPO / "progress.csv").runs[0].history)


@pytest.mark.parametrize(("name", "title"), [("ppo_x", "PPO (by its name) on CartPole-v1"), ("sac_x", "CartPole-v1")])
def test_an_algorithm_that_a_name_alone_tells_is_marked_or_not_taken(tmp_path, capsys, name, title):
    """SAC has no discrete actions, CartPole has."""
    folder = tmp_path / name
    folder.mkdir()
    (folder / "monitor.csv").write_text(MONITOR)
    history = only(tmp_path).history
    assert history.config.get("algo", {}).get("name") == ("ppo" if name == "ppo_x" else None)
    assert cli.main(["report", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["first"]["task"] == title


def test_what_the_files_say_counts_more_than_the_folders(tmp_path):
    folder = tmp_path / "dqn" / "Pendulum-v1_1"
    folder.mkdir(parents=True)
    (folder / "progress.csv").write_text("step,reward,env,algo\n1,2.0,CartPole-v1,sac\n2,3.0,CartPole-v1,sac\n")
    history = only(tmp_path).history
    assert (history.config["env"]["name"], history.config["algo"]["name"]) == ("CartPole-v1", "sac")
    assert not history.provenance


@pytest.mark.parametrize(
    ("path", "env", "algo"),
    [
        ("runs/Hopper-v4__td3_continuous_action__1__1690000000", "Hopper-v4", "td3_continuous_action"),
        ("rl-trained-agents/sac/PandaReach-v3_2", "PandaReach-v3", "sac"),
        ("logs/ppo/BreakoutNoFrameskip-v4_1", "BreakoutNoFrameskip-v4", "ppo"),
        ("tb/MiniGrid-DoorKey-5x5-v0-ppo-seed3", "MiniGrid-DoorKey-5x5-v0", "ppo"),
        ("my-course/lesson-v2/logs", None, None),
        ("applications/pposition/x", None, None),
    ],
)
def test_names_of_folders(path, env, algo):
    names = path_names.names_in(Path(path).parts)
    assert (names.get("env.name"), names.get("algo.name")) == (env, algo)


def test_examples_in_the_docs():
    assert doctest.testmod(path_names).failed == 0
