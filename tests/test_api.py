"""Do load, examine and compare give in a notebook what the commands give in a terminal?"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import relab
from relab import cli
from relab.base.errors import NotFoundError
from relab.config.base import ConfigError
from relab.logger import Logger
from report.made import write_run
from where import histories

HEALTHY, FAULTY = histories() / "healthy", histories() / "faulty"


@pytest.fixture
def folder(tmp_path) -> Path:
    """Two configs of CartPole, two seeds and one."""
    for name, source in {"a-s0": HEALTHY / "cartpole", "a-s2": HEALTHY / "cartpole-2",
                         "b-s0": FAULTY / "critic-not-learning"}.items():  # fmt: skip
        shutil.copytree(source, tmp_path / "runs" / name)
    return tmp_path / "runs"


def arm(folder: Path, name: str, finals: list[float], lr: float) -> None:
    """Runs whose last evaluation is known."""
    for seed, value in enumerate(finals):
        run = folder / f"{name}-s{seed}"
        run.mkdir(parents=True)
        (run / "meta.json").write_text(json.dumps({"seed": seed, "status": "finished"}))
        (run / "config.yaml").write_text(f"algo:\n  name: ppo\n  lr: {lr}\nseed: {seed}\n")
        episode = {"seed": 0, "length": 1, "success": None, "end": "terminated"}
        rows = [{"step": s, "mode": "det", "episodes": [episode | {"return": v}]} for s, v in ((0, 0.0), (9, value))]
        (run / "evals.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_runs_are_loaded_in_groups_and_found_by_name(folder):
    runs = relab.load(folder)
    assert len(runs) == 3
    assert sorted(len(group.runs) for group in runs.groups) == [1, 2]
    assert runs["b-s0"].name == "b-s0"
    with pytest.raises(KeyError, match="means 2 of"):
        runs["a-"]
    assert [run.name for run in runs.where(seed=2)] == ["a-s2"]
    assert len(runs.where(lambda run: run.verdict.final > 450)) == 2
    assert "3 runs in 2 groups" in repr(runs)


def test_names_from_logs_are_escaped_in_the_table(tmp_path):
    shutil.copytree(HEALTHY / "cartpole", tmp_path / "runs" / "<b>x")
    html = relab.load(tmp_path / "runs")._repr_html_()
    assert "<b>x" not in html
    assert "&lt;b&gt;x" in html


def test_examine_shows_what_the_command_prints(folder):
    from relab.health.examine import examine
    from relab.health.render import text

    examination = relab.examine(relab.load(folder))
    assert repr(examination) == text(examine(folder))
    assert "critic-not-learning" in examination._repr_html_()
    assert relab.examine(str(folder)).to_json() == examine(folder).to_json()


def test_compare_splits_by_a_key_and_corrects_for_the_number_of_comparisons(tmp_path):
    arm(tmp_path / "runs", "a", [1.0, 2.0, 3.0, 4.0, 5.0], 0.1)
    arm(tmp_path / "runs", "b", [11.0, 12.0, 13.0, 14.0, 15.0], 0.2)
    arm(tmp_path / "runs", "c", [1.5, 2.5, 3.5, 4.5, 5.5], 0.3)
    comparison = relab.compare(tmp_path / "runs", by="algo.lr", smallest_effect=1.0, reference="lr=0.1")
    assert [x.verdict for x in comparison.answers] == ["yes", "cannot tell yet"]
    assert [x.names for x in comparison.answers] == [("lr=0.1", "lr=0.2"), ("lr=0.1", "lr=0.3")]
    assert comparison.answers[0].delta == pytest.approx(10.0)
    assert comparison.answers[0].level == pytest.approx(1 - 0.05 / 2, abs=0.02)
    assert "Yes: lr=0.2 is better" in repr(comparison)
    with pytest.raises(ConfigError, match=r"algo\.gamma must be one key of the runs' settings, but fits none"):
        relab.compare(tmp_path / "runs", by="algo.gamma")


def test_the_reference_is_the_commands(tmp_path, capsys):
    arm(tmp_path / "old", "a", [1.0, 2.0, 3.0, 4.0, 5.0], 0.1)
    arm(tmp_path / "new", "b", [11.0, 12.0, 13.0, 14.0, 15.0], 0.2)
    (best,) = relab.compare(tmp_path, by="lr").answers
    assert best.names == ("lr=0.2", "lr=0.1")
    arm(tmp_path / "mid", "c", [6.0, 7.0, 8.0, 9.0, 10.0], 0.3)
    for sets in (("old", "new"), ("new", "old")):
        (own,) = relab.compare(*(tmp_path / name for name in sets)).answers
        assert cli.main(["compare", *(str(tmp_path / name) for name in sets), "--by", "path", "--json"]) == 0
        (pair,) = json.loads(capsys.readouterr().out)["tasks"][0]["comparisons"]
        assert [Path(name).name for name in own.names] == [Path(pair[key]).name for key in ("a", "b")] == ["new", "old"]
        assert (own.delta, own.low, own.high) == (pair["delta"], pair["low"], pair["high"])
    assert cli.main(["compare", str(tmp_path), "--by", "lr", "--json"]) == 0
    shown = [pair["b"] for pair in json.loads(capsys.readouterr().out)["tasks"][0]["comparisons"]]
    assert [x.names[1] for x in relab.compare(tmp_path, by="lr").answers] == shown == ["lr=0.3", "lr=0.1"], "best first"
    with pytest.raises(NotFoundError, match="must be one of the variants"):
        relab.compare(tmp_path, by="lr", reference="lr=7")


def test_by_means_the_same_as_on_the_command_line(tmp_path, capsys):
    """The end of a key is enough, and an unknown one is told with the nearest."""
    arm(tmp_path / "runs", "a", [1.0, 2.0, 3.0, 4.0, 5.0], 0.1)
    arm(tmp_path / "runs", "b", [11.0, 12.0, 13.0, 14.0, 15.0], 0.2)
    (answer,) = relab.compare(tmp_path / "runs", by="lr").answers
    assert cli.main(["compare", str(tmp_path / "runs"), "--by", "lr", "--json"]) == 0
    (task,) = json.loads(capsys.readouterr().out)["tasks"]
    assert {*answer.names} == {variant["label"] for variant in task["variants"]} == {"lr=0.1", "lr=0.2"}
    (pair,) = task["comparisons"]
    sign = 1 if pair["a"] == answer.names[0] else -1
    numbers = (answer.delta, answer.low, answer.high) if sign > 0 else (-answer.delta, -answer.high, -answer.low)
    assert (pair["delta"], pair["low"], pair["high"]) == pytest.approx(numbers)
    assert pair["level"] == answer.level == 0.95
    with pytest.raises(ConfigError, match=r"`lrr` must be one key.*nearest key is `algo\.lr`|--by lrr must be one key"):
        relab.compare(tmp_path / "runs", by="lrr")


def test_the_seeds_that_would_tell_are_those_of_the_command_line(tmp_path, capsys):
    arm(tmp_path, "a", [100.0, 140.0, 60.0], 0.001)
    arm(tmp_path, "b", [180.0, 230.0, 150.0], 0.01)
    assert cli.main(["compare", str(tmp_path)]) == 0
    needed = re.compile(r"; (\d+(?: to \d+)?) seeds a variant should tell")
    (shown,), (own,) = needed.findall(capsys.readouterr().out), needed.findall(repr(relab.compare(tmp_path)))
    assert shown == own


def experiment(folder: Path, looks: list[list[int]]) -> Path:
    """An experiment that has looked before, with the variant that wins on its second place."""
    finals = {"low": [10.0, 12, 11, 13, 12], "high": [14.0, 15, 13, 16, 14], "mid": [11.0, 12, 13, 12, 11]}
    for (name, values), lr in zip(finals.items(), (1e-4, 1e-3, 3e-4)):
        arm(folder / "runs", name, values, lr)
    how = {"metric": "eval/return_det", "at": "final", "direction": "higher", "smallest_effect": 1.0, "looks": None}
    rows = [{"names": ["mid", name], "method": "difference", **how} for name in ("low", "high")]
    seen = dict.fromkeys(("low", "high"), looks)
    (folder / "answer.json").write_text(json.dumps({"answers": rows, "looks": seen}))
    return folder


def test_an_experiments_folder_is_asked_its_own_question(tmp_path, capsys):
    """The command, the folder's path and its loaded runs give one answer: control and looks are those declared."""
    folder = experiment(tmp_path / "lr", [[5, 5]])
    assert cli.main(["compare", str(folder)]) == 0
    printed = capsys.readouterr().out
    for given in (folder, relab.load(folder)):
        comparison = relab.compare(given)
        assert [x.names[0] for x in comparison.answers] == ["mid"] * 2
        assert comparison.declared == "experiment lr"
        for x in comparison.answers:
            assert x.text in printed
            assert x.comparisons == 2
    part = relab.compare(relab.load(folder).where(lambda run: run.seed != 9))
    assert part.declared == "", "a part of the runs is not what was declared"
    assert "nothing here is declared" in repr(relab.compare(folder, smallest_effect=3.0))


