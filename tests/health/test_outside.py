"""Is a run far outside of every healthy one named, with its cause, and does the table itself stay silent?"""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.health import beside, engine, outside, reference
from relab.health.engine import Finding
from relab.health.features import Key
from relab.health.rule import RULES, all_rules
from relab.health.rules.outside import side_of

RISES = np.linspace(10, 100, 40) + np.sin(np.arange(40))
FLAT = 10 + np.sin(np.arange(40) * 2.0)
PPO = {"algo": {"name": "ppo"}}
SLUG = "outside-healthy-runs"


def test_hardly_any_healthy_run_is_far_out_when_its_task_is_left_out():
    scores = [run.score for run in reference.table()]
    assert np.mean(np.asarray(scores) >= 1) <= 0.05


def test_scores_are_those_of_the_table():
    """Of every seventh run: each is held against all runs of other tasks, which takes its time."""
    runs = reference.table()
    for run in runs[::7]:
        others = [other for other in runs if other.task != run.task]
        again = outside.score(outside.excesses(run.algo, run.kind, run.numbers, others))
        assert again == pytest.approx(run.score, rel=1e-2, abs=1e-2)


def test_the_tail_counts_a_task_and_algorithm_once():
    pairs = {(run.algo, run.task) for run in reference.table()}
    assert outside.tail(1e9) == pytest.approx(1 / (len(pairs) + 1))
    assert outside.tail(0.0) == 1.0


@pytest.mark.parametrize(
    ("metric", "values", "side", "cause"),
    [
        ("policy/kl", np.full(40, 2.0), "high", "steps that are too large"),
        ("policy/entropy", np.linspace(2.8, 9.0, 40), "high", "entropy bonus"),
        ("value/explained_variance", np.full(40, -8.0), "low", "critic that is not trained"),
        ("value/loss", np.full(40, 1e9), "high", "another scale"),
    ],
)
def test_a_symptom_is_named_with_its_side_and_likely_cause(metric, values, side, cause):
    finding = asked(SLUG, made({metric: values, "return/mean": RISES}, PPO))
    assert isinstance(finding, Finding)
    assert cause in finding.message
    assert side_of(finding.evidence[0]) == side


def test_what_healthy_runs_show_is_left_alone():
    columns = {"policy/kl": np.full(40, 0.01), "policy/clip_share": np.full(40, 0.1), "return/mean": RISES}
    assert asked(SLUG, made(columns, PPO)) is None


def test_a_solved_policy_may_stand_still():
    still = {"policy/kl": np.zeros(40)}
    assert asked(SLUG, made({**still, "return/mean": RISES}, PPO)) is None
    assert isinstance(asked(SLUG, made({**still, "return/mean": FLAT}, PPO)), Finding)


def test_a_rule_that_knows_the_mechanism_speaks_alone():
    view = made({"policy/kl": np.full(40, 2.0), "return/mean": FLAT}, PPO)
    findings, _ = engine.ask_run([*all_rules().values()], view)
    slugs = [finding.slug for finding in findings]
    assert "update-too-large" in slugs
    assert SLUG not in slugs


def test_findings_carry_the_interval_of_healthy_runs():
    view = made({"policy/kl": np.full(40, 0.3), "return/mean": FLAT}, PPO)
    findings, _ = engine.ask_run([RULES["update-too-large"]], view)
    assert str(findings[0].healthy).startswith("last third of healthy PPO runs: ")


def levels(metric: str, columns: dict[str, np.ndarray], env: str = "", **settings: object) -> dict:
    view = made({metric: np.ones(40), **columns}, {"algo": {**PPO["algo"], **settings}})
    if env:
        view.history.meta["spec"] = {**view.history.meta.get("spec", {}), "env": env}
    return beside.healthy_levels(view, metric)


def test_intervals_of_returns_are_in_the_runs_own_units():
    ratio = [levels("value/loss", {"return/mean": k * RISES}, "CartPole-v1")["last"].most for k in (1.0, 10.0)]
    assert ratio[1] / ratio[0] == pytest.approx(100, rel=1e-6)


def test_no_interval_of_another_scale_stands_beside_a_critics_loss():
    assert levels("value/loss", {"return/mean": 3000 * RISES}, "Ant-v4") == {}, "no healthy run of that task is known"
    assert levels("value/loss", {"return/mean": RISES}) == {}, "nor which task it is"
    assert levels("value/loss", {}, "CartPole-v1") == {}, "the log does not tell the size of the returns"
    assert levels("value/loss", {"return/mean": RISES}, "CartPole-v1", norm_reward=True) == {}
    assert levels("value/loss", {"return/mean": RISES}, "CartPole-v1", norm_reward=False) != {}
    assert levels("policy/kl", {}, "Ant-v4") != {}, "a KL has one scale everywhere"


def test_a_strange_run_that_learned_is_a_remark_alone_and_in_a_folder():
    odd = {"policy/kl": np.full(40, 2.0), "policy/clip_share": np.full(40, 0.9)}
    severities = {name: asked(SLUG, made({**odd, "return/mean": returns}, PPO)).severity
                  for name, returns in (("rises", RISES), ("flat", FLAT))}  # fmt: skip
    assert severities["rises"] == "info"
    assert severities["flat"] != "info"


def test_margins_are_tenfold_at_least():
    key = Key("policy/kl", "last")
    (most,) = [reference.interval("ppo", "discrete", key).most]
    assert outside.score(outside.excesses("ppo", "discrete", {key: 9 * most})) < 1
    assert dataclasses.is_dataclass(outside.excesses("ppo", "discrete", {key: 1e4 * most})[0])
