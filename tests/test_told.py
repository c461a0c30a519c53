"""Does a run say what a stranger must know: no return, no interval, no time that was not measured, no numbers?"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from relab import cli
from relab.base import interrupts
from relab.base.jsonl import read_jsonl
from relab.record.run_folder import read_meta
from relab.train import rollout, screen, session
from small_runs import Interrupt, run


class Notes(screen.Silent):
    """Keeps what a screen would show."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.ends: list[Any] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def end(self, facts: Any) -> None:
        self.ends.append(facts)


def warnings(folder: Path) -> list[str]:
    rows, _ = read_jsonl(folder / "events.jsonl")
    return [row["message"] for row in rows if row["kind"] == "warning"]


# ---- Episodes that never end


def test_episodes_that_never_end_are_told_once_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollout, "STEP_CAP", 50)
    shown = Notes()
    outcome = run(tmp_path / "run", shown, env="pendulum", env__horizon="0", total_steps="512", eval__every="128")
    assert outcome.status == "finished", "it is told, and ends nothing"
    (warning,) = warnings(tmp_path / "run")
    assert "pendulum-v1 has no time limit" in warning
    assert "env.horizon=1000" in warning
    assert [note for note in shown.notes if "warning" in note] == [f"  warning: {warning}"]
    assert shown.ends[0]["next"] == [f"relab eval {tmp_path / 'run'} --checkpoint latest --episodes 100"]


def test_an_evaluation_that_is_cut_off_is_told_where_the_random_policy_had_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollout, "STEP_CAP", 5)
    run(tmp_path / "run", env="cartpole", env__horizon="0", total_steps="128")
    (warning,) = warnings(tmp_path / "run")
    assert warning.startswith("8 of 8 episodes of the evaluation at step 0 were not over after 5 steps")


@pytest.mark.parametrize("horizon", ["200", "6_000", pytest.param("30_000", marks=pytest.mark.slow)])
def test_a_run_whose_episodes_end_is_not_warned_of(horizon: str, tmp_path: Path) -> None:
    """The random policy is not waited for beyond 5,000 steps; evaluations are."""
    run(tmp_path / "run", env="pendulum", env__horizon=horizon, total_steps="128", eval__every="0")
    assert warnings(tmp_path / "run") == []


# ---- One episode


def test_one_episode_has_no_interval_and_no_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "run", total_steps="128", eval__episodes="1")
    assert cli.main(["eval", str(tmp_path / "run"), "--episodes", "1"]) == 0
    said = capsys.readouterr().out
    assert "1 fresh episode a mode" in said
    assert said.count("one episode has no interval") == 2
    assert cli.main(["eval", str(tmp_path / "run"), "--episodes", "1", "--json"]) == 0
    assert '"low":null,"high":null,"sd":null' in capsys.readouterr().out
    assert cli.main(["report", str(tmp_path / "run")]) == 0
    page = (tmp_path / "run" / "report.md").read_text()
    assert "n: 1, no interval" in page
    assert "nan" not in (said + page).replace("provenance", "").lower()


def test_the_line_of_an_evaluation_names_no_number_that_is_not_known() -> None:
    one = {"step": 5, "n": 1, "best": False, "modes": {"det": {"mean": 3.0, "noise": float("nan")}}}
    assert screen.evaluation_line(one) == "  eval at 5: return det 3 (1 episode each, which has no standard error)"
    open_ended = {"step": 5, "n": 4, "best": False, "modes": {"det": {"mean": float("nan"), "noise": float("nan")}}}
    assert screen.evaluation_line(open_ended) == "  eval at 5: return det unknown (mean ± SE, 4 episodes each)"


# ---- Speed


def test_the_last_line_after_a_resume_holds_its_own_steps_against_its_own_seconds(tmp_path: Path) -> None:
    run(tmp_path / "run", Interrupt(at=12))
    shown = Notes()
    session.resume(tmp_path / "run", shown)
    (facts,) = shown.ends
    assert (facts["began_step"], facts["step"]) == (1536, 2048)
    assert facts["sps"] == pytest.approx((2048 - 1536) / facts["elapsed_s"])
    line = screen.footer(facts | {"elapsed_s": 2.0, "sps": 256.0})[0]
    assert line == "finished: total_steps reached; 512 steps in 2.0s (256/s) since the resume, 2.05k in all"


# ---- Ctrl-C at any moment

WORDS = ["train", "ppo", "env=cartpole", "total_steps=256", "algo.envs=4", "algo.steps=16", "eval.episodes=2"]


def pressed(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["make_env", "random_baseline"])
def test_ctrl_c_before_there_is_a_run_says_that_nothing_can_be_resumed(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, where, pressed)
    assert cli.main([*WORDS, "--runs", str(tmp_path), "--name", "run"]) == 130
    assert capsys.readouterr().err == f"relab: {interrupts.NO_RUN}\n"
    assert not (tmp_path / "run").exists(), "the name is free again"


