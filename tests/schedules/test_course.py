"""Does a schedule under way decide as it reads? Hand traces, random ones, and the decisions of a recorded run."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from relab.formats.read import find
from relab.schedules import from_mapping
from relab.schedules.command import parse_command
from relab.schedules.course import Course, lookup
from relab.schedules.gate import Gate, GateState, decide, parse_condition
from relab.schedules.stage import Plan, Stage, next_starts, parse_queue, place_in
from where import ROOT

FISH = ROOT.parent / "shared" / "corpus" / "fish"
needs_fish = pytest.mark.skipif(not FISH.is_dir(), reason="the fish records are not in ../shared/corpus")


def course(**settings):
    return Course(from_mapping(settings), worlds=4)


# ---- Stages


def test_a_curriculum_sets_its_stage():
    c = course(curriculum={"stages": "15:2,20:3", "key": "fish"}, phases={"coef": [0, 0.5]})
    assert [c.stage(i) for i in (1, 2)] == [{"fish": 15, "coef": 0}] * 2
    assert [c.stage(i) for i in (3, 5, 99)] == [{"fish": 20, "coef": 0.5}] * 3
    assert (c.labels(3), c.trace(3)) == ({"curriculum": "2:20"}, {"stage": 2, "phase": 2})


def test_options_of_a_stage_are_values():
    c = course(curriculum=[{"iterations": 2, "size": 3, "speed": 0.5, "label": "slow"}])
    assert c.stage(1, "fish") == {"fish": 3, "speed": 0.5}
    assert c.labels(1) == {"curriculum": "1:slow"}


def test_a_gate_holds_the_phases_back():
    gate = {"success": "x >= 1", "allowance": [1, 3]}
    c = course(curriculum="5:1,5:1,5:1", phases={"coef": [0, 1, 2]}, gates={"g": gate}, every=1)
    assert [c.stage(i, "n")["coef"] for i in (1, 2, 3)] == [0, 0, 0]
    c.check(3, {"multi/x": 1.0})
    assert c.stage(3, "n")["coef"] == 2
    assert c.trace(3)["g_stage"] == 2


def test_a_gate_sets_values_by_its_own_stage():
    c = course(gates={"g": {"success": "x >= 1", "failure": "x < 0", "sets": {"coef": [0.0, 0.5, 1.0]}}}, every=1)
    coefs = []
    for i, x in enumerate([1, 1, 1, -1, 0, 1], 1):
        c.check(i, {"x": x})
        coefs.append(c.stage(i)["coef"])
    assert coefs == [0.5, 1.0, 1.0, 0.5, 0.5, 1.0]  # the last stage stays, a failure rolls back


def test_windows_are_over_checks_not_over_gates():
    one = {"success": "median(3) x >= 2", "required": 1}
    c = course(gates={"a": one, "b": one}, every=1)
    outcomes = [[d.outcome for _, d in c.check(i, {"x": x})] for i, x in enumerate([5, 5, 1, 1], 1)]
    assert outcomes == [["locked"] * 2, ["locked"] * 2, ["advance"] * 2, ["locked"] * 2]


def test_a_missing_number_is_neither_success_nor_failure():
    c = course(gates={"a": {"success": "x >= 2", "failure": "x < 2"}}, every=1)
    assert [d.outcome for _, d in c.check(1, {"y": 3})] == ["locked"]


def test_numbers_are_found_by_their_last_part():
    assert lookup({"data/alive": 1, "multi/alive": 2}, "alive") == 2
    assert lookup({"data/alive": 1, "multi/alive": 2}, "data/alive") == 1
    assert lookup({"data/alive": 1}, "dead") != lookup({}, "dead")  # NaN


def test_an_alert_fires_once_until_it_goes_out():
    c = course(alerts={"low": {"when": "left <= 0.5", "patience": 2}})
    fired = [len(c.watch(i, {"schedule/left": x})) for i, x in enumerate([0.4, 0.4, 0.4, 0.9, 0.4, 0.3], 1)]
    assert fired == [0, 1, 0, 0, 0, 1]
    assert c.streaks() == {"low_streak": 2}


# ---- Queues


def test_a_queue_moves_with_the_starts_that_were_used():
    plan = parse_queue("2:a.json|type=ne;3:b.json|type=main;1:c.json|type=ne")
    places = [place_in(plan, used, 4) for used in (0, 7, 8, 20, 23, 24, 99)]
    assert [p.stage for p in places] == [0, 0, 1, 2, 2, 2, 2]
    assert [p.left for p in places] == [24, 17, 16, 4, 1, 0, 0]
    assert [p.by_type["ne"] for p in places] == [1, 5 / 12, 1 / 3, 1 / 3, 1 / 12, 0, 0]
    assert [p.by_type["main"] for p in places] == [1, 1, 1, 0, 0, 0, 0]
    assert [p.over for p in places] == [False] * 5 + [True] * 2


def test_each_start_is_replayed_before_the_next():
    plan = Plan("q", (Stage(2, None, "a"), Stage(2, None, "b")), replay=2)
    assert next_starts(plan, 0, 4, 3) == [0, 0, 1, 1]
    assert next_starts(plan, 8, 4, 3) == [0, 0, 1, 1]  # the next stage begins anew
    assert next_starts(plan, 0, 4, 0) == []


def test_a_queue_of_random_length_is_used_up_exactly():
    rng = random.Random(0)
    for _ in range(200):
        kinds = [{"type": rng.choice("xy")} for _ in range(4)]
        plan = Plan("q", tuple(Stage(rng.randrange(1, 9), None, "a", kind) for kind in kinds))
        c = Course(from_mapping({"queues": {"q": "1:a"}}), worlds=rng.randrange(1, 9))
        c.schedule.plans = [plan]
        before, shares = 0, []
        while not c.place(plan).over:
            place = c.place(plan)
            assert place.stage >= before
            sizes = {t: sum(s.iterations for s in plan.stages if s.options["type"] == t) for t in place.by_type}
            assert sum(place.by_type[t] * sizes[t] for t in sizes) == pytest.approx(place.share * plan.length)
            before = place.stage
            shares.append(place.share)
            c.take(rng.randrange(1, 5))
        assert shares == sorted(shares, reverse=True)
        assert c.used["q"] == plan.length * c.worlds


# ---- State


def test_the_state_is_json_and_goes_on_the_same():
    settings = {
        "every": 1, "curriculum": "3:4,5:4", "queues": {"q": "3:a.json|type=ne;5:b.json"},
        "gates": {"g": {"success": "median(3) x >= 0.5", "failure": "x < 0.2", "required": 2, "freeze": 2,
                        "tolerance": 2, "success_freeze": 2, "sets": {"coef": [0, 1, 2]}}},
        "alerts": {"low": {"when": "q_left <= 0.7", "patience": 3}},
    }  # fmt: skip
    for seed in range(50):
        rng, whole, parts = random.Random(seed), course(**settings), course(**settings)
        for i in range(1, 30):
            x, starts = rng.random(), rng.randrange(4)
            steps = []
            for c in (whole, parts):
                c.take(starts)
                fired = [a.name for a, _ in c.watch(i, {f"schedule/{k}": v for k, v in c.trace(i).items()})]
                steps.append((fired, [d.to_dict() for _, d in c.check(i, {"x": x})], c.stage(i, "n"), c.trace(i)))
            assert steps[0] == steps[1]
            kept, parts = json.loads(json.dumps(parts.to_dict())), course(**settings)
            parts.load(kept)


def test_random_gates_keep_their_promises():
    """Whatever the values: the stage moves by one, never on failure, never before `required` successes in a row."""
    for seed in range(300):
        rng = random.Random(seed)
        numbers = [rng.randrange(1, 4), rng.randrange(1, 4), rng.randrange(6), rng.randrange(6)]
        sides = (parse_condition("x >= 0.5"),), (parse_condition("x < 0.3"),)
        gate = Gate("g", *sides, rng.choice(("failure", "success")), *numbers, (1,) * rng.randrange(1, 5))
        state, wins = GateState(), 0
        for at in range(0, 200, rng.randrange(1, 5)):
            x = rng.random()
            decision = decide(gate, {"x": [x]}, state, at)
            after, moved = decision.state, decision.state.stage - state.stage
            assert 0 <= after.stage <= max(gate.last or 0, 0)
            assert moved in (-1, 0, 1)
            assert moved != 1 or decision.outcome == "advance"
            assert (moved == -1) == (decision.outcome == "rollback")
            assert (decision.outcome in ("rollback", "failure_hold")) == (x < 0.3)
            wins = wins + 1 if decision.passed else 0
            assert decision.outcome != "advance" or wins >= gate.required
            assert decision.outcome != "frozen" or at < state.frozen_until
            wins = 0 if decision.outcome == "advance" else wins
            state = after


# ---- What a real run recorded


def recorded(folder: Path, key: str):
    """(schedule of its command, rows of its evaluations, its decisions) of one try."""
    run = next(each for each in find.load_all(folder).runs if each.source.key == key)
    events = [e for e in run.history.events if e["kind"] == "gate"]
    rows = [{} for _ in events]
    for name, column in run.history.columns.items():
        if name.startswith("foreign/multi_eval/"):
            at = dict(zip(column.steps.tolist(), column.values.tolist()))
            for row, event in zip(rows, events):
                row |= {name.rpartition("/")[2]: at[event["step"]]} if event["step"] in at else {}
    return parse_command(run.history.meta["command"]), rows, events


@needs_fish
@pytest.mark.parametrize(
    ("folder", "key", "n"),
    [("dev_v38_gate_relax_ne_stage_v1", "try-1", 2), ("dev_v38_gate_relax_ne_stage_v1", "", 5),
     ("dev_v38_gate_relax_ne_stage_v1_full", "", 7)],
)  # fmt: skip
def test_the_gate_decides_as_the_recorded_one_did(folder, key, n):
    schedule, rows, events = recorded(FISH / folder, key)
    (gate,) = schedule.gates
    c = Course(schedule, worlds=128)
    assert len(events) == n
    for row, event in zip(rows, events):
        ((_, decision),) = c.check(event["step"], row)
        state = decision.state
        assert (decision.outcome, state.stage, state.successes, state.failures) == (
            event["decision"], event["stage"], event["success_streak"], event["failure_streak"])  # fmt: skip
        assert event["freeze_until"] == state.frozen_until
        assert event["phase_limit"] == gate.allowance[state.stage] - 1
        medians = {
            each.condition.metric: each.value for each in decision.success if each.condition.statistic == "median"
        }
        assert medians["early_death_fraction_100"] == event.get("rolling_early_death_median")
        assert medians["p10"] == event.get("rolling_p10_median")


@needs_fish
def test_the_queue_stands_where_the_recorded_one_stood():
    folder = FISH / "dev_v38_gate_relax_ne_stage_v1_full"
    schedule = parse_command((folder / "command.txt").read_text())
    (plan,) = schedule.queues
    trace = json.loads((folder / "schedule_trace.json").read_text())["trace"]
    assert len(trace) == 59
    for row in trace:
        place = place_in(plan, 108 * 128 - int(row["tail_queue_remaining"]), 128)
        assert (place.stage + 1, place.progress, place.share) == pytest.approx(
            (row["tail_stage_index"], row["tail_stage_progress"], row["tail_queue_remaining_ratio"]))  # fmt: skip
        assert row["tail_stage_label"] == f"stage{plan.label(place.stage)}"
        assert row["tail_stage_type"] == plan.type(place.stage)
