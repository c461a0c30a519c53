"""Does `relab compare` say what the runs allow, and no more? Made runs with known numbers, through the command."""

from __future__ import annotations

import json
import math
import re
import shutil
import statistics
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from relab import api, cli
from relab.comparison import build, declared, phases, render
from relab.report import comparison_page, content
from relab.runs import grouping
from report.made import write_run
from where import ROOT, fixtures

CEILING = {"spec": {"env": "made-v1", "random": {"return_mean": 20.0, "return_std": 8.0, "n": 100},
                    "reward_high": 1.0, "reward_low": 1.0, "horizon": 500}}  # fmt: skip


def variant(folder: Path, name: str, finals: list[float], lr: float, **more) -> None:
    """Runs name-s0, name-s1 ... that climb to these numbers in five evaluations."""
    config = {"algo": {"name": "ppo", "lr": lr}, **more.pop("config", {})}
    for seed, final in enumerate(finals):
        curve = more.get("curve") or [20.0, 20.0 + final / 3, 20.0 + final / 2, final - 1.0, final]
        rest = {k: v for k, v in more.items() if k != "curve"}
        write_run(folder / f"{name}-s{seed}", curve, seed, config=config, **rest)


def printed(capsys, *words: object, code: int = 0) -> str:
    assert cli.main(["compare", *map(str, words)]) == code
    streams = capsys.readouterr()
    return streams.out if code == 0 else streams.err


def data(capsys, *words: object) -> dict:
    return json.loads(printed(capsys, *words, "--json"))


@pytest.fixture
def two(tmp_path) -> Path:
    """Clearly different, five seeds each."""
    variant(tmp_path / "runs", "low", [100.0, 104, 98, 102, 96], 0.001)
    variant(tmp_path / "runs", "high", [200.0, 210, 190, 204, 196], 0.01)
    return tmp_path / "runs"


def test_a_screen_with_every_seed_and_no_verdict_where_nothing_was_declared(two, capsys):
    text = printed(capsys, two)
    lines = text.splitlines()
    assert len(lines) <= 15
    assert lines[0].startswith("made-v1: final eval/return_det at step 4,000; 2 variants, 10 runs (relab 10)")
    assert lines[2].split()[:3] == ["high", "5", "200"], "best first"
    assert sum("∙•●".index(c) + 1 for line in lines[2:4] for c in line if c in "∙•●") <= 10
    assert "P(better) 0.00 [0.00, 0.36]" in lines[3]
    assert "exploratory: low against high: -100 [-109" in text
    assert "Yes" not in text
    assert "differ, in this order: algo.lr 0.01 | 0.001" in text


def test_a_declared_comparison_is_tested_and_one_under_five_seeds_is_not(two, tmp_path, capsys):
    text = printed(capsys, two, "--declare", "high>low", "--smallest-effect", 20)
    assert "declared (--declare): Yes: high is better than low, by +100" in text
    assert "Holm p" in text
    text = printed(capsys, two, "--declare", "low>high")
    assert "No: low is worse than high" in text
    shutil.rmtree(two / "high-s4")
    text = printed(capsys, two, "--declare", "high>low")
    assert "No answer under 5 seeds a variant" in text
    assert "P(better)" not in text


def test_without_a_path_and_without_runs_it_says_what_it_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for state in ("does not exist", "is empty"):
        said = printed(capsys, code=64)
        assert "needs runs of two configs or more, but no path is named" in said
        assert f"the folder runs {state}" in said
        (tmp_path / "runs").mkdir(exist_ok=True)


def test_declared_names_must_be_there(two, capsys):
    assert "which must be two variants of one task; there are high, low" in printed(
        capsys, two, "--declare", "wide>low", code=64
    )
    assert "takes 'A>B'" in printed(capsys, two, "--declare", "high", code=64)


def test_holm_gives_the_second_comparison_a_larger_share(tmp_path, capsys):
    """Three declared: the clearest passes at alpha / 3, the next, which would fail there, at alpha / 2."""
    from scipy import stats as oracle

    base = [0.0, 1.1, 2.3, 3.2, 4.7]
    shifts = {"far": 9.0, "near": 3.5, "same": 0.1}
    variant(tmp_path, "base", [100 + x for x in base], 0.1)
    for i, (name, shift) in enumerate(shifts.items()):
        variant(tmp_path, name, [100 + x + shift for x in base], 0.2 + i)
    words = [w for name in shifts for w in ("--declare", f"{name}>base")]
    pairs = {p["b"]: p for p in data(capsys, tmp_path, *words)["tasks"][0]["comparisons"] if p["declared"]}
    for name in ("near", "same"):  # deals of ten numbers have no p below 2 / 252, where Welch's t goes on
        arms = base, [x + shifts[name] for x in base]
        t = lambda x, y, axis: oracle.ttest_ind(x, y, equal_var=False, axis=axis).statistic  # noqa: E731
        p = oracle.permutation_test(arms, t, permutation_type="independent", vectorized=True, n_resamples=252).pvalue
        assert pairs[name]["p"] == pytest.approx(min(p, 1), rel=1e-3)
    assert pairs["far"]["p"] < 2 / 252
    assert 0.05 / 3 < pairs["near"]["p"] < 0.05 / 2
    assert [pairs[name]["verdict"] for name in shifts] == ["yes", "yes", "cannot tell yet"]
    assert pairs["near"]["p_holm"] == pytest.approx(2 * pairs["near"]["p"])
    assert pairs["near"]["level"] == pytest.approx(1 - 0.05 / 2)


