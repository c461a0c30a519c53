"""Runs as an MLflow file store: mlruns/EXPERIMENT/RUN/ with metrics, params and tags as small files.

MLflow reads it with MLFLOW_TRACKING_URI=file:DIR/mlruns. Lines are `milliseconds value step`; NaN and the infinities
are written as Python prints them, which MLflow reads back.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from relab.base.documents import Document
from relab.config.yaml_io import format_yaml
from relab.formats.read.find import Loaded
from relab.formats.write.naming import Clock, cut, named, seconds_of, settings_of

STORE, EXPERIMENT, NAME = "mlruns", "1", "relab"
STATUS = {"running": 1, "finished": 3, "failed": 4, "interrupted": 5}
LONGEST_KEY, LONGEST_VALUE = 250, 6000  # what MLflow takes
LONGEST_PART = 200  # of a file's name


def write(run: Loaded, folder: Path, style: str) -> None:
    history, clock = run.history, Clock(run.history)
    store = folder.parent / STORE / EXPERIMENT
    run_id = hashlib.sha256(folder.name.encode()).hexdigest()[:32]
    place = store / run_id
    for part in ("metrics", "params", "tags", "artifacts"):
        (place / part).mkdir(parents=True)
    _experiment(store)
    (place / "meta.yaml").write_text(format_yaml(_about(run, folder.name, run_id, clock)), encoding="utf-8")
    metrics = {metric.name: metric for metric in named(history, style)}
    for key, name in keys_of(list(metrics)).items():
        column = metrics[name].column
        times = [int(wall * 1000) for wall in clock.at(column.steps, metrics[name].axis).tolist()]
        rows = zip(times, column.values.tolist(), column.steps.tolist(), strict=True)
        _file(place / "metrics" / key, "".join(f"{time} {value!r} {step}\n" for time, value, step in rows))
    settings = settings_of(history, style)
    for key, name in keys_of(list(settings)).items():
        _file(place / "params" / key, str(settings[name])[:LONGEST_VALUE])
    _file(place / "tags" / "mlflow.runName", folder.name)
    _file(place / "tags" / "relab.format", history.source)


def keys_of(names: list[str]) -> dict[str, str]:
    """Key in the store -> name: characters that MLflow takes, no path that leads out, no file where a folder must be.

    >>> keys_of(["a", "a/b", "../x", "µ", "?"])
    {'a_': 'a', 'a/b': 'a/b', '_/x': '../x', 'µ': 'µ', '__': '?'}
    """
    names_by_key: dict[str, str] = {}
    folders: set[str] = set()
    plain = {name: _key(name) for name in names}
    for key in plain.values():
        parts = key.split("/")
        folders |= {"/".join(parts[:n]).lower() for n in range(1, len(parts))}
    for name, key in plain.items():
        while key.lower() in folders or key in names_by_key:
            key += "_"
        names_by_key[key] = name
    return names_by_key


def _key(name: str) -> str:
    parts = [cut(re.sub(r"[^\w .:-]", "_", part), LONGEST_PART) for part in name.split("/")]
    parts = ["_" if not part.strip(". ") else part for part in parts]
    return "/".join(parts)[:LONGEST_KEY].rstrip("/") or "_"


def _file(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "x", encoding="utf-8", errors="replace", newline="") as file:
        file.write(content)


def _experiment(store: Path) -> None:
    if not (store / "meta.yaml").exists():
        about = {"artifact_location": f"{STORE}/{EXPERIMENT}", "creation_time": 0, "experiment_id": EXPERIMENT,
                 "last_update_time": 0, "lifecycle_stage": "active", "name": NAME}  # fmt: skip
        (store / "meta.yaml").write_text(format_yaml(about), encoding="utf-8")


def _about(run: Loaded, name: str, run_id: str, clock: Clock) -> Document:
    begin = int(clock.begin * 1000)
    ended = seconds_of(run.history.meta.get("ended"))
    status = STATUS.get(str(run.history.meta.get("status")), STATUS["finished"])
    return {
        "artifact_uri": f"{STORE}/{EXPERIMENT}/{run_id}/artifacts", "end_time": int(ended * 1000) if ended else begin,
        "entry_point_name": "", "experiment_id": EXPERIMENT, "lifecycle_stage": "active", "run_id": run_id,
        "run_name": name, "run_uuid": run_id, "source_name": "", "source_type": 4, "source_version": "",
        "start_time": begin, "status": status, "tags": [], "user_id": "unknown",
    }  # fmt: skip
