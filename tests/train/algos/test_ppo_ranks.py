"""Does a run of several ranks learn what one rank learns, and is a rank that dies told in one line?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.config import layers, registry
from relab.config.base import ConfigError
from relab.config.ppo import PPO
from relab.train import device, rollout
from relab.train.algos import ppo, ppo_ranks
from relab.train.algos.ppo_ranks import COLUMNS, Piece, Share, Team, digest
from relab.train.contract import Setup, Stopwatch
from relab.train.envs.base import Episodes
from relab.train.envs.check_static import EnvError

# Gradients of a minibatch are sums of float32 in another order: 6e-8 was seen after 4 iterations (64 steps of Adam).
# Adam divides by the gradient's size, so that a gradient near 0 may turn by more than its rounding; hence not 1e-7.
TOLERANCE = 1e-5


def state(ranks: int = 1, env: str = "cartpole-v1", **more: Any) -> ppo.State:
    cfg = PPO(envs=8, steps=32, hidden=(16,), ranks=ranks, **more)
    return ppo.init(Setup(registry.env_class(env)(), cfg, 3, 10_000))


def team(s: ppo.State, rank: int, size: int) -> Team:
    """A rank's end of the line, without the line."""
    made = Team.__new__(Team)
    made.rank, made.size, made.workers, made.share = rank, size, [], Share.of(s, rank, size)
    return made


def piece_of(s: ppo.State, share: Share) -> Piece:
    rollout.collect(share.worlds, s.agent, share.traj, share.cursor)
    columns = [getattr(share.traj, name) for name in COLUMNS]
    return Piece(columns, share.traj.final, share.traj.episodes, share.worlds.snapshot(), share.cursor, b"")


# ---- Without other processes


@pytest.mark.parametrize("size", [2, 4])
def test_the_batch_does_not_depend_on_the_split(size: int) -> None:
    """To the bit: every world and every row of actions draws from a stream of its own."""
    whole, split = state(), state()
    teams = [team(split, rank, size) for rank in range(size)]
    for _ in range(3):
        ppo.collect(whole)
        teams[0].join(split, [piece_of(split, each.share) for each in teams])
        for name in COLUMNS:
            np.testing.assert_array_equal(getattr(split.traj, name), getattr(whole.traj, name), err_msg=name)
        for one, other in zip(whole.cursor.__dict__.values(), split.cursor.__dict__.values()):
            np.testing.assert_array_equal(one, other)
        for key, value in whole.worlds.snapshot().items():
            np.testing.assert_array_equal(split.worlds.snapshot()[key], value, err_msg=key)
        ended = [np.concatenate([getattr(e, k) for e in whole.traj.episodes], -1) for k in ("world", "ret", "length")]
        (joined,) = split.traj.episodes
        for one, key in zip(ended, ("world", "ret", "length")):
            np.testing.assert_array_equal(getattr(joined, key), one, err_msg=key)


def test_the_gradients_of_the_parts_add_up() -> None:
    s = state()
    ppo.collect(s)
    batch, _ = ppo.appraise(s)
    ppo.load_batch(s, batch)
    coefs = ppo.Coefs(0.2, np.inf, 0.5, 0.01, 1 / 64)
    rows, grad = np.arange(64), s.agent.params.grad
    whole, top = s.learner.gradient(rows, coefs)
    together, parts = grad.clone(), [Team.mine(team(s, rank, 3), rows) for rank in range(3)]
    assert [len(part) for part in parts] == [22, 21, 21]
    grads, sums, tops = [], [], []
    for part in parts:
        some, most = s.learner.gradient(part, coefs)
        grads.append(grad.clone())
        sums.append(some)
        tops.append(most)
    assert float((sum(grads) - together).abs().max()) < 1e-6
    np.testing.assert_allclose(np.sum(sums, 0), whole, rtol=1e-6)
    assert max(tops) == top


