"""Does a schedule steer a real run? Stages reach the worlds, evaluations keep apart, gates decide, a kill is safe."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from relab.base.jsonl import read_jsonl
from relab.config import layers as config
from relab.config.envs import Herd
from relab.record import history
from relab.report.schedule import schedule as section
from relab.runs.grouping import load
from relab.train import fresh, rollout, session, steering
from relab.train.envs.base import Worlds
from relab.train.envs.herd import Herd as HerdEnv
from relab.train.screen import Silent
from small_runs import fingerprint, resolve, run
from where import TESTS

SCHOOL: dict[str, Any] = {
    "total": 10,
    "every": 2,
    "curriculum": "6:3,9:3,12:4",
    "phases": {"density_coef": [0.0, 0.02, 0.05]},
    "queues": {"tail": {"stages": "2:STARTS|type=ne;3:mined|type=mined", "replay": 2, "force_reset": 12}},
    "multi_eval": {"episodes": 4, "agents": 16, "env": {"horizon": 30, "jitter": 0.5}, "early": [10], "worst": 2},
    "gates": {
        "penalty": {"success": ["median(2) early_death_10 <= 1"], "failure": "min_final < 0", "allowance": [1, 3]}
    },
    "alerts": {"tail": {"when": "tail_left <= 0.7", "patience": 2}},
}
FISH = {"env": "fish", "env__agents": "12", "total_steps": "99999", "eval__every": "0", "eval__episodes": "2",
        "algo__envs": "4"}  # fmt: skip


def school(folder: Path, **more: Any) -> str:
    """The schedule as JSON, with a file of starts."""
    folder.mkdir(exist_ok=True)
    (folder / "ne.json").write_text(json.dumps([[1.5, 1.2], [1.8, 0.9], [1.1, 1.6]]))
    return json.dumps(SCHOOL | more).replace("STARTS", str(folder / "ne.json"))


@pytest.fixture(scope="module")
def fish(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fish")
    assert run(folder / "run", **FISH, schedule=school(folder)).why == "schedule.total = 10 iterations reached"
    return folder / "run"


def test_the_time_that_is_left_is_that_of_the_schedule(tmp_path: Path):
    """It ends the run before its steps do; the screen foretold the time of all steps."""
    left: list[float] = []

    class Screen(Silent):
        def iteration(self, row: Any) -> None:
            left.append(row["eta_s"])

    run(tmp_path / "run", Screen(), **FISH, schedule=json.dumps({"total": 3, "curriculum": "6:3"}))
    assert (len(left), left[-1]) == (3, 0)


def rows(folder: Path, name: str) -> list[dict[str, Any]]:
    return read_jsonl(folder / f"{name}.jsonl")[0]


def test_every_part_of_a_schedule_acts(fish: Path):
    columns = history.load(fish).columns
    assert columns["schedule/stage"].values.tolist() == [1] * 3 + [2] * 3 + [3] * 4
    assert columns["stage/fish"].values.tolist() == [6] * 3 + [9] * 3 + [12] * 4
    left = columns["schedule/tail_left"].values
    assert left[0] < 1
    assert (np.diff(left) <= 0).all()
    assert left[-1] == 0
    assert columns["stage/time_limit"].values[-1] == 0  # the queue is over
    assert len(columns["multi/avg_final"].values) == 5
    assert set(columns["multi/agents"].values) == {64}
    events = rows(fish, "events")
    kinds = [event["kind"] for event in events]
    assert kinds.count("gate") == 5
    assert kinds.count("alert") == 1
    moves = [event for event in events if event["kind"] == "stage"]
    assert [e["stage"] for e in moves if e["schedule"] == "tail"] == ["1:ne", "2:mined", "over"]
    decisions = [event for event in events if event["kind"] == "gate"]
    assert [d["decision"] for d in decisions] == ["locked", "advance", "advance", "advance", "advance"]
    for decision in decisions:
        for check in (*decision["success"], *decision["failure"]):
            assert {"value", "threshold", "distance", "met"} <= set(check)
    assert [e["reason"] for e in events if e["kind"] == "stop"] == ["schedule.total = 10 iterations reached"]


def test_a_gate_holds_the_penalty_back_until_it_opens(fish: Path):
    coef = history.load(fish).columns["stage/density_coef"].values.tolist()
    assert coef[:4] == [0.0] * 4  # the curriculum is in its second stage, the gate is not open
    assert coef[4:] == [0.02, 0.02, 0.05, 0.05, 0.05, 0.05]


def test_evaluations_never_see_the_training_stage(fish: Path):
    (first, *_), last = rows(fish, "probes"), rows(fish, "probes")[-1]
    for row in (first, last):
        assert [e["agents"] for e in row["episodes"]] == [16] * 4
        assert row["horizon"] == 30
        assert all(step <= 30 for step, _ in row["deaths"])
    evals = rows(fish, "evals")
    assert all(len(row["episodes"]) == 2 * 12 for row in evals)
    assert all(
        e["end"] != "cut" for row in evals for e in row["episodes"]
    )  # the queue's time limit is training's alone


def test_all_steps_are_counted(fish: Path):
    metrics = rows(fish, "metrics")
    steps = [row["data/eval_steps"] for row in metrics if "data/eval_steps" in row]
    assert steps[2] - steps[1] == 4 * 30 or steps[2] - steps[1] > 0  # worlds whose agents are all dead end sooner
    assert all(row["data/sim_steps"] == row["data/env_steps"] + row["data/eval_steps"] for row in metrics
               if "data/sim_steps" in row)  # fmt: skip


def test_the_same_seed_and_command_give_the_same_bytes(fish: Path, tmp_path: Path):
    run(tmp_path / "again", **FISH, schedule=school(fish.parent))
    assert fingerprint(tmp_path / "again") == fingerprint(fish)


KILLED = """
import os, signal, sys
sys.path.insert(0, {tests!r})
from small_runs import run
from relab.train.screen import Silent
class Kill(Silent):
    left = {at}
    def iteration(self, row):
        self.left -= 1
        if not self.left:
            os.kill(os.getpid(), signal.SIGKILL)
