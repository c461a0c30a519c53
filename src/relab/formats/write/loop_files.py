"""A run as the folder of a loop that writes its own next config: what was asked for, what changed, what it came to.

RUN/run.json, config.json, override.json, config_diff.json, trainer_summary.json, summary.json, notes.txt: the files
that relab.formats.read.loop_folder reads. They hold the last value of each metric, not the curve. With `--names
original` settings and metrics are called what the tool that made the run called them.
"""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base import limits, masks
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, inside, plain
from relab.base.numbers import is_number
from relab.config.views import diff, flatten
from relab.config.yaml_io import YamlError, read_yaml
from relab.formats.read.find import Loaded
from relab.formats.write.naming import named, settings_of
from relab.record.history import History, load
from relab.record.state import seed_of, steps_of

# What the files of such a loop call what relab measures; the first that a run has is written.
CALLED = {
    "success_rate": ("eval/success_det", "return/success"),
    "mean_reward": ("eval/return_det", "return/mean_100", "return/mean"),
    "episode_length": ("eval/length_det", "return/length"),
    "sps": ("time/sps_mean", "time/sps"),
}
SUMMED = "summary/"  # how the reader calls the numbers of a summary


def write(run: Loaded, folder: Path, style: str) -> None:
    """One folder; the source's own notes go along, else those of the loop that made the run."""
    history, name = run.history, folder.name
    folder.mkdir(parents=True)
    settings = masks.masked({key: _plain(value) for key, value in settings_of(history, style).items()})
    changed = masks.masked(changes(history))
    numbers = metrics(history, style)
    when = str(history.meta.get("ended") or history.meta.get("heartbeat") or history.meta.get("created") or "")
    trainer = {"timestamp": when, "run_id": name, **_sections(settings), "metrics": numbers}
    said = {key: numbers.get(key) for key in CALLED}
    files: dict[str, Document] = {
        "run.json": {"run_id": name, "created_at": str(history.meta.get("created") or ""), "metadata": _about(history)},
        "config.json": nested(settings),
        "override.json": nested(masks.masked(override(history, changed))),
        "config_diff.json": nested(changed),
        "trainer_summary.json": trainer,
        "summary.json": {"run_id": name, "timestamp": when, "seed": seed_of(history, run.name), **said, "artifacts": [],
                         "config_diff": _text(nested(changed)), "trainer_summary": trainer, **_resumed(history)},
    }  # fmt: skip
    for file, body in files.items():
        (folder / file).write_text(_text(plain(body)) + "\n", encoding="utf-8")
    notes = notes_of(history)
    if notes:
        (folder / "notes.txt").write_text(masks.mask(notes), encoding="utf-8")


def _text(body: Any) -> str:
    return json.dumps(body, indent=2, ensure_ascii=False)


def _plain(value: Any) -> Any:
    return value if not isinstance(value, float) or math.isfinite(value) else str(value)


def _about(history: History) -> Document:
    parent = history.meta.get("parent") or proposal_of(history).get("parent")
    facts = {"parent_run": parent if isinstance(parent, str) else None, "intent": history.meta.get("intent")}
    return {key: value for key, value in masks.masked(facts).items() if value}


def _resumed(history: History) -> Document:
    start = flatten(history.config).get("start_from") or history.meta.get("resumed")
    return {
        "resume_mode": "continue" if start else "fresh",
        "resume_from": masks.masked({"x": start})["x"] if start else None,
    }


def _sections(settings: Settings) -> Document:
    """The settings by their sections, as a trainer's summary repeats them."""
    return {key: value for key, value in nested(settings).items() if isinstance(value, dict)}


# ---- What changed


def override(history: History, changed: Mapping[str, Mapping[str, Any]]) -> Settings:
    """What was asked for: as the run's own files said it, which may be less than what changed."""
    own = history.meta.get("override")
    return dict(own) if isinstance(own, dict) else {key: each["new"] for key, each in changed.items()}


def changes(history: History) -> dict[str, dict[str, Any]]:
    """Key -> {old, new}: as the run's proposal or its own record says; else against its parent, where that lies beside.

    Places that a run loads weights from are no settings, and are left out.
    """
    known = proposal_of(history).get("diff", history.meta.get("changed"))
    if isinstance(known, dict):
        pairs = {str(key): each for key, each in known.items() if isinstance(each, Mapping)}
        return {key: {"old": each.get("from"), "new": each.get("to")} for key, each in pairs.items()}
    parent = history.meta.get("parent")
    if not isinstance(parent, str) or not history.trained_by_relab:
        return {}
    try:
        beside = load(inside(history.folder.parent, parent))
    except (RecordError, OSError, ValueError):
        return {}
    return {
        c.key: {"old": _missing(c.a), "new": _missing(c.b)}
        for c in diff(beside.config, history.config)
        if c.key != "seed"
    }


def proposal_of(history: History) -> Document:
    """What the run was proposed as: by its own record, else by the file of the loop that called a program for it."""
    own = history.meta.get("proposal")
    if isinstance(own, dict):
        return own
    path = _of_loop(history, "proposals", "yaml")
    try:
        read = read_yaml(path) if path is not None else {}
    except (RecordError, YamlError, OSError):
        return {}
    return read if isinstance(read, dict) else {}


def _of_loop(history: History, part: str, ending: str) -> Path | None:
    """A file of the loop about a run's config: loops/NAME/notes/p003.txt of runs/p003-s3000."""
    config = history.folder.name.rpartition("-s")[0]
    try:
        path = inside(history.folder.parent.parent, f"{part}/{config}.{ending}") if config else None
    except (RecordError, OSError):
        return None
    return path if path is not None and path.is_file() else None


def _missing(value: Any) -> Any:
    return value if isinstance(value, (int, float, str, bool, list, dict)) else None


def nested(flat: Mapping[str, Any]) -> Document:
    """Dotted keys as a tree; a key that is a value and a section at once stays dotted.

    >>> nested({"train.lr": 0.1, "seed": 3})
    {'train': {'lr': 0.1}, 'seed': 3}
    """
    tree: Document = {}
    for key, value in flat.items():
        *path, last = key.split(".")
        place: Any = tree
        for part in path:
            place = place.setdefault(part, {}) if isinstance(place, dict) else None
        if isinstance(place, dict) and last not in place:
            place[last] = value
        else:
            tree[key] = value
    return tree


# ---- What it came to


def metrics(history: History, style: str) -> Document:
    """The last value of every metric, under the names of such loops where they have one."""
    last = {each.name: _last(each.column.values) for each in named(history, style)}
    last = {name.removeprefix(SUMMED): value for name, value in last.items() if value is not None}
    ours = {name: _last(column.values) for name, column in history.columns.items()}
    words = {
        word: next((ours[name] for name in names if ours.get(name) is not None), None) for word, names in CALLED.items()
    }
    known = {word: value for word, value in words.items() if value is not None and word not in last}
    return {**known, **last, "agent_steps": int(steps_of(history))}


def _last(values: Any) -> float | None:
    return float(values[-1]) if len(values) and is_number(float(values[-1])) else None


def notes_of(history: History) -> str:
    """The run's own notes; else the write-up of the loop that made it."""
    own = history.meta.get("notes")
    if isinstance(own, str) and own:
        return own
    path = _of_loop(history, "notes", "txt")
    if path is not None:
        with contextlib.suppress(RecordError, OSError):
            return limits.read_bytes(path, limits.JSON).decode(errors="replace")
    intent = history.meta.get("intent")
    return f"{intent}\n" if isinstance(intent, str) and intent else ""
