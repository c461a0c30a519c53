"""How does text or a plain value become what a field's type says? One rule per type, for files and overrides alike."""

from __future__ import annotations

import re
import types
import typing
from typing import Any, Literal

from relab.base.documents import Document
from relab.base.numbers import DIGITS as MOST_DIGITS
from relab.base.numbers import integer
from relab.config.base import ConfigError

NULLS = ("null", "none", "~", "")
DIGITS = r"[0-9]+(?:_[0-9]+)*"
INT = re.compile(rf"[-+]?{DIGITS}")
FLOAT = re.compile(rf"[-+]?(?:{DIGITS}\.?(?:{DIGITS})?|\.{DIGITS})(?:[eE][-+]?[0-9]+)?")

SPECIAL = {"inf": "inf", "infinity": "inf", "nan": "nan"}


class Text(str):
    """A scalar of a YAML file as it was typed, with its place; the field's type decides what it means."""

    where: str = ""  # "file.yaml:12"
    plain: bool = True  # False: it was quoted, so that "null" is a word


def make_text(value: str, where: str, plain: bool) -> Text:
    text = Text(value)
    text.where, text.plain = where, plain
    return text


def place_of(value: Any) -> str:
    """Where a value of a file stands, "file.yaml:12"; empty for values from elsewhere."""
    if isinstance(value, (list, tuple)) and value:
        return place_of(value[0])
    return value.where if isinstance(value, Text) else ""


def coerce(value: Any, type_: Any, key: str) -> Any:
    """`value` as `type_`, or ConfigError naming the key, what the type accepts and what was given."""
    try:
        return _coerce(value, type_)
    except _MismatchError as wrong:
        place = f" ({place_of(value)})" if place_of(value) else ""
        raise ConfigError(f"`{key}` must be {describe(type_)}, but got {_show(value)}{place}{wrong.hint}") from None


class _MismatchError(Exception):
    def __init__(self, hint: str = ""):
        self.hint = hint and f"; {hint}"


def _coerce(value: Any, type_: Any) -> Any:
    origin, args = typing.get_origin(type_), typing.get_args(type_)
    if type_ is Any:
        return _anything(value)
    if origin in (typing.Union, types.UnionType):
        return _union(value, args)
    if origin is Literal:
        return _literal(value, args)
    if origin in (tuple, list) or type_ in (tuple, list):
        items = _items(value, origin or type_, args)
        return items if (origin or type_) is list else tuple(items)
    if origin is dict or type_ is dict:
        return _mapping(value, args)
    if type_ in RULES:
        return RULES[type_](value)
    raise TypeError(f"config fields of type {type_} are not supported; use {', '.join(t.__name__ for t in RULES)},"
                    " Literal, tuple, list, dict or X | None")  # fmt: skip


def _int(value: Any) -> int:
    if isinstance(value, str):
        if INT.fullmatch(value.strip()) and len(value) < MOST_DIGITS:
            return int(value)
        return _int_from_float(_float(value))
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _MismatchError
    return value if isinstance(value, int) else _int_from_float(value)


def _int_from_float(value: float) -> int:
    if not float(value).is_integer():  # also NaN and the infinities
        raise _MismatchError
    return int(value)


def _float(value: Any) -> float:
    if isinstance(value, str):
        word = value.strip().lower()
        if FLOAT.fullmatch(word):
            return float(word)
        bare = word.lstrip("+-").lstrip(".")
        if bare in SPECIAL and len(word) - len(bare) <= 2:
            return -float(SPECIAL[bare]) if word.startswith("-") else float(SPECIAL[bare])
        raise _MismatchError
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _MismatchError
    return float(value)


