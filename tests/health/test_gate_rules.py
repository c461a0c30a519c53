"""Do the rules about gates say what the log shows, and nothing that it refutes? Small logs by hand, and real ones."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relab.health import engine
from relab.health.examine import examine
from relab.health.rule import all_rules
from relab.health.view import View
from relab.record.history import Column, History
from relab.schedules.command import parse_command
from where import ROOT

CORPUS = ROOT.parent / "shared" / "corpus" / "fish"
SLUGS = ("gate-contradiction", "redundant-threshold", "bar-under-floor", "gate-never-advances", "alert-unreachable",
         "schedule-overrun", "implied-sample-size")  # fmt: skip
RULES = {slug: all_rules(plugins=False)[slug] for slug in SLUGS}
AT = [5, 10, 15, 20, 25, 30]
GATE = "--penalty_gate_success_step_one 16 --penalty_gate_required_successes 2"


def view(command="", checks=(), schedule=None, at=AT, axis="iteration", **columns):
    """A run with this command, these outcomes of its gate, and these metrics at iterations 5, 10 ..."""
    history = History(Path("nowhere"), meta={"command": command})
    history.config = {"schedule": schedule} if schedule else {}
    history.events = [{"kind": "gate", "step": s, "decision": outcome} for s, outcome in zip(at, checks)]
    for name, values in columns.items():
        history.columns[f"foreign/{name}"] = Column(np.array(at[: len(values)]), np.array(values, float))
        history.axes[f"foreign/{name}"] = axis
    return View(history, "run")


def ask(slug, seen):
    return engine.ask(RULES[slug], seen)


def counted(counts, n, **more):
    """A count and its ratio, and a share that changes or not."""
    ratios = [c / n for c in counts]
    return {"step_one_death_count": counts, "step_one_death_ratio": ratios, **more}


MOVING = [k / 640 for k in (401, 350, 303, 211, 149, 77)]
STILL = [k / 640 for k in (201, 207, 198, 203, 195, 204)]


# ---- Nothing to say


@pytest.mark.parametrize("slug", SLUGS)
@pytest.mark.parametrize("command", ["", "relab train ppo env=cartpole", "python ppo.py --seed 1 --eval_episodes 10"])
def test_a_run_without_a_schedule_is_not_spoken_of(slug, command):
    assert ask(slug, view(command, success=[0.1, 0.2])) is None


@pytest.mark.parametrize("slug", SLUGS)
def test_a_command_that_is_no_text_is_not_spoken_of(slug):
    for command in (None, 3, {"a": 1}, [["x"]]):
        assert ask(slug, view(command)) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("slug", ["bar-under-floor", "gate-never-advances"])
def test_a_gate_without_data_is_not_checked(slug):
    answer = ask(slug, view(GATE))
    assert isinstance(answer, engine.NotChecked)
    assert "step_one_death_count" in answer.missing


def test_a_schedule_that_cannot_be_read_is_not_checked():
    for seen in (view("--curriculum easy:hard"), view(schedule={"gates": 3})):
        answer = ask("schedule-overrun", seen)
        assert isinstance(answer, engine.NotChecked)
        assert "a schedule that can be read" in answer.missing


# ---- Bars


def test_bars_that_exclude_each_other_are_an_error():
    gate = {"success": [{"when": "early_100 <= 0.1", "of": "t"}], "failure": [{"when": "p10 >= 90", "of": "t"}]}
    found = ask("gate-contradiction", view(schedule={"gates": {"g": gate}}))
    assert found.severity == "error"
    assert "no value has both" in found.message


def test_an_empty_region_explains_why_the_gate_stays_shut():
    seen = view(schedule={"gates": {"g": {"success": ["x >= 5", "x <= 4"]}}}, x=[1, 2, 3, 4, 5, 6])
    fired, _ = engine.ask_run(list(RULES.values()), seen)
    assert {f.slug: f.explained_by for f in fired} == {
        "gate-contradiction": None,
        "gate-never-advances": "gate-contradiction",
    }


def test_bars_out_of_order_are_no_contradiction():
    found = ask("gate-contradiction", view("--a_gate_success_p10 70 --a_gate_failure_p10 95"))
    assert (found.severity, found.value) == ("warning", 1.0)
    assert "a_gate can open, but has bars out of order" in found.message
    assert ask("gate-contradiction", view("--a_gate_success_p10 95 --a_gate_failure_p10 70")) is None


def test_the_flag_of_a_bar_is_named():
    found = ask("redundant-threshold", view("--a_gate_success_p10 70 --a_gate_success_early_death 0.1"))
    assert found.severity == "warning"
    assert "a_gate_success_p10, a_gate_success_early_death" in found.evidence[0].formula
    windows = "--a_gate_success_p10 70 --a_gate_success_median_window 4 --a_gate_success_early_death 0.1"
    assert ask("redundant-threshold", view(windows)).severity == "info"


def test_a_command_may_be_a_list_of_words_or_settings():
    words = ["train.py", "--a_gate_success_p10", "70", "--a_gate_failure_p10", "95", "--note", "it's"]
    assert ask("gate-contradiction", view(words)).severity == "warning"
    seen = view("")
    seen.history.config = {"foreign": {"a_gate_success_p10": 70, "a-gate-failure-p10": 95.0, "x": [1]}}
    assert ask("gate-contradiction", seen).severity == "warning"


def test_trials_come_from_the_log_not_from_the_claim():
    """16 of 640 is 0.025; of the claimed 1,280 it would be 0.0125, and 0.02 would be redundant."""
    command = f"{GATE} --penalty_gate_success_step_one_ratio 0.02 --eval_multi_fish 64 --eval_multi_episodes 20"
    seen = view(command, **counted([32, 26, 23, 25, 28, 14], 640))
    assert ask("redundant-threshold", seen).message.startswith("penalty_gate: step_one_death_count <= 16 adds nothing")


# ---- Floors


def test_a_constant_count_above_its_bar_is_a_floor_while_something_else_moves():
    seen = view(GATE, **counted([24, 22, 23, 25, 33, 26], 640, survival=MOVING))
    found = ask("bar-under-floor", seen)
    assert (found.severity, found.onset) == ("info", 5)
    assert "25.5 of 640 are expected" in found.message
    assert found.evidence[1].metric == "foreign/survival"


@pytest.mark.parametrize(
    ("counts", "share"),
    [
        ([24, 22, 23, 25, 33, 26], STILL),  # nothing moves: a policy that does not learn has no floor
        ([60, 48, 37, 25, 14, 6], MOVING),  # the count itself falls
        ([32, 28, 27, 24, 22, 19], MOVING),  # it falls, though by no more than chi-square calls chance
        ([12, 15, 9, 14, 13, 12], MOVING),  # below the bar
        ([2, 1, 3, 2, 1, 2], MOVING),  # too few to tell
    ],
)
def test_no_floor_is_seen_where_there_is_none(counts, share):
    command = GATE if np.mean(counts) > 5 else GATE.replace("16", "1")
    assert ask("bar-under-floor", view(command, **counted(counts, 640, survival=share))) is None


def test_a_given_floor_is_a_warning():
    success = [{"when": "hit_count <= 18", "of": "hit", "floor": 23.4, "n": 1152}]
    found = ask("bar-under-floor", view(schedule={"gates": {"g": {"success": success, "required": 2}}}))
    assert found.severity == "warning"
    assert "P = 0.15 a check, 0.023 for the 2 in a row" in found.message


# ---- What the gate did


def test_a_gate_that_never_passed_shows_each_distance():
    counts = [24, 22, 23, 25, 33, 19]
    found = ask("gate-never-advances", view(GATE, ["locked"] * 6, **counted(counts, 640)))
    assert found.message == (
        "penalty_gate: none of 6 checks passed (6 locked); step_one_death_count <= 16 met in 0 of 6"
    )
    assert found.evidence[0].values == counts
    assert found.evidence[0].formula.startswith("distance -3 at best")
    assert "agrees in 6 of 6" in found.evidence[-1].formula
    assert (found.onset, found.axis) == (5, "iteration")


@pytest.mark.parametrize("passed", ["advance", "progress", "success_progress"])
def test_a_gate_that_passed_once_is_not_shut(passed):
    assert ask("gate-never-advances", view(GATE, ["locked"] * 5 + [passed])) is None


def test_two_checks_say_nothing():
    assert ask("gate-never-advances", view(GATE, ["locked"] * 2)) is None


def test_events_alone_are_enough_to_see_that_it_stayed_shut():
    found = ask("gate-never-advances", view("", ["failure_hold", "failure_hold", "locked"]))
    assert "the gate: none of 3 checks passed (2 failure_hold, 1 locked)" in found.message


def test_without_events_the_gate_is_replayed():
    shut = view(GATE, **counted([24, 22, 23, 25], 640))
    assert "4 locked" in ask("gate-never-advances", shut).message
    assert ask("gate-never-advances", view(GATE, **counted([24, 12, 11, 25], 640))) is None


# ---- Alerts and samples

ALERT = "--total_iterations 30 --tail_stage_warn_ratio 0.5 --tail_stage_warn_patience 2"


def test_an_alert_that_waits_longer_than_the_run():
    found = ask("alert-unreachable", view(ALERT.replace("patience 2", "patience 31")))
    assert "31 > 30 iterations" in found.message


@pytest.mark.parametrize(
    ("left", "severity"),
    [
        ([0.9, 0.8, 0.7, 0.6, 0.55, 0.49], "warning"),  # reached at the last iteration
        ([0.95, 0.9, 0.85, 0.8, 0.75, 0.7], "info"),  # would be reached at iteration 50
        ([0.9, 0.8, 0.7, 0.6, 0.49, 0.4], None),  # reached at 25: fires at 26 at the latest
        ([0.9, 0.7, 0.8, 0.6, 0.7, 0.8], None),  # goes up and down: an alarm that waits for a fault
        ([1.0, 1.0, 1.0, 1.0, 1.0, 1.0], None),  # nothing happens
    ],
)
def test_an_alert_that_comes_too_late(left, severity):
    found = ask("alert-unreachable", view(ALERT, tail_queue_remaining_ratio=left))
    assert (found.severity if found else None) == severity


def test_an_alert_is_held_against_iterations_only():
    left = [0.9, 0.8, 0.7, 0.6, 0.55, 0.49]
    answer = ask("alert-unreachable", view(ALERT, axis="env_steps", tail_queue_remaining_ratio=left))
    assert "over iterations" in answer.missing


def test_a_queue_that_reached_its_last_stage_did_not_overrun():
    command = "--total_iterations 30 --tail_seed_stage_spec 20:a.json;20:b.json"
    assert "adds up to 40" in ask("schedule-overrun", view(command, tail_stage_index=[1, 1, 1])).message
    assert ask("schedule-overrun", view(command, tail_stage_index=[1, 1, 2])) is None


CLAIM = "--a_gate_success_early_death 0.1 --eval_multi_fish 32 --eval_multi_episodes 20"
ODD = (401, 350, 303, 211, 149, 77)


@pytest.mark.parametrize(
    ("rates", "told"),
    [
        ([k / 640 for k in ODD], None),  # as claimed
        ([k / 160 for k in (151, 125, 103, 91, 49, 17)], "k/160, not k/640: 5 episodes of 32, where"),
        ([k / 320 for k in (301, 250, 203)], None),  # three even numbers of 640: chance
        ([k / 960 for k in ODD], "k/960, not k/640: 30 episodes of 32, where"),
        ([k / 20 for k in (1, 3, 7, 9, 11, 19)], None),  # a rate of episodes, not of animals
        ([0.0, 1.0, 0.0, 1.0, 1.0, 1.0], None),
        ([0.5, 0.5, 0.5, 0.5, 0.5, 0.5], None),
        ([0.6266, 0.5469, 0.4734, 0.3297, 0.2328, 0.1203], None),  # written with four digits: 10,000ths fit anything
    ],
)
def test_rates_tell_how_many_were_evaluated(rates, told):
    found = ask("implied-sample-size", view(CLAIM, early_death_fraction_100=rates))
    assert (found is None) == (told is None)
    assert told is None or told in found.message


# ---- Real logs

corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason=f"{CORPUS} is not there")


@pytest.fixture(scope="module")
def fish():
    report = examine(CORPUS)
    return {(f.run.rpartition("_")[2], f.slug): f for f in report.findings if f.slug in SLUGS}


@corpus
@pytest.mark.parametrize(
    ("slug", "severity", "words"),
    [
        ("bar-under-floor", "info", ["<= 18", "23.4 of 1,152", "P = 0.15", "0.023 for the 2 in a row"]),
        ("gate-contradiction", "warning", ["can open", "p10 >= 70", "p10 < 95"]),
        ("redundant-threshold", "warning", ["p10 >= 70 adds nothing", "means p10 >= 100", "18 of 1152 is 0.0156"]),
        ("gate-never-advances", "warning", ["none of 7 checks passed (7 failure_hold)"]),
        ("alert-unreachable", "warning", ["<= 0.65", "59 + 3 > 60"]),
        ("schedule-overrun", "warning", ["adds up to 108", "has 60", "ends in stage 3"]),
        ("implied-sample-size", "warning", ["k/1152, not k/2304", "12 episodes of 96", "says 24"]),
    ],
)
def test_the_whole_run_of_the_fish(fish, slug, severity, words):
    found = fish["full", slug]
    assert found.severity == severity
    assert [word for word in words if word not in found.message] == []


@corpus
def test_the_floor_is_shown_to_be_constant(fish):
    found = fish["full", "bar-under-floor"]
    assert found.evidence[0].values == [25, 22, 19, 29, 16, 24, 29]
    assert "chi2 = 6.05, df 6, p = 0.42" in found.evidence[0].formula
    assert fish["full", "gate-never-advances"].explained_by == "bar-under-floor"


@corpus
def test_the_interrupted_run_was_locked_once_and_is_not_said_to_be_unable_to_open(fish):
    found = fish["v1", "gate-never-advances"]
    assert "4 failure_hold, 1 locked" in found.message
    assert "agrees in 5 of 5" in found.evidence[-1].formula
    assert fish["v1", "gate-contradiction"].severity == "warning"
    assert fish["v1", "alert-unreachable"].severity == "info", "it ended before: an estimate"


@corpus
def test_every_flag_of_the_gate_is_understood():
    text = next(CORPUS.glob("*/command.txt")).read_text()
    found = parse_command(text)
    ours = [word for word in text.split() if "gate" in word and word.startswith("--")]
    assert len(ours) > 10
    assert found.problems == []
    flags = [word for word in text.split() if word.startswith("--")]
    words = ("gate", "curriculum", "stage_spec", "stage_warn", "total_iter", "interval", "_episodes", "multi_fish",
                 "n_steps", "force_reset", "replay_count")  # fmt: skip
    assert found.unknown == sum(not any(word in flag for word in words) for flag in flags)
