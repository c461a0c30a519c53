"""Do the settings beside a metric file become relab's, and do runs of one config stay together?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relab import logger
from relab.formats.read import find
from relab.record.history import History
from relab.record.state import group_key

ROWS = "step,reward\n1,2\n2,3\n"


def read(folder: Path, **files: str) -> History:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "progress.csv").write_text(ROWS)
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (run,) = find.load_all(folder).runs
    return run.history


@pytest.mark.parametrize(
    "name",
    ["config_dot_json", "params_dot_json", "args_dot_json", "flags_dot_json", "progress_dot_json", "variant_dot_json"],
)
def test_json(tmp_path, name):
    settings = {"learning_rate": 1e-3, "gamma": 0.9, "seed": 4, "env_id": "Ant-v5", "algo": "TD3", "tau": 0.005}
    history = read(tmp_path / "a", **{name: json.dumps(settings)})
    assert history.config["algo"] == {"lr": 1e-3, "gamma": 0.9, "name": "td3"}
    assert history.config["foreign"] == {"tau": 0.005}
    assert history.meta["seed"] == 4
    assert history.meta["spec"]["env"] == "Ant-v5"


@pytest.mark.parametrize(
    "name", ["config_dot_yaml", "config_dot_yml", "hparams_dot_yaml", "_dot_hydra__config_dot_yaml"]
)
def test_yaml_has_the_numbers_of_yaml_1_2(tmp_path, name):
    history = read(tmp_path / "a", **{name: "lr: 3e-4\nseed: 1\nmode: on\n"})
    assert history.config == {"algo": {"lr": 3e-4}, "seed": 1, "foreign": {"mode": "on"}}


def test_nested_keys_are_known_by_their_last_part_unless_two_say_the_same(tmp_path):
    text = "optim:\n  lr: 1e-3\nactor:\n  gamma: 0.9\ncritic:\n  gamma: 0.99\nenv:\n  name: Hopper-v5\n"
    history = read(tmp_path / "a", config_dot_yaml=text)
    assert history.config["algo"] == {"lr": 1e-3}
    assert history.config["foreign"] == {"actor.gamma": 0.9, "critic.gamma": 0.99}
    assert history.meta["spec"]["env"] == "Hopper-v5"


def test_where_and_when_a_run_was_written_is_no_setting(tmp_path):
    keys = []
    for seed in (0, 1):
        text = json.dumps(
            {"lr": 0.1, "seed": seed, "env": {"seed": seed}, "logdir": f"x/{seed}", "run_name": f"r{seed}"}
        )
        history = read(tmp_path / f"r{seed}", config_dot_json=text)
        keys.append(group_key(history, f"r{seed}"))
        assert history.meta["places"]["logdir"] == f"x/{seed}"
    assert keys[0] == keys[1]


def test_a_config_that_cannot_be_read_is_reported_and_the_next_one_used(tmp_path):
    history = read(tmp_path / "a", config_dot_json='{"lr": ', params_dot_json='{"lr": NaN, "gamma": 0.5}')
    assert history.config["algo"]["gamma"] == 0.5
    assert [problem.file for problem in history.problems] == ["config.json"]


@pytest.mark.parametrize("text", ["[1, 2]", "nonsense", '{"a": ' * 3000, "\x00"])
def test_strange_configs_are_problems(tmp_path, text):
    history = read(tmp_path / "a", config_dot_json=text)
    assert history.problems[0].file == "config.json"
    assert len(history.column("return/mean").steps) == 2


def test_a_config_outside_of_the_folder_is_not_read(tmp_path):
    (tmp_path / "secret.json").write_text('{"lr": 5}')
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "config.json").symlink_to(tmp_path / "secret.json")
    history = read(tmp_path / "a")
    assert history.config == {}
    assert "must lie inside" in history.problems[0].message


def test_without_a_config_runs_belong_together_by_name(tmp_path):
    for name in ("x_seed0", "x_seed1", "y_seed0"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "progress.csv").write_text("step,reward,env\n1,2,Ant\n2,3,Ant\n")
    keys = {run.name: group_key(run.history, run.name) for run in find.load_all(tmp_path).runs}
    assert keys["x_seed0"] == keys["x_seed1"] != keys["y_seed0"]


def test_every_key_leads_to_a_setting_of_relab():
    from relab.config.ppo import PPO

    fields = set(PPO.__dataclass_fields__)
    for ours in set(logger.KEYS.values()):
        group, _, name = ours.partition(".")
        assert ours in ("seed", "total_steps", "env.name") or (group == "algo" and name in fields)


def test_a_sweep_of_hydra_itself():
    """Job folders 0 to 3 of a multirun: settings from .hydra/config.yaml, two configs of two seeds."""
    loaded = find.load_all(Path(__file__).parent / "fixtures" / "csv" / "hydra")
    assert (loaded.broken, loaded.unread) == ([], [])
    runs = {run.name: run.history for run in loaded.runs}
    assert list(runs) == ["0", "1", "2", "3"]
    assert [run.config["algo"] for run in runs.values()] == [{"lr": lr, "name": "ppo"} for lr in (1e-3, 3e-4)] * 2
    assert [run.meta["seed"] for run in runs.values()] == [0, 0, 1, 1]
    assert len({group_key(run, name) for name, run in runs.items()}) == 2
    assert all(run.config["env"]["name"] == "Ant-v5" and not run.problems for run in runs.values())
