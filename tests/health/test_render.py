"""Is a report told so that each line can be read alone: numbers, plurals, what was not checked, nothing cut by -v?"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from relab.formats.read.unread import Unread
from relab.health.examine import Remark, Report, examine
from relab.health.render import WIDTH, lead, text
from relab.health.rule import Finding
from where import fixtures, histories


def csv(folder: Path, name: str, header: str, *rows: str) -> None:
    (folder / name).write_text("\n".join([header, *rows]) + "\n")


def test_what_could_not_be_read_is_no_rule_that_was_not_checked():
    report = Report("x", unreadable=[Unread("bad", "ValueError: no")], not_read=[Unread("a.csv", "empty")],
                    remarks=[Remark("run", "line 3: no number")])  # fmt: skip
    told = " ".join(text(report).split())
    assert "unreadable: bad (ValueError: no); not read: a.csv (empty); read with a remark: run (line 3: no nu" in told
    assert "  unreadable (bad): ValueError: no" in text(report, verbose=True)
    found = report.to_json()
    assert [found[key] for key in ("unreadable", "not_read", "remarks", "not_checked")] == [
        [{"where": "bad", "why": "ValueError: no"}],
        [{"where": "a.csv", "why": "empty"}],
        [{"run": "run", "text": "line 3: no number"}],
        [],
    ]


def test_what_was_not_checked_is_said_once_for_all_runs(tmp_path):
    for name in ("a", "b", "c"):
        shutil.copytree(histories() / "healthy" / "cartpole", tmp_path / name)
    lines = [line for line in text(examine(tmp_path), verbose=True).splitlines() if "not checked" in line]
    slugs = [line.split()[2] for line in lines]
    assert slugs
    assert len(slugs) == len(set(slugs))
    assert any("(all 3 runs): " in line for line in lines)


def test_verbose_cuts_no_line():
    report = examine(fixtures() / "optuna")
    assert any(line.endswith("...") and len(line) == WIDTH for line in text(report).splitlines())
    shown = text(report, verbose=True).splitlines()
    assert not [line for line in shown if line.endswith("...")]


def test_one_more_is_no_plural(tmp_path):
    for name in ("a", "b"):
        shutil.copytree(histories() / "faulty" / "diverged", tmp_path / name)
    assert re.search(r"in [ab] \(and 1 more run\)", text(examine(tmp_path)))


def test_a_verbose_report_does_not_count_what_it_lists(tmp_path):
    for name in ("a", "b"):
        shutil.copytree(histories() / "faulty" / "diverged", tmp_path / name)
    assert "1 more run" not in text(examine(tmp_path), verbose=True)


def test_a_short_log_has_a_return(tmp_path):
    csv(tmp_path, "short.csv", "global_step,episodic_return", "10,1716.4", "20,1800.0", "30,12345.6")
    assert "12,346 in the last of 3 rows in training" in text(examine(tmp_path))


def test_evaluations_without_their_episodes_are_not_called_training(tmp_path):
    csv(tmp_path, "evals.csv", "global_step,eval_return", *(f"{i}00,{i}.5" for i in range(1, 9)))
    (line,) = [line for line in text(examine(tmp_path)).splitlines() if "csv log" in line]
    assert "in training" not in line


def test_values_without_numbers_leave_no_gap():
    shown = text(examine(fixtures() / "loop"))
    assert "algo.ent_coef: 0.01 -> 0.1" in shown
    assert "None" not in shown


def test_settings_that_tell_groups_apart_are_short():
    shown = text(examine(fixtures() / "optuna"))
    assert re.search(r"lr 0\.\d{4,10}[,\s]", shown)
    assert not re.search(r"lr 0\.\d{11}", shown)


def test_trials_without_seeds_and_returns_are_counted():
    assert "2 runs: no return logged" in text(examine(fixtures() / "optuna"))


def test_a_loud_symptom_comes_before_a_quiet_finding_and_after_its_cause():
    cause = Finding("x", slug="cause", run="r", severity="info")
    symptom = Finding("x", slug="symptom", run="r", severity="warning", explained_by="cause")
    quiet = [Finding("x", slug=f"quiet-{k}", run="r", severity="info") for k in range(3)]
    assert [f.slug for f in lead([*quiet, cause, symptom])] == ["quiet-0", "cause", "symptom"]
