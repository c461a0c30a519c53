"""Does a sweep run what it must, once, survive kill -9, keep failures as data, and end in numbers that are right?

The program is a real one that takes hundredths of a second; where relab's own trainer runs, the test says so.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest
from programs import HEAD, PYTHON, body, calls, kill_after, relab, start, wait_for

from relab.config.base import ConfigError
from relab.formats.read import plans
from relab.lab import sweep
from relab.report import render, sections

PROGRAM = f"""{HEAD}
a, b = float(values[0]), values[1]
if b == "bad" and seed != "0":
    sys.exit("it diverged")
score = 10 * a + {{"x": 0, "y": 0, "bad": 50}}[b] + noise(a, b, seed)
told(score=score, success=min(1, score / 30))
"""
ASKED = """
question: Which a and b?
command: {python} program.py {{a}} {{b}} {{seed}} {{run}}
metric: score
smallest_effect: 3
axes:
  a: [1, 2, 3]
  b: [x, y]
seeds: 5
confirm: 5
"""


FAILING = {"[x, y]": "[x, bad]"}
SMALL = {"[1, 2, 3]": "[1, 3]", "seeds: 5": "seeds: 2", "confirm: 5": "confirm: 0"}  # four trials of two runs


def write(folder: Path, **changes: str) -> Path:
    """The program and the sweep; its path as seen from there."""
    (folder / "program.py").write_text(PROGRAM)
    text = ASKED.format(python=PYTHON)
    for old, new in changes.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "s.yaml").write_text(text)
    return Path("s.yaml")


@pytest.fixture
def ask(tmp_path, monkeypatch):
    """Write a sweep, and stand in its folder."""
    monkeypatch.chdir(tmp_path)
    return partial(write, tmp_path)


def finished(folder: Path, **changes: str) -> str:
    """A sweep that ran to its end; what it printed."""
    write(folder, **changes)
    command = [sys.executable, "-m", "relab.cli", "sweep", "s.yaml", "--yes", "--workers", "2"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> tuple[Path, str]:
    """The sweep of ASKED, run once for all tests that begin where it ended, and what it printed."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, finished(folder)


