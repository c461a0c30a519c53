"""Is every number that decides a named threshold? Comparisons in a rule's file hold no bare number.

A limit is a keyword default of the check (`relab explain` and docs/health.md show it) or of a helper, or a constant of
the module with its reason. What is left: 0, 1, 2 and their negatives, guards against rounding, and powers of ten.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from relab.health import rule as rules

FILES = sorted((Path(rules.__file__).parent / "rules").glob("*.py"))
PLAIN = (0, 1, 2)
TENS = ("10 **", "10.0 **")
GUARD = 1e-6  # at most: against division by zero, and for numbers that differ by rounding alone
WINDOWS = ("median", "tail", "head", "percentile", "curve", "evals", "course", "named",
           "q_estimate")  # which rows are looked at  # fmt: skip


def parts(node: ast.AST) -> Iterator[ast.AST]:
    """What of an expression is held against something: no index, no text, no window of rows, no power of ten."""
    if isinstance(node, ast.Subscript):
        return iter([node.value])
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.BinOp) and ast.unparse(node).startswith(TENS)):
        return iter([])
    if isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in WINDOWS:
        return iter([node.func])
    return ast.iter_child_nodes(node)


def numbers(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        size = abs(float(node.value))  # type: ignore[arg-type]
        yield from [node] * (size not in PLAIN and size > GUARD)
    for part in parts(node):
        yield from numbers(part)


def compared(function: ast.FunctionDef) -> list[ast.AST]:
    """Each comparison, and what is assigned to a name that stands in one."""
    tests = [node for node in ast.walk(function) if isinstance(node, ast.Compare)]
    names = {node.id for test in tests for node in ast.walk(test) if isinstance(node, ast.Name)}
    made = [node for node in ast.walk(function) if isinstance(node, ast.Assign)]
    return [*tests, *(each.value for each in made if names & {n.id for t in each.targets for n in named(t)})]


def named(target: ast.AST) -> list[ast.Name]:
    return [node for node in ast.walk(target) if isinstance(node, ast.Name)]


def bare(text: str) -> list[str]:
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    hits = {(f.name, n.lineno, n.value) for f in functions for part in compared(f) for n in numbers(part)}
    return [f"line {line}, {name}: {value}" for name, line, value in sorted(hits, key=str)]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_numbers_that_decide_have_names(file: Path) -> None:
    found = bare(file.read_text(encoding="utf-8"))
    assert found == [], f"{file.name}: make each a keyword default of its function, or a constant of the module"


@pytest.mark.parametrize(
    ("line", "numbers"),
    [
        ("return x > 0.3", ["0.3"]),
        ("return 3 * x <= max(x, 0.2 * view.last)", ["0.2", "3"]),
        ("limit = 0.05 * x\n    return view.last > limit", ["0.05"]),
        ("return not 5 <= x < 50", ["5", "50"]),
        ("return x <= -3", ["3"]),
        ("return view.curve('a', rows=8).median(0.25) > limit", []),
        ("return x[3] > 1 and max(x, 1e-12) > 0 and -1 < x < 2 and x * 10**3 > limit", []),
    ],
)
def test_a_bare_number_is_seen(line: str, numbers: list[str]) -> None:
    found = bare(f"def check(view, x, limit=7):\n    {line}\n")
    assert [each.rpartition(" ")[2] for each in found] == numbers


def test_thresholds_of_rules_are_numbers_by_keyword() -> None:
    for slug, each in rules.all_rules(plugins=False).items():
        assert all(type(value) in (int, float) for value in each.thresholds.values()), slug
        assert each.check.__defaults__ is None, f"{slug}: thresholds are given by name only"