def test_all_at_the_ceiling_offers_the_time_to_a_level(tmp_path, capsys):
    for name, curve, lr in (("slow", [20.0, 100, 300, 500, 500], 0.1), ("fast", [20.0, 500, 500, 500, 500], 0.2)):
        variant(tmp_path, name, [500.0] * 5, lr, curve=curve, spread=0.0, meta=CEILING)
    text = printed(capsys, tmp_path)
    assert "all 2 are at the ceiling (500), where this metric tells nothing apart" in text
    assert "--at first_step_reaching --level" in text
    text = printed(capsys, tmp_path, "--at", "first_step_reaching", "--level", 475)
    assert text.splitlines()[2].split()[:3] == ["fast", "5", "1,000,"]
    assert "exploratory: slow against fast: -2,000" in text


def test_a_level_never_reached_is_censored_and_worse_than_any_time(tmp_path, capsys):
    variant(tmp_path, "fast", [500.0] * 5, 0.1, curve=[20.0, 500, 500, 500, 500])
    variant(tmp_path, "never", [100.0] * 5, 0.2, curve=[20.0, 100, 100, 100, 100])
    task = data(capsys, tmp_path, "--at", "first_step_reaching", "--level", 475)["tasks"][0]
    rows = {row["label"]: row for row in task["variants"]}
    never = {"level": 475.0, "reached": 0, "n": 5, "median": "Infinity", "until": 4000.0, "source": "evaluations"}
    assert rows["never"]["threshold"] == never
    assert rows["never"]["better"][0] == 0.0
    assert task["comparisons"][0]["delta"] == -3000.0


def test_success_rates_are_clustered_by_seed(tmp_path, capsys):
    from relab import stats
    from relab.record.run_folder import Record

    hits = {"a": [5, 6, 5, 7, 5], "b": [9, 10, 9, 10, 8]}
    for lr, (name, counts) in enumerate(hits.items()):
        variant(tmp_path, name, [100.0 + lr] * 5, lr)
        for seed, count in enumerate(counts):
            rows = [{"seed": j, "return": 1.0, "length": 5, "success": j < count, "end": "fell"} for j in range(10)]
            with Record.open(tmp_path / f"{name}-s{seed}") as record:
                record.append_eval({"step": 5000, "mode": "det", "noise": 0.0, "episodes": rows})
    task = data(capsys, tmp_path, "--at", "success_rate", "--declare", "b>a")["tasks"][0]
    best = task["variants"][0]
    exact = stats.clustered_rate(hits["b"], [10] * 5)
    assert (best["label"], best["mean"]["mid"]) == ("b", pytest.approx(0.92))
    assert (best["mean"]["low"], best["mean"]["high"]) == pytest.approx((exact.low, exact.high))
    exact = stats.rate_difference(hits["a"], [10] * 5, hits["b"], [10] * 5)
    assert task["comparisons"][0]["low"] == pytest.approx(exact.low)
    assert task["comparisons"][0]["verdict"] == "yes"


def test_the_noise_of_the_evaluation_is_told_from_the_spread_of_seeds(two, capsys):
    """Ten episodes of mean ± 2: a standard error of 2/3, against seeds that spread by 7.6 and 3.2."""
    noise = {row["label"]: row["noise"] for row in data(capsys, two)["tasks"][0]["variants"]}
    for label, values in {"high": [200.0, 210, 190, 204, 196], "low": [100.0, 104, 98, 102, 96]}.items():
        assert noise[label]["error"] == pytest.approx(2 / 3)
        assert noise[label]["share"] == pytest.approx((2 / 3) ** 2 / statistics.variance(values))
    assert "noise of the evaluation itself:\n  high 1%\n  low 4%" in printed(capsys, two, "-v")


def test_unequal_lengths_are_compared_at_the_common_step(tmp_path, capsys):
    variant(tmp_path, "long", [0.0] * 5, 0.1, curve=[20.0, 40, 60, 300, 400, 500, 600, 700])
    variant(tmp_path, "short", [0.0] * 5, 0.2, curve=[20.0, 50, 70])
    task = data(capsys, tmp_path)["tasks"][0]
    assert task["step"] == 2000
    assert {row["label"]: row["mean"]["mid"] for row in task["variants"]} == {"short": 70.0, "long": 60.0}
    assert "unequal lengths: short ends at step 2,000, others go on to 7,000" in printed(capsys, tmp_path)


def test_a_run_that_died_has_no_number_and_can_decide_nothing(two, capsys):
    for seed in (1, 2, 3, 4):
        shutil.rmtree(two / f"high-s{seed}")
        write_run(
            two / f"high-s{seed}", [20.0, 50.0], seed, status="failed", config={"algo": {"name": "ppo", "lr": 0.01}}
        )
    for seed in (5, 6, 7, 8):
        write_run(
            two / f"high-s{seed}", [20.0, 50, 70, 199, 205.0 + seed], seed, config={"algo": {"name": "ppo", "lr": 0.01}}
        )
    text = printed(capsys, two, "--declare", "high>low")
    assert "high: seed 1 has no number (failed at step 1,000 of 4,000)" in text
    assert "Cannot tell yet" in text, "four of nine died: had they gone on as badly as the worst, it would be open"
    assert "not if those had gone against it" in text


def test_both_readings_of_a_diverged_run_stand_beside_the_answer_on_screen_page_and_in_json(two, capsys):
    shutil.rmtree(two / "high-s4")
    write_run(two / "high-s4", [20.0, 50, 70, 199, math.nan], 4, config={"algo": {"name": "ppo", "lr": 0.01}})
    write_run(two / "high-s5", [20.0, 50, 70, 199, 205.0], 5, config={"algo": {"name": "ppo", "lr": 0.01}})
    text = printed(capsys, two, "--declare", "high>low")
    assert "diverged runs are read both ways: " in text
    pair = next(p for p in data(capsys, two, "--declare", "high>low")["tasks"][0]["comparisons"] if p["declared"])
    assert set(pair["readings"]) == {"left out", "as the worst"}
    assert (pair["verdict"], pair["shows"], pair["reason"]) != ("yes", "", "")
    result = build.compare(
        [run for group in grouping.load(two) for run in group.runs], build.Options(), [declared.parse(["high>low"])]
    )
    lines = [line for part in comparison_page.sections(result) for line in part.lines]
    assert any(line.startswith("diverged runs are read both ways: ") for line in lines)


