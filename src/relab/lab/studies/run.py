"""How does a study get done? Step by step; what is finished is kept, and called again it goes on with the rest."""

from __future__ import annotations

import time
from pathlib import Path

from relab.base.jsonl import decode, encode, write_atomic
from relab.lab.studies import Say, Step, StepResult
from relab.record import provenance


def kept(root: Path, step: Step) -> StepResult | None:
    """None where it is not done."""
    path = root / f"{step.name}.json"
    if not path.is_file():
        return None
    row = decode(path.read_bytes())
    return StepResult(row["found"], row["seconds"], row["commit"])


def missing(root: Path, steps: list[Step]) -> list[Step]:
    return [step for step in steps if kept(root, step) is None]


def run(root: Path, steps: list[Step], workers: int, say: Say) -> None:
    """Do what is missing. Raises Interrupted where somebody asked to stop."""
    root.mkdir(parents=True, exist_ok=True)
    commit = provenance.start(Path(__file__).parent).collect()["commit"]
    for step in missing(root, steps):
        say(f"{step.name}: {step.what}")
        began = time.monotonic()
        numbers = step.run(root / step.name, workers, say)
        result = StepResult(numbers, time.monotonic() - began, commit)
        write_atomic(root / f"{step.name}.json", encode(result.to_json(), indent=True))


def results(root: Path, steps: list[Step]) -> dict[str, StepResult]:
    """Step -> what is kept of it, for those that are done."""
    return {step.name: result for step in steps if (result := kept(root, step)) is not None}
