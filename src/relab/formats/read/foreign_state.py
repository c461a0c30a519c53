"""What does an experiment know of a foreign run that its own files may not say? Seed, settings, command, how it ended.

An experiment keeps experiments/ID/state/NAME.json beside experiments/ID/runs/NAME, the folder that the foreign program
writes into. It is found from there, so that every reading command sees the same facts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypedDict, cast

from relab.base.documents import Settings
from relab.base.enclosed import own
from relab.base.jsonl import RecordError, read_json
from relab.config.views import config_hash
from relab.record.history import History

KIND = "run of a foreign command"
DEPTH = 7  # folders that a program may nest its log in
MOST = 1_000_000  # bytes
FACTS = ("variant", "exit_code", "created", "ended", "seconds")


class State(TypedDict, total=False):
    """state/NAME.json: what the experiment wrote down when it started a run, and when that ended."""

    schema: int
    kind: str
    question: str
    variant: str
    seed: int | None
    settings: Settings
    command: list[str]
    shown: str  # the command with secrets masked
    created: str
    tries: int
    pid: int
    birth: str | None
    exit_code: int | None
    ended: str
    seconds: float
    stopped: bool
    problem: str


def state_path(folder: Path) -> Path:
    """experiments/ID/runs/NAME -> experiments/ID/state/NAME.json"""
    return folder.parent.parent / "state" / f"{folder.name}.json"


def read_state(folder: Path) -> State:
    """What was kept of the run in this folder; empty where nothing was, or nothing that can be read."""
    try:
        path = own(folder.parent.parent, f"state/{folder.name}.json")
        if not path.is_file() or path.stat().st_size > MOST:
            return {}
        state = read_json(path.parent, path.name)
    except (RecordError, OSError):
        return {}
    return cast(State, state) if state.get("kind") == KIND else {}


def of(path: Path) -> State:
    """The state of the experiment's run that a log lies in; empty for all other logs."""
    folder = _run_of(path)
    return read_state(folder) if folder else {}


def place_of(path: Path) -> Path | None:
    """Where that state is kept; None for logs that lie in no folder of runs."""
    folder = _run_of(path)
    return state_path(folder) if folder else None


def _run_of(path: Path) -> Path | None:
    path = Path(os.path.abspath(path))  # `.` has no parents
    return next((folder for folder in [path, *path.parents][:DEPTH] if folder.parent.name == "runs"), None)


def add(history: History, path: Path) -> History:
    """The experiment's facts into a history that was read from `path`."""
    state = of(path)
    if not state:
        return history
    settings = {key: value for key, value in (state.get("settings") or {}).items() if key != "seed"}
    kept: Mapping[str, object] = state
    facts = {key: kept[key] for key in FACTS if kept.get(key) is not None}
    logged = history.config.get("seed", history.meta.get("seed"))
    ended = "failed" if history.meta.get("status") == "failed" else status(state)  # a program may end well all the same
    history.meta |= {**facts, "logged_seed": logged, "seed": state.get("seed"), "status": ended,
                     "command": state.get("shown"), "intent": state.get("question")}  # fmt: skip
    if history.source != "relab":
        history.config = {**history.config, "seed": state.get("seed"), "foreign": _foreign(history) | settings}
        history.meta["config_hash"] = config_hash({"variant": state.get("variant"), **settings})
    return history


def _foreign(history: History) -> Settings:
    foreign = history.config.get("foreign")
    return dict(foreign) if isinstance(foreign, dict) else {}


def status(state: State) -> str:
    """finished: it ended by itself with exit code 0 and left one run that can be read."""
    code = state.get("exit_code")
    if code is None or state.get("stopped"):
        return "interrupted" if state.get("stopped") else "running"
    return "finished" if code == 0 and not state.get("problem") else "failed"