def test_duplicate_missing_and_broken_seeds_are_said(two, capsys):
    settings = {"algo": {"name": "ppo", "lr": 0.01}}
    shutil.copytree(two / "low-s0", two / "copy-of-low-s0")
    write_run(two / "high-s2b", [20.0, 50], 2, config=settings, status="failed")
    shutil.rmtree(two / "high-s3")
    shutil.rmtree(two / "high-s4")
    write_run(two / "high-s4", [20.0, 50, 70, 199, math.nan], 4, config=settings)
    text = printed(capsys, two, "-v")
    assert "seed 0 is there more than once" in text
    assert "seed 2 is there more than once; high-s2b is left out" in text
    assert "seeds that others have and these lack: " in text
    assert "(3)" in text
    assert "runs diverged (seed 4: 1 of its last 1 values not finite)" in text
    assert {row["mean"]["n"] for row in data(capsys, two)["tasks"][0]["variants"]} == {3, 5}


def test_what_may_not_be_compared_is_named_with_the_fact(tmp_path, capsys):
    variant(tmp_path, "a", [100.0, 110], 0.1, meta={"spec": {"env": "made-v1", "horizon": 500}})
    variant(tmp_path, "b", [100.0, 110], 0.2, meta={"spec": {"env": "made-v1", "horizon": 200}})
    text = printed(capsys, tmp_path)
    assert text.startswith("Nothing to compare: 4 runs")
    assert "its horizon is 500, that of" in text
    why = printed(capsys, tmp_path, "--why")
    assert "horizon      differs" in why
    assert "observation  unknown" in why
    assert "environment  same" in why


def test_one_environment_under_two_spellings_is_one(tmp_path, capsys):
    bounds = {"env": "pendulum-v1", "reward_low": -16.27360440108936, "reward_high": 0.0}
    variant(tmp_path, "a", [-150.0, -140], 0.1, meta={"spec": bounds})
    variant(
        tmp_path,
        "b",
        [-150.0, -170],
        0.2,
        meta={"spec": bounds | {"env": "gym:Pendulum-v1", "reward_low": -16.2736044}},
    )
    assert printed(capsys, tmp_path).startswith("Pendulum-v1: final eval/return_det")


def test_three_formats_in_one_call(tmp_path, capsys):
    spec = {"env": "cartpole-v1", "agents": 1, "action": {"kind": "discrete", "dim": 1, "n": [2]}, "horizon": 500}
    variant(tmp_path / "mine", "mine", [100.0, 110], 0.1, meta={"spec": spec}, every=100)
    paths = [fixtures() / "sb3", fixtures() / "tensorboard" / "cleanrl", tmp_path / "mine"]
    body = data(capsys, *paths, "--metric", "return/mean")
    sources = {s for task in body["tasks"] for row in task["variants"] for s in row["sources"]}
    assert {"relab", "sb3", "tensorboard"} <= sources
    text = printed(capsys, *paths)
    assert "it has no eval/return_det; return/mean ends at " in text
    assert "; --metric return/mean compares " in text


@pytest.mark.parametrize("form", [(), ("-v", "--leading"), ("--why",), ("--latex",), ("--json",)], ids=str)
@pytest.mark.some(2)
def test_logs_of_every_tool_can_be_compared(form, capsys):
    """Whatever the fixtures of the importers hold, all at once: no exception, no warning, and a short screen."""
    text = printed(capsys, fixtures(), *form)
    assert text.strip()
    assert form or len(text.splitlines()) <= 18


def test_by_a_key_pools_what_else_differs_and_says_so(two, capsys):
    write_run(two / "other-s9", [20.0, 50, 70, 199, 205], 9, config={"algo": {"name": "ppo", "lr": 0.01, "clip": 0.1}})
    text = printed(capsys, two, "--by", "lr")
    assert "lr=0.01 " in text
    assert "pools 2 configs that differ in algo.clip" in text
    assert "nearest key is `algo.lr`" in printed(capsys, two, "--by", "algo.lx", code=64)


def test_the_same_seed_of_another_config_is_another_sample(tmp_path, capsys):
    """Five seeds of two clips for each lr: ten runs a variant, in the table and in the verdict."""
    for lr, level in ((0.1, 100.0), (0.2, 200.0)):
        for clip in (0.1, 0.3):
            for seed in range(5):
                config = {"algo": {"name": "ppo", "lr": lr, "clip": clip}}
                write_run(tmp_path / f"lr{lr}-c{clip}-s{seed}", [20.0, level + seed + 10 * clip], seed, config=config)
    task = data(capsys, tmp_path, "--by", "lr", "--declare", "algo.lr=0.2>algo.lr=0.1")["tasks"][0]
    assert [row["mean"]["n"] for row in task["variants"]] == [10, 10]
    assert [pair["n"] for pair in task["comparisons"]] == [[10, 10]]


def test_the_same_config_in_two_paths(tmp_path, capsys):
    variant(tmp_path / "old", "x", [100.0, 104, 98, 102, 96], 0.1)
    variant(tmp_path / "new", "x", [200.0, 204, 198, 202, 196], 0.1)
    text = printed(capsys, tmp_path / "old", tmp_path / "new")
    assert text.startswith("warning: new/x, old/x have the same settings, but"), "the code between them changed"
    assert "Nothing to compare" in printed(capsys, tmp_path / "old", tmp_path / "new", "--by", "settings")
    variants = data(capsys, tmp_path / "old", tmp_path / "new", "--by", "path")["tasks"][0]["variants"]
    assert [(Path(row["label"]).name, row["mean"]["mid"]) for row in variants] == [("new", 200.0), ("old", 100.0)]


