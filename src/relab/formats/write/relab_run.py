"""A run as relab's own folder: reads back to the same columns, evaluations, events, settings and facts.

Nothing in it depends on the clock of the conversion. meta.json says under `converted` where it came from: readers go
on treating it as a run of that tool, whose settings relab cannot train again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from relab.base import masks
from relab.base.documents import Document
from relab.base.jsonl import encode
from relab.config.yaml_io import format_yaml
from relab.formats.read.find import Loaded
from relab.formats.write.rows import rows_of
from relab.record import names
from relab.record.history import History, add_evals
from relab.record.run_folder import SCHEMA, plain_config
from relab.record.state import group_key, seed_of

MOST_SAID = 100  # remarks of the reader that are kept


def write(run: Loaded, folder: Path, style: str) -> None:
    """One run folder; `style` is not asked, because the record has relab's names."""
    history = run.history
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_bytes(format_yaml(plain_config(history.config)).encode())
    (folder / "provenance.json").write_bytes(encode(history.provenance, indent=True))
    (folder / "meta.json").write_bytes(encode(masks.of_meta(meta_of(run)), indent=True))
    implied_columns = implied(history)
    kept = [name for name in history.columns if name not in implied_columns]
    timing = [name for name in kept if name.startswith("time/")]
    _rows(folder / "metrics.jsonl", _metrics(history, [name for name in kept if name not in timing]))
    _rows(folder / "timing.jsonl", _metrics(history, timing))
    _rows(folder / "evals.jsonl", _with_axis(history, implied_columns))
    _rows(folder / "probes.jsonl", history.probes)
    _rows(folder / "events.jsonl", (masks.masked(row) for row in history.events))


def _rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with open(path, "xb") as file:
        file.writelines(encode(row) for row in rows)


def _metrics(history: History, columns: list[str]) -> Iterable[Document]:
    for step, axis, values in rows_of(history, columns):
        yield {"step": step, "axis": axis, **values}


def implied(history: History) -> dict[str, str]:
    """Columns that a reader makes of the evaluations by itself -> their axis."""
    alone = History(history.folder, evals=history.evals)
    add_evals(alone)
    same = [n for n, c in alone.columns.items() if n in history.columns and _equal(c, history.columns[n])]
    return {name: history.axes[name] for name in same}


def _equal(a: Any, b: Any) -> bool:
    return np.array_equal(a.steps, b.steps) and np.array_equal(a.values, b.values, equal_nan=True)


def _with_axis(history: History, implied_columns: Mapping[str, str]) -> Iterable[Document]:
    axis = next(iter(implied_columns.values()), "agent_steps")
    for row in history.evals:
        yield row if axis == "agent_steps" or "axis" in row else {**row, "axis": axis}


def meta_of(run: Loaded) -> Document:
    """What the run says of itself, and what relab's readers ask of a record."""
    history = run.history
    said = {"schema": SCHEMA, "name": run.name, "status": "ended", "config_hash": group_key(history, run.name)}
    seed = seed_of(history, run.name)
    if history.source == "relab" and "converted" not in history.meta:
        return said | history.meta
    own = {"id": named_id(run), **({"seed": seed} if seed is not None else {})}
    return said | own | history.meta | {"converted": history.meta.get("converted", _origin(run))}


def named_id(run: Loaded) -> str:
    """An id as `names.new_id` makes it, but always the same for the same run."""
    whole = hashlib.sha256(f"{run.history.source}\n{run.name}".encode("utf-8", "replace")).hexdigest()
    return whole[: len(names.new_id())]


def _origin(run: Loaded) -> Document:
    history = run.history
    said = [f"{p.file}{f' line {p.line}' if p.line else ''}: {p.message}" for p in history.problems]
    return {"format": history.source, "mapping": history.mapping, "factors": history.factors, "keys": history.keys,
            "problems": said[:MOST_SAID]}  # fmt: skip
