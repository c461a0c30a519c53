"""Are PufferLib's frames and files read as they were meant?"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from importers import make_folder_fixtures as maker
from relab.history import History
from relab.importers import find, pufferlib

FIXTURES = Path(__file__).parent / "fixtures" / "pufferlib"


def only(path: Path) -> History:
    (found,) = find.load_all(path).runs
    return found.history


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
    found = pufferlib.frames(maker.puffer_log(70))
    assert pufferlib.sharpen(found, 8192) == exact


def test_steps_that_do_not_fit_the_epoch_stay_as_shown() -> None:
    """After training PufferLib evaluates: steps go on, epochs do not."""
    text = maker.puffer_log(20) + maker.frame(20, "300.0K", {"entropy": "1.000"}, [])
    assert pufferlib.sharpen(pufferlib.frames(text), 8192)[-2:] == [20 * 8192, 300_000]


def test_a_frame_drawn_again_counts_once() -> None:
    text = maker.puffer_log(3)
    again = text + text[text.rindex("\x1b[0;0H") :]
    assert len(pufferlib.frames(again)) == len(pufferlib.frames(text)) == 4


def test_the_json_of_version_4() -> None:
    run = only(FIXTURES / "v4")
    assert run.column("return/mean").steps.tolist() == [0, 1000, 2000]
    assert run.column("policy/entropy").values.tolist() == [1.5, 1.25, 1.0]
    assert run.config == {"env": {"name": "puffer_toy"}, "algo": {"lr": 0.01, "gamma": 0.98}, "seed": 7}
    assert "foreign/perf/rollout" in run.columns


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
