"""Do the rules about replay and offline methods keep to their limits: what heals a finding, what must not raise one?"""

from __future__ import annotations

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.config.views import MISSING, Change
from relab.health.rules.design import quiet

IQL = {"algo": {"name": "iql"}}


# ---- Offline methods


def leaving(returns):
    logp = np.concatenate([np.full(10, -0.7), np.linspace(-0.7, -2.5, 30)])
    return made({"policy/data_logprob": logp, "eval/return_det": returns}, IQL)


def test_a_policy_that_leaves_bad_data_and_does_better_is_left_alone():
    noise = np.random.default_rng(0).normal(size=12)
    assert asked("policy-left-the-data", leaving(10 + noise)).value > 1
    assert asked("policy-left-the-data", leaving(np.linspace(10, 200, 12) + noise)) is None


@pytest.mark.parametrize("algo", ["iql", "dqn", "sac", "td3"])
def test_a_value_after_the_end_is_told_of_every_method_that_bootstraps(algo):
    config = {"algo": {"name": algo}}
    assert asked("value-beyond-end", made({"value/after_end": np.linspace(0, 8, 20)}, config)).severity == "warning"
    assert asked("value-beyond-end", made({"value/after_end": np.zeros(20)}, config)) is None


# ---- Replay methods

PENDULUM = {"spec": {"action": {"kind": "continuous", "dim": 1, "low": [-2.0], "high": [2.0]}, "reward_high": 0.0,
                     "random": {"return_mean": -1231.0, "return_std": 287.0, "n": 1000}}}  # fmt: skip


def believing(value, returns, **more):
    """A run of TD3 or, with a temperature, of SAC: the actor's loss is minus the critic's value."""
    name = "sac" if "optim__temperature" in more else "td3"
    noise = np.random.default_rng(0).normal(size=30)
    columns = {"policy/actor_loss": -value + noise, "return/mean": returns + 5 * noise,
               "return/length": np.full(30, 200.0)}  # fmt: skip
    columns |= {key.replace("__", "/"): np.full(30, level) for key, level in more.items()}
    return made(columns, {"algo": {"name": name, "gamma": 0.98}}, dict(PENDULUM))


def test_a_critic_with_the_sign_of_the_returns_is_left_alone():
    assert asked("value-sign-turned", believing(120.0, -1500.0)).severity == "warning"
    assert asked("value-sign-turned", believing(-120.0, -1500.0)) is None
    assert asked("value-sign-turned", believing(10.0, -1500.0)) is None  # noise of a critic that knows nothing yet
    assert asked("value-sign-turned", believing(9000.0, -1500.0)) is None  # diverged, which is q-overestimation
    assert asked("value-sign-turned", believing(120.0, np.linspace(-800.0, 200.0, 30))) is None
    assert asked("value-sign-turned", believing(120.0, -300.0)).severity == "info"  # it learned all the same


def test_where_rewards_have_both_signs_a_value_may_have_another_one_than_the_return():
    view = believing(120.0, -1500.0)
    view.history.meta["spec"] = PENDULUM["spec"] | {"reward_high": 1.0}
    assert "one sign" in asked("value-sign-turned", view).missing


def test_a_value_that_entropy_can_explain_is_left_alone():
    assert asked("value-sign-turned", believing(120.0, -1500.0, optim__temperature=0.2)).value < 0
    assert asked("value-sign-turned", believing(120.0, -1500.0, optim__temperature=1.5)) is None


@pytest.mark.parametrize(
    ("value", "loss", "told"),
    [(-50_000.0, 6e6, "warning"), (-50_000.0, 2e9, None), (-9000.0, 1e4, None), (-300.0, 1.0, None)],
)
def test_another_scale_is_told_of_a_critic_that_fits_its_targets(value, loss, told):
    found = asked("value-in-other-units", believing(value, -1500.0, value__critic_loss=loss))
    assert (found and found.severity) == told


def test_where_nothing_was_ever_earned_there_is_no_scale():
    view = believing(0.5, np.zeros(30), value__critic_loss=1e-4)
    view.history.columns["return/mean"].values[:] = 0
    assert "other than 0" in asked("value-in-other-units", view).missing


@pytest.mark.parametrize(("gamma", "longest", "told"), [(0.3, 60.0, True), (0.3, 12.0, False), (0.98, 500.0, False)])
def test_a_short_sight_is_held_against_the_longest_episodes(gamma, longest, told):
    lengths = [longest, *np.full(20, 9.3)]  # what fails because of it ends early
    view = made({"return/length": lengths}, {"algo": {"name": "dqn", "gamma": gamma}})
    assert bool(asked("discount-out-of-range", view)) == told


# ---- relab's own runs: its settings have names of their own

OWN = {"name": "dqn", "tau": 1.0, "target_every": 100, "replay": 100_000, "minibatch": 64, "learning_starts": 1000}


def own(steps: int, updates: float, **algo):
    count = np.linspace(0, updates, 20)
    return made({"data/updates": count, "return/mean": np.full(20, 9.0), "return/length": np.full(20, 9.0)},
                {"algo": OWN | algo, "total_steps": steps})  # fmt: skip


