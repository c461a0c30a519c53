"""Does relab keep the numbers of programs that keep nothing? The logger file, the console reader, relab capture."""

from __future__ import annotations

import ast
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from relab import cli, logger
from relab.formats.read.console import Console
from relab.record import history
from where import ROOT

SB3 = """\
----------------------------------
| rollout/           |           |
|    ep_len_mean     | 21.3      |
|    ep_rew_mean     | 22.5      |
| time/              |           |
|    total_timesteps | 2048      |
| train/             |           |
|    approx_kl       | 0.0087    |
----------------------------------
"""


def rows(text: str) -> list:
    console = Console()
    return [row for line in text.splitlines() for row in console.feed(line)]


def test_numbers_are_read_from_what_programs_print():
    assert rows(SB3) == [(2048, "env_steps", {"return/length": 21.3, "return/mean_100": 22.5, "policy/kl": 0.0087})]
    assert rows('{"step": 3, "loss": {"value": 2.0}}') == [(3, "env_steps", {"value/loss": 2.0})]
    assert rows("\x1b[32mglobal_step=1,024, episodic_return=19.0") == [(1024, "env_steps", {"return/mean": 19.0})]
    ((step, axis, numbers),) = rows("iter: 7 entropy: nan speed: 12")
    assert (step, axis) == (7, "iteration")
    assert math.isnan(numbers["policy/entropy"])


@pytest.mark.parametrize(
    "line", ["epoch 3 of 10", "loss=0.3", "step=12", "time: 12:30:11", "", "|||", "{not json}", "a=b"]
)
def test_prose_makes_no_row(line):
    assert rows(line) == []


def test_the_logger_file_runs_on_python_3_8_without_dependencies():
    source = Path(logger.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    top = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert top <= {"errno", "json", "math", "os", "platform", "re", "sys", "time"}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)]


def test_what_the_logger_writes_is_a_run(tmp_path):
    with logger.Logger(str(tmp_path / "a"), {"lr": 3e-4}, seed=3, env="CartPole-v1", algo="ppo") as log:
        log.log(10, **{"return/mean": 1.5, "mine": math.inf, "policy/kl": float("nan")})
        log.evaluation(10, [1.0, 3.0], [1, 3])
    run = history.load(tmp_path / "a")
    assert not [p for p in run.problems if "is missing" not in p.message]
    assert run.columns["foreign/mine"].values[0] == math.inf
    assert math.isnan(run.columns["policy/kl"].values[0])
    assert run.columns["eval/return_det"].values.tolist() == [2.0]
    assert run.config == {"foreign": {"lr": 3e-4}, "algo": {"name": "ppo"}, "env": {"name": "CartPole-v1"}, "seed": 3}
    assert run.meta["status"] == "finished"
    with pytest.raises(ValueError, match="must write into a new folder"):
        logger.Logger(str(tmp_path / "a"))


def test_a_run_that_breaks_says_so(tmp_path):
    with pytest.raises(ZeroDivisionError), logger.Logger(str(tmp_path / "a")) as log:
        log.log(1, x=1 / 0)
    assert history.load(tmp_path / "a").meta["status"] == "failed"


def test_pufferlibs_protocol(tmp_path):
    log = logger.PufferLogger(str(tmp_path / "a"))
    log.log({"agent_steps": 64, "losses/entropy": 1.0}, 64)
    log.close("model.pt")
    run = history.load(tmp_path / "a")
    assert log.run_id == "a"
    assert run.columns["foreign/losses/entropy"].steps.tolist() == [64]


def capture(tmp_path: Path, program: str, *words: str) -> int:
    (tmp_path / "program.py").write_text(program)
    where = ["--runs", str(tmp_path / "runs"), "--name", "x", *words]
    return cli.main(["capture", *where, "--", sys.executable, str(tmp_path / "program.py")])


def test_printed_numbers_become_a_run(tmp_path, capfd):
    code = capture(
        tmp_path, "for i in range(3): print(f'step={i} reward={i * 2.0}')\nraise SystemExit(3)", "--seed", "5"
    )
    assert code == 3
    assert "step=2 reward=4.0" in capfd.readouterr().out
    run = history.load(tmp_path / "runs" / "x")
    assert run.columns["return/mean"].values.tolist() == [0.0, 2.0, 4.0]
    assert (run.meta["status"], run.meta["exit_code"], run.meta["seed"]) == ("failed", 3, 5)
    assert "program.py" in run.meta["command"]


def test_a_program_with_the_logger_writes_its_own_record(tmp_path, capfd):
    program = "from relab.logger import Logger\nlog = Logger(seed=1)\nlog.log(5, a=1.0)\n"
    program += "print('step=9 reward=1')\nlog.close()"
    assert capture(tmp_path, program) == 0
    run = history.load(tmp_path / "runs" / "x")
    assert run.columns["foreign/a"].steps.tolist() == [5]
    assert "return/mean" not in run.columns


def test_a_program_that_does_not_start_leaves_nothing(tmp_path, capsys):
    assert cli.main(["capture", "--runs", str(tmp_path / "r"), "--name", "x", "--", str(tmp_path / "no")]) == 64
    assert "could not be started" in capsys.readouterr().err
    assert not (tmp_path / "r" / "x").exists()
    assert cli.main(["capture"]) == 64


def test_after_kill_9_the_rows_are_there(tmp_path):
    program = f"from relab.logger import Logger\nimport os\nlog = Logger({str(tmp_path / 'a')!r})\n"
    program += "log.log(1, a=1.0)\nlog.log(2, a=2.0)\nos.kill(os.getpid(), 9)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == -9
    run = history.load(tmp_path / "a")
    assert run.columns["foreign/a"].values.tolist() == [1.0, 2.0]
    assert json.loads((tmp_path / "a" / "meta.json").read_text())["status"] == "running"


PEERS = ROOT / ".venv-sb3" / "bin" / "python"
TRAIN = """
import sys; sys.path.insert(0, {here!r})
from relab_logger import sb3_callback
import torch; torch.set_num_threads(1)
from stable_baselines3 import {algo}
{algo}("MlpPolicy", "{env}", {more}, seed=3, device="cpu").learn({steps}, callback=sb3_callback({folder!r}))
"""


@pytest.mark.slow
@pytest.mark.skipif(not PEERS.exists(), reason="Stable-Baselines3 is not there: make bench-peers")
@pytest.mark.parametrize(
    ("algo", "env", "more", "steps", "metric"),
    [
        ("PPO", "CartPole-v1", "n_steps=256", 1500, "policy/kl"),
        ("DQN", "CartPole-v1", "buffer_size=99", 2500, "foreign/train/loss"),
    ],
)
def test_the_callback_keeps_what_stable_baselines3_logs(tmp_path, algo, env, more, steps, metric):
    (tmp_path / "relab_logger.py").write_text(Path(logger.__file__).read_text())  # as a user would: the file alone
    facts = {"here": str(tmp_path), "folder": str(tmp_path / "a")}
    program = TRAIN.format(algo=algo, env=env, more=more, steps=steps, **facts)
    subprocess.run([str(PEERS), "-c", program], check=True, env={"OMP_NUM_THREADS": "1", "PATH": "/usr/bin"})
    run = history.load(tmp_path / "a")
    assert (run.meta["status"], run.meta["seed"], run.meta["spec"]["env"]) == ("finished", 3, env)
    assert len(run.columns[metric].steps) >= 2
    assert (run.columns["return/mean_100"].steps[1:] > run.columns["return/mean_100"].steps[:-1]).all()
