"""Does every check of the catalogue have a rule, a place in relab, or a reason why not?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from relab.health import coverage
from relab.health.rule import all_rules
from where import ROOT

RULES = all_rules(plugins=False)
SHARED = ROOT.parent / "shared" / "RULES.md"


@pytest.mark.parametrize("found", coverage.coverage(), ids=lambda c: c.id)
def test_a_check_has_a_rule_a_place_or_a_reason(found):
    assert found.slugs or found.place or found.reason, f"{found.id} is made nowhere, and nothing says why"
    assert set(found.slugs) <= set(RULES)


def test_every_rule_belongs_to_a_check_of_the_catalogue():
    assert {rule.id for rule in RULES.values()} <= set(coverage.IDS)
    assert len(coverage.IDS) == 96


def test_a_place_that_is_named_exists():
    source = Path(coverage.__file__).resolve().parents[1]
    for text in coverage.ELSEWHERE.values():
        for name in re.findall(r"`([\w/]+\.py)`", text):
            assert (source / name).exists(), name


def test_nothing_is_explained_away_that_a_rule_does():
    own = {rule.id for rule in RULES.values()}
    assert not own & set(coverage.REASONS)
    assert not own & set(coverage.ELSEWHERE)


@pytest.mark.skipif(not SHARED.exists(), reason="the catalogue of checks is not there")
def test_the_ids_are_those_of_the_catalogue():
    assert set(re.findall(r"^\| ([A-F]\d+) \|", SHARED.read_text(), re.M)) == set(coverage.IDS)