run({folder!r}, Kill(), **{settings!r})
"""


@pytest.mark.slow  # 88 iterations of a school; kills of short runs stand in test_resume.py
def test_killed_at_iteration_44_it_resumes_to_the_same_bytes(tmp_path: Path):
    plan = school(tmp_path, total=60, every=8, curriculum="6:9,9:10,12:41", queues={
        "tail": {"stages": "8:STARTS|type=ne;100:mined|type=mined", "replay": 2, "force_reset": 28}})  # fmt: skip
    settings = FISH | {"schedule": plan, "save__every": "1500", "algo__steps": "8"}
    run(tmp_path / "whole", **settings)
    code = KILLED.format(tests=str(TESTS), at=44, folder=tmp_path / "parts", settings=settings)
    code = "from pathlib import PosixPath\n" + code
    env = os.environ | {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr[-2000:]
    reached = [row["data/iteration"] for row in rows(tmp_path / "parts", "metrics") if "data/iteration" in row]
    assert reached[-1] == 44
    (tmp_path / "ne.json").write_text("[[9, 9]]")  # the starts are in the checkpoint
    assert session.resume(tmp_path / "parts").status == "finished"
    assert fingerprint(tmp_path / "parts") == fingerprint(tmp_path / "whole")


def test_a_stage_holds_from_the_next_reset_on():
    env = HerdEnv(Herd(agents=4, agent_reset="with_world", horizon=5))
    worlds = Worlds(env, 3)
    worlds.reset(np.arange(3))
    env.set_stage({"sheep": 2, "wolf_speed": 0.0})
    action = np.zeros(worlds.action_shape, np.float32)
    for _ in range(4):
        worlds.step(action)
    assert worlds.state.used.all()
    worlds.step(action)  # the time limit: all begin anew
    assert worlds.alive.sum(1).tolist() == [2, 2, 2]
    assert (worlds.state.wolf_speed == 0).all()
    assert worlds.begun == 6
    with pytest.raises(config.ConfigError, match="sheep"):
        env.set_stage({"sheep": 5})


def test_a_stage_of_all_agents_changes_no_draw():
    found = []
    for stage in (None, {"sheep": 4}):
        env = HerdEnv(Herd(agents=4))
        if stage:
            env.set_stage(stage)
        seeds = np.arange(5, dtype=np.uint64)
        found.append(rollout.evaluate(env, rollout.RandomPolicy(env.spec.action), seeds).episodes)
    assert found[0] == found[1]


# ---- What cannot work is said before the run


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"curriculum": {"stages": "5:3", "key": "cows"}}, "sets 'cows', but of fish-v1 can be set: fish, starts"),
        ({"curriculum": "5:3,99:3"}, "`fish` <= 12 must hold"),
        ({"phases": {"density_coef": [0, -1]}}, "density_coef"),
        ({"gates": {"g": {"success": "early_death_99 <= 1"}}}, "no such number; the nearest is `early_death_10`"),
        ({"every": None}, "set `schedule.every`"),
        ({"total": 10**6}, "must fit into `total_steps`"),
        ({"multi_eval": {"agents": 0}}, "agents >= 1"),
        ({"multi_eval": {"deaths": ["eaten"]}}, "fish-v1 ends by running, time_limit, caught, cut"),
        ({"queues": {"q": "8:no.json"}}, r"no\.json cannot be read"),
        ({"curicculum": "5:3"}, "a schedule has no"),
    ],
)
def test_a_schedule_that_cannot_work_is_refused(changes: dict[str, Any], said: str, tmp_path: Path):
    cfg = resolve(**FISH, schedule=school(tmp_path, **changes)).config
    env = session.make_env(cfg)
    with pytest.raises(config.ConfigError, match=said):
        steering.make(cfg, env)


def test_an_environment_without_stages_takes_gates_only():
    given = {"every": 2, "gates": {"g": {"success": "return/mean >= 5", "sets": {"x": [0, 1]}}}}
    cfg = resolve(schedule=json.dumps(given)).config
    with pytest.raises(config.ConfigError, match="cartpole-v1 has no stages"):
        steering.make(cfg, session.make_env(cfg))
    del given["gates"]["g"]["sets"]  # type: ignore[index]
    cfg = resolve(schedule=json.dumps(given)).config
    assert steering.make(cfg, session.make_env(cfg)).course.gates


def test_a_file_and_nested_keys_make_one_schedule(tmp_path: Path):
    (tmp_path / "plan.yaml").write_text("every: 2\ncurriculum: 2:3,4:3\ngates: {g: {success: x >= 1, required: 2}}\n")
    typed = {"env": "herd", "schedule.gates.g.required": "3", "schedule.total": "6"}
    layers = [config.Layer("file", {"schedule": str(tmp_path / "plan.yaml")}), config.Layer("command line", typed)]
    gates = {"g": {"success": "x >= 1", "required": 3}}
    found = config.resolve(layers).config.schedule
    assert found == {"every": 2, "curriculum": "2:3,4:3", "gates": gates, "total": 6}


# ---- Afterwards


def test_the_floor_of_step_one_is_measured(fish: Path):
    cfg = config.from_dict(config.read_yaml(fish / "config.yaml"))
    share, noise, n = steering.judge_of(cfg, session.make_env(cfg)).floor()
    assert n == 2000
    assert 0.05 < share < 0.09  # a predator near the centre reaches 0.7 of 8
    assert 0 < noise < 0.005


def test_a_world_is_filmed_as_it_was_recorded(fish: Path):
    found = fresh.film_multi(fish, 10, "worst", "best", fish.parent / "x.gif", 30)
    row = rows(fish, "probes")[-1]
    assert found["recorded"]
    assert found["final"] == min(e["final"] for e in row["episodes"])
    assert found["frames"] <= 30
    with pytest.raises(config.ConfigError, match="iteration 3"):
        fresh.film_multi(fish, 3, "worst", "best", None, 30)


def test_the_report_tells_how_it_went(fish: Path):
    (group,) = load(fish)
    found = section(group.runs[0])
    assert found is not None
    captions = [table.caption.partition(" ")[0] for table in found.tables]
    assert captions == ["Multi-evaluations", "By", "Where", "Deaths", "Worst"]
    assert [figure.kind for figure in found.figures] == ["timeline", "dots", "dots", "polar", "bars"]
    (timeline, *_) = found.figures
    assert [band.name for band in timeline.bands] == ["curriculum", "tail"]
    assert timeline.bands[0].stages == [(0, 3, "1:6"), (3, 6, "2:9"), (6, 10, "3:12")]
    assert len(timeline.decisions["penalty"]) == 5
    assert f"relab video {fish.name} --multi" in found.tables[-1].rows[0][-1]


# ---- Probe and full evaluations, their seeds, films


@pytest.fixture(scope="module")
def probed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run with three worlds while it trains, six at its end, and a film of the worst."""
    folder = tmp_path_factory.mktemp("probed")
    multi = {**SCHOOL["multi_eval"], "episodes": 6, "probe_episodes": 3, "seed_base": 911, "films": 1}
    run(folder / "run", **FISH, schedule=school(folder, total=4, curriculum="6:4", multi_eval=multi))
    return folder / "run"


