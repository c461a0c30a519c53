"""Do the folders of loops, curricula and probe sweeps keep what their authors wrote down?"""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from relab.formats.read import find
from relab.record.history import History
from where import ROOT, fixtures

FIXTURES = fixtures()
CORPUS = ROOT.parent / "shared" / "corpus"
needs_corpus = pytest.mark.skipif(not CORPUS.is_dir(), reason="needs ../shared/corpus")


def runs(folder: Path) -> dict[str, History]:
    loaded = find.load_all(folder)
    assert loaded.broken == []
    return {run.name: run.history for run in loaded.runs}


# ---- A loop


def test_a_loop_knows_its_parents_and_what_was_asked() -> None:
    first, second, last = runs(FIXTURES / "loop").values()
    assert "parent" not in first.meta
    assert (second.meta["parent"], last.meta["parent"]) == ("2025-01-01T000000Z", "2025-01-01T010000Z")
    assert second.meta["intent"] == "asked for train.clip_coef (algo.clip) 0.12"
    assert second.meta["changed"]["train.ent_coef"] == {"from": 0.01, "to": 0.1}
    assert second.meta["resumed"] == {"load_model_path": "/models/a.pt"}
    assert second.config["algo"] == {"lr": 0.002, "ent_coef": 0.1, "clip": 0.12}
    assert second.column("policy/entropy").steps[-1] == 10 * 8192


def test_the_best_belongs_to_the_run_that_it_names() -> None:
    by_name = runs(FIXTURES / "loop")
    best = {name: run.meta["best"] for name, run in by_name.items() if "best" in run.meta}
    assert list(best) == ["2025-01-01T000000Z"]
    assert (best["2025-01-01T000000Z"]["metric"], best["2025-01-01T000000Z"]["value"]) == ("summary/success_rate", 12.5)


def test_a_run_alone_does_not_reach_above_its_folder() -> None:
    (run,) = runs(FIXTURES / "loop" / "2025-01-01T000000Z").values()
    assert "best" not in run.meta


def test_a_run_without_a_result_says_so() -> None:
    last = runs(FIXTURES / "loop")["2025-01-01T020000Z"]
    assert "the run left no result" in last.problems[0].message
    assert "status" not in last.meta


def test_a_broken_file_of_a_loop_is_named(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "loop" / "2025-01-01T010000Z", tmp_path / "r")
    (tmp_path / "r" / "trainer_summary.json").write_text('{"metrics": ')
    (run,) = runs(tmp_path).values()
    assert [p.file for p in run.problems] == ["trainer_summary.json"]
    assert run.column("foreign/summary/mean_reward").values.tolist() == [3.0]  # from summary.json


# ---- A curriculum with a gate


def test_each_try_is_a_run() -> None:
    by_name = runs(FIXTURES / "swarm")
    assert list(by_name) == ["escape_v1/try-1", "escape_v1"]
    first, last = by_name.values()
    assert first.column("foreign/multi_eval/summary/avg_survival").steps.tolist() == [4, 8]
    assert last.column("foreign/multi_eval/summary/avg_survival").steps.tolist() == [4, 8, 12, 16, 20]
    assert (first.meta["status"], last.meta["status"]) == ("interrupted", "finished")
    assert first.column("return/mean_100").steps[-1] == 8 * 128


def test_rows_without_a_time_belong_to_the_last_try(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "swarm", tmp_path / "s")
    with open(tmp_path / "s" / "escape_v1" / "eval_multi_history.jsonl", "a") as file:
        file.write('{"iteration": 24, "extra": 1.5}\n{"no": 1}\n')
    first, last = runs(tmp_path).values()
    assert "foreign/multi_eval/extra" not in first.columns
    assert last.column("foreign/multi_eval/extra").steps.tolist() == [24]
    assert any("1 rows have no integer `iteration`" in p.message for p in last.problems)


def test_gates_and_stages_are_events() -> None:
    last = runs(FIXTURES / "swarm")["escape_v1"]
    gates = [(e["step"], e["decision"]) for e in last.events if e["kind"] == "gate"]
    assert gates == [(4, "hold"), (8, "hold"), (12, "hold"), (16, "hold"), (20, "advance")]
    assert [(e["step"], e["stage"]) for e in last.events if e["kind"] == "stage"] == [(1, "stage1:a"), (11, "stage2:b")]


def test_two_axes_and_the_probes_of_a_curriculum() -> None:
    last = runs(FIXTURES / "swarm")["escape_v1"]
    assert last.axes["return/mean_100"] == "env_steps"
    assert last.axes["foreign/eval_probe/survival"] == "iteration"
    assert last.axes["foreign/schedule/entropy_coef"] == "iteration"
    radius = [row for row in last.probes if row["probe"] == "pre_roll/spawn_radius"]
    assert (len(radius), radius[0]["value"], radius[0]["noise"], radius[0]["n"]) == (5, 0.5, 0.1, 4)
    cluster = next(row for row in last.probes if row["probe"] == "step_one_clusters")
    assert (cluster["value"], cluster["n"], cluster["bins"]) == (0.5, 8, 2)


def test_the_command_is_the_config() -> None:
    last = runs(FIXTURES / "swarm")["escape_v1"]
    assert last.config["algo"] == {"envs": 8, "steps": 16, "ent_coef": 0.02}
    assert last.provenance == {"algo.ent_coef": "read from the log"}
    assert last.config["foreign"]["gate_success_early"] == 0.10
    assert last.config["foreign"]["curriculum"] == "5:10,10:10"
    assert (last.config["foreign"]["skip_final"], last.meta["seed"]) == (True, 77)


