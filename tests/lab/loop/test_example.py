"""Does the loop of examples/ run as it stands there: a program without packages, judged by a program of its own?"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import pytest

from relab import cli
from relab.lab import loop
from relab.lab.loop import lock
from where import ROOT


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in (ROOT / "examples" / "loop").iterdir():
        if path.is_file():
            shutil.copy(path, tmp_path)
    for name in ("loop.yaml", "aa.yaml"):
        text = (tmp_path / name).read_text()
        (tmp_path / name).write_text(text.replace(": python ", f": {sys.executable} "))
    monkeypatch.chdir(tmp_path)


def test_it_runs_and_hidden_seeds_decide(capsys: pytest.CaptureFixture[str]):
    assert cli.main(["loop", "loop.yaml", "--mode", "quick", "--runs", "1", "--yes", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["decides"] == "evaluate"
    assert body["mode"] == "quick"
    folder = Path("loops/loop-quick")
    hidden = json.loads((folder / "hidden" / "base-s0.json").read_text())
    assert hidden["n"] == 20
    seed = str(lock.hidden_seed(loop.load(Path("loop.yaml"), "quick")))
    for path in (*folder.glob("runs/*/*"), *folder.glob("state/*.json"), *folder.glob("proposals/*")):
        assert seed not in path.read_text(), "no run and no proposal is told the hidden seed"


def test_an_evaluation_that_fails_is_a_run_without_a_number():
    Path("judge.py").write_text("raise SystemExit('no model')\n")
    looping = loop.prepare(loop.load(Path("loop.yaml"), "quick"), Path("loops/l"), 2, lambda line: None)
    with pytest.raises(Exception, match=r"4 of its 4 runs have no number .*exit code 1; its last words: no model"):
        looping.go(0)
