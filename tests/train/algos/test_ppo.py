"""Does PPO learn real tasks, and do its parts do what their names say?"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from relab.config import layers, registry
from relab.config.base import field_docs
from relab.config.layers import Layer
from relab.config.ppo import PPO
from relab.train.algos import ppo
from relab.train.algos.ppo_learner import TorchLearner
from relab.train.contract import Setup, Stopwatch
from relab.train.envs.cartpole import CartPole
from relab.train.envs.pendulum import Pendulum
from train.algos.learning import judge, learn, make, until

SMALL = {"envs": 8, "steps": 16, "epochs": 2, "minibatches": 2, "hidden": (16, 16)}


def preset(env: str, **more: object) -> ppo.State:
    """A state with the settings relab ships for this environment."""
    found = layers.resolve([Layer("test", {"env": env, **more})]).config
    return ppo.init(Setup(registry.env_class(env)(found.env), found.algo, found.seed, found.total_steps))


def test_solves_cartpole() -> None:
    assert until(preset("cartpole"), goal=475, every=4, most=160) >= 475


@pytest.mark.slow
def test_herd_learns_with_dying_agents_that_restart_alone() -> None:
    state = preset("herd", **{"env.agent_reset": "alone", "seed": 1})
    start = judge(state, mode="sampled")
    learn(state, 40)
    assert judge(state, mode="sampled") > start + 0.3


def test_solves_pendulum() -> None:
    assert until(preset("pendulum"), goal=-200, every=8, most=80) >= -200


def test_squashed_actions_solve_pendulum_too() -> None:
    state = preset("pendulum", squash="true")
    assert until(state, goal=-200, every=8, most=80) >= -200
    raw = state.traj.action_TBK.reshape(-1, 1)
    assert np.abs(raw).max() > 1, "raw actions are not bounded"
    assert np.abs(state.agent.to_env(raw)).max() <= 2


def test_learns_in_an_environment_of_gymnasium() -> None:
    """About 22 without learning, and as fast as in relab's own CartPole at first."""
    state = make("gym:CartPole-v1", envs=16, steps=32, epochs=8, minibatches=4, lr=3e-3, gamma=0.98, lam=0.9)
    assert until(state, goal=120, every=4, most=40) >= 120


@pytest.mark.slow
def test_solves_acrobot() -> None:
    assert until(preset("gym:Acrobot-v1"), goal=-100, every=8, most=80) >= -100


@pytest.mark.slow
@pytest.mark.parametrize("rnn", ["gru", "lstm"])
def test_recurrent_nets_solve_cartpole(rnn: str) -> None:
    state = make(
        "cartpole",
        envs=32,
        steps=32,
        epochs=8,
        minibatches=4,
        lr=3e-3,
        gamma=0.98,
        lam=0.9,
        rnn=rnn,
        bptt=16,
        hidden=(32,),
        rnn_size=32,
    )
    assert until(state, goal=475, every=5, most=150) >= 475


def test_the_ratio_starts_at_one_on_the_first_minibatch() -> None:
    """Acting and learning must see the same policy: with one epoch and one minibatch nothing has moved yet."""
    for more in ({}, {"norm_obs": True}, {"rnn": "lstm", "bptt": 8, "rnn_size": 16}):
        for env in ("cartpole", "pendulum"):
            state = make(env, **SMALL | {"epochs": 1, "minibatches": 1} | more)
            for row in learn(state, 3):
                assert row["policy/ratio_max"] == pytest.approx(1, abs=1e-4), (env, more)
                assert row["policy/kl"] == pytest.approx(0, abs=1e-6), (env, more)
                assert row["policy/clip_share"] == 0


def test_advantages_are_standardised_over_the_batch_not_over_its_minibatches() -> None:
    state = make("cartpole", **SMALL)
    ppo.collect(state)
    adv_TB = ppo.appraise(state)[0].adv
    assert adv_TB.mean() == pytest.approx(0, abs=1e-5)
    assert adv_TB.std() == pytest.approx(1, abs=1e-4)
    assert abs(adv_TB[:8].mean()) > 1e-3, "a part of the batch keeps its own mean"
    assert "whole batch" in field_docs(PPO)["norm_adv"]
    PPO(**SMALL | {"minibatches": 128}).check()  # minibatches of one row: nothing is divided by their spread


