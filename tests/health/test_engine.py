"""Are findings ordered, explained, held against a reference, and is what could not be asked said?"""

from __future__ import annotations

import math

import numpy as np
import pytest

from relab.health import engine
from relab.health.curve import Curve
from relab.health.rule import RULES, Finding, Missing, Reference, Rule, parse_parts, rule
from relab.health.view import View
from relab.record.history import Column, History

DOC = "What: a. Why: b. Known problems: c. Refuted by: d. Try: e."


def make(slug, answer, **options):
    def check(view):
        return answer(view)

    check.__doc__ = DOC
    return Rule(slug, check, options.pop("about", "evidence"), **options)


def view(name="run", reference=None, **columns):
    filled = {k: Column(np.arange(len(v)), np.array(v, float)) for k, v in columns.items()}
    return View(History("nowhere", filled), name, reference)


def high(v):
    level = v.curve("x").last
    return Finding(f"x is {level}", value=level, evidence=[v.curve("x").evidence()]) if level > 1 else None


def test_parts_are_read_in_any_layout():
    assert parse_parts("\n  What: one\n    two.\n  Why: three: four.") == {"What": "one two.", "Why": "three: four."}


def test_a_rule_without_reasons_is_refused():
    with pytest.raises(ValueError, match=r"lacks \['Known problems'"):

        @rule("no-reasons", about="fault")
        def check(view):
            """What: a. Why: b."""

    assert "no-reasons" not in RULES


def test_a_rule_that_stands_nowhere_in_the_chain_is_refused():
    with pytest.raises(ValueError, match=r"must say what it is about, one of fault, numbers,.* but says 'colour'"):
        rule("nowhere", about="colour")(make("", high).check)
    assert "nowhere" not in RULES


@pytest.mark.parametrize(
    ("here", "there", "status", "value"),
    [(10, 10.5, "also-in-reference", 10.5), (10, 12, "fired", 12), (10, 0.5, "fired", 0.5)],
)
def test_what_the_reference_shows_too_is_not_the_cause(here, there, status, value):
    (found,), _ = engine.ask_run([make("high", high)], view(x=[here], reference=view("best", x=[there])))
    assert (found.status, found.reference) == (status, Reference("best", value, found.reference.what))
    assert ("here 10" in found.reference.what) == (value > 1), "an unlabelled number of another run says nothing"
    assert found.to_json()["reference"] == {"run": "best", "value": value, "what": found.reference.what}


@pytest.mark.parametrize(
    ("here", "there", "alike"),
    [(math.nan, 3.0, False), (3.0, math.nan, False), (math.nan, math.nan, True), (None, None, True), (None, 3.0, False),
     (math.inf, math.inf, True), (0.0, 0.0, True), (1.0, 1.05, True)],
)  # fmt: skip
def test_values_that_tell_nothing_apart(here, there, alike):
    found = [make("x", lambda v: Finding("m", value=here if v.name == "run" else there))]
    ((one,), _) = engine.ask_run(found, view(reference=view("best")))
    assert one.status == ("also-in-reference" if alike else "fired")


def test_a_rule_that_lacks_data_or_breaks_is_said():
    def lacks(v):
        raise Missing("a beginning")

    asked = [make("needs", high, needs=("x",)), make("lacks", lacks), make("breaks", lambda v: 1 / 0)]
    found, gone = engine.ask_run(asked, view())
    assert found == []
    *first, failed = [g.missing for g in gone]
    assert first == ["x", "a beginning"]
    assert failed.startswith("the rule failed: ZeroDivisionError: division by zero (a fault of relab (relab/health/")


def test_the_numbers_that_decide_are_defaults_of_the_check():
    def check(view, *, least=0.25, rows=5):
        """What: a. Why: b. Known problems: c. Refuted by: d. Try: e."""

    made = Rule("x", check, "return")
    assert (made.thresholds, made.limits) == ({"least": 0.25, "rows": 5}, "least = 0.25, rows = 5")
    assert make("y", high).limits == ""


def test_a_rule_of_another_algorithm_or_kind_of_action_does_not_apply():
    run = view(x=[9])
    run.history.config = {"algo": {"name": "sac"}}
    run.history.meta = {"spec": {"action": {"kind": "discrete"}}}
    asked = [make("a", high), make("b", high, algos=(), kind="continuous"), make("c", high, algos=("sac",))]
    assert [f.slug for f in engine.ask_run(asked, run)[0]] == ["c"]


def test_an_installed_package_adds_rules_by_an_entry_point(monkeypatch):
    from relab.health import rule as rules

    class Point:
        name, value = "mine", "test_engine"

        def load(self):
            rule("of-a-plug-in", about="return")(make("", high).check)

    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [Point()] if group == "relab.rules" else [])
    rules.load_plugins.cache_clear()
    try:
        assert "of-a-plug-in" in rules.all_rules()
    finally:
        rules.RULES.pop("of-a-plug-in", None)
        rules.load_plugins.cache_clear()


def test_the_slope_of_white_noise_is_within_its_error_95_times_in_100():
    rng = np.random.default_rng(0)
    curves = [Curve("x", np.arange(60), rng.normal(size=60)) for _ in range(400)]
    assert 0.92 < np.mean([abs(c.slope().significance) < 2 for c in curves]) < 0.99


def test_autocorrelation_widens_the_error():
    rng = np.random.default_rng(1)
    rest = np.zeros(200)
    for i in range(1, 200):
        rest[i] = 0.8 * rest[i - 1] + rng.normal()
    shuffled = Curve("x", np.arange(200), rng.permutation(rest))
    assert Curve("x", np.arange(200), rest).slope().error > 2 * shuffled.slope().error


def test_onset_is_where_a_state_begins_for_good():
    curve = Curve("x", np.array([10, 20, 30, 40]), np.array([5.0, 1.0, 5.0, 6.0]))
    assert (curve.onset(curve.values > 2), curve.first_above(2), curve.first_below(2)) == (30, 10, 20)
