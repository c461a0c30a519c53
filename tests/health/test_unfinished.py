"""Is a run that still goes on judged as one? Schedules may still fall, thirds that are not over have no level."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from test_rules_foreign import asked, made

from relab.base.places import address
from relab.health import engine
from relab.health.beside import healthy_range
from relab.health.engine import Finding, NotChecked
from relab.health.features import Key, features
from relab.health.outcome import judged
from relab.health.remedy import worse
from relab.health.rule import all_rules
from relab.health.view import View, ends
from relab.record import history
from relab.record.evaluations import evaluations
from relab.record.state import would_repeat
from where import histories

STEPS = 50_000  # planned
PARTS = (0.2, 0.35, 0.5, 0.65, 0.8, 0.95)  # of a healthy run, at which it is looked at
DQN = {"algo": {"name": "dqn"}, "total_steps": STEPS}


def exploring(share, done: float, state: str = "running") -> View:
    """A DQN whose epsilon is `share` of the way done, in rows of 1,000 steps."""
    rows = np.arange(1, int(STEPS / 1000 * done) + 1)
    returns = 20 + np.random.default_rng(0).normal(size=len(rows))
    columns = {"policy/exploration": (rows * 1000, share(rows * 1000 / STEPS)), "return/mean": (rows * 1000, returns)}
    return made(columns, dict(DQN), state=state)


def falling(x: np.ndarray) -> np.ndarray:
    """exploration_fraction 0.8: from 1 to 0.05."""
    return np.maximum(1 - 0.95 * x / 0.8, 0.05)


def stays(x: np.ndarray) -> np.ndarray:
    return np.full(len(x), 0.9)


@pytest.mark.parametrize("slug", ["exploration-never-ends", "outside-healthy-runs"])
@pytest.mark.parametrize("done", [0.2, 0.4, 0.6, 0.9])
def test_an_exploration_that_falls_on_schedule_is_left_alone(slug, done):
    assert not isinstance(asked(slug, exploring(falling, done)), Finding)
    assert asked(slug, exploring(falling, 1.0, "finished")) is None


def test_an_exploration_that_never_falls_is_told_from_half_of_the_way_on():
    slug = "exploration-never-ends"
    assert isinstance(asked(slug, exploring(stays, 0.4)), NotChecked)
    assert "so far" in asked(slug, exploring(stays, 0.6)).message
    assert "at the end" in asked(slug, exploring(stays, 1.0, "finished")).message


def test_a_log_that_was_cut_short_counts_as_unfinished():
    assert exploring(falling, 0.4, "interrupted").unfinished
    assert exploring(falling, 0.4, "ended").unfinished
    assert not exploring(falling, 0.95, "ended").unfinished, "the last rows of a foreign log may come before its end"
    assert not exploring(falling, 0.4, "finished").unfinished, "it stopped because it had what it wanted"


def test_thirds_are_those_of_the_planned_steps_and_only_whole_ones_have_a_level():
    view = exploring(falling, 0.5)
    numbers = features(view.history, view.until)
    levels = {key.feature for key in numbers if key.metric == "policy/exploration"}
    assert "first" in levels
    assert not {"middle", "last", "growth"} & levels
    whole = exploring(falling, 1.0, "finished")
    same = Key("policy/exploration", "first")
    assert numbers[same] == pytest.approx(features(whole.history)[same], abs=0.02)
    endless = exploring(falling, 0.5)
    del endless.history.config["total_steps"]
    known = features(endless.history, endless.until)
    assert not [key for key in known if key.feature in ("first", "middle", "last")], "nobody knows how long it will be"


def test_a_metric_has_one_band_in_each_third():
    """Both findings about exploration print the same numbers."""
    view = exploring(stays, 1.0, "finished")
    outside = asked("outside-healthy-runs", view)
    band = str(healthy_range(view, "policy/exploration"))
    assert band.startswith("last third of healthy DQN runs: ")
    assert outside.evidence[0].formula == f"high: {band}".replace("of healthy", "of all healthy")
    assert str(healthy_range(exploring(stays, 0.2), "policy/exploration")).startswith("first third")


def test_a_setting_is_no_warning_before_half_of_the_way():
    """It would be told as a remark once the run has learned."""
    assert judged(exploring(stays, 0.3)) == "info"
    assert judged(exploring(stays, 0.6)) == "warning"


# ---- Healthy runs, as they looked on their way


def cut(run: history.History, last: float) -> history.History:
    for name, (steps, values) in run.columns.items():
        run.columns[name] = history.Column(steps[steps <= last], values[steps <= last])
    run.columns = {name: column for name, column in run.columns.items() if len(column.steps)}
    run.evals = [row for row in run.evals if row["step"] <= last]
    run.events = [event for event in run.events if (event.get("step") or 0) <= last]
    return run


@pytest.mark.parametrize("name", sorted(path.name for path in (histories() / "healthy").iterdir()))
def test_no_healthy_run_is_warned_about_while_it_trains(name):
    folder = histories() / "healthy" / name
    whole = View(history.load(folder), name)
    planned, known = whole.planned or whole.last_step, list(all_rules(plugins=False).values())
    for part in PARTS:
        view = View(cut(history.load(folder), part * planned), name, state="running")
        findings, _ = engine.ask_run(known, view)
        loud = [f"{f.slug}: {f.message}" for f in findings if f.severity in ("warning", "error")]
        assert not loud, f"at {part:.0%} of its way"
        assert len(evaluations(view.history.evals, "det")) <= len(evaluations(whole.history.evals, "det"))


@pytest.mark.parametrize(("every", "planned", "told"), [(10_000, 50_000, False), (60_000, 50_000, True)])
def test_a_target_network_is_judged_by_the_copies_that_are_planned(every, planned, told):
    """At 8,000 steps it has not been copied yet; whether it ever will be, the plan says."""
    config = {"algo": {"name": "dqn"}, "total_steps": planned, "foreign": {"tau": 1.0, "target_update_interval": every}}
    view = made({"return/mean": np.full(9, 20.0)}, config, state="running")
    assert isinstance(asked("target-network-frozen", view), Finding) == told


def test_an_exploration_on_its_line_says_that_the_run_is_not_over():
    """A log without settings, as of a training that was stopped: nothing but the line tells how long it was to be."""
    view = exploring(falling, 0.19, "ended")
    del view.history.config["total_steps"]
    assert view.length == pytest.approx(STEPS * 0.8 / 0.95, rel=0.01)
    assert view.early()
    assert isinstance(asked("exploration-never-ends", view), NotChecked)
    whole = exploring(stays, 1.0, "ended")
    del whole.history.config["total_steps"]
    assert isinstance(asked("exploration-never-ends", whole), Finding)


def hardly(x: np.ndarray) -> np.ndarray:
    """From 1 to 0.9 over nine tenths of the run, where it stays."""
    return np.maximum(1 - 0.1 * x / 0.9, 0.9)


@pytest.mark.parametrize(("planned", "done", "state", "named"), [
    (True, 0.4, "running", False), (True, 0.6, "running", True), (True, 1.0, "ended", True),
    (False, 0.4, "ended", True), (False, 1.0, "ended", True), (False, 0.4, "running", False),
])  # fmt: skip
def test_a_run_that_is_nearly_all_random_in_every_row_is_told(planned, done, state, named):
    """Whether its rate still falls or not: half of its plan is over, or the log has ended."""
    view = exploring(hardly, done, state)
    if not planned:
        del view.history.config["total_steps"]
    answer = asked("exploration-never-ends", view)
    assert isinstance(answer, Finding) == named
    if named:
        stopped = not planned and done < 1
        assert answer.severity == ("info" if stopped else "warning"), "it may have been healthy when it was stopped"
        assert "actions are still random" in answer.message
        assert ("on a line that ends at step" in answer.message) == (done < 1)


def test_a_rate_that_stands_at_the_end_is_on_no_line():
    """A fall from 1 to 0.9 is within 0.02 of a line that goes on, and the log was taken for a tenth of a run."""
    view = exploring(hardly, 1.0, "ended")
    del view.history.config["total_steps"]
    assert view.length is None
    assert not view.unfinished


@pytest.mark.parametrize(("gamma", "length", "severity"), [
    (0.0, 22.0, "warning"), (0.3, 22.0, "warning"), (0.6, 60.0, "info"), (0.0, 1.0, None), (0.99, 22.0, None),
])  # fmt: skip
def test_a_discount_that_is_hardly_ever_meant_is_told_at_the_first_look(gamma, length, severity):
    """Where its episodes are long; a bandit's last one step. Others wait for half of the steps."""
    columns = {"return/mean": np.full(3, 20.0), "return/length": np.full(3, length)}
    config = {"algo": {"name": "ppo", "gamma": gamma}, "total_steps": STEPS}
    answer = asked("discount-out-of-range", made(columns, config, state="running"))
    assert (answer.severity if isinstance(answer, Finding) else None) == severity


