"""Does a loop over relab's own trainer judge on hidden seeds, name parents, go on after a kill, and guard its start?"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from relab.advise import score
from relab.formats.read import find
from relab.lab import loop
from relab.lab.loop import judge
from relab.lab.loop.drive import Looping
from relab.lab.loop.policy import RefusedError
from relab.record.run_folder import read_config, read_meta
from small_runs import run as train

TINY = "algo.envs: 8, algo.steps: 16, algo.epochs: 2, algo.minibatches: 2, eval.every: 256, eval.episodes: 4"
FILE = f"""
question: Is another rate better?
base: {{algo: ppo, env: cartpole, algo.lr: 0.0003, {TINY}}}
budget: 1024
metric: eval/return_det
hidden: 10
findings: false
sampler: sobol
seeds: {{noise: 3, first: 1, confirm: 3, again: 1}}
policy: {{allow: {{algo.lr: {{low: 1e-5, high: 1e-1, log: true}}}}}}
"""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def prepare(more: str = "", lines: list[str] | None = None) -> Looping:
    Path("l.yaml").write_text(FILE + more)
    said = [] if lines is None else lines
    return loop.prepare(loop.load(Path("l.yaml")), Path("loops/l"), 2, said.append)


def test_the_hidden_evaluation_is_the_same_for_every_run_and_leaves_no_trace_in_it(tmp_path: Path):
    train(tmp_path / "a", total_steps="256")
    before = sorted(path.name for path in (tmp_path / "a").iterdir()), (tmp_path / "a" / "events.jsonl").read_bytes()
    first, again, other = (judge.judge(tmp_path / "a", "latest", seed, 6, False) for seed in (1, 1, 2))
    assert first == again
    assert first["modes"] != other["modes"]
    assert first["modes"]["det"]["n"] == 6
    assert (
        sorted(path.name for path in (tmp_path / "a").iterdir()),
        (tmp_path / "a" / "events.jsonl").read_bytes(),
    ) == before


@pytest.mark.slow
def test_a_loop_over_the_trainer_judges_on_hidden_seeds_and_its_runs_name_their_parent():
    looping = prepare()
    looping.go(1)
    (trial,) = looping.state.trials
    cell = looping.arms.cells(trial.name, trial.first["seeds"])[0]
    meta = read_meta(cell.folder)
    assert meta["parent"] == "base-s0"
    assert meta["proposal"]["diff"] == trial.proposal["diff"]
    assert read_config(cell.folder)["algo"]["lr"] == trial.proposal["diff"]["algo.lr"]["to"]
    hidden = json.loads(Path(f"loops/l/hidden/{cell.folder.name}.json").read_text())
    assert looping.arms.number(cell).value == hidden["modes"]["det"]["mean"]
    (scored,) = score.collect(run.history for run in find.load_all("loops/l/runs").runs)
    assert scored.parent == "base-s0", "`relab next --history` knows it as well"


@pytest.mark.slow
def test_killed_while_runs_are_going_it_goes_on_and_no_finished_run_is_made_twice():
    prepare()
    command = [sys.executable, "-m", "relab.cli", "loop", "l.yaml", "--yes", "--runs", "1", "--workers", "2"]
    for seconds in (6.0, 12.0, 9.0):
        process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for _ in range(20):  # runs that outlived the loop come to their end by themselves
        if subprocess.run(command, capture_output=True, check=False).returncode == 0:
            break
        time.sleep(2)
    events = Counter(json.loads(line)["event"] for line in Path("loops/l/journal").read_text().splitlines())
    assert events["noise"] == 1
    for folder in Path("loops/l/runs").iterdir():
        assert read_meta(folder)["status"] == "finished"
        rows = [json.loads(line) for line in (folder / "events.jsonl").read_text().splitlines()]
        assert sum((row.get("kind") or row.get("event")) == "start" for row in rows) <= 1


@pytest.mark.slow
def test_a_start_that_nothing_vouches_for_is_refused_and_a_sound_one_begins_every_run():
    train(Path("runs/good"), total_steps="1024", algo__lr="0.003", eval__every="256")
    start = "resume_mode: continue\nresume_from: runs/good@best\n"
    pointer = Path("runs/good/checkpoints/best.json")
    sound = json.loads(pointer.read_text())
    pointer.write_text(json.dumps(sound | {"value": 1715.8}))
    with pytest.raises(RefusedError, match=r"range: eval/return_det is 1715\.8, and can be"):
        prepare(start)
    pointer.write_text(json.dumps(sound))
    looping = prepare(start.replace("@best", "@latest"))
    looping.measure_noise()
    assert all(read_config(path)["start_from"] == "runs/good@latest" for path in Path("loops/l/runs").iterdir())
