"""Does the proposal follow from what was found? Histories of known faults, small real runs, and made-up neighbours."""

from __future__ import annotations

import functools
import json
import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relab.advise import foreign, propose, render
from relab.advise.predict import compare, predict
from relab.advise.proposal import Nothing, Proposal
from relab.advise.propose import Search, neighbours
from relab.advise.rising import OPEN, RISES, STAYS, lowest_ends, trend_of
from relab.base.jsonl import encode
from relab.comparison import answer, outcomes
from relab.config import layers, registry
from relab.health import mend, usual
from relab.health.examine import Report, examine
from relab.health.remedy import Remedy
from relab.health.rule import all_rules
from relab.health.view import View
from relab.logger import Logger
from relab.record import history
from relab.record.history import Column
from relab.train import session
from report.made import RANDOM, write_run
from small_runs import resolve, run
from where import histories

CART = {"spec": {"env": "CartPole-v1", "reward_low": 1.0, "reward_high": 1.0, "horizon": 500, **RANDOM}}
LONG = {"total_steps": "8192", "eval__episodes": "20"}


def alone(tmp_path: Path, name: str, kind: str = "faulty") -> Path:
    """A copy of a committed history without the others beside it."""
    return Path(shutil.copytree(histories() / kind / name, tmp_path / name))


def proposed(folder: Path) -> Proposal | Nothing:
    return propose(examine(folder), folder)


def change(advice: Proposal | Nothing) -> dict[str, tuple]:
    assert isinstance(advice, Proposal), advice
    return {key: (c["from"], c["to"]) for key, c in advice.diff.items()}


# ---- What each fault calls for; the values are those that the histories were spoiled with


@pytest.mark.parametrize(
    ("name", "key", "old", "new"),
    [
        ("diverged", "algo.lr", 0.1, 3e-3),
        ("worse-than-random", "algo.lr", 0.1, 1e-3),
        ("update-too-large", "algo.lr", 0.02, 3e-3),
        ("frozen-parameters", "algo.lr", 1e-12, 3e-3),
        ("policy-not-moving", "algo.lr", 1e-6, 3e-3),
        ("has-not-learned", "algo.lr", 1e-7, 1e-3),
        ("entropy-collapse", "algo.ent_coef", -1.0, 0.0),
        ("entropy-runaway", "algo.ent_coef", 1.0, 0.0),
        ("gradient-always-clipped", "algo.max_grad_norm", 1e-6, 5.0),
        ("critic-not-learning", "algo.value_coef", 0.0, 0.5),
        ("untrusted-best", "eval.episodes", 4, 20),
    ],
)
def test_the_spoiled_setting_is_set_back(tmp_path, name, key, old, new):
    assert change(proposed(alone(tmp_path, name))) == {key: (old, new)}


@pytest.mark.parametrize("name", sorted(path.name for path in (histories() / "healthy").iterdir()))
def test_a_healthy_run_calls_for_nothing(tmp_path, name):
    """Or for more of the same, where it was still getting better when it ended."""
    proposal = proposed(alone(tmp_path, name, "healthy"))
    assert isinstance(proposal, Nothing) or list(proposal.diff) == ["total_steps"]


def test_what_a_rule_would_change_is_a_setting():
    rules = all_rules(plugins=False).values()
    known = {key for algo in registry.algo_names() for key in layers.schema(algo, None)}
    known |= {word for library in (usual.SB3, usual.CLEANRL) for words in library.values() for word in words}
    assert {key for rule in rules for key in (*rule.mends, *(change.key for change in rule.fallback))} <= known
    assert {way for rule in rules for way in rule.mends.values()} <= {mend.DOWN, mend.UP, mend.ANY}


def test_advice_names_no_rule():
    wing = Path(foreign.__file__).parent
    for path in wing.glob("*.py"):
        assert not [slug for slug in all_rules(plugins=False) if f'"{slug}"' in path.read_text()], path


def test_an_interrupted_run_is_to_be_resumed_first(tmp_path):
    advice = proposed(alone(tmp_path, "run-incomplete"))
    assert isinstance(advice, Nothing)
    assert "/run-incomplete` first" in advice.why, "the folder, for it does not lie in runs/"


