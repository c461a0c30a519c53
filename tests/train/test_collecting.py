"""A batch that is collected in one call has the bytes of one that Python collects step by step."""

import numpy as np
import pytest

from relab.config import registry
from relab.config.envs import CartPole as CartPoleConfig
from relab.config.ppo import PPO
from relab.train import collecting, rollout
from relab.train.algos import ppo
from relab.train.contract import Setup
from relab.train.envs.cartpole import CartPole
from relab.train.envs.pendulum import Pendulum

WHOLE = [name for name in registry.env_names() if hasattr(registry.env_class(name), "collect")]


def state_of(env, **settings):
    cfg = PPO(**({"envs": 5, "steps": 40, "epochs": 1, "minibatches": 2, "hidden": (16,)} | settings))
    return ppo.init(Setup(env, cfg, 3, 10**6))


def step_by_step(monkeypatch):
    monkeypatch.setattr(rollout, "compiled_parts", lambda *_: None)


def collected(state, batches=3):
    """Everything that `batches` batches leave behind, with learning between them."""
    left = []
    for _ in range(batches):
        ppo.collect(state)
        t = state.traj
        left += [x.copy() for x in (t.obs_TBD, t.action_TBK, t.logp_TB, t.reward_TB, t.alive_TB, t.fresh_TB)]
        left += [t.terminated_TB.copy(), t.truncated_TB.copy(), state.cursor.fresh_B.copy(), state.cursor.rng_B.copy()]
        left += [np.array(part) for each in t.final for part in each]
        left += (
            [np.concatenate([getattr(e, key) for e in t.episodes]) for key in ("world", "ret", "length", "end")]
            if t.episodes
            else []
        )
        left += [np.array([state.worlds.sim_steps, state.worlds.begun])]
        ppo.update(state)
    return left + list(state.worlds.snapshot().values())


def assert_alike(whole, stepwise):
    assert len(whole) == len(stepwise)
    for a, b in zip(whole, stepwise):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("settings", [{}, {"norm_obs": True}, {"squash": True}, {"envs": 1}], ids=str)
def test_the_bytes_are_those_of_the_loop_in_python(name, settings, monkeypatch):
    env = registry.env_class(name)
    whole = collected(state_of(env(), **settings))
    step_by_step(monkeypatch)
    assert_alike(whole, collected(state_of(env(), **settings)))


def test_it_is_the_compiled_way_that_was_tried(monkeypatch):
    """Or the test above would compare Python with itself."""
    state = state_of(CartPole())
    monkeypatch.setattr(rollout, "collect_steps", None)
    ppo.collect(state)
    assert state.traj.whole is not None


@pytest.mark.parametrize("env", [lambda: CartPole(CartPoleConfig(horizon=3)), Pendulum])
def test_more_episodes_than_room(env, monkeypatch):
    """Python takes over what ended as often as it must; time cuts bring what they left behind."""
    monkeypatch.setattr(collecting, "ROOM", 1)
    calls = []
    kernel = collecting.Whole.episodes
    monkeypatch.setattr(collecting.Whole, "episodes", lambda self: (calls.append(1), kernel(self))[1])
    whole = collected(state_of(env(), steps=210), batches=1)
    assert len(calls) > 1 or env is Pendulum
    step_by_step(monkeypatch)
    assert_alike(whole, collected(state_of(env(), steps=210), batches=1))


def test_wide_batches_and_memories_go_step_by_step():
    wide = state_of(CartPole(), envs=rollout.BLOCK + 1, steps=1)
    assert rollout.compiled_parts(wide.worlds, wide.agent, wide.cursor) is None
    recurrent = state_of(CartPole(), rnn="gru", bptt=4)
    assert rollout.compiled_parts(recurrent.worlds, recurrent.agent, recurrent.cursor) is None


def test_verbs_that_were_replaced_are_heeded():
    """A subclass inherits `collect` with physics that are not its own."""

    class Tilted(CartPole):
        def observe(self, state, obs_NAD):
            super().observe(state, obs_NAD)
            obs_NAD[..., 0] = 7.0

    wrapped = CartPole()
    wrapped.step = lambda *parts: CartPole.step(wrapped, *parts)
    assert rollout.offers_collect(CartPole())
    assert not rollout.offers_collect(Tilted())
    assert not rollout.offers_collect(wrapped)
    state = state_of(Tilted())
    ppo.collect(state)
    assert (state.traj.obs_TBD[..., 0] == 7.0).all()
