"""Does the training loop do what it says: evaluate, stop, save, keep, fail loudly, and always the same?"""

from __future__ import annotations

import math
import shutil
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from relab import cli
from relab.base.jsonl import RecordError, read_jsonl
from relab.record import glossary, history
from relab.record.run_folder import read_meta
from relab.train import checkpoint, rollout, session, telling
from relab.train.algos import ppo
from relab.train.evaluation import Evaluator
from relab.train.kernels import jit
from relab.train.screen import Silent
from small_runs import SMALL, Interrupt, fingerprint, resolve, run


def test_same_seed_same_bytes_twice_in_a_row(tmp_path: Path) -> None:
    run(tmp_path / "a")
    run(tmp_path / "b")
    run(tmp_path / "c", seed="4")
    assert fingerprint(tmp_path / "a") == fingerprint(tmp_path / "b")
    assert fingerprint(tmp_path / "a") != fingerprint(tmp_path / "c")


def test_same_bytes_for_any_number_of_threads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert jit.max_threads() >= 2, "set NUMBA_NUM_THREADS=2, or this would compare one thread with one"
    monkeypatch.setattr(jit, "WIDE", 1)  # the parallel kernels too
    hashes = []
    for threads in ("2", "1"):  # one thread last: it is what other tests expect
        run(tmp_path / threads, algo__envs="64", total_steps="4096", threads=threads)
        hashes.append(fingerprint(tmp_path / threads) | {"config.yaml": ""})  # the config says how many threads
    assert hashes[0] == hashes[1]


def test_every_metric_is_finite_and_within_the_glossary(tmp_path: Path) -> None:
    run(tmp_path / "run")
    run(tmp_path / "continuous", env="pendulum", algo__clip_value="0.2")
    for name in ("run", "continuous"):
        found = history.load(tmp_path / name)
        assert not found.problems
        for metric, column in found.columns.items():
            entry = glossary.metric(metric)
            values = column.values[~np.isnan(column.values)]
            assert ((values >= entry.low) & (values <= entry.high)).all(), metric
    group_a = """
        policy/kl policy/kl_k1 policy/clip_share policy/entropy policy/std_mean value/explained_variance
        data/advantage_mean data/advantage_std data/advantage_min data/advantage_max value/target_min
        value/target_max optim/grad_norm optim/grad_clipped_share optim/step_rms optim/step_max value/loss
        optim/epochs optim/lr optim/ent_coef policy/entropy_push
    """.split()
    assert set(group_a) <= set(history.load(tmp_path / "continuous").columns)


def test_evaluations_are_fixed_first_episodes_in_both_modes_counted_apart(tmp_path: Path) -> None:
    run(tmp_path / "run")
    rows, problems = read_jsonl(tmp_path / "run" / "evals.jsonl")
    assert not problems
    assert [(row["step"], row["mode"]) for row in rows[:4]] == [
        (0, "det"),
        (0, "sampled"),
        (512, "det"),
        (512, "sampled"),
    ]
    assert all(len(row["episodes"]) == 4 for row in rows)
    seeds = [tuple(episode["seed"] for episode in row["episodes"]) for row in rows]
    assert seeds[0] == seeds[1], "both modes start from the same seeds"
    assert len(set(seeds)) == len(rows) / 2, "each evaluation has seeds of its own"
    metrics, _ = read_jsonl(tmp_path / "run" / "metrics.jsonl")
    last = metrics[-1]
    assert last["data/env_steps"] == last["step"] == 2048
    assert last["data/sim_steps"] == last["data/env_steps"] + last["data/eval_steps"]
    assert metrics[0]["data/eval_steps"] >= 2 * max(episode["length"] for episode in rows[0]["episodes"])


