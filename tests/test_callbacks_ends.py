"""Does a record go on after whatever ended learn(), is no row lost or doubled, and is its end only said where known?"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from relab.callbacks import Watch, watching
from relab.record import history
from test_callbacks import needs_peers, run_peer
from where import ROOT

SB3 = """
import sys
from relab.callbacks import SB3Callback
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
class At(BaseCallback):
    def __init__(self, step, do):
        super().__init__()
        self.step, self.do = step, do
    def _on_step(self):
        if self.num_timesteps == self.step:
            self.step = -1
            return self.do()
        return True
def stop():
    raise KeyboardInterrupt
def model(**more):
    return PPO("MlpPolicy", "CartPole-v1", **{"n_steps": 64, "n_epochs": 1, "seed": 0, "device": "cpu", **more})
one, again = model(), SB3Callback("a", every=64)
"""


def sb3(tmp_path, program):
    done = run_peer(SB3 + program, tmp_path)
    assert done.returncode == 0, done.stderr
    return history.load(tmp_path / "a"), done


def plain(tmp_path, program, code=0):
    """A program without Stable-Baselines3, whose record is `a`."""
    begin = "import os, sys, time\nfrom relab.callbacks import Watch\n"
    env = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT / "src"), "HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", begin + textwrap.dedent(program)], check=False, env=env, cwd=tmp_path,
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == code, done.stderr
    return history.load(tmp_path / "a"), done


CHILDREN = ["sys.exit(0)", "raise RuntimeError", "log.log(3, x=1.0)", "log.close()", "log.record.flush()"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork")
@pytest.mark.parametrize("child", CHILDREN)
def test_a_child_that_was_forked_writes_nothing_into_its_parents_record(tmp_path, child):
    program = f"""
    with Watch("a", algo="ppo") as log:
        log.log(1, x=1.0)
        log.log(2, x=2.0)  # which waits to be written
        if not os.fork():
            {child}
            sys.exit(0)
        os.wait()
        log.log(4, x=4.0)
    """
    run, _ = plain(tmp_path, program)
    assert run.columns["foreign/x"].steps.tolist() == [1, 2, 4]
    assert [event["kind"] for event in run.events] == ["start", "finish"]
    plain(tmp_path, f"""
    log = Watch("b", algo="ppo")
    log.log(1, x=1.0)
    log.log(2, x=2.0)
    if not os.fork():
        {child}
        sys.exit(0)
    os.wait()
    log.close()
    """)  # fmt: skip
    run = history.load(tmp_path / "b")
    assert run.columns["foreign/x"].steps.tolist() == [1, 2]
    assert [event["kind"] for event in run.events] == ["start", "finish"]


def test_a_row_waits_for_no_other_one_and_none_is_lost_after_the_end(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "TOGETHER_S", 0.2)
    log = Watch(str(tmp_path / "a"), algo="ppo")
    rows = tmp_path / "a" / "metrics.jsonl"
    for step in (1, 2, 3):
        log.log(step, x=1.0)
    assert len(rows.read_text().splitlines()) < 3, "they are written together"
    until = time.monotonic() + 20
    while len(rows.read_text().splitlines()) < 3 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(rows.read_text().splitlines()) == 3, "and kill -9 would lose none of them now"
    log.log(4, x=1.0)
    log.close()
    monkeypatch.setattr(watching, "TOGETHER_S", 1000.0)
    for step in (5, 6):
        log.log(step, x=1.0)
        assert len(rows.read_text().splitlines()) == step
    log.close()
    log.record.release()


def test_threads_that_share_a_watch_neither_lose_nor_double_a_row(tmp_path, monkeypatch):
    monkeypatch.setattr(watching, "TOGETHER_S", 0.0005)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with Watch(str(tmp_path / "a"), algo="ppo", every=10**9) as log:

            def write(which):
                for k in range(500):
                    log.log(8 * k + which, x=1.0)

            threads = [threading.Thread(target=write, args=(which,)) for which in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
    finally:
        sys.setswitchinterval(before)
    lines = (tmp_path / "a" / "metrics.jsonl").read_text().splitlines()
    assert sorted(json.loads(line)["step"] for line in lines) == list(range(4000))
    assert not log.faults


AGAIN = {
    "ctrl-c": """
one.set_logger(configure(None, []))  # which every learn() of this model uses
try:
    one.learn(256, callback=[again, At(200, stop)])
except KeyboardInterrupt:
    one.learn(256, callback=again)
""",
    "tell": """
one = model(learning_rate=0.1, n_epochs=10)
def tell(text, finding):
    again.tell = again.watch.tell = lambda text, finding: None
    raise RuntimeError(text)
again.tell = tell
one.set_logger(configure(None, []))
try:
    one.learn(256, callback=again)  # at its end at the latest
except RuntimeError:
    one.learn(256, callback=again)
""",
}


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize("how", AGAIN)
def test_learn_called_again_after_what_ended_it_goes_on_in_the_same_record(tmp_path, how):
    run, _ = sb3(tmp_path, AGAIN[how])
    steps = run.columns["optim/lr"].steps
    assert (steps[1:] > steps[:-1]).all(), "and no row is written twice"
    assert run.meta["status"] == "finished"
    assert len([event for event in run.events if event["kind"] == "resume"]) == 1


@pytest.mark.slow
@needs_peers
def test_a_learn_that_was_broken_off_is_not_said_to_have_finished(tmp_path):
    run, _ = sb3(tmp_path, """
try:
    one.learn(256, callback=[again, At(200, stop)])
except KeyboardInterrupt:
    one.save("saved")
""")  # fmt: skip
    assert run.meta["status"] == "interrupted"
    assert run.events[-1]["message"] == watching.UNCLOSED


PIECES = """
true = 0
for more in {}, {"reset_num_timesteps": False}, {}, {"reset_num_timesteps": False}, {"reset_num_timesteps": False}:
    one.learn(128, callback=again, **more)
    true += 128
    assert (again.watch.record.last, again.watch.record.settings["total_steps"]) == (true, true), true
"""
MID_ROLLOUT = """
one = model(n_steps=128)
one.learn(1000, callback=[again, At(200, lambda: False)])
one.learn(128, callback=again)
"""


@pytest.mark.slow
@needs_peers
@pytest.mark.parametrize(("program", "steps"), [(PIECES, 640), (MID_ROLLOUT, 328)], ids=["pieces", "mid-rollout"])
def test_steps_of_several_learns_are_those_that_were_trained(tmp_path, program, steps):
    run, _ = sb3(tmp_path, program)
    assert max(column.steps[-1] for column in run.columns.values()) == steps
    assert run.config["total_steps"] == steps
