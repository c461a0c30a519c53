"""Does one run get one verdict, in the same words, in every command, and one difference one interval?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import relab
from relab import cli
from relab.config.views import Change
from relab.health.advice import agree
from relab.health.rule import Finding
from relab.notebook.words import words
from relab.report import tables
from relab.report.changes import change_text
from relab.runs.sentences import COUNTED
from relab.web.pages import group

Capture = pytest.CaptureFixture[str]
PART = [20, 60, 120, 300, 480, 495, 500, 300, 295, 290, 300]  # learned, and lost part of it


def write(folder: Path, returns: Sequence[float], metric: str = "eval/return", **settings: Any) -> None:
    """A log of another tool on CartPole."""
    folder.mkdir(parents=True)
    rows = [f"{1000 * (i + 1)},{value}" for i, value in enumerate(returns)]
    (folder / "log.csv").write_text("\n".join([f"global_step,{metric}", *rows, ""]))
    known: Mapping[str, Any] = {"env": "CartPole-v1", "algo": "ppo"}
    (folder / "config.json").write_text(json.dumps({**known, **settings}))


def out(capsys: Capture, *said: object) -> str:
    assert cli.main([str(word) for word in said]) == 0
    return capsys.readouterr().out


def test_what_became_of_a_run_is_said_in_the_same_words(tmp_path: Path, capsys: Capture) -> None:
    """`examine` gave the last number alone: 390, nothing found."""
    write(tmp_path / "run", PART, seed=0)
    said = relab.load(tmp_path).table()[0]["verdict"]
    assert said == "learned and lost part of it"
    out(capsys, "report", tmp_path, "--out", tmp_path / "page.md")
    page = (tmp_path / "page.md").read_text()
    (tmp_path / "page.md").unlink()
    (tmp_path / "page.html").unlink()
    for text in (out(capsys, "examine", tmp_path), out(capsys, "note", tmp_path)):
        assert said in text
    assert "Lost part of what it had learned" in page


@pytest.mark.parametrize(
    ("returns", "became", "listed"),
    [
        ([22, 21, 23, 22, 21, 22, 23, 22, 21], "did not learn", "did not learn"),
        ([9.8, 9.7, 10.2, 9.6, 9.9, 9.8, 9.9, 10.1, 11.8], "worse than random", "worse than random"),
        ([22, 30, 38, 45, 50, 57, 62, 66, 70], "learned little", ""),
        ([22, 100, 300, 480, 490, 490, 60, 30, 20, 22, 23], "learned and lost it", "lost"),
    ],
)
def test_that_no_rule_fired_is_no_praise_of_a_run_that_did_not_learn(
    returns: list[float], became: str, listed: str, tmp_path: Path, capsys: Capture
) -> None:
    """`examine` had "nothing found" and the report PASS beside "Did not learn"; `runs` had the number alone."""
    write(tmp_path / "run", returns, seed=0)
    first, second, *_ = out(capsys, "examine", tmp_path).splitlines()
    assert not first.endswith("nothing found")
    assert second.endswith(f", {became}")
    assert out(capsys, "runs", tmp_path).splitlines()[1].split("  ")[-4].endswith(f" {listed}".rstrip())
    out(capsys, "report", tmp_path, "--out", tmp_path / "page.md")
    assert "PASS" not in (tmp_path / "page.md").read_text()


def test_a_group_counts_those_that_did_not_learn(tmp_path: Path, capsys: Capture) -> None:
    for seed in range(3):
        write(tmp_path / f"run_s{seed}", [22, 30, 38, 45, 50, 57, 62, 66, 70 + 400 * (seed == 2)], seed=seed)
    first, second, *_ = out(capsys, "examine", tmp_path).splitlines()
    assert first.endswith("nothing found that says why: 2 of 3 learned little")
    assert "2 learned little" in second


def test_a_note_has_the_words_of_all_other_commands() -> None:
    own = {key.partition(".")[2]: text for key, text in words("en").sentences.items() if key.startswith("verdict.")}
    assert {kind: own.get(kind) for kind in COUNTED} == COUNTED


def test_training_returns_are_listed_with_the_error_that_examine_gives(tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "run", [20 + 7 * (i % 3) + i for i in range(60)], "reward", seed=0)
    examined = re.search(r"seed 0: (\S+) ± (\S+) in training", out(capsys, "examine", tmp_path))
    listed = re.search(r"(\S+) ±(\S+) \(train\)", out(capsys, "runs", tmp_path))
    assert examined is not None
    assert listed is not None
    for one, other in zip(examined.groups(), listed.groups()):
        assert float(one) == pytest.approx(float(other), rel=0.05)


def test_those_that_no_verdict_is_given_about_widen_no_interval(tmp_path: Path, capsys: Capture) -> None:
    """Beside a variant of one seed Python had the difference of two others at 97.5 %, the command at 95."""
    for seed in range(5):
        write(tmp_path / f"a_s{seed}", [20, 100 + 9 * seed, 200 + 11 * seed], seed=seed, learning_rate=1e-3)
        write(tmp_path / f"b_s{seed}", [20, 90 + 9 * seed, 190 + 17 * seed], seed=seed, learning_rate=1e-4)
    write(tmp_path / "c_s0", [20, 50, 60], seed=0, learning_rate=1e-2)
    (task,) = json.loads(out(capsys, "compare", tmp_path, "--json"))["tasks"]
    shown = {(pair["a"], pair["b"]): (pair["low"], pair["high"]) for pair in task["comparisons"] if min(pair["n"]) > 4}
    own = {x.names: (x.low, x.high) for x in relab.compare(tmp_path).answers if min(x.n) > 4}
    assert own == shown
    assert len(own) == 1


def test_a_level_reached_later_than_the_common_step_is_not_denied(tmp_path: Path, capsys: Capture) -> None:
    """It stood there that runs which had solved the task did not reach it, without the step up to which was looked."""
    for seed in range(2):
        write(tmp_path / f"long_s{seed}", [20, 100, 200, 400, 490, 500], seed=seed, learning_rate=1e-3)
        write(tmp_path / f"short_s{seed}", [20, 90, 190], seed=seed, learning_rate=1e-4)
    assert "evaluations, up to step 3,000): " in out(capsys, "compare", tmp_path)
    assert "steps to 475 (up to 3,000)" in out(capsys, "compare", tmp_path, "--markdown")


def test_advice_in_a_programs_own_words_does_not_go_against_the_cause() -> None:
    """A setting has two names: to lower `algo.lr` and to raise `learning_rate` are opposite."""
    cause = Finding("x", slug="cause", suggest=[{"key": "algo.lr", "name": "learning_rate", "from": 0.3, "to": 3e-4}])
    symptom = Finding("x", slug="symptom", explained_by="cause", suggest=["raise `vf_coef` or `learning_rate`"])
    agree([cause, symptom])
    assert symptom.suggest == ["mend cause first: it explains this"]


def test_a_seed_that_a_log_holds_is_not_said_to_be_from_its_name(tmp_path: Path, capsys: Capture) -> None:
    write(tmp_path / "logs" / "run", [20, 90, 190], seed=3)
    write(tmp_path / "named" / "run_s4", [20, 90, 190])
    for folder in ("logs", "named"):
        out(capsys, "report", tmp_path / folder, "--out", tmp_path / f"{folder}.md")
    held, named = (
        re.findall(r"\| (seed.*?) \| (\d) \|", (tmp_path / f"{x}.md").read_text()) for x in ("logs", "named")
    )
    assert held == [("seed", "3")]
    assert named == [("seed (from the name)", "4")]


def test_a_run_without_settings_has_no_hash(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "log.csv").write_text("global_step,reward\n1,2\n2,3\n3,4\n")
    out(capsys, "report", tmp_path / "run", "--out", tmp_path / "page.md")
    assert "named run" not in (tmp_path / "page.md").read_text()


def test_a_thousandfold_is_no_power_of_ten() -> None:
    assert change_text(Change("algo.lr", 0.0003, 0.3, 10)) == "lr x1000"


@pytest.mark.parametrize(("word", "metric"), [("entropy", "policy/entropy"), ("kl", "policy/kl"), ("lr", "optim/lr")])
def test_a_word_is_explained_as_the_metric_too(word: str, metric: str, capsys: Capture) -> None:
    """`entropy` was a setting of Dreamer alone."""
    assert f"{metric} (metric" in out(capsys, "explain", word)


def test_a_run_that_is_cut_short_is_named_beside_the_mean_that_holds_it(tmp_path: Path, capsys: Capture) -> None:
    """The comparison left it out (264.2), the outcome did not (266.1), and nothing said why the two differed."""
    for seed in range(5):
        write(tmp_path / f"a_s{seed}", [20, 90, 190, 200 + seed], seed=seed, lr=1e-3, total_timesteps=4000)
        last = 2 if seed == 2 else 4
        write(tmp_path / f"b_s{seed}", [20, 290, 190, 250 + seed][:last], seed=seed, lr=1e-4, total_timesteps=4000)
    said = "of 5 runs 1 ended before its planned steps"
    out(capsys, "report", tmp_path, "--out", tmp_path / "page.md")
    assert (tmp_path / "page.md").read_text().count(said) == 2, "in the first sentence and beside the outcome"
    assert said in out(capsys, "note", tmp_path)


def test_a_digest_has_entries_of_sb3s_day_and_counts_those_without_one(tmp_path: Path, capsys: Capture) -> None:
    """A log with two entries of today's runs was digested as: no entry."""
    dated, undated = tmp_path / "logs" / "dated", tmp_path / "logs" / "undated"
    write(undated, [20, 90, 190], seed=0)
    dated.mkdir()
    rows = "".join(f"{20 + i},{20 + i},{i / 10}\n" for i in range(50))
    (dated / "monitor.csv").write_text('#{"t_start": 1763500000.0, "env_id": "CartPole-v1"}\nr,l,t\n' + rows)
    for folder in (dated, undated):
        out(capsys, "note", folder, "--into", tmp_path / "LOG.md")
    text = out(capsys, "note", "--into", tmp_path / "LOG.md", "--digest", "7d", "--until", "2025-11-19")
    assert "(entries: 1)" in text
    assert "do not say when the runs were: 1 (undated)" in text