def test_early_stop_looks_at_the_evaluation_only(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", eval__stop_at="1", total_steps="100_000")
    assert (outcome.status, outcome.step) == ("finished", 0)
    assert "eval.stop_at = 1" in outcome.why
    outcome = run(tmp_path / "never", eval__stop_at="501")
    assert outcome.step == 2048


def test_best_points_to_the_best_evaluation_with_its_evidence(tmp_path: Path) -> None:
    run(tmp_path / "run", algo__lr="3e-3", total_steps="8192", eval__every="1024")
    best = checkpoint.read_pointer(tmp_path / "run" / "checkpoints", "best")
    assert best is not None
    rows, _ = read_jsonl(tmp_path / "run" / "evals.jsonl")
    means = {row["step"]: np.mean([e["return"] for e in row["episodes"]]) for row in rows if row["mode"] == "det"}
    assert best["value"] == max(means.values()) == means[best["step"]]
    assert (best["metric"], best["n"]) == ("eval/return_det", 4)
    assert "first episodes" in best["protocol"]
    assert checkpoint.locate(tmp_path / "run" / "checkpoints", "best").is_dir()


def test_old_checkpoints_are_removed_but_best_and_latest_stay(tmp_path: Path) -> None:
    run(tmp_path / "run", save__keep="2", save__every="128", algo__lr="1e-6")
    root = tmp_path / "run" / "checkpoints"
    pointed = {checkpoint.read_pointer(root, name)["folder"] for name in ("latest", "best")}  # type: ignore[index]
    kept = set(checkpoint.steps(root))
    assert pointed <= kept
    assert len(kept - pointed) <= 2
    assert "step-000000002048" in kept


def test_parameters_that_are_not_numbers_end_the_run_at_once(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", algo__lr="1e30", algo__max_grad_norm="1e30", env="pendulum")
    assert outcome.status == "failed"
    assert "not finite" in outcome.why
    assert "lower `lr`" in outcome.why
    meta = read_meta(tmp_path / "run")
    assert (meta["status"], meta["step"] < 2048) == ("failed", True)
    rows, _ = read_jsonl(tmp_path / "run" / "metrics.jsonl")
    assert any(not math.isfinite(x) for x in rows[-1].values() if isinstance(x, float)), "the last row shows it"


def test_numbers_beyond_float32_are_no_warning(tmp_path: Path) -> None:
    """Warnings are errors in tests: numpy would warn of values whose squares are infinite."""
    outcome = run(tmp_path / "run", algo__lr="1e19")
    assert outcome.status in ("finished", "failed")
    rows, _ = read_jsonl(tmp_path / "run" / "metrics.jsonl")
    assert any(math.isinf(x) for row in rows for x in row.values() if isinstance(x, float)), "there was one to warn of"


def test_an_exception_in_the_environment_marks_the_run_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relab.train.envs import cartpole

    def broken(*_: object) -> None:
        raise RuntimeError("the cart fell off the table")

    monkeypatch.setattr(cartpole.CartPole, "step", broken)
    with pytest.raises(RuntimeError, match="table"):
        run(tmp_path / "run")
    assert "table" in read_meta(tmp_path / "run")["why"]
    assert read_meta(tmp_path / "run")["status"] == "failed"


def test_a_signal_finishes_the_row_saves_and_says_so(tmp_path: Path) -> None:
    outcome = run(tmp_path / "run", Interrupt(at=5))
    assert (outcome.status, outcome.step) == ("interrupted", 5 * 128)
    assert read_meta(tmp_path / "run")["status"] == "interrupted"
    assert checkpoint.read_pointer(tmp_path / "run" / "checkpoints", "latest")["step"] == 640  # type: ignore[index]
    rows, problems = read_jsonl(tmp_path / "run" / "metrics.jsonl")
    assert rows[-1]["step"] == 640
    assert not problems


def test_a_signal_is_answered_at_once_where_the_iteration_takes_long(tmp_path: Path) -> None:
    class Told(Interrupt):
        notes: ClassVar[list[str]] = []

        def note(self, text: str) -> None:
            self.notes.append(text)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(telling, "QUICK_S", 0.0)
        run(tmp_path / "run", Told(at=5))
    said = [note for note in Told.notes if "stopping" in note]
    assert len(said) == 1
    assert "once this iteration is over (the last took 0 s), then all is saved; Ctrl-C again ends at once" in said[0]
    Told.notes.clear()
    run(tmp_path / "quick", Told(at=5))
    assert not [note for note in Told.notes if "stopping" in note]


def test_a_dropped_line_saves_and_stops_and_its_echo_changes_nothing(tmp_path: Path) -> None:
    class Dropped(Interrupt):
        def iteration(self, row: Mapping[str, Any]) -> None:
            self.left -= 1
            if self.left == 0:  # once by the kernel, once by the shell
                signal.raise_signal(signal.SIGHUP)
                signal.raise_signal(signal.SIGHUP)

    outcome = run(tmp_path / "run", Dropped(at=5))
    assert (outcome.status, outcome.step, outcome.why) == ("interrupted", 5 * 128, "SIGHUP received")
    assert checkpoint.read_pointer(tmp_path / "run" / "checkpoints", "latest")["step"] == 640  # type: ignore[index]


def test_under_nohup_a_dropped_line_means_nothing(tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run(tmp_path / "run", Interrupt(at=5, number=signal.SIGHUP)).status == "finished"
        assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


class Act(Silent):
    """Does something at the k-th iteration."""

    def __init__(self, at: int, deed: Callable[[], object]):
        self.left, self.deed = at, deed

    def iteration(self, row: Mapping[str, Any]) -> None:
        self.left -= 1
        if self.left == 0:
            self.deed()


@pytest.mark.parametrize("at", [2, 15, 16])
def test_a_run_whose_folder_is_deleted_fails_and_names_it(at: int, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with pytest.raises(RecordError, match=r"/run was deleted or moved while its run was writing there"):
        run(folder, Act(at, lambda: shutil.rmtree(folder)))


@pytest.mark.parametrize("gone", ["metrics.jsonl", "events.jsonl"])
def test_a_run_whose_file_is_deleted_fails_and_names_it(gone: str, tmp_path: Path) -> None:
    with pytest.raises(RecordError, match=rf"gone: {gone}"):
        run(tmp_path / "run", Act(2, (tmp_path / "run" / gone).unlink))
    assert read_meta(tmp_path / "run")["status"] == "running", "nothing is claimed of what nobody can vouch for"


def test_a_run_that_was_moved_goes_on_where_it_is_now(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    with pytest.raises(RecordError, match="where it was moved to, `relab resume` goes on"):
        run(tmp_path / "run", Act(6, lambda: (tmp_path / "run").rename(tmp_path / "there")))
    assert session.resume(tmp_path / "there").status == "finished"
    assert fingerprint(tmp_path / "there") == fingerprint(tmp_path / "whole")


def test_the_command_fails_when_the_folder_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from relab.train import screen

    act = Act(3, lambda: shutil.rmtree(tmp_path / "run"))
    monkeypatch.setattr(screen, "choose", lambda *_: act)
    words = [f"{key}={value}" for key, value in SMALL.items()]
    assert cli.main(["train", "ppo", *words, "--runs", str(tmp_path), "--name", "run"]) == 2
    assert f"{tmp_path / 'run'} was deleted or moved" in capsys.readouterr().err


# ---- Environments that end the program


QUITTERS = {
    "step": "def step(self, *given): raise SystemExit(0)",
    "reset": "def reset(self, *given): raise SystemExit(0)",
}
OURS = """
from relab.train.envs.cartpole import CartPole
class Quitter(CartPole):
    {deed}
"""
GYMS = """
import gymnasium
from gymnasium.envs.classic_control import CartPoleEnv
class Quitter(CartPoleEnv):
    {deed}
gymnasium.register("Quitter-{part}-v0", entry_point=Quitter, max_episode_steps=50)
"""


@pytest.mark.parametrize("part", QUITTERS)
@pytest.mark.parametrize("source", ["ours", "gym"])
def test_an_environment_that_exits_with_0_before_there_is_a_run_fails(
    source: str, part: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    name = f"quitter_{source}_{part}"
    text = {"ours": OURS, "gym": GYMS}[source].format(deed=QUITTERS[part].replace("given", "a, **k"), part=part)
    (tmp_path / f"{name}.py").write_text(text)
    env = f"{name}:Quitter" if source == "ours" else f"gym:{name}:Quitter-{part}-v0"
    assert cli.main(["train", "ppo", f"env={env}", "total_steps=256", "--runs", str(tmp_path / "runs")]) == 70
    assert "ExitError: the run failed: its environment or its algorithm raised SystemExit(0)" in capsys.readouterr().err


@pytest.mark.parametrize("where", ["collect", "evaluation", "beginning"])
def test_code_of_a_run_that_exits_with_0_is_a_failed_run(
    where: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from relab.train.algos import ppo

    def leave(*_: Any, **__: Any) -> None:
        raise SystemExit(0)

    owner, name = {"collect": (ppo, "collect"), "evaluation": (rollout, "evaluate"), "beginning": (ppo, "init")}[where]
    monkeypatch.setattr(owner, name, leave)
    with pytest.raises(session.ExitError, match=r"SystemExit\(0\)"):
        run(tmp_path / "run")
    meta = read_meta(tmp_path / "run")
    assert (meta["status"], meta["why"]) == ("failed", "SystemExit: 0")
    with pytest.raises(session.ExitError):
        session.resume(tmp_path / "run")
    assert read_meta(tmp_path / "run")["status"] == "failed"


def test_no_command_passes_foreign_code_that_exits_for_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from relab.commands import doctor

    monkeypatch.setattr(doctor, "main", lambda words: sys.exit(0))
    assert cli.main(["doctor"]) == 1
    assert "`relab doctor` was ended by code that it ran, which raised SystemExit(0)" in capsys.readouterr().err
    monkeypatch.undo()
    assert cli.main(["doctor", "--help"]) == 0
    assert cli.main(["doctor", "--no-such-flag"]) == 64


def test_a_second_signal_ends_the_run_at_once_and_it_can_be_resumed(tmp_path: Path) -> None:
    class Impatient(Interrupt):
        def evaluation(self, row: Mapping[str, Any]) -> None:
            if row["step"] == 512:
                signal.raise_signal(signal.SIGINT)
                signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "run", Impatient(at=0))
    assert read_meta(tmp_path / "run")["status"] == "interrupted"
    run(tmp_path / "whole")
    assert session.resume(tmp_path / "run").status == "finished"
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


class InEvaluation:
    """An evaluator that is sent a signal while it plays at a step."""

    def __init__(self, at: int, monkeypatch: pytest.MonkeyPatch):
        self.at, self.steps = at, 0
        monkeypatch.setattr(Evaluator, "play", self.play(Evaluator.play))

    def play(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def played(evaluator: Evaluator, agent: Any, step: int, p: Any, before_step: Any) -> Any:
            def one_more(*facts: Any) -> None:
                self.steps += 1
                if self.steps == 3:
                    signal.raise_signal(signal.SIGTERM)
                before_step(*facts)

            return real(evaluator, agent, step, p, one_more if step == self.at else before_step)

        return played


@pytest.mark.parametrize("at", [0, 512, 2048])
def test_a_signal_ends_an_evaluation_and_it_is_made_up_for(
    at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    probes = {"probes__every": "1", "probes__value_vs_rerun__starts": "4", "probes__value_vs_rerun__reruns": "2"}
    run(tmp_path / "whole", **probes)
    with monkeypatch.context() as patch:
        cut = InEvaluation(at, patch)
        ended = run(tmp_path / "run", **probes)
    assert (ended.status, ended.step, cut.steps) == ("interrupted", at, 3)
    assert checkpoint.last(tmp_path / "run" / "checkpoints") == f"step-{at:012d}", "no step of training is lost"
    assert session.resume(tmp_path / "run").status == "finished"
    assert fingerprint(tmp_path / "run") == fingerprint(tmp_path / "whole")


def test_weights_that_are_no_numbers_end_the_run_whatever_it_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plug-in may log no norm, and act without an error: what it keeps is looked at."""
    real = ppo.iterate

    def broken(state: Any, watch: Any) -> dict[str, float]:
        row = real(state, watch)
        if state.counts.iteration == 3:
            state.agent.params.flat.detach()[-2:] = math.nan  # of the critic
        return {name: x for name, x in row.items() if name != "optim/param_norm"}

    monkeypatch.setattr(ppo, "iterate", broken)
    ended = run(tmp_path / "run")
    assert ended.status == "failed"
    assert "parameters are not finite" in ended.why
    assert read_meta(tmp_path / "run")["status"] == "failed"
    root = tmp_path / "run" / "checkpoints"
    kept = [checkpoint.load(root, path.name)[0]["params"] for path in root.glob("step-*")]
    assert kept
    assert all(np.isfinite(array).all() for params in kept for array in params.values())


def test_a_signal_that_comes_too_late_changes_nothing(tmp_path: Path) -> None:
    class Late(Interrupt):
        def evaluation(self, row: Mapping[str, Any]) -> None:
            if row["step"] == 2048:
                signal.raise_signal(signal.SIGTERM)

    assert run(tmp_path / "run", Late(at=0), eval__every="0").status == "finished"


def test_steps_count_living_agents_only(tmp_path: Path) -> None:
    run(tmp_path / "run", env="herd", env__agent_reset="with_world", total_steps="3000")
    rows, _ = read_jsonl(tmp_path / "run" / "metrics.jsonl")
    assert sum(row["data/batch"] for row in rows) == rows[-1]["step"]
    assert 0 < min(row["data/alive"] for row in rows) < 1
    assert any(name.startswith("env/") for name in rows[-1])


def test_the_random_policy_is_measured_once_and_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from relab.train import baseline

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    cfg = resolve().config
    env = session.make_env(cfg)
    first = baseline.random_baseline(env, {"name": "cartpole-v1"})
    assert 15 < first["return_mean"] < 30
    assert first["n"] == 100
    monkeypatch.setattr(baseline, "measure", lambda env: pytest.fail("measured again"))
    assert baseline.random_baseline(env, {"name": "cartpole-v1"}) == first
    (tmp_path / "cache" / "relab" / "baselines.json").write_text("{cut off")
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert baseline.random_baseline(env, {"name": "cartpole-v1"}) == first


def test_a_horizon_that_nobody_lives_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random actions never end a pendulum's episode: the baseline says what it waited for instead of waiting."""
    from relab.config import envs
    from relab.train import baseline
    from relab.train.envs.pendulum import Pendulum

    monkeypatch.setattr(baseline, "CAP", 50)
    monkeypatch.setattr(baseline, "EPISODES", 4)
    found = baseline.measure(Pendulum(envs.Pendulum(horizon=10**9)))["baseline"]
    assert found == {"return_mean": None, "return_std": None, "length_mean": 50.0, "n": 4, "cut": 4, "cap": 50}
    assert "cut" not in baseline.measure(Pendulum(envs.Pendulum(horizon=200)))["baseline"]


@pytest.mark.parametrize(
    "words",
    [
        ("dqn", "env=pendulum"),
        ("sac", "env=cartpole"),
        ("dqn", "env=cartpole", "total_steps=500", "learning_starts=900"),
    ],
)
def test_settings_that_cannot_work_leave_no_run_behind(words: tuple[str, ...], tmp_path: Path, capsys) -> None:
    assert cli.main(["train", *words, "--runs", str(tmp_path / "runs"), "--name", "a"]) == 64
    assert "needs" in (said := capsys.readouterr().err) or "must lie before the end" in said
    assert not (tmp_path / "runs" / "a").exists()


# ---- What cannot be


def test_a_metric_that_nobody_declared_is_the_algorithms_fault(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    real = ppo.iterate
    monkeypatch.setattr(ppo, "iterate", lambda state, watch: real(state, watch) | {"my/number": 1.0})
    words = ["train", *(f"{key}={value}" for key, value in SMALL.items())]
    assert cli.main([*words, "--runs", str(tmp_path), "--name", "x"]) == 64
    assert "ppo logs what nobody could look up: the metric `my/number`" in capsys.readouterr().err


def test_actions_that_it_cannot_serve_are_refused_before_anything_is_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(session, "random_baseline", lambda *_: pytest.fail("measured first"))
    assert cli.main(["train", "dqn", "env=pendulum", "--runs", str(tmp_path)]) == 64
    assert "dqn needs one discrete choice per step" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_run_that_is_complete_says_how_to_train_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(tmp_path / "a")
    assert cli.main(["resume", str(tmp_path / "a")]) == 0
    line = capsys.readouterr().out.splitlines()[-1].strip()
    assert line == f"to train on: relab train --parent {tmp_path / 'a'} start_from={tmp_path / 'a'} total_steps=STEPS"
    assert cli.main(["resume", str(tmp_path / "a"), "total_steps=4096"]) == 64
    assert "schedules follow `total_steps`" in capsys.readouterr().err
    words = line.removeprefix("to train on: relab ").replace("STEPS", "2560").split()
    assert cli.main([*words, "--runs", str(tmp_path), "--name", "b", "--quiet"]) == 0
    assert read_meta(tmp_path / "b")["started_from"]["step"] == 2048
