"""Do the rules keep to their limits on logs that are not relab's: odd shapes, other names, sweeps, real effects?"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from relab.health import engine
from relab.health.foreign import entropy_share, std_in_half_ranges
from relab.health.rule import Missing, all_rules
from relab.health.view import View, ViewGroup
from relab.record import glossary
from relab.record.history import Column, History

RULES = all_rules(plugins=False)
NAMES = [
    "foreign/w_norm", "foreign/delta_w_norm", "foreign/td_loss", "foreign/td_loss_from_q", "foreign/converged",
    "foreign/num_iters", "foreign/mean_reward", "foreign/score", "foreign/dyn_loss", "foreign/v_values",
]  # fmt: skip

ODD_SETTINGS = [
    {"tau": 0.0, "batch_size": 0, "buffer_size": 0, "lr": 0.0, "beta": 0.0, "norm_adv": True, "kl_free_nats": 0},
    {"tau": 1, "batch_size": 64, "buffer_size": 10, "lr": -1.0, "beta": -1.0, "target_entropy": 3.0, "n_steps": 1},
    {"tau": math.nan, "batch_size": 1e300, "lr": math.inf, "beta": 1e-9, "norm_adv": True, "rho_clip": 1.0},
    {"target_update_interval": 0, "kl_free_nats": 1.0, "b_start": -5, "b_end": 6, "n_envs": 0, "num_steps": 0},
]


def made(columns, config=None, meta=None, name="run", state="finished", probes=(), axis="env_steps"):
    """A foreign run out of values (steps 0, 1000, ...) or (steps, values)."""
    history = History(Path("/nowhere"), source="csv", config=config or {}, meta=meta or {}, probes=list(probes))
    for column, values in columns.items():
        steps, values = values if isinstance(values, tuple) else (np.arange(len(values)) * 1000, values)
        history.columns[column] = Column(np.asarray(steps, np.int64), np.asarray(values, np.float64))
        history.axes[column] = axis
    return View(history, name, state=state)


def asked(slug, seen):
    return engine._call(RULES[slug], seen, "x")


@pytest.mark.parametrize("seed", range(120))
def test_no_rule_breaks_on_odd_logs(seed):
    rng = np.random.default_rng(seed)
    names = [*rng.choice(list(glossary.METRICS), 25, replace=False), *rng.choice(NAMES, 6, replace=False)]
    odd = [0.0, 1.0, -1.0, 1e300, -1e300, math.nan, math.inf, 1e-300]
    shapes = [lambda n: rng.normal(size=n), lambda n: np.zeros(n), lambda n: rng.choice(odd, n)]
    columns = {str(name): shapes[rng.integers(3)](int(rng.choice([0, 1, 2, 3, 5, 12, 40]))) for name in names}
    algo = str(rng.choice(["ppo", "SAC", "dqn", "td3", "x", "iql", "AWR", "dreamer_v3", "a2c"]))
    config = {"algo": {"name": algo, "gamma": float(rng.choice([0.9, 1.0])), "ent_coef": 0.1, "max_grad_norm": 0.0},
              "total_steps": int(rng.choice([0, 10, 10**6])),
              "foreign": {"v_max": 1.0, "w_init_scale": 0.1, "feature_dim": 8, "max_iters": 1,
                          **ODD_SETTINGS[seed % 4]}}  # fmt: skip
    kind = {"kind": str(rng.choice(["discrete", "continuous"])), "n": [2], "dim": 1, "low": [-1.0], "high": [1.0]}
    meta = {"spec": {"action": kind, "random": {"return_mean": 0.0, "return_std": 0.0, "n": 1}, "reward_high": 1.0,
                     "horizon": 10}, "parent": "p"}  # fmt: skip
    views = [made(columns, config, meta, name=f"run-{i}", probes=[{"step": 1, "converged": "False", "x": None}])
             for i in range(3)]  # fmt: skip
    views[0].reference, views[0].is_parent = views[1], True
    _, gone = engine.ask_run(list(RULES.values()), views[0])
    _, more = engine.ask_groups(list(RULES.values()), [ViewGroup(v.name, [v]) for v in views])
    assert [each for each in gone + more if "the rule failed" in each.missing] == []


# ---- Frozen, capped, pinned


def test_a_norm_that_stands_still_while_the_parameters_turn_is_not_frozen():
    def run(step, axis="iteration"):
        columns = {"foreign/w_norm": np.full(50, 4.5), "foreign/delta_w_norm": np.full(50, step)}
        return made({name: (np.arange(50), values) for name, values in columns.items()}, axis=axis)

    assert asked("metric-frozen-at-init", run(1e-4)).severity == "warning"
    assert asked("metric-frozen-at-init", run(0.1)) is None
    assert asked("metric-frozen-at-init", run(1e-4, "env_steps")).severity == "info"


def test_the_step_to_look_at_is_that_of_the_part_that_stands_still():
    columns = {"value/w_norm": np.full(50, 4.4), "value/w_step": np.full(50, 1e-4)}
    config = {"algo": {"name": "tracking_ac", "alpha_w": 0.02, "alpha_pi": 0.06}}
    found = asked("metric-frozen-at-init", made(columns, config))
    assert found.suggest == [
        "compare a step with the norm: `alpha_w` is too small by about the norm over steps times their number."
    ]
    assert asked("metric-frozen-at-init", made(columns, {"algo": {"name": "ppo", "lr": 1e-9}})).suggest == [
        "compare a step with the norm: `lr` is too small by about the norm over steps times their number."
    ]


def test_a_norm_of_gradients_is_no_norm_of_parameters():
    assert isinstance(asked("metric-frozen-at-init", made({"foreign/grad_norm": np.ones(50)})), engine.NotChecked)


@pytest.mark.parametrize(("step", "expected"), [(1e-4, "warning"), (0.1, None)])
def test_steps_of_relabs_own_runs_count_by_their_iterations(step: float, expected: str | None):
    columns = {"value/w_norm": np.full(50, 4.4), "value/w_step": np.full(50, step), "data/iteration": np.arange(50.0)}
    found = asked("metric-frozen-at-init", made(columns, axis="agent_steps"))
    assert (found and found.severity) == expected


@pytest.mark.parametrize(("norm", "expected"), [(4.38, "warning"), (4.9, "info")])
def test_a_norm_may_be_off_its_expectation_by_the_luck_of_the_draw(norm: float, expected: str):
    run = made({"value/w_norm": np.full(50, norm)}, {"algo": {"w_init_scale": 0.1, "feature_dim": 2048}})
    assert asked("metric-frozen-at-init", run).severity == expected


def test_a_probe_with_a_fixed_number_of_iterations_has_no_cap():
    rows = [{"step": i, "probe": "power", "num_iters": 20} for i in range(9)]
    assert isinstance(asked("probe-hit-cap", made({}, probes=rows)), engine.NotChecked)
    capped = made({}, {"foreign": {"power.max_iters": 20}}, probes=rows)
    assert "9 of 9 rows" in asked("probe-hit-cap", capped).message


def test_a_loss_that_fades_to_zero_is_not_pinned():
    fades = made({"foreign/q_loss": np.maximum(np.exp(-np.arange(80.0)) - 1e-15, 0)})
    jumps = made({"foreign/q_loss": [*np.linspace(2, 1, 30), *np.zeros(30)]})
    printed = made({"foreign/q_loss": [*np.linspace(2, 1, 11), *np.zeros(30)]})
    assert asked("loss-pinned", fades) is None
    assert asked("loss-pinned", jumps).message == "foreign/q_loss stands at exactly 0"
    assert asked("loss-pinned", printed) is None


def test_a_value_at_the_end_of_its_bins_is_told_unless_it_is_all_there_is():
    config = {"algo": {"gamma": 0.997}, "foreign": {"b_end": 6}}
    values = {"foreign/critic_value": np.full(20, 147.2)}
    assert "symexp(5)" in asked("support-ceiling", made(values, config)).message
    small = made(values, config, {"spec": {"reward_high": 0.3}})
    assert asked("support-ceiling", small) is None


# ---- Names


def test_a_factor_that_changes_is_no_convention():
    x = np.linspace(1, 3, 30)
    half = made({"foreign/td_loss": x, "foreign/td_loss_from_q": x / 2})
    other = made({"foreign/td_loss": x, "foreign/td_loss_from_q": x * np.linspace(0.2, 0.9, 30)})
    assert "1/2 times" in asked("constant-ratio", half).message
    assert asked("constant-ratio", other) is None


def test_a_reward_that_agrees_with_the_return_is_left_alone():
    x = np.linspace(10, 20, 30)
    assert asked("name-is-not-definition", made({"return/mean": x, "foreign/mean_reward": x * 1.1})) is None
    found = asked("name-is-not-definition", made({"return/mean": x, "foreign/mean_reward": -x, "foreign/score": -x}))
    assert "as score" in found.message
    step = {"return/mean": x, "return/length": np.full(30, 200.0), "foreign/mean_reward": x / 200}
    judged = {"return/mean": x, "foreign/mean_reward": x * 1.1, "multi/return": 9 * x}  # in worlds of its own
    assert asked("name-is-not-definition", made(judged)) is None
    assert asked("name-is-not-definition", made(step)) is None


def test_a_speed_since_the_start_is_quoted_rightly():
    time = np.arange(30) * 2.0
    right = {"time/elapsed_s": time, "time/sps": np.full(30, 500.0)}
    assert asked("throughput-misquoted", made(right)) is None
    assert asked("throughput-misquoted", made(right | {"time/sps": np.full(30, 1300.0)})).value == pytest.approx(2.6)


def test_a_mean_since_the_resume_is_held_against_what_came_after_it():
    """The first part waited for a compiler or a busy machine; the mean speaks of the second alone."""
    time = np.concatenate((np.arange(1, 16) * 8.0, np.arange(1, 16) * 2.0))
    right = {"time/elapsed_s": time, "time/sps_mean": np.repeat((125.0, 500.0), 15)}
    assert asked("throughput-misquoted", made(right)) is None
    assert asked("throughput-misquoted", made(right | {"time/sps_mean": np.full(30, 1300.0)})).value == pytest.approx(
        2.6
    )


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("b0p005_tmos0p2778_s0", False), ("tmos0p28", False), ("tmos0p3778", True), ("x_seed1", True), ("v2-run5", False)],
)
def test_a_name_is_held_against_the_config_to_its_own_digits(name, wrong):
    view = made({}, {"seed": 0, "foreign": {"tmos": 0.277777777778, "b": 0.005}}, name=name)
    assert bool(asked("label-mismatch", view)) == wrong


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("mc5_awr", True), ("mc1_qv_par", True), ("awr_mc16_b05", False), ("awr_beta01", True), ("awr_beta05", False),
        ("awr_gamma099", False), ("awr_gamma08", True), ("iql_tau0.9_beta0.5", False), ("iql_tau0.7", True),
        ("seed10", True), ("seed1", False),
    ],
)  # fmt: skip
def test_names_of_a_log_are_held_against_their_settings(name, wrong):
    """mc5_awr had 16 samples; a point may be left out of a fraction (gamma099), not of a whole number (seed10)."""
    config = {"seed": 1, "algo": {"mc_samples": 16, "beta": 0.5, "gamma": 0.99, "expectile": 0.9}}
    assert bool(asked("label-mismatch", made({}, config, name=name))) == wrong


def test_one_axis_is_not_mixed():
    assert asked("mixed-step-axes", made({"return/mean": np.ones(50), "policy/kl": np.ones(50)})) is None
    short = made({"return/mean": np.ones(500), "foreign/tail": (np.arange(1, 9), np.ones(8))})
    assert "1 to 8" in asked("mixed-step-axes", short).message


# ---- Sweeps


def arms(values, returns, key="alpha", seed=0, more=None):
    views = []
    for value, level in zip(values, returns, strict=True):
        noise = np.random.default_rng(int(value * 100)).normal(size=40)
        config = {"seed": seed, "algo": {"name": "x"}, "foreign": {key: value}}
        views.append(made({"return/mean": level + noise, **(more or {}).get(value, {})}, config, name=f"{key}{value}"))
    return [ViewGroup(view.name, [view]) for view in views]


def test_an_axis_with_an_effect_is_not_inert():
    assert "alpha from 1 to 3 hardly moves" in asked("inert-axis", arms([1, 2, 3], [1000, 1001, 1002])).message
    assert asked("inert-axis", arms([1, 2, 3], [100, 120, 150])) is None
    assert isinstance(asked("inert-axis", arms([1, 2], [1000, 1001])), engine.NotChecked)


def test_an_arm_of_few_seeds_hides_no_difference_between_two_that_are_known_well():
    """52 and 55 over twenty seeds each; a third value has two seeds that lie far apart."""

    def arm(value, levels):
        config = {"foreign": {"help": value}}
        views = [made({"return/mean": level + np.zeros(40)}, config | {"seed": k}, name=f"{value}-{k}")
                 for k, level in enumerate(levels)]  # fmt: skip
        return ViewGroup(views[0].name, views)

    spread = np.random.default_rng(0).normal(size=20)
    few = arm(0.7, [51.5, 56.0])
    assert asked("inert-axis", [arm(0.5, 52 + spread), few, arm(0.9, 55 + spread)]) is None
    assert asked("inert-axis", [arm(0.5, 53 + spread), few, arm(0.9, 53.3 + spread)]) is not None


def norms(*values):
    return {i + 1: {"foreign/w_norm": np.full(5, x)} for i, x in enumerate(values)}


def test_another_start_in_one_arm_is_told_unless_the_setting_shapes_it():
    odd = norms(4.58, 4.53, 4.53)
    assert "4.58 with alpha = 1" in asked("coupled-random-streams", arms([1, 2, 3], [1, 2, 3], more=odd)).message
    assert asked("coupled-random-streams", arms([1, 2, 3], [1, 2, 3], more=norms(4.53, 4.53, 4.53))) is None
    shaped = arms([1, 2, 3], [1, 2, 3], "hidden_size", more=odd)
    assert isinstance(asked("coupled-random-streams", shaped), engine.NotChecked)


# ---- Derived numbers


def test_the_standard_deviation_comes_out_of_the_entropy():
    entropy = 4 * (math.log(866) + 0.5 * math.log(2 * math.pi * math.e))
    action = {"kind": "continuous", "dim": 4, "low": [-2.0] * 4, "high": [2.0] * 4}
    view = made({"policy/entropy": [5.0, 6.0, entropy]}, meta={"spec": {"action": action}})
    assert std_in_half_ranges(view).last == pytest.approx(433)
    with pytest.raises(Missing, match="range"):
        std_in_half_ranges(made({"policy/entropy": [5.0, 6.0, entropy]}))


def test_the_share_of_the_largest_entropy_comes_out_of_the_number_of_actions():
    view = made({"policy/entropy": np.full(5, math.log(2))}, meta={"spec": {"action": {"kind": "discrete", "n": [4]}}})
    assert entropy_share(view).last == pytest.approx(0.5)


def test_entropy_that_rises_with_the_return_is_no_runaway():
    entropy, config = np.linspace(1, 3, 40), {"algo": {"name": "ppo", "ent_coef": 0.01}}
    noise = np.random.default_rng(0).normal(size=40)
    worse = {"policy/entropy": entropy, "return/mean": np.linspace(100, 10, 40) + noise}
    better = {"policy/entropy": entropy, "return/mean": np.linspace(10, 100, 40) + noise}
    assert asked("entropy-runaway", made(worse, config)).confidence == "high"
    assert asked("entropy-runaway", made(better, config)) is None


CARTPOLE = {"action": {"kind": "discrete", "n": [2]}, "horizon": 500, "reward_high": 1.0,
            "random": {"return_mean": 22.0, "return_std": 11.0, "n": 100}}  # fmt: skip


def played(level, **columns):
    """A run with ten evaluations of ten episodes at one level."""
    view = made(columns, {"algo": {"name": "ppo"}}, {"spec": CARTPOLE})
    rows = [{"step": 1000 * k, "mode": "det", "episodes": [{"return": level, "length": level}] * 10} for k in range(10)]
    view.history.evals = rows
    return view


def test_a_critic_that_explains_nothing_in_a_solved_task_is_left_alone():
    bad = {"value/explained_variance": np.full(40, -1.0)}
    assert asked("critic-not-learning", played(500.0, **bad)) is None
    assert asked("critic-not-learning", played(20.0, **bad)).value == -1.0


def test_a_policy_may_be_certain_of_a_good_return():
    certain = {"policy/entropy": np.full(40, 0.01)}
    assert asked("entropy-collapse", played(420.0, **certain)) is None
    assert asked("entropy-collapse", played(150.0, **certain)).value < 0.05


def test_a_clip_range_that_shrinks_does_not_make_a_run_diverge():
    wild = {"policy/kl": np.full(40, 1e-3), "policy/clip_share": np.full(40, 0.95)}
    fixed, shrinking = (
        played(20.0, **wild),
        played(20.0, **wild, **{"foreign/train/clip_range": np.linspace(0.2, 0, 40)}),
    )
    assert asked("diverged", fixed).severity == "warning"
    assert asked("clip-share-high", fixed).severity == "warning"
    assert asked("clip-share-high", played(420.0, **wild)).severity == "info"
    assert asked("diverged", shrinking) is None
    assert asked("clip-share-high", shrinking) is None


def test_holes_in_returns_are_no_divergence_in_a_foreign_log():
    x = np.linspace(1, 2, 30)
    holes, torn = x.copy(), x.copy()
    holes[[0, 1, 7]], torn[20:] = np.nan, np.nan
    assert asked("non-finite", made({"return/mean": holes})) is None
    assert asked("non-finite", made({"return/mean": torn})).severity == "error"
    assert asked("non-finite", made({"policy/loss": holes})).severity == "warning"
    assert asked("non-finite", made({"return/mean": torn, "value/loss": x})) is None
    assert asked("non-finite", made({"return/mean": torn, "value/loss": torn})).severity == "error"


def test_episodes_that_end_at_one_step_are_in_order():
    same, back = np.array([1, 2, 2, 3]), np.array([1, 2, 1, 3])
    assert asked("steps-not-monotone", made({"return/mean": (same, np.ones(4))})) is None
    assert asked("steps-not-monotone", made({"return/mean": (back, np.ones(4))})).value == 1


def test_a_log_that_stops_short_is_incomplete_and_one_row_before_the_end_is_not():
    config = {"total_steps": 100_000}
    assert "59%" in asked("run-incomplete", made({"return/mean": np.ones(60)}, config, state="ended")).message
    assert asked("run-incomplete", made({"return/mean": np.ones(98)}, config, state="ended")) is None


# ---- Levels and spreads


@pytest.mark.parametrize(("spread", "fires"), [(1e-6, False), (0.5, True)])
def test_targets_that_are_all_alike_have_no_variance_to_explain(spread: float, fires: bool):
    columns = {"value/explained_variance": np.full(20, -0.8), "value/mean": np.ones(20),
               "value/target_mean": np.ones(20), "value/target_std": np.full(20, spread)}  # fmt: skip
    found = asked("critic-not-learning", made(columns, {"algo": {"name": "ppo"}}))
    assert isinstance(found, engine.Finding) == fires


@pytest.mark.parametrize(("lucky", "fires"), [((400.0,), False), ((400.0, 400.0, 400.0), True)])
def test_one_lucky_evaluation_is_no_level_that_was_lost(lucky: tuple[float, ...], fires: bool):
    returns = [*lucky, *([20.0] * 10)]
    rows = [{"step": 1000 * i, "mode": "det", "episodes": [{"return": r + k % 3, "length": 9} for k in range(10)]}
            for i, r in enumerate([20.0, *returns])]  # fmt: skip
    history = History(Path("/nowhere"), source="csv", config={"algo": {"name": "ppo"}}, evals=rows)
    found = asked("peak-then-collapse", View(history, "run", state="finished"))
    assert isinstance(found, engine.Finding) == fires


def criticised(value, target, spread, explained, returns):
    """A run that logs what its critic expects, what it should, and how its targets spread."""
    rows = len(target)
    columns = {"value/explained_variance": np.full(rows, explained), "value/mean": value, "value/target_mean": target,
               "value/target_std": np.full(rows, spread), "return/mean": returns}  # fmt: skip
    return made(columns, {"algo": {"name": "ppo"}})


def test_a_critic_that_lags_behind_a_rising_policy_learns():
    """It explains little of targets that move on with every update, but it goes with them."""
    target = np.linspace(5.0, 80.0, 40)
    lagging, still = (
        criticised(0.7 * target, target, 6.0, 0.05, target),
        criticised(0.1 * target, target, 6.0, 0.05, target),
    )
    assert asked("critic-not-learning", lagging) is None
    assert asked("critic-not-learning", still).value == 0.05


def test_a_critic_has_nothing_to_explain_where_all_episodes_end_alike():
    """Targets differ by where in the episode they are taken, by two of a hundred; their mean is right."""
    rises = np.concatenate([np.linspace(20.0, 500.0, 20), np.full(20, 500.0)])
    solved = criticised(np.full(40, 95.0), np.full(40, 95.0), 2.0, -0.4, rises)
    unlike = criticised(np.full(40, 95.0), np.full(40, 95.0), 2.0, -0.4, rises - 60 * (np.arange(40) % 2))
    assert asked("critic-not-learning", solved) is None
    assert asked("critic-not-learning", unlike).value == -0.4