def test_illegal_numbers_speak_against_a_good_end(tmp_path):
    advice = proposed(alone(tmp_path, "rate-out-of-range"))
    assert isinstance(advice, Nothing)
    assert "rate-out-of-range must be looked at first" in advice.why


def test_a_childs_change_is_set_back_to_the_parents_value_on_a_new_seed():
    advice = proposed(histories() / "faulty" / "unmentioned-config-change" / "child")
    assert change(advice) == {"algo.ent_coef": (0.12, 0.0)}
    assert "its parent" in advice.rationale
    assert advice.seeds[0] == 1, "seed 0 of that config is the parent itself"


# ---- Real runs


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """lr100, and a family of a parent and a child whose entropy bonus grew 200 times unsaid."""
    root = tmp_path_factory.mktemp("runs")
    run(root / "lr100", algo__lr="0.3")
    run(root / "family" / "old", algo__ent_coef="0.01", **LONG)
    child = resolve(algo__ent_coef="2", **LONG)
    session.start(child.config, root / "family" / "new", child.provenance, {"command": "test", "parent": "old"})
    return root


def test_a_learning_rate_100_times_too_high_goes_back(folder):
    advice = proposed(folder / "lr100")
    assert change(advice) == {"algo.lr": (0.3, 3e-3)}
    assert advice.source == "steps-too-large"
    assert "preset" in advice.rationale
    assert advice.checks["config"] == "resolves and passes its checks"
    assert advice.resume_from is None


def test_without_data_the_prediction_is_bounds_from_the_record(folder):
    view = examine(folder / "lr100").runs[0].view
    predicted = proposed(folder / "lr100").predicted
    assert predicted.delta is None
    assert predicted.how.startswith("no data: bounds only")
    assert predicted.high == pytest.approx(500 - view.evals()[-1].mean)
    assert predicted.low == 0, "random is above what it earns now: it may also stay as it is"
    assert ", from no change (below random " in predicted.how
    assert render.predicted(predicted).startswith("eval/return_det changes by +0 to +4")


def test_the_cost_comes_from_the_runs_own_timing(folder):
    report = examine(folder / "lr100")
    columns = report.runs[0].view.history.columns
    before = propose(report).cost
    for name in ("collect", "update", "log", "eval", "save"):
        steps, values = columns[f"time/{name}_s"]
        columns[f"time/{name}_s"] = Column(steps, values + 10)
    look_again(report)
    after = propose(report).cost
    assert before.steps == after.steps == 2048
    assert after.seconds - before.seconds == pytest.approx(5 * 10 * 16), "16 iterations, five parts"


def test_a_child_that_does_worse_gets_its_parents_setting_back(folder):
    advice = proposed(folder / "family")
    assert change(advice) == {"algo.ent_coef": (2.0, 0.01)}
    assert advice.source == "unmentioned-config-change"
    assert advice.parent == "new"
    ends = [examine(folder / "family" / name).runs[0].view.evals()[-1].mean for name in ("old", "new")]
    assert advice.predicted.delta == pytest.approx(ends[0] - ends[1])
    assert advice.predicted.low is None, "one seed has no interval"


def test_the_report_alone_is_enough_and_nothing_is_written(folder):
    before = sorted(folder.rglob("*"))
    assert change(propose(examine(folder / "lr100"))) == {"algo.lr": (0.3, 3e-3)}
    assert sorted(folder.rglob("*")) == before


def test_a_run_that_still_rises_gets_more_steps(tmp_path):
    run(tmp_path / "rising", seed="4", algo__lr="1e-3", algo__lr_schedule="constant", **LONG)
    advice = proposed(tmp_path / "rising")
    assert change(advice) == {"total_steps": (8192, 16384)}
    assert advice.checks["budget"].startswith("2 times")


def test_a_solved_run_calls_for_nothing(tmp_path):
    preset = {"algo__envs": "16", "algo__steps": "64", "algo__epochs": "4", "algo__minibatches": "8"}
    run(tmp_path / "good", total_steps="60000", eval__stop_at="475", eval__every="2048", eval__episodes="20", **preset)
    advice = proposed(tmp_path / "good")
    assert isinstance(advice, Nothing)
    assert "as high as asked or possible" in advice.why