def test_a_run_without_a_seed_is_shown_without_one(tmp_path):
    arm(tmp_path / "runs", "a", [446.3], 1e-3)
    (tmp_path / "runs" / "a-s0" / "meta.json").write_text('{"status": "finished"}')
    (tmp_path / "runs" / "a-s0" / "config.yaml").write_text("algo:\n  name: ppo\n")
    shown = repr(relab.load(tmp_path / "runs"))
    assert "1 run in 1 group" in shown
    assert "null" not in shown
    assert "446.3" in shown


def test_two_environments_are_refused_as_on_the_command_line(tmp_path):
    for env, level in (("CartPole-v1", 400.0), ("Pendulum-v1", -300.0)):
        spec = {"env": env, "horizon": 500 if env == "CartPole-v1" else 200}
        for seed in range(5):
            write_run(tmp_path / "runs" / f"{env}-s{seed}", [level, level + seed], seed, meta={"spec": spec},
                      config={"env": {"name": env}, "algo": {"name": "ppo", "lr": 0.1}})  # fmt: skip
    with pytest.raises(ConfigError, match=r"may be compared.*the only config on"):
        relab.compare(tmp_path / "runs")
    with pytest.raises(ConfigError, match="may be compared"):
        relab.compare(relab.load(tmp_path / "runs").where(env__name="CartPole-v1"),
                      relab.load(tmp_path / "runs").where(env__name="Pendulum-v1"))  # fmt: skip


