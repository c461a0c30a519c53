"""Does the tracking actor-critic do what its equations say? Slow loops, hand numbers, sanity modes, streams."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from relab.config import layers
from relab.config.base import ConfigError
from relab.config.tracking_ac import MODES, TrackingAC
from relab.train.algos import fourier
from relab.train.algos import tracking_ac as ac
from relab.train.contract import Setup
from relab.train.envs.torus import EVENTS
from train.algos.tracking_small import iterate, make

# ---- Features


def test_cosine_and_tangent_are_good_to_float32():
    x = np.linspace(-40, 40, 20_001).astype(np.float32)
    assert max(abs(float(fourier.cosine(v)) - math.cos(float(v))) for v in x) < 3e-7
    assert max(abs(float(fourier.tangent(v)) - math.tanh(float(v))) for v in x / 4) < 4e-7


def test_critic_features_are_those_of_the_equation():
    s = make()
    rng = np.random.default_rng(0)
    obs, action = rng.standard_normal((5, 18)).astype(np.float32), rng.standard_normal((5, 3, 2)).astype(np.float32)
    got = fourier.phi(s.agent.critic, obs, action)
    draws = ac.generator(0, "features/critic")
    weight = draws.standard_normal((36, 21))
    bias = draws.uniform(0, 2 * math.pi, 36)
    for i in range(5):
        want = np.zeros(40)
        for k in range(3):
            x = np.concatenate((obs[i], action[i, k], [1.0]))
            cos = math.sqrt(2 / 36) * np.cos(weight @ x + bias)
            want += np.concatenate((cos, obs[i, EVENTS : EVENTS + 3], [float(action[i, k] @ action[i, k])])) / 3
        assert got[i] == pytest.approx(want, abs=2e-6)


def test_actor_features_have_at_most_the_clipped_norm():
    s = make(psi_clip=0.5)
    obs = np.random.default_rng(1).standard_normal((6, 18)).astype(np.float32)
    plain = np.tanh(obs @ s.agent.actor.weight_XP + s.agent.actor.bias_P)
    norm = np.linalg.norm(plain, axis=1, keepdims=True)
    assert fourier.psi(s.agent.actor, obs) == pytest.approx(plain * np.minimum(1.0, 0.5 / norm), abs=1e-6)
    loose = fourier.psi(make(psi_clip=100.0).agent.actor, obs)
    assert loose == pytest.approx(plain, abs=1e-6), "below the bound they stay as they are"


def test_feature_norm_of_the_document_is_about_one():
    s = make(feature_dim=2048)
    ac.collect(s)
    phi = fourier.phi(s.agent.critic, s.batch.obs_TBD[0], s.batch.action_TBA[0][:, None])[:, :-4]
    assert np.square(phi).sum(1) == pytest.approx(1.0, abs=0.15)


# ---- One update, against loops


def slow_update(s: ac.State, b: ac.Batch) -> dict[str, np.ndarray]:
    """Every sum of the docstring as a loop over single steps."""
    cfg, agent = s.cfg, s.agent
    N, P = cfg.feature_dim, cfg.actor_feature_dim
    T, B = b.rho_TB.shape
    g_w, g_theta, td = np.zeros(N), np.zeros((P, 2)), []
    for t in range(T):
        for i in range(B):
            psi, ahead = (fourier.psi(agent.actor, b.obs_TBD[t + k, i][None])[0].astype(float) for k in (0, 1))
            m_pi, m_mu = agent.theta_pi.T @ psi / math.sqrt(P), agent.theta_mu.T @ psi / math.sqrt(P)
            a = b.action_TBA[t, i]
            pi = math.exp(-((a - m_pi) @ (a - m_pi)) / (2 * cfg.sigma_pi**2)) / (2 * math.pi * cfg.sigma_pi**2)
            mu = math.exp(-((a - m_mu) @ (a - m_mu)) / (2 * cfg.sigma_mu**2)) / (2 * math.pi * cfg.sigma_mu**2)
            rho = min(pi / mu, math.inf if cfg.rho_clip is None else cfg.rho_clip)
            phi = fourier.phi(agent.critic, b.obs_TBD[t, i][None], a[None, None])[0].astype(float)
            m_next = agent.theta_pi.T @ ahead / math.sqrt(P)
            noise = (b.next_TBKA[t, i] - m_next) / cfg.sigma_pi
            then = [(m_next + cfg.sigma_pi * e)[None, None] for e in noise]
            bar = np.mean([fourier.phi(agent.critic, b.obs_TBD[t + 1, i][None], each)[0] for each in then], axis=0)
            r = agent.teacher_N @ phi / math.sqrt(N) if cfg.reward == "teacher" else s.traj.reward_TB[t, i]
            delta = r + cfg.gamma * (agent.w @ bar) / math.sqrt(N) - agent.w @ phi / math.sqrt(N)
            td.append(delta**2)
            g_w += rho * delta * phi
            g_theta += rho * delta * np.outer(psi, a - m_pi) / (cfg.sigma_pi**2 * math.sqrt(P))
    scale = math.sqrt(B) * T
    w, theta_pi = agent.w + cfg.alpha_w * g_w / scale, agent.theta_pi + cfg.alpha_pi * g_theta / scale
    theta_mu = (1 - cfg.beta) * agent.theta_mu + cfg.beta * theta_pi
    ball = [x * min(1.0, cfg.theta_radius / np.linalg.norm(x)) for x in (theta_pi, theta_mu)]
    return {"w": w, "theta_pi": ball[0], "theta_mu": ball[1], "td": np.mean(td)}


@pytest.mark.parametrize(
    "settings",
    [
        {"alpha_w": 5.0, "alpha_pi": 80.0},
        {"gamma": 0.0},
        {"reward": "events", "rho_clip": 1.1},
        {"theta_radius": 0.5, "k_mc": 1},
    ],
    ids=str,
)
def test_an_update_is_the_loop_over_single_steps(settings):
    s = make(**settings)
    ac.collect(s)
    want = slow_update(s, s.batch)
    found = ac.update(s)
    for name, value in s.agent.params().items():
        assert value == pytest.approx(want[name], rel=1e-5, abs=1e-7), name
    assert found["value/td_loss"] == pytest.approx(want["td"], rel=1e-4)


def test_the_critic_sees_what_the_world_sees_when_actions_are_squashed():
    plain, squashed = make(), make(squash_action=True)
    for s in (plain, squashed):
        ac.collect(s)
    assert np.array_equal(plain.batch.action_TBA[0], squashed.batch.action_TBA[0]), "the draw is the same"
    assert not np.array_equal(plain.batch.obs_TBD[1], squashed.batch.obs_TBD[1]), "the world moved otherwise"
    want = slow_update(squashed, replace(squashed.batch, action_TBA=squashed.batch.action_TBA))
    ac.appraise(squashed, squashed.batch, squashed.agent.w)
    assert np.square(squashed.batch.delta_TB).mean() != pytest.approx(want["td"], rel=1e-6), "phi sees tanh(a)"


def test_projection_keeps_what_is_inside_and_scales_what_is_not():
    theta = np.array([[3.0, 0.0], [0.0, 4.0]])
    assert ac.projected(theta, 5.0) is theta
    assert np.linalg.norm(ac.projected(theta, 2.5)) == pytest.approx(2.5)
    assert ac.projected(theta, 2.5) == pytest.approx(theta / 2)


def test_step_scale_of_the_document():
    assert TrackingAC().step_scale == pytest.approx(2.5e-5, rel=1e-12)
    assert TrackingAC().batch == 3200


# ---- Sanity modes


@pytest.mark.parametrize("mode", MODES)
def test_sanity_modes(mode: str):
    s = make(**{"alpha_w": 5.0, "alpha_pi": 50.0, **MODES[mode]})
    before = {name: x.copy() for name, x in s.agent.params().items()}
    rows = iterate(s, 4)
    if mode == "on_policy":
        assert np.all(s.batch.rho_TB == 1.0)
        assert all(row["policy/tracking_gap"] == 0.0 and row["policy/ess_share"] == 1.0 for row in rows)
    else:
        assert rows[-1]["policy/rho2_mean"] > 1.0
        assert rows[-1]["policy/tracking_gap"] > 0.0
    fixed = np.array_equal(before["theta_pi"], s.agent.theta_pi)
    assert fixed == (mode == "fixed_pi")
    moved = np.linalg.norm(s.agent.w - before["w"])
    assert moved > 0
    if mode == "no_bootstrap":
        s.batch.next_TBKA[:] = np.nan  # nothing ahead is looked at
        ac.appraise(s, s.batch, s.agent.w)
        assert np.isfinite(s.batch.delta_TB).all()


def test_tracking_gap_falls_by_the_square_of_one_minus_beta_while_the_target_stands():
    rows = iterate(make(alpha_pi=0.0, beta=0.1, theta_radius=100.0), 6)
    gaps = [row["policy/tracking_gap"] for row in rows]
    assert [b / a for a, b in pairwise(gaps)] == pytest.approx([0.81] * 5, rel=1e-12)


def test_without_bootstrap_the_critic_finds_the_teacher():
    s = make(gamma=0.0, alpha_w=6.0, trajectories=8, horizon=30)
    rows = iterate(s, 400)
    assert rows[-1]["value/teacher_error"] < 0.01 * rows[0]["value/teacher_error"]


# ---- Streams, threads, worlds


def test_an_offset_shifts_no_other_draw():
    plain, offset = make(theta_mu_offset_scale=0.0), make(theta_mu_offset_scale=0.5)
    for name in ("w", "theta_pi"):
        assert np.array_equal(plain.agent.params()[name], offset.agent.params()[name])
    assert not np.array_equal(plain.agent.theta_mu, offset.agent.theta_mu)
    assert np.array_equal(plain.agent.teacher_N, offset.agent.teacher_N)
    assert np.array_equal(plain.agent.critic.weight_XF, offset.agent.critic.weight_XF)


def test_more_draws_of_the_next_action_shift_no_other_draw():
    few, many = make(k_mc=1), make(k_mc=7)
    for s in (few, many):
        ac.collect(s)
    assert np.array_equal(few.batch.obs_TBD, many.batch.obs_TBD)
    assert np.array_equal(few.batch.rho_TB, many.batch.rho_TB)


def test_threads_change_no_bit():
    one, three = make(threads=1), make(threads=3)
    assert iterate(one, 3) == iterate(three, 3)
    assert np.array_equal(one.agent.w, three.agent.w)


def test_a_world_does_not_depend_on_how_many_there_are():
    few, many = make(trajectories=2), make(trajectories=6)
    for s in (few, many):
        ac.collect(s)
        ac.appraise(s, s.batch, s.agent.w)
    assert np.array_equal(few.batch.obs_TBD, many.batch.obs_TBD[:, :2])
    assert few.batch.rho_TB == pytest.approx(many.batch.rho_TB[:, :2], rel=1e-12)


def test_a_restored_state_goes_on_to_the_same_bits():
    whole, parts = make(alpha_w=5.0), make(alpha_w=5.0)
    iterate(whole, 5)
    iterate(parts, 2)
    again = make(alpha_w=5.0)
    again.load(parts.to_tree())
    assert iterate(again, 3)[-1]["value/w_norm"] == np.linalg.norm(whole.agent.w)
    assert np.array_equal(again.agent.theta_mu, whole.agent.theta_mu)


# ---- Settings


def test_the_environment_of_its_own_is_the_torus():
    found = layers.resolve([layers.Layer("command line", {"algo": "tracking_ac"})])
    assert found.config.env.name == "torus-v1"
    assert (found.config.iterations, found.config.eval.every) == (200, 0)


@pytest.mark.parametrize(
    ("key", "near"),
    [
        ("n_power_iters", "probes.stability.power_iters"),
        ("probes.stability.n_power_iters", "power_iters"),
        ("alpha_v", "alpha_w"),
    ],
)
def test_a_misspelt_key_is_an_error_that_names_the_nearest(key: str, near: str):
    with pytest.raises(ConfigError, match=near):
        layers.resolve([layers.Layer("command line", {"algo": "tracking_ac", key: "80"})])


def test_ratios_of_infinite_variance_need_a_clip():
    with pytest.raises(ConfigError, match="rho_clip"):
        TrackingAC(sigma_mu=0.2, sigma_pi=0.3, rho_clip=None).check()
    TrackingAC(sigma_mu=0.2, sigma_pi=0.3).check()


def test_another_world_is_refused():
    from relab.train.envs.pendulum import Pendulum

    with pytest.raises(ConfigError, match="env=torus"):
        ac.init(Setup(Pendulum(), TrackingAC(), 0, 1))


def test_probes_are_one_line_of_a_difference_while_the_other_side_has_none():
    plain, probed = (
        layers.resolve([layers.Layer("command line", {"algo": "tracking_ac", **more})]).config
        for more in ({}, {"probes.every": "5"})
    )
    assert [(c.key, c.a, c.b) for c in layers.diff(plain, probed)] == [("probes", None, "set")]
    other = layers.replace(probed, {"probes.every": 7})
    assert [(c.key, c.a, c.b) for c in layers.diff(probed, other)] == [("probes.every", 5, 7)]
    assert layers.replace(probed, {"probes": None}).probes is None
    assert layers.config_hash(plain) != layers.config_hash(probed)