def strangers(folder: Path, env: str, *ends: float) -> None:
    """Logs of another tool without settings, one for each last return."""
    for seed, end in enumerate(ends):
        with Logger(str(folder / f"{env}-s{seed}"), seed=seed, env=env, algo="ppo") as log:
            for i, value in enumerate(np.linspace(min(end, 20.0), end, 30)):
                log.log(1000 * (i + 1), {"return/mean": float(value), "return/episodes": 10.0})


def test_what_is_solved_on_one_task_settles_nothing_on_another(tmp_path):
    """A folder of CartPole at 500 and of Pendulum that had not learned: "nothing worth proposing"."""
    strangers(tmp_path / "both", "CartPole-v1", 500.0, 500.0)
    strangers(tmp_path / "both", "Pendulum-v1", -1300.0, -1350.0)
    advice = proposed(tmp_path / "both")
    assert "as high as" not in advice.why
    assert "has-not-learned" in advice.why, "70 below random does not matter: its episodes differ by hundreds"


@pytest.mark.parametrize(("ends", "is_solved"), [((480, 300, 310, 320), False), ((480, 490, 485, 320), True)])
def test_solved_is_said_of_a_config_whose_seeds_did_so_for_the_most_part(tmp_path, ends, is_solved):
    """The luckiest of ten seeds had settled all of them."""
    for seed, end in enumerate(ends):
        write_run(tmp_path / f"a-s{seed}", [20.0, 120, 250, end, end, end, end], seed, meta=CART)
    for asked in (tmp_path, tmp_path / "a-s0"):
        advice = proposed(asked)
        assert isinstance(advice, Nothing)
        assert ("the level that is called solved" in advice.why) == is_solved


def test_one_unstable_seed_of_five_calls_for_no_other(tmp_path):
    swings, stays = [20.0, 490, 110, 480, 112, 490, 183, 481], [20.0, 200, 250, 300, 301, 300, 302, 300]
    for seed, curve in enumerate([swings, *[stays] * 4]):
        write_run(tmp_path / f"a-s{seed}", curve, seed)
    assert "another seed" not in proposed(tmp_path).why


def test_ends_of_two_tasks_are_told_apart(tmp_path):
    """The lowest of both had been named as if it were one level: (-85)."""
    strangers(tmp_path / "both", "CartPole-v1", 500.0)
    strangers(tmp_path / "both", "Acrobot-v1", -80.0)
    ends = lowest_ends([run.view for run in examine(tmp_path / "both").runs])
    assert ends == "Acrobot-v1: -80, CartPole-v1: 483.4"


# ---- Neighbours: do not repeat, and predict from them


def copies(source: Path, root: Path, values: dict, seeds: range, shift: float = 0.0) -> None:
    """Made-up neighbours: a run's files under other settings, seeds, and returns."""
    for seed in seeds:
        target = Path(shutil.copytree(source, root / f"{source.name}-copy-s{seed}"))
        cfg = layers.flatten(layers.read_yaml(target / "config.yaml")) | values | {"seed": seed}
        full = layers.to_dict(layers.resolve([layers.Layer("given", cfg)], presets=False).config)
        layers.write_yaml(target / "config.yaml", full)
        meta = history.load(target).meta | {"seed": seed, "config_hash": layers.config_hash(full)}
        (target / "meta.json").write_bytes(encode(meta))
        rows = history.load(target).evals
        for row in rows:
            for episode in row["episodes"]:
                episode["return"] += shift + seed
        (target / "evals.jsonl").write_bytes(b"".join(encode(row) for row in rows))


def test_with_fewer_than_five_seeds_other_seeds_of_the_config_are_run(folder, tmp_path):
    shutil.copytree(folder / "lr100", tmp_path / "lr100")
    copies(tmp_path / "lr100", tmp_path, {"algo.lr": 3e-3}, range(2, 5), shift=100)
    advice = proposed(tmp_path / "lr100")
    assert change(advice) == {"algo.lr": (0.3, 3e-3)}
    assert advice.seeds == [0, 1]
    assert "seed 0 is new" in advice.checks["repeat"]