def test_probe_and_full_evaluations_are_kept_apart(probed: Path):
    kinds = [(row["probe"], row["iteration"], row["n"]) for row in rows(probed, "probes")]
    assert kinds == [("multi_eval", 2, 3), ("multi_eval", 4, 3), ("multi_eval_full", 4, 6)]
    columns = history.load(probed).columns
    assert columns["multi/episodes"].values.tolist() == [3, 3]
    assert columns["multi/full_episodes"].values.tolist() == [6]
    probe, full = ({e["seed"] for e in row["episodes"]} for row in rows(probed, "probes")[1:])
    assert not probe & full, "the full one has worlds of its own"
    said = section(load(probed)[0].runs[0])
    assert any(line.startswith("full evaluation after iteration 4, 6 episodes: avg_final") for line in said.lines)


def test_the_full_evaluation_can_be_skipped(tmp_path: Path):
    multi = {**SCHOOL["multi_eval"], "probe_episodes": 2, "skip_final_eval": True}
    run(tmp_path / "run", **FISH, schedule=school(tmp_path, total=2, curriculum="6:2", multi_eval=multi))
    assert [row["probe"] for row in rows(tmp_path / "run", "probes")] == ["multi_eval"]


def test_one_seed_base_gives_runs_of_other_seeds_the_same_worlds(probed: Path, tmp_path: Path):
    base = {**SCHOOL["multi_eval"], "probe_episodes": 3}
    for name, more in (("same", {"seed_base": 911}), ("own", {})):
        plan = school(tmp_path, total=2, curriculum="6:2", multi_eval=base | more)
        run(tmp_path / name, **{**FISH, "seed": "77"}, schedule=plan)
    starts = [[(e["seed"], e["heading"]) for e in rows(folder, "probes")[0]["episodes"]]
              for folder in (probed, tmp_path / "same", tmp_path / "own")]  # fmt: skip
    assert starts[0] == starts[1]
    assert starts[0] != starts[2]