@pytest.fixture(scope="module")
def failing(tmp_path_factory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("failing")
    return folder, finished(folder, **FAILING)


@pytest.fixture
def after(ask, tmp_path):
    """Stand in a copy of a finished sweep."""

    def copy(original: tuple[Path, str]) -> str:
        shutil.copytree(original[0], tmp_path, dirs_exist_ok=True)
        return original[1]

    return copy


def test_a_grid_of_a_foreign_program_ends_in_a_winner(after, whole):
    out, analysis = after(whole), body()
    assert len(calls()) == len(set(calls())) == 3 * 2 * 5 + 5, "every cell once, and the winner on five fresh seeds"
    assert analysis["winner"]["point"]["a"] == 3
    assert [v["seed"] for v in analysis["winner"]["fresh"]["values"]] == [10_000, 10_001, 10_002, 10_003, 10_004]
    chosen, fresh = (analysis["winner"][key]["mean"] for key in ("selection", "fresh"))
    assert analysis["winner"]["bias"]["delta"] == pytest.approx(chosen - fresh)
    assert analysis["winner"]["bias"]["low"] < chosen - fresh < analysis["winner"]["bias"]["high"]
    a, b = analysis["effects"]
    assert (a["axis"], a["verdict"], b["verdict"]) == ("a", "moves", "inert")
    assert a["widest"]["delta"] == pytest.approx(20, abs=2)
    assert b["most"] < 3
    assert analysis["interactions"][0]["verdict"] != "moves"
    rows = {r["trial"].rpartition("_")[0]: r["verdict"] for r in analysis["differ"]["against_best"]}
    assert rows["a1_bx"] == rows["a1_by"] == rows["a2_bx"] == rows["a2_by"] == "worse"
    assert sorted(rows.values()).count("cannot tell") == 1, "x and y at a = 3 are the same"
    assert "forecast: 34 runs of about" in out, "the first run was made for the forecast, and counts"
    assert "b: inert: moves score by at most" in out
    assert "4 of 5 others are clearly worse, 1 cannot be told from it" in out


@pytest.mark.slow
def test_run_ids_say_what_was_swept_and_every_call_finds_them_again(after, whole, ask):
    after(whole)
    names = sorted(path.name for path in Path("sweeps/s/runs").iterdir())
    assert any(name.startswith("a1_bx_s0_") for name in names)
    before = calls()
    relab(str(ask()), "--yes")
    assert calls() == before, "a second call runs nothing"
    relab(str(ask(**{"[1, 2, 3]": "[1, 2, 2.5, 3]"})), "--yes")
    new = calls()[len(before) :]
    assert len(new) == 2 * 5 + 5 * (body()["winner"]["point"]["a"] == 2.5)
    assert all(name.startswith("a2p5_") for name in new), "a new value runs its own cells only"
    relab(str(ask(**{"[1, 2, 3]": "[1, 2, 2.5, 3]", "seeds: 5": "seeds: 6"})), "--yes")
    assert sum("_s5_" in name for name in calls()) == 8, "a new seed is one run more of each"
    assert len(calls()) == len(set(calls()))


def test_another_question_needs_another_name(after, whole, ask):
    after(whole)
    for changes in ({"smallest_effect: 3": "smallest_effect: 4"}, {"[x, y]": "[x]"}, {"seeds: 5": "seeds: 4"},
                    {"confirm: 5": "confirm: 1"}, {"  b: [x, y]": "  b: {values: [x, y], otherwise: x}"}):  # fmt: skip
        relab(str(ask(**changes)), "--yes", code=64)
        relab(str(ask(**changes)), "--dry-run", code=64)


def test_an_experiments_folder_is_left_alone(ask, capsys):
    Path("sweeps/s/variants").mkdir(parents=True)
    Path("sweeps/s/variants/a.yaml").touch()
    Path("sweeps/s/experiment.yaml").touch()
    relab(str(ask()), "--yes", code=64)
    assert "belongs to an experiment" in capsys.readouterr().err
    assert Path("sweeps/s/variants/a.yaml").exists()


def test_a_dry_run_lists_the_cells_and_touches_nothing(ask, capsys):
    relab(str(ask()), "--dry-run")
    out = capsys.readouterr().out
    assert "30 cells, 0 there; 35 runs to do, 5 fresh seeds for the winner included" in out
    assert "  a1_bx_s0_" in out
    assert not Path("sweeps").exists()
    assert not calls()


def test_nobody_is_asked_where_nobody_is(ask, capsys):
    relab(str(ask()), code=64)
    assert "add --yes" in capsys.readouterr().err
    assert not calls()


def test_failed_cells_are_data(after, failing, ask):
    out, analysis = after(failing), body()
    assert len(analysis["failed"]) == 3 * 4
    assert all("it diverged" in why for why in analysis["failed"].values())
    assert analysis["winner"]["point"]["b"] == "x", "the one seed of `bad` that did not fail is the best of all"
    assert {row["n"] for row in analysis["incomplete"]} == {1}
    assert "3 trials have runs that failed" in out
    before = len(calls())
    relab(str(ask(**FAILING)), "--yes")
    assert len(calls()) == before, "a failed cell is not paid for twice"
    relab(str(ask(**FAILING)), "--yes", "--retry-failed")
    assert len(calls()) == before + 12


def test_no_interval_goes_beyond_a_rate_of_one(ask):
    relab(str(ask(**{"metric: score": "metric: success", "smallest_effect: 3": "smallest_effect: 0.1",
                     "[1, 2, 3]": "[2, 3]", "[x, y]": "[x]", "confirm: 5": "confirm: 0"})), "--yes")  # fmt: skip
    below, at = body()["trials"]
    assert below["low"] < below["mean"] < below["high"] < 0.9
    assert at["low"] < at["mean"] < at["high"] == 1.0
    assert [level["high"] <= 1 for level in body()["effects"][0]["levels"]] == [True, True]


def test_a_sweep_in_which_everything_fails_says_so(ask, capsys):
    relab(str(ask(**{"program.py": "nothing.py"})), "--yes", code=64)
    assert "failed: exit code 2" in capsys.readouterr().err


def test_kill_minus_nine_and_it_goes_on(ask, whole):
    """Twice, with real processes: once between the first runs, once in the middle; the ends are as if never killed."""
    ask()
    Path("slow").write_text("0.2")
    for done in (3, 10):
        kill_after(done)
    Path("slow").unlink()
    time.sleep(0.5)  # what the killed one had started comes to its end
    relab("s.yaml", "--yes")
    never = json.loads((whole[0] / "sweeps/s/sweep.json").read_text())
    assert {t["n"] for t in body()["trials"]} == {5}
    again = [name for name in set(calls()) if calls().count(name) > 1]
    assert again == [], "what was running when it was killed came to its end by itself, and counts"
    assert [t["mean"] for t in body()["trials"]] == [t["mean"] for t in never["trials"]]
    assert body()["winner"] == never["winner"]


def test_a_signal_leaves_the_rest_for_the_next_call(ask):
    ask(**SMALL)
    Path("slow").write_text("0.2")
    process = start()
    wait_for(lambda: len(calls()) >= 3)
    process.send_signal(signal.SIGTERM)
    assert process.wait(60) == 130
    assert len(calls()) < 8
    Path("slow").unlink()
    relab("s.yaml", "--yes")
    assert {t["n"] for t in body()["trials"]} == {2}


@pytest.mark.slow
def test_a_race_drops_what_cannot_catch_up_and_shows_why(ask, capsys):
    changes = {"seeds: 5": "seeds: 7\nracing: {least: 5, looks: 1}", "[1, 2, 3]": "[1, 3]", "confirm: 5": "confirm: 0"}
    relab(str(ask(**changes)), "--yes")
    out, analysis = capsys.readouterr().out, body()
    dropped = [t for t in analysis["trials"] if t["dropped"]]
    assert {t["point"]["a"] for t in dropped} == {1}
    assert all(t["dropped"]["high"] < -3 for t in dropped), "even at its best it stays behind by what matters"
    assert {t["n"] for t in dropped} == {5}
    assert {t["n"] for t in analysis["trials"] if not t["dropped"]} == {7}
    assert len(calls()) == 4 * 5 + 2 * 2
    assert "after 5 seeds 2 of 4 trials are dropped" in out
    assert "dropped after 5 seeds: -" in out
    assert "2 trials were dropped in the race, after 5 seeds" in out, "it said after 5 to 5 seeds"
    assert analysis["incomplete"] == [], "a dropped trial is not an incomplete one"
    before = len(calls())
    relab("s.yaml", "--yes")
    assert len(calls()) == before, "what was dropped stays dropped"


def test_constraints_and_conditional_placeholders(ask):
    axes = "  a: [1, 2, 3]\n  b: {values: [x, y], when: {a: [1, 2]}, otherwise: x}\n"
    axes += "constraints: ['a < 3 or b != \"y\"', a * 2 != 4]"
    few = {"seeds: 5": "seeds: 1", "confirm: 5": "confirm: 0"}
    relab(str(ask(**{"  a: [1, 2, 3]\n  b: [x, y]": axes, **few})), "--yes")
    assert [t["point"] for t in body()["trials"]] == [{"a": 1, "b": "x"}, {"a": 1, "b": "y"}, {"a": 3}]
    with pytest.raises(ConfigError, match="give `otherwise`"):
        sweep.load(ask(**{"  b: [x, y]": "  b: {values: [x, y], when: {a: [1]}}"}))


@pytest.mark.slow
def test_sobol_over_a_foreign_program(ask):
    changes = {
        "  a: [1, 2, 3]": "  a: {low: 0, high: 4}",
        "seeds: 5": "seeds: 2\nmethod: sobol\ntrials: 4",
        "confirm: 5": "confirm: 1",
    }
    relab(str(ask(**changes)), "--yes")
    analysis = body()
    assert len(analysis["trials"]) == 4
    assert analysis["winner"]["point"]["a"] == max(t["point"]["a"] for t in analysis["trials"])
    assert any("2 seeds a trial: no trial can be told from another under 5" in note for note in analysis["notes"])
    few = {t["trial"] for t in analysis["trials"]}
    relab(str(ask(**{**changes, "seeds: 5": "seeds: 2\nmethod: sobol\ntrials: 6"})), "--yes")
    assert few < {t["trial"] for t in body()["trials"]}
    assert len(calls()) == len(set(calls()))


def test_the_page_and_the_plan_of_a_sweep(after, failing):
    after(failing)
    page = Path("sweeps/s/report.html").read_text()
    assert page.count("<svg") >= 2
    assert "a: moves" in page
    assert "it diverged" in page
    data = sections.build(Path("sweeps/s"))
    assert data.sentence.startswith("Which a and b? Best of 6 trials: a=3, b=x")
    assert data.commands == ["relab sweep sweeps/s/sweep.yaml --name s"]
    assert "## Sweep" in render.markdown(data)
    best = next(card for card in data.outcome if card.label.endswith("fresh seeds"))
    assert best.seeds == 5, "the winner's card leaves out the seeds that chose it"
    assert all(int(each.seed) >= 10_000 for each in best.each)
    plan = plans.of(next(Path("sweeps/s/runs").iterdir()))
    assert plan is not None
    assert plan.cells == 30


def test_a_broken_ledger_is_said_and_can_be_deleted(after, whole, capsys):
    after(whole)
    before = calls()
    Path("sweeps/s/trials.json").write_text('{"points": 3}')
    relab("s.yaml", "--yes", code=2)
    assert "no ledger: `points` is 3; delete it" in capsys.readouterr().err
    Path("sweeps/s/trials.json").unlink()
    relab("s.yaml", "--yes")
    assert calls() == before, "the runs' own folders rule"


def test_json_is_the_result(after, whole, ask, capsys):
    after(whole)
    relab(str(ask()), "--json")
    printed = json.loads(capsys.readouterr().out)
    assert printed["winner"]["point"]["a"] == 3
    assert printed["sweep"] == "sweeps/s"
    assert [Path(page).name for page in printed["report"]] == ["report.md", "report.html"]
    relab(str(ask()), "--dry-run", "--json")
    assert json.loads(capsys.readouterr().out) == {"cells": 30, "missing": [], "runs": 0, "confirm": 5}


# ---- relab's own trainer

OWN = """
question: Which step size and bonus?
at: final
smallest_effect: 5
base:
  env: ladder-both
  total_steps: 512
  algo: {envs: 8, steps: 16, epochs: 1, minibatches: 2}
  eval: {every: 256, episodes: 3}
axes:
  lr: [1e-3, 1e-6]
  ent_coef: [0.0, 0.01]
seeds: 1
confirm: 1
"""


@pytest.mark.slow  # make test has a grid of the own trainer among the tests of the torus study
def test_a_grid_of_the_own_trainer(tmp_path, monkeypatch, capsys):
    """Two runs and the pilot: each is a process that imports torch. What a grid does beyond is tested above."""
    monkeypatch.chdir(tmp_path)
    Path("own.yaml").write_text(OWN.replace("[0.0, 0.01]", "[0.0]").replace("confirm: 1", "confirm: 0"))
    relab("own.yaml", "--yes", "--workers", "2")
    out = capsys.readouterr().out
    analysis = json.loads(Path("sweeps/own/sweep.json").read_text())
    assert [t["n"] for t in analysis["trials"]] == [1, 1]
    assert [e["axis"] for e in analysis["effects"]] == ["lr"]
    assert "forecast: 2 runs of about" in out
    name = next(v["run"] for v in analysis["trials"][0]["values"])
    assert name.startswith("lr0p001_ec0_s0_")
    assert "algo" in (Path("sweeps/own/runs") / name / "config.yaml").read_text()
    written = {p: p.stat().st_mtime_ns for p in Path("sweeps/own/runs").glob("*/metrics.jsonl")}
    relab("own.yaml", "--yes")
    assert {p: p.stat().st_mtime_ns for p in Path("sweeps/own/runs").glob("*/metrics.jsonl")} == written
    assert "all runs are finished" in capsys.readouterr().out


@pytest.mark.slow  # a pilot; the forecast itself has tests
def test_an_absurd_grid_is_told_in_days(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    values = "[" + ", ".join(f"{k / 1000:g}" for k in range(1, 21)) + "]"
    text = OWN.replace("[1e-3, 1e-6]", values).replace("total_steps: 512", "total_steps: 10_000_000_000")
    Path("own.yaml").write_text(text)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    relab("own.yaml", "--workers", "2")
    out = capsys.readouterr().out
    assert "41 runs of about" in out
    assert " days" in out
    assert not Path("sweeps").exists(), "what somebody said no to leaves nothing behind"
    Path("own.yaml").write_text(OWN.replace("[1e-3, 1e-6]", "[1e-3, 1e-5]"))
    sweeping = sweep.prepare(sweep.load(Path("own.yaml")), Path("sweeps/own"))
    assert len(sweeping.ledger.points) == 4, "whoever declined may ask for less"
    assert len(list(Path("sweeps/own/variants").iterdir())) == 4


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("axes:", "axis:", "nearest known one is `axes`"),
        ("seeds: 1", "seeds: 2\nmethod: gird", "`method` must be one of grid"),
        ("seeds: 1", "seeds: 2\nmethod: random", "needs `trials`"),
        ("seeds: 1", "seeds: 2\ntrials: 3", "a grid has as many points as it has"),
        ("seeds: 1", "seeds: 5\nracing: true", "more `seeds` than `least`"),
        ("seeds: 1", "seeds: 9\nracing: {least: 3}", "at least 5, below which no interval"),
        ("seeds: 1", "seeds: 9\nracing: {last: 3}", "`racing` takes `least` and `looks`"),
        ("seeds: 1", "seeds: 9\nracing: true\nmethod: optuna\ntrials: 3", "`racing` goes with"),
        ("seeds: 1", "seeds: [1, 10001]", "kept for the confirmation"),
        ("seeds: 1", "seeds: 2\nconstraints: ['lr > epochs2']", "neither an axis nor in `base`"),
        ("seeds: 1", "seeds: 2\nnames: {clip: c}", "which is no axis"),
        ("  env: ladder-both", "  env: ladder-both\n  lr: 0.1", "is an axis and in `base`"),
        ("  lr: [1e-3, 1e-6]\n  ent_coef: [0.0, 0.01]", "  lr: [1e-3]", "two points or more"),
        ("  ent_coef: [0.0, 0.01]", "  ent_coef: {values: [0.0], when: {clip: [1]}}", "must be an axis before it"),
        ("  ent_coef: [0.0, 0.01]", "  ent_coef: {values: [0.0], when: {lr: [1]}}", "`lr` is never 1"),
        ("seeds: 1", "seeds: 2\nresume: true", "`resume` goes with `command`"),
    ],
)  # fmt: skip
def test_a_sweep_that_cannot_be(old, new, says, tmp_path):
    assert old in OWN
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace(old, new))
    with pytest.raises(ConfigError, match=says):
        sweep.load(path)


def test_an_unknown_setting_is_an_error_before_anything_is_written(tmp_path):
    path = tmp_path / "own.yaml"
    path.write_text(OWN.replace("  lr:", "  learning_rat:"))
    with pytest.raises(ConfigError, match="unknown key `learning_rat`"):
        sweep.prepare(sweep.load(path), tmp_path / "x")
    assert not (tmp_path / "x").exists()
