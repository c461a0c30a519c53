"""What follows from an answer? Yes: adopt the winner. Cannot tell yet: more seeds. No: keep the control."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from relab.advise.checks import FOREIGN, RejectedError, check
from relab.advise.predict import ENOUGH, cost
from relab.advise.proposal import FILE, Cost, Nothing, Predicted, Proposal, new_values, typed
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, inside, read_json
from relab.config import layers
from relab.config.base import ConfigError
from relab.health.examine import Report
from relab.health.view import View

YES, OPEN = "yes", "cannot tell yet"
MOST_SEEDS = 1000  # more is no plan but a sign that the effect asked for is too small


@dataclass(frozen=True)
class Question:
    """An experiment's folder as plain data."""

    question: str
    variants: dict[str, Settings]
    seeds: list[int]
    answers: list[Document]
    command: str = ""  # another tool's, with {placeholders}


def read(root: Path) -> Question | None:
    """The question and its answers; None where the folder is no experiment that can be read."""
    if not (root / "experiment.yaml").is_file():
        return None
    try:
        said = layers.read_yaml(inside(root, "experiment.yaml"))
    except (ConfigError, RecordError, OSError):
        return None
    answers = read_answers(root)
    variants, seeds = said.get("variants"), said.get("seeds")
    good = isinstance(variants, Mapping) and isinstance(seeds, list) and bool(seeds)
    if not good or not all(type(seed) is int for seed in seeds or []):
        return None
    plain = {str(name): dict(v) if isinstance(v, Mapping) else {} for name, v in variants.items()}  # type: ignore[union-attr]
    rows = [row for row in answers if _is_answer(row, plain)]
    return Question(str(said.get("question")), plain, list(seeds or []), rows, str(said.get("command") or ""))


def read_answers(root: Path) -> list[Any]:
    """What answer.json holds; empty where there is none yet, or none that can be read."""
    try:
        answers = read_json(root, "answer.json").get("answers")
    except (RecordError, OSError):
        return []
    return answers if isinstance(answers, list) else []


def _is_answer(row: Any, variants: Mapping[str, Any]) -> bool:
    if not isinstance(row, dict) or not isinstance(row.get("names"), list) or len(row["names"]) != 2:
        return False
    numbers = [row.get(key) for key in ("delta", "low", "high")]
    return all(name in variants for name in row["names"]) and all(isinstance(x, (int, float)) for x in numbers)


def propose(declared: Question, root: Path, report: Report) -> Proposal | Nothing:
    """From the answers; without one, the experiment is to be brought to its end first."""
    if not declared.answers:
        done = sum(view.state in ("finished", "ended") for view in _views(report))
        runs = f"{done} of {len(declared.variants) * len(declared.seeds)} runs are finished"
        return Nothing(f"the experiment has no answer yet ({runs}): {call(root)}")
    won = [row for row in declared.answers if row.get("verdict") == YES]
    if won:
        return adopt(declared, max(won, key=lambda row: row["delta"]), root, report)
    undecided = [row for row in declared.answers if row.get("verdict") == OPEN]
    if undecided:
        return more_seeds(declared, undecided, root, report)
    return Nothing(
        f"the answer is no, the control {declared.answers[0]['names'][0]} stays: {declared.answers[0].get('text')}"
    )


# ---- Yes


def adopt(declared: Question, row: Mapping[str, Any], root: Path, report: Report) -> Proposal | Nothing:
    """The winner's settings as a diff against a run of the control, on seeds that have not run."""
    control, winner = row["names"]
    views = [each.view for each in report.runs]
    cell = root / "runs" / f"{control}-s{declared.seeds[0]}"
    parent = next((v for v in views if v.history.folder.resolve().is_relative_to(cell.resolve())), None)
    changes = settings(declared, (control, winner), root)
    if parent is None or not changes:
        return Nothing(
            f"{row.get('text')} Its runs are not all there, so that {winner} cannot be taken as the next base"
        )
    fresh = [max(declared.seeds) + 1 + i for i in range(ENOUGH)]
    diff = {key: {"from": now, "to": then} for key, (now, then) in changes.items()}
    here = not declared.command and parent.history.trained_by_relab
    try:
        checks = check(parent, changes, [])[0] if here else {"config": FOREIGN}
    except RejectedError as error:
        return Nothing(f"{row.get('text')} But {winner} cannot be the next base: {error}")
    checks["repeat"] = f"{winner} has run on seeds {_range(declared.seeds)}; {fresh[0]} is new"
    why = f"answer: {row.get('text')} {new_values(diff)} is {winner}."
    command = (
        f"relab train {root / FILE} seed={fresh[0]}{parent.trust}" if here else filled(declared, winner, root, fresh[0])
    )
    name, price = cell.relative_to(root).as_posix(), cost(parent, changes)
    return Proposal(name, diff, why, checks, answered(row), price, "answer", None, fresh, str(root), command, here)


