"""Small run folders for the tests of the index and of `relab runs`: real records, without training."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from relab.base.jsonl import encode, read_json, write_atomic
from relab.config import layers
from relab.config.layers import Layer
from relab.record.run_folder import Record

LONG_AGO = 1_700_000_000


def make(folder: Path, returns: tuple[float, ...] = (10.0, 20.0), **words: str) -> Path:
    """A finished run; settings are written algo__lr for algo.lr."""
    typed = {"env": "cartpole", "seed": "0"} | {key.replace("__", "."): value for key, value in words.items()}
    resolved = layers.resolve([Layer("command line", typed)])
    settings = layers.to_dict(resolved.config)
    with Record.create(folder, settings, resolved.provenance, {"seed": settings["seed"]}) as record:
        for step, mode, shift in ((0, "det", -5), (2048, "det", 0), (2048, "sampled", 1)):
            episodes = [{"seed": i, "return": r + shift, "length": 9, "success": None, "end": "fell"}
                        for i, r in enumerate(returns)]  # fmt: skip
            record.append_eval({"step": step, "mode": mode, "noise": None, "episodes": episodes})
        record.update_meta(status="finished")
    return set_meta(folder)


def set_meta(folder: Path, **values: Any) -> Path:
    """Change entries of meta.json as they are, heartbeat and all, and let the folder look old."""
    write_atomic(folder / "meta.json", encode({**read_json(folder, "meta.json"), **values}, indent=True))
    os.utime(folder, (LONG_AGO, LONG_AGO))
    return folder


def checkpoints(folder: Path, steps: tuple[int, ...], best: int | None, last: int | None) -> None:
    root = folder / "checkpoints"
    for step in steps:
        (root / f"step-{step:012d}").mkdir(parents=True)
        (root / f"step-{step:012d}" / "weights.safetensors").write_bytes(b"w" * 1000)
    for name, step in (("best", best), ("latest", last)):
        if step is not None:
            (root / f"{name}.json").write_bytes(encode({"folder": f"step-{step:012d}", "step": step}))


def tree(root: Path) -> dict[str, str]:
    """Every file below with the hash of its bytes."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    return {path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}
