"""What if somebody changes the rows that a run learns from, or an environment sends what is no number?"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.base.errors import UserError
from relab.base.jsonl import read_jsonl
from relab.config.dqn import DQN
from relab.config.ppo import PPO
from relab.train import checkpoint, session
from relab.train import replay as stored
from relab.train.algos import dqn, ppo
from relab.train.contract import Setup, Stopwatch
from relab.train.envs.cartpole import CartPole
from relab.train.envs.check_static import EnvError
from relab.train.screen import Silent
from small_runs import Interrupt, run

SMALL = {"algo__learning_starts": "60", "algo__steps": "16", "algo__envs": "2", "algo__minibatch": "16",
         "algo__hidden": "[8]", "algo__n_step": "1", "algo__updates_per_step": "0.5", "total_steps": "640",
         "eval__every": "0", "eval__episodes": "2", "eval__stop_at": "null"}  # fmt: skip


def begin(folder: Path, **more: str) -> Path:
    """A DQN run that was interrupted halfway; the folder of its replay."""
    run(folder, Interrupt(10), algo="dqn", **SMALL | more)
    return folder / "data" / "replay"


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("part", ["data", "data/replay"])
def test_nothing_is_touched_behind_a_link(part: str, tmp_path: Path) -> None:
    begin(tmp_path / "run")
    begin(tmp_path / "other")
    before = content(tmp_path / "other" / "data" / "replay")
    there = tmp_path / "run" / part
    there.rename(tmp_path / "aside")
    there.symlink_to(tmp_path / "other" / part)
    with pytest.raises(UserError, match="is a link to"):
        session.resume(tmp_path / "run")
    assert content(tmp_path / "other" / "data" / "replay") == before


@pytest.mark.parametrize("value", [2, -1, 10**9, 2**62])
def test_actions_that_cannot_be_are_refused(value: int, tmp_path: Path) -> None:
    """A kernel would write where they point."""
    (rows,) = begin(tmp_path / "run").glob("*.rows")
    fields = dqn_dtype()
    slots = np.frombuffer(bytearray(rows.read_bytes()), fields)
    slots["action"][3, 0] = value
    rows.write_bytes(slots.tobytes())
    with pytest.raises(UserError, match="was changed after the run wrote it"):
        session.resume(tmp_path / "run")
    for state in (tmp_path / "run").rglob("state.json"):  # whoever changes rows may have thought of that
        state.write_bytes(re.sub(rb'"data_sums": \{.*?\}\s*\}', b'"data_sums": {}', state.read_bytes(), flags=re.S))
    with pytest.raises(UserError, match="rows of its replay were changed"):
        session.resume(tmp_path / "run")


def test_damaged_rows_are_told_with_what_still_works(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are plausible numbers, but not the run's, would be learned from without a word."""
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 1000)
    begin(tmp_path / "run", save__every="64", save__keep="3")
    whole = sorted((tmp_path / "run" / "data").rglob("*.rows"))
    steps = checkpoint.steps(tmp_path / "run" / "checkpoints")
    content = bytearray(whole[-1].read_bytes())
    content[10] ^= 1
    whole[-1].write_bytes(content)
    with pytest.raises(UserError) as said:
        session.resume(tmp_path / "run")
    assert f"data/replay/{whole[-1].name} was changed after the run wrote it" in str(said.value)
    advice = re.search(r"; move (step-.*) away, and `relab resume` goes on from step (\d+)$", str(said.value))
    assert advice, said.value
    for name in advice[1].split(", "):
        (tmp_path / "run" / "checkpoints" / name).rename(tmp_path / name)
    assert int(advice[2]) < checkpoint.step_of(steps[-1])
    assert session.resume(tmp_path / "run").status == "finished"


def test_damage_at_the_beginning_leaves_the_weights(tmp_path: Path) -> None:
    (rows,) = begin(tmp_path / "run").glob("*.rows")
    rows.write_bytes(bytes(rows.stat().st_size))
    shutil.rmtree(tmp_path / "run" / "checkpoints" / "step-000000000000")
    with pytest.raises(UserError, match=r"put the file back from a copy; or .*start_from="):
        session.resume(tmp_path / "run")


