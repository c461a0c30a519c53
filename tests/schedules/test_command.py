"""Does a command line or a YAML file become the schedule it asks for, and is the rest left alone?"""

from __future__ import annotations

import random

import pytest

from relab.config.yaml_io import parse_yaml
from relab.schedules import from_mapping, lint, parse_command
from relab.schedules.command import flags_of, words_of
from relab.schedules.gate import ScheduleError

COMMAND = r"""python train.py --lr 3e-4 --total_iterations 40 --multi_eval_interval 5 \
  --curriculum 10:20,20:20 --tail_seed_stage_spec '8:a.json|type=ne;15:b.json' \
  --eval_multi_fish 32 --eval-multi-episodes=20 --multi_eval_probe_episodes 10 \
  --penalty_gate_required_successes 2 --penalty_gate_success_step_one 9 \
  --penalty_gate_success_early_death 0.3 --penalty_gate_success_early_death_window 3 \
  --penalty_gate_success_p10 40 --penalty_gate_success_median_window 4 --penalty_gate_phase_allowance 4,5 \
  --penalty_gate_freeze_iterations 5 --penalty_gate_success_freeze_iterations 2 \
  --penalty_gate_failure_p10 20 --penalty_gate_failure_min_final 0.25 --penalty_gate_failure_tolerance 3 \
  --tail_stage_warn_ratio 0.4 --tail_stage_warn_patience 2 --quiet
"""


def test_flags_become_a_schedule():
    schedule = parse_command(COMMAND)
    (gate,), (alert,) = schedule.gates, schedule.alerts
    assert [str(c) for c in gate.success] == [
        "step_one_death_count <= 9", "early_death_fraction_100 <= 0.3", "median(3) early_death_fraction_100 <= 0.3",
        "median(4) p10 >= 40",
    ]  # fmt: skip
    assert [str(c) for c in gate.failure] == ["p10 < 20", "min_final_survival_rate < 0.25"]
    assert (gate.name, gate.required, gate.tolerance, gate.freeze, gate.success_freeze, gate.allowance) == (
        "penalty_gate", 2, 3, 5, 2, (4, 5))  # fmt: skip
    assert (str(alert.when), alert.patience, alert.cadence) == ("tail_queue_remaining_ratio <= 0.4", 2, 1)
    assert [(plan.name, plan.length) for plan in schedule.plans] == [("curriculum", 40), ("tail_seed_stage_spec", 23)]
    assert (schedule.total, schedule.every, schedule.unknown, schedule.problems) == (40, 5, 2, [])
    assert [(c.source, c.n) for c in schedule.claims] == [
        ("eval_multi_episodes", 640),
        ("multi_eval_probe_episodes", 10),
    ]


def test_every_bar_comes_from_the_command():
    """Other numbers in, other numbers out: none is written in the table."""
    swapped = COMMAND.replace("p10 40", "p10 41").replace("warn_ratio 0.4", "warn_ratio 0.45")
    a, b = parse_command(COMMAND), parse_command(swapped)
    assert [c.threshold for c in a.gates[0].success][-1] == 40
    assert [c.threshold for c in b.gates[0].success][-1] == 41
    assert b.alerts[0].when.threshold == 0.45
    assert not parse_command("python train.py --penalty_gate_required_successes 2").gates


@pytest.mark.parametrize(
    "command",
    ["", "relab train ppo env=cartpole seed=0", "python ppo.py --env-id CartPole-v1 --total-timesteps 500000 --track",
     "python train.py --gated --gate_hidden 64 --warn --curriculum easy --n_iterations many --cpu_warn_ratio 0.9"],
)  # fmt: skip
def test_a_command_without_a_schedule_is_left_alone(command):
    schedule = parse_command(command)
    assert not schedule
    assert schedule.problems == []
    assert lint(schedule) == []


def test_what_cannot_be_read_is_listed():
    schedule = parse_command(
        "t --curriculum a:b --x_gate_success_p10 high --x_gate_failure_p10 5 --total_iterations 1e3"
    )
    assert [p.split(":")[0] for p in schedule.problems] == [
        "--curriculum",
        "--x_gate_success_p10",
        "--total_iterations",
    ]
    assert [str(c) for c in schedule.gates[0].failure] == ["p10 < 5"]


def test_words_and_flags():
    assert words_of("a --x 'b c' \\\n --y=1") == ["a", "--x", "b c", "--y=1"]
    assert words_of("a 'b") == ["a", "'b"]
    assert flags_of(["--a", "1", "--b-c=2", "--d", "--e", "-3", "f"]) == {"a": "1", "b_c": "2", "d": "true", "e": "-3"}


def test_no_text_breaks_the_parser():
    """Words of real flags among pieces of anything: what comes out is a schedule, whatever it holds."""
    rng, pieces = (
        random.Random(0),
        ["'", '"', ":", ",", ";", "|", "=", "-", "1", "0", "nan", "1e99", "\x00", "é", "²", " "],
    )
    flags = [word for word in COMMAND.split() if word.startswith("--")]
    for _ in range(2000):
        words = [rng.choice(flags) + " " + "".join(rng.choices(pieces, k=rng.randrange(6))) for _ in range(6)]
        schedule = parse_command(" ".join(words))
        assert lint(schedule) is not None
        assert all(gate.success or gate.failure for gate in schedule.gates)


# ---- YAML

YAML = """
total: 60
every: 8
curriculum: 15:9,20:10
queues: {tail: "8:a.json|type=ne;15:b.json"}
gates:
  penalty:
    success: [early_death_100 <= 0.1, {when: median(4) p10 >= 70, of: death_step, floor: 3, n: 10}]
    failure: p10 < 95
    required: 2
    allowance: [4, 5]
alerts: {tail: {when: queue_left <= 0.65, patience: 3}}
claims: [{episodes: 24, agents: 96}]
"""


def test_a_schedule_from_yaml():
    schedule = from_mapping(parse_yaml(YAML))
    (gate,) = schedule.gates
    assert [str(c) for c in gate.success] == ["early_death_100 <= 0.1", "median(4) p10 >= 70"]
    assert (gate.success[1].of, gate.success[1].floor, gate.success[1].n) == ("death_step", 3.0, 10)
    assert (str(gate.failure[0]), gate.required, gate.allowance) == ("p10 < 95", 2, (4, 5))
    assert (schedule.total, schedule.every, schedule.plans[1].stages[0].options) == (60, 8, {"type": "ne"})
    assert (schedule.alerts[0].patience, schedule.claims[0].n) == (3, 2304)


@pytest.mark.parametrize(
    "text",
    ["gate: {}", "gates: [1]", "gates: {a: {sucess: x <= 1}}", "gates: {a: {success: [3]}}", "total: many",
     "alerts: {a: {patience: 2}}", "curriculum: [9]", "gates: {a: {required: 0}}", "claims: [{agents: 2}]"],
)  # fmt: skip
def test_a_yaml_schedule_that_cannot_be_read_says_why(text):
    with pytest.raises(ScheduleError, match=r"but got|known are"):
        from_mapping(parse_yaml(text))
