"""Does what stands earlier in the chain explain what stands later, and are causes told before symptoms?"""

from __future__ import annotations

import pytest

from relab.health import chain
from relab.health.rule import Finding, Rule, all_rules

RULES = all_rules(plugins=False)


def explained(*findings, **declared):
    """Slug -> what explains it; findings are (slug, place, further fields)."""
    rules = [Rule(slug, lambda v: None, place, explains=declared.get(slug, ())) for slug, place, _ in findings]
    made = [Finding("m", slug=slug, about=place, **({"severity": "warning"} | more)) for slug, place, more in findings]
    chain.explain(rules, made)
    return {found.slug: found.explained_by for found in made}


def test_the_earliest_place_explains_all_later_ones():
    found = explained(("low", "return", {}), ("still", "step", {}), ("stale", "fault", {}), ("peak", "choice", {}))
    assert found == {"low": "stale", "still": "stale", "stale": None, "peak": "stale"}


def test_what_stands_at_the_same_place_does_not_explain_each_other():
    assert set(explained(("a", "policy", {}), ("b", "policy", {})).values()) == {None}


@pytest.mark.parametrize("place", chain.APART)
def test_what_stands_apart_explains_nothing_and_is_explained_by_nothing(place):
    assert set(explained(("one-seed", place, {}), ("low", "return", {})).values()) == {None}
    assert set(explained(("one-seed", place, {}), ("stale", "fault", {})).values()) == {None}


def test_a_calibrated_rule_is_blamed_before_one_that_only_informs():
    found = explained(
        ("hint", "fault", {"severity": "info"}), ("still", "step", {"onset": 9}), ("low", "return", {"onset": 9})
    )
    assert found == {"hint": None, "still": "hint", "low": "still"}


@pytest.mark.parametrize(("symptom", "severity"), [("warning", "warning"), ("info", "info")])
def test_a_rule_that_calls_its_finding_a_remark_takes_that_back_where_it_did_harm(symptom, severity):
    rules = [Rule("hasty", lambda v: None, "fault", severity="warning"), Rule("low", lambda v: None, "return")]
    cause = Finding("m", slug="hasty", about="fault", severity="info")
    chain.explain(rules, [cause, Finding("m", slug="low", about="return", severity=symptom)])
    assert cause.severity == severity


def test_a_remark_of_low_confidence_explains_nothing():
    found = explained(("hint", "fault", {"severity": "info", "confidence": "low"}), ("low", "return", {}))
    assert found["low"] is None


def test_what_began_later_explains_nothing():
    assert explained(("late", "fault", {"onset": 11}), ("low", "return", {"onset": 10}))["low"] is None
    assert explained(("same", "fault", {"onset": 10}), ("low", "return", {"onset": 10}))["low"] == "same"


def test_what_the_reference_shows_too_is_explained_but_explains_nothing():
    shared = {"status": "also-in-reference"}
    assert explained(("stale", "fault", shared), ("low", "return", {}))["low"] is None
    assert explained(("stale", "fault", {}), ("low", "return", shared))["low"] == "stale"


def test_a_declared_exception_goes_before_the_chain_and_against_it():
    found = explained(("worse", "return", {}), ("sure", "policy", {}), ("stale", "fault", {}), worse=("sure",))
    assert found == {"worse": "stale", "sure": "worse", "stale": None}


def test_rules_that_explain_each_other_in_a_circle_do_not_hide_each_other():
    found = explained(("p", "evidence", {}), ("q", "evidence", {}), ("r", "evidence", {}), p=("q",), q=("r",), r=("p",))
    assert sorted(str(by) for by in found.values()) == ["None", "p", "r"]
    assert set(explained(("p", "evidence", {}), ("q", "evidence", {}), p=("q",), q=("p",)).values()) == {None}


def test_causes_stand_before_symptoms_and_count_as_much():
    made = [Finding("m", slug="symptom", severity="error", explained_by="cause", onset=5),
            Finding("m", slug="other", severity="warning", onset=0),
            Finding("m", slug="cause", severity="info", onset=4)]  # fmt: skip
    assert [found.slug for found in chain.ordered(made)] == ["cause", "symptom", "other"]


def test_exceptions_are_few_and_name_rules_that_exist():
    declared = {slug: rule.explains for slug, rule in RULES.items() if rule.explains}
    assert len(declared) <= 12  # of 160 rules
    for slug, symptoms in declared.items():
        assert set(symptoms) <= set(RULES), slug


def test_every_place_of_the_chain_is_used():
    assert {rule.about for rule in RULES.values()} == set(chain.PLACES)
