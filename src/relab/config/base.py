"""What does every config class need? One error type, one check, and docs read from the comments behind its fields."""

from __future__ import annotations

import dataclasses
import functools
import math
import re
from typing import Any, get_type_hints

from relab.base.errors import UserError


class ConfigError(UserError, ValueError):
    """A setting that cannot be used: the message states the condition, the values found and what to do."""

    exit_code = 64


def require(condition: bool, message: str) -> None:
    """Raise ConfigError(message) unless the condition holds; used by every config's `check()`."""
    if not condition:
        raise ConfigError(message)


def require_range(
    name: str, value: float, low: float | None = None, high: float | None = None, open_: str = ""
) -> None:
    """`low <= value <= high`; `open_` holds "low" and/or "high" for bounds that are excluded. NaN never passes.

    >>> require_range("gamma", 0.99, 0.0, 1.0)
    """
    low_ok = low is None or (value > low if "low" in open_ else value >= low)
    high_ok = high is None or (value < high if "high" in open_ else value <= high)
    left = "" if low is None else f"{low:g} {'<' if 'low' in open_ else '<='} "
    right = "" if high is None else f" {'<' if 'high' in open_ else '<='} {high:g}"
    require(low_ok and high_ok and value == value, f"{left}`{name}`{right} must hold, but got {name} = {value:g}")


def require_numbers(cfg: Any, limits: tuple[str, ...] = ()) -> None:
    """Every number is finite; only `limits` may be infinite, which switches them off. NaN never passes."""
    for each in dataclasses.fields(cfg):
        value = getattr(cfg, each.name)
        if isinstance(value, float):
            ok = value > -math.inf if each.name in limits else math.isfinite(value)
            require(ok, f"`{each.name}` must be a finite number, but got {value}")


@functools.cache
def field_types(cls: type) -> dict[str, Any]:
    """Field name -> type, with the annotations' strings evaluated."""
    hints = get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


@functools.cache
def field_docs(cls: type) -> dict[str, str]:
    """Field name -> the comment behind it (or on the lines below it), for every field of a config class."""
    docs: dict[str, str] = {}
    for base in reversed(cls.__mro__):
        if dataclasses.is_dataclass(base):
            docs |= _comments_of(base)
    return {f.name: docs.get(f.name, "") for f in dataclasses.fields(cls)}


def _comments_of(cls: type) -> dict[str, str]:
    import ast
    import inspect
    import io
    import textwrap
    import tokenize

    try:
        source = textwrap.dedent(inspect.getsource(cls))
    except (OSError, TypeError):  # typed into a shell: there is no source to read
        return {}
    body = ast.parse(source).body[0].body  # type: ignore[attr-defined]
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    comments = {t.start[0]: t for t in tokens if t.type == tokenize.COMMENT}
    docs = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            docs[node.target.id] = _comment_behind(node.lineno, node.end_lineno or node.lineno, comments)
    return docs


def _comment_behind(first: int, last: int, comments: dict[int, Any]) -> str:
    lines = [comments[i] for i in range(first, last + 1) if i in comments]
    after = last + 1
    while after in comments and comments[after].line.lstrip().startswith("#"):  # the comment goes on below
        lines.append(comments[after])
        after += 1
    text = " ".join(token.string.lstrip("# ").rstrip() for token in lines)
    return re.sub(r"type: ignore(\[[a-z-]+\])?\s*#?\s*", "", text)  # a word to the type checker, not to a reader


def property_docs(cls: type) -> dict[str, str]:
    """Derived numbers: property name -> first line of its docstring, in order of definition."""
    properties = {k: v for base in reversed(cls.__mro__) for k, v in vars(base).items() if isinstance(v, property)}
    return {name: (prop.__doc__ or "").strip().split("\n")[0] for name, prop in properties.items()}
