"""How are a study's runs made? In this process, one after another, resumable; threads do not change their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base.documents import Settings
from relab.comparison import answer
from relab.config import layers
from relab.lab import experiment
from relab.lab.experiment import Cell
from relab.lab.studies import Say, making
from relab.record import history

HERE = Path(__file__).parent


def one(folder: Path, settings: Mapping[str, Any], intent: str) -> history.History:
    """Train a run, or go on with it, or read it where it is finished."""
    return making.one(folder, settings, intent, "torus")


def run_experiment(
    name: str, folder: Path, say: Say, fresh: bool = False
) -> tuple[dict[str, list[history.History]], list[answer.Answer]]:
    """All runs of an experiment that ships with the study, and its answers; `fresh`: on seeds that had no part in the
    first ones."""
    declared = experiment.load(HERE / f"{name}.yaml")
    question = experiment.fresh(declared) if fresh else declared
    cells = experiment.prepare(question, folder)
    for k, cell in enumerate(cells):
        say(f"  {k + 1} of {len(cells)}: {cell.folder.name}")
        one(cell.folder, settings_of(cell, folder), question.question)
    return experiment.histories(cells), experiment.conclude(question, folder, cells)


def settings_of(cell: Cell, folder: Path) -> Settings:
    return layers.flatten(layers.read_yaml(folder / "variants" / f"{cell.variant}.yaml")) | {"seed": cell.seed}
