"""Does relab keep the numbers of programs that keep nothing? The logger file, the console reader, relab capture."""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path

import pytest

from relab import cli, logger
from relab.formats.read import find
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
    ("line", "row"),
    [
        ("Step 1000 | reward: 22.3", (1000, "env_steps", {"return/mean": 22.3})),
        ("Episode 5 | return 12 | length 30", (5, "episodes", {"return/mean": 12.0, "return/length": 30.0})),
        ("iter 3: loss=0.2, ep_rew_mean=7.5", (3, "iteration", {"loss": 0.2, "return/mean_100": 7.5})),
        ("Episode 4/100 Reward: 6.0 Avg reward: 4", (4, "episodes", {"return/mean": 6.0, "avg_reward": 4.0})),
        ("episode: 10/1000, score: 34, e: 0.93", (10, "episodes", {"return/mean": 34.0, "e": 0.93})),
        ("2024-01-01 12:00:04,123 INFO step 4 loss 0.34 lr 1e-3", (4, "env_steps", {"loss": 0.34, "optim/lr": 1e-3})),
        ("{'loss': 0.25, 'step': 3, 'kl': tensor(0.5)}", (3, "env_steps", {"loss": 0.25, "policy/kl": 0.5})),
        ("episode 4 finished with a score of 4", (4, "episodes", {"return/mean": 4.0})),
        ("[  400/5000] reward=8.00 FPS: 1200it/s", (400, "iteration", {"return/mean": 8.0, "time/sps": 1200.0})),
        (" 45%|##  | 450/1000 [00:10<00:12, 45.0it/s, loss=0.3]", (450, "iteration", {"loss": 0.3})),
        (
            "[INFO] 12:30:11 Update 3/10 | Reward 12.5 | KL 0.01",
            (3, "updates", {"return/mean": 12.5, "policy/kl": 0.01}),
        ),
        ("step 7 reward -13.5 my_number 3", (7, "env_steps", {"return/mean": -13.5, "my_number": 3.0})),
    ],
)
def test_lines_as_programs_print_them(line, row):
    assert rows(line) == [row]


def test_a_line_without_a_step_belongs_to_the_last_step_that_was_named():
    text = "reward: 1\nLearning iteration 5/1500\n  Mean reward: 12.30\n  saved 3 files\nMean episode length: 33.0\n"
    assert rows(text) == [(5, "iteration", {"return/mean": 12.3}), (5, "iteration", {"return/length": 33.0})]


@pytest.mark.parametrize("line", ["a" * 9_000, "a " * 5_000, "step " * 2_000, "1" * 9_000 + " x"])
def test_long_lines_are_read_at_once(line):
    assert rows(line) == []


@pytest.mark.parametrize(
    "line",
    [
        "saved model at step 1000 to disk",
        "Step 1000 saved 3 files",
        "epoch 3 of 10",
        "loss=0.3",
        "step=12",
        "time: 12:30:11",
        "",
        "|||",
        "{not json}",
        "a=b",
    ],
)
def test_prose_makes_no_row(line):
    assert rows(line) == []


def test_the_logger_file_runs_on_python_3_8_without_dependencies():
    source = Path(logger.__file__).read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    top = {alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names}
    assert top <= {"errno", "functools", "json", "math", "os", "platform", "re", "sys", "time"}
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
    assert run.config == {"algo": {"lr": 3e-4, "name": "ppo"}, "env": {"name": "CartPole-v1"}, "seed": 3}
    assert run.meta["status"] == "finished"
    with pytest.raises(ValueError, match="must write into a new folder"):
        logger.Logger(str(tmp_path / "a"))


@dataclasses.dataclass
class Args:
    """As CleanRL's scripts have them."""

    env_id: str = "CartPole-v1"
    learning_rate: float = 2.5e-4
    clip_coef: float = 0.2
    exp_name: str = "try 3"
    net: dict = dataclasses.field(default_factory=lambda: {"width": 64})


@pytest.mark.parametrize("config", [Args(), argparse.Namespace(**vars(Args())), vars(Args())])
def test_settings_are_kept_under_the_names_that_rules_know(tmp_path, config):
    logger.Logger(str(tmp_path / "a"), config, seed=1, algo="PPO").close()
    run = find.load_all(tmp_path).runs[0].history
    assert run.config["algo"] == {"lr": 2.5e-4, "clip": 0.2, "name": "ppo"}
    assert (run.config["env"], run.config["foreign"]) == ({"name": "CartPole-v1"}, {"net.width": 64})
    assert (run.meta["spec"]["env"], run.meta["spec"]["horizon"]) == ("CartPole-v1", 500), "the table of levels is used"
    assert run.meta["places"] == {"exp_name": "try 3"}


def test_a_setting_that_two_parts_have_is_not_guessed(tmp_path):
    config = {"actor": {"lr": 1e-3}, "critic": {"lr": 1e-4}, "gamma": 0.9, "seed": 1, "env": "a"}
    logger.Logger(str(tmp_path / "a"), config, seed=2, env="b").close()
    run = history.load(tmp_path / "a")
    assert run.config["algo"] == {"gamma": 0.9}
    assert run.config["foreign"] == {"actor.lr": 1e-3, "critic.lr": 1e-4}
    assert (run.config["seed"], run.config["env"]["name"]) == (2, "b"), "what the call says wins"
    with pytest.raises(ValueError, match="must be a mapping"):
        logger.Logger(str(tmp_path / "b"), 3)


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


