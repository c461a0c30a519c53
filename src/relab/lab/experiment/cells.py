"""Which runs does a question ask for, which of them are there, and how is a missing one started?

experiments/<id>/experiment.yaml   the question as it was asked
experiments/<id>/variants/*.yaml   each variant's resolved config, or what fills a command's placeholders
experiments/<id>/runs/NAME-sSEED   one run folder per variant and seed
experiments/<id>/state/            foreign commands: how each run ended (foreign.py)
experiments/<id>/stopped/          why a run was stopped on a finding (watcher.py)
experiments/<id>/logs/             what the processes printed
experiments/<id>/engine/           what goes to and fro between machines (execute/desk.py)
experiments/<id>/runs.json, answer.json, report.md, report.html
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from relab.base import limits
from relab.base.documents import Settings
from relab.base.enclosed import inside, own, subfolder
from relab.base.jsonl import RecordError, encode, write_atomic
from relab.base.processes import RELAB, Ours, ours
from relab.config import layers as config
from relab.config.base import require
from relab.config.layers import Layer
from relab.formats.read import foreign_state
from relab.lab.execute import engines, local
from relab.lab.execute.outlook import last_words
from relab.lab.execute.where import Where
from relab.lab.experiment import foreign, watcher
from relab.lab.experiment.question import NOT_ASKED, Experiment
from relab.record import history
from relab.record.run_folder import clear_begun, is_locked, read_config, read_meta


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    variant: str
    seed: int
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder.parent.parent / "logs" / f"{self.folder.name}.log"


def prepare(e: Experiment, folder: Path) -> list[Cell]:
    """Write the question and the variants' settings into the experiment's folder; the runs it asks for."""
    check_own(folder)
    settings = resolved(e)  # a wrong one leaves nothing behind
    folder.mkdir(parents=True, exist_ok=True)
    keep_question(folder, e)
    write_variants(settings, folder)
    return [Cell(name, seed, folder / "runs" / f"{name}-s{seed}") for seed in e.seeds for name in e.variants]


def check_own(folder: Path) -> None:
    """Nothing that an experiment or a sweep writes to leads out of its folder."""
    for name in ("variants", "runs", "state", "stopped", "logs", "engine"):
        own(folder, name)
    for path in (folder / "runs").glob("*"):
        own(folder, f"runs/{path.name}")


def resolved(e: Experiment) -> dict[str, Settings]:
    """Variant -> all of its settings, or what fills a command's placeholders."""
    return {name: variant_settings(e, name) for name in e.variants}


def check_cells(e: Experiment, folder: Path) -> None:
    """Every variant as `relab train --dry-run` checks a run: its environment, its agent, what it starts from."""
    from relab.train import session

    for name, settings in resolved(e).items():
        if not e.command:
            try:
                session.possible(config.from_dict(settings | {"seed": e.seeds[0]}), folder / "runs")
            except config.ConfigError as error:
                raise config.ConfigError(f"variant {name}: {error}") from error


def write_variants(settings: Mapping[str, Mapping[str, Any]], folder: Path) -> None:
    subfolder(folder, "variants")
    for name, values in settings.items():
        keep_text(folder / "variants" / f"{name}.yaml", config.format_yaml(dict(values)))


def variant_settings(e: Experiment, name: str) -> Settings:
    if e.command:
        return e.settings(name)
    budget = {} if e.budget is None else {"total_steps": e.budget}
    layers = [Layer("base", e.base), Layer(f"variant {name}", e.variants[name]), Layer("budget", budget)]
    whole = config.to_dict(config.resolve(layers).config)
    whole.pop("seed")
    return whole


def keep_question(folder: Path, e: Experiment) -> None:
    """The folder belongs to one question; more seeds may be added to it, anything else is another experiment."""
    path = own(folder, "experiment.yaml")
    text = config.format_yaml(e.to_dict())
    if path.exists():
        before, now = config.read_yaml(path), config.parse_yaml(text)
        check_same({**_defaults(), **before}, {**_defaults(), **now}, NOT_ASKED, folder, "experiment")
        check_seeds(before["seeds"], e.seeds, folder)
    keep_text(path, text)


def keep_text(path: Path, text: str) -> None:
    """Written only where it differs: several processes may work on one experiment, each on a run of its own."""
    if not path.is_file() or limits.read_bytes(path, limits.JSON) != text.encode():
        write_atomic(path, text.encode(), several=True)


def check_same(
    before: Mapping[str, Any], now: Mapping[str, Any], free: Collection[str], folder: Path, kind: str
) -> None:
    """Whoever comes back with another question is told what is other about it."""
    keys = [key for key in {**before, **now} if key not in free]
    other = [key for key in keys if before.get(key) != now.get(key)]
    require(not other, f"{folder} holds another {kind} (another {', '.join(map(repr, other))});"
                       " choose another --name, or delete that folder")  # fmt: skip


def check_seeds(before: Collection[int], now: Collection[int], folder: Path) -> None:
    missing = [seed for seed in before if seed not in now]
    require(not missing, f"seeds may be added but not taken away: {folder} has run {missing} too")


def _defaults() -> Settings:
    return {"paired": False, "stop_on": [], "looks": []}  # keys that older folders do not have


# ---- One run


def rounds(e: Experiment, cells: list[Cell]) -> list[list[Cell]]:
    """The runs up to each declared look, all of them last; one round where none is declared."""
    return [[cell for cell in cells if cell.seed in e.seeds[:size]] for size in e.looks or [len(e.seeds)]]