def settings(declared: Question, names: tuple[str, str], root: Path) -> dict[str, tuple[Any, Any]]:
    """key -> (control's, winner's), of the settings that differ; a command's keys are its placeholders."""
    changed = layers.diff(*(variant(declared, name, root) for name in names))
    return {c.key: (c.a, c.b) for c in changed if layers.MISSING not in (c.a, c.b) and c.key != "seed"}


def variant(declared: Question, name: str, root: Path) -> Settings:
    """A variant's settings: all of them where they are kept, else those that were declared."""
    try:
        return layers.read_yaml(inside(root, f"variants/{name}.yaml"))
    except (ConfigError, RecordError, OSError):
        return declared.variants[name]


def answered(row: Mapping[str, Any]) -> Predicted:
    """The answer's own interval: fresh seeds of the winner are expected to do as its seeds did."""
    delta, low, high = (float(row[key]) if math.isfinite(row[key]) else None for key in ("delta", "low", "high"))
    at = str(row.get("at"))
    metric = f"steps until {row.get('metric')} gets there" if at == "first_step_reaching" else str(row.get("metric"))
    how = f"the answer, + is better: {row.get('method')}, at {at}"
    return Predicted(metric, delta, low, high, how, at, str(row.get("direction") or "higher"))


def filled(declared: Question, winner: str, root: Path, seed: int) -> str:
    """Another tool's command with the winner's values and a fresh seed in its {placeholders}."""
    values = {key: typed(value) for key, value in variant(declared, winner, root).items()} | {"seed": str(seed)}
    command = declared.command
    for name, value in values.items():
        command = command.replace("{" + name + "}", shlex.quote(value))
    return command.replace("{run}", "NEW_FOLDER")


def _range(seeds: list[int]) -> str:
    return f"{min(seeds)} to {max(seeds)}" if len(seeds) > 1 else str(seeds[0])


# ---- Cannot tell yet


def more_seeds(declared: Question, rows: list[Document], root: Path, report: Report) -> Proposal | Nothing:
    """As many seeds as the answer says could tell, but not more than twice as many before the next look."""
    row = max(rows, key=lambda r: r["delta"])
    needed = [r["seeds_needed"] for r in rows if _is_pair(r.get("seeds_needed"))]
    n = len(declared.seeds)
    enough = max([ENOUGH, *(low for low, _ in needed)])
    if not needed and n >= ENOUGH:
        return Nothing(f"{row.get('text')} No number of seeds is known that would tell")
    if enough > MOST_SEEDS or enough <= n:
        return Nothing(f"{row.get('text')} Ask for a larger `smallest_effect`, or for another outcome")
    target = min(enough, max(ENOUGH, 2 * n))
    added = list(range(max(declared.seeds) + 1, max(declared.seeds) + 1 + target - n))
    runs = (target - n) * len(declared.variants)
    why = f"answer: {row.get('text')} Next: {target} seeds a variant, then look again."
    diff = {"seeds": {"from": declared.seeds, "to": [*declared.seeds, *added]}}
    each = per_run(report)
    return Proposal(
        "experiment.yaml", diff, why, {"repeat": f"seeds {_range(added)} are new", "budget": f"{runs} more runs"},
        Predicted(str(row.get("metric")), None, None, None, "narrows the interval; it moves nothing"),
        Cost(each.steps and each.steps * runs, each.seconds and each.seconds * runs, f"{runs} runs, one after another"),
        "answer", None, added, str(root),
        f"set `seeds: {target if _plain(declared.seeds) else diff['seeds']['to']}` in {root / 'experiment.yaml'},"
        f" then {call(root)}", False,
    )  # fmt: skip


def call(root: Path) -> str:
    """The command that goes on with an experiment."""
    where = [str(root / "experiment.yaml"), "--name", root.name, "--root", str(root.parent)]
    return shlex.join(["relab", "experiment", *where])


def _is_pair(x: Any) -> bool:
    return isinstance(x, list) and len(x) == 2 and all(type(n) is int for n in x)


def _plain(seeds: list[int]) -> bool:
    return seeds == list(range(len(seeds)))


def per_run(report: Report) -> Cost:
    """Of the dearest run there is."""
    costs: list[Cost] = [cost(view, {}) for view in _views(report)]
    return max(costs, key=lambda c: c.seconds or 0.0, default=Cost(None, None, ""))


def _views(report: Report) -> list[View]:
    return [each.view for each in report.runs]