def test_what_has_run_on_five_seeds_is_not_proposed_again(folder, tmp_path):
    shutil.copytree(folder / "lr100", tmp_path / "lr100")
    copies(tmp_path / "lr100", tmp_path, {"algo.lr": 3e-3}, range(5))
    report = examine(tmp_path / "lr100")
    search = Search(report, neighbours(report, tmp_path / "lr100"))
    advice = search.best()
    assert (
        "algo.lr 0.3 -> 0.003 in lr100 (steps-too-large): that config has run: lr100-copy-s0 and 4 more"
        in search.passed_over
    )
    assert not isinstance(advice, Proposal) or change(advice) != {"algo.lr": (0.3, 3e-3)}


def test_the_prediction_is_the_difference_to_runs_with_the_value(folder, tmp_path):
    shutil.copytree(folder / "lr100", tmp_path / "a")
    copies(tmp_path / "a", tmp_path, {}, range(10, 13))
    copies(tmp_path / "a", tmp_path, {"algo.lr": 3e-3}, range(3), shift=100)
    views = [each.view for each in examine(tmp_path).runs]
    view = next(v for v in views if v.name == "a")
    others = [v for v in views if v is not view]
    sick = predict(view, {"algo.lr": (0.3, 3e-3)}, others)
    assert (sick.delta, sick.how.split(":")[0]) == (None, "a-copy-s0 has faults of its own")
    for other in others:
        other.suspect = False
    predicted = predict(view, {"algo.lr": (0.3, 3e-3)}, others)
    now = view.evals()[-1].mean
    here, there = np.array([now, now + 10, now + 11, now + 12]), np.array([now + 100, now + 101, now + 102])
    assert predicted.delta == pytest.approx(there.mean() - here.mean())
    assert predicted.low < predicted.delta < predicted.high
    assert "3 seeds" in predicted.how


def test_what_is_known_to_do_harm_is_not_proposed(tmp_path):
    write_run(tmp_path / "a", [20.0, 60, 100, 140, 180, 220])
    write_run(tmp_path / "slower", [20.0, 50, 80, 110, 140, 170], config={"algo": {"name": "ppo", "lr": 0.0005}})
    write_run(tmp_path / "faster", [20.0, 70, 120, 170, 220, 270], config={"algo": {"name": "ppo", "lr": 0.002}})
    search = Search(examine(tmp_path), [])
    view = next(v for v in search.views if v.name == "a")
    worse, better = (Remedy({"algo.lr": (0.001, lr)}, "a value") for lr in (0.0005, 0.002))
    assert search.make(view, worse, "slug", "why") is None
    (passed,) = search.passed_over
    assert "makes things worse: eval/return_det -50 (slower: 170 (1 seed) against 220 (1 seed)" in passed
    found = search.make(view, better, "slug", "why")
    assert found is not None
    assert found.predicted.delta == 50


def test_runs_that_differ_in_another_setting_too_predict_nothing(folder, tmp_path):
    shutil.copytree(folder / "lr100", tmp_path / "a")
    copies(tmp_path / "a", tmp_path, {"algo.lr": 3e-3, "algo.gamma": 0.9}, range(3), shift=100)
    views = [each.view for each in examine(tmp_path).runs]
    view = next(v for v in views if v.name == "a")
    assert predict(view, {"algo.lr": (0.3, 3e-3)}, [v for v in views if v is not view]).delta is None


def test_an_interval_needs_two_seeds_a_side_that_vary():
    assert compare(np.array([1.0]), np.array([2.0, 3.0]))[:3] == (1.5, None, None)
    assert compare(np.array([1.0, 1.0]), np.array([2.0, 2.0]))[:3] == (1.0, None, None)
    _, low, high, _ = compare(np.array([1.0, 2.0]), np.array([5.0, 6.0]))
    assert low < 4 < high


# ---- Still improving: made-up curves


def curve_view(folder: Path, values: np.ndarray) -> View:
    history_ = history.load(folder / "lr100")
    history_.columns["eval/return_det"] = Column(np.arange(len(values)) * 512, values)
    history_.evals = [
        {"step": i * 512, "mode": "det", "episodes": [{"return": v + d, "end": "time_limit"} for d in (-1, 1)]}
        for i, v in enumerate(values.tolist())
    ]
    return View(history_, "made-up")


