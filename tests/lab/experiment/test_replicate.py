"""Does a replication use fresh seeds only, and show three answers that say how they were made?"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from relab import cli

PROGRAM = """
import csv, random, sys
from pathlib import Path
gain, seed, run = float(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
with open("calls.txt", "a") as file:
    print(gain, seed, file=file)
value = 100 + (gain if seed < 10_000 else gain * LATER) + random.Random(f"{gain} {seed}").gauss(0, 3)
with open(run / "progress.csv", "w") as file:
    csv.writer(file).writerows([["step", "score"], [100, 50.0], [200, value]])
"""
QUESTION = """
question: Does the gain help?
command: {python} program.py {{gain}} {{seed}} {{run}}
metric: score
smallest_effect: 5
vary: {{gain: [0, 20]}}
seeds: 5
"""


@pytest.fixture
def ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[float], Path]:
    monkeypatch.chdir(tmp_path)

    def write(later: float) -> Path:
        Path("program.py").write_text(PROGRAM.replace("LATER", str(later)))
        Path("gain.yaml").write_text(QUESTION.format(python=sys.executable))
        return Path("gain.yaml")

    return write


def seeds() -> list[int]:
    return sorted(int(line.split()[1]) for line in Path("calls.txt").read_text().splitlines())


def test_the_same_question_on_fresh_seeds_beside_the_first_and_the_pooled_answer(
    ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ask(1.0)
    assert cli.main(["experiment", str(path), "--yes"]) == 0
    assert seeds() == sorted([*range(5)] * 2)
    capsys.readouterr()
    assert cli.main(["experiment", str(path), "--yes", "--replicate"]) == 0
    out = capsys.readouterr().out
    assert seeds() == sorted([*range(5), *range(10_000, 10_005)] * 2), "as many fresh ones; the first are not run again"
    starts = [line.split()[0] for line in out.splitlines() if line.startswith(("first:", "second:", "pooled:"))]
    assert starts == ["first:", "second:", "pooled:"]
    assert "The answer held (yes again) on 5 fresh seeds" in out
    kept = json.loads(Path("experiments/gain/replication.json").read_text())["replications"][0]
    assert [kept[which]["n"] for which in ("first", "second", "pooled")] == [[5, 5], [5, 5], [10, 10]]
    assert (kept["second"]["look"], kept["pooled"]["look"]) == (1, 2)
    assert kept["pooled"]["level"] > kept["first"]["level"], "the pooled answer is a second look and pays for it"
    assert kept == json.loads(Path("experiments/gain-replicate/replication.json").read_text())["replications"][0]
    for folder in ("gain", "gain-replicate"):
        page = Path("experiments", folder, "report.html").read_text()
        assert "Replication: gain=20 against gain=0" in page
        assert "second, on fresh seeds" in page
        assert "Replication: gain=20 against gain=0" in Path("experiments", folder, "report.md").read_text()


def test_an_answer_that_does_not_come_out_again_says_so_and_costs_later_looks(
    ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ask(0.2)
    words = ["experiment", str(path), "--yes", "--no-log", "--replicate", "--json"]
    assert cli.main(words) == 0, "what is missing of the first is run as well"
    body = json.loads(capsys.readouterr().out)
    one = body["replications"][0]
    assert (one["first"]["verdict"], one["second"]["verdict"]) == ("yes", "cannot tell yet")
    assert one["text"].startswith("The yes did not come out again on 5 fresh seeds, which cannot tell yet: +")
    assert one["change"]["delta"] == pytest.approx(one["second"]["delta"] - one["first"]["delta"])
    assert one["change"]["high"] < 0, "the second difference is smaller by more than chance"
    assert cli.main(words) == 0
    assert json.loads(capsys.readouterr().out)["replications"] == body["replications"], "asked again, the same"
    path.write_text(path.read_text().replace("seeds: 5", "seeds: 10"))
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["answers"][0]["look"] == 3, "the pooled answer was a look too"


# ---- Declared looks


def test_declared_looks_stop_as_soon_as_all_is_decided(
    ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """A gain of 20 with a spread of 3 is clear at the second look at the latest: the seeds after it are not run."""
    path = ask(1.0)
    path.write_text(path.read_text().replace("seeds: 5", "looks: [5, 8, 15]"))
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--json"]) == 0
    reply = json.loads(capsys.readouterr().out)["answers"][0]
    assert (reply["verdict"], reply["looks"]) == ("yes", [5, 8, 15])
    assert reply["spending"] == "O'Brien-Fleming-like (Lan and DeMets)"
    assert reply["level"] > 0.99, "an early look spends little"
    assert max(seeds()) < 8
    before = len(seeds())
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--json"]) == 0
    again = json.loads(capsys.readouterr().out)["answers"][0]
    assert (len(seeds()), again["level"]) == (before, reply["level"]), "called again, nothing more is run or spent"


@pytest.mark.slow
def test_looks_go_on_to_the_last_where_nothing_is_decided(
    ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ask(1.0)
    text = path.read_text().replace("seeds: 5", "looks: each\nseeds: 7").replace("[0, 20]", "[0, 0.1]")
    path.write_text(text.replace("smallest_effect: 5", "smallest_effect: 0.1"))
    assert cli.main(["experiment", str(path), "--yes", "--no-log"]) == 0
    out = capsys.readouterr().out
    assert "look 1 of 3, at 5 seeds: cannot tell yet" in out
    assert "look 2 of 3, at 6 seeds: cannot tell yet" in out
    kept = json.loads(Path("experiments/gain/answer.json").read_text())
    assert [x["n"] for x in kept["answers"]] == [[7, 7]]
    assert kept["answers"][0]["look"] == 3
    assert kept["answers"][0]["level"] == pytest.approx(0.95, abs=0.02), "nearly all is left for the last look"


def test_a_pooled_answer_beyond_the_last_declared_look_has_no_verdict_and_says_why(
    ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    """It said "look 2 at the question, hence its 97.5 % interval", narrower than the first answer's could be."""
    path = ask(1.0)
    path.write_text(path.read_text().replace("seeds: 5", "seeds: 5\nlooks: 1"))
    assert cli.main(["experiment", str(path), "--yes", "--no-log", "--replicate", "--json"]) == 0
    pooled = json.loads(capsys.readouterr().out)["replications"][0]["pooled"]
    assert (pooled["verdict"], pooled["reason"], pooled["n"]) == ("cannot tell yet", "spent", [10, 10])
    assert "no error left for it: it has an interval and no verdict" in pooled["notes"][-1]
    assert "hence its" not in pooled["notes"][-1]


@pytest.mark.parametrize(
    ("looks", "message"),
    [
        ("looks: [5, 4]", "rising numbers of seeds"),
        ("looks: [3, 8]", "begin at 5 seeds"),
        ("looks: sometimes", "`each` or 1"),
        ("looks: [5, 8]\nseeds: 9", "the last look is at all `seeds`, but got 8 and 9"),
    ],
)
def test_looks_that_cannot_be_are_an_error_before_anything_runs(
    looks: str, message: str, ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    path = ask(1.0)
    path.write_text(path.read_text().replace("seeds: 5", looks))
    assert cli.main(["experiment", str(path), "--yes"]) == 64
    assert message in capsys.readouterr().err
    assert not Path("calls.txt").exists()


def test_a_dry_run_says_which_seeds_are_fresh(ask: Callable[[float], Path], capsys: pytest.CaptureFixture[str]) -> None:
    ask(1.0)
    assert cli.main(["experiment", "gain.yaml", "--replicate", "--dry-run"]) == 0
    said = "once more on seeds 10000, 10001, 10002, 10003, 10004, into experiments/gain-replicate"
    assert said in capsys.readouterr().out
    assert not Path("calls.txt").exists()
