"""Is a group called alike in every command, and by what sets it apart?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import relab
from relab import cli
from relab.config.views import canonical
from relab.formats.write.convert import convert
from relab.record.history import History
from relab.record.state import seed_of
from relab.runs import seeds
from relab.runs.index import Index
from relab.runs.naming import Nameable, differing, labels
from report.made import write_run


def group(*names: str, env: str = "", **config) -> Nameable:
    return Nameable({key.replace("__", "."): value for key, value in config.items()}, names, env)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        ([group("bonus-s0", "bonus-s1", lr=1), group("plain-s0", "plain-s1", lr=1)], ["bonus", "plain"]),
        ([group("calm-lynx", "brave-otter", algo__lr=0.001), group("shy-hare", "red-fox", algo__lr=0.0003)],
         ["lr=0.001", "lr=0.0003"]),
        # one difference under two keys is said once
        ([group("a", "b", algo__lr=0.001, foreign__learning_rate=0.001),
          group("c", "d", algo__lr=0.0003, foreign__learning_rate=0.0003)], ["lr=0.001", "lr=0.0003"]),
        # names that some share: what differs among those alone
        ([group("ok-s0", lr=0.1, total_steps=10), group("ok-s1", lr=0.1, total_steps=20), group("fast-s0", lr=0.5)],
         ["ok, total_steps=10", "ok, total_steps=20", "fast"]),
        ([group("a-s0", lr=1), group("cut-s0", "long-s0", lr=2), group("b-s0", lr=3)], ["a", "cut + long", "b"]),
        # no environment and no setting tells it apart: the folder of its own does
        ([group("a/run_1", "a/run_2", algo__name="ppo"), group("b-s0", "b-s1", env="Ant-v4", algo__name="ppo")],
         ["a", "b"]),
        ([group("倒立摆/种子_0", "倒立摆/种子_1", algo__name="ppo"), group("ant/seed_0", env="Ant-v4", algo__name="ppo")],
         ["倒立摆", "ant"]),
        # neither algorithm nor environment is known: their folder and the setting, not a name with a hash as well
        ([group("torus/b0p5_s0_c42bf18b", b=0.5), group("torus/b0_s0_b9094ba9", b=0), group("ant-s0", algo__name="ppo")],
         ["torus, b=0.5", "torus, b=0", "ant"]),
        # what is no choice of anybody's does not name a group
        ([group("a", "b", run_name="x1", lr=0.1), group("c", "d", run_name="x2", lr=0.2)], ["lr=0.1", "lr=0.2"]),
        # two environments: what differs within each
        ([group("a", "b", env="CartPole-v1", algo__name="ppo", algo__lr=0.1),
          group("c", "d", env="CartPole-v1", algo__name="ppo", algo__lr=0.2),
          group("e", "f", env="Pendulum-v1", algo__name="ppo", algo__lr=0.2)],
         ["ppo on CartPole-v1, lr=0.1", "ppo on CartPole-v1, lr=0.2", "ppo on Pendulum-v1"]),
        # nothing that is known sets them apart: their runs do, and no hash
        ([group("a", "b", algo__name="ppo"), group("c", "d", algo__name="ppo")], ["ppo (a)", "ppo (c)"]),
        ([group("a", "b", env="CartPole-v1", algo__name="ppo")], ["ppo on CartPole-v1"]),
        ([group("only")], ["only"]),
        # a setting that a log does not say names nothing
        ([group("a", "b", env="x", algo__name="ppo", width=2), group("c", "d", env="x", algo__name="ppo")],
         ["width=2", "ppo on x"]),
        # names that a sweep made are for the disk
        ([group("lr0p1_s0_731489ca", "lr0p1_s1_731489ca", lr=0.1), group("lr0p2_s0_1d6c1c52", "lr0p2_s1_1d6c1c52", lr=0.2)],
         ["lr=0.1", "lr=0.2"]),
        # values that fill a page are told by where they are unlike, line breaks are blanks
        ([group("a", "b", env="x", code=f"{'x + ' * 99}1"), group("c", "d", env="x", code=f"{'x + ' * 99}2")],
         ["code=…x + x + x + 1", "code=…x + x + x + 2"]),
        ([group("a", "b", env="x", act="one\n two"), group("c", "d", env="x", act="one\n three")],
         ["act=one two", "act=one three"]),
        # keys with one end are told by as much as they need, and not by relab's own word for what it does not know
        ([group("a", "b", foreign__actor__lr=1, foreign__critic__lr=1), group("c", "d", foreign__actor__lr=2, foreign__critic__lr=2),
          group("e", "f", foreign__actor__lr=1, foreign__critic__lr=2)],
         ["actor.lr=1, critic.lr=1", "actor.lr=2, critic.lr=2", "actor.lr=1, critic.lr=2"]),
        # runs that are a file each
        ([group("a_seed0.csv", "a_seed1.csv", lr=1), group("b_seed0.csv", "b_seed1.csv", lr=2)], ["a", "b"]),
        ([group("exp/run_1", "exp/run_2", lr=1), group("exp/run_3", "exp/run_4", lr=2)], ["exp, lr=1", "exp, lr=2"]),
    ],
)  # fmt: skip
def test_names(groups, expected):
    assert labels(groups) == expected


def test_equal_values_are_no_difference_and_the_one_that_differs_comes_first():
    a = {"foreign.n": 1, "foreign.size": [64, 64], "foreign.x": "3e-4", "foreign.run_name": "a", "env.horizon": 5, "lr": 1}
    b = {"foreign.n": 1.0, "foreign.size": (64, 64), "foreign.x": 3e-4, "foreign.run_name": "b", "env.horizon": 6, "lr": 2}
    assert differing([a, b]) == ["lr", "env.horizon", "foreign.run_name"]
    assert canonical(True) != canonical(1)


def test_one_name_in_every_command(tmp_path, capsys):
    runs = tmp_path / "runs"
    for lr in (0.001, 0.01):
        for seed in range(5):
            write_run(runs / f"r{lr}x{seed}y", [20.0, 100.0 + seed], seed, config={"algo": {"name": "ppo", "lr": lr}})

    def out(*words: str) -> str:
        assert cli.main([*words]) == 0
        return capsys.readouterr().out

    called = {"lr=0.001", "lr=0.01"}
    assert {group.label for group in relab.load(runs).groups} == called
    assert {group.title for group in relab.load(runs).groups} == {f"{name} · 5 seeds" for name in called}
    (task,) = json.loads(out("compare", str(runs), "--json"))["tasks"]
    assert {variant["label"] for variant in task["variants"]} == called
    assert all(f"  {name}: ppo, 5 seeds: " in out("examine", str(runs)) for name in called)
    page = out("report", str(runs), "--json", "--out", str(Path(tmp_path) / "page.html"))
    assert all(name in page for name in called)


def written(folder: Path, seed: int, level: float = 50.0, **settings: object) -> None:
    """A log of another tool whose folder says nothing."""
    folder.mkdir(parents=True)
    rows = [f"{500 * i},{level + i + seed}" for i in range(1, 9)]
    (folder / "log.csv").write_text("\n".join(["global_step,reward", *rows, ""]))
    (folder / "config.json").write_text(json.dumps({"env": "CartPole-v1", "algo": "ppo", "seed": seed, **settings}))


@pytest.mark.parametrize(
    ("one", "other"),
    [({"lr": 1e-3}, {"lr": "1e-3"}), ({"target_kl": None}, {}), ({"target_kl": None}, {"target_kl": "None"}),
     ({"n_steps": 128}, {"n_steps": 128.0}), ({"net_arch": [64, 64]}, {"net_arch": "(64, 64)"}),
     ({"norm_adv": True}, {"norm_adv": "True"}), ({"wrap": [{"n": 4}]}, {"wrap": [{"n": 4.0}]})],
)  # fmt: skip
def test_settings_without_a_difference_are_one_config(tmp_path, one, other):
    """Two groups of them had one name, and no key that differs."""
    written(tmp_path / "p", 0, **one)
    written(tmp_path / "q", 1, **other)
    assert [group.title for group in relab.load(tmp_path).groups] == ["ppo on CartPole-v1 · 2 seeds"]


@pytest.mark.parametrize(("one", "other"), [(0.99, 0.99000001), (True, 1), (0, False), (None, 0.1)])
def test_settings_with_a_difference_are_two(tmp_path, one, other):
    for i, name in enumerate("pqxy"):
        written(tmp_path / name, i, gamma=one if i < 2 else other)
    groups = relab.load(tmp_path).groups
    assert len({group.label for group in groups}) == len(groups) == 2
    assert all(group.label.startswith("gamma=") for group in groups)


def test_tries_that_nothing_but_their_numbers_name_are_one_config(tmp_path):
    for i in range(4):
        written(tmp_path / f"r{i:02d}", i % 2, 50.0 + i)
    assert len(relab.load(tmp_path).groups) == 1


def test_the_name_of_the_experiment_tells_same_seeds_with_other_numbers_apart(tmp_path):
    for i in range(4):
        written(tmp_path / f"r{i:02d}", i % 2, 50.0 + 9 * (i // 2), exp_name="plain" if i < 2 else "bonus")
    groups = relab.load(tmp_path).groups
    assert [(group.label, [run.name for run in group.runs]) for group in groups] == [
        ("exp_name=plain", ["r00", "r01"]), ("exp_name=bonus", ["r02", "r03"])]  # fmt: skip


@pytest.mark.parametrize("to", ["wandb", "mlflow"])
def test_a_display_name_tells_runs_apart_whose_folders_are_ids(tmp_path, to):
    for i, name in enumerate(("plain", "bonus")):
        for seed in range(2):
            written(tmp_path / "logs" / f"{name}_seed{seed}", seed, 50.0 + 9 * i)
    convert(tmp_path / "logs", to, tmp_path / "out")
    for i, folder in enumerate(sorted((tmp_path / "out").glob("offline-*"))):
        folder.rename(folder.with_name(f"offline-run-20260101_12000{i}-abcdefg{i}"))  # as W&B itself names them
    assert {group.title for group in relab.load(tmp_path / "out").groups} == {"plain · 2 seeds", "bonus · 2 seeds"}


def test_the_seed_of_a_display_name_is_a_seed():
    run = History(Path("/nowhere"), meta={"name": "ppo_s3"}, source="wandb")
    assert seed_of(run, "offline-run-20260101_120000-abcdefgh") == 3


def test_the_dashboard_has_the_same_groups_under_the_same_names(tmp_path):
    """It took 0.001 and "1e-3" for two configs, and named settings in the order of its index."""
    logs, every = tmp_path / "logs", [({"lr": 1e-3}, {"lr": "1e-3"}), ({"lr": 1e-4}, {"lr": 1e-4})]
    for i, both in enumerate(every):
        for gamma in (0.9, 0.99):
            for seed, settings in enumerate(both):
                written(logs / f"r{i}{gamma}{seed}y", seed, 50.0 * i, **settings, gamma=gamma)
    index = Index(logs)
    index.refresh()
    shown = {(group.label, len(group.runs)) for group in seeds.whole(index)}
    index.close()
    assert shown == {(group.label, len(group.runs)) for group in relab.load(logs).groups}
    assert ("lr=0.001, gamma=0.9", 2) in shown
