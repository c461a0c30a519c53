"""What does a curve show by itself, where the log holds no settings? Each with a run in which it must be silent."""

from __future__ import annotations

import numpy as np
import pytest
from test_rules_foreign import RULES, asked, made

from relab.formats.read import tb_merge
from relab.formats.read.tb_merge import Place, Points
from relab.health import engine
from relab.health.engine import Finding, NotChecked

RISES = np.linspace(10, 100, 40) + np.sin(np.arange(40))
FLAT = 10 + np.sin(np.arange(40) * 2.0)
TUNED = {"algo": {"name": "finetune", "update": "awr", "advantage": "rerollout", "beta": 0.05, "cap": 20.0}}
GAUSS = {"algo": {"name": "ppo_continuous_action"}}
PPO = {"algo": {"name": "ppo"}}


def told(slug, columns, config=None, meta=None):
    """The severity of a finding; None where there is none."""
    answer = asked(slug, made(columns, config or PPO, meta))
    assert not isinstance(answer, NotChecked), answer
    return answer.severity if isinstance(answer, Finding) else None


@pytest.mark.parametrize(
    ("kl", "returns", "expected"), [(0.3, FLAT, "warning"), (0.3, RISES, "info"), (0.03, FLAT, None)]
)
def test_a_large_kl_needs_no_target(kl, returns, expected):
    assert told("update-too-large", {"policy/kl": np.full(40, kl), "return/mean": returns}) == expected


@pytest.mark.parametrize(("start", "end", "expected"), [(2.8, 3.6, "warning"), (2.8, 2.9, None), (-1.2, 0.5, None)])
def test_a_gaussian_that_widens_needs_no_coefficient(start, end, expected):
    columns = {"policy/entropy": np.linspace(start, end, 40), "return/mean": RISES}
    assert told("entropy-runaway", columns, GAUSS) == expected


@pytest.mark.parametrize(("end", "expected"), [(3950.0, "warning"), (1.8, None)])
def test_a_spread_that_grows_needs_no_range(end, expected):
    assert told("std-exceeds-action-range", {"foreign/train/std": np.linspace(1.5, end, 40)}, GAUSS) == expected


@pytest.mark.parametrize(
    ("ev", "returns", "expected"), [(-3.0, RISES, "warning"), (0.0, RISES, None), (0.0, -RISES, "warning")]
)
def test_a_critic_worse_than_nothing_counts_whatever_the_return_does(ev, returns, expected):
    columns = {"value/explained_variance": np.full(40, ev), "return/mean": returns}
    assert told("critic-not-learning", columns) == expected


@pytest.mark.parametrize(("loss", "expected"), [(1e9, "warning"), (2e4, "info"), (50.0, None)])
def test_a_value_loss_out_of_all_scale_is_a_warning(loss, expected):
    answer = asked("value-loss-blow-up", made({"value/loss": np.full(40, loss), "return/mean": RISES}, PPO))
    severity = (answer.severity or "info") if isinstance(answer, Finding) else None
    assert severity == expected


@pytest.mark.parametrize(("returns", "expected"), [(FLAT, "warning"), (RISES, "info")])
def test_random_actions_to_the_end_count_where_nothing_was_learned(returns, expected):
    columns = {"policy/exploration": np.ones(40), "return/mean": returns}
    assert told("exploration-never-ends", columns, {"algo": {"name": "dqn"}}) == expected


def test_a_rate_printed_as_zero_in_a_run_that_learned_is_a_remark():
    rate = np.r_[np.full(5, 1e-3), np.zeros(35)]
    assert told("learning-rate-zero", {"optim/lr": rate, "return/mean": RISES}) == "warning"
    assert told("learning-rate-zero", {"optim/lr": np.zeros(40), "return/mean": RISES}) == "info"
    assert told("learning-rate-zero", {"optim/lr": np.linspace(1e-3, 0, 40), "return/mean": RISES}) is None


def test_a_short_discount_is_the_business_of_ppo_too():
    columns = {"return/mean": FLAT, "return/length": np.full(40, 60.0)}
    assert told("discount-out-of-range", columns, {"algo": {"name": "ppo", "gamma": 0.2}}) == "warning"
    assert told("discount-out-of-range", columns, {"algo": {"name": "ppo", "gamma": 0.99}}) is None


def test_a_weight_of_zero_leaves_the_critic_untrained():
    assert told("setting-out-of-range", {}, {"algo": {"name": "ppo", "value_coef": 0.0}}) == "warning"
    assert told("setting-out-of-range", {}, {"algo": {"name": "ppo", "value_coef": 0.5}}) is None


