"""May this point be run? Constraints such as "lr * epochs <= 0.01": parsed, checked word by word, never executed.

Numbers, text, true and false, names of settings (dotted ones too), + - * / // % **, comparisons, in, and, or, not,
min, max, abs. Nothing else parses, so a sweep's file cannot run code.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Mapping
from typing import Any

from relab.base.near import hint
from relab.config.base import require

LONGEST = 500
LARGEST_POWER = 64
DEEPEST = 60
FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max, "abs": abs}
BINARY: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
COMPARE: dict[type, Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq,
    ast.NotEq: operator.ne, ast.In: lambda a, b: a in b, ast.NotIn: lambda a, b: a not in b,
}  # fmt: skip
WORDS = {"true": True, "false": False, "True": True, "False": False}


def parse(text: str, known: Mapping[str, Any]) -> ast.expr:
    """The expression, with every name and every kind of node checked."""
    good = isinstance(text, str) and len(text) <= LONGEST
    require(good, f"a constraint must be text of at most {LONGEST} letters, such as \"lr * epochs <= 0.01\","
                  f" but is {text!r:.80}")  # fmt: skip
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        require(False, f"the constraint {text!r} cannot be read: {getattr(error, 'msg', error)}")
    require(depth(tree) <= DEEPEST, f"the constraint {text!r:.80} must not be nested more than {DEEPEST} deep: write it"
                                    " as several constraints")  # fmt: skip
    check(tree, text)
    for name in names(tree):
        near = hint(name, sorted(known), "; the nearest known one is {!r}")
        require(name in known, f"the constraint {text!r} names {name!r}, which is neither an axis nor in `base`"
                               f"{near}")  # fmt: skip
    return tree


def depth(tree: ast.AST) -> int:
    """How deep an expression is nested; counted without recursion, whatever it is."""
    level, nodes = 0, [tree]
    while nodes:
        level, nodes = level + 1, [child for node in nodes for child in ast.iter_child_nodes(node)]
    return level


def check(node: ast.expr, text: str) -> None:
    """Only what the docstring of this file lists."""
    require(known_kind(node), f"the constraint {text!r} may hold numbers, settings, comparisons, and, or, not, in and"
                              f" {', '.join(FUNCTIONS)}, but not {ast.unparse(node)!r}")  # fmt: skip
    for child in _inside(node):
        check(child, text)


def known_kind(node: ast.expr) -> bool:
    match node:
        case ast.Name() | ast.Attribute():
            return dotted(node) is not None
        case ast.Constant():
            return isinstance(node.value, (int, float, str, bool))
        case ast.BinOp():
            return type(node.op) in BINARY or isinstance(node.op, ast.Pow)
        case ast.UnaryOp():
            return isinstance(node.op, (ast.USub, ast.UAdd, ast.Not))
        case ast.Compare():
            return all(type(op) in COMPARE for op in node.ops)
        case ast.Call():
            return isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS and not node.keywords
    return isinstance(node, (ast.BoolOp, ast.List, ast.Tuple))


def _inside(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, (ast.Name, ast.Attribute)):
        return []
    children = node.args if isinstance(node, ast.Call) else ast.iter_child_nodes(node)
    return [child for child in children if isinstance(child, ast.expr)]


def dotted(node: ast.expr) -> str | None:
    """algo.lr as it was written; None where it is more than names and dots."""
    if isinstance(node, ast.Name):
        return node.id
    inner = dotted(node.value) if isinstance(node, ast.Attribute) else None
    return f"{inner}.{node.attr}" if inner is not None and isinstance(node, ast.Attribute) else None


def names(node: ast.expr) -> list[str]:
    """Settings that the expression speaks of."""
    if isinstance(node, (ast.Name, ast.Attribute)):
        name = dotted(node)
        return [name] if name is not None and name not in WORDS else []
    return list(dict.fromkeys(name for child in _inside(node) for name in names(child)))


def holds(tree: ast.expr, text: str, values: Mapping[str, Any]) -> bool:
    """Whether a point satisfies it; a constraint on a setting that the point does not have does not apply."""
    if any(name not in values for name in names(tree)):
        return True
    try:
        verdict = value(tree, values)
    except (TypeError, ValueError, ArithmeticError) as error:
        settings = ", ".join(f"{name} = {values[name]!r}" for name in names(tree))
        require(False, f"the constraint {text!r} cannot be computed with {settings}: {error}")
    require(isinstance(verdict, bool), f"the constraint {text!r} must be true or false, but gives {verdict!r}")
    return bool(verdict)


def value(node: ast.expr, values: Mapping[str, Any]) -> Any:
    """What a checked expression is worth."""
    match node:
        case ast.Constant():
            return node.value
        case ast.Name() | ast.Attribute():
            name = str(dotted(node))
            return WORDS[name] if name in WORDS and name not in values else values[name]
        case ast.BinOp():
            a, b = value(node.left, values), value(node.right, values)
            return power(a, b) if isinstance(node.op, ast.Pow) else _number(BINARY[type(node.op)], a, b)
        case ast.UnaryOp():
            inner, sign = value(node.operand, values), -1 if isinstance(node.op, ast.USub) else 1
            return not inner if isinstance(node.op, ast.Not) else _number(operator.mul, inner, sign)
        case ast.BoolOp():
            each = [value(part, values) for part in node.values]
            return all(each) if isinstance(node.op, ast.And) else any(each)
        case ast.List() | ast.Tuple():
            return [value(part, values) for part in node.elts]
        case ast.Call():
            return FUNCTIONS[node.func.id](*(value(part, values) for part in node.args))  # type: ignore[attr-defined]
        case ast.Compare():
            sides = [value(part, values) for part in (node.left, *node.comparators)]
            return all(COMPARE[type(op)](a, b) for op, a, b in zip(node.ops, sides, sides[1:]))
    raise TypeError(f"{type(node).__name__} is not part of a constraint")  # check() lets none through


def _number(op: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """Arithmetic is for numbers: text times a million would fill the memory."""
    if not all(isinstance(x, (int, float)) for x in (a, b)):
        raise TypeError(f"arithmetic needs numbers, but got {a!r:.40} and {b!r:.40}")
    return op(a, b)


def power(a: Any, b: Any) -> float:
    if not all(isinstance(x, (int, float)) and math.isfinite(x) for x in (a, b)) or abs(b) > LARGEST_POWER:
        raise ValueError(f"a power needs finite numbers and an exponent of at most {LARGEST_POWER}, but got {a}, {b}")
    result = float(a) ** b
    if isinstance(result, complex):
        raise ValueError(f"{a} ** {b} is no real number")
    return result
