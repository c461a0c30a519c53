"""Do words and options of a command come in any order?"""

from __future__ import annotations

import pytest

from relab import cli
from relab.commands.compare import Compare
from relab.commands.examine import Examine
from relab.commands.faults import Faults
from relab.commands.train import Train
from relab.commands.word_order import in_order

SAME = ["sac", "env=pendulum", "seed=3", "--name", "x", "--json"]
LINES = ("sac env=pendulum --name x seed=3 --json", "--name x sac --json env=pendulum seed=3",
         "sac --name x --json env=pendulum seed=3", "sac env=pendulum seed=3 --name x --json")  # fmt: skip


@pytest.mark.parametrize("line", LINES)
def test_settings_stand_anywhere(line: str) -> None:
    assert in_order(Train, line.split()) == SAME


@pytest.mark.parametrize(("args", "line", "wanted"), [
    (Train, "ppo --intent lr=3 seed=1", "ppo seed=1 --intent lr=3"),
    (Train, "ppo --intent=a=b seed=1", "ppo seed=1 --intent=a=b"),
    (Examine, "-v runs", "runs -v"),
    (Train, "ppo --nmae x seed=1", "ppo --nmae x seed=1"),
    (Train, "ppo --name -- seed=1", "ppo --name -- seed=1"),
])  # fmt: skip
def test_the_value_of_an_option_stays_with_it(args: type, line: str, wanted: str) -> None:
    assert in_order(args, line.split()) == wanted.split()


def test_options_that_take_many_keep_them() -> None:
    line = ["--only", "b", "c", "--seeds", "1", "2"]
    assert in_order(Faults, line) == line
    once = ["--declare", "x=1", "runs", "--declare", "y=2"]
    assert in_order(Compare, once) == ["runs", "--declare", "x=1", "--declare", "y=2"]


def test_a_command_takes_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["train", "sac", "env=pendulum", "--name", "x", "seed=3", "--print-config"]) == 0
    line = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("seed "))
    assert line.split() == ["seed", "3", "command", "line"]


@pytest.mark.parametrize("words", [["runs", "--state", "dead"], ["runs", "--state=dead"]])
def test_a_word_that_an_option_does_not_take_is_told_with_those_it_takes(capsys, words) -> None:
    assert cli.main(words) == 64
    err = capsys.readouterr().err
    assert "`--state` must be one of running, finished, interrupted, failed, stale, ended, unknown" in err
    assert "None" not in err