def test_a_rise_goes_on_to_the_end_and_beyond_its_noise(folder):
    noise = np.array([1.0, -2, 2, -1, 1, -1, 2, -2, 1, -1, 0, 2])
    rising = 100 + 20 * np.arange(12) + noise
    kinds = {"up": rising, "up to a level": np.minimum(rising, 220) + noise / 9, "noise": 300 + 20 * noise,
             "below random": 5 + 0.01 * np.arange(12)}  # fmt: skip
    trends = {name: trend_of(curve_view(folder, values)) for name, values in kinds.items()}
    assert trends["up"].end.mean == rising[-1]
    assert {name: trend.kind for name, trend in trends.items()} == {
        "up": RISES, "up to a level": STAYS, "noise": OPEN, "below random": OPEN}  # fmt: skip


def foreign_log(folder: Path, returns: np.ndarray, **settings: object) -> Path:
    """What a program keeps by the logger: training returns, no evaluation."""
    with Logger(str(folder), settings, seed=0, env="CartPole-v1", algo="ppo") as log:
        for i, value in enumerate(returns):
            log.log(512 * (i + 1), **{"return/mean": value, "return/std": 5.0, "return/episodes": 20})
    return folder


RISING = np.linspace(20, 220, 40) + np.sin(np.arange(40))


def test_returns_of_training_that_still_rise_call_for_more_steps(tmp_path):
    advice = proposed(foreign_log(tmp_path / "a", RISING, learning_rate=3e-4, total_timesteps=20_480))
    assert change(advice) == {"total_steps": (20_480, 40_960)}
    assert advice.command == "total_timesteps=40960"
    assert "still rises at the end" in advice.rationale


def test_what_rises_is_not_said_to_rise_no_more(tmp_path):
    unplanned = proposed(foreign_log(tmp_path / "a", RISING)).text
    assert "still rises at the end: " in unplanned
    assert "no return still rises" not in unplanned
    short = proposed(foreign_log(tmp_path / "b", RISING[:3])).text
    assert "cannot be told" in short


def test_a_record_of_another_program_is_never_trained_or_resumed_here(tmp_path):
    """The change is told in that program's own names."""
    folder = foreign_log(tmp_path / "a", 22 + np.sin(np.arange(40)), learning_rate=0.1, total_timesteps=20_480)
    advice = proposed(folder)
    assert (advice.runs_here, advice.command) == (False, "learning_rate=0.0003")
    assert render.text(advice).startswith("a: learning_rate 0.1 -> 0.0003")
    assert advice.diff == {"algo.lr": {"from": 0.1, "to": 0.0003}}
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps(meta | {"status": "interrupted"}))
    text = f"{examine(folder).main[0].suggest} {proposed(folder).text}"
    assert "relab resume" not in text
    assert "relab train" not in text


# ---- Answers


def experiment(root: Path, folder: Path, shift: float, seeds: int, smallest: float = 1.0) -> Path:
    """An experiment's folder with real files: control lr 0.3, variant lr 0.003 whose returns are shifted."""
    return Path(shutil.copytree(answered(folder, shift, seeds, smallest), root / "experiments" / "lr"))


@functools.cache
def answered(folder: Path, shift: float, seeds: int, smallest: float) -> Path:
    """The same, made once for all tests that ask for it."""
    home = Path(tempfile.mkdtemp(dir=folder.parent)) / "lr"
    (home / "runs").mkdir(parents=True)
    (home / "variants").mkdir()
    arms = []
    for name, lr, by in (("old", 0.3, 0.0), ("new", 3e-3, shift)):
        copies(folder / "lr100", home / "runs", {"algo.lr": lr}, range(seeds), shift=by)
        for path in (home / "runs").glob("lr100-copy-*"):
            path.rename(path.with_name(path.name.replace("lr100-copy", name)))
        runs = [history.load(home / "runs" / f"{name}-s{seed}") for seed in range(seeds)]
        shared = {key: value for key, value in runs[0].config.items() if key != "seed"}
        layers.write_yaml(home / "variants" / f"{name}.yaml", shared)
        arms.append([outcomes.outcome(each) for each in runs])
    declared = {"question": "is it the rate?", "variants": {"old": {"lr": 0.3}, "new": {"lr": 3e-3}},
             "base": {"env": "cartpole"}, "seeds": list(range(seeds))}  # fmt: skip
    layers.write_yaml(home / "experiment.yaml", declared)
    reply = answer.answer(*arms, smallest, names=("old", "new"))
    (home / "answer.json").write_bytes(encode({"question": "?", "answers": [reply.to_dict()], "looks": {}}))
    return home


