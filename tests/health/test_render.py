"""Is a report told so that each line can be read alone: numbers, plurals, what was not checked, nothing cut by -v?"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

from relab.formats.read.unread import Unread
from relab.health.chain import lead
from relab.health.examine import Remark, Report, examine
from relab.health.render import text
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


def test_no_line_is_cut_in_a_pipe():
    report = examine(fixtures() / "optuna")
    for verbose in (False, True):
        assert not [line for line in text(report, verbose=verbose).splitlines() if line.endswith("...")]


def test_a_terminal_wraps_and_cuts_nothing(monkeypatch):
    """Every word of the long lines is there at 60 columns, and no line is wider."""
    report = examine(histories() / "faulty" / "critic-not-learning")
    whole = text(report)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    narrow = text(report)
    assert max(map(len, narrow.splitlines()[1:])) <= 60 < max(map(len, whole.splitlines()))
    assert set(whole.split()) <= set(narrow.split()) | {"limits:"}


def test_what_to_log_is_said_of_other_programs_alone(tmp_path):
    """What relab's trainers log is not the user's to choose."""
    assert "to run more, log" not in text(examine(histories() / "healthy"))
    (tmp_path / "progress.csv").write_text("step,rollout/ep_rew_mean\n" + "".join(f"{i},{i}\n" for i in range(40)))
    assert "to run more, log" in text(examine(tmp_path / "progress.csv"))


def test_many_runs_are_a_line_each_the_worst_first(tmp_path):
    """Twelve runs, six of them sick: all six are named, then the sound ones are counted."""
    sick = "diverged critic-not-learning frozen-parameters policy-not-moving worse-than-random entropy-collapse"
    for k, slug in enumerate(sick.split()):
        shutil.copytree(histories() / "faulty" / slug, tmp_path / f"m{k}-{slug}")
        config = tmp_path / f"m{k}-{slug}" / "config.yaml"
        config.write_text(config.read_text() + f"foreign:\n  k: {k}\n")
    for k in range(6):
        shutil.copytree(histories() / "healthy" / "cartpole", tmp_path / f"a{k}")
        (tmp_path / f"a{k}" / "config.yaml").write_text(f"algo:\n  name: ppo\n  lr: 0.00{k + 1}\nseed: {k}\n")
        meta = json.loads((tmp_path / f"a{k}" / "meta.json").read_text()) | {"config_hash": f"{k:012d}", "id": f"{k}"}
        (tmp_path / f"a{k}" / "meta.json").write_text(json.dumps(meta))
    lines = text(examine(tmp_path)).splitlines()
    assert all(
        line.startswith("  m") and ": warning" not in line.split(" - ")[0] and " - " in line for line in lines[1:7]
    )
    assert lines[7].startswith("  and 6 more groups")


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


def test_trials_without_seeds_and_returns_are_counted():
    assert "2 runs: no return logged" in text(examine(fixtures() / "optuna"))


def test_a_loud_symptom_comes_before_a_quiet_finding_and_after_its_cause():
    cause = Finding("x", slug="cause", run="r", severity="info")
    symptom = Finding("x", slug="symptom", run="r", severity="warning", explained_by="cause")
    quiet = [Finding("x", slug=f"quiet-{k}", run="r", severity="info") for k in range(3)]
    assert [f.slug for f in lead([*quiet, cause, symptom])] == ["quiet-0", "cause", "symptom"]
