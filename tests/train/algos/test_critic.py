"""Does a critic that is fitted to a policy's returns know the known values, and stay what it was to fine-tuning?"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from relab import cli
from relab.base.jsonl import read_jsonl
from relab.record.history import load
from relab.runs.sentences import sentence
from relab.runs.verdict import verdict_of
from relab.train import checkpoint
from relab.train.fresh import load_agent
from small_runs import run

SMALL = {"algo": "critic", "env": "ladder-discount", "total_steps": "40", "algo__envs": "20", "algo__steps": "21",
         "algo__hidden": "[16]", "algo__minibatches": "7", "algo__lr": "0.01", "eval__every": "0",
         "eval__episodes": "2"}  # fmt: skip


def test_it_learns_the_known_values_and_leaves_the_policy(tmp_path: Path) -> None:
    """`discount` is worth gamma, then 1; the last rows of each world, whose episode is not over, are left out."""
    run(tmp_path / "v", **SMALL)
    _, _, agent, _ = load_agent(tmp_path / "v", "latest")
    v = agent.value(np.array([[0.0], [1.0]], np.float32), np.zeros((2, 0), np.float32))
    np.testing.assert_allclose(v, [0.8, 1.0], atol=0.02)
    before, after = (checkpoint.load(tmp_path / "v" / "checkpoints", step)[0]["params"] for step in ("0", "latest"))
    assert all(np.array_equal(before[name], after[name]) for name in before if name.startswith("actor"))
    rows = read_jsonl(tmp_path / "v" / "metrics.jsonl")[0]
    assert rows[-1]["value/val_loss"] < 1e-3 < rows[0]["value/val_loss"]
    assert rows[-1]["data/transitions"] == 20 * 20
    assert rows[-1]["data/env_steps"] == 20 * 21
    meta = json.loads((tmp_path / "v" / "meta.json").read_text())
    assert rows[-1]["data/sim_steps"] == 20 * 21 + 2 * 2 * 2, "two modes of two episodes of two steps, at the start"
    assert meta["sim_steps"] == 20 * 21 + 2 * 2 * 2 * 2, "and at the end, which no row follows"


def test_it_is_judged_by_what_it_explains_in_worlds_that_were_held_out(tmp_path: Path, capsys) -> None:
    """Not by its policy, which is as good before and after: no best evaluation, no solved start, no `relab eval`."""
    run(tmp_path / "v", **SMALL)
    verdict, folder = verdict_of(load(tmp_path / "v")), tmp_path / "v"
    assert (verdict.kind, verdict.learned) == ("fit", True)
    assert verdict.fit is not None
    assert sentence(verdict).startswith("The critic explains 100 % of the variance of returns in held-out worlds (mean")
    assert (verdict.fit.rows, verdict.fit.episodes) == (2 * 20, 2 * 10)  # worlds 0 and 10, of 21 steps
    assert not (folder / "checkpoints" / "best.json").exists()
    assert cli.main(["examine", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "start-already-solved" not in shown
    assert "explains 100 %" in shown
    assert cli.main(["next", str(folder)]) == 0
    assert f"env=ladder-discount-v1 critic_from={folder}` begins with it" in " ".join(capsys.readouterr().out.split())


def test_its_screen_shows_the_held_out_error_and_what_it_is_for(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert (
        cli.main(["train", "ppo", "env=ladder-discount", "hidden=[16]", "total_steps=512", "--name", "p", "--quiet"])
        == 0
    )
    words = [f"{key.replace('__', '.')}={value}" for key, value in SMALL.items() if key != "algo"]
    capsys.readouterr()
    assert cli.main(["train", "critic", *words, "start_from=runs/p", "--name", "v"]) == 0
    shown = capsys.readouterr().out
    assert [word in shown for word in ("  value/val_loss ", "  value/explained_variance 1", "best so far")] == [1, 1, 0]
    assert "updates per iteration 7\n" in shown
    assert "of the policy, which stays as it is" in shown
    assert "next: relab train finetune env=ladder-discount-v1 critic_from=runs/v" in shown


def test_fine_tuning_begins_with_it(tmp_path: Path) -> None:
    run(tmp_path / "v", **SMALL)
    fitted = checkpoint.load(tmp_path / "v" / "checkpoints", "latest")[0]["params"]
    run(tmp_path / "tuned", algo="finetune", env="ladder-discount", total_steps="1", algo__envs="4", algo__steps="4",
        algo__hidden="[16]", algo__minibatches="2", eval__every="0", algo__critic_from="v")  # fmt: skip
    begun = checkpoint.load(tmp_path / "tuned" / "checkpoints", "0")[0]["params"]
    np.testing.assert_array_equal(begun["critic/0/weight"], fitted["critic/0/weight"])