def test_a_yes_makes_the_winner_the_next_base_with_its_interval(folder, tmp_path):
    home = experiment(tmp_path, folder, shift=50, seeds=5)
    advice = proposed(home)
    assert change(advice) == {"algo.lr": (0.3, 3e-3)}
    assert (advice.parent, advice.seeds[0], advice.source) == ("runs/old-s0", 5, "answer")
    assert advice.predicted.delta == pytest.approx(50)
    assert advice.predicted.low < 50 < advice.predicted.high


def test_cannot_tell_yet_asks_for_seeds(folder, tmp_path):
    advice = proposed(experiment(tmp_path, folder, shift=1, seeds=5))
    assert advice.diff["seeds"]["from"] == [0, 1, 2, 3, 4]
    assert len(advice.diff["seeds"]["to"]) > 5
    assert advice.diff["seeds"]["to"][:6] == [0, 1, 2, 3, 4, 5]
    assert "relab experiment" in advice.command
    assert not advice.runs_here


def test_under_five_seeds_the_next_thing_is_five(folder, tmp_path):
    advice = proposed(experiment(tmp_path, folder, shift=50, seeds=3))
    assert len(advice.diff["seeds"]["to"]) >= 5


def test_a_no_keeps_the_control(folder, tmp_path):
    advice = proposed(experiment(tmp_path, folder, shift=-50, seeds=5))
    assert isinstance(advice, Nothing)
    assert "the control old stays" in advice.why


def test_another_tools_experiment_is_told_in_its_placeholders(folder, tmp_path):
    home = experiment(tmp_path, folder, shift=50, seeds=5)
    declared = layers.read_yaml(home / "experiment.yaml") | {
        "command": "python my.py --rate {lr} --seed {seed} --out {run}"
    }
    layers.write_yaml(home / "experiment.yaml", declared)
    for name, lr in (("old", 0.3), ("new", 3e-3)):
        layers.write_yaml(home / "variants" / f"{name}.yaml", {"lr": lr})
    advice = proposed(home)
    assert change(advice) == {"lr": (0.3, 3e-3)}
    assert advice.command == "python my.py --rate 0.003 --seed 5 --out NEW_FOLDER"
    assert not advice.runs_here


def test_without_an_answer_the_experiment_comes_first(folder, tmp_path):
    home = experiment(tmp_path, folder, shift=50, seeds=5)
    (home / "answer.json").unlink()
    advice = proposed(home)
    assert isinstance(advice, Nothing)
    assert "no answer yet (10 of 10 runs are finished)" in advice.why
    assert f"relab experiment {home / 'experiment.yaml'} --name lr" in advice.why


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"answers": 3}', b'{"answers": [{"names": ["a", "../b"]}]}'])
def test_a_broken_answer_is_no_answer(folder, tmp_path, body):
    home = experiment(tmp_path, folder, shift=50, seeds=5)
    (home / "answer.json").write_bytes(body)
    assert "no answer yet" in proposed(home).why


# ---- Other tools' runs


def foreign_report(folder: Path, command: str | None) -> Report:
    report = examine(folder / "lr100")
    run_ = report.runs[0].view.history
    run_.source = "cleanrl"
    run_.meta["command"] = command
    look_again(report)
    return report


def look_again(report: Report) -> None:
    """A view remembers what it has read; this one has seen nothing yet."""
    report.runs[0].view = replace(report.runs[0].view)


