"""Does every oddity count for more where a run learned nothing, or far less than others? And for less where it did?"""

from __future__ import annotations

import math

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.health import beside, engine
from relab.health.engine import Finding
from relab.health.outcome import behind_others, doubted, goal_of, hardly_gained, judged, poor
from relab.health.remedy import prescribe
from relab.health.rule import RULES, all_rules

all_rules(plugins=False)
ROWS = np.arange(60)
WAVE = 0.5 * np.sin(ROWS)
CARTPOLE = {"spec": {"env": "CartPole-v1", "random": {"return_mean": 22.2, "return_std": 11.0, "n": 1000}}}
PPO = {"algo": {"name": "ppo"}}


def cartpole(returns, config=None, **columns):
    return made({"return/mean": returns + WAVE, **columns}, config or PPO, CARTPOLE)


STUCK = 80 - 60 * np.exp(-ROWS / 4)  # learned something, and no more for most of its 59,000 steps
SLOW = 20 + ROWS * 0.8  # rises to 67 where others reach 475
SOLVED = 480 - 460 * np.exp(-ROWS / 6)


@pytest.mark.parametrize(("returns", "behind"), [(STUCK, True), (SLOW, True), (SOLVED, False)])
def test_far_below_what_others_reach_is_told(returns, behind):
    view = cartpole(returns)
    assert (behind_others(view) is not None) == behind
    finding = asked("below-known-level", view)
    assert isinstance(finding, Finding) == behind
    assert judged(view) == ("warning" if behind else "info")
    assert doubted(view) == ("warning" if behind else None)


def test_a_run_that_goes_on_may_rise_yet():
    running = made({"return/mean": STUCK + WAVE}, PPO | {"total_steps": 80_000}, CARTPOLE, state="running")
    assert asked("below-known-level", running) is None


def test_a_run_of_few_steps_and_a_task_that_nobody_knows_are_not_asked():
    few = made({"return/mean": (ROWS * 100, STUCK + WAVE)}, PPO, CARTPOLE)
    assert behind_others(few) is None
    assert behind_others(made({"return/mean": STUCK + WAVE}, PPO)) is None


def told(view, slug):
    findings, _ = engine.ask_run([RULES[slug]], view)
    return [finding.severity for finding in findings]


@pytest.mark.parametrize(("returns", "severity"), [(STUCK, "warning"), (SOLVED, "info")])
def test_a_remark_about_learning_is_a_warning_in_a_poor_run(returns, severity):
    """A value loss of three times the square of every value is a remark by itself."""
    loss = np.full(60, 3.0 * float(returns.max()) ** 2)
    assert told(cartpole(returns, **{"value/loss": loss}), "value-loss-blow-up") == [severity]


def test_a_quarter_of_the_distance_is_enough_in_a_poor_run():
    kl = np.full(60, 0.5)
    assert asked("outside-healthy-runs", cartpole(SOLVED, **{"policy/kl": kl / 4})) is None
    finding = asked("outside-healthy-runs", cartpole(STUCK, **{"policy/kl": kl}))
    assert isinstance(finding, Finding)
    assert finding.symptom
    assert finding.severity != "info"


# ---- The interval that is printed beside a value


def test_nothing_is_called_unhealthy_beside_an_interval_that_holds_it():
    level = beside.healthy_range(cartpole(SOLVED, **{"value/explained_variance": np.zeros(60)}),
                                 "value/explained_variance")  # fmt: skip
    assert level is not None
    for value, severity in ((level.low - 2, "warning"), (level.low + 0.01, "info")):
        view = cartpole(SOLVED, **{"value/explained_variance": np.full(60, value)})
        curve = view.curve("value/explained_variance")
        finding = Finding("low", value, None, [curve.evidence()], severity="warning")
        beside.put_beside(view, [finding])
        assert (finding.severity, finding.healthy is None) == (severity, severity == "info")
    poor_run = cartpole(STUCK, **{"value/explained_variance": np.full(60, level.low + 0.01)})
    finding = Finding("low", level.low + 0.01, None, [curve.evidence()], severity="warning")
    beside.put_beside(poor_run, [finding])
    assert poor(poor_run)
    assert (finding.severity, finding.healthy) == ("warning", None)


def test_what_is_sure_or_rests_on_more_than_the_level_stays_a_warning():
    view = cartpole(SOLVED, **{"policy/kl": np.zeros(60)})
    curve = view.curve("policy/kl")
    sure = Finding("0 in every row", 0.0, None, [curve.evidence()], severity="warning", confidence="high")
    more = Finding("0, and more", 0.0, None, [curve.evidence(), curve.evidence()], severity="warning")
    beside.put_beside(view, [sure, more])
    assert [each.severity for each in (sure, more)] == ["warning", "warning"]