def test_a_fall_among_few_long_episodes_is_seen_by_its_steps():
    """A thousand short episodes, then forty long ones over half of the steps, which earn nothing."""
    steps = np.r_[np.arange(1000) * 10, 10_000 + np.arange(40) * 250]
    returns = np.r_[np.minimum(np.arange(1000) / 300, 1.0), np.full(40, -2.0)] + 0.01 * np.sin(np.arange(1040) * 1.7)
    assert told("peak-then-collapse", {"return/mean": (steps, returns)}) == "warning"
    assert told("peak-then-collapse", {"return/mean": (steps[:1000], returns[:1000])}) is None


def test_steps_that_a_file_wrote_twice_are_told():
    steps = np.r_[np.arange(0, 50, 10), np.arange(0, 50, 10)]
    merged = tb_merge.Merged()
    tb_merge._in_order(Points(steps, steps * 1.0, steps * 1.0), merged, Place("events", "x"))
    again = merged.again
    assert again is not None
    assert (again.step, again.points) == (0, 5)
    columns = {"return/mean": FLAT}
    assert told("steps-not-monotone", columns, meta={"steps_again": {"step": 0, "points": 5, "tags": 1}}) == "warning"
    assert told("steps-not-monotone", columns) is None


# ---- Outcomes without a known random level


@pytest.mark.parametrize(("returns", "expected"), [(FLAT, "warning"), (RISES, None)])
def test_training_that_gains_nothing_over_its_start_is_told(returns, expected):
    assert told("has-not-learned", {"return/mean": returns}) == expected


def test_a_twentieth_of_the_way_to_solved_is_nothing():
    """15 to 26 is clear of noise, where random earns 22 and 475 is solved."""
    meta = {"spec": {"env": "CartPole-v1", "random": {"return_mean": 22.2, "return_std": 11.0, "n": 1000}}}
    slow = 26 - 11 * np.exp(-np.arange(40) / 4) + 0.1 * np.sin(np.arange(40))
    assert told("has-not-learned", {"return/mean": slow}, meta=meta) == "warning"
    rises = np.linspace(15, 60, 40) + 0.1 * np.sin(np.arange(40))  # slow, but on its way
    assert told("has-not-learned", {"return/mean": rises}, meta=meta) is None


# ---- Things that need fewer inputs than they seem to


@pytest.mark.parametrize(("turn", "expected"), [(-1.0, "warning"), (1.0, None)])
def test_a_kl_that_is_always_below_0_has_its_sign_turned(turn, expected):
    kl = turn * (0.01 + 0.002 * np.sin(np.arange(40)))
    assert told("negative-kl", {"policy/kl_k1": kl, "return/mean": RISES}) == expected


@pytest.mark.parametrize(
    ("moves", "returns", "expected"), [(0.0, FLAT, "warning"), (0.3, FLAT, None), (0, RISES, None)]
)
def test_a_policy_without_a_logged_kl_stands_still_by_its_entropy(moves, returns, expected):
    columns = {"policy/entropy": 0.69 - moves * np.linspace(0, 1, 40), "return/mean": returns}
    assert told("policy-not-moving", columns, {"algo": {"name": "a2c"}}) == expected


def test_a_library_that_logs_losses_and_has_none_never_started():
    view = made({"return/mean_100": FLAT}, {"algo": {"name": "sac"}})
    episode = {"rollout/ep_rew_mean": "return/mean_100", "rollout/ep_len_mean": "return/length"}
    view.history.mapping = episode
    assert isinstance(asked("learning-never-started", view), Finding)
    view.history.mapping = episode | {"train/actor_loss": "policy/actor_loss"}
    assert isinstance(asked("learning-never-started", view), NotChecked)


def test_a_log_of_nothing_but_the_return_says_nothing_of_losses():
    """Somebody wrote one number of a library's to MLflow: that there is no loss is their choice."""
    view = made({"return/mean_100": FLAT}, {"algo": {"name": "sac"}})
    view.history.mapping = {"rollout/ep_rew_mean": "return/mean_100"}
    assert isinstance(asked("learning-never-started", view), NotChecked)


@pytest.mark.parametrize(
    ("algo", "setting", "value"),
    [
        ("ppo", "clip_range", 0.0), ("ppo", "n_epochs", 300), ("ppo", "ent_coef", 5.0), ("ppo", "vf_coef", 0.0),
        ("dqn", "exploration_final_eps", 0.9), ("dqn", "start_e", 0.0), ("td3", "exploration_noise", 5.0),
        ("sac", "ent_coef", 100.0), ("ppo", "max_grad_norm", 1e-7), ("a2c", "learning_rate", 0.0),
    ],
)  # fmt: skip
def test_settings_that_hardly_anybody_uses_warn_where_nothing_was_learned(algo, setting, value):
    config = {"algo": {"name": algo}, "foreign": {setting: value}}
    assert told("setting-out-of-range", {"return/mean": FLAT}, config) == "warning"
    if setting != "vf_coef":  # which switches the critic off, whatever came of it
        assert told("setting-out-of-range", {"return/mean": RISES}, config) == "info"


