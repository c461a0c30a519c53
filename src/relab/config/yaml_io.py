"""How are YAML files read and written? By YAML 1.2: 3e-4 is a number, 15:9 and on are text; errors carry the line."""

from __future__ import annotations

import copy
import functools
import math
import os
import re
from typing import Any

from relab.base import limits
from relab.base.documents import Document
from relab.config.base import ConfigError
from relab.config.coerce import Text, make_text, scalar

SMALL = 20_000  # characters up to which what was parsed is remembered
MAX_BYTES = limits.YAML
MAX_NODES = 30_000  # keys and values; aliases can blow a small file up to billions of them

MAX_DEPTH = 500  # Python's own limit stops the parser a little earlier
TAGS = ("map", "seq", "str", "int", "float", "bool", "null", "timestamp")


class YamlError(ConfigError):
    """A YAML file that cannot be read; `path` and `line` (from 1) say where."""

    def __init__(self, path: str, line: int | None, message: str):
        super().__init__(f"{path}{'' if line is None else f':{line}'}: {message}")
        self.path, self.line = path, line


def read_yaml(path: str | os.PathLike[str], text: bool = False) -> Document:
    """The mapping in a YAML file. `text=True` keeps every scalar as it was typed (class Text, with its line)."""
    name = os.fspath(path)
    try:
        source = limits.read_bytes(path, MAX_BYTES).decode("utf-8-sig")
    except limits.TooLargeError as error:
        raise YamlError(name, None, str(error)) from None
    except UnicodeDecodeError as error:
        raise YamlError(name, None, f"the file must be UTF-8 text, but {error}") from None
    return parse_yaml(source, name, text)


def parse_yaml(source: str, name: str = "yaml", text: bool = False) -> Document:
    """Like read_yaml, for a string; `name` stands in the errors."""
    if text or len(source) > SMALL:
        return _parse(source, name, text)
    return copy.deepcopy(_cached(source, name))


@functools.lru_cache(maxsize=256)
def _cached(source: str, name: str) -> Document:
    """Commands read the config of a run several times over; a parse takes 20 ms, a copy 0.1 ms."""
    return _parse(source, name, text=False)


def _parse(source: str, name: str, text: bool) -> Document:
    if len(source) > MAX_BYTES:
        raise YamlError(name, None, f"the text has {len(source):,} characters, and no more than {MAX_BYTES:,} are read")
    try:
        _check_depth(source)
        tree = _Builder(name, text).build(_compose(source, name))
    except RecursionError:
        raise YamlError(name, None, "the file is nested too deeply") from None
    if tree is None or (isinstance(tree, Text) and tree == ""):
        return {}
    if not isinstance(tree, dict):
        raise YamlError(name, 1, f"`key: value` lines are needed, but the file holds a {type(tree).__name__}")
    return tree


def _check_depth(source: str) -> None:
    """Brackets nested deeper than the parser can follow would keep it busy for minutes before it fails."""
    depth = 0
    if source.count("[") + source.count("{") > MAX_DEPTH:
        for bracket in re.findall(r"[\[\]{}]", source):
            depth = max(0, depth + (1 if bracket in "[{" else -1))
            if depth > MAX_DEPTH:
                raise RecursionError


def _compose(source: str, name: str) -> Any:
    from ruamel.yaml import YAML  # imported when used: it takes longer than everything else here
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    try:
        yaml = YAML(typ="safe", pure=True)
        yaml.Composer = _counting()
        return yaml.compose(source)
    except _TooManyError as error:
        message = f"there are more than {MAX_NODES:,} keys and values; is this a file of settings?"
        raise YamlError(name, error.line, message) from None
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 1 if mark is not None else None
        raise YamlError(name, line, " ".join(str(p) for p in (error.context, error.problem) if p)) from None
    except YAMLError as error:
        raise YamlError(name, None, " ".join(str(error).split())) from None


class _TooManyError(Exception):
    """More keys and values than are read, as seen in this line."""

    def __init__(self, line: int):
        super().__init__(line)
        self.line = line


