"""Does an experiment run what it must, once, and survive being killed?"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path
from threading import Timer
from typing import Any

import pytest

import made_up
from relab.config.base import ConfigError
from relab.lab import experiment
from relab.lab.execute import local

TINY = """
question: Does a tiny step learn less?
at: final
smallest_effect: 5
base:
  env: cartpole
  total_steps: 512
  algo: {envs: 8, steps: 16, epochs: 1, minibatches: 2}
  eval: {every: 256, episodes: 3}
vary: {lr: [1e-3, 1e-6]}
seeds: 2
"""


SCHEDULED = """
question: Does a tiny step learn less?
metric: multi/return
at: final
smallest_effect: 5
base:
  env: cartpole
  total_steps: 2560
  algo: {envs: 8, steps: 16, epochs: 1, minibatches: 2}
  eval.every: 0
  schedule: {total: 20, every: 10, multi_eval: {episodes: 4}}
vary: {lr: [1e-3, 1e-6]}
seeds: 2
"""


@pytest.mark.slow  # a pilot of its own; two more stay
def test_the_forecast_of_scheduled_runs_counts_their_evaluations(tmp_path: Path) -> None:
    """The pilot is shorter than the schedule: it ends early, and still sees what an evaluation costs."""
    question = experiment.load(made_up.question(tmp_path, SCHEDULED))
    cost = experiment.forecast(question, experiment.prepare(question, tmp_path / "x"), tmp_path / "x", workers=2)
    alone = experiment.STARTUP_S + 20 * cost.pilot["row_s"] + cost.pilot["evals"] * cost.pilot["eval_s"]
    assert cost.seconds_per_run > alone
    assert (cost.runs, cost.seconds) == (4, 2 * cost.seconds_per_run)


def test_a_question_becomes_runs_that_are_never_repeated(tmp_path: Path) -> None:
    question = experiment.load(made_up.question(tmp_path, TINY.replace("seeds: 2", "seeds: 1")))
    assert list(question.variants) == ["lr=0.001", "lr=1e-06"]
    cells = experiment.prepare(question, tmp_path / "x")
    counts = []
    done = experiment.run(question, tmp_path / "x", cells, workers=2, watch=lambda n, of: counts.append((n, of)))
    assert (sorted(done.finished), done.failed, done.interrupted) == (sorted(c.folder.name for c in cells), [], False)
    assert counts[-1] == (2, 2)
    written = [(cell.folder / "events.jsonl").read_bytes() for cell in cells]
    again = experiment.run(question, tmp_path / "x", cells, workers=2)
    assert len(again.finished) == 2
    assert written == [(cell.folder / "events.jsonl").read_bytes() for cell in cells], "nothing ran twice"
    assert experiment.forecast(question, cells, tmp_path / "x", workers=2).seconds == 0
    more = experiment.prepare(experiment.load(made_up.question(tmp_path, TINY)), tmp_path / "x")
    assert [cell.folder.name for cell in more] == ["lr=0.001-s0", "lr=1e-06-s0", "lr=0.001-s1", "lr=1e-06-s1"]
    for cell in more[2:]:
        made_up.cell(cell, value=1.0)
    runs = experiment.histories(more)
    assert [[h.meta["seed"] for h in group] for group in runs.values()] == [[0, 1], [0, 1]]
    assert runs["lr=1e-06"][0].config["algo"]["lr"] == 1e-6
    other = experiment.load(made_up.question(tmp_path, TINY.replace("effect: 5", "effect: 6")))
    with pytest.raises(ConfigError, match="another experiment"):
        experiment.prepare(other, tmp_path / "x")
    with pytest.raises(ConfigError, match=r"not taken away.*\[1\]"):
        experiment.prepare(question, tmp_path / "x")


def test_the_answer_is_kept_with_the_looks_it_took(tmp_path: Path) -> None:
    """Five seeds of made-up finished runs; no training needed to conclude."""
    question = experiment.load(made_up.question(tmp_path, TINY.replace("seeds: 2", "seeds: 5")))
    cells = experiment.prepare(question, tmp_path / "x")
    for cell in cells:
        made_up.cell(cell, value=(100 if cell.variant == "lr=0.001" else 20) + cell.seed)
    (answer,) = experiment.conclude(question, tmp_path / "x", cells)
    assert (answer.verdict, answer.names, answer.n) == ("no", ("lr=0.001", "lr=1e-06"), (5, 5))
    assert answer.delta == pytest.approx(-80)
    kept = json.loads((tmp_path / "x" / "answer.json").read_text())
    assert kept["looks"] == {"lr=1e-06": [[5, 5]]}
    assert kept["answers"][0]["text"] == answer.text
    again = experiment.conclude(question, tmp_path / "x", cells[:-2])  # one seed less each: never an answer
    assert again[0].verdict == "cannot tell yet"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (TINY.replace("question:", "quesion:"), "the nearest known one is `question`"),
        (TINY.replace("vary: {lr: [1e-3, 1e-6]}", "vary: {lr: [1e-3]}"), "at least two variants"),
        (TINY.replace("1e-6]", "1e-6, 1e-3]"), "lr=0.001 is there more than once"),
        (TINY + "variants: {a: {}, b: {}}\n", "either `vary` or `variants`"),
        (TINY.replace("at: final", "at: best"), "`at` must be one of"),
        (TINY.replace("seeds: 2", "seeds: [1, 1]"), "different seeds"),
        (TINY.replace("at: final", "at: first_step_reaching"), "needs a `level`"),
    ],
)
def test_a_question_that_cannot_be_asked(text: str, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=says):
        experiment.load(made_up.question(tmp_path, text))


def test_an_unknown_setting_is_an_error_before_anything_runs(tmp_path: Path) -> None:
    question = experiment.load(made_up.question(tmp_path, TINY.replace("vary: {lr:", "vary: {learning_rat:")))
    with pytest.raises(ConfigError, match="unknown key `learning_rat`"):
        experiment.prepare(question, tmp_path / "x")


@pytest.mark.parametrize(
    ("base", "says"),
    [
        ("budget: 512\n", None),
        ("budget: 1024\n", "`budget` is 1024, but total_steps of base is 512; leave one of them out"),
        ("budget: 0\n", "above 0"),
        ("paired: maybe\n", "`paired` must be true or false"),
        ("resume: true\n", "`resume` goes with `command`"),
    ],
)
def test_budget_and_pairs_are_checked(base: str, says: str | None, tmp_path: Path) -> None:
    path = made_up.question(tmp_path, TINY + base)
    if says is None:
        assert experiment.load(path).budget == 512
        return
    with pytest.raises(ConfigError, match=says):
        experiment.load(path)


def test_a_budget_is_the_trainers_total_steps(tmp_path: Path) -> None:
    text = TINY.replace("  total_steps: 512\n", "") + "budget: 768\n"
    experiment.prepare(experiment.load(made_up.question(tmp_path, text)), tmp_path / "x")
    assert "total_steps: 768" in (tmp_path / "x" / "variants" / "lr=0.001.yaml").read_text()


def test_the_question_that_was_kept_can_be_asked_again(tmp_path: Path) -> None:
    question = experiment.load(made_up.question(tmp_path, TINY + "paired: true\nbudget: 512\n"))
    experiment.prepare(question, tmp_path / "x")
    assert experiment.load(tmp_path / "x" / "experiment.yaml") == question


def test_pairs_and_several_comparisons_reach_the_answer(tmp_path: Path) -> None:
    text = (
        TINY.replace("[1e-3, 1e-6]", "[1e-3, 1e-6, 1e-5]")
        .replace("seeds: 2", "seeds: 5")
        .replace("final", "mean_last_m")
    )
    question = experiment.load(made_up.question(tmp_path, text + "paired: true\nlast: 1\n"))
    cells = experiment.prepare(question, tmp_path / "x")
    for cell in cells:
        made_up.cell(cell, value=(100 if cell.variant == "lr=0.001" else 20) + cell.seed**2)
    first, second = experiment.conclude(question, tmp_path / "x", cells)
    assert [x.names[1] for x in (first, second)] == ["lr=1e-06", "lr=1e-05"]
    assert first.level == second.level == 1 - 0.05 / 2 / 2  # the first look's half, shared by two
    assert "mean of the last 1 eval/return_det" in first.text
    assert "5 pairs, corrected for 2 comparisons" in first.text


def test_a_metric_that_no_run_has_is_an_error_that_lists_what_there_is(tmp_path: Path) -> None:
    question = experiment.load(made_up.question(tmp_path, TINY + "metric: eval/retrun_det\n"))
    cells = experiment.prepare(question, tmp_path / "x")
    for cell in cells:
        made_up.cell(cell, value=1.0)
    with pytest.raises(ConfigError, match=r"has no such column; it has eval/episodes, .*eval/return_det"):
        experiment.conclude(question, tmp_path / "x", cells)


def script(tmp_path: Path, name: str, text: str) -> local.Job:
    """A job whose process runs `text`, with DONE and TRIES as files to touch."""
    done, tries = tmp_path / f"{name}.done", tmp_path / f"{name}.tries"
    code = (
        f"import os, signal, time, pathlib\ndone, tries = pathlib.Path({str(done)!r}), pathlib.Path({str(tries)!r})\n"
    )
    code += "tries.write_text(tries.read_text() + 'x' if tries.exists() else 'x')\n" + text
    return local.Job(name, lambda: [sys.executable, "-c", code], done.exists, tmp_path / f"{name}.log")


def test_a_killed_worker_is_started_again_and_a_failing_one_is_not(tmp_path: Path) -> None:
    killed = script(
        tmp_path, "killed", "if len(tries.read_text()) < 2: os.kill(os.getpid(), signal.SIGKILL)\ndone.touch()"
    )
    failing = script(tmp_path, "failing", "raise SystemExit(3)")
    hopeless = script(tmp_path, "hopeless", "os.kill(os.getpid(), signal.SIGKILL)")
    outcome = local.run([killed, failing, hopeless], workers=2)
    assert outcome.finished == ["killed"]
    assert sorted(outcome.failed) == ["failing", "hopeless"]
    assert killed.exit_codes == [-signal.SIGKILL, 0]
    assert failing.exit_codes == [3]
    assert len(hopeless.exit_codes) == local.TRIES


def test_what_failed_is_told_in_the_order_that_was_asked(tmp_path: Path) -> None:
    late, early = (script(tmp_path, name, f"time.sleep({s})\nraise SystemExit(3)") for name, s in (("b", 2), ("a", 0)))
    assert local.run([late, early], workers=2).failed == ["b", "a"]


def test_a_signal_stops_the_workers_and_leaves_the_rest(tmp_path: Path) -> None:
    slow = "signal.signal(signal.SIGTERM, lambda *_: (done.touch(), os._exit(0)))\ntime.sleep(60)"
    jobs = [script(tmp_path, f"slow{i}", slow) for i in range(3)]
    Timer(1.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    begin = time.monotonic()
    outcome = local.run(jobs, workers=2)
    assert outcome.interrupted
    assert time.monotonic() - begin < 30
    assert sorted(outcome.finished) == ["slow0", "slow1"], "those that ran were asked to end, and did what they do then"
    assert not jobs[2].exit_codes


# ---- Forecasts of any algorithm

TOY = """
question: Does a tiny step learn less?
metric: eval/return_det
at: final
smallest_effect: 5
base: {{env: cartpole, eval.every: 50, eval.episodes: 2, eval.stop_at: null, {}}}
vary: {{{}: [1e-1, 1e-3]}}
seeds: 1
"""
OFFLINE = '''
"""Fits a number to nothing, ten updates at a time, and says nothing about batches."""
import time
from dataclasses import dataclass
import numpy as np
from relab.train.contract import Counts
from relab.train.rollout import Acted

CLOCK = "updates"

@dataclass(frozen=True)
class Config:
    """Settings."""
    name: str = "toy_offline:Config"  # algorithm
    rate: float = 0.1  # step size
    def check(self) -> None: ...

class Agent:
    memory_dim = 0
    w = np.zeros(1)
    def act(self, obs_BD, memory_BM, rng_B, n_mode=0):
        return Acted(np.zeros((len(obs_BD), 1), np.int64), np.zeros(len(obs_BD)), memory_BM)
    def to_env(self, action):
        return action

class State:
    def __init__(self):
        self.agent, self.counts = Agent(), Counts()
    def to_tree(self):
        return {"params": {"w": self.agent.w}, "counts": vars(self.counts)}
    def load(self, tree):
        load_agent(self.agent, tree)
        self.counts = Counts(**tree["counts"])

def load_agent(agent, tree):
    agent.w = tree["params"]["w"].copy()

def make_agent(cfg, spec, seed, device="cpu", threads=1):
    return Agent()

def init(setup):
    return State()

def iterate(s, watch):
    with watch("update"):
        time.sleep(0.02)
    s.counts.updates += 10
    s.counts.iteration += 1
    return {"policy/loss": 1.0, "data/updates": s.counts.updates}
'''


def forecast_of(tmp_path: Path, base: str, key: str) -> Any:
    question = experiment.load(made_up.question(tmp_path, TOY.format(base, key)))
    return experiment.forecast(question, experiment.prepare(question, tmp_path / "x"), tmp_path / "x", workers=1)


@pytest.mark.slow  # a pilot of its own; two more stay
def test_an_algorithm_that_says_nothing_of_batches_is_forecast_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "toy_offline.py").write_text(OFFLINE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    cost = forecast_of(tmp_path, "algo: 'toy_offline:Config', total_steps: 1000", "rate")
    assert cost.pilot["steps"] == 10, "updates in one iteration, on its clock"
    assert 0.02 <= cost.pilot["row_s"] < 0.2
    own = cost.seconds_per_run - experiment.STARTUP_S - cost.pilot["evals"] * cost.pilot["eval_s"]
    assert own == pytest.approx(100 * cost.pilot["row_s"])


@pytest.mark.slow
def test_a_pilot_waits_until_a_replay_method_learns(tmp_path: Path) -> None:
    settings = "algo: {name: dqn, envs: 4, steps: 16, learning_starts: 600, minibatch: 512, updates_per_step: 1}"
    cost = forecast_of(tmp_path, f"{settings}, total_steps: 4000", "lr")
    assert cost.pilot["steps"] == 64
    assert cost.pilot["row_s"] > 0.01, "64 updates on 512 rows each, not the steps before them"
