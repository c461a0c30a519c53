"""PufferLib 4.0: one JSON file a run, its arguments and a list of values per metric."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relab.configs.views import flatten
from relab.history import MAX_STEP, History
from relab.importers import common, settings_files
from relab.importers.source import Listing, Names, Source, problem, put
from relab.jsonl import RecordError

MAX_BYTES = 1 << 27
STEPS = ("agent_steps", "global_step", "steps")
NAMES: Names = {
    "env/episode_return": ("return/mean", 1),
    "env/episode_length": ("return/length", 1),
    "loss/policy_loss": ("policy/loss", 1),
    "loss/value_loss": ("value/loss", 1),
    "loss/entropy": ("policy/entropy", 1),
    "loss/approx_kl": ("policy/kl", 1),
    "loss/old_approx_kl": ("policy/kl_k1", 1),
    "loss/clipfrac": ("policy/clip_share", 1),
    "loss/explained_variance": ("value/explained_variance", 1),
    "SPS": ("time/sps", 1),
    "uptime": ("time/elapsed_s", 1),
    "epoch": ("data/iteration", 1),
}


def files(listing: Listing) -> list[Path]:
    """JSON files that hold metrics as lists, under PufferLib's groups."""
    names = [name for name in listing.ending(".json") if _is_run(listing, name)]
    return [listing.folder / name for name in names]


def _is_run(listing: Listing, name: str) -> bool:
    """By its first bytes, and its last where the arguments fill the first."""
    start = listing.start_of(name, 1 << 15)
    if b"{" not in start[:64] or b'"env_name"' not in start:
        return False
    return b'"metrics"' in start or b'"metrics"' in listing.start_of(name, 1 << 20)


def read(history: History, source: Source, file: Path) -> History:
    if file.stat().st_size > MAX_BYTES:
        raise RecordError(f"{file.name} has {file.stat().st_size} bytes; more than {MAX_BYTES} are not read")
    content = settings_files.parse_json(file.read_bytes(), file.name)
    metrics = content.pop("metrics", None)
    flat = flatten(content.pop("args", content))
    _columns(history, file, metrics if isinstance(metrics, Mapping) else {})
    settings_files.use(history, source, flat)
    return history


def _columns(history: History, file: Path, metrics: Mapping[str, Any]) -> None:
    lists = {name: _floats(values) for name, values in metrics.items()}
    wrong = [name for name, values in lists.items() if values is None]
    if wrong:
        problem(history, file, f"{len(wrong)} metrics, `{wrong[0]}` first, are no list of numbers")
    steps = next((lists[name] for name in STEPS if lists.get(name) is not None), None)
    for name, values in lists.items():
        if values is None or name in STEPS:
            continue
        known = steps is not None and len(steps) == len(values) and bool((np.abs(steps) < MAX_STEP).all())
        at = steps if known and steps is not None else np.arange(1, len(values) + 1)
        order, said = common.in_order(at.astype(np.int64))
        put(history, name, at.astype(np.int64)[order], values[order], "agent_steps" if known else "iteration", NAMES)
        if said and said not in {told.message for told in history.problems}:
            problem(history, file, said)
    if steps is None and lists:
        problem(history, file, f"no metric counts the steps ({', '.join(STEPS)}): values are numbered from 1")


def _floats(values: Any) -> np.ndarray | None:
    try:
        found = np.array([np.nan if v is None else v for v in values], np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return found if found.ndim == 1 else None
