"""Are PufferLib's frames and files read as they were meant?"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from formats.read import make_folder_fixtures as maker
from relab.formats.read import find, pufferlib
from relab.record.history import History
from where import fixtures

FIXTURES = fixtures() / "pufferlib"


def only(path: Path) -> History:
    (run,) = find.load_all(path).runs
    return run.history


def test_frames_become_columns() -> None:
    run = only(FIXTURES / "v3")
    assert run.column("policy/entropy").values.tolist() == pytest.approx([2 - 0.01 * e for e in range(1, 71)])
    assert run.column("return/mean").values.tolist() == [0.5 * e for e in range(2, 71)]
    assert run.column("foreign/environment/score").values[-1] == 70.0
    assert run.column("time/elapsed_s").values[-1] == 70.0
    assert {"policy/kl", "policy/kl_k1", "policy/clip_share", "value/explained_variance"} <= set(run.columns)
    assert set(run.axes.values()) == {"agent_steps"}


def test_steps_are_sharper_than_they_are_shown() -> None:
    """573.4K at epoch 70 leaves 50 steps of doubt; all frames together leave few."""
    steps = only(FIXTURES / "v3").column("data/iteration").steps
    exact = [8192 * e for e in range(71)]
    assert max(abs(a - b) for a, b in zip(steps, exact, strict=True)) <= 70
    frames = pufferlib.frames(maker.puffer_log(70))
    assert pufferlib.sharpen(frames, 8192) == exact


def test_steps_that_do_not_fit_the_epoch_stay_as_shown() -> None:
    """After training PufferLib evaluates: steps go on, epochs do not."""
    text = maker.puffer_log(20) + maker.frame(20, "300.0K", {"entropy": "1.000"}, [])
    assert pufferlib.sharpen(pufferlib.frames(text), 8192)[-2:] == [20 * 8192, 300_000]


def test_a_frame_drawn_again_counts_once() -> None:
    text = maker.puffer_log(3)
    again = text + text[text.rindex("\x1b[0;0H") :]
    assert len(pufferlib.frames(again)) == len(pufferlib.frames(text)) == 4


V4, V5 = FIXTURES / "v4" / "puffer_toy", FIXTURES / "v5" / "puffer_toy"
LOSSES = {"policy/loss", "value/loss", "policy/entropy", "policy/kl", "policy/kl_k1", "policy/clip_share"}


def test_the_json_of_version_4() -> None:
    run = only(V4 / "1700000000000.json")
    assert run.column("return/mean").steps.tolist() == [106496, 311296, 516096, 720896, 819200]  # means, as the values
    assert run.column("return/mean").values.tolist() == [6.5, 19.0, 31.5, 44.0, 60.0]  # the last: after training
    assert run.column("policy/kl").values[-1] == pytest.approx(0.008)
    assert set(run.columns) >= LOSSES | {"time/sps", "time/elapsed_s", "data/iteration", "foreign/perf/rollout"}
    assert run.config["algo"]["lr"] == 0.015
    assert (run.meta["seed"], run.meta["spec"]["env"]) == (73, "puffer_toy")  # not the seed of the section `train`
    assert run.meta["status"] == "finished"
    assert not run.problems


def test_the_losses_of_the_trainer_of_pytorch_have_other_names() -> None:
    native, slowly = only(V4 / "1700000000000.json"), only(V4 / "1700000100000.json")
    assert set(slowly.columns) >= LOSSES
    assert native.mapping["loss/kl"] == slowly.mapping["loss/approx_kl"] == "policy/kl"


def test_the_gpu_and_the_folders_of_a_run_are_no_settings() -> None:
    runs = [run.history for run in find.load_all(V4).runs]
    flat = [{**run.config["foreign"], "slowly": None} for run in runs]
    assert len(flat) == 2
    assert flat[0] == flat[1]
    assert not {"gpu_id", "checkpoint_dir", "log_dir"} & set(flat[0])


def test_the_plan_of_several_gpus_is_that_of_all(tmp_path: Path) -> None:
    args = {**maker.PUFFER_ARGS, "world_size": 2, "metrics": {"agent_steps": [10], "env/score": [1.0]}}
    (tmp_path / "1.json").write_text(json.dumps(args))
    assert only(tmp_path / "1.json").config["total_steps"] == 2 * 819200


def test_a_run_that_has_not_ended_says_so(tmp_path: Path) -> None:
    (tmp_path / "1.json").write_text(json.dumps({**maker.PUFFER_ARGS, "metrics": {}}))
    (problem,) = only(tmp_path / "1.json").problems
    assert "when a run has ended" in problem.message


def test_the_ini_of_version_5() -> None:
    run = only(V5 / "1700000200000.ini")
    json_run = only(V4 / "1700000000000.json")
    assert run.column("return/mean").values.tolist() == json_run.column("return/mean").values.tolist()
    assert run.config["algo"] == json_run.config["algo"]
    assert run.meta["seed"] == 73
    assert not LOSSES & set(run.columns)


def test_the_rows_beside_an_ini_are_read_instead() -> None:
    runs = {run.name: run.history for run in find.load_all(V5).runs}
    assert set(runs) == {"1700000200000.ini", "1700000300000.ini"}
    run = runs["1700000300000.ini"]
    assert len(run.column("return/mean").steps) == 100
    assert set(run.columns) >= LOSSES
    assert set(run.axes.values()) == {"agent_steps"}


def test_times_below_a_second_are_not_minutes() -> None:
    text = maker.frame(1, "8.2K", {}, []).replace("0m 1s", "640ms")
    assert pufferlib.frames(text)[0].numbers["uptime"] == pytest.approx(0.64)


def test_frames_of_version_4_have_shorter_names() -> None:
    losses = {"policy": "0.100", "value": "0.200", "entropy": "0.300", "total": "0.4", "old_kl": "0.5", "kl": "0.600"}
    numbers = pufferlib.frames(maker.frame(1, "8.2K", losses, []))[0].numbers
    assert [pufferlib.NAMES[f"losses/{name}"][0] for name in losses if name != "total"] == [
        "policy/loss", "value/loss", "policy/entropy", "policy/kl_k1", "policy/kl"]  # fmt: skip
    assert numbers["losses/kl"] == 0.6


def test_torn_logs_never_raise(tmp_path: Path) -> None:
    chance, whole = random.Random(0), maker.puffer_log(12).encode()
    path = tmp_path / "train.log"
    for case in range(100):
        data = bytearray(whole[: chance.randrange(len(whole))] if case % 2 else whole)
        for _ in range(20) if data else ():
            data[chance.randrange(len(data))] = chance.randrange(256)
        path.write_bytes(data)
        run = History(tmp_path)
        pufferlib.read_log(run, path, {})
        assert run.columns or run.problems


def test_another_log_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("Epoch 1, loss 0.5\n")
    assert not pufferlib.sniff(find.look(tmp_path))
