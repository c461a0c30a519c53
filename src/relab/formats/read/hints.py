"""What does the user know that a log does not say? Which runs belong together, what the task is like, the command.

Hints come from options (`--group`, `--spec`, `--command`, `--mapping`), from the table `mapping` of relab.toml in the
folder that is read (of a single file: the folder that it lies in), and, for groups, from the last time: a pattern is
remembered in the user's cache, never in the folder itself.
"""

from __future__ import annotations

import hashlib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from relab.base import limits
from relab.base.documents import Document
from relab.base.jsonl import RecordError, encode, inside, read_json, write_atomic
from relab.base.near import hint
from relab.base.places import cache_folder
from relab.config.base import ConfigError
from relab.formats.read import common
from relab.formats.read.pattern import Pattern
from relab.formats.read.source import FOREIGN, Names
from relab.formats.read.spec import merged
from relab.record import glossary
from relab.record.history import Column, History

FILE = "relab.toml"
LONGEST = 100_000  # characters of a command


@dataclass(frozen=True)
class Hints:
    """All that is known besides the logs; empty ones change nothing."""

    group: Pattern | None = None
    spec: Mapping[str, Any] = field(default_factory=dict)
    command: str = ""
    mapping: Names = field(default_factory=dict)

    def before(self, history: History, name: str) -> None:
        """What other facts may follow from: the environment's name, names of metrics, the group."""
        if "env" in self.spec:
            history.meta["spec"] = {**_table(history.meta.get("spec")), "env": self.spec["env"]}
        if self.group is not None:
            self.group.apply(history, name)
        for theirs, (ours, factor) in self.mapping.items():
            if not common.is_steps(ours):  # a column of steps was used when the rows were read
                rename(history, theirs, ours, factor)

    def after(self, history: History) -> None:
        """What counts more than any table."""
        if self.spec:
            history.meta["spec"] = merged(_table(history.meta.get("spec")), self.spec)
        if self.command and not history.meta.get("command"):
            history.meta["command"] = self.command


def _table(value: Any) -> Document:
    return value if isinstance(value, dict) else {}


# ---- Names of metrics


def rename(history: History, theirs: str, ours: str, factor: float) -> None:
    """A metric of the tool under another of relab's names; a column that had the name goes back to its own."""
    now = history.mapping.get(theirs)
    if now is None or now not in history.columns:
        return
    old = history.factors.pop(now, 1.0)
    column, axis = history.columns.pop(now), history.axes.pop(now)
    if ours in history.columns:
        _set_aside(history, ours)
    history.columns[ours] = Column(column.steps, column.values / old * factor)
    history.axes[ours], history.mapping[theirs] = axis, ours
    if factor != 1.0:
        history.factors[ours] = factor


def _set_aside(history: History, ours: str) -> None:
    own = next((name for name, column in history.mapping.items() if column == ours), ours)
    if not ours.startswith(FOREIGN):
        rename(history, own, FOREIGN + own, 1.0)


def read_mapping(table: Any, where: str) -> dict[str, tuple[str, float]]:
    """{their name: relab's, -relab's, or {name: relab's, factor: number}} as it is checked."""
    if not isinstance(table, dict):
        raise ConfigError(f"{where} must map their names to relab's, but holds {table!r:.80}")
    return {str(theirs): _entry(entry, str(theirs), where) for theirs, entry in table.items()}


def _entry(entry: Any, theirs: str, where: str) -> tuple[str, float]:
    if isinstance(entry, str) and entry.startswith("-"):  # a cost: less is better
        entry = {"name": entry.removeprefix("-"), "factor": -1.0}
    name, factor = (entry.get("name"), entry.get("factor", 1.0)) if isinstance(entry, dict) else (entry, 1.0)
    unknown = sorted(set(entry) - {"name", "factor"}) if isinstance(entry, dict) else []
    if unknown:
        raise ConfigError(f"{where}: `{theirs}` may have a name and a factor, but has {', '.join(unknown)}")
    if isinstance(factor, bool) or not isinstance(factor, (int, float)) or factor == 0 or factor - factor != 0:
        raise ConfigError(f"{where}: the factor of `{theirs}` must be a number that is not 0, but is {factor!r}")
    known = isinstance(name, str) and (glossary.known(name) or name.startswith(FOREIGN) or common.is_steps(name))
    if not isinstance(name, str) or not known:
        close = hint(str(name), [*glossary.METRICS, *glossary.AXES, common.STEP], "; the nearest is {!r}")
        raise ConfigError(f"{where}: `{theirs}` is mapped to {name!r}, but relab has no such metric"
                          f"{close}")  # fmt: skip
    return name, float(factor)