def test_an_experiment_is_asked_its_own_question(two, capsys):
    from relab.comparison import answer as answers
    from relab.comparison.outcomes import Outcome

    low, high = ([Outcome(v, i, f"s{i}") for i, v in enumerate(x)]
                 for x in ([100.0, 104, 98, 102, 96], [200.0, 210, 190, 204, 196]))  # fmt: skip
    kept = answers.answer(low, high, 20.0, names=("low", "high"))
    body = {"answers": [kept.to_dict()], "looks": {"high": [[5, 5]]}}
    (two.parent / "answer.json").write_text(json.dumps(body))
    text = printed(capsys, two)
    assert kept.text in text
    assert f"declared (experiment {two.parent.name})" in text
    other = printed(capsys, two, "--at", "mean_last_m")
    assert f"not as experiment {two.parent.name} asks it, so nothing here is declared" in other
    assert "declared (" not in other


@pytest.mark.parametrize("looks", [None, {"high": 5}, {"high": [5]}, {"high": [["a", "b"]]}, {"high": [[]]}])
def test_an_experiment_whose_looks_are_damaged_declares_nothing(two, capsys, looks):
    as_experiment(two.parent, ("low", "high"), [LOW, HIGH])
    kept = two.parent / "answer.json"
    kept.write_text(json.dumps({**json.loads(kept.read_text()), "looks": looks}))
    text = printed(capsys, two)
    assert "declared (" not in text
    assert "exploratory: " in text


def as_experiment(home: Path, names: tuple[str, str], values: list[list[float]], smallest: float = 20.0) -> str:
    """An experiment's folder as it stands once it has answered; the answer's sentence."""
    from relab.comparison import answer as answers
    from relab.comparison.outcomes import Outcome

    arms = [[Outcome(v, i, f"{name}-s{i}") for i, v in enumerate(each)] for name, each in zip(names, values)]
    kept = answers.answer(*arms, smallest, names=names)
    (home / "answer.json").write_text(json.dumps({"answers": [kept.to_dict()], "looks": {names[1]: [[5, 5]]}}))
    cells = [{"run": f"runs/{name}-s{i}", "variant": name, "seed": i, "status": "finished"}
             for name in names for i in range(5)]  # fmt: skip
    (home / "runs.json").write_text(json.dumps({"runs": cells}))
    return kept.text


LOW, HIGH = [100.0, 104, 98, 102, 96], [200.0, 210, 190, 204, 196]


@pytest.mark.parametrize("place", ["runs", "../other", "."], ids=["among its cells", "beside it", "in its folder"])
@pytest.mark.some(1)
def test_other_runs_never_change_a_declared_answer(tmp_path, capsys, place):
    home = tmp_path / "study" / "lr"
    variant(home / "runs", "low", LOW, 0.001)
    variant(home / "runs", "high", HIGH, 0.01)
    text = as_experiment(home, ("low", "high"), [LOW, HIGH])
    kept = text.split(",")[1:]
    alone = data(capsys, home)["tasks"][0]["comparisons"]
    variant(home / place, "brief", [60.0, 61.0], 0.1, curve=[20.0, 60.0])
    for path in (home, tmp_path / "study"):
        if path == home and place.startswith(".."):
            continue
        screen, document = printed(capsys, path), data(capsys, path)
        assert all(part in screen for part in kept), "the same numbers as in answer.json"
        assert "at step 4,000" in screen.splitlines()[0]
        assert screen.count("that experiment lr did not make") == 1
        pair, was = document["tasks"][0]["comparisons"][0], alone[0]
        assert [pair[k] for k in ("delta", "low", "high", "n")] == [was[k] for k in ("delta", "low", "high", "n")]
    together = printed(capsys, home.parent, "--by", "settings")
    assert "at step 4,000" in together.splitlines()[0]
    assert "brief: seed 1 has no number" in together, "two short runs of twelve cut nobody"
    assert "declared (" not in together


def test_an_experiment_takes_each_cell_as_it_ended(tmp_path, capsys):
    """Budgets that differ by variant are part of the question: no cell is cut to the shortest."""
    variant(tmp_path / "runs", "low", LOW, 0.001, curve=None)
    variant(tmp_path / "runs", "high", HIGH, 0.01, curve=[20.0, 90.0, 200.0])
    as_experiment(tmp_path, ("low", "high"), [LOW, [200.0] * 5])
    variants = {row["label"]: row["mean"]["mid"] for row in data(capsys, tmp_path)["tasks"][0]["variants"]}
    assert variants == {"low": 100.0, "high": 200.0}


def test_a_part_of_an_experiment_answers_nothing(tmp_path, capsys):
    home = tmp_path / "lr"
    variant(home / "runs", "low", LOW, 0.001)
    variant(home / "runs", "high", HIGH, 0.01)
    as_experiment(home, ("low", "high"), [LOW, HIGH])
    (tmp_path / "some").mkdir()
    from relab import load
    from relab.comparison import declared

    runs = list(load(home))
    assert [plan.source for plan in declared.of_runs(runs)] == ["experiment lr"]
    assert declared.of_runs(runs[1:]) == []


def test_two_experiments_in_a_folder_are_answered_each_from_its_own_runs(tmp_path, capsys):
    for name, rate in (("first", 0.001), ("second", 0.002)):
        variant(tmp_path / name / "runs", "low", LOW, rate)
        variant(tmp_path / name / "runs", "high", HIGH, 10 * rate)
        as_experiment(tmp_path / name, ("low", "high"), [LOW, HIGH])
    tasks = data(capsys, tmp_path)["tasks"]
    declared = [[pair["declared"] for pair in task["comparisons"]] for task in tasks]
    assert declared == [["experiment first"], ["experiment second"]]
    assert all(task["comparisons"][0]["n"] == [5, 5] for task in tasks)


