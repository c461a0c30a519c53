"""Can anything that relab does, or gets, end a user's training? Full disks, faults, odd names, steps and numbers."""

from __future__ import annotations

import argparse
import errno
import io
import math
import sys

import pytest

from relab import logger
from relab.callbacks import Watch, watch, watching
from relab.callbacks.watching import Record
from relab.cli import main
from relab.record import history
from test_callbacks import CLEANRL, PEERS, Tape, run_peer, train

BAD = '"><img src=x onerror=alert(1)>\x1b[31m\u202e\n'
NAMES = [
    "step",
    "self",
    "axis",
    "metrics",
    "",
    " ",
    BAD,
    "../../etc/passwd",
    "a" * 100_000,
    "losses/approx_kl\x00",
    "é",
]
NUMBERS = [1e308, -1e308, math.nan, math.inf, -math.inf, 5e-324, True, 10**400]
STEPS = [math.nan, math.inf, "x", None, 2**70, -5, 1.5, [1]]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(watching, "SHARE", 1e9)  # look at every chance


def full_after(monkeypatch, rows: int) -> None:
    """A disk that has room for so many rows."""
    append, left = Record._append, [rows]

    def limited(self, name, row):
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, "No space left on device", name)
        append(self, name, row)

    monkeypatch.setattr(Record, "_append", limited)


def test_a_full_disk_ends_no_training_and_is_said_once(tmp_path, monkeypatch, capsys):
    full_after(monkeypatch, 20)
    writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", every=512)
    train(writer, 20.0)
    writer.close()
    assert len(writer.writer.rows) == 200
    assert writer.writer.closed
    said = capsys.readouterr().err
    assert said.count("a row was not kept (OSError: [Errno 28] No space left on device") == 1
    assert "training goes on" in said
    assert len(history.load(tmp_path / "a").columns["policy/kl"].values) > 5, "what was kept can be read"


def test_a_fault_of_relab_ends_no_training_and_rows_are_still_kept(tmp_path, monkeypatch, capsys):
    calls = []

    def broken(folder):
        calls.append(folder)
        raise RuntimeError("a rule that nobody foresaw")

    monkeypatch.setattr(watching, "examine", broken)
    with Watch(str(tmp_path / "a"), algo="ppo", every=1) as log:
        for step in range(1, 50):
            log.log(step, **{"return/mean": 1.0})
    assert len(calls) == 2, "once while it trains, once at its end"
    said = capsys.readouterr().err
    assert said.count("relab cannot look at this run while it trains (RuntimeError: a rule that nobody foresaw") == 1
    run = history.load(tmp_path / "a")
    assert (len(run.columns["return/mean"].values), run.meta["status"]) == (49, "finished")


class Broken(io.StringIO):
    def write(self, text):
        raise BrokenPipeError(errno.EPIPE, "Broken pipe")


def closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [Broken, closed, lambda: None], ids=["pipe", "closed", "none"])
def test_a_stderr_that_cannot_be_written_ends_no_training(stream, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "stderr", stream())
    writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", every=512)
    train(writer, 20.0)
    with writer.relab.unharmed("a row was not kept"):
        raise OSError
    lost = logger._Sb3Rows.__new__(logger._Sb3Rows)
    lost.lost = False
    lost._unharmed(stop)
    writer.close()
    assert writer.relab.warned
    assert history.load(tmp_path / "a").meta["status"] == "finished"
    assert capsys.readouterr().out == "", "nor does it come to stdout instead"


def stop():
    raise RuntimeError


def test_what_the_users_own_tell_raises_stops_the_training(tmp_path):
    def stop(text, finding):
        raise KeyboardInterrupt if finding.slug == "never" else RuntimeError(text)

    writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", every=512, tell=stop)
    with pytest.raises(RuntimeError, match="relab at step"):
        train(writer, 20.0)
    writer.relab.tell = lambda text, finding: None
    writer.close()


@pytest.mark.parametrize("name", NAMES)
def test_no_name_of_a_number_ends_a_training(name, tmp_path, capsys):
    with_writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", every=1)
    for step in range(1, 30):
        with_writer.add_scalar(name, step, step)
        with_writer.add_scalar("losses/approx_kl", 0.01, step)
    with_writer.close()
    said = capsys.readouterr().err
    assert "not kept" not in said
    assert "\x1b" not in said
    assert len(history.load(tmp_path / "a").columns) == 2


@pytest.mark.parametrize("value", NUMBERS)
def test_no_number_ends_a_training(value, tmp_path, capsys):
    writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", every=1)
    for step in range(1, 20):
        writer.add_scalar("charts/episodic_return", value, step)
        writer.add_scalar("charts/episodic_return", value, step)
    writer.close()
    rows = history.load(tmp_path / "a").columns
    kept = len(rows["return/mean"].values) if rows else 0
    assert kept == (0 if value == 10**400 else 19)
    assert ("a number was not kept" in capsys.readouterr().err) == (kept == 0)


