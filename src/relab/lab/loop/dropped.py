"""What did a person or a program drop into the loop's folder? A next_config.yaml, which gets the same checks as any.

Four forms, all of which become a diff against the parent's resolved settings:

    diff: {algo.lr: {from: 0.001, to: 0.003}}     `from` must be what the parent has
    set: {algo.lr: 0.003}                         the same without `from`
    override: {algo: {lr: 0.003}}                 nested, as loops of other people write them
    config: {...}                                 a whole config: every key that differs is a change, and each must be
                                                  named in `override`, `set` or the rationale

Besides: parent (a config or a run of this loop; default: the present best), rationale, predicted, resume_from.
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from relab.advise.proposal import FILE, changes_of, mapping_of, text_of
from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.near import hint
from relab.base.numbers import is_finite
from relab.config import layers
from relab.config.base import ConfigError, require
from relab.config.lineage import FromTo
from relab.config.views import MISSING, diff, flatten
from relab.lab.loop.policy import refuse, unnamed

FORMS = ("diff", "set", "override", "config")
KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
         stat.S_IFCHR: "a device", stat.S_IFBLK: "a device"}  # fmt: skip
KEYS = {*FORMS, "parent", "rationale", "checks", "predicted", "cost", "resume_from"}


@dataclass(frozen=True)
class Dropped:
    """A proposal from outside."""

    path: Path
    parent: str | None
    change: dict[str, FromTo]
    rationale: str
    predicted: Document = field(default_factory=dict)
    resume_from: str | None = None


def parent_of(path: Path, best: str, configs: list[str]) -> str:
    """Which config it is a change of: a config's name, a run's name (p003-s3001), or the present best."""
    word = _values(path).get("parent")
    if word is None:
        return best
    config = str(word).rpartition("-s")[0] or str(word)
    known = config if config in configs else str(word) if str(word) in configs else ""
    require(bool(known), f"`parent` in {path} must be a config of this loop ({', '.join(configs[:8])}) or one of its"
                         f" runs, but is {word!r:.80}")  # fmt: skip
    return known


def _values(path: Path) -> Document:
    """What the file holds, where it can be written down again: half a pair (\\ud800) is no character."""
    values = layers.read_yaml(layers.named_file(path))
    try:
        json.dumps(values, ensure_ascii=False, default=str, skipkeys=True).encode()
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} must hold text that can be written as UTF-8, and values that end, but:"
                          f" {error!s:.120}; write the characters themselves") from None  # fmt: skip
    return values


def read(path: Path, parent: str, settings: Settings) -> Dropped:
    """The change that a file asks for, against the parent's settings; what cannot be meant is an error."""
    values = _values(path)
    for key in values:
        require(key in KEYS, f"unknown key `{key}` in {path}{hint(str(key), sorted(KEYS))}")
    forms = [form for form in FORMS if values.get(form) is not None]
    require(bool(forms), f"{path} must hold one of {', '.join(FORMS)}: what is to change")
    several = " and ".join(f"`{form}`" for form in forms)
    require("diff" not in forms or len(forms) == 1, f"{path} must say in one form what is to change, but holds"
            f" {several}, of which one would be dropped: put all of it into `diff`")  # fmt: skip
    rationale = text_of(values, path)
    change = _change(values, path, settings)
    if values.get("config") is not None:
        named = [*flatten(_mapping(values, "override", path)), *_mapping(values, "set", path)]
        more = unnamed(change, named, rationale)
        text = ", ".join(f"{key} {change[key]['from']} -> {change[key]['to']}" for key in more)
        refuse(not more, f"the config in {path} changes settings of the parent that nothing in it names: {text}; it was"
               " laid over a template, not over the parent. Give the diff against the parent, or name each key in"
               " `rationale`")  # fmt: skip
    resume = values.get("resume_from")
    require(resume is None or isinstance(resume, str), f"`resume_from` in {path} must be text, but is {resume!r:.80}")
    return Dropped(path, parent, change, rationale, _predicted(values, path), resume)