@pytest.mark.parametrize("more", [{}, {"rnn": "gru", "bptt": 16}, {"activation": "relu"}, {"value_coef": 2.0}])
def test_the_critics_bias_is_pulled_by_the_mean_error(more) -> None:
    """One minibatch: dL/db = mean(V - target) = -mean advantage, whichever engine makes the gradient."""
    state = make("cartpole", **(SMALL | {"minibatches": 1} | more))
    ppo.collect(state)
    found = ppo.update(state)
    assert found["value/bias_slope"] == pytest.approx(-found["data/advantage_mean"], rel=1e-3, abs=1e-5)


def test_a_gradient_through_the_targets_changes_that_pull(monkeypatch) -> None:
    from relab.lab.faults.replacements import targets_follow

    monkeypatch.setattr(ppo, "appraise", targets_follow(ppo.appraise))
    state = make("cartpole", **(SMALL | {"minibatches": 1}))
    ppo.collect(state)
    found = ppo.update(state)
    assert abs(found["value/bias_slope"]) < 0.75 * abs(found["data/advantage_mean"])


def test_autograd_and_hand_derived_gradients_train_alike() -> None:
    states = [make("pendulum", **SMALL | {"lr": 1e-3, "ent_coef": 0.01, "clip_value": 0.5}) for _ in range(2)]
    other = states[1]
    other.learner = TorchLearner(other.agent.net, other.agent.head, other.agent.params, 100)
    rows = [learn(state, 3) for state in states]
    a, b = (state.agent.params.flat for state in states)
    assert torch.allclose(a, b, atol=1e-4)
    for name in rows[0][0]:
        assert rows[0][0][name] == pytest.approx(rows[1][0][name], rel=1e-3, abs=1e-4), name


def test_time_cuts_are_bootstrapped_and_terminations_are_not() -> None:
    state = make("pendulum", env_params={"horizon": 5}, **SMALL)
    ppo.collect(state)
    vn = ppo_successors(state)
    cut = state.traj.truncated_TB
    assert cut.sum() == 8 * 3
    t, rows, obs, memory = state.traj.final[0]
    assert np.allclose(vn[t, rows], state.agent.value(obs, memory))
    assert not np.allclose(vn[t, rows], state.traj.value_TB[t + 1, rows]), "the next row is another episode"
    assert np.allclose(vn[0], state.traj.value_TB[1]), "inside an episode it is the next row"
    state = make("cartpole", **SMALL | {"steps": 64})
    ppo.collect(state)
    vn = ppo_successors(state)
    assert state.traj.terminated_TB.any()
    assert (vn[state.traj.terminated_TB] == 0).all()


def ppo_successors(state: ppo.State) -> np.ndarray:
    ppo.appraise(state)
    return ppo.successor_values(state)


def test_a_task_that_ends_at_the_horizon_gets_no_bootstrap() -> None:
    state = make("pendulum", env_params={"horizon": 5}, **SMALL)
    import dataclasses

    state.agent.spec = dataclasses.replace(state.agent.spec, timeout_is_terminal=True)
    ppo.collect(state)
    vn = ppo_successors(state)
    assert (vn[state.traj.truncated_TB] == 0).all()


def test_dead_agents_reach_neither_loss_nor_metrics() -> None:
    """Change everything about rows that were not alive: the update must not notice."""
    found = []
    for noise in (0.0, 1e3):
        state = make("herd", env_params={"agent_reset": "with_world"}, **SMALL | {"steps": 64, "norm_obs": True})
        ppo.collect(state)
        dead = ~state.traj.alive_TB
        assert 0 < dead.mean() < 1
        state.traj.obs_TBD[dead] = noise
        state.traj.logp_TB[dead] = noise
        found.append((ppo.update(state), state.agent.params.flat.clone()))
    assert torch.equal(found[0][1], found[1][1])
    assert found[0][0] == pytest.approx(found[1][0], nan_ok=True)


def test_kl_early_stop_takes_no_step_past_the_limit() -> None:
    free = make("cartpole", **SMALL | {"lr": 0.03, "epochs": 10})
    held = make("cartpole", **SMALL | {"lr": 0.03, "epochs": 10, "target_kl": 0.01})
    a, b = learn(free, 1)[0], learn(held, 1)[0]
    assert b["optim/kl_stop"] == 1
    assert b["optim/epochs"] < 10
    assert b["data/updates"] < a["data/updates"] == 20
    assert a["optim/kl_stop"] == 0
    assert b["policy/kl_max"] > 0.015, "the minibatch that stopped it is shown"


