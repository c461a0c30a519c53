"""Does a record go on after whatever ended learn(), is no row lost or doubled, and is its end only said where known?"""

from __future__ import annotations

import pytest

from relab.record import history
from test_callbacks import needs_peers, run_peer

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