def test_where_no_number_was_understood_it_is_said_with_what_would_do(tmp_path, capfd):
    assert capture(tmp_path, "print('hello there')\nprint('token=hf_AAAABBBBCCCCDDDDEEEEFFFF')") == 0
    told = capfd.readouterr().err
    assert "0 numbers" in told
    assert "    hello there\n" in told
    assert "Step 1000 | reward: 22.3" in told
    assert "hf_AAAA" not in told


def test_a_program_that_prints_nothing_is_said_to(tmp_path, capfd):
    assert capture(tmp_path, "") == 0
    assert "0 numbers: the program printed nothing" in capfd.readouterr().err


def test_options_of_the_program_are_settings(tmp_path, capfd):
    (tmp_path / "p.py").write_text("for i in range(3): print(f'Step {i} | reward: {i}')")
    words = ["--runs", str(tmp_path / "runs"), "--name", "x", "--", sys.executable, str(tmp_path / "p.py")]
    assert cli.main(["capture", *words, "--learning-rate", "3e-4", "--seed=7", "--width", "64"]) == 0
    assert "kept 3 numbers (return/mean)" in capfd.readouterr().err
    run = history.load(tmp_path / "runs" / "x")
    assert run.config == {"algo": {"lr": 3e-4}, "seed": 7, "foreign": {"width": 64}}
    assert run.meta["seed"] == 7


def test_a_program_with_the_logger_writes_its_own_record(tmp_path, capfd):
    program = "from relab.logger import Logger\nlog = Logger(seed=1)\nlog.log(5, a=1.0)\n"
    program += "print('step=9 reward=1')\nlog.close()"
    assert capture(tmp_path, program) == 0
    run = history.load(tmp_path / "runs" / "x")
    assert run.columns["foreign/a"].steps.tolist() == [5]
    assert "return/mean" not in run.columns


HOSTILE = """
import sys
sys.stdout.write("x" * 5_000_000 + "\\n")
sys.stdout.write("step=1 reward=" + "9" * 5_000 + "\\n")
for value in ("1e308", "-1e400", "nan", "inf", "0x10", "1_000", "1e-400", "<img src=x>", "\\x1b[31m7\\x1b[0m"):
    print(f"step=2 reward={value}")
print("step=" + "9" * 400 + " reward=1")
print('{"step": 3, "reward": 1e999, "<script>alert(1)</script>": 5, "a": ' + "[" * 5000 + "]" * 5000 + "}")
print("step=4 \\x1b]0;owned\\x07<script>=1 reward=5 --token hf_abcdefghijklmnopqrstuvwxyz012345")
sys.stdout.buffer.write(b"\\xff\\xfe\\x00 step=5 reward=6\\n" + b"\\x00" * 100_000)
"""


def test_nothing_that_a_program_prints_harms_the_record_or_the_page(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.py").write_text(HOSTILE)
    words = [sys.executable, "p.py", "--api-key", "hf_abcdefghijklmnopqrstuvwxyz012345", "--name", "<img src=x>"]
    assert cli.main(["capture", "--name", "run", "--", *words]) == 0
    capfd.readouterr()
    for command in ("examine", "report", "note", "runs"):
        assert cli.main([command, "runs" if command == "runs" else "runs/run"]) == 0
    said = capfd.readouterr()
    assert "\x1b" not in said.out + said.err
    page = (tmp_path / "runs" / "run" / "report.html").read_text()
    assert "<img" not in page
    assert "<script" not in page
    kept = b"".join(path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file())
    assert b"hf_abc" not in kept
    assert "return/mean" in history.load(tmp_path / "runs" / "run").columns


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
        ("DQN", "CartPole-v1", "buffer_size=99", 2500, "value/critic_loss"),
    ],
)
def test_the_callback_keeps_what_stable_baselines3_logs(tmp_path, algo, env, more, steps, metric):
    (tmp_path / "relab_logger.py").write_text(Path(logger.__file__).read_text())  # as a user would: the file alone
    facts = {"here": str(tmp_path), "folder": str(tmp_path / "a")}
    program = TRAIN.format(algo=algo, env=env, more=more, steps=steps, **facts)
    subprocess.run([str(PEERS), "-c", program], check=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    run = history.load(tmp_path / "a")
    assert (run.meta["status"], run.meta["seed"], run.meta["spec"]["env"]) == ("finished", 3, env)
    assert len(run.columns[metric].steps) >= 2
    kept = {"PPO": ("steps", 256), "DQN": ("gamma", 0.99)}[algo]
    assert run.config["algo"][kept[0]] == kept[1]
    assert run.config["algo"]["lr"] > 0
    assert run.config["total_steps"] == steps
    assert run.meta["spec"]["action"]["n"] == [2]
    assert (run.columns["return/mean_100"].steps[1:] > run.columns["return/mean_100"].steps[:-1]).all()
