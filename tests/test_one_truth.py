"""Do all commands tell the same of one run: how far it came, what it ended at, what its settings are called?"""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import relab
from relab import cli
from relab.comparison import outcomes
from relab.health.examine import examine
from relab.health.remedy import known_values
from relab.health.rule import Finding
from relab.health.view import View
from relab.record.history import Column, History
from relab.record.state import state_of
from relab.report import svg
from relab.report.curves import curve, onset
from relab.runs import grouping
from relab.runs.verdict import verdict_of

PLANNED = 50_000


def write(folder: Path, last: int, seed: int, **settings: object) -> None:
    """A log of another tool that ends at a step."""
    folder.mkdir(parents=True)
    noise = np.random.default_rng(seed).normal(size=last // 500)
    rows = [f"{500 * (i + 1)},{20 + 4 * i + each:.2f}" for i, each in enumerate(noise)]
    (folder / "log.csv").write_text("\n".join(["global_step,reward", *rows, ""]))
    known = {"env": "CartPole-v1", "algo": "ppo", "seed": seed, "learning_rate": 1e-3, "total_timesteps": PLANNED}
    (folder / "config.json").write_text(json.dumps(known | settings))


@pytest.fixture
def cut(tmp_path: Path) -> Path:
    """Two learning rates, three seeds each, stopped at different steps."""
    for seed, last in enumerate((9000, 11_000, 13_000)):
        write(tmp_path / f"a_s{seed}", last, seed)
        write(tmp_path / f"b_s{seed}", last + 500, seed, learning_rate=3e-4)
    return tmp_path


def out(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert cli.main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_cut_runs_are_compared_where_all_of_them_were_and_it_is_said(cut: Path, capsys):
    text = out(capsys, "compare", cut)
    assert "at step 9,000" in text
    assert "has no number" not in text
    assert "all 6 runs ended after 18% to 27% of their planned steps" in text


def test_more_steps_are_not_proposed_to_a_run_that_did_not_take_those_it_had(cut: Path, capsys):
    text = out(capsys, "next", cut)
    assert "a_s0 ended at step 9,000 of 50,000 planned" in text
    assert "100000" not in text


def test_the_list_has_the_step_the_share_and_the_state_that_examine_has(cut: Path, capsys):
    listed = json.loads(out(capsys, "runs", cut, "--json"))
    rows = {row["name"]: row for row in (listed if isinstance(listed, list) else listed["runs"])}
    assert rows["a_s0"]["steps"] == 9000
    files = list((cut / "a_s0").iterdir())
    assert rows["a_s0"]["size"] == sum(file.stat().st_size for file in files)
    assert rows["a_s0"]["state"] == "ended"
    assert "9,000 (18%)" in out(capsys, "runs", cut)
    assert "6 ended" in out(capsys, "examine", cut)


def test_a_program_that_stopped_on_its_way_is_not_finished():
    columns = {"return/mean": Column(np.arange(1, 10) * 1000, np.ones(9))}
    meta = {"status": "finished", "logger": 1}
    run = History(Path("/nowhere"), columns, config={"total_steps": PLANNED}, meta=meta)
    assert state_of(run) == "ended"
    run.events.append({"kind": "stop"})
    assert state_of(run) == "finished"


@pytest.mark.parametrize("word", ["lr", "algo.lr", "learning_rate"])
def test_a_setting_answers_to_its_names_in_every_command(cut: Path, word: str, capsys):
    assert "algo.lr" in out(capsys, "runs", cut, "--by", word)
    assert "3 runs" in out(capsys, "runs", cut, f"{word}=1e-3")
    assert "lr=0.001" in out(capsys, "compare", cut, "--by", word)


def test_runs_of_two_algorithms_are_no_group(cut: Path, capsys):
    write(cut / "sac_s0", 9000, 0, algo="sac")
    text = out(capsys, "runs", cut, "--by", "lr")
    assert text.splitlines()[0].split()[:2] == ["algo.lr", "algo"]
    assert len(text.splitlines()) == 5


@pytest.mark.parametrize("word", ["target_update_interval", "exploration_fraction", "train_freq"])
def test_settings_of_other_libraries_are_explained(word: str, capsys):
    assert "setting of" in out(capsys, "explain", word)


def test_the_values_advised_to_a_program_are_its_librarys_not_relabs():
    """As the callback records a run of Stable-Baselines3: in a folder of relab's, but not trained by it."""
    settings = {"algo": {"name": "dqn", "lr": 0.5, "gamma": 0.99}, "env": {"name": "CartPole-v1"}}
    view = View(History(Path("/nowhere"), config=settings, meta={"logger": 1}), "run")
    assert [who for who, _ in known_values(view, None)] == ["Stable-Baselines3's default for DQN"]
    own = View(History(Path("/nowhere"), config=settings), "run")
    assert [who for who, _ in known_values(own, None)] == ["relab's default"]


@pytest.mark.parametrize("name", ["outcomes.jsonl", "results.csv"])
def test_a_list_of_runs_is_no_run(cut: Path, name: str, capsys):
    line = '{"path": "a_s0", "reward": 3.0}' if name.endswith("jsonl") else "run,reward\na_s0,3.0"
    (cut / name).write_text(line + "\n")
    assert "6 runs" in out(capsys, "examine", cut)
    assert "6 runs" in out(capsys, "runs", cut)


def test_the_end_of_a_training_curve_is_one_number():
    """`at: final` of an experiment, the verdict of a report, and what `relab compare` takes by itself."""
    values = np.linspace(0, 400, 50) + np.tile([0.0, 30.0], 25)
    run = History(Path("/nowhere"), {"return/mean_100": Column(np.arange(1, 51) * 1000, values)}, source="csv")
    final = outcomes.outcome(run, "final", "return/mean_100").value
    assert final == pytest.approx(verdict_of(run).final) == pytest.approx(values[-5:].mean())
    assert final != values[-1]


def test_python_shows_the_difference_of_few_seeds_that_the_command_shows(cut: Path, capsys):
    text = out(capsys, "compare", cut)
    difference = text.partition("against ")[2].split(": ")[1].split(",")[0]
    answer = relab.compare(cut)
    assert f"{abs(float(difference)):.4g}" in repr(answer)
    assert "planned steps" in repr(answer)
    assert "nan" not in answer._repr_html_()


def test_findings_stand_in_one_order_causes_before_effects(tmp_path: Path, capsys):
    """In the terminal, on the page and in JSON; the first is what `relab next` would mend."""
    steps = np.arange(1, 40) * 500
    rows = [f"{step},{150 if step < 5000 else 9.4},{8.0 if step == 5000 else 0.0},{0.69 if step < 5000 else 0.0},0.2"
            for step in steps]  # fmt: skip
    folder = tmp_path / "sick"
    folder.mkdir()
    (folder / "log.csv").write_text("\n".join(["step,reward,approx_kl,entropy,clipfrac", *rows, ""]))
    settings = {"env": "CartPole-v1", "algo": "ppo", "seed": 0, "learning_rate": 0.05, "total_timesteps": 19_500}
    (folder / "config.json").write_text(json.dumps(settings))
    whole = json.loads(out(capsys, "examine", folder, "--json"))
    slugs = [finding["slug"] for finding in whole["findings"] if finding["status"] == "fired"]
    printed = [line.split()[1] for line in out(capsys, "examine", folder).splitlines() if line.startswith("warning: ")]
    assert printed == slugs[: len(printed)]
    assert printed[:2] == ["steps-too-large", "diverged"]
    page = json.loads(out(capsys, "report", folder, "--json"))
    assert [each["slug"] for each in page["findings"]] == printed
    assert "steps-too-large" in out(capsys, "next", folder)


def test_a_single_evaluation_is_drawn_on_the_way_of_training():
    run = History(Path("/nowhere"), {"return/mean": Column(np.arange(1, 11) * 800, np.arange(10.0))}, source="csv")
    run.evals = [{"step": 5000, "mode": "det", "episodes": [{"return": 3.0 + i, "length": 9} for i in range(5)]}]
    run.columns["eval/return_det"] = Column(np.array([5000]), np.array([5.0]))
    groups = grouping.grouped([grouping.make_run(run, "one")])
    assert curve(groups).metric == "return/mean"
    marks = re.findall(r">([^<]*k)</text>", svg.curve(curve(groups, "eval/return_det"), 760, 300))
    assert len(marks) == len(set(marks)) > 2


@pytest.mark.parametrize("rows", [100, 4])
def test_a_marks_name_stands_clear_of_the_curve(rows: int):
    """Also of a line between two evaluations that are far apart."""
    steps = np.linspace(0, 9900, rows).astype(int)
    for values in (np.full(rows, 490.0), np.full(rows, 10.0), np.linspace(0, 500, rows)):
        run = History(Path("/nowhere"), {"return/mean": Column(steps, values)}, source="csv")
        finding = Finding("it fell", 1.0, 2000, run="one", slug="peak-then-collapse", severity="warning")
        drawn = curve(grouping.grouped([grouping.make_run(run, "one")]), "return/mean", [finding])
        text = svg.curve(drawn, 760, 300)
        height = float(re.findall(r'class="began" x="[\d.]+" y="([\d.]+)" text-anchor="\w+">peak', text)[0])
        points = np.array(
            re.findall(r"[ML]([\d.]+) ([\d.]+)", text.partition('stroke="#0072B2"')[0].rpartition("<path")[2]), float
        )
        near = np.interp(np.arange(200, 320, 10), points[:, 0], points[:, 1])
        assert np.abs(height - 4 - near).min() > 12


def test_what_was_so_from_the_start_is_not_marked_as_a_beginning():
    setting, later = (
        Finding("x", 1.0, step, run="one", slug=slug) for slug, step in (("a-setting", 0), ("a-fall", 900))
    )
    assert onset([setting], {}) is None
    assert onset([setting, later], {}).slug == "a-fall"


def test_a_headline_says_that_runs_were_cut(cut: Path, capsys):
    page = json.loads(out(capsys, "report", cut / "a_s0", "--json"))
    assert page["sentence"].startswith("Ended at 9k of 50k steps. So far: ")


def test_a_run_that_is_named_to_hold_it_against_is_not_its_parent(cut: Path, capsys):
    """Runs of other tools have no id, which is not the same as having the same one."""
    write(cut / "hasty", 9000, 0, learning_rate=0.5)
    (view,) = (run.view for run in examine(cut / "hasty", against=cut / "a_s0").runs)
    assert view.reference is not None
    assert not view.is_parent
    assert "parent" not in out(capsys, "next", cut / "hasty", "--against", cut / "a_s0")


def test_an_error_does_not_leave_what_is_possible(tmp_path: Path, capsys):
    """CartPole ends at 500: an evaluation of 500 beside others of 478 to 500 may be too high, never too low."""
    rows = enumerate([20, 90, 300, 420, 478, 500, 489, 500, 478, 500])
    text = "".join(f"{4_000 * (i + 1)},{value}\n" for i, value in rows)
    (tmp_path / "log.csv").write_text("global_step,eval/return\n" + text)
    (tmp_path / "config.json").write_text(json.dumps({"env": "CartPole-v1", "algo": "ppo", "seed": 0}))
    texts = [out(capsys, command, tmp_path) for command in ("examine", "runs")] + [repr(relab.load(tmp_path)[0])]
    for text in texts:
        assert "500 ±" not in text
        assert re.search(r"500(?:\.0)? \+0/-[0-9.]+", text), text


def test_settings_are_the_same_or_not_in_every_command(tmp_path: Path, capsys):
    """True and "true", 0.1 + 0.2 and 0.3, null and nothing are one value; numbers that differ late look different."""
    for name, more in (("a", {"flag": True, "v": 0.1 + 0.2, "t": 1700000000.1, "none": None}),
                       ("b", {"flag": "true", "v": 0.3, "t": 1700000000.2})):  # fmt: skip
        write(tmp_path / name, 5_000, 0, **more)
    changed = out(capsys, "diff", tmp_path / "a", tmp_path / "b")
    compared, table = out(capsys, "compare", tmp_path), out(capsys, "compare", tmp_path, "--markdown")
    for text in (changed, compared):
        assert [word for word in ("flag", ".v ", "none") if word in text] == []
    assert "1700000000.1 | 1700000000.2" in compared
    assert "| 1700000000.1 |" in table
    assert "| 1700000000.2 |" in table
