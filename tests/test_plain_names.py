"""Names are nouns for things and verbs for deeds: some words name nothing, and none of them is a name here."""

import ast
from pathlib import Path

import pytest

import syntax

SRC = Path(__file__).parents[1] / "src" / "relab"
EMPTY = {"found", "asked", "told", "given", "it"}


def empty_names(module: ast.Module) -> list[tuple[int, str]]:
    """(line, name) of every variable, parameter, attribute, function and class that is called so."""
    names = []
    for node in ast.walk(module):
        for part in ("id", "arg", "attr", "name"):
            if getattr(node, part, None) in EMPTY:
                names.append((getattr(node, "lineno", 0), getattr(node, part)))
    return names


def test_no_name_says_nothing():
    files = sorted(SRC.rglob("*.py"))
    empty = {str(path.relative_to(SRC)): names for path in files if (names := empty_names(syntax.tree(path)))}
    assert empty == {}, "say what the thing is: rows, settings, match, verdict ..."


TEXTS = ["found = 1", "def f(asked): ...", "x.told", "f(given=1)", "def found(): ...", "it = 1"]


@pytest.mark.parametrize("text", TEXTS)
def test_each_kind_of_name_is_seen(text):
    assert len(empty_names(ast.parse(text))) == 1


def test_words_of_prose_are_no_names():
    assert empty_names(ast.parse('"""what was found"""\nx = "asked"  # told')) == []
