"""Do gates, stages and alerts decide as they read? Each outcome once, by hand."""

from __future__ import annotations

import pytest

from relab.schedules.alert import Alert
from relab.schedules.gate import Condition, Gate, GateState, ScheduleError, decide, parse_condition, replay, tally
from relab.schedules.stage import Stage, parse_curriculum, parse_queue, stages_of

GATE = Gate("g", (parse_condition("x >= 10"),), (parse_condition("x < 5"),), required=2, tolerance=2, freeze=5,
            success_freeze=3, allowance=(1, 2, 3))  # fmt: skip


def test_a_condition_says_how_far_it_is_from_its_bar():
    check = parse_condition("early <= 0.1").look({"early": [0.3, 0.15]})
    assert (check.value, check.met) == (0.15, False)
    assert check.distance == pytest.approx(-0.05)
    assert parse_condition("x > 2").look({"x": [2]}).met is False
    assert parse_condition("x >= 2").look({"x": [2]}).distance == 0


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("median(3) x >= 4", [9, 1, 4, 5], 4),
        ("mean(2) x >= 4", [9, 1, 4], 2.5),
        ("min(2) x >= 4", [0, 3, 4], 3),
        ("max(2) x >= 4", [9, 3, 4], 4),
        ("x >= 4", [9, 3], 3),
        ("median(4) x >= 70", [70, 65, 64, 58], 64.5),
    ],
)
def test_the_statistic_is_of_the_last_values(text, values, expected):
    assert parse_condition(text).look({"x": values}).value == expected


def test_a_window_that_is_not_full_decides_nothing():
    condition = parse_condition("median(3) x < 5")
    assert condition.look({"x": [1, 1]}).met is None
    assert condition.look({}).met is None
    assert decide(Gate("g", (condition,), ()), {"x": [1, 1]}).outcome == "locked"
    assert decide(Gate("g", (), (condition,)), {"x": [1, 1]}).outcome == "locked"


@pytest.mark.parametrize("text", ["x = 3", "x <= nan", "x <= inf", "mode(3) x <= 1", "median(0) x <= 1", "", "<= 3"])
def test_a_condition_that_cannot_be_read_is_refused(text):
    with pytest.raises(ScheduleError):
        parse_condition(text)


def test_text_and_condition_are_the_same():
    for text in ("x <= 0.1", "median(4) death/p10 >= 70"):
        assert str(parse_condition(text)) == text


@pytest.mark.parametrize(
    ("x", "state", "at", "outcome", "after"),
    [
        (7, GateState(), 8, "locked", GateState()),
        (7, GateState(0, 1, 1, 0), 8, "locked", GateState()),
        (12, GateState(), 8, "success_progress", GateState(0, 1)),
        (12, GateState(0, 1), 8, "advance", GateState(1, frozen_until=11)),
        (12, GateState(2, 1), 8, "advance", GateState(2, frozen_until=11)),
        (12, GateState(0, 1, 0, 9), 8, "frozen", GateState(0, 1, 0, 9)),
        (3, GateState(0, 1), 8, "failure_hold", GateState(0, 0, 1, 13)),
        (3, GateState(0, 0, 5, 0), 8, "failure_hold", GateState(0, 0, 6, 13)),
        (3, GateState(1, 1), 8, "failure_hold", GateState(1, 0, 1, 13)),
        (3, GateState(1, 0, 1, 0), 8, "rollback", GateState(0, frozen_until=13)),
    ],
)
def test_a_decision_and_the_state_after_it(x, state, at, outcome, after):
    decision = decide(GATE, {"x": [x]}, state, at)
    assert (decision.outcome, decision.state) == (outcome, after)
    assert decision.passed == (outcome in ("advance", "success_progress"))


def test_precedence_decides_where_both_sides_hold():
    both = {"x": [3]}
    low = Gate("g", (parse_condition("x < 9"),), (parse_condition("x < 5"),))
    assert decide(low, both).outcome == "failure_hold"
    assert decide(Gate("g", low.success, low.failure, first="success"), both).outcome == "advance"


def test_a_replay_carries_the_state():
    decisions = replay(GATE, [10, 20, 30, 40], {"x": [3, 11, 12, 6]})
    assert [d.outcome for d in decisions] == ["failure_hold", "success_progress", "advance", "locked"]
    assert [d.at for d in decisions] == [10, 20, 30, 40]
    (won,), (lost,) = tally(decisions), tally(decisions, "failure")
    assert (won.met, won.looks, won.best()) == (2, 4, (12.0, 2.0))
    assert (lost.met, lost.best(failing=True)) == (1, (12.0, 7.0))


@pytest.mark.parametrize("change", [{"first": "both"}, {"required": 0}, {"tolerance": 0}])
def test_a_gate_that_cannot_work_is_refused(change):
    with pytest.raises(ScheduleError, match="gate g"):
        Gate("g", (), **change)


# ---- Stages


def test_a_curriculum_is_size_and_iterations():
    plan = parse_curriculum("15:9,20:10,25:9")
    assert [(s.size, s.iterations) for s in plan.stages] == [(15, 9), (20, 10), (25, 9)]
    assert (plan.length, plan.starts) == (28, [0, 9, 19])
    assert [plan.at(i)[0] for i in (1, 9, 10, 19, 20, 28, 99)] == [0, 0, 1, 1, 2, 2, 2]
    assert plan.remaining(7) == 0.75


def test_a_queue_names_its_sources_and_options():
    plan = parse_queue("8:a/b.json|type=ne|weight=2;15:c.json", "tail")
    assert plan.stages == (Stage(8, None, "a/b.json", {"type": "ne", "weight": "2"}), Stage(15, None, "c.json", {}))


def test_both_have_a_yaml_form():
    rows = [{"size": 15, "iterations": 9}, {"source": "a.json", "iterations": "8", "type": "ne"}]
    plan = stages_of(rows, "mixed")
    assert (plan.stages[0].size, plan.stages[1].source, plan.stages[1].options) == (15, "a.json", {"type": "ne"})


@pytest.mark.parametrize("text", ["", "15", "15:x", "15:-3", "15:0", "15:9,", "1.5:2", "15:9999999999999"])
def test_a_curriculum_that_cannot_be_read_is_refused(text):
    with pytest.raises(ScheduleError):
        parse_curriculum(text)


@pytest.mark.parametrize("text", ["", "a.json", "x:a.json", "8:a.json|type"])
def test_a_queue_that_cannot_be_read_is_refused(text):
    with pytest.raises(ScheduleError):
        parse_queue(text)


# ---- Alerts


def test_an_alert_waits_for_its_patience():
    alert = Alert("low", Condition("left", "<=", 0.5), patience=3, cadence=2)
    assert not alert.decide({"left": [0.9, 0.4, 0.3]}).fires
    assert alert.decide({"left": [0.4, 0.6, 0.4, 0.3, 0.2]}).fires
    assert alert.decide({"left": [0.4, 0.6, 0.4, 0.3, 0.2]}).streak == 3
    assert alert.decide({}).value is None
    assert alert.wait == 4


def test_an_alert_without_patience_is_refused():
    with pytest.raises(ScheduleError, match="patience >= 1"):
        Alert("low", Condition("left", "<=", 0.5), patience=0)