# ---- A task of costs without a known random level


@pytest.mark.parametrize(("end", "told"), [(-97.0, True), (-40.0, False)])
def test_a_cost_that_hardly_falls_is_held_against_healthy_runs(end, told):
    """Clear of noise, and a fraction of what the least of healthy runs gains."""
    view = made({"return/mean": np.linspace(-100, end, 60) + 0.1 * WAVE}, {"algo": {"name": "sac"}})
    assert (hardly_gained(view) is not None) == told
    finding = asked("has-not-learned", view)
    assert isinstance(finding, Finding) == told
    assert not told or "healthy SAC runs" in finding.message


# ---- An entropy with the wrong sign


@pytest.mark.parametrize(
    ("start", "end", "config", "expected"),
    [
        (-math.log(5), -0.3, PPO, 5),
        (-math.log(5), -0.3, {"algo": {"name": "ppo_continuous_action"}}, 0),
        (-1.2, -0.3, PPO, 0),  # no -ln n
        (-math.log(5), 0.4, PPO, 0),  # above 0
        (-math.log(5), -2.5, PPO, 0),  # falls, as a Gaussian's does
    ],
)
def test_minus_the_entropy_of_a_choice_is_known_by_its_start(start, end, config, expected):
    view = cartpole(SOLVED, config, **{"policy/entropy": np.linspace(start, end, 60)})
    assert view.entropy_turned == expected
    assert isinstance(asked("entropy-sign-turned", view), Finding) == bool(expected)


# ---- What the libraries start from


@pytest.mark.parametrize(
    ("slug", "algo", "config", "change"),
    [
        ("replay-too-small", "dqn", {"buffer_size": 100, "batch_size": 64}, {"foreign.buffer_size": (100, 1_000_000)}),
        ("target-network-frozen", "dqn", {"tau": 1.0, "target_network_frequency": 10**7},
         {"foreign.target_network_frequency": (10**7, 500)}),
        ("learning-never-started", "dqn", {"learning_starts": 10**9, "end_e": 0.05},
         {"foreign.learning_starts": (10**9, 2950)}),
        ("discount-out-of-range", "ppo", {"gamma": 0.2}, {"algo.gamma": (0.2, 0.99)}),
        ("steps-too-large", "ppo", {"lr": 0.1}, {"algo.lr": (0.1, 3e-4)}),
        ("setting-out-of-range", "ppo", {"clip": 5.0}, {"algo.clip": (5.0, 0.2)}),
        ("setting-out-of-range", "ppo", {"value_coef": 0.0}, {"algo.value_coef": (0.0, 0.5)}),
    ],
)  # fmt: skip
def test_a_bad_setting_of_a_library_is_set_to_its_default(slug, algo, config, change):
    ours = {"gamma", "lr", "clip", "value_coef"}
    own = {"name": algo} | {key: value for key, value in config.items() if key in ours}
    foreign = {key: value for key, value in config.items() if key not in ours}
    view = cartpole(np.full(60, 22.0), {"algo": own, "foreign": foreign}, **{"return/length": np.full(60, 22.0)})
    finding = asked(slug, view)
    assert isinstance(finding, Finding), finding
    prescribe([finding], view, None)
    assert finding.remedy is not None
    assert finding.remedy.changes == change
    assert "default" in finding.remedy.why


def test_returns_that_the_task_cannot_pay_are_not_held_against_random():
    """Rewards a thousand times as large: the return is no worse than random, it is in other units."""
    spec = {"env": "Pendulum-v1", "horizon": 200, "reward_low": -16.3, "reward_high": 0.0,
            "random": {"return_mean": -1230.7, "return_std": 286.7, "n": 1000}}  # fmt: skip
    columns = {"return/mean": -1.3e6 + 1e4 * WAVE, "return/length": np.full(60, 200.0)}
    view = made(columns, {"algo": {"name": "sac"}}, {"spec": spec})
    assert not isinstance(asked("worse-than-random", view), Finding)
    assert "earns -3260 to 0 here" in asked("return-against-length", view).message


@pytest.mark.parametrize("end", [21.7, 60.0, 200.0])
def test_what_is_held_against_others_is_the_outcome(end):
    """A run that falls in its last tenth: one number for its end, in the finding as in every sentence about it."""
    view = cartpole(np.where(ROWS < 54, np.minimum(20 + 8 * ROWS, 350), end))
    goal = goal_of(view)
    assert goal is not None
    assert goal.reached == view.verdict.final == pytest.approx(end, abs=1)


def test_the_finding_says_which_end_it_means():
    finding = asked("below-known-level", cartpole(STUCK))
    assert f"return {cartpole(STUCK).verdict.final:.4g} (its last tenth) after" in finding.message
