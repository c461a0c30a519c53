"""How does a study get done? Step by step; what is finished is kept, and called again it goes on with the rest."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from relab.base.jsonl import decode, encode, write_atomic
from relab.lab.studies import Say, Step
from relab.record import provenance


def kept(root: Path, step: Step) -> dict[str, Any] | None:
    """What a finished step found: {"found", "seconds", "commit"}; None where it is not done."""
    path = root / f"{step.name}.json"
    return decode(path.read_bytes()) if path.is_file() else None


def missing(root: Path, steps: list[Step]) -> list[Step]:
    return [step for step in steps if kept(root, step) is None]


def run(root: Path, steps: list[Step], workers: int, say: Say) -> None:
    """Do what is missing. Raises studies.Interrupted where somebody asked to stop."""
    root.mkdir(parents=True, exist_ok=True)
    commit = provenance.start(Path(__file__).parent).collect()["commit"]
    for step in missing(root, steps):
        say(f"{step.name}: {step.what}")
        began = time.monotonic()
        numbers = step.run(root / step.name, workers, say)
        row = {"found": numbers, "seconds": time.monotonic() - began, "commit": commit}
        write_atomic(root / f"{step.name}.json", encode(row, indent=True))


def results(root: Path, steps: list[Step]) -> dict[str, dict[str, Any]]:
    """Step -> what is kept of it, for those that are done."""
    return {step.name: row for step in steps if (row := kept(root, step)) is not None}