def _bool(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else ""
    if word not in ("true", "false"):
        raise _MismatchError("yes, no, on, off, 0 and 1 are not taken for booleans" if word else "")
    return word == "true"


def _str(value: Any) -> str:
    if isinstance(value, str):
        return str(value)  # as typed: 15:9, on, 3e-4
    raise _MismatchError("quote it if text is meant" if isinstance(value, (int, float)) else "")


RULES: dict[Any, Any] = {bool: _bool, int: _int, float: _float, str: _str}


def is_null(value: Any) -> bool:
    if isinstance(value, Text) and not value.plain:
        return False
    return value is None or (isinstance(value, str) and value.strip().lower() in NULLS)


def _union(value: Any, args: tuple[Any, ...]) -> Any:
    if type(None) in args and is_null(value):
        return None
    for arg in (a for a in args if a is not type(None)):
        try:
            return _coerce(value, arg)
        except _MismatchError:
            continue
    raise _MismatchError


def _literal(value: Any, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        try:
            if _coerce(value, type(choice)) == choice:
                return choice
        except _MismatchError:
            continue
    raise _MismatchError


def _items(value: Any, kind: Any, args: tuple[Any, ...]) -> list[Any]:
    parts = _split(value) if isinstance(value, str) else value
    if isinstance(parts, (int, float)):  # hidden: 64 is a list of one, typed or as text
        parts = [parts]
    if not isinstance(parts, (list, tuple)):
        raise _MismatchError
    if not args:
        return [_coerce(p, Any) for p in parts]
    if kind is list or (len(args) == 2 and args[1] is Ellipsis):
        return [_coerce(p, args[0]) for p in parts]
    if len(parts) != len(args):
        raise _MismatchError(f"{len(args)} items are needed, {len(parts)} were given")
    return [_coerce(p, a) for p, a in zip(parts, args)]


def _split(text: str) -> list[str]:
    """`64,64`, `[64, 64]` and `(64, 64)` -> ["64", "64"]; the brackets may be left out, nesting is not supported."""
    inner = text.strip()
    if inner[:1] + inner[-1:] in ("[]", "()"):
        inner = inner[1:-1].strip()
        if not inner:
            return []
    parts = [part.strip() for part in inner.split(",")]
    if parts[-1] == "" and len(parts) > 1:  # `64,` is a list of one
        parts.pop()
    if any(part == "" or part[0] in "[(" for part in parts):
        raise _MismatchError
    return [part[1:-1] if part[0] == part[-1] and part[0] in "'\"" and len(part) > 1 else part for part in parts]


def _anything(value: Any) -> Any:
    """Values of no declared type: text as YAML reads it, in lists and mappings too."""
    if isinstance(value, dict):
        return {str(k): _anything(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_anything(v) for v in value]
    return scalar(value) if isinstance(value, str) else value


def _mapping(value: Any, args: tuple[Any, ...]) -> Document:
    if isinstance(value, str):
        import json

        try:
            value = json.loads(value)
        except ValueError:
            raise _MismatchError('write it as JSON, e.g. {"a": 1}, or name a .yaml file') from None
    if not isinstance(value, dict):
        raise _MismatchError
    return {str(k): _coerce(v, args[1] if args else Any) for k, v in value.items()}


def scalar(text: str) -> Any:
    """A plain YAML 1.2 scalar (core schema): null, true/false, integers, floats; anything else is text.

    >>> scalar("3e-4"), scalar("15:9"), scalar("on"), scalar("1_000")
    (0.0003, '15:9', 'on', '1_000')
    """
    if isinstance(text, Text) and not text.plain:
        return str(text)
    if text in ("", "~", "null", "Null", "NULL"):
        return None
    if text in ("true", "True", "TRUE", "false", "False", "FALSE"):
        return text[0] in "tT"
    if re.fullmatch(r"[-+]?[0-9]+", text):
        return integer(text)
    if re.fullmatch(r"0o[0-7]+|0x[0-9a-fA-F]+", text):
        return integer(text)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text):
        return float(text)
    if re.fullmatch(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", text):
        return float(text.replace(".", ""))
    return str(text)


NAMES = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Any: "a value"}
PLURALS = {bool: "true or false", int: "whole numbers", float: "numbers", str: "texts"}


def describe(type_: Any) -> str:
    """A type in words, for errors and docs.

    >>> describe(float | None)
    'a number or null'
    """
    origin, args = typing.get_origin(type_), typing.get_args(type_)
    if type_ in NAMES:
        return NAMES[type_]
    if origin in (typing.Union, types.UnionType):
        return " or ".join("null" if a is type(None) else describe(a) for a in args)
    if origin is Literal:
        return "one of " + ", ".join(map(str, args))
    if origin in (tuple, list) and (origin is list or args[1:] == (Ellipsis,)):
        return f"a list of {PLURALS.get(args[0], 'values')}"
    if origin is tuple:
        return f"a list of {len(args)} items ({', '.join(map(describe, args))})"
    return {dict: "a mapping", list: "a list", tuple: "a list"}.get(origin or type_, str(type_))


def _show(value: Any) -> str:
    return f"`{value}`" if isinstance(value, str) else f"{value!r} ({type(value).__name__})"
