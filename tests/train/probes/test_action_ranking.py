"""Does the probe tell a critic that ranks actions from one that does not?"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from relab.config.finetune import FineTune
from relab.config.probes import ActionRanking, Probes
from relab.train.algos import finetune
from relab.train.contract import Counts, Setup
from relab.train.envs.pendulum import Pendulum
from relab.train.probes.action_ranking import action_ranking, agreement
from relab.train.probes.result import ProbeResult
from relab.train.probes.round import Round


def test_agreement_by_hand() -> None:
    told = np.array([1.0, 2.0, 3.0, 3.0, 2.0, 1.0, 5.0, 5.0, 5.0])
    truth = np.array([1.0, 2.0, 3.0, 1.0, 2.0, 3.0, 4.0, 6.0, 5.0])
    np.testing.assert_allclose(agreement(told, truth, 3), [1.0, -1.0, 0.0])
    assert len(agreement(told[:3], np.ones(3), 3)) == 0  # nothing to tell apart


def ranked(sign: float) -> ProbeResult:
    """Pendulum, three steps ahead: what a torque does to the speed orders actions; the opposite turns them round."""
    env = Pendulum()
    s = finetune.init(Setup(env, FineTune(envs=4, steps=4, minibatches=2, hidden=(8,)), 3, 10))

    class Agent:
        memory_dim = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(s.ppo.agent, name)

        def value(self, obs: np.ndarray, memory: np.ndarray) -> np.ndarray:
            return -sign * 40 * np.abs(obs[:, 2])

    wanted = Probes(action_ranking=ActionRanking(starts=12, spread=20, truth=32, cut=3))
    return action_ranking(Round(env, SimpleNamespace(agent=Agent(), counts=Counts()), wanted, gamma=0.9))[0]


def test_more_samples_rank_better_and_a_turned_critic_turns_the_order() -> None:
    row, turned = ranked(1.0), ranked(-1.0)
    assert row.more["mc16"] > 0.8
    assert row.more["mc16"] >= row.more["mc1"] - 0.05
    assert row.value > 0.3 > -0.3 > turned.value
    assert row == ranked(1.0), "its own streams: the same each time"
