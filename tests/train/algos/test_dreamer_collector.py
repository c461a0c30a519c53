"""A collector in a process of its own: what it gathers arrives whole, it waits where it must, and it never stays."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from relab.base.jsonl import read_jsonl
from relab.base.processes import stat
from relab.config import layers
from relab.config.base import ConfigError
from relab.config.dreamer import Dreamer
from relab.config.envs import CartPole as Params
from relab.config.layers import Layer
from relab.record.run_folder import read_meta
from relab.train import replay, session
from relab.train.algos import dreamer
from relab.train.algos.dreamer.collector import FULL, Collector, order_of
from relab.train.check_algo import Interrupter
from relab.train.contract import Setup
from relab.train.envs.cartpole import CartPole
from relab.train.envs.check_static import EnvError

SMALL: dict[str, Any] = {
    "algo": "dreamer", "env": "cartpole", "env.pixels": 16, "total_steps": 400, "algo.envs": 2, "algo.steps": 16,
    "algo.learning_starts": 64, "algo.sequences": 2, "algo.length": 8, "algo.deter": 16, "algo.hidden": 8,
    "algo.stoch": 4, "algo.units": 8, "algo.filters": 4, "algo.imagine": 3, "algo.updates_per_step": 0.1,
    "algo.bins": 11, "eval.every": 0, "eval.episodes": 1, "algo.collector": "own", "algo.queue": 20,
    "algo.latents": "stored",
}  # fmt: skip


def config(**more: Any) -> Any:
    return layers.resolve([Layer("test", {**SMALL, **more})]).config


@pytest.mark.slow
def test_a_run_with_a_collector_of_its_own_ends_goes_on_and_says_that_it_does_not_repeat(tmp_path):
    session.start(config(), tmp_path / "run", {}, {}, Interrupter(4))
    assert multiprocessing.active_children() == []
    assert read_meta(tmp_path / "run")["status"] == "interrupted"
    assert read_meta(tmp_path / "run")["deterministic"] is False
    assert session.resume(tmp_path / "run").status == "finished"
    assert multiprocessing.active_children() == []
    rows = read_jsonl(tmp_path / "run" / "metrics.jsonl")[0]
    assert {"data/queue_fill", "data/starved", "data/queue_waste", "data/weights_age"} <= rows[-1].keys()
    kept = replay.read(tmp_path / "run" / "data" / "replay")
    gap = np.flatnonzero(~kept["alive"].any(1))
    assert gap.tolist() == [64]  # where it was interrupted: four iterations of 16 steps
    assert len(kept["alive"]) == rows[-1]["data/env_steps"] / 2
    over = kept["terminated"] | kept["truncated"]
    finals = replay.read(tmp_path / "run" / "data" / "finals")["obs"]
    assert sorted(-1 - kept["final"][over][:, 0]) == list(range(len(finals)))


def test_a_schedule_cannot_reach_it_and_that_is_told():
    with pytest.raises(ConfigError, match="in another process, which it does not reach; use collector=step"):
        config(schedule={"total": 3})


def started(room: int, env: Any = None, envs: int = 1) -> Collector:
    cfg = Dreamer(envs=envs, deter=8, hidden=8, stoch=2, units=8, bins=5, learning_starts=64 * envs, length=8,
                  filters=2)  # fmt: skip
    setup = Setup(env or CartPole(Params()), cfg, 0, 1000)
    agent = dreamer.make_agent(cfg, setup.env.spec, 0)
    return Collector.start(order_of(setup, "test", 10**9), agent.params.flat.numpy(), room)


@pytest.mark.slow
def test_it_waits_at_four_fifths_and_its_steps_follow_each_other():
    collector = started(room=10)
    try:
        crates = [collector.take(0)]
        while collector.line.crates.qsize() < FULL * 10:
            time.sleep(0.01)
        for _ in range(20):
            assert collector.line.crates.qsize() <= FULL * 10
            crates.append(collector.take(5))
        for one, two in pairwise(crates):
            if not one.slot["terminated"][0]:
                np.testing.assert_array_equal(one.slot["next_obs"], two.slot["obs"])
        row = collector.metrics()
        assert 0 < row["data/queue_fill"] <= FULL
        assert row["data/weights_age"] == pytest.approx(20 * 5 / 21)
    finally:
        collector.close()
    assert not collector.process.is_alive()


class Falling(CartPole):
    """Pays what is no number."""

    def step(self, state: Any, alive_NA: np.ndarray, action_NA: np.ndarray, out: Any) -> None:
        super().step(state, alive_NA, action_NA, out)
        out.reward[:] = np.nan


def test_what_breaks_in_it_is_told_by_the_learner():
    collector = started(room=10, env=Falling(Params()))
    try:
        with pytest.raises(EnvError, match="the collector ended: EnvError: every reward must be a finite number"):
            collector.take(0)
    finally:
        collector.close()


def with_large_crates() -> Collector:
    """Whose crates (24 images, 98 KB) do not fit into a pipe: unread, one of them is always half written."""
    collector = started(room=64, env=CartPole(Params(pixels=64)), envs=24)
    while collector.line.crates.qsize() < 2:
        assert collector.process.is_alive()
        time.sleep(0.02)
    return collector


def test_a_collector_that_is_killed_in_the_middle_of_a_crate_is_told_and_not_waited_for():
    collector, errors = with_large_crates(), []

    def take_all() -> None:
        try:
            for _ in range(64):
                collector.take(0)
        except EnvError as error:
            errors.append(str(error))

    os.kill(collector.process.pid, signal.SIGKILL)
    taking = threading.Thread(target=take_all, daemon=True)  # it used to hang for ever
    taking.start()
    taking.join(60)
    collector.close()
    assert len(errors) == 1
    assert "was killed by signal 9" in errors[0]


@pytest.mark.slow
def test_a_collector_ends_by_itself_when_it_is_told_to_whatever_lies_unread():
    collector = with_large_crates()
    collector.close()
    assert collector.process.exitcode == 0  # not terminated after a while


def test_weights_are_not_sent_to_a_collector_that_was_killed_with_the_lock():
    lock = threading.Lock()
    lock.acquire()
    line = SimpleNamespace(updates=SimpleNamespace(get_lock=lambda: lock))
    dead = SimpleNamespace(is_alive=lambda: False, exitcode=-9)
    with pytest.raises(EnvError, match="was killed by signal 9"):
        Collector(line, dead, 10).send(np.zeros(3, np.float32), 1)  # type: ignore[arg-type]


def test_a_collector_ends_with_a_learner_that_is_killed(tmp_path):
    words = [f"{key}={value}" for key, value in (SMALL | {"total_steps": 10**6, "algo.latents": "none"}).items()]
    command = [sys.executable, "-P", "-m", "relab.cli", "train", *words, "--runs", os.fspath(tmp_path), "--quiet"]
    parent = subprocess.Popen(command, cwd=tmp_path)
    try:
        child = child_of(parent)
        parent.send_signal(signal.SIGKILL)
        parent.wait()
        until = time.monotonic() + 10
        while stat(child) and time.monotonic() < until:
            time.sleep(0.05)
        assert not stat(child)
    finally:
        parent.kill()
        parent.wait()


def child_of(parent: subprocess.Popen[bytes]) -> int:
    """The collector."""
    while parent.poll() is None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            fields = stat(int(path.parent.name))
            if fields and int(fields[1]) == parent.pid and b"spawn_main" in read(path):
                return int(path.parent.name)
        time.sleep(0.1)
    raise AssertionError(f"the run ended with code {parent.returncode}")


def read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
