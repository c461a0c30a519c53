"""What may leave the machine? Relative paths, no user, no host, no secrets, nothing that hides in the text.

One walk over the finished data, so that no section can forget it. `--full` takes out secrets and control characters
alone.
"""

from __future__ import annotations

import getpass
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from relab.base import masks
from relab.base.terminal import STEERING

PATH = re.compile(
    r"file://[^\s\"'<>|]+"
    r"|\b[A-Za-z]:[\\/][^\s\"'<>|]+"
    r"|(?<![\w\\])\\\\[\w.-]+\\[^\s\"'<>|]+"
    r"|(?<![\w.~/\\])/(?!/)(?:[\w.@%+~-]+/)*[\w.@%+~-]+/?"
)
# What is left of a person after that: a home in a relative path, ~name, an address of mail or ssh
PEOPLE = (
    (re.compile(r"((?:^|[\s/\\\"'=:])(?:home|Users)[/\\])[^/\\\s\"':]+"), r"\1(name)"),
    (re.compile(r"(?<![\w/])~[\w.-]+(?=/|\s|$)"), "~(name)"),
    (re.compile(r"(?<![\w.+-])([A-Za-z][\w+.-]{0,20}://)(?!\*\*\*@)[^/@\s]{1,200}(?=@)"), r"\1(name)"),
    (re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@(?:(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,}\b|[\w.-]{1,253}(?=:))"), "(name)"),
)
HIDDEN = re.compile(f"{STEERING.pattern}|[\ud800-\udfff]")  # halves of a pair besides, which no file can hold


class Cleaner:
    """Takes out of texts what should not leave; `folders` are what paths are made relative to."""

    def __init__(self, folders: list[Path], hosts: set[str], full: bool = False):
        self.full = full
        self.roots = [str(folder.resolve()) for folder in [*folders, Path.cwd()]]
        self.words = {name for name in {*hosts, *_users(), *self._homes()} if len(name) > 1}

    def _homes(self) -> set[str]:
        return {m[1] for root in self.roots if (m := re.match(r"/(?:home|Users)/([^/]+)", root))}

    def clean(self, value: Any) -> Any:
        """The same data with every text (keys too) made safe."""
        if isinstance(value, str):
            return self.text(value)
        if is_dataclass(value) and not isinstance(value, type):
            known = {f.name: getattr(value, f.name) for f in fields(value) if f.init}
            return replace(value, **{name: self._beside(name, each) for name, each in known.items()})
        if isinstance(value, Mapping):
            return {self.clean(k): self._beside(k, v) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return [self._beside(value[0], v) if i else self.clean(v) for i, v in enumerate(value)]
        return value

    def _beside(self, key: Any, value: Any) -> Any:
        """A cell or value behind a key that names a secret; numbers (max_tokens) stay."""
        return self.clean(masks.beside(key, value))

    def text(self, text: str) -> str:
        text = masks.mask(HIDDEN.sub("\N{REPLACEMENT CHARACTER}", text))
        if self.full:
            return text
        text = PATH.sub(lambda m: self.path(m[0].removeprefix("file://")), text)
        for pattern, mask in PEOPLE:
            text = pattern.sub(mask, text)
        return self._without_names(text)

    def path(self, path: str) -> str:
        """Relative to the reported folder or the current one; of any other path, only the name."""
        for root in self.roots:
            if path.rstrip("/") == root:
                return "."
            if path.startswith(root + "/"):
                return path[len(root) + 1 :]
        parts = re.split(r"[\\/]", path.rstrip("/\\"))
        return ".../" + ("(name)" if parts[-2:-1] in (["home"], ["Users"]) else parts[-1])

    def _without_names(self, text: str) -> str:
        for word in self.words:
            text = re.sub(rf"(?<![\w-]){re.escape(word)}(?![\w-])", "(name)", text)
        return text


def _users() -> set[str]:
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):
        return set()
    return set() if user in ("root", "user", "admin") else {user}  # these name nobody
