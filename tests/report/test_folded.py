"""Do the folded sections hold what document and data ask for: scales, probes, stages, times, health, next steps?"""

from __future__ import annotations

import math
import time

import pytest

from relab.base.jsonl import encode
from relab.health.engine import NotChecked
from relab.health.examine import examine
from relab.health.rule import Finding
from relab.record import clock
from relab.record.run_folder import Record
from relab.report import course, scales, sections
from relab.report.page import Facts
from relab.report.parts import local_time
from relab.runs import grouping
from report.made import write_run
from where import histories

UP = (10.0, 60.0, 150.0, 300.0, 400.0)


def part(data, title):
    return next((s for s in data.sections if s.title == title), None)


# ---- Scales


def scale(folder, **config):
    """A run of four rows in which each number is off in its own way."""
    spec = {"action": {"kind": "discrete", "n": [2]}, "reward_low": 0.0, "reward_high": 1.0}
    settings = {"algo": {"name": "ppo", "gamma": 0.9, "clip": 0.2, "max_grad_norm": 0.5, **config}, "seed": 0}
    with Record.create(folder, settings, {}, {"spec": spec}) as record:
        for i in range(4):
            record.append_metrics(
                i,
                {"policy/entropy": 0.3, "data/advantage_mean": 5.0, "data/advantage_std": 1.0, "value/mean": 9.0,
                 "value/target_mean": 6.0, "value/target_std": 1.0, "value/target_max": 12.0, "data/reward_min": 0.0,
                 "data/reward_max": 2.0, "policy/ratio_max": 30.0, "policy/kl": 0.1, "policy/clip_share": 0.6,
                 "optim/grad_norm": 50.0, "optim/grad_clipped_share": 1.0, "value/explained_variance": -0.5},
            )  # fmt: skip
    return grouping.load(folder)[0].runs[0]


def test_scales_that_are_off_are_named_with_both_numbers(tmp_path):
    checks = scales.section_of(scale(tmp_path / "run", target_kl=0.02))
    assert checks.lines == ["10 of 11 off: no finding by itself, but where to look first when there is one"]
    rows = {row[0]: row[1:] for row in checks.tables[0].rows}
    assert rows["entropy at the start"] == ["0.3", "near ln n = 0.6931: a new policy prefers nothing", "off"]
    assert rows["entropy at the end"] == ["0.3 (43% of ln n)", "0 to ln n = 0.6931", "within"]
    assert rows["reward"] == ["0 to 2", "0 to 1, as declared", "off"]
    assert rows["highest value target"] == ["12", "up to reward_high / (1 - gamma) = 10", "off"]
    assert rows["KL of an update"] == ["0.1", "up to 1.5 x target_kl = 0.03", "off"]
    assert rows["gradient norm"] == ["50, 100% of the steps clipped", "up to 30 x max_grad_norm = 15", "off"]
    assert rows["value"][1:] == ["its target 6 ± 1", "off"]
    assert rows["advantage before normalisation"][0] == "mean 5, std 1"


def test_what_is_missing_is_not_ok(tmp_path):
    checks = scales.section_of(scale(tmp_path / "run", max_grad_norm=None))
    assert "gradient norm (a number for algo.max_grad_norm)" in checks.lines[1]
    assert scales.section_of(grouping.load(write_run(tmp_path / "bare", ()))[0].runs[0]) is None


def test_a_scale_that_a_finding_rests_on_is_not_called_sound(tmp_path):
    """KL went far too high at first and was small in the second half: both are true, and both are said."""
    spec = {"action": {"kind": "discrete", "n": [2]}}
    with Record.create(tmp_path / "run", {"algo": {"name": "ppo", "clip": 0.2}}, {}, {"spec": spec}) as record:
        for i in range(40):
            record.append_metrics(i, {"policy/entropy": 0.69, "policy/kl": 20.0 if i < 18 else 0.01})
    report = examine(tmp_path / "run")
    checks = part(sections.build(tmp_path / "run", Facts(findings=report.findings)), "Scale checks")
    rows = {row[0]: row[-1] for row in checks.tables[0].rows}
    assert rows["KL of an update"].startswith("within; ")
    assert rows["entropy at the start"] == "within"
    assert "1 of them has a finding" in checks.lines[0]


@pytest.mark.parametrize("name", ["cartpole", "pendulum", "herd", "ladder-both"])
def test_healthy_runs_are_of_the_right_scale(name):
    (group,) = grouping.load(histories() / "healthy" / name)
    assert scales.section_of(group.runs[0]).lines[0].startswith("all ")