def test_episodes_stand_in_the_order_in_which_they_ended() -> None:
    ended = np.zeros((3, 4), bool)
    ended[0, 3] = ended[1, 0] = ended[2, 3] = True

    def some(world: list[int], ret: list[float]) -> Episodes:
        n = len(world)
        zeros = np.zeros(n, np.int64)
        return Episodes(np.array(world), zeros, np.array(ret), zeros, zeros, None, np.zeros((0, n)))

    (joined,) = ppo_ranks.in_order([some([0], [1.0]), some([3, 3], [0.0, 2.0])], ended, 1)
    assert joined.ret.tolist() == [0.0, 1.0, 2.0]
    assert ppo_ranks.in_order([], ended, 1) == []


def test_ranks_that_have_drifted_apart_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    s = state()
    mine = Piece([], [], [], {}, s.cursor, digest(s.agent.params.flat))
    other = mine._replace(weights=b"other")

    monkeypatch.setattr(Team, "pieces", lambda self, piece: [piece, other])
    with pytest.raises(EnvError, match="have come to different weights"):
        team(s, 0, 2).exchange(mine)
    other = mine._replace(error="the world broke")
    with pytest.raises(EnvError, match=r"the world broke \(rank 1\)"):
        team(s, 0, 2).exchange(mine)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"algo.ranks": 3}, "`ranks` must divide `envs`, but got envs = 16 and ranks = 3"),
        ({"algo.ranks": 0}, "1 <= `ranks` must hold"),
        ({"algo.ranks": 2, "schedule": {"queues": {}}}, "does not reach those of other ranks"),
    ],
)
def test_what_cannot_be_is_told_before_anything_starts(words: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        layers.resolve([layers.Layer("x", {"env": "cartpole", "algo": "ppo", **words})])


def test_nccl_is_for_gpus() -> None:
    env = registry.env_class("cartpole-v1")()
    with pytest.raises(ConfigError, match=r"`backend=nccl` is for `device=cuda`, but the device is cpu"):
        ppo.check(Setup(env, PPO(ranks=2, backend="nccl"), 0, 1))


def test_one_place_decides_about_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    assert [device.of_rank(name, 1) for name in ("cpu", "cuda", "cuda:0", "mps")] == ["cpu", "cuda:1", "cuda:0", "mps"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    device.check("cuda:1")
    with pytest.raises(ConfigError, match=r"`device=cuda:2` must be one of this machine's 2"):
        device.check("cuda:2")
    device.check_ranks("cuda", 2)
    with pytest.raises(ConfigError, match="`ranks=3` on device=cuda needs as many GPUs, but there are 2"):
        device.check_ranks("cuda", 3)


# ---- With them


@pytest.mark.slow
@pytest.mark.parametrize("more", [
    {}, {"rnn": "gru", "bptt": 8}, {"norm_obs": True, "norm_return": True},
    {"env": "pendulum-v1", "log_std_init": -0.7, "lr": 1e-2},  # a deviation that is not 0, and moves
])  # fmt: skip
def test_two_ranks_come_to_what_one_comes_to(more: dict[str, Any]) -> None:
    rows, weights = [], []
    for ranks in (1, 2):
        s = state(ranks, **more)
        try:
            rows.append([ppo.iterate(s, Stopwatch()) for _ in range(4)])
        finally:
            ppo.close(s)
        weights.append(s.agent.params.flat.numpy().copy())
    assert np.abs(weights[0] - weights[1]).max() < TOLERANCE
    for one, two in zip(*rows):
        assert one.keys() == two.keys()
        for name in one:
            np.testing.assert_allclose(two[name], one[name], rtol=1e-3, atol=TOLERANCE, err_msg=name)


WORDS = ["train", "ppo", "env=cartpole", "seed=5", "algo.envs=8", "algo.steps=64", "algo.ranks=2", "eval.episodes=2",
         "eval.every=4096", "save.every=2048", "total_steps=20000", "--name", "r", "--quiet"]  # fmt: skip


def train(folder: Path, *words: str) -> subprocess.Popen[str]:
    folder.mkdir(exist_ok=True)
    return subprocess.Popen([sys.executable, "-m", "relab.cli", *words], cwd=folder, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip


def ranks_of(parent: int) -> list[int]:
    """Processes that a rank 0 has spawned, by what the kernel says."""
    found = []
    for pid in filter(str.isdecimal, os.listdir("/proc")):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            words = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if int(stat[1]) == parent and b"spawn_main" in words:
            found.append(int(pid))
    return found


def wait_for(true: Any, seconds: float = 120) -> Any:
    until = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < until, "it took too long"
        time.sleep(0.02)
    return value


def is_gone(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists() or "Z" in Path(f"/proc/{pid}/stat").read_text()


def has_rows(folder: Path) -> bool:
    path = folder / "runs/r/checkpoints/latest.json"
    return path.exists() and json.loads(path.read_text())["step"] > 0


@pytest.mark.slow
def test_a_killed_run_of_two_ranks_resumes_to_the_same_bytes_and_leaves_nobody_behind(tmp_path: Path) -> None:
    whole = train(tmp_path / "whole", *WORDS)
    assert whole.communicate(timeout=300)[0] is not None
    assert whole.returncode == 0
    cut = train(tmp_path / "cut", *WORDS)
    (rank,) = wait_for(lambda: has_rows(tmp_path / "cut") and ranks_of(cut.pid))
    cut.kill()
    cut.communicate()
    wait_for(lambda: is_gone(rank), 20)
    again = train(tmp_path / "cut", "resume", "runs/r", "--quiet")
    out, _ = again.communicate(timeout=300)
    assert again.returncode == 0, out
    for name in ("metrics.jsonl", "evals.jsonl"):
        assert (tmp_path / "cut/runs/r" / name).read_bytes() == (tmp_path / "whole/runs/r" / name).read_bytes()
    ends = [sorted((tmp_path / part / "runs/r/checkpoints").glob("step-*/*.safetensors")) for part in ("cut", "whole")]
    assert [path.name for path in ends[0]] == [path.name for path in ends[1]]
    assert [path.read_bytes() for path in ends[0]] == [path.read_bytes() for path in ends[1]]


@pytest.mark.slow
def test_a_rank_that_is_killed_is_told_in_one_line(tmp_path: Path) -> None:
    words = [word for word in WORDS if "total_steps" not in word]
    run = train(tmp_path / "x", *words, "total_steps=10000000")
    (rank,) = wait_for(lambda: has_rows(tmp_path / "x") and ranks_of(run.pid))
    os.kill(rank, signal.SIGKILL)
    out, _ = run.communicate(timeout=60)
    assert run.returncode != 0
    assert f"rank 1 of 2 (process {rank}) was killed by signal 9" in out
    assert "Traceback" not in out
    assert json.loads((tmp_path / "x/runs/r/meta.json").read_text())["status"] == "failed"


@pytest.mark.slow
def test_ctrl_c_while_ranks_start_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal sends it to every process of the run, also to a rank that still imports."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    run = train(tmp_path / "x", *WORDS)
    (rank,) = wait_for(lambda: ranks_of(run.pid))
    for process in (rank, run.pid):
        os.kill(process, signal.SIGINT)
    out, _ = run.communicate(timeout=120)
    assert "Traceback" not in out
    assert json.loads((tmp_path / "x/runs/r/meta.json").read_text())["status"] == "interrupted"
    assert not list((tmp_path / "temporary").glob("relab-ranks-*"))


@pytest.mark.slow
def test_a_second_ctrl_c_ends_a_run_whose_rank_does_not_answer(tmp_path: Path) -> None:
    """The first one waits for the iteration, which a rank that was stopped never ends."""
    words = [word for word in WORDS if "total_steps" not in word]
    run = train(tmp_path / "x", *words, "total_steps=10000000")
    (rank,) = wait_for(lambda: has_rows(tmp_path / "x") and ranks_of(run.pid))
    os.kill(rank, signal.SIGSTOP)
    time.sleep(1)  # rank 0 comes to where it waits
    for _ in range(2):
        os.kill(run.pid, signal.SIGINT)
        time.sleep(1)
    try:
        out, _ = run.communicate(timeout=60)
    finally:
        run.kill()
    assert run.returncode == 130, out
    assert "Traceback" not in out
    wait_for(lambda: is_gone(rank), 20)
    assert json.loads((tmp_path / "x/runs/r/meta.json").read_text())["status"] == "interrupted"