@pytest.mark.parametrize("where", ["prepare", "note_beginning"])
def test_ctrl_c_while_a_run_is_built_says_how_it_goes_on(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(session, where, pressed)
        assert cli.main([*WORDS, "--runs", str(tmp_path), "--name", "run"]) == 130
    assert capsys.readouterr().err == f"relab: interrupted\n  next: relab resume {tmp_path / 'run'}\n"
    meta = read_meta(tmp_path / "run")
    assert (meta["status"], meta["why"]) == ("interrupted", "SIGINT received")
    assert cli.main(["resume", str(tmp_path / "run"), "--quiet"]) == 0
    assert read_meta(tmp_path / "run")["status"] == "finished"


def test_ctrl_c_while_a_run_is_resumed_changes_nothing_and_says_how_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run(tmp_path / "run", Interrupt(at=3))
    before = {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()}
    monkeypatch.setattr(session, "prepare", pressed)
    assert cli.main(["resume", str(tmp_path / "run")]) == 130
    assert capsys.readouterr().err == (f"relab: {interrupts.AS_IT_WAS}\n"
                                       f"  next: relab resume {tmp_path / 'run'}\n")  # fmt: skip
    assert {path: path.read_bytes() for path in (tmp_path / "run").rglob("*") if path.is_file()} == before


def test_ctrl_c_before_the_first_update_ends_with_the_same_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    twice = iter(range(2))

    def evaluation(self: Any, row: Any) -> None:
        for _ in twice:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(screen.Silent, "evaluation", evaluation)
    assert cli.main([*WORDS, "--runs", str(tmp_path), "--name", "run", "--quiet"]) == 130
    assert capsys.readouterr().err.endswith(f"\n  next: relab resume {tmp_path / 'run'}\n")


# ---- What is no number


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
@pytest.mark.parametrize("part", ["obs", "reward"])
def test_an_environment_that_gives_no_number_is_named_before_anything_is_learned(
    part: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [word for word in WORDS if not word.startswith("env=")]
    env = ["env=gym:train.envs.strange:Strange-v0", f"env.kwargs.part={part}", f"env.kwargs.value={value}"]
    assert cli.main([*words, *env, "--runs", str(tmp_path), "--name", "run"]) == 1
    said = capsys.readouterr()
    what = {"obs": "observation", "reward": "reward"}[part]
    complaint = (
        f"every {what} must be a finite number (of 32 bits), but gym:train.envs.strange:Strange-v0 gave {value} "
    )
    assert f"failed: {complaint}" in said.out
    assert "Traceback" not in said.err
    assert "check_env" in said.out
    assert read_meta(tmp_path / "run")["why"].startswith(complaint)
    rows, _ = read_jsonl(tmp_path / "run" / "events.jsonl")
    assert any(row["kind"] == "error" and row["message"].startswith(complaint) for row in rows)
    assert read_jsonl(tmp_path / "run" / "metrics.jsonl")[0] == []


EDGES = {
    "one step, one world": {"algo.envs": "1", "algo.steps": "1", "algo.minibatches": "1", "algo.norm_adv": "false",
                            "total_steps": "1", "eval.episodes": "1"},
    "gamma 1": {"algo.gamma": "1"},
    "gamma 1, lam 1, one world": {"algo.gamma": "1", "algo.lam": "1", "algo.envs": "1"},
    "gamma 0": {"algo.gamma": "0"},
}  # fmt: skip


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("env", ["cartpole", "pendulum", "herd"])
@pytest.mark.some(6)
def test_settings_at_their_edge_train(edge: str, env: str, tmp_path: Path) -> None:
    settings = {"total_steps": "256"} | EDGES[edge]
    outcome = run(tmp_path / "run", env=env, **{key.replace(".", "__"): x for key, x in settings.items()})
    assert outcome.status == "finished"


@pytest.mark.parametrize("env", ["cartpole", "pendulum"])
def test_a_step_far_too_large_is_told_in_a_few_names(env: str, tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", env=env, algo__lr="1e30", algo__gamma="1", algo__envs="1")
    assert outcome.status == "failed"
    assert "optim/param_norm" in outcome.why
    assert "lower `lr` (now 1e+30)" in outcome.why
    assert len(outcome.why) < 400


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("np.zeros(3), 1.0, False, False, {}", "must give an observation of Box"),
        ("None", "must give an observation of Box"),
        ("np.zeros(2), 'abc', False, False, {}", "a reward that is a number"),
    ],
)
def test_what_an_environment_gives_wrongly_is_said_with_its_name(
    wrong: str, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    name = f"wrong_{abs(hash(wrong))}"
    (tmp_path / f"{name}.py").write_text(WRONG.format(given=wrong, name=name))
    words = ["train", "ppo", f"env=gym:{name}:{name}-v0", *WORDS[3:], "--runs", str(tmp_path / "runs"), "--quiet"]
    assert cli.main(words) != 0
    said = capsys.readouterr().err
    assert message in said
    assert f"gym:{name}:{name}-v0" in said
    assert "Traceback" not in said


WRONG = """
import gymnasium, numpy as np

class Wrong(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (2,))
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {{}}
    def step(self, action):
        return {given}

gymnasium.register("{name}-v0", entry_point=Wrong, max_episode_steps=20, disable_env_checker=True)
"""