# ---- Health


def test_health_tells_what_fired_and_what_did_not(tmp_path):
    folder = write_run(tmp_path / "run", UP)
    key = grouping.load(folder)[0].key
    fired = Finding("m", slug="a", severity="error", run="run", explained_by="b", onset=2000)
    shared = Finding("m", slug="c", severity="info", run="run", status="also-in-reference")
    gone = [NotChecked("d", "run", "policy/kl")]
    facts = Facts([fired, shared], gone, muted={"e": "known"}, limits=[f"1 seed of {key}"])
    data = sections.build(folder, facts)
    health = part(data, "Health")
    assert health.lines == ["FAIL: 1 finding", "1 seed of run"]
    assert [(t.caption, t.rows[0][:2]) for t in health.tables] == [
        ("", ["error", "a"]), ("Also in the reference", ["info", "c"]), ("Muted", ["e", "known"]),
        ("Not checked", ["policy/kl", "d"]),
    ]  # fmt: skip
    assert health.tables[0].rows[0][4:6] == ["2,000", "b"]
    assert part(sections.build(folder), "Health").lines == ["not examined"]
    assert part(sections.build(folder, Facts([])), "Health").lines == ["PASS: no finding"]


# ---- Probes, stages, time


def test_probes_have_a_table_each(tmp_path):
    folder = write_run(tmp_path / "run", UP)
    rows = [{"step": i * 1000, "probe": name, "value": i * k, "noise": 0.5, "unit": "return"}
            for i in range(4) for name, k in (("critic", 2.0), ("drift", 3.0))]  # fmt: skip
    (folder / "probes.jsonl").write_bytes(b"".join(encode(row) for row in rows))
    probes = part(sections.build(folder), "Probes")
    assert [t.caption for t in probes.tables] == ["critic", "drift"]
    assert [row[:5] for row in probes.tables[1].rows] == [
        ["value", "9", "0", "9", "4.5"], ["noise", "0.5", "0.5", "0.5", "0.5"],
    ]  # fmt: skip


def test_stages_split_the_metrics(tmp_path):
    folder = write_run(tmp_path / "run", UP)
    with Record.open(folder) as record:
        record.append_event("stage", 2000, stage="hard")
    (stages,) = part(sections.build(folder), "Stages").tables
    assert stages.head[:3] == ["stage", "from step", "return/mean"]
    assert [row[:3] for row in stages.rows] == [["before", "0", "73.33 (3)"], ["hard", "2,000", "350 (2)"]]
    assert part(sections.build(write_run(tmp_path / "plain", UP)), "Stages") is None


def test_a_queue_of_starts_does_not_cut_the_stages_of_a_curriculum_short(tmp_path):
    folder = write_run(tmp_path / "run", UP)
    with Record.open(folder) as record:
        for step, plan, stage in ((0, "curriculum", "1:15"), (0, "tail", "1:seeds"), (2000, "tail", "2:mined")):
            record.append_event("stage", step, schedule=plan, stage=stage, type="ne" if plan == "tail" else None)
    stages = part(sections.build(folder), "Stages").tables
    assert [table.caption for table in stages] == ["curriculum", "tail"]
    assert [row[:3] for row in stages[0].rows] == [["1:15", "0", "184 (5)"]]
    assert [row[0] for row in stages[1].rows] == ["ne: 1:seeds", "ne: 2:mined"]


def test_two_speeds_with_their_names(tmp_path):
    lines = part(sections.build(write_run(tmp_path / "run", UP)), "Throughput").lines
    assert lines == [
        "end to end (evaluations, checkpoints and logging included): 500 steps/s (4,000 steps in 8.0s)",
        "in training (collect and update only): 800 steps/s",
    ]


@pytest.fixture
def berlin(monkeypatch):
    monkeypatch.setenv("TZ", "CET-1")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_times_are_local_with_their_zone(tmp_path):
    assert local_time("2026-11-16T02:31:46.817Z") == "2026-11-16 03:31:46 CET"
    assert [local_time(text) for text in ("", "soon", "2026-11-16T02:31:46")] == ["", "soon", "2026-11-16T02:31:46"]
    folder = write_run(tmp_path / "run", UP, meta={"created": "2026-11-16T23:31:46.817Z"})
    rows = dict(part(sections.build(folder), "Run info").tables[0].rows)
    assert rows["created"] == "2026-11-17 00:31:46 CET"
    assert all(row[2].endswith(" CET") for row in part(sections.build(folder), "Events").tables[0].rows)