def test_of_equals_the_best_is_the_last_on_the_page_and_on_the_dashboard(tmp_path: Path) -> None:
    """The dashboard named the first step at which a run was as good."""
    write(tmp_path / "run", [20, 500, 100, 500, 400], seed=0)
    write(tmp_path / "broke", [20, 500, float("nan")], seed=0)
    for run, best in zip(relab.load(tmp_path), ("500 (2,000)", "500 (4,000)")):
        row = group._seed(run, "seed 0")
        assert f"{row.best} ({row.at})" == tables._best(run) == best


def test_a_chinese_entry_has_no_english_of_its_own(tmp_path: Path, capsys: Capture) -> None:
    """Its title and the place where settings are from were English."""
    write(tmp_path / "a", [20, 90, 190], seed=0, lr=1e-3)
    alone = out(capsys, "note", tmp_path / "a", "--lang", "zh").splitlines()[0]
    write(tmp_path / "b", [20, 90, 190], seed=0, lr=1e-4)
    many = out(capsys, "note", tmp_path, "--lang", "zh").splitlines()[0]
    assert alone == "## a（读自 csv）"
    assert many == f"## {tmp_path.name}：2 种配置，2 次运行（读自 csv）"
    assert words("zh").sentences["plan.read from the log"] == "读自日志"


def test_of_equally_near_words_the_usual_one_is_named(capsys: Capture) -> None:
    """`klx` was told of a world model's KL."""
    assert cli.main(["explain", "klx"]) != 0
    assert "'policy/kl'" in capsys.readouterr().err