def test_a_folder_that_was_moved_is_told_whoever_writes_first(tmp_path: Path) -> None:
    class Mover(Silent):
        def iteration(self, row: Mapping[str, Any]) -> None:
            if (tmp_path / "run").exists():
                (tmp_path / "run").rename(tmp_path / "elsewhere")

    with pytest.raises(UserError, match="was deleted or moved while its run was writing there"):
        run(tmp_path / "run", Mover(), algo="dqn", **SMALL | {"algo__replay": "60"})


def test_metrics_are_of_all_steps_whatever_the_replay_holds(tmp_path: Path) -> None:
    """A replay of 30 slots forgets half of the 64 steps of an iteration before its row is written."""
    few = {"algo__steps": "64", "algo__updates_per_step": "0.001"}
    for held in ("60", "600"):
        run(tmp_path / held, algo="dqn", **SMALL | few | {"algo__replay": held})
    rows = [read_jsonl(tmp_path / held / "metrics.jsonl")[0][0] for held in ("60", "600")]
    names = [name for name in rows[0] if name.startswith("data/") and name != "data/replay_size"]
    assert "data/obs_max" in names
    assert [rows[0][name] for name in names] == [rows[1][name] for name in names]


def dqn_dtype() -> np.dtype[Any]:
    state = dqn.init(Setup(CartPole(), DQN(envs=2, hidden=(8,)), 0, 10**6))
    return state.replay.dtype


def test_a_pipe_in_place_of_rows_does_not_keep_a_run_waiting(tmp_path: Path) -> None:
    (rows,) = begin(tmp_path / "run").glob("*.rows")
    rows.unlink()
    os.mkfifo(rows)
    with pytest.raises((UserError, OSError)):
        session.resume(tmp_path / "run")


def test_a_replay_smaller_than_the_way_between_checkpoints_has_the_same_files(tmp_path: Path, monkeypatch) -> None:
    """Each slot is written before another takes its place, whenever a checkpoint comes."""
    monkeypatch.setattr(stored, "SEGMENT_BYTES", 1000)
    small = {"algo__replay": "60", "save__every": "256"}
    run(tmp_path / "whole", algo="dqn", **SMALL | small)
    begin(tmp_path / "parts", **small)
    session.resume(tmp_path / "parts")
    whole, parts = (content(tmp_path / name / "data" / "replay") for name in ("whole", "parts"))
    both = sorted(set(whole) & set(parts))  # an interrupted run has one checkpoint more, which keeps others
    assert max(whole) == max(parts)
    assert len(both) > 10
    assert [name for name in both if whole[name] != parts[name]] == []


class Sick(CartPole):
    """After 100 steps something is no number."""

    steps, what = 0, ""

    def step(self, state: Any, alive_NA: np.ndarray, action_NA: np.ndarray, out: Any) -> None:
        super().step(state, alive_NA, action_NA, out)
        self.steps += 1
        if self.steps == 100:
            (state.body if self.what == "observation" else out.reward)[0, 0] = np.nan


@pytest.mark.parametrize("what", ["observation", "reward"])
def test_a_method_that_learns_from_batches_tells_the_step_too(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sick, "what", what)
    state = ppo.init(Setup(Sick(), PPO(envs=2, steps=32, minibatches=1, epochs=1, hidden=(8,)), 0, 10**6))
    for _ in range(3):
        ppo.iterate(state, Stopwatch())
    where = "in world 0, agent 0, after 100 steps of each world"
    with pytest.raises(EnvError, match=f"every {what} must be a finite number .* {where}"):
        ppo.iterate(state, Stopwatch())


@pytest.mark.parametrize("what", ["observation", "reward"])
def test_what_is_no_number_is_told_before_it_is_learned_from(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sick, "what", what)
    cfg = DQN(envs=2, steps=64, hidden=(8,), learning_starts=60, minibatch=16, updates_per_step=1.0)
    state = dqn.init(Setup(Sick(), cfg, 0, 10**6))
    dqn.iterate(state, Stopwatch())
    where = r"in world 0, agent 0, after 100 steps of each world"
    with pytest.raises(EnvError, match=f"every {what} must be a finite number .* {where}"):
        dqn.iterate(state, Stopwatch())
    assert state.counts.updates > 0
    assert np.isfinite(state.agent.nets.flat).all()
