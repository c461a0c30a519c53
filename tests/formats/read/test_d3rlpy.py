"""Is a folder of d3rlpy one run, with its steps, losses and settings under the right names? d3rlpy wrote them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from relab.formats.read import bare_csv, d3rlpy_folder, find
from relab.formats.read.source import Source
from relab.health.view import View
from relab.record.history import History

FIXTURES = Path(__file__).parent / "fixtures" / "d3rlpy"
CQL, IQL, DQN = "cql_20260101000000", "iql_20260101000100", "dqn_20260101000200"


def load(folder: Path) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return {run.name: run.history for run in loaded.runs}


@pytest.fixture(scope="module")
def runs() -> dict[str, History]:
    return load(FIXTURES)


def test_a_folder_is_one_run_and_nothing_is_passed_over(runs):
    assert sorted(runs) == [CQL, DQN, IQL]
    assert find.load_all(FIXTURES).unread == []
    assert all(history.problems == [] for history in runs.values())


def test_offline_steps_are_updates_and_online_ones_the_environments(runs):
    assert set(runs[CQL].axes.values()) == {"updates"}
    assert runs[CQL].column("data/updates").values.tolist() == [50.0 * i for i in range(1, 11)]
    assert set(runs[DQN].axes.values()) == {"env_steps"}
    assert "data/updates" not in runs[DQN].columns  # not every step of the environment is one


def test_evaluations_and_returns(runs):
    lines = (FIXTURES / CQL / "environment.csv").read_text().splitlines()
    assert runs[CQL].column("eval/return_det").values.tolist() == [float(line.split(",")[2]) for line in lines]
    assert runs[DQN].mapping["rollout_return"] == "return/mean"
    assert runs[DQN].mapping["evaluation"] == "eval/return_det"
    assert runs[CQL].mapping["td_error"] == "foreign/td_error"  # squared, and of the greedy policy


@pytest.mark.parametrize(
    ("run", "theirs", "ours"),
    [
        (CQL, "td_loss", "value/critic_loss"),
        (CQL, "loss", "foreign/loss"),  # with the conservative part
        (CQL, "conservative_loss", "foreign/conservative_loss"),
        (IQL, "q_loss", "value/critic_loss"),
        (IQL, "critic_loss", "foreign/critic_loss"),  # with the value's
        (IQL, "actor_loss", "foreign/actor_loss"),  # weighted imitation, not minus Q
        (DQN, "loss", "value/critic_loss"),
    ],
)
def test_a_loss_means_what_its_algorithm_means(runs, run, theirs, ours):
    assert runs[run].mapping[theirs] == ours


def test_the_weight_of_cql_is_no_temperature():
    names = d3rlpy_folder.names_for("cql", {}, "updates")
    assert "alpha" not in names
    assert "critic_loss" not in names  # may be negative: it holds the conservative term
    assert names["temp"] == ("optim/temperature", 1.0)


def test_seconds_of_an_update_become_seconds_of_a_row(runs):
    lines = (FIXTURES / CQL / "time_algorithm_update.csv").read_text().splitlines()
    first = float(lines[0].split(",")[2])
    assert runs[CQL].column("time/update_s").values[0] == pytest.approx(50 * first)
    assert runs[CQL].factors["time/update_s"] == 50.0


def test_settings_of_advantage_weights(runs):
    config = runs[IQL].config
    assert config["algo"]["name"] == "iql"
    assert config["algo"]["beta"] == pytest.approx(1 / 3)  # weight_temp 3 is its inverse
    assert (config["foreign"]["max_weight"], config["foreign"]["expectile"]) == (100.0, 0.7)
    assert View(runs[IQL], IQL).algo == "iql"
    assert "beta" not in runs[CQL].config["algo"]


def test_awac_calls_beta_lam(tmp_path):
    folder = _copy(tmp_path, IQL)
    params = {"observation_shape": [3], "action_size": 1, "config": {"type": "awac", "params": {"lam": 0.5}}}
    (folder / "params.json").write_text(json.dumps(params))
    (history,) = load(folder).values()
    assert history.config["algo"] == {"name": "awac", "beta": 0.5}  # and no lambda of GAE
    assert View(history, "a").algo == "awr"


def test_actions_by_the_kind_of_algorithm(runs):
    assert runs[CQL].meta["spec"]["action"] == {"kind": "discrete", "dim": 1, "n": [2]}
    assert runs[IQL].meta["spec"]["action"] == {"kind": "continuous", "dim": 1, "n": []}


def test_gradients_stay_foreign_columns_that_no_rule_takes_for_a_policys_spread(runs):
    names = [name for name in runs[IQL].columns if "_grad" in name]
    assert len(names) == 4 * 13
    assert all(name.startswith("foreign/") for name in names)
    assert "foreign/policy._mu.bias_grad_std" in names  # `.../std` would be read as the policy's


def test_a_run_without_its_settings_is_known_by_its_gradients(tmp_path):
    folder = _copy(tmp_path, IQL)
    (folder / "params.json").unlink()
    (history,) = load(folder).values()
    assert history.source == "d3rlpy"
    assert history.mapping["environment"] == "eval/return_det"
    assert history.mapping["q_loss"] == "foreign/q_loss"  # whose, nobody says


def test_the_first_version_names_its_algorithm_elsewhere(tmp_path):
    folder = _copy(tmp_path, CQL)
    (folder / "params.json").write_text(json.dumps({"algorithm": "DiscreteCQL", "observation_shape": [4],
                                                    "action_size": 2, "gamma": 0.9}))  # fmt: skip
    (history,) = load(folder).values()
    assert history.config["algo"] == {"name": "cql", "gamma": 0.9}
    assert history.meta["spec"]["action"]["n"] == [2]


def test_a_cut_line_and_a_strange_one_are_left_out_and_said(tmp_path):
    path = tmp_path / "loss.csv"
    path.write_text("1,10,0.5\n2,20,oops\n3,30,nan\n4,40,0.2")
    history = d3rlpy_folder.start(Source("d3rlpy", tmp_path))
    points = bare_csv.read(history, path, 3)
    assert points.steps.tolist() == [10, 30]
    assert points.values[1] != points.values[1]  # a NaN is a finding, not a gap
    assert [problem.line for problem in history.problems] == [None, 2]


def test_a_second_fit_into_the_same_folder_supersedes_the_first(tmp_path):
    folder = _copy(tmp_path, CQL)
    with open(folder / "loss.csv", "a") as file:
        file.write("1,50,9.0\n2,100,8.0\n")
    (history,) = load(folder).values()
    assert history.column("foreign/loss").values.tolist() == [9.0, 8.0]
    assert any("superseded" in problem.message for problem in history.problems)


def _copy(tmp_path: Path, name: str) -> Path:
    return Path(shutil.copytree(FIXTURES / name, tmp_path / name))


@pytest.mark.parametrize("step", ["inf", "nan", "1e300", "0.5"])
def test_gradients_at_a_step_that_is_none_are_left_out(tmp_path: Path, step: str):
    shutil.copytree(FIXTURES / CQL, tmp_path / CQL)
    file = next((tmp_path / CQL).glob("*_fc.bias_grad.csv"))
    lines = file.read_text().splitlines()
    cells = lines[1].split(",")
    file.write_text("\n".join([lines[0], ",".join([cells[0], step, *cells[2:]]), *lines[2:]]) + "\n")
    (history,) = load(tmp_path).values()
    mine = [c for name, c in history.columns.items() if "_fc.bias_grad" in name]
    assert mine
    assert all(len(c.values) == len(lines) - 2 for c in mine)
