"""How does a study make its runs? One at a time in this process, or those of an experiment; both go on after a stop."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from relab.base.interrupts import Interrupted
from relab.base.jsonl import RecordError
from relab.comparison.answer import Answer
from relab.config import layers
from relab.config.layers import Layer
from relab.lab import experiment
from relab.lab.studies import Say
from relab.record import history, provenance
from relab.record.history import History
from relab.record.run_folder import read_config, read_meta
from relab.train import session


def status(folder: Path) -> str | None:
    try:
        return str(read_meta(folder).get("status"))
    except (RecordError, OSError):
        return None


def one(folder: Path, settings: Mapping[str, Any], intent: str, study: str) -> History:
    """Train a run, or go on with it, or read it where it is finished."""
    state = status(folder)
    if state != "finished":
        if state is None:
            resolved = layers.resolve([Layer("study", settings)])
            words = " ".join(f"{key}={value}" for key, value in settings.items())
            about = {"command": f"relab study {study} ({words})", "intent": intent}
            folder.parent.mkdir(parents=True, exist_ok=True)
            outcome = session.start(resolved.config, folder, resolved.provenance,
                                    provenance.start(Path(__file__).parent).collect() | about)  # fmt: skip
        else:
            outcome = session.resume(folder)
        if outcome.status == "interrupted":
            raise Interrupted
    return history.load(folder)


def carry_out(
    file: Path, folder: Path, workers: int, say: Say, finished: Iterable[Path] = (), fresh: bool = False
) -> tuple[str, list[Answer], dict[str, list[History]]]:
    """An experiment's question, its answers and its runs by arm; `finished`: runs that need not be trained again;
    `fresh`: on as many seeds that had no part in the first answer."""
    declared = experiment.fresh(experiment.load(file)) if fresh else experiment.load(file)
    cells = experiment.prepare(declared, folder)
    borrow(cells, folder, finished, say)
    done = experiment.run(declared, folder, cells, workers, lambda n, all_: say(f"  {n} of {all_} runs"))
    if done.interrupted:
        raise Interrupted
    layers.require(not done.failed, f"runs of {file.stem} failed: {', '.join(done.failed)}; see {folder / 'logs'}")
    return declared.question, experiment.conclude(declared, folder, cells), experiment.histories(cells)


def borrow(cells: Iterable[experiment.Cell], folder: Path, finished: Iterable[Path], say: Say) -> None:
    """Copy finished runs of the same settings, seed and code into a question's folder: they would be the same bytes."""
    commit = provenance.start(Path(__file__).parent).collect()["commit"]
    ready = [(read_config(path), path) for path in finished
             if status(path) == "finished" and read_meta(path).get("commit") == commit]  # fmt: skip
    for cell in cells:
        wanted = layers.read_yaml(folder / "variants" / f"{cell.variant}.yaml") | {"seed": cell.seed}
        same = next((path for config, path in ready if config == wanted), None)
        if same is not None and experiment.status(cell) is None:
            say(f"  {cell.folder.name} is {same.parent.name}/{same.name}, which is there")
            copy_run(same, cell.folder)


def copy_run(source: Path, target: Path) -> None:
    """Whole or not at all."""
    unfinished = target.with_name(f".{target.name}")
    shutil.rmtree(unfinished, ignore_errors=True)
    shutil.copytree(source, unfinished, symlinks=True)
    unfinished.rename(target)
