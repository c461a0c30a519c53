"""Which settings lie beside a metric file? Config files by their usual names, Hydra's among them, as relab's keys."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, check_regular, inside, revive
from relab.base.numbers import integer
from relab.config.base import ConfigError
from relab.config.views import flatten
from relab.config.yaml_io import parse_yaml
from relab.formats.read.source import Source, problem, set_config
from relab.logger import is_place, known_settings
from relab.record.history import History
from relab.record.state import name_key

MAX_BYTES = limits.SETTINGS
FILES = ("config.json", "config.yaml", "config.yml", "params.json", "hparams.yaml", "hparams.json",
         "hyperparameters.json", "args.json", "args.yaml", "flags.json", "variant.json",
         ".hydra/config.yaml", "params/agent.yaml")  # fmt: skip


def read_settings(path: Path) -> Document:
    """A JSON or YAML file as a mapping; an error says what is wrong with it."""
    check_regular(path)
    data = limits.read_bytes(path, MAX_BYTES)
    if path.suffix == ".json":
        return parse_json(data, path.name)
    return parse_yaml(data.decode("utf-8-sig", errors="strict"), path.name)


def parse_json(data: bytes, name: str) -> Document:
    """A JSON object; NaN without quotes, as Python writes it, is read as well."""
    try:
        value = revive(orjson.loads(data))
    except RecursionError:
        raise RecordError(f"{name} must hold JSON, but is nested too deeply") from None
    except orjson.JSONDecodeError:
        try:
            value = json.loads(data, parse_int=integer)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{name} must hold JSON, but {error}") from None
    if not isinstance(value, dict):
        raise RecordError(f"{name} must hold a JSON object, but holds a {type(value).__name__}")
    return value


def beside(history: History, source: Source, extra: Iterable[str] = ()) -> Settings:
    """The first config file beside a run that can be read, flat; those that cannot are reported."""
    own = [f"{source.files[0].stem}{end}" for end in (".json", ".yaml", ".yml")] if len(source.files) == 1 else []
    return first_of(history, source, (*own, *extra, *FILES))


def first_of(history: History, source: Source, names: Iterable[str] = FILES) -> Settings:
    """The first of these files that can be read, flat."""
    for name in names:
        if not os.path.lexists(source.folder / name):
            continue
        try:
            path = inside(source.folder, name)
            if path.is_file():
                return flatten(read_settings(path))
        except (RecordError, ConfigError, OSError, UnicodeDecodeError, RecursionError) as error:
            problem(history, name, str(error), getattr(error, "line", None))
    return {}


def use(history: History, source: Source, flat: Mapping[str, Any], facts: Mapping[str, Any] | None = None) -> None:
    """Set config, seed and spec from flat settings, and from what the rows themselves say about the run."""
    places = {key: value for key, value in flat.items() if is_place(key)}
    kept = {key: value for key, value in flat.items() if key not in places}
    said = {**kept, **(facts or {})}
    set_config(history, said, known_settings(said))
    if places:
        history.meta["places"] = places
    name_parts(history)
    group_by_name(history, source, kept)


def group_by_name(history: History, source: Source, settings: Collection[str]) -> None:
    """What a few columns say is no config: without one, runs belong together by their names."""
    if not settings:
        history.meta["config_hash"] = name_key(source.name, source.path)


def name_parts(history: History) -> None:
    """Seed and environment also where relab's own runs have them; a nested copy of the seed is no setting."""
    seed = history.config.get("seed")
    if isinstance(seed, int) and not isinstance(seed, bool):
        history.meta["seed"] = seed
        foreign = history.config.get("foreign", {})
        for key in [k for k, v in foreign.items() if k.rpartition(".")[2].lower() == "seed" and v == seed]:
            del foreign[key]
    env = history.config.get("env")
    name = env.get("name") if isinstance(env, dict) else None
    if isinstance(name, str) and name:
        history.meta.setdefault("spec", {})["env"] = name
    algo = history.config.get("algo")
    if isinstance(algo, dict) and isinstance(algo.get("name"), str):
        algo["name"] = algo["name"].lower()