@pytest.mark.parametrize("step", STEPS)
def test_no_step_ends_a_training(step, tmp_path):
    writer = watch(Tape(), str(tmp_path / "a"), CLEANRL, algo="ppo", every=1)
    for good in range(1, 10):
        writer.add_scalar("losses/approx_kl", 0.01, good)
        writer.add_scalar("losses/approx_kl", 0.01, step)
    writer.close()
    assert len(history.load(tmp_path / "a").columns["policy/kl"].values) >= 1
    with Watch(str(tmp_path / "b"), algo="ppo", every=1) as log:
        log.log(1, **{"policy/kl": 0.1})
        log.log(step, **{"policy/kl": 0.1, "text": "no number", "list": [1, 2]})
        log.evaluation(step, [1.0, "x"])
    assert history.load(tmp_path / "b").meta["status"] == "finished"


def test_an_error_of_the_training_is_not_hidden_by_one_of_the_record(tmp_path, monkeypatch):
    def training():
        with Watch(str(tmp_path / "a")) as log:
            log.log(1, **{"return/mean": 1.0})
            full_after(monkeypatch, 0)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        training()


def test_a_folder_belongs_to_one_run_also_before_its_first_row(tmp_path):
    first = Watch(str(tmp_path / "a"), algo="ppo")
    with pytest.raises(ValueError, match="holds a run; choose another name"):
        Watch(str(tmp_path / "a"), algo="ppo")
    first.log(1, **{"return/mean": 1.0})
    first.close()
    assert history.load(tmp_path / "a").columns["return/mean"].values.tolist() == [1.0]


def test_hostile_settings_are_text_on_every_page_and_no_secret_is_kept(tmp_path, monkeypatch, capsys):
    token = "hf_abcdefghijklmnopqrstuvwxyz012345"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["train.py", f"--token={token}", BAD])
    args = {
        "learning_rate": 1e308,
        "env_id": BAD,
        "note": BAD,
        "api_key": token,
        BAD: BAD,
        f"x {token}": 1,
        "n": 10**30,
    }
    for seed in range(2):
        writer = watch(Tape(), f"runs/x{seed}", argparse.Namespace(**args, seed=seed), algo=BAD, every=512)
        train(writer, 20.0)
        writer.close()
    for command in ("examine", "report", "compare", "note", "next", "runs"):
        word = "runs/x0" if command == "note" else "runs"
        assert main([command, word]) in (0, 64), command
    out = capsys.readouterr()
    assert "\x1b[31m" not in out.out + out.err
    assert "\u202e" not in out.out + out.err
    page = (tmp_path / "runs" / "report.html").read_text()
    assert "<img" not in page
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert token.encode() not in kept
    assert token not in out.out + out.err


FULL = """
import errno, sys, types
from relab.callbacks import SB3Callback
from relab.callbacks.watching import Record
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import configure
append, left = Record._append, [8]
def limited(self, name, row):
    left[0] -= 1
    if left[0] < 0:
        raise OSError(errno.ENOSPC, "No space left on device")
    append(self, name, row)
Record._append = limited
class Meddler(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == 300:
            self.model.set_logger(configure(None, []))
            self.locals["infos"][0]["episode"] = None
        return True
model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, seed=0, device="cpu")
model.learn(512, callback=[Meddler(), SB3Callback(sys.argv[1], every=64)])
print("trained", model.num_timesteps)
"""


@pytest.mark.slow
@pytest.mark.skipif(not PEERS.exists(), reason="Stable-Baselines3 is not there: make bench-peers")
def test_stable_baselines3_trains_to_its_end_whatever_happens_to_the_record(tmp_path):
    done = run_peer(FULL.replace("sys.argv[1]", '"runs/a"'), tmp_path)
    assert "trained 512" in done.stdout, done.stderr
    assert "training goes on" in done.stderr


ODD = """
import numpy as np
from relab.callbacks import SB3Callback
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback
class Odd(BaseCallback):
    callbacks = 3
    def _on_step(self):
        odd = {"int": 10**400, "time": np.timedelta64(5, "s"), "complex": np.complex128(5), "two": 2}
        for name, value in odd.items():
            self.logger.record(f"odd/{name}", value)
        return True
model = PPO("MlpPolicy", "CartPole-v1", n_steps=64, n_epochs=1, seed=0, device="cpu",
            learning_rate=lambda left: 1e-3 if left else 1 / 0)
model.learn(200, callback=[Odd(), SB3Callback("a", every=64)])
print("trained", model.num_timesteps)
"""


@pytest.mark.slow
@pytest.mark.skipif(not PEERS.exists(), reason="Stable-Baselines3 is not there: make bench-peers")
def test_what_cannot_be_kept_of_a_model_ends_no_training_and_takes_nothing_with_it(tmp_path):
    done = run_peer(ODD, tmp_path)
    assert "trained 256" in done.stdout, done.stderr
    assert done.stderr.count("a number was not kept") == 1
    run = history.load(tmp_path / "a")
    assert run.columns["foreign/odd/two"].values.tolist() == [2.0] * 4
    assert "foreign/odd/int" not in run.columns
    assert "lr" not in run.config["algo"]


def test_names_of_numbers_and_settings_keep_no_secret(tmp_path):
    token = "hf_abcdefghijklmnopqrstuvwxyz012345"
    record = logger.Logger(str(tmp_path / "run"), config={f"key {token}": 1})
    record.row(1, {f"loss {token}": 1.0, "password=hunter2secret9": 2.0})
    record.close()
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert token.encode() not in kept
    assert b"hunter2secret9" not in kept
