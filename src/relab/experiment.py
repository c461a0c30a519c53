"""Is B better than A, and can we tell? A declared question, variants over seeds, runs, and an answer.

    experiments/<id>/experiment.yaml   the question as it was asked
    experiments/<id>/variants/*.yaml   each variant's resolved config
    experiments/<id>/runs/NAME-sSEED   one run folder per variant and seed
    experiments/<id>/runs.json, answer.json

Everything here is a function of those files: killed or called again, it goes on with what is missing, and no finished
run is repeated. The first variant is the control; every other one is compared with it, and nothing else is tested.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from relab import answer, config, history
from relab.config import Layer, require
from relab.execute import local
from relab.jsonl import RecordError, encode, read_json, write_atomic
from relab.record import read_meta

KEYS = {
    "question",
    "metric",
    "at",
    "last",
    "level",
    "direction",
    "smallest_effect",
    "base",
    "vary",
    "variants",
    "seeds",
}
STARTUP_S = 4.0  # process start and imports


@dataclass(frozen=True)
class Experiment:
    """A question, declared before its runs."""

    question: str
    base: dict[str, Any]  # settings all variants share
    variants: dict[str, dict[str, Any]]  # name -> settings that differ; the first is the control
    metric: str = "eval/return_det"
    at: str = "final"  # final | mean_last_m | first_step_reaching | success_rate
    last: int = 3  # m of mean_last_m
    level: float | None = None  # of first_step_reaching
    direction: str = "higher"  # higher | lower: which is better
    smallest_effect: float = 0.0  # in the metric's unit: smaller differences do not matter
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)


@dataclass(frozen=True)
class Cell:
    """One run of an experiment."""

    variant: str
    seed: int
    folder: Path


@dataclass(frozen=True)
class Forecast:
    """What the experiment will cost, from a short pilot run."""

    runs: int
    seconds_per_run: float
    workers: int
    pilot: dict[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        return -(-self.runs // self.workers) * self.seconds_per_run


# ---- Reading the question


def load(path: Path) -> Experiment:
    """An experiment.yaml; unknown keys and impossible values are errors that say what would be right."""
    values = config.read_yaml(path)
    for key in values:
        hint = config.registry.nearest(key, sorted(KEYS))
        require(key in KEYS, f"unknown key `{key}` in {path}; the nearest known one is `{hint}`")
    require(bool(values.get("question")), f"{path} needs a `question`: one sentence that the runs are to answer")
    require("base" in values, f"{path} needs `base`: the settings that all variants share, with `env`")
    known = {k: v for k, v in values.items() if k not in ("vary", "variants", "seeds")}
    found = Experiment(variants=variants_of(values, path), seeds=seeds_of(values.get("seeds", 5)), **known)
    check(found, path)
    return found


def variants_of(values: Mapping[str, Any], path: Path) -> dict[str, dict[str, Any]]:
    """`variants: {name: settings}`, or `vary: {key: [values]}` which names them by their value."""
    require(("vary" in values) != ("variants" in values), f"{path} needs either `vary` or `variants`, and not both")
    if "variants" in values:
        return {safe(str(name)): dict(settings or {}) for name, settings in values["variants"].items()}
    require(
        len(values["vary"]) == 1, f"`vary` takes one key, but got {', '.join(values['vary'])}; use `variants` for more"
    )
    key, options = next(iter(values["vary"].items()))
    return {safe(f"{key.rpartition('.')[2]}={option}"): {key: option} for option in options}


def safe(name: str) -> str:
    """A variant's name as a folder's name."""
    return re.sub(r"[^\w.=+-]+", "_", name).strip(".") or "_"


def seeds_of(value: Any) -> tuple[int, ...]:
    seeds = tuple(range(value)) if isinstance(value, int) else tuple(value)
    require(
        len(set(seeds)) == len(seeds) > 0, f"`seeds` must be a number of seeds or different seeds, but got {value!r}"
    )
    return seeds


def check(e: Experiment, path: Path) -> None:
    require(len(e.variants) >= 2, f"{path} needs at least two variants, but has {', '.join(e.variants)}")
    require(e.at in answer.AT, f"`at` must be one of {', '.join(answer.AT)}, but got {e.at!r}")
    require(e.direction in answer.DIRECTIONS, f"`direction` must be higher or lower, but got {e.direction!r}")
    require(e.smallest_effect >= 0, f"`smallest_effect` must be at least 0, but got {e.smallest_effect}")
    require(e.at != "first_step_reaching" or e.level is not None, "`at: first_step_reaching` needs a `level`")


# ---- The plan


def prepare(e: Experiment, folder: Path) -> list[Cell]:
    """Write the question and the variants' configs into the experiment's folder; the runs it asks for."""
    (folder / "variants").mkdir(parents=True, exist_ok=True)
    asked = asdict(e) | {"seeds": list(e.seeds)}
    keep_question(folder, asked)
    for name, settings in e.variants.items():
        layers = [Layer("base", e.base), Layer(f"variant {name}", settings)]
        resolved = config.to_dict(config.resolve(layers).config)
        resolved.pop("seed")
        write_atomic(folder / "variants" / f"{name}.yaml", config.format_yaml(resolved).encode())
    return [Cell(name, seed, folder / "runs" / f"{name}-s{seed}") for seed in e.seeds for name in e.variants]


def keep_question(folder: Path, asked: Mapping[str, Any]) -> None:
    """The folder belongs to one question; more seeds may be added to it, anything else is another experiment."""
    path = folder / "experiment.yaml"
    if path.exists():
        before = config.read_yaml(path)
        same = all(
            before.get(key) == config.parse_yaml(config.format_yaml({key: asked[key]}))[key]
            for key in asked
            if key != "seeds"
        )
        require(same, f"{folder} holds another experiment; choose another --name, or delete that folder")
        missing = [seed for seed in before["seeds"] if seed not in asked["seeds"]]
        require(not missing, f"seeds may be added but not taken away: {folder} has run {missing} too")
    write_atomic(path, config.format_yaml(dict(asked)).encode())


def jobs(cells: list[Cell], folder: Path, question: str) -> list[local.Job]:
    return [job(cell, folder, question) for cell in cells]


def job(cell: Cell, folder: Path, question: str) -> local.Job:
    return local.Job(cell.folder.name, partial(command, cell, folder, question), partial(finished, cell), log_of(cell))


def log_of(cell: Cell) -> Path:
    return cell.folder.parent.parent / "logs" / f"{cell.folder.name}.log"


def finished(cell: Cell) -> bool:
    return status(cell) == "finished"


def status(cell: Cell) -> str | None:
    try:
        return str(read_meta(cell.folder).get("status"))
    except (RecordError, OSError):
        return None


def command(cell: Cell, folder: Path, question: str) -> list[str]:
    """Train the cell, or resume it where an earlier try left a record."""
    relab = [sys.executable, "-m", "relab.cli"]
    if status(cell) is not None:
        return [*relab, "resume", str(cell.folder), "--quiet"]
    shutil.rmtree(cell.folder, ignore_errors=True)  # a try that was killed before there was a record
    variant = str(folder / "variants" / f"{cell.variant}.yaml")
    where = ["--runs", str(cell.folder.parent), "--name", cell.folder.name]
    return [*relab, "train", variant, f"seed={cell.seed}", *where, "--intent", question, "--quiet"]


# ---- Cost


def forecast(e: Experiment, cells: list[Cell], folder: Path, workers: int) -> Forecast:
    """Seconds that the missing runs will take, from a pilot of a few iterations of the control."""
    missing = [cell for cell in cells if not finished(cell)]
    if not missing:
        return Forecast(0, 0.0, workers)
    variant = folder / "variants" / f"{next(iter(e.variants))}.yaml"
    cfg = config.from_dict(config.read_yaml(variant))
    with tempfile.TemporaryDirectory() as root:
        steps = min(cfg.total_steps, 6 * cfg.batch)
        words = [
            f"total_steps={steps}",
            "eval.stop_at=null",
            f"eval.every={2 * cfg.batch}",
            "seed=0",
            "--runs",
            root,
            "--name",
            "pilot",
            "--quiet",
        ]
        pilot = local.Job("pilot", lambda: [sys.executable, "-m", "relab.cli", "train", str(variant), *words],
                          lambda: finished(Cell("", 0, Path(root) / "pilot")), Path(root) / "log")  # fmt: skip
        done = local.run([pilot], 1)
        require(
            not done.failed,
            f"the pilot run failed: {pilot.log.read_text(errors='replace')[-500:] if done.failed else ''}",
        )
        return cost(history.load(Path(root) / "pilot"), cfg, len(missing), workers)


def cost(run: history.History, cfg: Any, runs: int, workers: int) -> Forecast:
    """Per run: start-up, then steps at the median speed of the pilot's rows, then its evaluations at full length."""
    part = {name: run.column(f"time/{name}_s").values for name in ("collect", "update", "log")}
    per_row = float(np.median(sum(part.values())))
    horizon = (run.meta.get("spec") or {}).get("horizon") or 0
    evals = cfg.total_steps / cfg.eval.every + 1 if cfg.eval.every else 2
    lengths = run.column("eval/length_det").values.max(initial=1.0)
    took = max((e_s for e_s in eval_seconds(run)), default=0.0)
    eval_s = took * max(1.0, horizon / max(float(lengths), 1.0))
    seconds = STARTUP_S + cfg.total_steps / cfg.batch * per_row + evals * eval_s
    return Forecast(runs, seconds, workers, {"row_s": per_row, "eval_s": eval_s, "evals": evals})


