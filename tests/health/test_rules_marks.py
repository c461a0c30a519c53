"""Are the marks of a sound program told from those of a broken one, and from what only looks like it?"""

from __future__ import annotations

import numpy as np
import pytest

from health.test_rules_foreign import asked, made
from relab.base.streams import world_seeds
from relab.health import engine
from relab.health.view import ViewGroup

PPO = {"algo": {"name": "ppo", "envs": 4}, "seed": 3}
X = np.linspace(0, 1, 20)


def run(columns, meta=None, config=PPO, source="relab", name="run"):
    view = made(columns, config, meta, name=name)
    view.history.source = source
    return view


def test_advantages_are_off_when_they_follow_the_next_step_by_far():
    def found(own, following):
        return asked("advantage-misaligned", run({"data/advantage_td": own, "data/advantage_td_next": following}))

    assert found(0.5 + 0 * X, 0.53 + 0 * X) is None
    assert "next step" in found(0.1 + 0 * X, 0.5 + 0 * X).message
    assert "wrong sign" in found(-0.5 + 0 * X, 0.0 * X).message
    assert found(np.where(X < 0.5, -0.2, 0.5), 0 * X) is None


def test_nothing_comes_after_an_end():
    assert asked("value-beyond-end", run({"value/after_end": 0 * X})) is None
    assert asked("value-beyond-end", run({"value/after_end": 10 + X})).severity == "warning"


def test_something_comes_after_a_time_limit_unless_it_ends_the_task():
    spec = {"spec": {"horizon": 200}}
    cut = {"value/after_cut": 0 * X, "value/mean": -50 - X}
    assert "beyond a time limit" in asked("truncation-as-termination", run(cut, spec)).message
    assert asked("truncation-as-termination", run(cut, {"spec": {"horizon": 200, "timeout_is_terminal": True}})) is None
    untrained = run(cut | {"value/mean": 1e-5 * X}, spec)
    assert isinstance(asked("truncation-as-termination", untrained), engine.NotChecked)


def test_a_policy_that_became_certain_is_not_a_ratio_of_one():
    step = {"optim/step_rms": 0.02 + 0 * X}
    assert asked("ratio-always-one", run(step | {"policy/kl": 1e-12 + 0 * X})).confidence == "high"
    assert asked("ratio-always-one", run(step | {"policy/kl": [0.9, 0.1, *(0 * X[2:])]})) is None
    assert asked("ratio-always-one", run({"optim/step_rms": 1e-9 + 0 * X, "policy/kl": 0 * X})) is None


def test_a_critic_is_frozen_when_the_epochs_change_nothing():
    seen = {"data/advantage_mean": 1 + X, "data/advantage_std": 2 + X}
    before = ((1 + X) ** 2 + (2 + X) ** 2) / 2
    assert asked("critic-frozen", run(seen | {"value/loss": before})).value == pytest.approx(1)
    assert asked("critic-frozen", run(seen | {"value/loss": 0.9 * before})) is None


def test_rewards_are_held_against_the_declared_bounds():
    spec = {"spec": {"reward_low": -16.0, "reward_high": 0.0}}
    fine = {"data/reward_max": 0 * X, "data/reward_min": -16 + X}
    assert asked("reward-out-of-scale", run(fine, spec)) is None
    assert "-1.6e+04" in asked("reward-out-of-scale", run(fine | {"data/reward_min": -16000 + X}, spec)).message


def test_a_count_that_starts_anew_was_lost():
    assert asked("resume-lost-state", run({"optim/adam_steps": np.arange(20)})) is None
    lost = run({"optim/adam_steps": [*range(10), *range(10)]})
    assert asked("resume-lost-state", lost).message == "optim/adam_steps falls from 9 to 0"


@pytest.mark.parametrize(("stream", "shared"), [("env", True), ("eval/1000", False)])
def test_the_seeds_of_evaluations_are_held_against_those_of_training(stream, shared):
    view = run({}, {"seed": 3})
    view.history.evals = [{"step": 1000, "episodes": [{"seed": int(s)} for s in world_seeds(3, stream, 6)]}]
    assert bool(asked("evaluation-on-training-seeds", view)) == shared


def test_the_same_run_under_two_seeds_is_told_and_a_copy_is_not():
    def group(*seeds):
        names = ("policy/loss", "value/loss", "return/mean")
        return [
            ViewGroup("a", [run(dict.fromkeys(names, X + 0.1), {"seed": s}, name=f"r{i}") for i, s in enumerate(seeds)])
        ]

    assert "seed 1" in asked("duplicated-seeds", group(0, 1)).message
    assert asked("duplicated-seeds", group(0, 0)) is None


def test_arms_of_one_seed_begin_with_one_set_of_weights():
    def arms(*marks):
        views = [run({}, {"init": m, "seed": 0}, {"algo": {"lam": i / 10}, "seed": 0}, name=f"a{i}")
                 for i, m in enumerate(marks)]  # fmt: skip
        return [ViewGroup(v.name, [v]) for v in views]

    assert asked("coupled-random-streams", arms("x", "x", "x")) is None
    assert "algo.lam = 0.0 and 0.2" in asked("coupled-random-streams", arms("x", "x", "y")).message