@pytest.mark.parametrize(("starts", "severity"), [(1_000, None), (30_000, "warning"), (39_000, None)])
def test_learning_that_begins_when_most_of_the_run_is_over_is_told_whatever_came_of_it(starts, severity):
    config = {"algo": {"name": "td3"}, "foreign": {"learning_starts": starts}}
    assert told("setting-out-of-range", {"return/mean": RISES}, config) == severity


@pytest.mark.parametrize(("lr", "slug"), [(0.1, "steps-too-large"), (1e-9, "steps-too-small")])
@pytest.mark.parametrize("algo", ["ppo", "a2c", "dqn", "sac"])
def test_learning_rates_are_everybodys_business(algo, lr, slug):
    config = {"algo": {"name": algo, "lr": lr}}
    assert told(slug, {"return/mean": FLAT}, config) == "warning"


def test_the_smallest_of_several_rates_counts():
    config = {"algo": {"name": "sac"}, "foreign": {"q_lr": 1e-8, "policy_lr": 1e-3}}
    answer = asked("steps-too-small", made({"return/mean": FLAT}, config))
    assert "steps, each with an update at most, with" in answer.message  # nobody counted the updates
    assert isinstance(answer, Finding)
    assert "q_lr" in answer.message


@pytest.mark.parametrize(
    ("names", "kind"), [({"train/entropy_loss"}, "discrete"), ({"train/entropy_loss", "train/std"}, None)]
)
def test_what_stable_baselines_leaves_out_tells_the_kind_of_action(names, kind):
    view = made({"policy/entropy": np.linspace(1.4, 0.7, 40), "return/mean": RISES}, PPO)
    usual = {"train/explained_variance", "rollout/ep_rew_mean"}
    view.history.mapping = dict.fromkeys(names | usual, "policy/entropy")
    assert view.kind == kind


# ---- A return at all


def test_updates_without_a_return_are_told():
    assert told("no-returns", {"value/loss": np.ones(40)}) == "warning"
    assert told("no-returns", {"value/loss": np.ones(40), "foreign/ep_reward": FLAT}) is None


def test_returns_that_never_differ_are_told():
    assert told("returns-all-alike", {"return/mean": np.zeros(40)}) == "warning"
    assert told("returns-all-alike", {"return/mean": FLAT}) is None


def test_fine_tuning_is_asked_what_weighs_its_rows():
    """Weights at the cap, planted by a temperature of 0.05; with PPO's update there are no weights to ask about."""
    columns = {"policy/weight_capped": np.full(10, 0.45), "policy/weight_ess": np.full(10, 0.45)}
    tuned = made(columns, TUNED)
    assert engine.applies(RULES["weights-at-cap"], tuned)
    assert told("weights-at-cap", columns, TUNED) is not None
    assert told("weights-at-cap", {"policy/weight_capped": np.full(10, 0.002)}, TUNED) is None
    clipped = made(columns, {"algo": {"name": "finetune", "update": "ppo", "advantage": "gae"}})
    assert not engine.applies(RULES["weights-at-cap"], clipped)
    assert engine.applies(RULES["value-above-q"], made({}, {"algo": {"name": "finetune", "advantage": "iql"}}))


def test_weights_nearly_all_at_the_cap_are_a_warning():
    """Of a standard normal at a cap of 20: at beta 0.1, which may still learn, 38 % are there of an effective 44 %; at
    0.01 it is 48.8 of 49.3 %. Skewed advantages have fewer above 0, and the same is true of those."""
    for share, ess, expected in (
        (0.38, 0.44, "info"),
        (0.488, 0.493, "warning"),
        (0.06, 0.062, "warning"),
        (0.02, 0.2, None),
    ):
        columns = {"policy/weight_capped": np.full(10, share), "policy/weight_ess": np.full(10, ess)}
        assert told("weights-at-cap", columns, TUNED) == expected


def test_whose_batch_it_was():
    """Rounding, and scales that moved a little, are no other policy; a batch that was asked for is none either."""
    for gap, expected in ((1e-7, None), (0.02, None), (0.8, "warning")):
        assert told("batch-of-another-policy", {"data/behaviour_gap": np.full(6, gap)}, TUNED) == expected
    wanted = {"algo": {**TUNED["algo"], "fixed_from": "other"}}
    assert told("batch-of-another-policy", {"data/behaviour_gap": np.full(6, 0.8)}, wanted) is None


