"""Records that were never trained, for tests that need numbers known beforehand."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from relab.base.jsonl import encode, read_json, write_atomic
from relab.config import layers
from relab.config.layers import Layer
from relab.lab import experiment
from relab.record.run_folder import Record

WHEN = "2026-11-16T03:00:00.000Z"


def settings(**changes: Any) -> dict[str, Any]:
    """A resolved config of PPO on CartPole; keys are written algo__lr for algo.lr."""
    typed = {"env": "cartpole", "total_steps": 2048, **{k.replace("__", "."): v for k, v in changes.items()}}
    return layers.to_dict(layers.resolve([Layer("made up", typed)]).config)


def run(folder: Path, value: float | Sequence[float], meta: Mapping[str, Any] | None = None, **changes: Any) -> Path:
    """A finished run whose last evaluation (three episodes) is `value`, or those values."""
    values = settings(**changes)
    facts = {"seed": values["seed"], "id": f"{zlib.crc32(folder.name.encode()):012x}", **(meta or {})}
    record = Record.create(folder, values, {}, facts)
    returns = list(value) if isinstance(value, Sequence) else [value] * 3
    for step, rows in ((0, [10.0] * 3), (2048, returns)):
        episodes = [{"seed": i, "return": x, "length": 1, "success": None, "end": "done"} for i, x in enumerate(rows)]
        record.append_eval({"step": step, "mode": "det", "noise": 0.0, "episodes": episodes})
    record.update_meta(**{"status": "finished", **(meta or {})})
    record.close()
    dated(folder)
    return folder


def dated(folder: Path) -> None:
    """The run was alive last on a day that entries can be held to; a record itself always writes the time it is."""
    meta = read_json(folder, "meta.json")
    write_atomic(folder / "meta.json", encode(meta | {"created": WHEN, "heartbeat": WHEN}, indent=True))


def question(folder: Path, text: str) -> Path:
    """An experiment's file."""
    path = folder / "question.yaml"
    path.write_text(text)
    return path


def cell(cell: experiment.Cell, value: float) -> None:
    """A finished run of an experiment that was evaluated once."""
    record = Record.create(cell.folder, {"env": {"name": "none"}, "seed": cell.seed}, {}, {"seed": cell.seed})
    episode = {"seed": 1, "return": value, "length": 1, "success": None, "end": "done"}
    record.append_eval({"step": 0, "mode": "det", "noise": 0.0, "episodes": [episode]})
    record.update_meta(status="finished")
    record.close()


def proposal(diff: Mapping[str, Any], delta: float | None, low: float | None, high: float | None) -> dict[str, Any]:
    """What `relab train next_config.yaml` keeps in a run's meta."""
    predicted = {"metric": "eval/return_det", "delta": delta, "low": low, "high": high, "how": "test"}
    return {"diff": dict(diff), "predicted": predicted, "rationale": "because"}


ASKED = """
question: {question}
smallest_effect: 5
base: {{env: cartpole, total_steps: 2048}}
variants: {variants}
seeds: {seeds}
"""


def answered(
    root: Path, name: str, variants: str, values: Sequence[float], seeds: int = 5, question: str = "Does it help?"
) -> Path:
    """A finished experiment: seed s of variant i came to values[i] + s."""
    path = root / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(ASKED.format(question=question, variants=variants, seeds=seeds), encoding="utf-8")
    plan = experiment.load(path)
    cells = experiment.prepare(plan, root / name)
    level = dict(zip(plan.variants, values, strict=True))
    for cell in cells:
        if not cell.folder.exists():
            keys = {key.replace(".", "__"): v for key, v in plan.variants[cell.variant].items()}
            run(cell.folder, level[cell.variant] + cell.seed, seed=cell.seed, **keys)
    experiment.conclude(plan, root / name, cells)
    path.unlink()
    return root / name