def test_films_of_the_worst_are_written_by_themselves(probed: Path):
    assert sorted(p.name for p in (probed / "media").iterdir()) == ["multi-0002-rank1.mp4", "multi-0004-rank1.mp4"]
    assert all(p.stat().st_size > 500 for p in (probed / "media").iterdir())
    assert [event for event in rows(probed, "events") if event["kind"] == "warning"] == []


def test_a_film_that_cannot_be_written_does_not_end_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("IMAGEIO_FFMPEG_EXE", "/bin/false")
    multi = {**SCHOOL["multi_eval"], "films": 1}
    run(tmp_path / "run", **FISH, schedule=school(tmp_path, total=2, curriculum="6:2", multi_eval=multi))
    warnings = [e["message"] for e in rows(tmp_path / "run", "events") if e["kind"] == "warning"]
    assert len(warnings) == 1
    assert warnings[0].startswith("the films of iteration 2 were not written")


def test_the_concentration_of_first_deaths_is_logged(fish: Path):
    columns = history.load(fish).columns
    aimed, top = [], []
    for row in rows(fish, "probes"):
        hit = [(e["step_one"], e["heading"], e["speed"]) for e in row["episodes"]]
        assert ("step_one_top_share" in row["values"]) == bool(sum(n for n, _, _ in hit))
        if total := sum(n for n, _, _ in hit):
            aimed.append(sum(n for n, at, v in hit if 22.5 <= at < 67.5 and v >= 1.8) / total)
            bins = Counter[tuple[float, float]]()
            for n, at, v in hit:
                bins[at % 360 // 30, v // 0.4] += n
            top.append(max(bins.values()) / total)
    assert columns["multi/step_one_sector_share"].values.tolist() == pytest.approx(aimed)
    assert columns["multi/step_one_top_share"].values.tolist() == pytest.approx(top)


def test_training_tells_when_schools_lose_their_first_fish(fish: Path):
    values = history.load(fish).columns["env/first_death_p10"].values
    assert len(values) > 0
    assert ((values >= 1) & (values <= 500)).all()
