"""Does the examiner find in real folders what is known to be in them, and nothing that their data refutes?

The folders are kept out of the repository; where they are absent the tests are skipped, and say so.
"""

from __future__ import annotations

import pytest

from relab.health import engine
from relab.health.chain import lead
from relab.health.examine import examine, load_view
from relab.health.rule import all_rules
from where import ROOT

CORPUS = ROOT.parent / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"no real run records at {CORPUS}")

RUN, PARENT = "2025-09-20T153515Z", "2025-09-20T152244Z"


@pytest.fixture(scope="module")
def torus():
    return examine(CORPUS / "torus")


@pytest.fixture(scope="module")
def drones():
    return examine(CORPUS / "drones")


def of(report, slug, run=None):
    return [f for f in report.findings if f.slug == slug and (run is None or f.run == run)]


# ---- A sweep of an actor-critic with probes


def test_the_critic_is_still_its_random_start(torus):
    found = of(torus, "metric-frozen-at-init")
    assert len(found) == 4
    assert all("w_norm" in f.message for f in found)
    assert all("0.1 * sqrt(2048)" in f.message for f in found)
    assert all(any("teacher" in e.metric for e in f.evidence) for f in found)


def test_the_probe_never_converged(torus):
    assert len(of(torus, "probe-hit-cap")) == 4
    assert "59 of 59 rows" in of(torus, "probe-hit-cap")[0].message


def test_a_setting_is_not_read(torus):
    (message,) = {f.message.replace(" 9 rows", " 59 rows") for f in of(torus, "unknown-config-key")}
    assert "n_power_iters: 80" in message
    assert "power_iters is 20" in message


def test_the_swept_axis_moves_nothing_it_is_for(torus):
    (found,) = of(torus, "inert-axis")
    assert "theta_mu_offset_scale" in found.message
    assert "dist_action_kl" in found.message
    assert 0.04299 < min(found.evidence[0].values) < max(found.evidence[0].values) < 0.0431


def test_one_arm_begins_with_another_critic(torus):
    (found,) = of(torus, "coupled-random-streams")
    assert "4.5817 with theta_mu_offset_scale = 0.0" in found.message


def test_two_losses_differ_by_a_half(torus):
    assert all("td_loss_from_Q is 1/2 times td_loss" in f.message for f in of(torus, "constant-ratio"))
    assert len(of(torus, "constant-ratio")) == 4


def test_one_run_is_incomplete_and_there_is_one_seed(torus):
    (found,) = of(torus, "run-incomplete")
    assert "tmos0p5" in found.run
    assert "34 of 199" in found.message
    assert {f.value for f in of(torus, "single-seed")} == {1.0}


def test_names_that_agree_with_the_config_are_left_alone(torus):
    assert not of(torus, "label-mismatch")


# ---- A loop that writes its own next config


def test_the_lead_is_the_entropy_and_the_setting_behind_it(drones):
    mine = [f for f in drones.main if f.run == RUN]
    assert [f.slug for f in mine[:2]] == ["unmentioned-config-change", "entropy-runaway"]
    assert "algo.ent_coef 0.01 -> 0.12" in mine[0].message.split(",")[1]
    assert mine[1].explained_by == "unmentioned-config-change"
    assert "24 -> 32.7" in mine[1].message


def test_small_updates_stand_in_the_healthy_parent_too(drones):
    (found,) = of(drones, "policy-not-moving", RUN)
    assert found.status == "also-in-reference"
    assert not of(drones, "policy-not-moving", PARENT)


def test_it_lost_what_it_began_with(drones):
    (found,) = of(drones, "resumed-run-lost-its-start", RUN)
    assert "488.5 -> 7.432" in found.message
    assert not of(drones, "resumed-run-lost-its-start", PARENT)


def test_the_success_rate_is_none_and_the_best_is_not_trusted(drones):
    assert "894.5" in of(drones, "rate-out-of-range", PARENT)[0].message
    (found,) = of(drones, "untrusted-best")
    assert found.status == "fired"
    assert "1716" in found.message


def test_what_is_called_reward_is_a_score(drones):
    (found,) = of(drones, "name-is-not-definition", RUN)
    assert "mean_reward" in found.message
    assert "score" in found.message
    assert "-0.301" in found.message


def test_the_speed_is_that_of_the_last_evaluation(drones):
    (found,) = of(drones, "throughput-misquoted", RUN)
    assert "124,592" in found.message
    assert 2.4 < found.value < 2.7


def test_one_run_alone_finds_its_parent_and_the_best_beside_it():
    report = examine(CORPUS / "drones" / RUN)
    assert [f.slug for f in report.main[:2]] == ["unmentioned-config-change", "entropy-runaway"]
    assert of(report, "untrusted-best")[0].status == "fired"


def test_with_the_action_range_the_standard_deviation_is_known():
    view = load_view(CORPUS / "drones" / RUN, RUN)
    rule = all_rules()["std-exceeds-action-range"]
    assert isinstance(engine.ask(rule, view), engine.NotChecked)
    view.spec["action"] = {"kind": "continuous", "dim": 4, "low": [-1.0] * 4, "high": [1.0] * 4}
    assert engine.ask(rule, view).value == pytest.approx(866, rel=0.01)


def test_the_first_screen_of_the_lost_run_shows_the_change_and_the_entropy():
    shown = [f.slug for f in lead(examine(CORPUS / "drones" / RUN).main)]
    assert shown[:2] == ["unmentioned-config-change", "entropy-runaway"]
    assert "policy-not-moving" not in shown