def test_schedules() -> None:
    cfg = SMALL | {"lr": 1e-3, "lr_schedule": "linear", "lr_final": 0.1, "ent_coef": 0.1, "ent_coef_final": 0.0}
    rows = learn(make("cartpole", total=4 * 128, **cfg), 5)
    assert [row["optim/lr"] for row in rows] == pytest.approx([1e-3, 7.75e-4, 5.5e-4, 3.25e-4, 1e-4])
    assert [row["optim/ent_coef"] for row in rows] == pytest.approx([0.1, 0.075, 0.05, 0.025, 0])
    assert ppo.adapted(1e-3, kl=0.03, target=0.01) == pytest.approx(1e-3 / 1.5)
    assert ppo.adapted(1e-3, kl=0.004, target=0.01) == pytest.approx(1.5e-3)
    assert ppo.adapted(1e-3, kl=0.01, target=0.01) == 1e-3
    assert ppo.adapted(1e-5, kl=1.0, target=0.01) == 1e-5


def test_log_std_stays_inside_its_clamp() -> None:
    state = make("pendulum", **SMALL | {"lr": 0.1, "ent_coef": 1.0, "log_std_max": 0.3})
    row = learn(state, 4)[-1]
    assert row["policy/std_max"] == pytest.approx(np.exp(0.3), rel=1e-5)
    assert row["policy/entropy_push"] > 0


def test_reward_scale_is_the_spread_of_the_discounted_return() -> None:
    state = make("pendulum", **SMALL | {"norm_return": True, "gamma": 0.9, "steps": 64})
    row = learn(state, 1)[0]
    sums, total = [], np.zeros(8)
    for t in range(64):
        total = 0.9 * total + state.traj.reward_TB[t]
        sums.append(total.copy())
    assert row["data/reward_scale"] == pytest.approx(np.std(sums), rel=1e-3)
    assert abs(row["value/target_max"]) < 10


def test_monte_carlo_equals_gae_with_lambda_one() -> None:
    rows = [learn(make("cartpole", **SMALL | more), 2)[-1] for more in ({"advantage": "monte_carlo"}, {"lam": 1.0})]
    assert rows[0]["data/advantage_std"] == pytest.approx(rows[1]["data/advantage_std"], rel=1e-4)


def test_multi_discrete_actions_train() -> None:
    state = make("algos.multi:Dials", **SMALL | {"steps": 32, "lr": 3e-3, "epochs": 8})
    first = learn(state, 1)[0]
    assert first["policy/entropy_share"] > 0.95
    learn(state, 40)
    assert judge(state) > 2.9


@pytest.mark.parametrize("env", [CartPole, Pendulum])
@pytest.mark.parametrize(
    "settings", [{}, {"target_kl": 0.001, "lr": 0.01}, {"clip_value": 0.2, "ent_coef": 0.01}], ids=str
)
@pytest.mark.some(4)
def test_all_epochs_in_one_call_are_the_steps_one_by_one(env, settings):
    """Weights, moments and metrics are equal to the last bit, also where KL ends the epochs early."""
    left = []
    for one_call in (True, False):
        state = ppo.init(Setup(env(), PPO(envs=4, steps=33, hidden=(16, 16), **settings), 7, 10**6))
        state.learner.one_call = one_call
        rows = [ppo.iterate(state, Stopwatch()) for _ in range(4)]
        left.append((state.agent.params.flat.numpy(), state.adam.m, state.adam.v, state.adam.updates, rows))
    assert all(np.array_equal(a, b) for a, b in zip(left[0][:3], left[1][:3]))
    assert left[0][3] == left[1][3]
    assert left[0][4] == left[1][4]
    assert any(row["optim/kl_stop"] for row in left[0][4]) == ("target_kl" in settings)


@pytest.mark.parametrize(("n", "parts"), [(512, 4), (10, 4), (3, 3), (7, 1)])
def test_minibatches_are_cut_as_numpy_cuts(n, parts):
    theirs = [len(part) for part in np.array_split(np.arange(n), parts)]
    assert np.diff(ppo.cut_evenly(n, parts)).tolist() == theirs


def test_staggered_worlds_do_not_end_together():
    """Four worlds, a limit of 100 steps: they are cut after 100, 75, 50 and 25 steps, then every 100."""
    state = make("pendulum", envs=4, steps=110, minibatches=1, stagger=True, env_params={"horizon": 100})
    ppo.collect(state)
    cuts = {world: np.flatnonzero(state.traj.truncated_TB[:, world]).tolist() for world in range(4)}
    assert cuts == {0: [99], 1: [74], 2: [49], 3: [24]}