def test_another_tools_run_is_told_in_its_own_flags_and_never_started(folder):
    advice = propose(foreign_report(folder, "python ppo.py --learning-rate 0.3 --num-envs 8"))
    assert (advice.command, advice.runs_here) == ("--learning-rate 0.003", False)
    assert propose(foreign_report(folder, "python ppo.py learning_rate=0.3")).command == "learning_rate=0.003"
    assert propose(foreign_report(folder, None)).command == "lr=0.003"
    assert propose(foreign_report(folder, "python 'x")).command == "lr=0.003"


def test_flags_are_read_from_a_command():
    assert foreign.flags("python a.py --lr 1e-3 --gamma=0.9 -v algo.clip=0.1") == {
        "lr": "--lr ", "gamma": "--gamma=", "v": "-v ", "clip": "algo.clip=",
    }  # fmt: skip


# ---- What strangers wrote


def test_reading_imports_no_environment_that_a_record_names(folder):
    report = examine(folder / "lr100")
    run_ = report.runs[0].view.history
    run_.config["env"] = {"name": "evil_module_that_is_not_there:Env"}
    advice = propose(report)
    assert isinstance(advice, Proposal), "resolving it would have failed to import"
    assert "not relab's to check" in advice.checks["config"]


def test_the_text_is_short_and_clean(folder):
    report = examine(folder / "lr100")
    for finding in report.findings:
        finding.message = "\x1b[31m" + finding.message * 50
    text = render.text(propose(report))
    assert "\x1b" not in text
    assert len(text.splitlines()) <= 10
    assert max(map(len, text.splitlines())) <= 120


def test_a_name_given_twice_cannot_smuggle_an_import_past_the_check(folder):
    report = examine(folder / "lr100")
    run_ = report.runs[0].view.history
    run_.config = {"env.name": "evil_module_that_is_not_there:Env"} | run_.config
    assert "No module named" not in str(propose(report))


def test_an_iteration_is_as_long_as_its_rows_say_where_the_settings_do_not(folder):
    from relab.advise.predict import iteration_steps

    view = examine(folder / "lr100").runs[0].view
    assert iteration_steps(view) == 8 * 16
    for section in (view.config, view.history.config["algo"]):
        section.pop("algo.envs", None)
        section.pop("envs", None)
    assert iteration_steps(view) == 8 * 16


def test_the_run_that_examine_shows_first_is_not_passed_over_in_silence(tmp_path):
    spec = {"env": "made-v1", "reward_high": 1.0, "reward_low": 1.0, "horizon": 500, "random": RANDOM}
    runs = {"sick-s0": ("ppo", 0.5, [20.0, 9, 9, 9, 9]), "good-s0": ("ppo", 0.001, [20.0, 500, 500, 500, 500]),
            "tired-s0": ("dqn", 0.4, [20.0, 400, 300, 30, 25])}  # fmt: skip
    for name, (algo, lr, curve) in runs.items():
        write_run(tmp_path / name, curve, 0, config={"algo": {"name": algo, "lr": lr}}, meta={"spec": spec})
    report = examine(tmp_path)
    assert report.main[0].run == "sick-s0"
    advice = propose(report, tmp_path)
    assert advice.passed_over[0] == "sick-s0 (steps-too-large): good-s0 has solved the same task already"


# ---- Above the level that is called solved


SOLVING = [20.0, 120, 250, 380, 450, 462, 470, 476, 479, 482]


@pytest.mark.parametrize(("seeds", "said"), [
    (1, "one seed says little about the config, another run of it more: `relab train seed=1 --parent a-s0`"),
    (3, "more steps are not needed, more seeds are (3 of 5 are there): `relab train seed=3 --parent a-s0`"),
    (5, "5 seeds of the config are there, and nothing more is called for"),
])  # fmt: skip
def test_a_run_above_the_solved_level_is_solved_and_needs_no_more_steps(tmp_path, seeds, said):
    for seed in range(seeds):
        write_run(tmp_path / f"a-s{seed}", SOLVING, seed, meta=CART, config={"total_steps": 9000})
    advice = proposed(tmp_path)
    assert isinstance(advice, Nothing), "it proposed to go on, for the return still rises"
    assert "ended above the level that is called solved (475): 482" in advice.why
    assert said in advice.why