@functools.cache
def _counting() -> Any:
    """ruamel's composer, which stops at the first key or value too many: a count afterwards would come too late."""
    from ruamel.yaml.composer import Composer

    class Counting(Composer):
        count = 0

        def compose_node(self, parent: Any, index: Any) -> Any:
            self.count += 1
            if self.count > MAX_NODES:
                raise _TooManyError(self.parser.peek_event().start_mark.line + 1)
            return super().compose_node(parent, index)

    return Counting


class _Builder:
    """Turns ruamel's node graph into plain dicts, lists and scalars, so that duplicates and lines are seen."""

    def __init__(self, name: str, text: bool):
        self.name, self.text, self.count = name, text, 0
        self.open: set[int] = set()  # nodes being built: an alias to one of them never ends

    def build(self, node: Any) -> Any:
        if node is None:
            return None
        self.count += 1
        if self.count > MAX_NODES or id(node) in self.open:
            raise YamlError(self.name, self._line(node), "aliases expand without end")
        self._tag(node)
        self.open.add(id(node))
        try:
            return {"mapping": self._mapping, "sequence": self._sequence, "scalar": self._scalar}[node.id](node)
        finally:
            self.open.discard(id(node))

    def _line(self, node: Any) -> int:
        return int(node.start_mark.line) + 1

    def _tag(self, node: Any) -> str:
        tag = str(node.tag).removeprefix("tag:yaml.org,2002:")
        if tag not in TAGS:
            raise YamlError(self.name, self._line(node), f"the tag `{tag}` is not supported; write plain values")
        return tag

    def _mapping(self, node: Any) -> Document:
        result: Document = {}
        lines: dict[str, int] = {}
        for key_node, value_node in node.value:
            if key_node.id != "scalar":
                raise YamlError(self.name, self._line(key_node), "keys must be plain text")
            key = str(key_node.value)
            if key in result:
                where = self._line(key_node)
                raise YamlError(self.name, where, f"the key `{key}` is given twice, first on line {lines[key]}")
            lines[key] = self._line(key_node)
            result[key] = self.build(value_node)
        return result

    def _sequence(self, node: Any) -> list[Any]:
        return [self.build(item) for item in node.value]

    def _scalar(self, node: Any) -> Any:
        tag = self._tag(node)
        plain = node.style in (None, "") and not (tag == "str" and not isinstance(scalar(node.value), str))
        value = make_text(node.value, f"{self.name}:{self._line(node)}", plain)
        return value if self.text else scalar(value)


def write_yaml(path: str | os.PathLike[str], values: Document) -> None:
    """Write nested plain values; reading them back gives the same values."""
    from relab.base.jsonl import write_atomic

    write_atomic(path, format_yaml(values).encode("utf-8"))


def format_yaml(values: Document, indent: str = "") -> str:
    """Nested plain values as YAML text: block mappings, lists in one line, floats in full precision."""
    lines = []
    for key, value in values.items():
        if isinstance(value, dict) and value:
            lines.append(f"{indent}{format_scalar(str(key))}:\n{format_yaml(value, indent + '  ')}")
        else:
            lines.append(f"{indent}{format_scalar(str(key))}: {format_value(value)}\n")
    return "".join(lines)


def format_value(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(format_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{format_scalar(str(k))}: {format_value(v)}" for k, v in value.items()) + "}"
    return format_scalar(value)


def format_scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        return _format_float(float(value))
    if isinstance(value, str):
        return str(value) if _is_safe_plain(value) else _quoted(value)
    raise TypeError(f"YAML files hold null, bool, int, float, text, lists and mappings, but got {type(value).__name__}")


def _format_float(value: float) -> str:
    if math.isfinite(value):
        mantissa, e, exponent = repr(value).partition("e")
        return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"  # readers of YAML 1.1 need the point
    return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")


def _is_safe_plain(text: str) -> bool:
    """Plain only where no YAML reader, 1.1 or 1.2, could take it for something else."""
    head_ok = text[:1].isalpha() and text.isascii()
    body_ok = all(c.isalnum() or c in "_-./+" or (c == ":" and i + 1 < len(text)) for i, c in enumerate(text))
    words = ("true", "false", "null", "none", "yes", "no", "on", "off", "y", "n", "inf", "nan")
    return head_ok and body_ok and text.lower() not in words


def _quoted(text: str) -> str:
    named = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}
    return '"' + "".join(named.get(c) or (c if c.isprintable() else f"\\U{ord(c):08x}") for c in text) + '"'
