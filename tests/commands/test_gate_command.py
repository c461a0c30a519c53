"""Does `relab gate` say what cannot work, and what other bars would have decided?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from relab import cli
from relab.schedules import from_mapping, lint
from relab.schedules.lint import samples
from where import ROOT

FISH = ROOT.parent / "shared" / "corpus" / "fish"
FULL = FISH / "dev_v38_gate_relax_ne_stage_v1_full"
needs_fish = pytest.mark.skipif(not FISH.is_dir(), reason="the fish records are not in ../shared/corpus")

PLAN = """
total: 20
every: 5
curriculum: 5:30
gates:
  door:
    success: [early_death_100 <= 0.1, median(2) death_p10 >= 70, step_one_count <= 18, step_one_share <= 0.02]
    failure: [death_p10 < 95]
    freeze: 3
queues: {tail: {stages: "40:a.json", force_reset: 256}}
alerts: {tail: {when: tail_left <= 0.6, patience: 5}}
multi_eval: {episodes: 12, agents: 96}
"""


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["gate", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_plan_is_linted_before_a_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "plan.yaml").write_text(PLAN)
    code, out, _ = said(capsys, "lint", str(tmp_path / "plan.yaml"), "--floor", "step_one_count=23.4")
    assert code == 0
    for line in (
        "bars out of order: success asks median(2) death_p10 >= 70, failure is death_p10 < 95",
        "step_one_count <= 18, but 23.4 of 1,152 are expected: P = 0.15 a check",
        "median(2) death_p10 >= 70 adds nothing: early_death_100 <= 0.1 means death_p10 >= 100",
        "step_one_share <= 0.02 adds nothing: step_one_count <= 18 of 1152 is 0.0156",
        "curriculum adds up to 30 iterations, the run has 20",
        "tail adds up to 40 iterations, the run has 20",
        "freeze of 3 iterations ends before the next check, 5 later",
        "1,152 trials, were they independent, do not decide within",
    ):
        assert line in out, line


def test_the_same_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "config.yaml").write_text("schedule:\n" + "".join(f"  {line}\n" for line in PLAN.splitlines()))
    _, out, _ = said(capsys, "lint", str(tmp_path / "config.yaml"), "--json")
    slugs = {row["slug"] for row in json.loads(out)["lints"]}
    assert slugs == {
        "gate-contradiction",
        "redundant-threshold",
        "schedule-overrun",
        "freeze-without-effect",
        "sample-size",
    }


def test_a_sound_plan_is_left_alone():
    sound = {"total": 20, "every": 5, "curriculum": "5:10,6:10", "multi_eval": {"episodes": 12},
             "gates": {"door": {"success": "early_death_100 <= 0.1", "failure": "early_death_100 > 0.5", "freeze": 6}},
             "alerts": {"late": {"when": "door_stage >= 1", "patience": 5}}}  # fmt: skip
    assert lint(from_mapping(sound), 12) == []
    assert [each.slug for each in samples(from_mapping(sound), 12)] == ["sample-size"]


def test_a_slow_queue_makes_an_alert_late():
    plan = from_mapping({"total": 20, "queues": {"q": {"stages": "40:a.json", "force_reset": 256}},
                         "alerts": {"a": {"when": "q_left <= 0.9", "patience": 3}}})  # fmt: skip
    plan.steps = 64  # a start every 4 iterations: 4 of 40 are used after 12
    late = {each.slug: each for each in lint(plan)}
    assert "alert-unreachable" not in late
    plan.steps = 32  # after 24
    (alert,) = [each for each in lint(plan) if each.slug == "alert-unreachable"]
    assert (alert.numbers["first"], alert.numbers["need"], alert.exact) == (24, 26, False)


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("lint",), 64, "needs a YAML file, a run"),
        (("mend", "x"), 64, "lint and replay"),
        (("lint", "nosuch"), 2, "no run `nosuch`"),
        (("lint", "--command", "nosuch.txt"), 2, "nosuch.txt"),
        (("lint", "ppo", "env=cartpole"), 64, "have no `schedule`"),
        (("replay",), 64, "needs a run"),
    ],
)
def test_what_cannot_be_done_is_said(words, code, message, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exit_code, _, err = said(capsys, *words)
    assert (exit_code, message in err) == (code, True), err


def test_an_unknown_floor_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    (tmp_path / "plan.yaml").write_text(PLAN)
    code, _, err = said(capsys, "lint", str(tmp_path / "plan.yaml"), "--floor", "step_two=3")
    assert (code, "no gate asks for step_two" in err) == (64, True)
    code, _, err = said(capsys, "lint", str(tmp_path / "plan.yaml"), "--floor", "step_one_count=many")
    assert (code, "finite number" in err) == (64, True)


# ---- A real command line and a real run


@needs_fish
def test_a_recorded_command_line_is_linted(capsys: pytest.CaptureFixture[str]):
    code, out, _ = said(capsys, "lint", "--command", str(FULL / "command.txt"), "--floor", "step_one_death_count=23.4")
    assert code == 0
    for line in (
        "step_one_death_count <= 18, but 23.4",  # bar under floor
        "median(4) p10 >= 70 adds nothing",  # vacuous
        "bars out of order: success asks median(4) p10 >= 70, failure is p10 < 95",
        "tail_queue_remaining_ratio <= 0.65 holds at about iteration 65",  # unreachable
        "tail_seed_stage_spec adds up to 108 iterations, the run has 60",  # overrun
        "eval_multi_episodes says 24 episodes (2,304 trials), multi_eval_probe_episodes 12 (1,152)",  # sample size
        "freeze of 5 iterations ends before the next check, 8 later",
    ):
        assert line in out, line


@needs_fish
def test_a_log_takes_the_place_of_estimates(capsys: pytest.CaptureFixture[str]):
    _, out, _ = said(capsys, "lint", str(FULL))
    for line in (
        "step_one_death_count <= 18, but 23.4 of 1,152 are expected: P = 0.15 a check, 0.023 for the 2 in a row",
        "first holds at 59 and must hold 3 checks: 59 + 3 > 60",
        "rates are k/1152, not k/2304: 12 episodes of 96",
        "none of 7 checks passed (7 failure_hold)",
        "the log ends in stage 3",
    ):
        assert line in out, line
    assert "about iteration 65" not in out


@needs_fish
def test_a_replay_says_what_other_bars_decide(capsys: pytest.CaptureFixture[str]):
    _, out, _ = said(capsys, "replay", str(FULL), "success.p10=60")
    assert "success.p10=60: 0 decisions differ" in out
    assert "give the recorded decision in 7 of 7 checks" in out
    words = ("failure.p10=none", "failure.min_final=none", "success.step_one=none", "success.step_one_ratio=none",
             "success.early_death=0.14", "success.p10=60", "--json")  # fmt: skip
    _, out, _ = said(capsys, "replay", str(FULL), *words)
    replay = json.loads(out)
    assert [row["changed"]["decision"] for row in replay["checks"]] == [
        "locked", "locked", "locked", "locked", "success_progress", "advance", "locked"]  # fmt: skip
    assert [row["recorded"] for row in replay["checks"]] == ["failure_hold"] * 7
    near = [row for row in replay["near"] if row["metric"] == "early_death_fraction_100"]
    assert all(row["need"] > 1152 for row in near)


@needs_fish
def test_a_word_that_no_gate_has_is_refused(capsys: pytest.CaptureFixture[str]):
    code, _, err = said(capsys, "replay", str(FULL), "success.p11=60")
    assert (code, "penalty_gate has no `success.p11`; it has" in err) == (64, True)
    code, _, err = said(capsys, "replay", str(FULL), "requierd=1")
    assert (code, "the nearest is `required`" in err) == (64, True)


def test_the_example_is_sound(capsys: pytest.CaptureFixture[str]):
    example = ROOT / "examples" / "school.yaml"
    words = ("ppo", "env=fish", f"schedule={example}", "total_steps=6_150_000", "--json")
    code, out, _ = said(capsys, "lint", *words)
    assert code == 0
    assert {row["slug"] for row in json.loads(out)["lints"]} == {"sample-size"}


def test_a_measured_floor_is_that_of_the_worlds_that_gates_see(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """6 of the 12 worlds play at a check: 0.0855 of their 96 fish are 8.2 deaths, which a bar of 9 is not under."""
    plan = {"total": 4, "every": 2, "gates": {"door": {"success": "step_one_count <= 9", "failure": "min_final < 0"}},
            "multi_eval": {"episodes": 12, "probe_episodes": 6, "agents": 16}}  # fmt: skip
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))
    _, out, _ = said(capsys, "lint", "ppo", "env=fish", f"schedule={tmp_path / 'plan.yaml'}", "--json")
    lint_ = json.loads(out)
    assert "8.21 of the 96 of a check" in lint_["said"][0]
    assert "bar-under-floor" not in {row["slug"] for row in lint_["lints"]}