# ---- Beside a run that has come to its end


def curve(means, every: int, state: str = "finished", name: str = "run") -> View:
    """A run of CartPole by its evaluations, of five episodes each."""
    random = {"return_mean": 22.0, "return_std": 11.0, "n": 1000}
    view = made({}, {"total_steps": 40_000}, {"spec": {"env": "CartPole-v1", "random": random}}, name=name, state=state)
    for number, mean in enumerate(means):
        episodes = [{"return": mean + each, "length": 10} for each in (-0.2, -0.1, 0, 0.1, 0.2)]
        view.history.evals.append({"step": number * every, "mode": "det", "episodes": episodes})
    steps = np.arange(len(means)) * every
    view.history.columns["eval/return_det"] = history.Column(steps, np.array(means, float))
    return view


def test_a_fall_is_told_with_its_peak_and_not_as_a_plateau_since_the_start():
    view = curve([9.3, 117, 100, 80, 80.1, 80, 80.1, 80], 5000)
    view.reference = curve([20, 100, 300, 500, 500, 500, 500, 500], 5000, name="good")
    finding = asked("plateau", view)
    assert finding.onset == 15_000
    assert "was 117 at step 5,000, fell back" in finding.message
    assert "since step 0" not in finding.message
    late = curve([20, 40, 60.1, 90, 85, 60, 60.1, 60, 60.1, 60], 5000)
    late.reference = curve([20, 100, 300, *[500] * 7], 5000, name="good")
    assert "was 90 at step 15,000, fell back, and makes no progress since step 25,000" in asked("plateau", late).message
    still = curve([60.1, 60, 60, 60.1, 60, 60.1, 60, 60], 5000)
    still.reference = view.reference
    assert asked("plateau", still).message.startswith("no progress since step 0: return 60")


