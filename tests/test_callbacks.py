"""Does training elsewhere leave a record that the rules understand, and is its user warned in time, and once?"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import textwrap

import pytest

from relab import callbacks
from relab.callbacks import Watch, watch, watching
from relab.health.examine import examine
from relab.logger import Logger
from relab.record import history
from relab.runs import glance
from where import ROOT

PEERS = ROOT / ".venv-sb3" / "bin" / "python"
CLEANRL = argparse.Namespace(
    learning_rate=0.1, gamma=0.99, num_steps=128, num_envs=4, env_id="CartPole-v1", seed=3, track=False, exp_name="ppo"
)


class Tape:
    """A writer with TensorBoard's two methods."""

    def __init__(self):
        self.rows, self.closed = [], False

    def add_scalar(self, tag, scalar_value, global_step=None):
        self.rows.append((tag, scalar_value, global_step))

    def add_text(self, tag, text):
        self.rows.append((tag, text, None))

    def close(self):
        self.closed = True


def train(writer, kl, updates=40):
    """What a script like CleanRL's writes: two episodes in one step, then the losses of an update."""
    for update in range(1, updates + 1):
        step = 512 * update
        writer.add_scalar("charts/episodic_return", 10.0, step - 5)
        writer.add_scalar("charts/episodic_return", 20.0, step - 5)
        writer.add_scalar("losses/approx_kl", kl, step)
        writer.add_scalar("losses/clipfrac", 0.95 if kl > 1 else 0.1, step)
        writer.add_scalar("losses/entropy", 0.5, step)


def written(tmp_path, kl, **facts):
    said = []
    writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", tell=lambda text, _: said.append(text), **facts)
    train(writer, kl)
    writer.close()
    return writer, said


def test_settings_are_kept_under_the_names_that_rules_know(tmp_path):
    written(tmp_path, 0.01)
    run = history.load(tmp_path / "a")
    assert run.config["algo"] == {"lr": 0.1, "gamma": 0.99, "steps": 128, "envs": 4, "name": "ppo"}
    assert (run.config["env"]["name"], run.config["seed"]) == ("CartPole-v1", 3)
    assert "exp_name" not in json.dumps(run.config), "where a run lies is no setting"
    assert (run.meta["status"], run.meta["seed"], run.meta["spec"]["env"]) == ("finished", 3, "CartPole-v1")


def test_the_writer_goes_on_as_before_and_rows_have_relabs_names(tmp_path):
    writer, _ = written(tmp_path, 0.01)
    assert len(writer.writer.rows) == 200
    assert writer.writer.closed
    writer.add_text("what", "the rest of the writer is still there")
    columns = history.load(tmp_path / "a").columns
    assert columns["return/mean"].values.tolist() == [15.0] * 40, "episodes that end in one step are their mean"
    assert columns["return/mean"].steps.tolist() == [512 * k - 5 for k in range(1, 41)]
    assert columns["policy/kl"].values.tolist() == [0.01] * 40


def test_a_writer_in_a_with_block_is_closed_and_its_run_says_how_it_ended(tmp_path):
    with watch(Tape(), str(tmp_path / "a"), CLEANRL) as writer:
        train(writer, 0.01)
    assert writer.writer.closed
    run = history.load(tmp_path / "a")
    assert (run.meta["status"], len(run.columns["policy/kl"].values)) == ("finished", 40)
    with pytest.raises(ZeroDivisionError), watch(Tape(), str(tmp_path / "b"), CLEANRL) as writer:
        raise ZeroDivisionError
    assert writer.writer.closed
    assert history.load(tmp_path / "b").meta["status"] == "failed"


def test_a_rule_that_fires_is_told_while_it_trains_and_once(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "SHARE", 1e9)  # these rows take no time: every look would be too dear
    writer, said = written(tmp_path, 30.0, every=2048)
    first = next(text for text in said if "steps-too-large" in text)
    assert int(first.split(":")[0].rpartition(" ")[2].replace(",", "")) < 512 * 40, "before the end"
    assert "try:" in first
    assert "relab explain steps-too-large" in first
    assert len(said) == len({text.split(": ")[2] for text in said}), "each rule once"
    warned = [e for e in history.load(tmp_path / "a").events if e["kind"] == "warning"]
    assert [e["slug"] for e in warned] == [finding.slug for finding in writer.relab.warned]


