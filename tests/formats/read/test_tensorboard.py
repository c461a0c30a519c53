"""Do TensorBoard folders become the right runs, with the right points, settings and warnings?"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find, tensorboard, tfevents
from relab.record.history import History
from where import ROOT

FIXTURES = Path(__file__).parent / "fixtures" / "tensorboard"
CORPUS = ROOT.parent / "shared" / "corpus"


def runs(folder: Path) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return {run.name: run.history for run in loaded.runs}


def only(folder: Path) -> History:
    (run,) = runs(folder).values()
    return run


def test_two_calls_of_learn_are_two_runs() -> None:
    by_name = runs(FIXTURES / "sb3")
    assert sorted(by_name) == ["PPO_1", "PPO_2"]
    run = by_name["PPO_2"]
    assert run.source == "tensorboard"
    assert run.problems == []
    assert run.column("return/mean_100").values.tolist() == [20.0 + 5 * i for i in range(12)]
    assert run.column("return/mean_100").steps.tolist() == [2048 * (i + 1) for i in range(12)]


def test_sb3_signs_and_scales() -> None:
    run = runs(FIXTURES / "sb3")["PPO_1"]
    assert run.column("policy/entropy").values == pytest.approx([0.69 - 0.01 * i for i in range(12)], abs=1e-6)
    assert run.column("value/loss").values[0] == 4.0  # SB3's 8.0 has no 1/2
    assert math.isnan(run.column("policy/kl").values[3])
    assert run.mapping["train/entropy_loss"] == "policy/entropy"
    assert "foreign/custom/_b_tag" in run.columns


def test_names_of_sb3_are_sb3s_only_where_it_wrote_them(tmp_path: Path) -> None:
    """Another program's train/value_loss has no factor that anybody knows of."""
    with tfevents.Writer(tmp_path) as writer:
        writer.scalar("train/value_loss", 8.0, 1)
    assert only(tmp_path).column("value/loss").values.tolist() == [8.0]


def test_values_of_cleanrls_first_critic_are_its_q(tmp_path: Path) -> None:
    folder = tmp_path / "Pendulum-v1__sac_continuous_action__1__1690000000"
    with tfevents.Writer(folder) as writer:
        for tag, value in (("losses/qf1_values", -40.0), ("losses/qf2_values", -41.0), ("losses/td_loss", 2.0)):
            writer.scalar(tag, value, 100)
    run = only(tmp_path)
    assert run.column("value/q_mean").values.tolist() == [-40.0]
    assert run.column("foreign/losses/qf2_values").values.tolist() == [-41.0]


def test_a_continued_folder_is_one_run() -> None:
    by_name = runs(FIXTURES / "continued")
    assert list(by_name) == ["PPO_1"]
    run = by_name["PPO_1"]
    assert run.column("return/mean_100").steps.tolist() == [2048 * (i + 1) for i in range(10)]
    assert [(e["kind"], e["step"]) for e in run.events] == [("resume", 7 * 2048)]


def test_a_given_folder_does_not_reach_its_neighbour() -> None:
    assert len(only(FIXTURES / "continued" / "PPO_2").column("return/mean_100").steps) == 4


def test_a_gap_keeps_folders_apart(tmp_path: Path) -> None:
    for name, steps in (("A_1", range(0, 100, 10)), ("A_2", range(150, 200, 10))):
        with tfevents.Writer(tmp_path / name, wall=1.7e9 + steps[0]) as writer:
            for step in steps:
                writer.scalar("x", 1.0, step, wall=1.7e9 + step)
    assert sorted(runs(tmp_path)) == ["A_1", "A_2"]


def test_after_a_restart_the_later_file_counts() -> None:
    run = only(FIXTURES / "rewound")
    steps, values = run.column("return/mean_100")
    assert steps.tolist() == [2048 * (i + 1) for i in range(12)]
    assert values.tolist() == [20.0 + 5 * i for i in range(12)]
    assert [p.message for p in run.problems] == [
        "steps go back to 12288: 18 earlier points of 6 tags superseded by this file"
    ]
    assert [e["kind"] for e in run.events] == ["resume"]


def test_a_start_from_nothing_is_no_resume(tmp_path: Path) -> None:
    for k, last in enumerate((50, 80)):
        with tfevents.Writer(tmp_path, wall=1.7e9 + 1000 * k, suffix=f"h.{k}.0") as writer:
            for step in range(10, last, 10):
                writer.scalar("x", float(k), step, wall=1.7e9 + 1000 * k + step)
    run = only(tmp_path)
    assert [(e["kind"], e["step"]) for e in run.events] == [("start", 10)]
    assert set(run.column("foreign/x").values) == {1.0}


def test_steps_of_another_kind_keep_their_own_axis() -> None:
    run = only(FIXTURES / "two_axes")
    assert run.axes["foreign/multi_eval/survival"] == "iteration"
    assert run.column("foreign/multi_eval/survival").steps.tolist() == [8, 16, 24]
    assert {axis for name, axis in run.axes.items() if "survival" not in name} == {"env_steps"}
    assert "taken as iterations" in run.problems[0].message


def test_a_tag_that_stopped_early_is_no_other_axis(tmp_path: Path) -> None:
    with tfevents.Writer(tmp_path, wall=1.7e9) as writer:
        for step in range(1000):
            writer.scalar("return", 1.0, step, wall=1.7e9 + step)
            if step < 20:
                writer.scalar("warmup", 1.0, step, wall=1.7e9 + step)
    run = only(tmp_path)
    assert set(run.axes.values()) == {"env_steps"}
    assert run.problems == []