def test_a_whole_copy_every_hundred_updates_is_a_target_network():
    assert asked("no-target-network", own(10_000, 2_000)) is None
    assert asked("no-target-network", own(10_000, 2_000, target_every=1)).value == 1.0


def test_a_copy_that_never_falls_due_is_counted_by_updates():
    view = own(10_000, 2_000, target_every=5_000)
    assert asked("target-network-frozen", view).value == 0
    assert asked("target-network-frozen", own(10_000, 6_000, target_every=5_000)) is None


def test_its_replay_and_minibatch_are_read():
    assert asked("replay-too-small", own(10_000, 2_000)) is None
    assert asked("replay-too-small", own(10_000, 2_000, replay=200)).value == pytest.approx(200 / 64)
    assert asked("rows-hardly-used", own(10_000, 2_000)) is None


@pytest.mark.parametrize(
    ("heat", "loss", "setting", "told"),
    [(0.5, 0.7, 0.5, True), (1.0, 0.0, None, True), (1.0, 0.0, 1.0, False), (np.linspace(1, 2, 20), 0.1, None, False)],
)
def test_a_temperature_that_stays_at_one_has_no_loss_either(heat, loss, setting, told):
    columns = {"optim/temperature": np.broadcast_to(heat, 20), "optim/temperature_loss": np.full(20, loss)}
    view = made(columns, {"algo": {"name": "sac", "temperature": setting}})
    assert bool(asked("temperature-stuck", view)) == told


@pytest.mark.parametrize(("heat", "told"), [(0.01, True), (1.0, False)])
def test_a_soft_value_may_hold_the_entropy_to_come(heat, told):
    """Rewards up to 1 allow 100, and a nat of entropy in each step as much as its temperature."""
    columns = {"value/q_mean": np.full(30, 160.0), "optim/temperature": np.full(30, heat)}
    spec = {"action": {"kind": "continuous", "dim": 1, "low": [-1.0], "high": [1.0]}, "reward_high": 1.0}
    view = made(columns, {"algo": {"name": "sac", "gamma": 0.99}}, {"spec": spec})
    assert bool(asked("value-above-bound", view)) == told


# ---- Runs that are short, cut short, or never earned anything


@pytest.mark.parametrize(
    ("state", "planned", "updates", "told"),
    [
        ("finished", 19_000, 0.0, True),
        ("failed", 60_000, 0.0, None),  # it would have learned
        ("interrupted", 60_000, 0.0, None),
        ("interrupted", 20_000, 0.0, True),  # nor would it have learned
        ("failed", 60_000, 7.0, False),  # in the row that it failed in
    ],
)
def test_learning_never_started_is_said_of_runs_that_were_not_cut_short(state, planned, updates, told):
    count = np.r_[np.zeros(19), updates]
    config = {"algo": {"name": "dqn", "learning_starts": 20_000}, "total_steps": planned}
    found = asked("learning-never-started", made({"data/updates": count}, config, state=state))
    if told is None:
        assert "cut short" in found.missing
    else:
        assert bool(found) == told


@pytest.mark.parametrize("rows", [16, 30, 200])
def test_the_ratio_of_a_short_run_counts_from_its_first_update_on(rows):
    """A quarter of an update a step, and none before step 1,000 of rows of 256: what a healthy DQN does."""
    steps = 256 * np.arange(1, rows + 1)
    healthy = np.floor(np.maximum(steps - 1000, 0) * 0.25)
    found = asked("replay-ratio-jump", made({"data/updates": (steps, healthy)}, {"algo": {"name": "dqn"}}))
    assert found is None or "8 rows since the first update" in found.missing
    late = np.arange(rows) >= rows * 2 // 3
    if rows > 16:
        jumps = (steps, healthy + late * 4 * (healthy - healthy[rows * 2 // 3 - 1]))
        assert asked("replay-ratio-jump", made({"data/updates": jumps}, {"algo": {"name": "dqn"}})).value > 2


def test_a_critic_is_not_too_high_where_nothing_was_ever_earned():
    columns = {"value/q_mean": np.full(24, 0.09), "return/mean": np.zeros(24), "return/length": np.full(24, 30.0)}
    config = {"algo": {"name": "dqn", "gamma": 0.99}}
    assert "nothing was earned yet" in asked("q-overestimation", made(columns, config)).missing
    columns["return/mean"] = np.r_[np.zeros(23), 0.01]
    assert asked("q-overestimation", made(columns | {"value/q_mean": np.full(24, 9.0)}, config)).value == 9


# ---- Names


def test_a_norm_of_gradients_is_no_convention_of_a_loss():
    x = np.linspace(1, 3, 30)
    view = made({"foreign/Loss/world_model_loss": x, "foreign/Grads/world_model": 2 * x})
    assert asked("constant-ratio", view) is None


def test_settings_of_any_kind_can_be_new():
    """A dict among them is no key of a set."""
    assert not quiet(Change("env.kwargs", MISSING, {}, 1.0))
    assert quiet(Change("algo.dueling", MISSING, False, 1.0))
