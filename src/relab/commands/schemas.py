"""What does --json of a reading command print? A JSON Schema for each, shipped with relab (docs/json.md).

The number in `schema` of an output is raised when a key is removed, renamed or changes its meaning; a new key does not
raise it. A program that reads these outputs checks the number and passes over keys that it does not know.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson

from relab.base.documents import Document

FOLDER = Path(__file__).parent / "schema"


def names() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.json"))


def schema(name: str) -> Document:
    """The schema of an output: examine, compare, runs, runs-by ..."""
    body: Document = orjson.loads((FOLDER / f"{name}.json").read_bytes())
    return body


def page() -> str:
    """docs/json.md: what each output holds at its top, and what its rows are made of."""
    return "\n\n".join(_section(name, schema(name)) for name in names())


def _section(name: str, body: Document) -> str:
    rows = [f"| `{key}` | {_kind(part, body)} | {part.get('description', '')} |"
            for key, part in body["properties"].items()]  # fmt: skip
    head = f"## {name}\n\n`{body['title']}`: {body['description']}\n\n| key | is | what it is |\n|---|---|---|"
    return "\n".join([head, *rows])


def _kind(part: Document, root: Document) -> str:
    """In a few words: text, number, list of objects with keys ..."""
    if "const" in part:
        return f"`{part['const']}`"
    if "$ref" in part:
        return _kind(root["$defs"][part["$ref"].rpartition("/")[2]], root)
    if "anyOf" in part:
        return " or ".join(dict.fromkeys(_kind(each, root) for each in part["anyOf"]))
    return _plain_kind(part, root)


def _plain_kind(part: Document, root: Document) -> str:
    words = {"string": "text", "integer": "whole number", "boolean": "true or false", "null": "null"}
    kind: Any = part.get("type", "anything")
    if isinstance(kind, list):
        return " or ".join(words.get(str(each), str(each)) for each in kind)
    if kind == "array":
        return f"list: {_kind(part.get('items', {}), root)}"
    if kind == "object" and part.get("properties"):
        return "object: " + ", ".join(f"`{key}`" for key in part["properties"])
    return "object by name" if kind == "object" else words.get(kind, kind)