def mapping_of(text: str) -> dict[str, tuple[str, float]]:
    """--mapping as it was typed: a YAML file, `theirs=ours,theirs=ours`, or a YAML mapping in braces.

    >>> mapping_of("frames=step,cost=-return/mean")
    {'frames': ('step', 1.0), 'cost': ('return/mean', -1.0)}
    """
    from relab.config.yaml_io import parse_yaml

    if text.lstrip().startswith("{"):
        return read_mapping(parse_yaml(text, "`--mapping`"), "`--mapping`")
    if "=" in text and not Path(text).is_file():
        pairs = [part.partition("=") for part in text.split(",")]
        return read_mapping({theirs.strip(): ours.strip() for theirs, _, ours in pairs}, "`--mapping`")
    return mapping_file(Path(text))


def mapping_file(path: Path) -> dict[str, tuple[str, float]]:
    """A YAML file of names, or one with a table `mapping`."""
    from relab.config.yaml_io import read_yaml

    if not path.is_file():
        raise ConfigError("`--mapping` must be a YAML file or pairs such as frames=step,score=return/mean, but there is"
                          f" no file {path}")  # fmt: skip
    document = read_yaml(path)
    only = set(document) == {"mapping"} and isinstance(document["mapping"], dict) and "name" not in document["mapping"]
    return read_mapping(document["mapping"] if only else document, str(path))


# ---- relab.toml and the cache


def read_toml(root: Path) -> Document:
    """relab.toml of the folder that is read; empty where there is none."""
    path = inside(root, FILE)
    if not path.is_file():
        return {}
    try:
        return tomllib.loads(limits.read_text(path, limits.SETTINGS))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError, limits.TooLargeError) as error:
        raise ConfigError(f"{path} must be TOML, but {error}") from None


def of_folder(root: str | os.PathLike[str], of_user: Hints | None = None) -> Hints:
    """The hints that hold for a folder: those given, its relab.toml, the pattern of the last time."""
    folder = Path(root).parent if Path(root).is_file() else Path(root)
    hints, table = of_user or Hints(), read_toml(folder).get("mapping")
    if table is not None:
        hints = replace(hints, mapping=read_mapping(table, f"`mapping` of {folder / FILE}") | dict(hints.mapping))
    return hints if hints.group is not None else replace(hints, group=recall_group(root))


def cache_file(root: str | os.PathLike[str]) -> tuple[Path, str]:
    name = hashlib.sha256(os.fsencode(Path(root).resolve())).hexdigest()[:24]
    return cache_folder() / "groups", f"{name}.json"


def recall_group(root: str | os.PathLike[str]) -> Pattern | None:
    """The pattern that was last given for this folder; None where there was none, or none that can be read."""
    try:
        return Pattern.parse(str(read_json(*cache_file(root))["group"]))
    except (RecordError, ConfigError, OSError, KeyError):
        return None


def remember_group(root: str | os.PathLike[str], pattern: str) -> None:
    """Keep a pattern for the next time, an empty one forgets it; a cache that cannot be written is no error."""
    folder, name = cache_file(root)
    try:
        if not pattern:
            (folder / name).unlink(missing_ok=True)
            return
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(folder / name, encode({"schema": 1, "group": pattern}))
    except OSError:
        pass


def command_text(command: str) -> str:
    """A command line as typed, or the content of the file of that name."""
    path = Path(command)
    try:
        is_file = path.is_file()
    except (OSError, ValueError):  # too long for a name
        is_file = False
    if not is_file:
        return command.strip()
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(LONGEST).strip()