def test_a_healthy_run_hears_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "SHARE", 1e9)
    said = []
    with Watch(str(tmp_path / "a"), {"lr": 3e-4}, algo="ppo", env="CartPole-v1", seed=0, every=2048,
               tell=lambda text, _: said.append(text)) as log:  # fmt: skip
        for k in range(1, 61):
            log.log(512 * k, **{"return/mean": min(20 + 10 * k, 500), "return/episodes": 10, "return/std": 5.0,
                                "policy/kl": 0.006, "policy/entropy": 0.6 - k / 200})  # fmt: skip
    assert said == []
    assert log.looks > 10


def test_looking_waits_until_it_is_within_its_share_of_the_time(tmp_path):
    with Watch(str(tmp_path / "a"), algo="ppo", every=1) as log:
        for step in range(1, 60):  # no time passes between these rows, and one look takes more than all of them
            log.log(step, **{"return/mean": 1.0})
        assert log.looks <= 1
        log.started -= 1e6  # as if the rows had taken days
        log.log(60, **{"return/mean": 1.0})
        log.log(61, **{"return/mean": 1.0})
        assert log.looks >= 2


def test_episodes_that_end_one_after_the_other_are_written_together(tmp_path, monkeypatch):
    """A script like CleanRL's logs each of them; on a busy machine so many writes take more time than relab may."""
    writes, put = [], watching.Logger._put
    monkeypatch.setattr(watching.Logger, "_put", lambda self, name, line: (writes.append(name), put(self, name, line)))
    with Watch(str(tmp_path / "a"), algo="ppo", every=10**9) as log:
        for step in range(1, 1001):
            log.log(step, **{"return/mean": 1.0})
        assert writes.count("metrics.jsonl") < 100
        monkeypatch.setattr(watching, "TOGETHER_S", 0.0)
        log.log(1001, **{"return/mean": 1.0})
        assert len(history.load(tmp_path / "a").columns["return/mean"].values) == 1001, "in their order, none is left"


ENDINGS = {
    "raise ValueError('an error of the training')": ("failed", "ValueError: an error of the training"),
    "raise KeyboardInterrupt": ("interrupted", "KeyboardInterrupt"),
    "sys.last_value = NameError('of an hour ago'); log.close(); log.go_on(900)": ("interrupted", watching.UNCLOSED),
    "raise SystemExit(0)": ("interrupted", watching.UNCLOSED),
    "raise SystemExit(1)": ("interrupted", watching.UNCLOSED),
    "pass": ("interrupted", watching.UNCLOSED),
    "log.log(1000, **{'return/mean': 1.0})": ("finished", None),
    "log.close()": ("finished", None),
}


@pytest.mark.parametrize("ending", ENDINGS, ids=["error", "ctrl-c", "old", "exit", "exit-1", "end", "whole", "closed"])
def test_a_record_that_nobody_closed_says_how_the_program_ended(tmp_path, ending):
    program = f"""
    import sys
    from relab.callbacks import Watch
    log = Watch("a", {{"total_timesteps": 1000}}, algo="ppo")
    for step in range(1, 500):
        log.log(step, **{{"return/mean": 1.0}})
    {ending}
    """
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=False, env=env, cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert "run-incomplete" not in done.stderr, "who ended it knows"
    run, (status, message) = history.load(tmp_path / "a"), ENDINGS[ending]
    rows = len(run.columns["return/mean"].values)
    assert (run.meta["status"], rows) == (status, 499 + ("log.log" in ending))
    said = [event["message"] for event in run.events if event["kind"] == "error"]
    assert [one for one in said if message and message in one] == said
    assert bool(said) == bool(message)


def test_what_below_random_means_is_asked_when_a_healthy_run_would_have_begun_to_learn(tmp_path, monkeypatch):
    """DQN on CartPole earns 14 at step 3,000 of 60,000, where random earns 22, and 160 at its end."""
    monkeypatch.setattr(watching, "SHARE", 1e9)
    told = {"dqn": [], "ppo": []}
    for algo, steps in told.items():
        facts = {"total_timesteps": 60_000, "seed": 0, "env_id": "CartPole-v1"}
        with Watch(str(tmp_path / algo), facts, algo=algo, every=1000,
                   tell=lambda text, finding, steps=steps: steps.append((finding.slug, text))) as log:  # fmt: skip
            for step in range(500, 60_001, 500):
                log.log(step, **{"return/mean": 9.4 + step % 1500 / 5000, "return/episodes": 50, "return/std": 0.8})
    first = {algo: next(text for slug, text in steps if slug == "worse-than-random") for algo, steps in told.items()}
    assert first["dqn"].startswith("relab at step 30,000: ")
    assert first["ppo"].startswith("relab at step 6,000: ")


