"""The file that PufferLib writes at the end of a run: its arguments, some values per metric; JSON (4.0) or INI (5.0).

Both are called logs/ENV/RUN with a number of milliseconds for the run. Training is cut into as many parts as
`sweep.downsample` says less one (4): each value is the mean over a part, also of the steps. The last value is what was
logged last; below env/ it is what PufferLib measured after training, with the policy as it was then. Losses have
other names in the compiled trainer than in the one of PyTorch (`--slowly`); the files of 5.0 hold none. Where 5.0 was
asked for W&B, every row of the log is in a file of JSON lines beside, and that is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.numbers import MAX_STEP, integer
from relab.config.views import flatten
from relab.formats.read import common, jsonl_file, settings_files, table
from relab.formats.read.source import Listing, Names, Source, name_table, problem, put, remark
from relab.record.history import History

MAX_BYTES = 1 << 27
STEPS = ("agent_steps", "global_step", "steps")
INI = b"# PufferLib log"
NAMES: Names = name_table("""
return/mean              | env/episode_return
return/length            | env/episode_length
policy/loss              | loss/policy, loss/policy_loss
value/loss               | loss/value, loss/value_loss
policy/entropy           | loss/entropy
policy/kl                | loss/kl, loss/approx_kl
policy/kl_k1             | loss/old_kl, loss/old_approx_kl
policy/clip_share        | loss/clipfrac
value/explained_variance | loss/explained_variance
time/sps                 | SPS
time/elapsed_s           | uptime
data/iteration           | epoch
""")


def sources(listing: Listing) -> list[Source]:
    """JSON files that hold metrics as lists, INI files that say what they are, these with the rows beside them."""
    json_files = [name for name in listing.ending(".json") if _is_run(listing, name)]
    ini_files = [name for name in listing.ending(".ini") if listing.start_of(name, len(INI)) == INI]
    runs = []
    for name in json_files + ini_files:
        rows = name.removesuffix(".ini") + ".jsonl"
        mine = (name, rows) if rows in listing.files else (name,)
        runs.append(Source("pufferlib", listing.folder / name, tuple(listing.folder / file for file in mine)))
    return runs


def _is_run(listing: Listing, name: str) -> bool:
    """By its first bytes, and its last where the arguments fill the first."""
    start = listing.start_of(name, 1 << 15)
    if b"{" not in start[:64] or b'"env_name"' not in start:
        return False
    return b'"metrics"' in start or b'"metrics"' in listing.start_of(name, 1 << 20)


def read(history: History, source: Source, file: Path) -> History:
    data = limits.read_bytes(file, MAX_BYTES)
    ini = file.suffix == ".ini"
    flat, metrics = parse_ini(data.decode("utf-8", "replace")) if ini else parse_json(data, file.name)
    for rows in source.files[1:]:
        table.fill(history, jsonl_file.load(rows), NAMES)
    if not history.columns:
        _columns(history, file, metrics)
    settings_files.use(history, source, _whole_plan(flat))
    return history


def parse_json(data: bytes, name: str) -> tuple[Settings, Mapping[str, Any]]:
    """(the arguments, flat; the metrics): one object, in which the metrics stand beside the arguments."""
    content = settings_files.parse_json(data, name)
    metrics = content.pop("metrics", None)
    return flatten(content.pop("args", content)), metrics if isinstance(metrics, Mapping) else {}


def parse_ini(text: str) -> tuple[Settings, Mapping[str, Any]]:
    """The same of an INI file; keys of the section `base` stand alone, as those of the JSON do.

    >>> parse_ini("[base]\\nseed = 7\\n[train]\\ngamma = 0.9\\n[metrics]\\nSPS = 1,2.5\\n")
    ({'seed': 7, 'train.gamma': 0.9}, {'SPS': [1, 2.5]})
    """
    flat: Settings = {}
    metrics: Document = {}
    section = ""
    for line in text.splitlines():
        key, equals, value = line.partition("=")
        key, value = key.strip(), value.strip()
        if line.startswith("[") and line.rstrip().endswith("]"):
            section = line.rstrip()[1:-1]
        elif equals and key and not key.startswith("#"):
            if section == "metrics":
                metrics[key] = [_number(part) for part in value.split(",")]
            else:
                flat[key if section in ("", "base") else f"{section}.{key}"] = _number(value)
    return flat, metrics


def _number(text: str) -> int | float | str:
    for kind in (integer, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _whole_plan(flat: Mapping[str, Any]) -> Mapping[str, Any]:
    """4.0 notes the steps of one GPU as the plan, but counts the steps of all."""
    steps, parts = flat.get("train.total_timesteps"), flat.get("world_size")
    if isinstance(steps, int) and isinstance(parts, int) and 1 < parts < 1 << 20:
        return {**flat, "train.total_timesteps": steps * parts}
    return flat


def _columns(history: History, file: Path, metrics: Mapping[str, Any]) -> None:
    lists = {name: _floats(values) for name, values in metrics.items()}
    wrong = [name for name, values in lists.items() if values is None]
    if wrong:
        problem(history, file, f"{len(wrong)} metrics, `{wrong[0]}` first, are no list of numbers")
    steps = next((lists[name] for name in STEPS if lists.get(name) is not None), None)
    for name, values in lists.items():
        if values is not None and name not in STEPS:
            _column(history, file, name, values, steps)
    if not lists:
        problem(history, file, "no metrics are in it; PufferLib writes them when a run has ended")
        return
    history.meta["status"] = "finished"  # the file is written when it is
    if steps is None:
        remark(history, file, f"no metric counts the steps ({', '.join(STEPS)}): values are numbered from 1")
    else:
        history.meta["read_from"] = f"{len(steps)} values per metric: means over parts of the run, then the last one"


def _column(history: History, file: Path, name: str, values: np.ndarray, steps: np.ndarray | None) -> None:
    if steps is None or len(steps) != len(values) or not (np.abs(steps) < MAX_STEP).all():
        at, axis = np.arange(1, len(values) + 1), "iteration"
    else:
        at, axis = steps.astype(np.int64), "agent_steps"
    order, said = common.in_order(at)
    put(history, name, at[order], values[order], axis, NAMES)
    if said and said not in {earlier.message for earlier in history.problems}:
        remark(history, file, said)


def _floats(values: Any) -> np.ndarray | None:
    try:
        numbers = np.array([np.nan if v is None else v for v in values], np.float64)
    except (TypeError, ValueError, OverflowError):
        return None
    return numbers if numbers.ndim == 1 else None
