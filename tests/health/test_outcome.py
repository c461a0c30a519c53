"""Is the outcome judged first, from any return series? Logs with training returns alone, with and without a name."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import numpy as np
import pytest

from relab import cli
from relab.base import writers
from relab.health import engine, render
from relab.health.examine import Report, examine, load_view
from relab.health.render import text
from relab.health.rule import all_rules
from relab.health.view import View
from relab.record import state
from relab.record.history import Column, History
from where import histories


def sb3(folder: Path, returns: np.ndarray, lengths: np.ndarray | None = None, age_s: float = 3600.0) -> Path:
    """progress.csv as Stable-Baselines3 writes it, without a word about environment or settings."""
    folder.mkdir(parents=True)
    lengths = returns if lengths is None else lengths
    rows = [f"{2048 * (i + 1)},{r:.6g},{n:.6g},0.1" for i, (r, n) in enumerate(zip(returns, lengths))]
    head = "time/total_timesteps,rollout/ep_rew_mean,rollout/ep_len_mean,train/value_loss"
    (folder / "progress.csv").write_text("\n".join([head, *rows]) + "\n")
    then = time.time() - age_s
    os.utime(folder / "progress.csv", (then, then))
    return folder


def warnings(report: Report) -> dict[str, str]:
    return {f.slug: f.message for f in report.main if f.severity == "warning"}


def still(level: float, rows: int = 98, noise: float = 0.08) -> np.ndarray:
    return level + noise * np.random.default_rng(0).normal(size=rows)


def test_cartpole_at_nine_for_the_whole_run_is_a_warning(tmp_path):
    """The environment stands in the path alone; the onset is the first row, not the end of the first block."""
    report = examine(sb3(tmp_path / "ppo_CartPole-v1_1", still(9.3)))
    assert warnings(report) == {"worse-than-random": "return 9.324 is below the random policy's 22.2"}
    assert report.main[0].onset == 2048


def test_the_rules_say_what_the_verdict_says(tmp_path):
    """A run that lost what it had learned is not said to have learned nothing, and the onset is where it fell."""
    returns = np.r_[np.linspace(22, 300, 40), np.full(60, 21.0)] + still(0.0, 100, 0.5)
    report = examine(sb3(tmp_path / "ppo_CartPole-v1_1", returns))
    (view,) = [run.view for run in report.runs]
    found = {f.slug: f for f in report.main}
    assert view.verdict.kind == "lost"
    assert "has-not-learned" not in found
    assert found["peak-then-collapse"].onset == 2048 * 41
    assert f"rose to {view.verdict.best.mean:.4g} (best tenth of training" in found["peak-then-collapse"].message


def test_at_the_random_level_it_has_not_learned(tmp_path):
    report = examine(sb3(tmp_path / "ppo_CartPole-v1_1", still(22.5, noise=1.0)))
    assert list(warnings(report)) == ["has-not-learned"]
    assert "a random policy earns 22.2" in warnings(report)["has-not-learned"]


def test_where_nobody_knows_the_environment_it_is_held_against_its_own_start_and_says_so(tmp_path):
    report = examine(sb3(tmp_path / "mine", still(9.3)))
    assert "what a random policy earns here is not known" in warnings(report)["has-not-learned"]


@pytest.mark.parametrize("name", ["ppo_CartPole-v1_1", "mine"])
def test_a_run_that_learns_is_no_warning(tmp_path, name):
    climb = np.r_[np.linspace(22, 470, 50), still(480.0, 48, 4.0)]
    assert warnings(examine(sb3(tmp_path / name, climb))) == {}


def test_a_run_that_has_only_begun_is_not_judged(tmp_path):
    """Two rows of 2048 steps: others published a result after 50,000."""
    report = examine(sb3(tmp_path / "ppo_CartPole-v1_1", still(22.0, 2, 0.5)))
    assert warnings(report) == {}


def test_the_onset_is_the_first_value_below_random(tmp_path):
    """Step 0 above it, the second value already below: that is where it began, whatever its error."""
    shutil.copytree(histories() / "faulty" / "diverged", tmp_path / "run")
    rows = [json.loads(line) for line in (tmp_path / "run" / "evals.jsonl").read_text().splitlines()]
    for row in rows:
        second = row["step"] == sorted({r["step"] for r in rows})[1]
        for k, episode in enumerate(row["episodes"]):
            level = 30.0 if row["step"] == 0 else 18.5 if second else 9.5
            episode["return"] = level + (12.0 if second else 0.5) * (-1) ** k
    (tmp_path / "run" / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (finding,) = [f for f in examine(tmp_path / "run").findings if f.slug == "worse-than-random"]
    assert finding.onset == sorted({row["step"] for row in rows})[1]


@pytest.mark.parametrize(
    ("algo", "kind", "advice"),
    [
        ("dqn", "discrete", "relab train dqn env=ladder-policy, "),
        ("climber:Config", "discrete", "relab train algo=climber:Config env=ladder-policy, "),
        ("sac", "continuous", "look for a turned sign"),
    ],
)
def test_the_way_to_the_cause_is_that_of_the_runs_own_algorithm(tmp_path, algo, kind, advice):
    shutil.copytree(histories() / "faulty" / "worse-than-random", tmp_path / "run")
    meta = tmp_path / "run" / "meta.json"
    meta.write_text(meta.read_text().replace('"kind": "continuous"', f'"kind": "{kind}"'))
    config = tmp_path / "run" / "config.yaml"
    config.write_text(config.read_text().replace("name: ppo", f"name: {algo}"))
    view = load_view(tmp_path / "run", "run")
    found = engine._call(all_rules()["worse-than-random"], view, "x")
    assert [text.startswith(advice) for text in found.suggest] == [True]


# ---- Runs that failed


@pytest.mark.parametrize(
    ("event", "repeats"),
    [
        ({"message": "every reward must be a finite number", "repeats": True}, True),
        ({"message": "parameters are not finite after step 3"}, True),  # as older runs say it
        ({"message": "DiskFullError: the disk is full"}, False),
    ],
)
def test_a_run_that_diverged_is_not_to_be_resumed(tmp_path, event, repeats):
    shutil.copytree(histories() / "faulty" / "run-incomplete", tmp_path / "run")
    meta = tmp_path / "run" / "meta.json"
    meta.write_text(json.dumps(json.loads(meta.read_text()) | {"status": "failed"}))
    with open(tmp_path / "run" / "events.jsonl", "a") as file:
        file.write(json.dumps({"step": 3, "axis": "agent_steps", "kind": "error", **event}) + "\n")
    (found,) = [f for f in examine(tmp_path / "run").findings if f.slug == "run-incomplete"]
    assert ("relab resume " in str(found.suggest)) != repeats
    assert ("start another run" in str(found.suggest)) == repeats


# ---- Files that were copied a moment ago


def test_a_copied_folder_is_not_running(tmp_path):
    folder = sb3(tmp_path / "copy", still(9.3), age_s=60)
    (folder / "0.monitor.csv").write_text('#{"t_start": 1.0, "env_id": "CartPole-v1"}\nr,l,t\n9.0,9,1.0\n')
    fresh = [folder / "progress.csv", folder / "0.monitor.csv"]
    for file in fresh:
        os.utime(file)
    assert state.growing(fresh) == 0.0, "written at once: a copy"
    assert all(run.view.state == "ended" for run in examine(folder).runs)


def test_a_log_that_grows_beside_an_older_file_is_running(tmp_path):
    folder = sb3(tmp_path / "live", still(9.3), age_s=0.0)
    (folder / "notes.txt").write_text("begun an hour ago")
    os.utime(folder / "notes.txt", (time.time() - 3600,) * 2)
    writers.forget()
    with open(folder / "progress.csv", "a"):  # as its program keeps it
        assert examine(folder).runs[0].view.state == "running"


# ---- Several paths


def test_several_paths_are_examined_together(tmp_path, capsys):
    paths = [sb3(tmp_path / name, still(level)) for name, level in (("a_CartPole-v1", 9.3), ("b_CartPole-v1", 9.4))]
    assert cli.main(["examine", *map(str, paths)]) == 0
    out = capsys.readouterr().out
    assert "2 runs (2 ended)" in out
    assert all(path.name in out for path in paths)


def test_the_number_of_rules_is_the_same_everywhere(tmp_path):
    from relab.health.rule import all_rules

    known = len(all_rules(plugins=False))
    assert f"of {known} rules apply" in text(examine(sb3(tmp_path / "mine", still(9.3))))
    page = (Path(__file__).parents[2] / "docs" / "health.md").read_text()
    assert f"{known} rules" in page


def test_what_adding_floats_leaves_is_no_noise():
    """Rows that are all alike have an error of 1e-15 or so, which says nothing."""
    history = History(Path("run"), source="sb3")
    values = np.full(40, 107.4)
    values[1::3] += 2e-14
    history.columns["return/mean"] = Column(1000 * np.arange(1, 41, dtype=np.int64), values)
    history.axes["return/mean"] = "env_steps"
    view = View(history, "run")
    assert 0 < view.standing().se < 1e-12
    assert render.outcome(view).startswith("107.4 in training")