def test_a_step_count_that_is_none_is_refused(tmp_path):
    with pytest.raises(ValueError, match="at least 1, but is 0"):
        Watch(str(tmp_path / "a"), every=0)


def test_how_it_ended_is_noted(tmp_path):
    with pytest.raises(ValueError, match="of the training"), Watch(str(tmp_path / "a")):
        raise ValueError("an error of the training")
    assert history.load(tmp_path / "a").meta["status"] == "failed"


@pytest.mark.parametrize("kind", [Watch, Logger])
@pytest.mark.parametrize(("code", "status"), [(0, "finished"), (None, "finished"), (1, "failed"), ("why", "failed")])
def test_leaving_a_with_block_by_exit_is_what_its_code_says(tmp_path, kind, code, status):
    with pytest.raises(SystemExit), kind(str(tmp_path / "a")):
        sys.exit(code)
    assert history.load(tmp_path / "a").meta["status"] == status


def test_nobody_waits_for_torch():
    program = "import sys, relab.callbacks; print({'torch', 'stable_baselines3', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
    with pytest.raises(AttributeError, match="it has SB3Callback"):
        _ = callbacks.SB4Callback


# ---- Stable-Baselines3 itself

needs_peers = pytest.mark.skipif(not PEERS.exists(), reason="Stable-Baselines3 is not there: make bench-peers")


