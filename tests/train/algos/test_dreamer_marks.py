"""Are the marks of a sound Dreamer exact, and do they move when what they look at is wrong?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from relab.config.dreamer import Dreamer
from relab.record import history
from relab.train.algos.dreamer import equations as eq
from relab.train.algos.dreamer import make_agent, marks
from relab.train.algos.dreamer.behaviour import Dream
from relab.train.algos.dreamer.one_hot import NONE
from relab.train.algos.dreamer.world_model import Batch
from relab.train.envs.cartpole import CartPole
from small_runs import DREAMS, run


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> history.History:
    folder: Path = tmp_path_factory.mktemp("sound") / "run"
    run(folder, **DREAMS)
    return history.load(folder)


def test_a_sound_run_has_exact_marks(sound: history.History):
    column = {name: c.values for name, c in sound.columns.items()}
    assert column["value/return_residual"].max() < 1e-5
    assert column["model/start_memory"].max() < 1e-5
    assert min(column["model/prior_least"].min(), column["model/post_least"].min()) >= 0.01 / 4 * 0.999
    assert np.concatenate((column["model/prior_mix"], column["model/post_mix"])) == pytest.approx(0.01, rel=1e-2)
    assert column["model/post_memory"].min() > 0.01
    assert np.abs(column["value/pull"] - column["value/pull_due"]).sum() < 1e-3 * np.abs(column["value/pull_due"]).sum()


def test_counts_and_speeds_are_in_the_record(sound: history.History):
    ratio = sound.columns["data/replay_ratio"].values
    assert ratio[:2].tolist() == [0, 0]  # before learning starts
    assert ratio[2:] == pytest.approx(0.25 * 4 * 16)
    assert sound.columns["optim/actor_updates"].values.tolist() == sound.columns["data/updates"].values.tolist()
    updates, rows = (sound.columns[f"time/{name}_per_s"].values for name in ("updates", "learned"))
    assert rows == pytest.approx(64 * updates)


def test_threads_of_the_blas_are_those_of_the_settings():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        make_agent(Dreamer(deter=8, hidden=8, units=8, stoch=2, bins=5), CartPole().spec, 0)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)


def dream_of(returns: torch.Tensor, reward: torch.Tensor, goes_on: torch.Tensor, value: torch.Tensor) -> Dream:
    nothing = torch.zeros(0)
    return Dream(nothing, nothing, nothing, reward, goes_on, returns, nothing, value, nothing, NONE)


def test_returns_that_obey_their_recursion_have_no_residual_and_shifted_ones_have():
    state = SimpleNamespace(cfg=SimpleNamespace(lam=0.9, gamma=0.95))
    rng = torch.Generator().manual_seed(0)
    reward, value = torch.rand(6, 7, generator=rng), 10 * torch.rand(6, 7, generator=rng)
    goes_on = torch.rand(6, 7, generator=rng)
    right = eq.lambda_returns(reward, 0.95 * goes_on, value, 0.9)
    late = [torch.cat((x[:1], x[:-1])) for x in (reward, 0.95 * goes_on, value)]
    assert marks.return_residual(state, dream_of(right, reward, goes_on, value)) < 1e-6
    assert marks.return_residual(state, dream_of(eq.lambda_returns(*late, 0.9), reward, goes_on, value)) > 0.05


def batch_of(last: torch.Tensor, action: torch.Tensor) -> Batch:
    blank = torch.zeros_like(last)
    return Batch(blank, action, blank, blank, blank, blank, last, torch.ones_like(last))


@pytest.mark.parametrize(
    ("kind", "spread", "by_action"), [("cleared", 0.0, None), ("carried over", 1.0, False), ("an action", 1.0, True)]
)
def test_what_is_remembered_where_an_episode_begins(kind: str, spread: float, by_action: bool | None):
    rng = torch.Generator().manual_seed(1)
    last = torch.zeros(8, 20)
    last[3] = 1.0  # every sequence begins an episode in its fifth row
    h = torch.randn(8, 20, 5, generator=rng)
    action = torch.nn.functional.one_hot(torch.arange(20) % 2, 2).float().expand(8, 20, 2)
    if kind == "cleared":
        h[4] = 0.3
    elif kind == "an action":
        h[4] = action[4] @ torch.randn(2, 5, generator=rng)
    row = marks.of_starts(batch_of(last, action), h)
    assert (row["model/start_memory"] > 0.2) == bool(spread)
    if by_action is not None:
        assert (row["model/start_action"] > 0.9) == by_action


def test_one_beginning_says_nothing():
    last = torch.zeros(4, 1)
    last[1] = 1.0
    assert marks.of_starts(batch_of(last, torch.zeros(4, 1, 2)), torch.randn(4, 1, 3)) == {}


@pytest.mark.parametrize("told", ["own", "before", "after"])
def test_which_rows_action_a_row_follows_from(told: str):
    """x_t = 0.9 x_{t-1} + what the action does; rows are told of it in time, a step early or a step late."""
    rng = np.random.default_rng(0)
    done = rng.integers(2, size=(30, 6))
    x = np.zeros((30, 6, 1), np.float32)
    for t in range(1, 30):
        x[t] = 0.9 * x[t - 1] + done[t - 1][:, None] + 0.1 * rng.normal(size=(6, 1))
    led = np.roll(done, 1, 0)  # the action that led to a row
    shift = {"own": 0, "before": -1, "after": 1}[told]
    action = torch.nn.functional.one_hot(torch.from_numpy(np.roll(led, shift, 0)), 2).float()
    rows = batch_of(torch.zeros(30, 6), action)._replace(obs=torch.from_numpy(x))
    shares = marks.of_actions(rows)
    assert max(shares, key=lambda name: shares[name]) == f"data/action_{told}"
    assert shares[f"data/action_{told}"] > 0.9