def test_tables_are_escaped(tmp_path, capsys):
    variant(tmp_path, "a|b_<i>&50%", [100.0, 104], 0.1)
    variant(tmp_path, "plain", [100.0, 105], 0.2)
    row = next(line for line in printed(capsys, tmp_path, "--markdown").splitlines() if "50%" in line)
    assert row.startswith(r"| a\|b\_\<i\>&50% |")
    row = next(
        line for line in printed(capsys, tmp_path, "--latex").splitlines() if "50" in line and "textless" in line
    )
    assert row.startswith(r"a|b\_\textless{}i\textgreater{}\&50\% & ")
    assert row.endswith(r"\\")


def test_control_characters_stay_off_the_terminal(tmp_path, capsys):
    variant(tmp_path, "a\x1b[31m", [100.0, 104], 0.1)
    variant(tmp_path, "plain", [100.0, 105], 0.2)
    assert "\x1b" not in printed(capsys, tmp_path)


def test_stages_become_a_table(two, capsys):
    from relab.record.run_folder import Record

    for run in sorted(two.iterdir()):
        with Record.open(run) as record:
            record.append_event("stage", 0, name="easy")
            record.append_event("stage", 3000, name="hard")
    assert "these runs have parts: --per stage" in printed(capsys, two)
    text = printed(capsys, two, "--per", "stage", "-v")
    hard = next(line for line in text.splitlines() if line.startswith("  hard"))
    assert "199.5 (5)" in hard, "mean of the last two evaluations: 199 and 200"
    assert "none of: stage" in printed(capsys, two, "--per", "phase", code=64)


def test_leading_indicators_are_asked_of_runs_that_lost_it_only(two, capsys):
    assert "no run learned something and lost it again" in printed(capsys, two, "--leading")
    curve = [20.0, 100, 300, 500, 500, 490, 480, 300, 100, 50, 30, 20]
    variant(two, "lost", [0.0] * 3, 0.5, curve=curve)
    text = printed(capsys, two, "--leading")
    assert "what moved before the return fell, in 3 runs (exploratory;" in text
    assert "policy/entropy" in text


def test_several_tasks_get_a_profile(tmp_path, capsys):
    for env in ("one-v1", "two-v1"):
        spec = {"spec": CEILING["spec"] | {"env": env}}
        for name, level, lr in (("good", 480.0, 0.1), ("bad", 100.0, 0.2)):
            variant(tmp_path, f"{name}-{env}", [level] * 5, lr, meta=spec, config={"env": {"name": env}})
    text = printed(capsys, tmp_path)
    assert len(text.splitlines()) <= 15
    rows = [line for line in text.splitlines() if " runs  mean " in line]
    assert len(rows) == 2
    assert "0.9: 1.00 [0.72, 1.00]  1: 0.00 [0.00, 0.28]" in rows[0], "ten runs that agree do not prove the next"
    pairs = [p for task in data(capsys, tmp_path, "--declare", "good>bad")["tasks"] for p in task["comparisons"]]
    assert [p["level"] for p in pairs if p["declared"]] == pytest.approx([0.975, 0.95]), "corrected over both tasks"