def jobs(e: Experiment, cells: list[Cell], folder: Path) -> list[local.Job]:
    return [job(e, cell, folder) for cell in cells]


def job(e: Experiment, cell: Cell, folder: Path) -> local.Job:
    if not e.command:
        return local.Job(cell.folder.name, partial(command, cell, folder, e.question), partial(settled, cell), cell.log,
                         elsewhere=only(cell, folder))  # fmt: skip
    return local.Job(
        cell.folder.name, partial(foreign.command, e, cell), partial(settled, cell), cell.log,
        started=partial(foreign.started, cell), ended=partial(foreign.ended, cell),
        code=foreign.code_path(cell).resolve(), elsewhere=only(cell, folder),
    )  # fmt: skip


def only(cell: Cell, folder: Path) -> list[str]:
    """Words of relab that make this run and no other, on any machine that sees the folder: begun or gone on with."""
    kind = next((name for name in ("sweep", "loop") if (folder / f"{name}.yaml").exists()), "experiment")
    place = folder.resolve()
    words = [kind, str(place / f"{kind}.yaml"), "--name", place.name, "--root", str(place.parent), "--yes"]
    return [*words, f"--only={cell.folder.name}"]


def command(cell: Cell, folder: Path, question: str) -> list[str]:
    """Train the cell, or resume it where an earlier try left a record."""
    if status(cell) is not None:
        return [*RELAB, "resume", str(cell.folder), "--quiet", *trusted(cell, folder)]
    clear_begun(cell.folder)
    variant = str(folder / "variants" / f"{cell.variant}.yaml")
    where = ["--runs", str(cell.folder.parent), "--name", cell.folder.name]
    return [*RELAB, "train", variant, f"seed={cell.seed}", *where, "--intent", question, "--quiet"]


def trusted(cell: Cell, folder: Path) -> list[str]:
    """Code that the question names is its asker's word; a record that names any other is not trusted with it."""
    try:
        settings = config.read_yaml(inside(folder, f"variants/{cell.variant}.yaml"))
        same = all(read_config(cell.folder).get(group) == settings.get(group) for group in config.CHOICES)
    except (config.ConfigError, RecordError, OSError):
        return []
    return ["--trust"] if same else []


def finished(cell: Cell) -> bool:
    return status(cell) == "finished"


def settled(cell: Cell) -> bool:
    """Nothing more is to come: it is finished, or was stopped on a finding."""
    return status(cell) in ("finished", "stopped")


def status(cell: Cell) -> str | None:
    """finished, stopped (on a finding), or as the record says; None where there is none."""
    known = recorded(cell)
    return "stopped" if known is not None and known != "finished" and watcher.stopped(cell.folder) else known


def recorded(cell: Cell) -> str | None:
    """As the state file of a foreign command says, else as the run's own record does; None where there is neither."""
    state = foreign.known(cell)
    if state:
        return foreign_state.status(state)
    try:
        return str(read_meta(cell.folder).get("status"))
    except (RecordError, OSError):
        return None


def busy(cell: Cell) -> bool:
    """Whether a process that outlived a killed call still works on it: then it is waited for, not started twice."""
    if foreign.known(cell):
        return foreign.alive(cell) is not None
    return is_locked(cell.folder) or any(started(cell, each) for each in ours())


def started(cell: Cell, process: Ours) -> bool:
    """Whether it is a trainer of this run, which may not have a record to lock yet."""
    words = (str(cell.folder.parent), cell.folder.name)
    return process.job == cell.folder.name and process.place == os.getcwd() and all(w in process.command for w in words)


def why_failed(cell: Cell) -> str:
    if foreign_state.read_state(cell.folder):
        return foreign.why(cell.folder, cell.log)
    return last_words(cell.log)


# ---- All runs


def run(
    e: Experiment,
    folder: Path,
    cells: list[Cell],
    workers: int | None = None,
    watch: Callable[[int, int], None] | None = None,
    *,
    all_cells: bool = True,
    where: Where | None = None,
) -> local.Result:
    """Run what is missing; returns when all is done, something failed for good, or somebody asked to stop."""
    looker = watcher.Watcher(e.stop_on, {cell.folder.name: cell.folder for cell in cells})
    look = looker.look if e.stop_on else None
    place, todo = where or e.execute, jobs(e, cells, folder)
    at = None if all(job.done() for job in todo) else engines.of(place, folder, workers)  # an answer needs no engine
    result = local.run(todo, workers or local.cores(), watch, look, e.look_every, at, place.env)
    if all_cells:  # runs.json tells how all of them stand
        rows = [
            {"run": str(c.folder.relative_to(folder)), "variant": c.variant, "seed": c.seed, "status": status(c)}
            for c in cells
        ]
        write_atomic(folder / "runs.json", encode({"runs": rows}, indent=True), several=True)
    return result


def histories(cells: list[Cell]) -> dict[str, list[history.History]]:
    """Variant -> runs that are finished or were stopped, in the order of the seeds."""
    runs: dict[str, list[history.History]] = {}
    for cell in cells:
        runs.setdefault(cell.variant, [])
        if settled(cell):
            runs[cell.variant].append(read(cell))
    return runs


def read(cell: Cell) -> history.History:
    """Its history; why it was stopped is in `meta`."""
    if not foreign_state.read_state(cell.folder):
        loaded = history.load(cell.folder)
    else:
        try:
            loaded = foreign.read(cell.folder)
        except RecordError as error:
            raise RecordError(f"{cell.folder.name}: {error}") from None
    if status(cell) == "stopped":
        loaded.meta["stopped"] = watcher.stopped(cell.folder)
    return loaded