def test_a_run_prints_as_a_few_lines(folder):
    run = relab.load(folder)[0]
    assert len(repr(run).splitlines()) <= 5
    assert len(repr(run)) < 600
    assert f"{run.verdict.final:.4g}"[:4] in repr(run)
    assert run.name in run._repr_html_()
    assert len(repr(run.history)) < 300


def test_the_module_shows_what_it_has():
    assert {"load", "examine", "compare"} <= set(dir(relab))
    assert not {"importlib", "sys", "Any"} & set(dir(relab)), "what it is made with is not what it has"


def test_where_knows_its_keys(folder):
    runs = relab.load(folder)
    rate = runs["a-s0"].history.config["algo"]["lr"]
    assert {run.name for run in runs.where(lr=rate, seed=0)} >= {"a-s0"}
    assert [run.name for run in runs.where(lr=str(rate))] == [run.name for run in runs.where(algo__lr=rate)]
    for key in ("lrx", "foo"):
        with pytest.raises(ConfigError, match=f"no run here has a setting `{key}`"):
            runs.where(**{key: 3})


def test_where_asks_for_what_the_list_of_runs_has(folder):
    """env, algo, name and state are no settings, and the command knows them."""
    runs = relab.load(folder)
    counts = {"cartpole": 3, "CartPole-v1": 3, "pendulum": 0}
    assert {env: len(runs.where(env=env)) for env in counts} == counts
    assert (len(runs.where(algo="ppo")), len(runs.where(algo="sac"))) == (3, 0)
    assert (len(runs.where(name="a-s2")), len(runs.where(state="finished"))) == (1, 3)


def test_compare_takes_two_sets_of_runs(tmp_path):
    arm(tmp_path / "a", "x", [1.0, 2.0, 3.0, 4.0, 5.0], 0.1)
    arm(tmp_path / "b", "y", [1.0, 2.0, 3.0, 4.0, 5.5], 0.1)
    comparison = relab.compare(tmp_path / "a", tmp_path / "b")
    assert comparison.answers[0].n == (5, 5)
    assert comparison.answers[0].delta == pytest.approx(-0.1), "against the better one, as on the command line"


def test_curves_are_drawn_saved_and_tabled(folder, tmp_path):
    curves = relab.load(folder).curves("eval/return_det")
    for ending, start in {".png": b"\x89PNG", ".pdf": b"%PDF", ".svg": b"<?xml"}.items():
        assert curves.save(tmp_path / f"x{ending}").read_bytes().startswith(start)
    with pytest.raises(ConfigError, match="ends in"):
        curves.save(tmp_path / "x.gif")
    table = curves.to_pandas()
    assert set(table["run"]) == {"a-s0", "a-s2", "b-s0"}
    assert len(table) == len(curves.table())
    assert "<svg" in curves._repr_svg_()
    with pytest.raises(KeyError, match="near it are eval/return_det"):
        relab.load(folder).curves("eval/return_dett")
    with pytest.raises(KeyError, match=r"no run has the metric .zzz.; .*lists those there are"):
        relab.load(folder).curves("zzz")


def test_tables_go_to_pandas(folder):
    assert list(relab.load(folder).to_pandas()["seed"]) == [0, 2, 0]
    assert "slug" in relab.examine(folder).to_pandas()


def test_importing_relab_loads_nothing_heavy():
    code = "import relab, sys; print([m for m in ('numpy', 'torch', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    code = "import relab, sys; relab.load; print([m for m in ('torch', 'numba', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "[]"
    with pytest.raises(AttributeError, match="no attribute 'loud'"):
        relab.loud  # noqa: B018 - looking it up is the test


def test_what_nobody_declared_is_exploratory_and_little_is_said(tmp_path):
    for lr, slope in ((0.1, 1.0), (0.2, 2.0)):
        for seed in range(5):
            with Logger(tmp_path / f"lr{lr}_s{seed}", config={"env_id": "CartPole-v1", "lr": lr, "seed": seed}) as log:
                for i in range(1, 41):
                    log.log(5000 * i, {"return/mean": 22 + slope * i + (i + seed) % 3})
    said = relab.compare(tmp_path)
    assert repr(said).startswith("exploratory: ")
    assert "better? (exploratory)" in said._repr_html_()
    assert {row["verdict"] for row in relab.load(tmp_path).table()} == {"learned little"}
