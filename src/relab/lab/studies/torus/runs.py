"""How are a study's runs made? In this process, one after another, resumable; threads do not change their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab.base.interrupts import Interrupted
from relab.base.jsonl import RecordError
from relab.comparison import answer
from relab.config import layers
from relab.config.layers import Layer
from relab.lab import experiment
from relab.lab.experiment import Cell
from relab.lab.studies import Say
from relab.record import history, provenance
from relab.record.run_folder import read_meta
from relab.train import session

HERE = Path(__file__).parent


def status(folder: Path) -> str | None:
    try:
        return str(read_meta(folder).get("status"))
    except (RecordError, OSError):
        return None


def one(folder: Path, settings: Mapping[str, Any], intent: str) -> history.History:
    """Train a run, or go on with it, or read it where it is finished."""
    state = status(folder)
    if state != "finished":
        if state is None:
            resolved = layers.resolve([Layer("study", settings)])
            words = " ".join(f"{key}={value}" for key, value in settings.items())
            facts = provenance.start(HERE).collect() | {"command": f"relab study torus ({words})", "intent": intent}
            folder.parent.mkdir(parents=True, exist_ok=True)
            outcome = session.start(resolved.config, folder, resolved.provenance, facts)
        else:
            outcome = session.resume(folder)
        if outcome.status == "interrupted":
            raise Interrupted
    return history.load(folder)


def run_experiment(name: str, folder: Path, say: Say) -> tuple[dict[str, list[history.History]], list[answer.Answer]]:
    """All runs of an experiment that ships with the study, and its answers."""
    question = experiment.load(HERE / f"{name}.yaml")
    cells = experiment.prepare(question, folder)
    for k, cell in enumerate(cells):
        say(f"  {k + 1} of {len(cells)}: {cell.folder.name}")
        one(cell.folder, settings_of(cell, folder), question.question)
    return experiment.histories(cells), experiment.conclude(question, folder, cells)


def settings_of(cell: Cell, folder: Path) -> dict[str, Any]:
    return layers.flatten(layers.read_yaml(folder / "variants" / f"{cell.variant}.yaml")) | {"seed": cell.seed}
