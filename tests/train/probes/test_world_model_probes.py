"""Do the probes of a world model see what is wrong with it, and does a run not notice that they were asked?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from relab.base.jsonl import read_jsonl
from relab.config.dreamer import Dreamer
from relab.config.probes import DreamVsWorld, OpenLoop, Probes
from relab.train.algos.dreamer import make_agent
from relab.train.contract import Counts
from relab.train.envs.cartpole import CartPole
from relab.train.probes.dream_vs_world import discounted, dream_vs_world
from relab.train.probes.open_loop import open_loop, variance, walked
from relab.train.probes.round import Round
from small_runs import run

SMALL = Dreamer(deter=16, hidden=8, units=8, stoch=4, classes=4, bins=41, imagine=6, learning_starts=64, gamma=0.9)
ASKED = Probes(
    dream_vs_world=DreamVsWorld(starts=6, repeats=4, spread=8), open_loop=OpenLoop(walks=12, context=3, ahead=5)
)


def round_of(agent) -> Round:
    return Round(CartPole(), SimpleNamespace(agent=agent, counts=Counts()), ASKED, gamma=0.9)


def test_discounted_rewards_of_a_dream_by_hand():
    reward = torch.tensor([[9.0], [1.0], [2.0], [4.0]])  # the first is where the dream begins
    goes_on = torch.tensor([[1.0], [0.5], [1.0], [0.1]])
    assert float(discounted(reward, goes_on, 0.9)) == pytest.approx(1 + 0.45 * 2 + 0.45 * 0.9 * 4)


def test_a_model_whose_dreams_pay_three_is_found_to_promise_too_much():
    agent = make_agent(SMALL, CartPole().spec, 0)
    place, bias = agent.model.support, agent.params["model/reward/out/bias"].detach()
    bias[(place.values - 3).abs().argmin()] = 50.0  # whatever it dreams, it pays about 3
    agent.params["model/continue/out/bias"].detach().fill_(50.0)
    pays = float(place.values[(place.values - 3).abs().argmin()])
    (result,) = dream_vs_world(round_of(agent))
    horizon = sum(0.9**t for t in range(6))
    assert result.more["dreamed_mean"] == pytest.approx(pays * horizon, rel=1e-3)
    assert result.more["real_mean"] <= horizon + 1e-6  # a step of CartPole pays 1
    assert result.value == pytest.approx(result.more["dreamed_mean"] - result.more["real_mean"], rel=1e-5)
    assert result.more["dreamed_survival"] == pytest.approx(1.0)
    assert result.n == 6


def test_a_model_that_always_says_the_mean_has_an_open_loop_error_of_one():
    agent = make_agent(SMALL, CartPole().spec, 0)
    at = round_of(agent)
    walk = walked(at, agent, 12, 8)
    agent.params["model/decoder/out/weight"].detach().zero_()
    agent.params["model/decoder/out/bias"].detach().copy_(walk.obs[walk.counts > 0].mean(0))
    (result,) = open_loop(at)
    assert 0.6 < result.value < 1.8  # later steps lie further from the mean of all
    assert result.more["still"] > 0
    assert result.more["rows"] == int(walk.counts[3:].sum())
    assert bool((variance(walk, False) > 0).all())


@pytest.mark.slow
def test_a_run_is_the_same_with_and_without_them(tmp_path: Path):
    settings = {"algo": "dreamer", "total_steps": "400", "algo__envs": "4", "algo__steps": "32", "algo__sequences": "2",
                "algo__learning_starts": "100", "algo__length": "8", "algo__deter": "16", "algo__hidden": "8",
                "algo__stoch": "4", "algo__units": "8", "algo__imagine": "3", "algo__updates_per_step": "0.1",
                "algo__bins": "11", "eval__episodes": "2"}  # fmt: skip
    run(tmp_path / "a", **settings)
    run(
        tmp_path / "b",
        **settings,
        probes__every="1",
        probes__dream_vs_world__starts="4",
        probes__open_loop__walks="4",
    )
    assert (tmp_path / "a" / "metrics.jsonl").read_bytes() == (tmp_path / "b" / "metrics.jsonl").read_bytes()
    rows = read_jsonl(tmp_path / "b" / "probes.jsonl")[0]
    assert {row["probe"] for row in rows} == {"value_vs_rerun", "dream_vs_world", "open_loop"}
