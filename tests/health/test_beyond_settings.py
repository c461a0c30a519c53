"""Is a fault that no setting mends told as one, and no setting advised for it or for what it explains?"""

from __future__ import annotations

import numpy as np
import pytest
from test_plain_logs import CARTPOLE, advised, told
from test_rules_foreign import made

from relab.advise.propose import propose
from relab.health.chain import ordered
from relab.health.view import View

ROWS = 40
LOW = 22 + np.sin(np.arange(ROWS) * 2.0)
RISES = np.linspace(22, 480, ROWS)
NOISE = 1e-3 * np.sin(np.arange(ROWS) * 3.0)
ONE_VALUE = np.where(np.arange(ROWS) % 3, 1.2e-7, 0.0)


def cart(lr: float = 1e-3, **columns: np.ndarray) -> View:
    named = {"policy/entropy": 0.69 + NOISE / 10, "policy/clip_share": np.zeros(ROWS), "return/mean": LOW,
             "value/explained_variance": NOISE} | {key.replace("__", "/"): x for key, x in columns.items()}  # fmt: skip
    settings = {"algo": {"name": "ppo", "lr": lr, "value_coef": 0.5, "ent_coef": 0.01}, "env": {"name": "CartPole-v1"}}
    return made(named, settings, CARTPOLE)


def changes(view: View) -> list[str]:
    """All that is advised, if it is a setting or speaks of one."""
    said = [item for finding in advised(view).main for item in finding.suggest]
    return [str(item) for item in said if isinstance(item, dict) or "`" in item]


def test_where_no_step_is_taken_no_rate_is_advised():
    """Its advice was a tenfold learning rate."""
    view = cart(policy__kl=np.zeros(ROWS))
    found = told(view)
    assert "no optimiser step reaches the policy" in found["policy-not-moving"].message
    assert {f.explained_by for slug, f in found.items() if slug != "policy-not-moving"} == {"policy-not-moving"}
    assert changes(view) == []
    advice = propose(advised(view))
    assert "no setting mends policy-not-moving" in advice.why
    assert "look in the program" in advice.mend


@pytest.mark.parametrize("kept", [
    {"lr": 0.0},  # a setting is what stops it
    {"policy__kl": np.full(ROWS, 1e-9)},
    {"policy__entropy": np.full(ROWS, 0.69), "return__mean": LOW.round(2)},  # as printed, with few decimals
])  # fmt: skip
def test_a_step_that_may_only_be_small_calls_for_a_larger_one(kept):
    view = cart(**({"policy__kl": np.zeros(ROWS)} | kept))
    assert "hardly moves" in told(view)["policy-not-moving"].message
    assert any("lr" in change for change in changes(view))


def test_parameters_that_never_change_at_all_are_told_so():
    view = cart(optim__step_rms=np.zeros(ROWS), optim__lr=np.full(ROWS, 1e-3))
    assert "exactly as they are" in told(view)["frozen-parameters"].message
    smaller = cart(optim__step_rms=np.zeros(ROWS), optim__lr=np.zeros(ROWS))
    assert "exactly as they are" not in told(smaller)["frozen-parameters"].message


def test_a_critic_that_says_the_same_of_every_state_is_fed_a_constant():
    """Frozen observations: its advice was a larger `vf_coef`, and a tenfold learning rate."""
    view = cart(policy__kl=np.full(ROWS, 2e-6), value__explained_variance=ONE_VALUE)
    found = told(view)
    assert "a constant input or a dead network" in found["critic-not-learning"].message
    assert found["policy-not-moving"].explained_by == "critic-not-learning"
    assert found["policy-not-moving"].suggest == ["mend critic-not-learning first: it explains this"]
    assert "learning rate near 0" not in str([f.message for f in found.values()])
    assert changes(view) == []
    report = advised(view)
    report.findings = ordered(report.findings)
    assert "no setting mends critic-not-learning" in propose(report).why


@pytest.mark.parametrize("other", [
    {"value__explained_variance": NOISE},  # not trained, but not blind
    {"value__explained_variance": np.zeros(ROWS)},  # a column that nobody fills
    {"value__explained_variance": ONE_VALUE, "return__mean": RISES},  # all that one state can teach was learned
])  # fmt: skip
def test_no_other_critic_is_called_blind(other):
    found = told(cart(policy__kl=np.full(ROWS, 0.01), **other))
    assert "constant input" not in str([f.message for f in found.values()])