@pytest.mark.parametrize(("explained", "expected"), [(-0.4, "info"), (0.0, "info"), (0.3, None)])
def test_a_critic_alone_is_held_against_a_constant(explained, expected):
    columns = {"value/explained_variance": np.array([0.2, explained]), "value/val_loss": np.array([0.1, 0.2])}
    assert told("critic-no-better-than-constant", columns, {"algo": {"name": "critic"}}) == expected


@pytest.mark.parametrize(
    ("snr", "rank", "bias", "expected"),
    [(0.0, -0.1, 0.01, "info"), (0.0, 0.5, 0.01, None), (2.0, 0.6, 0.01, None), (2.0, 0.6, 0.6, "info")],
)
def test_advantages_that_are_noise_or_less_than_what_was_cut_off(snr, rank, bias, expected):
    columns = {"data/advantage_snr": snr, "data/advantage_rank": rank, "data/rerun_bias": bias,
               "data/advantage_std": 0.06}  # fmt: skip
    again = {"algo": {"name": "finetune", "update": "awr", "advantage": "rerollout"}}
    assert told("advantages-all-noise", {name: np.full(6, x) for name, x in columns.items()}, again) == expected


@pytest.mark.parametrize(("held", "expected"), [(0.5, "warning"), (0.91, None), (0.84, None)])
def test_v_is_held_against_the_expectile_that_was_set(held, expected):
    iql = {"algo": {"name": "finetune", "update": "awr", "advantage": "iql", "expectile": 0.9}}
    assert told("expectile-not-as-set", {"value/expectile": np.full(6, held)}, iql) == expected


@pytest.mark.parametrize(("data", "steps", "expected"), [("online", 300, "warning"), ("online", 4_000, None),
                                                         ("fixed", 300, "warning"), ("fixed", 900, None)])  # fmt: skip
def test_copies_take_a_step_each(data, steps, expected):
    """256 states x 2 x 4 copies in each of six rows, or once; 256 steps of batches and none of evaluations a row."""
    config = {"algo": {**TUNED["algo"], "mc_samples": 4, "data": data}}
    columns = {"data/transitions": np.full(6, 256.0), "data/env_steps": np.arange(1, 7) * 256.0,
               "data/sim_steps": np.arange(1, 7) * float(steps)}  # fmt: skip
    assert told("rerollouts-left-out", columns, config) == expected


def test_steps_that_leave_the_reruns_out_are_named():
    columns = {"data/env_steps": np.arange(1, 11) * 500.0, "data/sim_steps": np.arange(1, 11) * 80_000.0,
               "data/eval_steps": np.arange(1, 11) * 5_000.0}  # fmt: skip
    assert told("uncounted-steps", columns, TUNED) is not None
    assert told("uncounted-steps", columns | {"data/sim_steps": np.arange(1, 11) * 5_500.0}, TUNED) is None


@pytest.mark.parametrize(("level", "expected"), [(20.0, Finding), (499.0, type(None))])
def test_a_posterior_that_says_little_is_no_fault_where_the_task_is_solved(level, expected):
    """CartPole at 500 with a KL of 0.28 nats: what is predicted needs no telling."""
    columns = {"model/kl": np.full(40, 0.28), "model/prior_entropy": np.full(40, 15.8)}
    columns |= {"model/post_entropy": np.full(40, 15.6), "return/mean": np.full(40, level)}
    spec = {"random": {"return_mean": 20.0, "return_std": 8.0, "n": 100}, "reward_high": 1.0, "horizon": 500}
    answer = asked("posterior-collapsed", made(columns, {"algo": {"name": "dreamer"}}, {"spec": spec}))
    assert isinstance(answer, expected)


@pytest.mark.parametrize(("top", "expected"), [(147.4, "found"), (333.3, None)])
def test_the_last_bin_that_is_logged_is_the_support(top, expected):
    columns = {"value/mean": np.full(40, 147.0), "value/support_top": np.full(40, top), "return/mean": RISES}
    answer = asked("support-ceiling", made(columns, {"algo": {"name": "dreamer", "gamma": 0.997}}))
    assert ("found" if isinstance(answer, Finding) else answer) == expected


@pytest.mark.parametrize(("value", "expected"), [(0.001, "info"), (3e-17, None)])
def test_what_is_nearly_nothing_was_not_printed_with_three_digits(value, expected):
    """A KL of 3e-17 beside rows of exactly 0 was taken for 0.000."""
    kl = [0.0] * 30 + [value * i for i in range(1, 11)]
    assert told("lost-to-rounding", {"policy/kl": np.array(kl), "return/mean": RISES}) == expected
