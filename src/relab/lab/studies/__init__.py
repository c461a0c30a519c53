"""Which studies are there, and what does each have to offer? Whole systems as configs, experiments and known answers.

A study is a module with

    SUMMARY: str                                       one line
    plan(full: bool) -> list[Step]                     what it does, in order, with the cost of each step
    page(results: dict[str, StepResult]) -> str        the results as Markdown; a step that is not done is not in it

A step is a function of its folder that returns plain values. They are kept as STEP.json beside the folder, so that a
study that was stopped goes on with what is missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relab.base.documents import Document
from relab.base.near import hint
from relab.config.base import require

STUDIES: dict[str, str] = {  # name -> module
    "dreamer": "relab.lab.studies.dreamer",
    "drones": "relab.lab.studies.drones",
    "fish": "relab.lab.studies.fish",
    "pickcube": "relab.lab.studies.pickcube",
    "torus": "relab.lab.studies.torus",
}
Say = Callable[[str], None]
Carry = Callable[[Path, int, Say], Document]


@dataclass(frozen=True)
class Step:
    """One part of a study."""

    name: str  # of its folder and of its results
    what: str  # what it shows, in a line
    seconds: float  # forecast for one core, as measured on the machine that docs/studies names
    run: Carry  # folder, runs at a time, who hears of progress -> plain values
    again: Carry | None = None  # of a question: the same on seeds that had no part in its answer


@dataclass(frozen=True)
class StepResult:
    """What is kept of a step that is done, as STEP.json."""

    numbers: Document  # plain values of the step's own; `found` in the file
    seconds: float
    commit: str | None

    def to_json(self) -> Document:
        return {"found": self.numbers, "seconds": self.seconds, "commit": self.commit}


def module(name: str) -> Any:
    """The study's module; it may be heavy."""
    known = sorted(STUDIES)
    require(bool(known), f"there is no study {name!r}: none is installed")
    require(name in STUDIES, f"there is no study {name!r}{hint(name, known, '; the nearest is {!r}')}")
    return importlib.import_module(STUDIES[name])