# ---- Curves and probes


def test_probe_rows_keep_what_is_no_number() -> None:
    run = runs(FIXTURES / "probes")["tmos0_s0"]
    assert [row["step"] for row in run.probes] == [0, 5]
    row = run.probes[0]
    assert (row["probe"], row["metric"], row["value"], row["noise"], row["n"]) == (
        "fixed_point_probe", "w_gap", 0.25, 0.01, 4096)  # fmt: skip
    assert (row["converged"], row["num_iters"]) == (False, 2000)


def test_what_was_not_measured_is_no_nan() -> None:
    run = runs(FIXTURES / "probes")["tmos0_s0"]
    assert run.column("foreign/fixed_point_gap").steps.tolist() == [0, 5]
    assert run.axes["foreign/w_norm"] == "iteration"


def test_a_nan_at_a_measured_step_stays(tmp_path: Path) -> None:
    shutil.copytree(FIXTURES / "probes" / "tmos0_s0", tmp_path / "r")
    path = tmp_path / "r" / "learning_curves.csv"
    lines = path.read_text().splitlines()
    lines[6] = lines[6].replace(",0.25", ",nan")
    path.write_text("\n".join(lines) + "\n")
    (run,) = runs(tmp_path).values()
    steps, values = run.column("foreign/fixed_point_gap")
    assert steps.tolist() == [0, 5]
    assert np.isnan(values).tolist() == [False, True]


def test_the_weights_clip_fraction_is_not_ppos() -> None:
    run = runs(FIXTURES / "probes")["tmos0_s0"]
    assert "policy/clip_share" not in run.columns
    assert "foreign/clip_fraction" in run.columns


def test_a_run_that_stopped_early_says_so() -> None:
    run = runs(FIXTURES / "probes")["tmos1_s0"]
    assert run.meta["status"] == "interrupted"
    assert run.problems[0].message == "10 iterations were planned, but the run ends after 4"


# ---- The real ones


@needs_corpus
def test_torus_of_the_corpus() -> None:
    by_name = runs(CORPUS / "torus")
    assert len(by_name) == 4
    run = by_name["b0p005_aw0p02_tmos0p2778_s0_4bd77e92"]
    assert len(run.column("foreign/w_norm").values) == 200
    assert run.column("foreign/w_norm").values[-1] == pytest.approx(0.1 * 2048**0.5, rel=0.002)
    fixed = [row for row in run.probes if row["probe"] == "fixed_point_probe"]
    assert len(fixed) > 10
    assert all(row["converged"] is False and row["num_iters"] == 2000 for row in fixed)
    assert any(key.endswith("n_power_iters") for key in run.config["foreign"])
    kl = [
        row["dist_action_kl"] for run in by_name.values() for row in run.probes if row["probe"] == "distribution_probe"
    ]
    assert min(kl) == pytest.approx(0.042995, abs=1e-6)
    assert by_name["b0p005_aw0p02_tmos0p5_s0_c42bf18b"].meta["status"] == "interrupted"


@needs_corpus
def test_drones_of_the_corpus() -> None:
    by_name = runs(CORPUS / "drones")
    assert len(by_name) == 14
    run, parent = by_name["2025-09-20T153515Z"], by_name["2025-09-20T152244Z"]
    assert run.meta["parent"] == "2025-09-20T152244Z"
    score = run.column("foreign/environment/score").values
    assert (score[0], score[-1]) == (pytest.approx(488, abs=1), pytest.approx(7.4, abs=0.1))
    assert run.column("policy/entropy").values[[0, -1]] == pytest.approx([24.0, 32.7], abs=0.1)
    assert (parent.config["algo"]["ent_coef"], run.config["algo"]["ent_coef"]) == (0.01, 0.12)
    assert "ent_coef" not in run.meta["intent"]
    assert run.column("return/mean").values[-1] == -0.301
    assert run.meta["best"]["value"] == pytest.approx(1715.8, abs=0.1)
    assert 11_038_720 / run.column("time/elapsed_s").values[-1] == pytest.approx(48.8e3, rel=0.01)


@needs_corpus
def test_fish_of_the_corpus() -> None:
    by_name = runs(CORPUS / "fish")
    assert len(by_name) == 3
    first, second, full = by_name.values()
    survival = "foreign/multi_eval/summary/avg_final_survival_rate"
    assert [run.column(survival).values[0] for run in (first, second, full)] == pytest.approx(
        [0.322, 0.879, 0.714], abs=1e-3)  # fmt: skip
    decisions = [[e["decision"] for e in run.events if e["kind"] == "gate"] for run in (first, second, full)]
    assert decisions[2] == ["failure_hold"] * 7
    assert (decisions[0] + decisions[1]).count("locked") == 1
    counts = full.column("foreign/multi_eval/step_one_death_count").values
    assert counts.tolist() == [25, 22, 19, 29, 16, 24, 29]
    assert full.config["foreign"]["penalty_gate_success_step_one"] == 18
    assert full.column("return/mean_100").steps[-1] == 983_040
    assert (second.meta["status"], full.meta["status"]) == ("interrupted", "finished")
    assert "ends at 44" in second.problems[-1].message
