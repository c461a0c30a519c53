"""Is a change that was answered no said to have been, before it is paid for again?"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import made_up
from relab import cli
from relab.advise import propose, tried
from relab.advise.checks import RejectedError
from relab.advise.propose import not_again
from relab.advise.tried import Tried
from relab.health.examine import examine
from relab.lab import experiment
from relab.notebook import log
from small_runs import run as train_small

UP = {"algo.lr": {"from": 0.001, "to": 0.003}}
CARTPOLE = {"env": "cartpole-v1", "algo": "ppo"}


def one(diff: dict[str, dict[str, object]] = UP, verdict: str = "no", **more: object) -> Tried:
    return Tried(diff, verdict, f"{verdict}.", (5, 5), "here", "2026-11-16", **{"of": CARTPOLE, **more})  # type: ignore[arg-type]


# ---- Matching


@pytest.mark.parametrize(
    ("diff", "of", "matches"),
    [
        (UP, CARTPOLE, True),
        ({"algo.lr": {"from": 1e-3, "to": 3e-3}}, CARTPOLE, True),
        ({"algo.lr": {"from": 0.003, "to": 0.001}}, CARTPOLE, False),  # the opposite
        ({"algo.lr": {"from": 0.001, "to": 0.004}}, CARTPOLE, False),
        ({"algo.lr": {"from": 0.002, "to": 0.003}}, CARTPOLE, False),
        ({**UP, "algo.clip": {"from": 0.2, "to": 0.3}}, CARTPOLE, False),
        ({"algo.gamma": {"from": 0.001, "to": 0.003}}, CARTPOLE, False),
        (UP, {"env": "pendulum-v1", "algo": "ppo"}, False),
        ({}, CARTPOLE, False),
    ],
)
def test_a_change_matches_itself_alone(diff: dict[str, dict[str, float]], of: dict[str, str], matches: bool) -> None:
    assert bool(tried.matching(diff, of, [one()])) == matches


def test_values_match_by_equality_whatever_wrote_them() -> None:
    whole = {"algo.hidden": {"from": (64, 64), "to": [32]}, "algo.clip": {"from": 1, "to": None}}
    kept = {"algo.hidden": {"from": [64, 64], "to": (32,)}, "algo.clip": {"from": 1.0, "to": None}}
    assert tried.same(whole, kept)
    assert not tried.same({"a": {"from": True, "to": 0}}, {"a": {"from": 1, "to": 0}})


def test_an_answer_comes_before_a_try_without_one() -> None:
    tries = tried.matching(UP, CARTPOLE, [one(verdict="cannot tell yet"), one(verdict="no")])
    assert [each.verdict for each in tries] == ["no", "cannot tell yet"]
    text = "\n".join(tried.lines(UP, tries))
    assert "tried before on 2026-11-16, answered no: algo.lr 0.001 -> 0.003\n  no.\n  here" in text
    assert "not answered (cannot tell yet with 5 and 5 seeds)" in text


# ---- What was answered


def test_experiments_and_their_entries_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made_up.answered(tmp_path / "experiments", "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", [100, 20])
    (try_,) = tried.of_experiments(Path("experiments"))
    assert (try_.diff, try_.verdict, try_.seeds, try_.of) == (UP, "no", (5, 5), CARTPOLE)
    assert (try_.date, try_.where) == ("2026-11-16", "experiments/lr")
    assert try_.text.startswith("No: b is worse than a, -80")
    assert tried.of_experiments(Path("experiments"), without=Path("experiments/lr")) == []
    assert cli.main(["note", "experiments/lr", "--into", "experiments/LOG.md"]) == 0
    (both,) = log.earlier(Path("experiments"))
    assert both.where.startswith("experiments/lr, entry lr.")
    assert both.where.endswith(" in experiments/LOG.md:1")
    shutil.rmtree("experiments/lr")
    (entry,) = log.earlier(Path("experiments"))
    assert (entry.diff, entry.verdict, entry.text, entry.of) == (UP, "no", try_.text, CARTPOLE), "the entry remembers"


@pytest.mark.parametrize("damage", ["answer.json", "experiment.yaml"])
def test_what_cannot_be_read_stops_nothing(tmp_path: Path, damage: str) -> None:
    folder = made_up.answered(tmp_path, "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", [100, 20])
    (folder / damage).write_text('{"answers": [{"names": 3}]}' if damage == "answer.json" else "[1")
    (tmp_path / "LOG.md").write_text("<!-- relab:begin x -->\n")
    assert log.earlier(tmp_path) == []


# ---- Before a run


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("small")
    train_small(root / "runs" / "base", algo__lr="0.001", total_steps="256", eval__every="128")
    train_small(root / "runs" / "lr100", algo__lr="0.3")
    made_up.answered(root / "experiments", "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", [100, 20])
    return root


@pytest.fixture
def here(small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Real runs, and an experiment whose answer was no."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(small, tmp_path, dirs_exist_ok=True))


def train(*words: str) -> list[str]:
    return ["train", *words, "--parent", "base", "--name", "child"]


def test_train_says_it_before_it_trains(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(train("lr=0.003", "seed=4")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "tried before on 2026-11-16, answered no: algo.lr 0.001 -> 0.003"
    assert lines[1].startswith("  No: b is worse than a, -80")
    assert lines[2].startswith("  experiments/lr (but ")
    assert lines[3].startswith("child  ppo on cartpole-v1")
    meta = json.loads((here / "runs" / "child" / "meta.json").read_text())
    assert [row["verdict"] for row in meta["tried"]] == ["no"]
    assert meta["parent_id"] == json.loads((here / "runs" / "base" / "meta.json").read_text())["id"]
    assert cli.main(["note", "child"]) == 0
    assert "Tried before: No: b is worse than a" in capsys.readouterr().out


def test_train_says_it_in_json_and_not_of_another_change(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(train("lr=0.003", "--json")) == 0
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert (first["kind"], first["change"], first["tried"][0]["verdict"]) == ("tried", UP, "no")
    shutil.rmtree(here / "runs" / "child")
    assert cli.main(train("lr=0.004", "--json")) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[0])["kind"] == "start"


ASK = """
question: Once more?
smallest_effect: 5
base: {{env: cartpole, total_steps: 256, algo.envs: 8, algo.steps: 16, eval.every: 128, eval.episodes: 2}}
variants: {variants}
seeds: {seeds}
"""


def ask(here: Path, name: str, variants: str, finished: bool) -> str:
    """A question's file; with runs that were never trained where `finished`."""
    path = here / f"{name}.yaml"
    path.write_text(ASK.format(variants=variants, seeds="[0]"))
    for cell in experiment.prepare(experiment.load(path), here / "experiments" / name) if finished else ():
        made_up.cell(cell, 1.0)
    return path.name


