"""Does a message name a word only where it is really near to what was written?"""

from __future__ import annotations

import random

import pytest

from relab import cli
from relab.base import near
from relab.cli import main
from relab.record import glossary
from relab.record.names import ADJECTIVES, ANIMALS, near_path


@pytest.mark.parametrize(
    ("word", "known", "nearest"),
    [
        ("trian", ["train", "runs"], ["train"]),
        ("lrr", ["algo.lr", "algo.clip"], ["algo.lr"]),
        ("LR", ["algo.lr"], ["algo.lr"]),
        ("nosuch", ["unarchive", "tag", "return/mean"], []),
        ("2026-11-16-calm-lynx", ["2026-11-16-bold-otter"], []),  # only the day is alike
        ("2026-11-15-bold-oter", ["2026-11-16-bold-otter"], ["2026-11-16-bold-otter"]),
        ("x", [], []),
    ],
)
def test_only_what_is_really_near_is_named(word, known, nearest):
    assert near.nearest(word, known) == nearest


def test_names_of_files_are_not_alike_because_they_end_alike():
    assert near.nearest("progres_1.csv", ["progress_0.csv", "progress_1.csv"], marks="") == ["progress_1.csv"]
    assert near.nearest("losses.csv", ["brave.csv"], marks="") == []


def slipped(word: str, draw: random.Random) -> str:
    i = draw.randrange(1, len(word) - 1)
    return draw.choice(
        [word[:i] + word[i + 1 :], word[:i] + word[i + 1] + word[i] + word[i + 2 :], word[:i] + "e" + word[i:]]
    )


@pytest.mark.parametrize("known", [list(cli.COMMANDS), list(glossary.METRICS)])
def test_slips_are_understood_and_unrelated_words_are_not(known):
    draw = random.Random(0)
    meant = [draw.choice(known) for _ in range(100)]
    assert sum(near.nearest(slipped(word, draw), known) == [word] for word in meant) >= 90
    unrelated = ADJECTIVES + ANIMALS  # of few letters, as most names are: the longer a list, the nearer one of it is
    assert sum(bool(near.nearest(word, known)) for word in unrelated) <= len(unrelated) / 8


def test_few_words_are_told_all_and_many_are_not():
    assert near.hint("zzz", ["work", "pause"]) == "; known: work, pause"
    assert near.hint("zzz", [f"setting{i}" for i in range(50)]) == ""


def test_a_path_that_is_nearly_there(tmp_path):
    (tmp_path / "logs" / "ppo").mkdir(parents=True)
    assert near_path(tmp_path / "lgos") == tmp_path / "logs"
    assert near_path(tmp_path / "lgos" / "ppo") == tmp_path / "logs" / "ppo"
    assert near_path(tmp_path / "logs" / "pppo") == tmp_path / "logs" / "ppo"
    assert near_path(tmp_path / "nosuch") is None


@pytest.mark.parametrize(("word", "named"), [("nosuch", False), ("progres.csv", True)])
def test_examine_of_what_does_not_exist_is_one_error(tmp_path, monkeypatch, capsys, word, named):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "progress.csv").write_text("step,return\n1,2\n")
    assert main(["examine", word]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert f"{word} does not exist" in lines[0]
    assert ("the nearest there is progress.csv" in lines[0], "nearest" in lines[0]) == (named, named)


def test_the_usual_folder_that_does_not_exist_is_not_called_a_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["examine"]) == 2
    assert capsys.readouterr().err.startswith("relab: the folder runs does not exist; ")


@pytest.mark.parametrize("command", ["examine", "report", "note", "compare", "next"])
def test_an_empty_folder_is_told_once(tmp_path, capsys, command):
    assert main([command, str(tmp_path)]) == 2
    said = capsys.readouterr()
    assert (said.out + said.err).count("the folder is empty") == 1
