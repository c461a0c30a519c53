"""Do runs of fine-tuning carry the marks that their rules look for? Whose batch it was, and which expectile V is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from relab.config.finetune import FineTune
from relab.train.algos import finetune
from relab.train.algos.finetune import equations, estimates, gathering
from relab.train.contract import Setup
from relab.train.envs.ladder import Both
from relab.train.envs.pendulum import Pendulum


def test_expectiles_of_hand_numbers() -> None:
    assert equations.expectile_of(np.array([-3.0, 1.0])) == 0.75
    assert equations.expectile_of(np.array([-1.0, 1.0])) == 0.5
    assert np.isnan(equations.expectile_of(np.zeros(3)))


@pytest.mark.parametrize("tau", [0.1, 0.5, 0.9])
def test_the_least_expectile_loss_is_at_its_expectile(tau: float) -> None:
    """Of 1,000 numbers, the level with the least loss leaves them in the shares that tau says."""
    x = torch.from_numpy(np.random.default_rng(0).exponential(size=1000))
    level = torch.linspace(0, 6, 6001, dtype=torch.float64)
    losses = equations.expectile_loss(x[None] - level[:, None], tau).mean(1)
    best = float(level[losses.argmin()])
    assert equations.expectile_of(x.numpy() - best) == pytest.approx(tau, abs=0.002)


def test_a_batch_of_its_own_has_no_gap_and_another_policys_has_the_divergence() -> None:
    """A Gaussian of another width: KL = ln(s2 / s1) + (s1² - s2²) / (2 s2²)."""
    cfg = FineTune(envs=64, steps=32, minibatches=2, hidden=(8,))
    s = finetune.init(Setup(Pendulum(), cfg, 3, 10))
    p = s.ppo
    batch = gathering.gather(p.worlds, p.agent, p.traj, p.cursor, keep_worlds=False)
    assert abs(estimates.behaviour_gap(p.agent, batch)) < 1e-5
    p.agent.params["log_std"].detach().add_(np.log(2.0))
    assert estimates.behaviour_gap(p.agent, batch) == pytest.approx(np.log(2) + 0.125 - 0.5, abs=0.03)


@pytest.mark.slow
def test_v_is_the_expectile_that_was_set() -> None:
    cfg = FineTune(envs=64, steps=8, minibatches=2, hidden=(16,), data="fixed", update="awr", advantage="iql",
                   fit_epochs=60, patience=60, fit_lr=0.01, fit_minibatch=32)  # fmt: skip
    held = {}
    for tau in (0.3, 0.8):
        s = finetune.init(Setup(Both(), replace(cfg, expectile=tau), 3, 10))
        p = s.ppo
        batch = gathering.gather(p.worlds, p.agent, p.traj, p.cursor, keep_worlds=False)
        held[tau] = estimates.by_iql(s, batch).facts["value/expectile"]
    assert held == pytest.approx({0.3: 0.3, 0.8: 0.8}, abs=0.1)