def eval_seconds(run: history.History) -> list[float]:
    return [float(x) for x in run.column("time/eval_s").values]


# ---- The answer


def conclude(e: Experiment, folder: Path, cells: list[Cell]) -> list[answer.Answer]:
    """Every variant against the control, on one number per run; kept in answer.json with the looks taken so far."""
    runs, looked = histories(cells), looks(folder)
    arms = {name: [outcome(e, run) for run in group] for name, group in runs.items()}
    control, *others = arms
    found = [compare(e, (control, name), arms, looked.get(name, [])) for name in others]
    taken = {name: [*looked.get(name, []), list(x.n)] for name, x in zip(others, found)}
    body = {"question": e.question, "answers": [x.to_dict() for x in found], "looks": taken}
    write_atomic(folder / "answer.json", encode(body, indent=True))
    return found


def outcome(e: Experiment, run: history.History) -> answer.Outcome:
    return answer.outcome(run, e.at, e.metric, m=e.last, reach=e.level, direction=e.direction)


def compare(e: Experiment, names: tuple[str, str], arms: Mapping[str, Any], looked: list[list[int]]) -> answer.Answer:
    a, b = (arms[name] for name in names)
    return answer.answer(a, b, e.smallest_effect, e.direction, e.at, metric=e.metric, names=names, looked_at=looked)


def looks(folder: Path) -> dict[str, list[list[int]]]:
    """Variant -> (n, n) of each answer given before: looking again after adding seeds has its price."""
    return dict(read_json(folder, "answer.json").get("looks", {})) if (folder / "answer.json").exists() else {}


# ---- Running


def run(
    e: Experiment,
    folder: Path,
    cells: list[Cell],
    workers: int | None = None,
    watch: Callable[[int, int], None] | None = None,
) -> local.Result:
    """Run what is missing; returns when all is done, something failed for good, or somebody asked to stop."""
    result = local.run(jobs(cells, folder, e.question), workers or cores(), watch)
    rows = [
        {"run": str(c.folder.relative_to(folder)), "variant": c.variant, "seed": c.seed, "status": status(c)}
        for c in cells
    ]
    write_atomic(folder / "runs.json", encode({"runs": rows}, indent=True))
    return result


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def histories(cells: list[Cell]) -> dict[str, list[history.History]]:
    """Variant -> finished runs in the order of the seeds."""
    found: dict[str, list[history.History]] = {}
    for cell in cells:
        found.setdefault(cell.variant, [])
        if finished(cell):
            found[cell.variant].append(history.load(cell.folder))
    return found