def run_peer(program, folder):
    env = {"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "HOME": str(folder)}
    return subprocess.run([str(PEERS), "-c", textwrap.dedent(program)], check=False, env=env, cwd=folder,
                          capture_output=True, text=True)  # fmt: skip


@pytest.mark.slow
@needs_peers
def test_a_run_of_stable_baselines3_with_its_evaluations(tmp_path):
    done = run_peer(
        """
        from stable_baselines3 import PPO
        from stable_baselines3.common.callbacks import EvalCallback
        from stable_baselines3.common.env_util import make_vec_env
        from relab.callbacks import SB3Callback
        envs = make_vec_env("CartPole-v1", 2, seed=3)
        model = PPO("MlpPolicy", envs, n_steps=128, batch_size=64, learning_rate=lambda left: 1e-3 * left,
                    target_kl=0.1, seed=3, device="cpu")
        test = make_vec_env("CartPole-v1", 1)
        evaluate = EvalCallback(test, n_eval_episodes=3, eval_freq=256, log_path="e", verbose=0)
        model.learn(2048, callback=[evaluate, SB3Callback("runs/a", every=512)])
        """,
        tmp_path,
    )
    assert done.returncode == 0, done.stderr
    run = history.load(tmp_path / "runs" / "a")
    algo = run.config["algo"]
    assert (algo["name"], algo["lr"], algo["steps"], algo["envs"]) == ("ppo", "0.001 to 0", 128, 2)
    assert (algo["clip"], algo["target_kl"], algo["minibatches"], algo["lam"]) == (0.2, 0.1, 4, 0.95)
    assert (run.config["env"]["name"], run.config["seed"], run.config["total_steps"]) == ("CartPole-v1", 3, 2048)
    assert run.meta["spec"]["action"]["n"] == [2]
    assert run.meta["spec"]["horizon"] == 500
    assert run.meta["status"] == "finished"
    steps = run.columns["policy/kl"].steps
    assert (steps[1:] > steps[:-1]).all()
    assert run.columns["policy/entropy"].values.min() > 0
    assert [len(row["episodes"]) for row in run.evals] == [3] * 4
    assert run.columns["return/episodes"].values.sum() > 20
    lengths = run.columns["return/length"].steps
    assert (lengths[1:] > lengths[:-1]).all(), "EvalCallback lets a step be written twice; a length stands there once"
    assert not [event for event in run.events if event.get("slug") == "steps-not-monotone"]


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize(("algo", "env"), [("DQN", "CartPole-v1"), ("SAC", "Pendulum-v1")])
def test_off_policy_runs_keep_their_temperature_apart(tmp_path, algo, env):
    program = f"""
    from stable_baselines3 import {algo}
    from relab.callbacks import SB3Callback
    {algo}("MlpPolicy", "{env}", learning_starts=200, seed=0, device="cpu").learn(1200, callback=SB3Callback("a"))
    """
    done = run_peer(program, tmp_path)
    assert done.returncode == 0, done.stderr
    run = history.load(tmp_path / "a")
    assert (run.config["algo"]["name"], run.config["algo"].get("ent_coef")) == (algo.lower(), None)
    assert "value/critic_loss" in run.columns
    assert "return/mean" in run.columns


@pytest.mark.slow
@needs_peers
def test_learn_called_again_goes_on_and_a_callback_may_end_it(tmp_path):
    program = """
    from stable_baselines3 import PPO
    from stable_baselines3.common.callbacks import BaseCallback
    from relab.callbacks import SB3Callback
    class Enough(BaseCallback):
        def _on_step(self):
            return self.num_timesteps < 300
    def model():
        return PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device="cpu")
    one, callback = model(), SB3Callback("again", every=64)
    one.learn(256, callback=callback)
    one.learn(256, callback=callback, reset_num_timesteps=False)
    one.learn(256, callback=callback)  # which counts from 0 again
    try:
        model().learn(256, callback=callback)
    except ValueError as error:
        print(error)
    one.learn(64, callback=SB3Callback("resumed"))
    model().learn(1024, callback=[SB3Callback("enough", every=64), Enough()])
    """
    done = run_peer(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "again holds a run" in done.stdout, "another model is another run"
    run = history.load(tmp_path / "again")
    steps = run.columns["policy/kl"].steps
    assert (steps[1:] > steps[:-1]).all()
    assert (steps[-1], run.config["total_steps"], run.meta["status"]) == (768, 768, "finished")
    assert [event["step"] for event in run.events if event["kind"] == "resume"] == [256, 512]
    assert history.load(tmp_path / "resumed").meta["resumed"]
    assert "run-incomplete" not in done.stderr
    assert [f.slug for f in examine(tmp_path / "enough").main] == []
    assert glance.own(os.fsencode(tmp_path / "enough")).status == "finished"


@pytest.mark.slow
@needs_peers
def test_the_lines_on_the_first_screen_of_the_readme_run_and_warn(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    block = next(part.split("```")[0] for part in text.split("```python\n")[1:] if "SB3Callback" in part)
    assert len(block.strip().splitlines()) <= 20
    assert text.index("SB3Callback") < 3000, "on the first screen"
    done = run_peer(block, tmp_path)
    assert done.returncode == 0, done.stderr
    warned = [
        line
        for line in done.stderr.splitlines()
        if line.startswith("relab at step") and "warning: steps-too-large since" in line
    ]
    assert len(warned) == 1
    assert "diverged in hasty" in done.stdout
    assert not [e for e in history.load(tmp_path / "runs" / "usual").events if e["kind"] == "warning"]


def test_the_line_that_the_readme_shows_is_the_line_that_is_told(tmp_path, monkeypatch):
    """Of a learning rate of 0.1 and one update of eleven with a KL of 21.2: the cause, not its symptom."""
    monkeypatch.setattr(watching, "SHARE", 1e9)
    said = []
    facts = {"learning_rate": 0.1, "total_timesteps": 25_000, "env_id": "CartPole-v1", "seed": 0}
    with Watch(str(tmp_path / "a"), facts, algo="ppo", every=6144, tell=lambda text, _: said.append(text)) as log:
        for update in range(2, 13):
            numbers = {"policy/kl": 21.2 if update == 2 else 0.0, "policy/clip_share": 0.1, "return/mean": 9.4}
            log.log(512 * update, **numbers)
    (line,) = [text for text in said if "steps-too-large" in text and "step 6,144" in text]
    assert line in (ROOT / "docs" / "callbacks.md").read_text()
    shown = next(row for row in (ROOT / "README.md").read_text().splitlines() if "relab at step" in row)
    assert line.startswith(shown.partition("# ")[2].removesuffix("..."))