# ---- Next steps


def commands(folder, **named):
    return [row[0] for row in part(sections.build(folder, Facts(**named)), "Next steps").tables[0].rows]


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ("finished", ["relab eval {} --checkpoint best --episodes 100", "relab video {} --episode worst"]),
        ("interrupted", ["relab resume {}", "relab eval {} --checkpoint best --episodes 100",
                         "relab video {} --episode worst"]),
        ("running", ["relab examine {} --watch"]),
    ],
)  # fmt: skip
def test_commands_fit_the_state(tmp_path, monkeypatch, status, expected):
    monkeypatch.chdir(tmp_path)
    folder = write_run(tmp_path / "runs" / "otter", UP, status=status, meta={"spec": {"renders": True}})
    (folder / "checkpoints" / "best").mkdir(parents=True)
    assert commands(folder)[:-1] == [text.format("otter") for text in expected]
    assert commands(folder)[-1] == "relab train ppo seed=1"


def test_nothing_is_proposed_that_cannot_run(tmp_path):
    folder = write_run(tmp_path / "run", UP, status="failed", meta={"command": "python my.py"})
    assert part(sections.build(folder), "Next steps").lines == ["no command fits the state of these runs"]
    findings = [Finding("m", slug="high-kl", severity="info", run="run")]
    assert commands(folder, findings=findings) == ["relab explain high-kl"]
    assert part(sections.build(folder, Facts(proposal="lower lr")), "Next steps").code == "lower lr"


def test_a_run_without_a_clock(tmp_path):
    folder = write_run(tmp_path / "run", UP)
    (folder / "timing.jsonl").unlink()
    data = sections.build(folder)
    assert math.isnan(clock.elapsed(grouping.load(folder)[0].runs[0].history))
    assert data.budget[0].done == "4k of 10k steps, time not recorded"
    assert part(data, "Throughput") is None


def test_health_begins_with_pass_or_fail():
    from relab.report.parts import PageHealth, PlacedFinding
    from relab.report.tables import passed

    warning, info = (PlacedFinding(Finding("m", slug="x", severity=level), "run") for level in ("warning", "info"))
    assert passed(PageHealth(True, [warning, info], [])) == "FAIL: 2 findings"
    twice = [NotChecked("a", run, "policy/kl") for run in ("x", "y")]
    assert passed(PageHealth(True, [], [], twice)) == "PASS: no finding (1 rule not checked)"
    remark = PageHealth(True, [info], [])
    assert passed(remark) == "PASS: 1 finding, none of them a warning or an error"
    assert passed(PageHealth(False, [], [])) == "not examined"


def test_time_of_probes_is_theirs():
    """Not that of starting and compiling."""
    names = ["time/elapsed_s", "time/update_s", "time/probes_s", "time/collect_s", "time/sps", "time/load"]
    assert course.parts_of_time(dict.fromkeys(names)) == ["collect", "update", "probes"]


def test_rates_are_no_time_and_parts_of_collecting_are_counted_once(tmp_path):
    """Updates per second added up to 19 days of a run of a minute."""
    folder = write_run(tmp_path / "run", UP)
    seconds = {"collect_s": 4.0, "env_s": 3.0, "act_s": 1.0, "update_s": 2.0}
    row = {f"time/{name}": value for name, value in seconds.items()}
    row |= {"time/elapsed_s": 10.0, "time/updates_per_s": 500.0, "time/learned_per_s": 1e5}
    (folder / "timing.jsonl").write_bytes(encode({"step": 4000, "axis": "agent_steps", **row}))
    throughput = part(sections.build(folder), "Throughput")
    assert [row[1:] for row in throughput.tables[0].rows] == [
        ["4.0s", "40%"], ["3.0s", "30%"], ["1.0s", "10%"], ["2.0s", "20%"], ["4.0s", "40%"],
    ]  # fmt: skip
    assert [row[0] for row in throughput.tables[0].rows][:4] == ["collect", "of it env", "of it act", "update"]
    assert "in training (collect and update only): 667 steps/s" in throughput.lines


def test_run_info_begins_with_the_key_settings(tmp_path):
    folder = write_run(tmp_path / "run", UP, config={"algo": {"name": "ppo", "lr": 0.001, "gamma": 0.9, "name2": 1}})
    rows = dict(part(sections.build(folder), "Run info").tables[0].rows)
    assert rows["key settings"] == "total_steps=10000, lr=0.001, gamma=0.9"