def test_the_page_of_rates_is_what_its_script_prints():
    done = subprocess.run([sys.executable, str(ROOT / "examples" / "rates.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "examples" / "rates.md").read_text()
    for line in filter(None, done.stdout.splitlines()):
        assert line in page


def test_every_quoted_rate_is_a_count_of_its_episodes():
    """93.2 % is no count of 128: the number of episodes is one at which the quoted rate is possible."""
    sys.path.insert(0, str(ROOT / "examples"))
    try:
        import rates
    finally:
        sys.path.pop(0)
    known = [(r, n) for row in rates.rows() for r, n in ((row.better, row.n_better), (row.worse, row.n_worse))]
    for rate, n in known:
        hits, all_ = rates.counted(rate, n, rates.FIRST)
        assert all_ >= rates.FIRST
        assert abs(hits / all_ - rate) <= 0.0005 + 1e-9, f"{rate} is not {hits} of {all_}"
    assert rates.episodes(0.932, 128) == 132


def test_several_folders_on_one_page(tmp_path, capsys):
    variant(tmp_path / "old", "slow", [100.0, 104, 98, 102, 96], 0.1)
    variant(tmp_path / "new", "fast", [200.0, 204, 198, 202, 196], 0.2)
    page = tmp_path / "both.html"
    assert cli.main(["report", str(tmp_path / "old"), str(tmp_path / "new"), "--out", str(page)]) == 0
    for text in (page.read_text(), page.with_suffix(".md").read_text()):
        assert "Comparison" in text
        assert "exploratory: slow against fast: -100" in text
    assert sorted(path.name for path in tmp_path.iterdir()) == ["both.html", "both.md", "new", "old"]


# ---- Lengths


def test_one_short_run_does_not_cut_the_others(tmp_path, capsys):
    """Thirty configs, one of which ended after a third of the steps: the others are compared at their end."""
    for k in range(30):
        curve = [20.0, 30.0] if k == 7 else [20.0, 40.0, 60.0, 80.0, 100.0 + k]
        variant(tmp_path / "runs", f"c{k}", [0.0], 0.001 * (k + 1), curve=curve)
    (task,) = data(capsys, tmp_path / "runs")["tasks"]
    assert (task["step"], task["cut"]) == (4000, False)
    assert any("c7: seed 0 has no number (finished at step 1,000 of 4,000)" in note for note in task["notes"])
    short = next(v for v in task["variants"] if v["label"] == "c7")
    assert short["mean"]["n"] == 0


def test_a_short_seed_does_not_cut_its_arm(tmp_path, capsys):
    variant(tmp_path / "runs", "low", [100.0, 104, 98, 102, 96], 0.001)
    variant(tmp_path / "runs", "high", [200.0, 210, 190, 204, 196], 0.01)
    shutil.rmtree(tmp_path / "runs" / "high-s4")
    write_run(tmp_path / "runs" / "high-s4", [20.0, 80.0], 4, config={"algo": {"name": "ppo", "lr": 0.01}})
    (task,) = data(capsys, tmp_path / "runs")["tasks"]
    assert (task["step"], task["cut"]) == (4000, False)
    assert sorted(v["mean"]["n"] for v in task["variants"]) == [4, 5]


def test_two_arms_of_different_length_are_compared_where_both_were_and_all_lines_speak_of_that_step(tmp_path, capsys):
    variant(tmp_path / "runs", "long", [0.0] * 5, 0.001, curve=[20.0, 50.0, 90.0, 400.0, 500.0])
    variant(tmp_path / "runs", "short", [0.0] * 5, 0.01, curve=[20.0, 60.0, 80.0])
    (task,) = data(capsys, tmp_path / "runs")["tasks"]
    assert (task["step"], task["cut"]) == (2000, True)
    for each in task["variants"]:
        assert each["peak"]["final"] == each["mean"]["mid"], "final and peak are of one step"
        assert each["peak"]["peak"] <= 90.0


def test_a_killed_run_is_no_peak(tmp_path, capsys):
    variant(tmp_path / "runs", "a", [100.0] * 5, 0.001)
    variant(tmp_path / "runs", "b", [100.0] * 4, 0.01)
    write_run(
        tmp_path / "runs" / "b-s4", [20.0, 499.0], 4, status="interrupted", config={"algo": {"name": "ppo", "lr": 0.01}}
    )
    (task,) = data(capsys, tmp_path / "runs")["tasks"]
    assert next(v for v in task["variants"] if v["label"] == "b")["peak"]["peak"] == 100.0


def test_a_mapping_may_name_the_columns_of_one_path_alone(two, tmp_path, capsys):
    odd = tmp_path / "odd" / "log.csv"
    odd.parent.mkdir()
    odd.write_text("t,R\n" + "".join(f"{100 * i},{i}\n" for i in range(1, 30)), encoding="utf-8")
    assert "odd" in printed(capsys, two, odd.parent, "--mapping", "t=step,R=return/mean")
    assert "none of the runs has a column" in printed(capsys, two, odd.parent, "--mapping", "Q=return/mean", code=64)


def test_labels_that_begin_alike_stay_apart():
    labels = [f"ppo on CartPole-v1, lr=0.{x}" for x in ("00025", "05")]
    assert len({render.short(label) for label in labels}) == 2
    assert all(len(render.short(label)) <= render.LABEL for label in labels)


def test_under_five_seeds_the_best_is_the_reference_and_another_can_be_named(tmp_path, capsys):
    variant(tmp_path, "good", [200.0], 0.1)
    variant(tmp_path, "sick", [9.0, 10.0], 0.2)
    variant(tmp_path, "fair", [150.0], 0.3)
    text = printed(capsys, tmp_path)
    assert "held against good, the best (--reference NAME for another)" in text
    assert "exploratory: sick against good: -190.5" in text
    assert data(capsys, tmp_path, "--reference", "fair")["tasks"][0]["reference"] == {
        "variant": "fair", "why": "--reference"}  # fmt: skip
    assert "must be one of the variants, but there are good, fair, sick" in printed(
        capsys, tmp_path, "--reference", "nosuch", code=2)  # fmt: skip


def test_the_steps_of_the_evaluations_are_named_not_those_that_were_aimed_at(tmp_path, capsys):
    write_run(tmp_path / "a-s0", [1.0, 2, 3, 4], 0, config={"algo": {"name": "ppo", "lr": 0.1}}, every=2000)
    write_run(tmp_path / "b-s0", [1.0, 2, 3, 4], 0, config={"algo": {"name": "ppo", "lr": 0.2}}, every=5000)
    text = printed(capsys, tmp_path)
    assert "at steps 5,000 to 6,000, the last up to 6,000, where the shortest ends" in text
    assert "earlier in some: b at 5,000" in text


def test_steps_to_a_level_end_where_the_comparison_ends(tmp_path, capsys):
    """A level that is reached behind the common step was not reached in what is compared."""
    variant(tmp_path, "long", [100.0] * 5, 0.001, curve=[20.0, 30.0, 40.0, 50.0, 480.0])
    variant(tmp_path, "brief", [60.0] * 5, 0.01, curve=[20.0, 60.0, 90.0])
    rows = data(capsys, tmp_path, "--level", 400)["tasks"][0]["variants"]
    assert {row["label"]: row["threshold"]["reached"] for row in rows} == {"long": 0, "brief": 0}
    text = printed(capsys, tmp_path, "--level", 400)
    assert "at step 2,000" in text.splitlines()[0]
    assert "long not reached by half (0 of 5)" in text


def test_a_mean_of_the_last_evaluations_says_how_many_there_are(tmp_path, capsys):
    variant(tmp_path, "few", [100.0] * 2, 0.001, curve=[20.0, 60.0, 90.0, 100.0])
    variant(tmp_path, "fewer", [60.0] * 2, 0.01, curve=[20.0, 60.0, 100.0, 40.0])
    assert "mean of last 4: few 100" in printed(capsys, tmp_path)


def test_what_relab_notes_of_itself_cuts_no_run_into_parts():
    events = [{"kind": "profile", "step": 1024, "folder": "profile"}, {"kind": "stage", "step": 2048}]
    assert phases.kinds([SimpleNamespace(history=SimpleNamespace(events=events))]) == ["stage"]  # type: ignore[list-item]


def test_a_level_that_nobody_reached_tells_nothing_apart(two, capsys):
    text = printed(capsys, two, "--at", "first_step_reaching", "--level", 9000)
    assert "no run of either reached it" in text
    assert "no seed differs" not in text


def plain_logs(folder: Path, *names: str, seeds: int = 5) -> Path:
    """CSV files of a program that never says its environment."""
    for place, name in enumerate(names):
        for seed in range(seeds):
            rows = [f"{1000 * i},{100 * (place + 1) + i + seed / 10}" for i in range(1, 31)]
            (folder / f"{name}_s{seed}").mkdir(parents=True)
            (folder / f"{name}_s{seed}" / "log.csv").write_text("\n".join(["global_step,episode_reward", *rows, ""]))
    return folder


def test_algorithms_that_lie_in_one_folder_may_have_two_tasks(tmp_path, capsys):
    """DQN and SAC have different actions; where no log says its environment, which is better is no question."""
    logs = plain_logs(tmp_path, "dqn", "sac")
    text = printed(capsys, logs)
    assert "it cannot be known whether they have the same task" in text
    assert "exploratory" not in text
    assert "P(better)" not in text
    assert data(capsys, logs)["tasks"] == []


@pytest.mark.parametrize("how", ["paths", "by", "declare", "spec"])
def test_algorithms_are_compared_where_the_user_names_the_comparison(tmp_path, capsys, how):
    logs = plain_logs(tmp_path / "logs", "dqn", "sac")
    some = sorted(map(str, logs.iterdir()))
    words = {"paths": some, "by": [logs, "--by", "algo.name"], "declare": [logs, "--declare", "sac>dqn"],
             "spec": [logs, "--spec", "env=CartPole-v1"]}[how]  # fmt: skip
    text = printed(capsys, *words)
    assert "it cannot be known" not in text
    assert "declared" in text if how == "declare" else "exploratory" in text


def test_plain_logs_of_one_algorithm_or_of_none_are_compared_without_an_environment(tmp_path, capsys):
    for names in (("wide", "narrow"), ("ppo_wide", "ppo_narrow"), ("ppo", "mine")):
        text = printed(capsys, plain_logs(tmp_path / "-".join(names), *names))
        assert "exploratory" in text
        assert "no run says which environment it is" in text


def test_of_five_configs_each_key_says_who_has_another_value(tmp_path, capsys):
    odd = [{}, {"gamma": 0.9}, {"clip": 0.1}, {"epochs": 9}, {"sde": True}, {"vf": 2.0}]
    base = {"name": "ppo", "lr": 0.001, "gamma": 0.99, "clip": 0.2, "epochs": 4, "vf": 0.5}
    for name, change in zip("abcdef", odd):
        variant(tmp_path / "runs", name, [100.0, 104], 0.001, config={"algo": {**base, **change}})
    text = printed(capsys, tmp_path / "runs", "--by", "name")
    (line,) = [each for each in text.splitlines() if each.startswith("differ")]
    for key in ("gamma 0.99, but 0.9 in", "clip 0.2, but 0.1 in", "epochs 4, but 9 in", "vf 0.5, but 2 in", "True in"):
        assert key in line
    assert "Not in the table, but different: algo." in printed(capsys, tmp_path / "runs", "--markdown")


STANDINGS = {
    "Exploratory: low is better than high by": ([200.0, 210, 190, 204, 196], [100.0, 104, 98, 102, 96]),
    "Exploratory: cannot tell yet whether low or high is better: low leads by": (
        [101.0, 121, 98, 112, 90], [100.0, 124, 98, 102, 96]),
    "Exploratory: cannot tell yet whether low or high is better: low ends at 200, high at 102, but 2 and 2 seeds":
        ([200.0, 200], [100.0, 104]),
    "Exploratory: high and low cannot be told apart: all end at the ceiling (500).": ([500.0] * 5, [500.0] * 5),
}  # fmt: skip


@pytest.mark.parametrize("words", STANDINGS)
def test_a_page_of_two_configs_says_first_which_is_better_or_that_one_cannot_tell(tmp_path, capsys, words):
    low, high = STANDINGS[words]
    variant(tmp_path, "low", low, 0.001, meta=CEILING)
    variant(tmp_path, "high", high, 0.01, meta=CEILING)
    assert cli.main(["report", str(tmp_path), "--json"]) == 0
    page = json.loads(capsys.readouterr().out)
    assert page["first"]["sentence"].startswith(words)
    assert page["sentence"].startswith(page["first"]["sentence"].split(". ")[0])
    assert "exploratory" in page["first"]["detail"]


def test_a_page_of_three_configs_names_those_that_the_first_cannot_be_told_from(two, capsys):
    variant(two, "near", [199.0, 214, 188, 201, 199], 0.02)
    assert re.match(r"Exploratory: \S+ ends highest, but cannot be told from \S+ yet: ahead of", _standing(two))
    variant(two, "far", [400.0, 414, 388, 401, 399], 0.04)
    assert re.match(r"Exploratory: \S+ is better than the 3 others: ahead of the next, \S+ by 200", _standing(two))


def _standing(folder) -> str:
    return content.content([folder]).standing[0]


def test_what_nobody_declared_is_called_exploratory_by_every_command(two, capsys):
    for command in ("report", "note", "compare"):
        assert cli.main([command, str(two)]) == 0
        assert "xploratory: " in capsys.readouterr().out
    assert repr(api.compare(two)).startswith("exploratory: ")


def test_a_lead_at_the_step_where_the_shortest_ends_is_not_called_an_end(tmp_path):
    """The killed run was ahead when it was killed; the other one ended higher."""
    variant(tmp_path, "killed", [400.0], 0.1, every=100)
    variant(tmp_path, "plain", [450.0], 0.2)
    variant(tmp_path, "third", [300.0], 0.3)
    (text, _) = content.content([tmp_path]).standing
    assert "killed is highest at step 400, where the shortest run ends, ahead of" in text
    assert "ends highest" not in text


def logs(folder: Path, name: str, column: str, height: float, seeds: int = 5, evaluated: str = "") -> None:
    """CSV files of one config: a training return of this name, and evaluations of the seeds in `evaluated`."""
    for seed in range(seeds):
        place = folder / f"{name}_s{seed}"
        place.mkdir(parents=True)
        (place / "config.json").write_text(json.dumps({"lr": height, "seed": seed, "env": "made-v1", "algo": "ppo"}))
        judged = str(seed) in evaluated
        rows = [f"{step},{height * min(step, 4) / 4 + seed}{f',{height + seed}' * judged}" for step in range(10)]
        head = f"step,{column}{',eval/return' * judged}"
        (place / "progress.csv").write_text("\n".join([head, *rows]))


def test_runs_that_name_their_return_of_training_differently_are_compared_by_their_own(tmp_path, capsys):
    for name, column, height in (("a", "return", 90.0), ("b", "return", 80.0), ("c", "ep_rew_mean", 40.0)):
        logs(tmp_path / "runs", name, column, height)
    logs(tmp_path / "runs", "d", "fitness", 20.0)
    found = data(capsys, tmp_path / "runs")
    (task,) = found["tasks"]
    assert [(row["label"], round(row["mean"]["mid"])) for row in task["variants"]] == [("a", 92), ("b", 82), ("c", 42)]
    assert any("return/mean_100 stands for return/mean" in note for note in found["notes"])
    assert found["not_compared"] == [
        {"group": "d", "why": "it has no return/mean (if it is `fitness`: --mapping 'fitness=return/mean')"}
    ]


def test_a_config_without_evaluations_beside_some_with_them_is_shown_with_its_own_number(tmp_path, capsys):
    for name, evaluated in (("a", "01234"), ("b", "01234"), ("c", "")):
        logs(tmp_path / "runs", name, "return", 10.0 * ord(name), evaluated=evaluated)
    found = data(capsys, tmp_path / "runs")
    assert found["tasks"][0]["metric"] == "eval/return_det"
    (apart,) = found["not_compared"]
    assert apart["why"].startswith("it has no eval/return_det; return/mean ends at 992")
    assert apart["why"].endswith("--metric return/mean compares 3 configs by that")


def test_half_of_the_seeds_evaluated_is_no_reason_to_leave_out_the_other_half(tmp_path, capsys):
    for name in "ab":
        logs(tmp_path / "runs", name, "return", 10.0 * ord(name), seeds=6, evaluated="135")
    (task,) = data(capsys, tmp_path / "runs")["tasks"]
    assert task["metric"] == "return/mean"
    assert [row["mean"]["n"] for row in task["variants"]] == [6, 6]


def test_a_run_whose_numbers_broke_is_worth_nothing_that_was_measured_before(two, tmp_path, capsys):
    """Its only evaluation is of the weights that it began with: it cuts nobody to step 0, and counts as diverged."""
    why = "parameters are not finite after step 500 (not finite: optim/param_norm); lower `lr` (now 1e+30)"
    for seed in range(5):
        meta = {"why": why, "step": 500} | ({"diverged": True, "why": "broke"} if seed else {})
        write_run(two / f"wild-s{seed}", [20.0], seed, status="failed", config={"algo": {"name": "ppo", "lr": 1e30}},
                  meta=meta)  # fmt: skip
    (task,) = data(capsys, two)["tasks"]
    assert task["step"] == 4000
    rows = {row["label"]: row for row in task["variants"]}
    assert (rows["wild"]["diverged"], rows["wild"]["mean"]["n"], rows["high"]["mean"]["n"]) == (5, 0, 5)
    text = printed(capsys, two)
    assert re.search(r"wild +0  diverged ", text)
    assert "how far they had come" not in text
    assert "5 of 5 runs diverged (seed 0: its numbers were not finite at step 500)" in text
    assert cli.main(["examine", str(two)]) == 0
    assert "diverged, diverged, diverged, diverged, diverged" in capsys.readouterr().out
    assert cli.main(["runs", str(two), "--match", "wild", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert {row["outcome"] for row in listed["runs"]} <= {None, "NaN"}


def test_one_seed_that_broke_is_counted_beside_the_others_of_its_config(two, capsys):
    write_run(two / "high-s5", [20.0, 90.0], 5, status="failed", config={"algo": {"name": "ppo", "lr": 0.01}},
              meta={"diverged": True, "why": "broke", "step": 1500})  # fmt: skip
    (task,) = data(capsys, two)["tasks"]
    (row,) = [row for row in task["variants"] if row["label"] == "high"]
    assert (row["mean"]["n"], row["diverged"], row["mean"]["mid"]) == (5, 1, 200.0)


def test_the_dots_of_all_rows_begin_at_one_place(tmp_path, capsys):
    variant(tmp_path, "low", [-10_500.25, -10_400.5, -10_600.75, -10_300.5, -10_450.25], 0.001)
    variant(tmp_path, "high", [-2.0, -2.0, -2.0, -2.0, -2.0], 0.01)
    rows = [line for line in printed(capsys, tmp_path).splitlines() if re.search("[∙•●]", line)]
    assert len({re.search("[·∙•●]", row).start() for row in rows}) == 1
    assert max(map(len, rows)) > 60


def test_configs_whose_runs_all_came_to_one_number_are_tied(tmp_path, capsys):
    variant(tmp_path, "a", [1.0] * 5, 0.001)
    variant(tmp_path, "b", [1.0] * 5, 0.01)
    assert cli.main(["report", str(tmp_path), "--out", str(tmp_path / "page.html")]) == 0
    said = capsys.readouterr().out
    assert "cannot be told apart: all runs of both end at 1 (5 and 5 seeds)" in said
    assert "leads by 0" not in said


def test_runs_that_do_not_tell_the_setting_are_left_out_and_the_others_compared(two, capsys):
    write_run(two / "silent-s0", [20.0, 30.0, 40.0], 0, config={"algo": {"name": "ppo"}})
    (two / "bare").mkdir()
    (two / "bare" / "log.csv").write_text("step,episode_return\n0,1\n1000,2\n2000,4\n")
    text = printed(capsys, two, "--by", "algo.lr")
    assert all(said in text for said in ("lr=0.01", "lr=0.001", "silent", "its record has no setting `algo.lr`"))
    assert "lr=-" not in text
    assert "bare" in printed(capsys, two, "--by", "lr", "-v")
    assert "fits none" in printed(capsys, two / "bare", "--by", "lr", code=64)
