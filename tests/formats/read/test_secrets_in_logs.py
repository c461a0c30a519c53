"""Does a secret that a log holds in any of its strings reach a terminal, a page or an export, whatever the format?"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from test_conformance import copy, formats

from relab import cli
from relab.base.jsonl import Problem
from relab.formats.read import find
from relab.formats.read.tfevents import Writer
from relab.record.history import Column, History

SECRETS = ("ghp_A1b2C3d4E5f6G7h8I9j0K1l2M3n4", "hunter2secret9")
TEXT = f"x\x1b[31m<img src=x> {SECRETS[0]} password={SECRETS[1]}"
PLACE = f"run {SECRETS[0]} password={SECRETS[1]}"
SETTINGS = {
    TEXT: TEXT,
    "env": TEXT,
    "notes": TEXT,
    "host": TEXT,
    "password": SECRETS[1],
    "nested": {"token": SECRETS[0]},
}
ROWS = 20


def board(folder: Path, tag: str) -> None:
    with Writer(folder, wall=1.7e9) as writer:
        table = "".join(f"|{key}|{value}|\n" for key, value in SETTINGS.items())
        writer.text("hyperparameters", f"|param|value|\n|-|-|\n{table}")
        for i in range(ROWS):
            for name in (tag, f"custom/{TEXT}"):
                writer.scalar(name, float(i), 1000 * i, 1.7e9 + i)


def sheet(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, TEXT, "odd"])
        writer.writerows([1000 * i, *[i] * len(names), TEXT if i == 5 else i] for i in range(ROWS))
    for name in ("config.json", "args.yml"):
        (path.parent / name).write_text(json.dumps(SETTINGS))


@pytest.fixture
def logs(tmp_path, monkeypatch) -> Path:
    """A run of each of the usual tools, all of whose strings hold secrets."""
    monkeypatch.chdir(tmp_path)
    board(tmp_path / "logs" / "board" / PLACE, "rollout/ep_rew_mean")
    board(tmp_path / "logs" / "cleanrl" / f"CartPole-v1__ppo__1__{PLACE}", "charts/episodic_return")
    sheet(tmp_path / "logs" / "csv" / PLACE / "log.csv", "step", "reward")
    sheet(tmp_path / "logs" / "sb3" / PLACE / "progress.csv", "time/total_timesteps", "rollout/ep_rew_mean")
    lines = tmp_path / "logs" / "lines" / PLACE / "metrics.jsonl"
    lines.parent.mkdir(parents=True)
    lines.write_text("".join(json.dumps({"step": i, "reward": i, TEXT: i, "env": TEXT}) + "\n" for i in range(ROWS)))
    trial = tmp_path / "logs" / "ray" / f"PPO_{PLACE}" / "result.json"
    trial.parent.mkdir(parents=True)
    row = {"hostname": TEXT, "config": SETTINGS, "info": {"learner": {TEXT: 1.0}}}
    trial.write_text("".join(json.dumps({**row, "training_iteration": i, "timesteps_total": 100 * i,
                                         "episode_reward_mean": i}) + "\n" for i in range(ROWS)))  # fmt: skip
    return tmp_path / "logs"


@pytest.mark.parametrize("line", ["examine -v", "examine --show-mapping", "examine --json", "runs", "note", "next"])
def test_no_command_prints_a_secret(logs, line, capsys):
    word, *more = line.split()
    cli.main([word, "logs", *more])
    shown = capsys.readouterr()
    assert not [s for s in SECRETS if s in shown.out + shown.err]
    assert "\x1b" not in shown.out + shown.err


def test_no_page_and_no_export_holds_a_secret(logs, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    cli.main(["report", "logs", "--out", "out/page.html"])
    for kind in ("csv", "tensorboard"):
        cli.main(["convert", "logs", "--to", kind, "--out", f"out/{kind}"])
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(files) > 10
    for path in files:
        assert not [s for s in SECRETS if s in str(path) or s.encode() in path.read_bytes()], path
    assert "<img src=x" not in (tmp_path / "out" / "page.html").read_text()


@formats
def test_whatever_an_importer_reads_is_masked(name, tmp_path, monkeypatch):
    """Each format goes through the one door, where names, settings, facts and remarks are masked."""
    module = find.importer(name)
    plain = module.read

    def spoilt(source) -> History:
        history = plain(source)
        steps = next((column.steps for column in history.columns.values()), Column([0], [0.0]).steps)
        history.columns[f"foreign/{TEXT}"] = Column(steps, steps * 1.0)
        history.axes[f"foreign/{TEXT}"], history.mapping[TEXT] = "env_steps", f"foreign/{TEXT}"
        history.config["foreign"] = {TEXT: TEXT, "token": SECRETS[0]}
        history.problems.append(Problem(TEXT, None, TEXT))
        history.meta["command"] = f"train.py --api-key {SECRETS[0]} --password {SECRETS[1]}"
        return history

    monkeypatch.setattr(module, "read", spoilt)
    target = copy(name, tmp_path)
    loaded = find.load_all(target)
    assert loaded.runs
    for run in loaded.runs:
        history = run.history
        held = repr((history.columns.keys(), history.axes, history.mapping, history.config, history.problems,
                     history.meta.get("command"), run.name))  # fmt: skip
        assert not [s for s in SECRETS if s in held]
        assert set(history.mapping.values()) <= set(history.columns)
