"""How are a study's runs made? In this process, one after another, resumable; threads do not change their numbers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from relab import answer, config, experiment, history, provenance, train
from relab.config import Layer
from relab.experiment import Cell
from relab.jsonl import RecordError
from relab.record import read_meta
from relab.studies import Interrupted, Say

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
            found = config.resolve([Layer("study", settings)])
            words = " ".join(f"{key}={value}" for key, value in settings.items())
            facts = provenance.start(HERE).collect() | {"command": f"relab study torus ({words})", "intent": intent}
            folder.parent.mkdir(parents=True, exist_ok=True)
            outcome = train.start(found.config, folder, found.provenance, facts)
        else:
            outcome = train.resume(folder)
        if outcome.status == "interrupted":
            raise Interrupted
    return history.load(folder)


def asked(name: str, folder: Path, say: Say) -> tuple[dict[str, list[history.History]], list[answer.Answer]]:
    """All runs of an experiment that ships with the study, and its answers."""
    question = experiment.load(HERE / f"{name}.yaml")
    cells = experiment.prepare(question, folder)
    for k, cell in enumerate(cells):
        say(f"  {k + 1} of {len(cells)}: {cell.folder.name}")
        one(cell.folder, settings_of(cell, folder), question.question)
    return experiment.histories(cells), experiment.conclude(question, folder, cells)


def settings_of(cell: Cell, folder: Path) -> dict[str, Any]:
    return config.flatten(config.read_yaml(folder / "variants" / f"{cell.variant}.yaml")) | {"seed": cell.seed}