def _mapping(values: Mapping[str, Any], key: str, path: Path) -> Document:
    return mapping_of(values, key, path)


def _change(values: Mapping[str, Any], path: Path, settings: Settings) -> dict[str, FromTo]:
    if values.get("diff") is not None:
        return {key: {"from": each["from"], "to": each["to"]} for key, each in changes_of(values["diff"], path).items()}
    if values.get("config") is not None:
        whole = flatten(_mapping(values, "config", path))
        for key, value in _named(values, path).items():
            name = _whole(str(key), {**settings, **whole})
            require(whole.get(name) == value, f"`{key}` is named as {value!r:.40} in {path}, but its `config` has"
                    f" {whole.get(name)!r:.40}: make both the same")  # fmt: skip
        changed = {c.key: c for c in diff({k: settings[k] for k in settings if k in whole}, whole)}
        return {key: {"from": None if c.a is MISSING else c.a, "to": c.b} for key, c in changed.items() if key != "seed"
                or settings.get("seed") is not None}  # fmt: skip
    new = _named(values, path)
    return {_whole(str(key), settings): {"from": settings.get(_whole(str(key), settings)), "to": to}
            for key, to in new.items()}  # fmt: skip


def _named(values: Mapping[str, Any], path: Path) -> Document:
    """What `set` and `override` say together; a key for which they differ is an error."""
    laid, direct = flatten(_mapping(values, "override", path)), _mapping(values, "set", path)
    odd = next((key for key in direct if key in laid and laid[key] != direct[key]), None)
    require(odd is None, f"`{odd}` is {laid.get(odd or '')!r:.40} in `override` and {direct.get(odd or '')!r:.40} in"
                         f" `set` of {path}: give it once")  # fmt: skip
    return {**laid, **direct}


def _whole(key: str, settings: Settings) -> str:
    """`lr` is `algo.lr` where only one setting ends so."""
    fits = [key] if key in settings else [each for each in settings if each.endswith(f".{key}")]
    return fits[0] if len(fits) == 1 else key


def digest(path: Path) -> str:
    """By which a file is known again; what cannot be read, by what it is and where it lies on the disk."""
    try:
        data = limits.read_bytes(path, limits.JSON, plain=True) if not odd(path) else None
    except OSError:
        data = None
    if data is None:
        place = path.lstat()
        data = f"{place.st_mode} {place.st_dev} {place.st_ino}".encode()
    return hashlib.sha256(data).hexdigest()[:16]


def waiting(folder: Path) -> Path | None:
    """What somebody dropped and nobody has taken yet: a file, or something else in its place (`odd`)."""
    path = folder / FILE
    return path if os.path.lexists(path) else None


def odd(path: Path) -> str:
    """What it is instead of a file; empty for a file. Nothing is opened: a pipe would keep its reader waiting."""
    mode = path.lstat().st_mode
    return "" if stat.S_ISREG(mode) else KINDS.get(stat.S_IFMT(mode), "no file")


def check_file(path: Path) -> None:
    """An error that names what lies there instead of a file, which nobody opens."""
    kind = odd(path)
    refuse(not kind, f"{path} must be a file, but is {kind}; put the file itself there")


def _predicted(values: Document, path: Path) -> Document:
    """What the file expects; its numbers must be numbers, in order."""
    predicted = mapping_of(values, "predicted", path)
    for key in ("delta", "low", "high"):
        value = predicted.get(key)
        require(value is None or is_finite(value), f"`predicted.{key}` must be a number, but {path} has {value!r:.40}")
    low, high = predicted.get("low"), predicted.get("high")
    require(low is None or high is None or low <= high,
            f"`predicted.low` must not be above `predicted.high`, but {path} has {low} and {high}")  # fmt: skip
    return predicted
