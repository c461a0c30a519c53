"""Which settings stand in the first lines of a log of JSON lines, before any step?

They are told by the name of a nested object (`{"config": {"lr": 3e-4}}`), by the kind of a line
(`{"type": "config", "lr": 3e-4}`), or by a first line that has settings and no step where the next has one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from typing import Any

from relab.base.documents import Document, Settings
from relab.config.views import flatten
from relab.formats.read import common
from relab.formats.read.table import RUN_KEYS
from relab.logger import KEYS, is_place, known_settings

FIRST = 4  # lines that may come before the first row: versions, settings, what was started
NESTED = ("config", "cfg", "conf", "configuration", "run_config", "args", "arguments", "hparams", "hps", "hyperparams",
          "hyperparameters", "hyper_parameters", "settings", "flags")  # fmt: skip
WITHOUT_STEP = ("params", "parameters", "options", "variant")  # groups of metrics as well, in a row that has a step
INSIDE = ("data", "payload", "value", "values", "content")  # of a line whose kind is said
KINDS = ("type", "event", "kind", "tag", "msg", "message", "record", "level")
STAMPS = ("ts", "timestamp", "wall_time", "walltime", "datetime")
MEASURED = ("return/", "eval/", "policy/", "value/", "model/")
Row = tuple[Document, int]  # and its line


def taken_out(rows: Iterable[Row]) -> tuple[Settings, Iterator[Row]]:
    """The settings, flat, and the rows without them."""
    rest = iter(rows)
    first = list(islice(rest, FIRST + 1))
    settings: Settings = {}
    kept: list[Row] = []
    for at, (row, line) in enumerate(first):
        following = first[at + 1][0] if at + 1 < len(first) else {}
        said, left = ({}, row) if kept else _careful(row, following)
        settings |= said
        if left:
            kept.append((left, line))
    return settings, chain(kept, rest)


def _careful(row: Document, following: Document) -> tuple[Settings, Document]:
    try:
        return _parted(row, following)
    except RecursionError:  # nested too deeply for settings
        return {}, row


def _parted(row: Document, following: Document) -> tuple[Settings, Document]:
    """What a line says of the run, and what remains of it as a row."""
    nested = [key for key in row if isinstance(row[key], Mapping) and _word(key) in NESTED]
    if _has_step(row, following):
        said = {key: value for name in nested for key, value in flatten(dict(row[name])).items()}
        return said, {key: value for key, value in row.items() if key not in nested}
    if not nested and not _is_kind(row) and not _is_settings(row, following):
        nested = [key for key in row if isinstance(row[key], Mapping) and _word(key) in WITHOUT_STEP]
        if not nested:
            return {}, row
    opened = [*nested, *(key for key in row if isinstance(row[key], Mapping) and _word(key) in INSIDE)]
    flat = {key: value for key, value in row.items() if key not in opened and not _is_label(key, value)}
    return flatten(flat) | {key: value for name in opened for key, value in flatten(dict(row[name])).items()}, {}


def _word(key: str) -> str:
    return common.plain(key).strip("_")


def _has_step(row: Document, following: Document) -> bool:
    """Whether a line is a row of measurements: with a step that the next has too, or any where there is no next."""
    steps = [key for key in row if common.step_axis(key) and isinstance(row[key], (int, float))]
    return any(key in following or (not following and key not in KEYS) for key in steps)


def _is_kind(row: Document) -> bool:
    """Whether a line says of itself that it holds settings."""
    said = [_word(row[key]) for key in row if _word(key) in KINDS and isinstance(row[key], str)]
    return any(word in (*NESTED, *WITHOUT_STEP) for word in said)


def _is_settings(row: Document, following: Document) -> bool:
    """Whether a line that names no kind has settings, nothing that is measured, and the next has a step."""
    flat = flatten(row)
    known = known_settings(flat)
    others = [key for key in flat if key not in known]
    measured = any((common.meaning(key) or "").startswith(MEASURED) for key in others)
    shared = any(key in following and not _is_label(key, flat[key]) for key in others)
    return bool(known) and not measured and not shared and any(common.step_axis(key) for key in following)


def _is_label(key: str, value: Any) -> bool:
    """Whether a part of a line tells which line it is, or which run it belongs to."""
    names = _word(key) in (*RUN_KEYS, *STAMPS) or is_place(_word(key))
    return names or (_word(key) in KINDS and isinstance(value, str))