def test_what_was_learned_and_lost_is_no_plateau():
    view = curve([36, 60, 80, 160, 300, 468, 200, 9.5, 9.4, 9.4, 9.4, 9.4], 5000)
    view.reference = curve([20, 100, 300, 500, 500, 500, 500, 500, 500, 500, 500, 500], 5000, name="good")
    assert isinstance(asked("peak-then-collapse", view), Finding)
    assert asked("plateau", view) is None


@pytest.mark.parametrize("state", ["running", "finished"])
def test_a_shorter_run_is_held_against_what_the_other_had_at_the_same_step(state):
    good = curve([20, 70, 120, 170, 220, 300, 400, 500, 500], 5000, name="good")
    young = curve([20, 70, 110, 150, 180, 180, 180, 180], 2500, state)
    young.reference = good
    assert [end.mean for end in ends(young, good)] == pytest.approx([180, 170])
    assert not worse(young, good)
    assert asked("plateau", young) is None
    as_long = curve([20, 70, 110, 150, 180, 180, 180, 180], 5000, state)
    as_long.reference = good
    assert worse(as_long, good)
    assert isinstance(asked("plateau", as_long), Finding)


def test_a_run_is_named_by_what_resume_finds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    addresses = {folder: address(Path(folder)) for folder in ("runs/t0", "own/t0", "/elsewhere/t 0")}
    assert addresses == {"runs/t0": "t0", "own/t0": "own/t0", "/elsewhere/t 0": "'/elsewhere/t 0'"}


def test_a_last_evaluation_that_is_no_number_is_an_error():
    steps, values = np.arange(1, 11) * 1000, np.array([20, 100, 300, 480, 490, 500, 500, 495, 500, np.nan])
    column = {"eval/return_det": history.Column(steps, values)}
    run = history.History(Path("run"), column, {"eval/return_det": "env_steps"}, source="csv")
    rule = all_rules(plugins=False)["non-finite"]
    message = rule.check(View(run, "run", state="ended")).message
    assert message == "eval/return_det is not finite from step 10,000 on (1 of 10 rows)"


def test_a_run_whose_settings_were_refused_is_not_to_be_resumed(tmp_path: Path) -> None:
    """Resumed, it is refused again: what mends it is another run with other settings."""
    run = history.History(tmp_path, meta={"status": "failed"})
    for message, repeats in (("ConfigError: no row has a reward", True), ("OSError: no space left", False)):
        run.events = [{"step": 1, "kind": "error", "message": message}]
        assert would_repeat(run) is repeats