def test_hparams_of_the_sub_folder_are_the_runs_settings() -> None:
    run = only(FIXTURES / "with_hparams")
    assert run.config == {
        "algo": {"lr": 3e-4, "gamma": 0.98, "norm_adv": True},
        "env": {"name": "CartPole-v1"},
        "seed": 5,
    }
    assert (run.meta["seed"], run.meta["status"], run.events) == (5, "finished", [])


def test_scalars_stored_as_tensors_and_what_is_no_number() -> None:
    run = only(FIXTURES / "tensors")
    assert run.column("return/mean").values.tolist() == [1.5 * k for k in range(6)]
    assert run.meta["not_read"] == ["picture", "weights"]
    assert run.meta["texts"] == {"note/text_summary": "a text"}


def test_train_and_eval_folders_are_one_run() -> None:
    run = only(FIXTURES / "parts")
    assert run.column("eval/return_det").steps.tolist() == [0, 100, 200, 300, 400]
    assert "value/loss" in run.columns


def test_folders_of_add_scalars_belong_to_their_run() -> None:
    run = only(FIXTURES / "with_scalars")
    assert run.column("foreign/losses/both/a").values.tolist() == [0.0, 1.0, 2.0]
    assert run.column("foreign/losses/both/b").values.tolist() == [0.0, 10.0, 20.0]
    assert "return/mean_100" in run.columns


def test_add_scalars_as_torch_writes_them(tmp_path: Path) -> None:
    """torch puts both into one name: losses_both_a; a folder with another tag is a run of its own."""
    for name, tag in ((".", "return"), ("losses_both_a", "losses/both"), ("losses_b", "other")):
        with tfevents.Writer(tmp_path / name, wall=1.7e9) as writer:
            writer.scalar(tag, 1.0, 1, wall=1.7e9)
    by_name = runs(tmp_path)
    assert sorted(by_name) == ["losses_b", tmp_path.name]
    assert "foreign/losses/both/a" in by_name[tmp_path.name].columns


def test_cleanrl_tells_its_settings_and_metrics() -> None:
    by_name = runs(FIXTURES / "cleanrl")
    one, two = by_name.values()
    assert (one.meta["seed"], two.meta["seed"]) == (1, 2)
    assert one.config["env"] == {"name": "CartPole-v1"}
    assert one.config["algo"]["name"] == "ppo"
    assert one.config["algo"]["lr"] == 0.00025
    assert one.config["algo"]["target_kl"] is None
    assert one.column("policy/entropy").values == pytest.approx([0.69 - 0.01 * i for i in range(1, 9)], abs=1e-6)
    assert one.column("return/mean").steps[:2].tolist() == [512, 512]  # two episodes that ended at one step both count
    assert {"policy/kl", "policy/kl_k1", "policy/clip_share", "optim/lr", "time/sps_mean"} <= set(one.columns)


def test_seeds_of_one_config_are_one_group() -> None:
    from relab.record.state import group_key

    assert len({group_key(run, name) for name, run in runs(FIXTURES / "cleanrl").items()}) == 1


def test_one_file_by_name() -> None:
    (file,) = (FIXTURES / "sb3" / "PPO_1").iterdir()
    assert len(only(file).column("return/mean_100").steps) == 12


def test_an_empty_writer_is_said(tmp_path: Path) -> None:
    with tfevents.Writer(tmp_path / "r"):
        pass
    assert "nothing was logged" in only(tmp_path).problems[0].message


def test_two_writers_side_by_side_lose_nothing(tmp_path: Path) -> None:
    """The same tag from two writers of one process at the same time is no restart."""
    for k in range(2):
        with tfevents.Writer(tmp_path, wall=1.7e9 + k, suffix=f"h.7.{k}") as writer:
            for step in range(10):
                writer.scalar("x", float(k), 10 * step + k, wall=1.7e9 + step + k / 2)
    steps, values = only(tmp_path).column("foreign/x")
    assert len(steps) == 20
    assert np.all(np.diff(steps) >= 0)
    assert values.sum() == 10


def test_a_restart_inside_of_one_file(tmp_path: Path) -> None:
    with tfevents.Writer(tmp_path) as writer:
        for time, step in enumerate([10, 20, 30, 40, 20, 30, 40, 50]):
            writer.scalar("x", float(time), step, wall=1.7e9 + time)
    run = only(tmp_path)
    assert run.column("foreign/x").values.tolist() == [0.0, 4.0, 5.0, 6.0, 7.0]
    assert "go back within a file" in run.problems[0].message


def test_links_are_not_followed(tmp_path: Path) -> None:
    inner, outside = tmp_path / "in", tmp_path / "out"
    shutil.copytree(FIXTURES / "sb3" / "PPO_1", outside)
    shutil.copytree(FIXTURES / "sb3" / "PPO_2", inner / "PPO_2")
    (inner / "eval").symlink_to(outside)
    (inner / "PPO_2" / "eval").symlink_to(outside)
    assert tensorboard.event_files(inner / "eval") == []
    assert list(runs(inner)) == ["PPO_2"]
    assert not any("eval" in name for name in runs(inner)["PPO_2"].mapping)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus")
def test_segments_of_the_corpus() -> None:
    """Seven files of one process are one run without a resume; the evaluations count iterations."""
    run = only(CORPUS / "fish" / "dev_v38_gate_relax_ne_stage_v1_full" / "tb" / "PPO_1")
    assert run.column("policy/entropy").steps[[0, -1]].tolist() == [16384 * 2, 983040]
    assert run.events == []
    assert run.problems == []