@pytest.mark.slow  # a pilot; training says it too
def test_an_experiment_says_it_before_the_forecast(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    monkeypatch.setattr("builtins.input", lambda _: "n")
    again = "{low: {lr: 0.001}, high: {lr: 0.003}}"
    assert cli.main(["experiment", ask(here, "again", again, finished=False)]) == 0
    out = capsys.readouterr().out
    assert out.index("tried before on 2026-11-16, answered no: algo.lr 0.001 -> 0.003") < out.index("forecast:")
    assert "total_steps 2048 then, 256 now" in out
    assert cli.main(["experiment", ask(here, "again", again, finished=True), "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["tried"]
    assert (row["variant"], row["change"], row["tried"][0]["verdict"]) == ("high", UP, "no")
    back = ask(here, "back", "{high: {lr: 0.003}, low: {lr: 0.001}}", finished=True)
    assert cli.main(["experiment", back, "--yes"]) == 0
    assert "tried before" not in capsys.readouterr().out, "the opposite direction is another question"
    shutil.rmtree(here / "experiments" / "lr")
    third = ask(here, "third", "{l: {lr: 0.001}, h: {lr: 0.003}}", finished=True)
    assert cli.main(["experiment", third, "--yes"]) == 0
    assert "not answered (cannot tell yet with 1 and 1 seeds)" in capsys.readouterr().out


def test_next_does_not_propose_it_and_says_why(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["next", "lr100"]) == 0
    assert capsys.readouterr().out.startswith("lr100: algo.lr 0.3 -> 0.003\n")
    made_up.answered(here / "experiments", "back", "{a: {lr: 0.3}, b: {lr: 0.003}}", [100, 20])
    assert cli.main(["next", "lr100"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert not out.startswith("lr100: algo.lr 0.3 -> 0.003")
    assert "algo.lr 0.3 -> 0.003 in lr100" in out
    assert "answered no before on 2026-11-16: No: b is worse than a, -80" in out
    advice = propose(examine(here / "runs" / "lr100"), here / "runs" / "lr100", log.earlier(here / "experiments"))
    assert any("answered no before" in line for line in advice.passed_over)
    assert any("answered no before" in line for line in advice.to_dict()["passed_over"])


def test_next_tells_of_a_try_without_an_answer(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made_up.answered(here / "experiments", "open", "{a: {lr: 0.3}, b: {lr: 0.003}}", [100, 20], seeds=3)
    assert cli.main(["next", "lr100"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("lr100: algo.lr 0.3 -> 0.003\n")
    assert "asked       before, and not answered: cannot tell yet with 3 and 3 seeds (experiments/open)" in out


@pytest.mark.parametrize(("ends", "verdict"), [([100, 20], "no"), ([20, 100], "yes")])
def test_what_an_experiment_in_the_same_folder_has_answered_is_not_proposed(
    tmp_path: Path, ends: list[float], verdict: str
) -> None:
    """Only experiments/ was looked into, and a yes was proposed again as if nobody had asked."""
    folder = made_up.answered(tmp_path / "logs", "lr", "{a: {lr: 0.001}, b: {lr: 0.003}}", ends)
    (known,) = tried.around(tmp_path / "logs")
    assert (known.diff, known.verdict, known.where) == (UP, verdict, str(folder))
    assert [one.where for one in tried.around(folder / "runs" / "a-s0")] == [str(folder.resolve())]
    with pytest.raises(RejectedError, match=f"answered {verdict} before"):
        not_again(tried.matching(UP, CARTPOLE, [known]))
