"""Does the probe take the noise out of a policy, and leave the policy alone?"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from relab.base.streams import world_seeds
from relab.config.finetune import FineTune
from relab.config.probes import NoiseScales, Probes
from relab.train import rollout
from relab.train.algos import finetune
from relab.train.contract import Counts, Setup
from relab.train.envs.cartpole import CartPole
from relab.train.envs.pendulum import Pendulum
from relab.train.probes.noise_scales import noise_scales
from relab.train.probes.round import Round


def test_scale_nought_is_the_mode_and_one_the_policy_as_it_is() -> None:
    env = Pendulum()
    s = finetune.init(Setup(env, FineTune(envs=4, steps=4, minibatches=2, hidden=(8,)), 3, 10))
    before = s.ppo.agent.params.flat.clone()
    at = Round(env, SimpleNamespace(agent=s.ppo.agent, counts=Counts()), Probes(noise_scales=NoiseScales(episodes=6)))
    row = noise_scales(at)[0]
    played = rollout.evaluate(env, s.ppo.agent, world_seeds(0, "probe/noise_scales/0", 6))
    assert row.more["return_0"] == pytest.approx(played.returns("det").mean(), rel=1e-6)
    assert row.more["return_1"] == pytest.approx(row.value)
    assert row.more["sim_steps"] == 5 * 6 * 200
    assert len({round(row.more[f"return_{scale:g}"], 6) for scale in (0, 0.25, 0.5, 1, 2)}) == 5
    np.testing.assert_array_equal(s.ppo.agent.params.flat.numpy(), before.numpy())


def test_choices_have_no_noise_to_scale() -> None:
    env = CartPole()
    at = Round(env, SimpleNamespace(agent=None, counts=Counts()), Probes())
    assert noise_scales(at) == []
