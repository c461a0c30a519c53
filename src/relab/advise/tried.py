"""Has this been tried, and what was the answer? A change of settings against the questions that were answered before.

A change matches an earlier one when it moves the same settings from the same values to the same values, on the same
environment with the same algorithm (or by the same command). The opposite direction is another change. What else was
different then is said with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from relab.advise.proposal import diff_text, shown
from relab.base.documents import Document, Settings
from relab.base.jsonl import RecordError, inside, read_json
from relab.config import layers, lineage
from relab.config.base import ConfigError
from relab.config.views import MISSING, diff, flatten

YES, NO, OPEN = "yes", "no", "cannot tell yet"
MOST = 2000  # folders that are looked into
UP = 2  # folders from a run to its experiment
UNLIKE = 3  # other settings that are named

Diff = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Tried:
    """A change that was tried: what came out, and where that is written."""

    diff: Diff  # key -> {from, to}
    verdict: str
    text: str  # the answer's sentence
    seeds: tuple[int, int]
    where: str  # the experiment's folder, or the log and the line of the entry
    date: str = ""
    of: Settings = field(default_factory=dict)  # env, algo, command: what it was tried on
    settings: Settings = field(default_factory=dict)  # of the control, flat; empty where not kept
    superseded: str = ""  # why its entry no longer holds

    def to_dict(self) -> Document:
        body = asdict(self)
        body.pop("settings")
        return body | {"seeds": list(self.seeds)}


def subject(settings: Mapping[str, Any], command: str = "") -> Settings:
    """What a change is tried on: environment and algorithm, or another program's command."""
    flat = flatten(settings)
    facts = {"env": flat.get("env.name") or flat.get("env"), "algo": flat.get("algo.name"), "command": command}
    return {key: str(value) for key, value in facts.items() if value}


def matching(change: Diff, of: Mapping[str, Any], earlier: Iterable[Tried]) -> list[Tried]:
    """The earlier tries of this change: answered ones first, newest first, those that no longer hold last."""
    tries = [one for one in earlier if one.of == dict(of) and same(change, one.diff)]
    order = {NO: 0, YES: 1}
    tries.sort(key=lambda one: one.date, reverse=True)
    return sorted(tries, key=lambda one: (bool(one.superseded), order.get(one.verdict, 2)))


def same(a: Diff, b: Diff) -> bool:
    """Whether two changes move the same settings between the same values, in the same direction."""
    if set(a) != set(b) or not a:
        return False
    ends = [(a[key].get(end), b[key].get(end)) for key in a for end in ("from", "to")]
    return not any(diff({"x": x}, {"x": y}) for x, y in ends)


# ---- Reading the answers of experiments


def of_experiments(root: Path, without: Path | None = None) -> list[Tried]:
    """Every comparison that an experiment below `root` has answered; folders that cannot be read are passed over."""
    folders = [path.parent for path in sorted(root.glob("*/answer.json"))[:MOST]] if root.is_dir() else []
    skip = without.resolve() if without is not None else None
    return [one for folder in folders if folder.resolve() != skip for one in of_experiment(folder)]


def around(path: Path) -> list[Tried]:
    """The answers of experiments in a folder, or of the one that a run belongs to, wherever they are kept."""
    above = [folder for folder in (path, *path.resolve().parents[:UP]) if (folder / "answer.json").is_file()]
    own = [one for folder in above for one in of_experiment(folder)]
    return own + of_experiments(path) + of_experiments(path / "experiments")


def of_experiment(folder: Path) -> list[Tried]:
    try:
        declared, answers = layers.read_yaml(inside(folder, "experiment.yaml")), read_json(folder, "answer.json")
        return [one for row in answers.get("answers") or [] if (one := _answered(folder, declared, row)) is not None]
    except (ConfigError, RecordError, OSError, TypeError, KeyError, ValueError, AttributeError):
        return []


def _answered(folder: Path, declared: Mapping[str, Any], row: Mapping[str, Any]) -> Tried | None:
    control, other = (variant(folder, declared, str(name)) for name in row["names"])
    change = lineage.changes(control, other)
    if not change:
        return None
    return Tried(
        change, str(row["verdict"]), str(row["text"]), (int(row["n"][0]), int(row["n"][1])), str(folder), ended(folder),
        subject(control, str(declared.get("command") or "")), flatten(control),
    )  # fmt: skip


def variant(folder: Path, declared: Mapping[str, Any], name: str) -> Settings:
    """A variant's settings as they were run, else as they were asked for."""
    kept = inside(folder, f"variants/{name}.yaml")
    settings = {**(declared.get("base") or {}), **(declared["variants"][name] or {})}
    return layers.read_yaml(kept) if kept.is_file() else settings


def ended(folder: Path) -> str:
    """The day (UTC) on which the last of its runs ended."""
    days = []
    for path in [*folder.glob("runs/*/meta.json"), *folder.glob("state/*.json")]:
        try:
            facts = read_json(folder, str(path.relative_to(folder)))
        except (RecordError, OSError):
            continue
        days.append(day(facts))
    return max(days, default="")


def day(meta: Mapping[str, Any]) -> str:
    return str(meta.get("ended") or meta.get("heartbeat") or meta.get("created") or meta.get("started") or "")[:10]


# ---- Saying it


def lines(change: Diff, tries: Sequence[Tried], settings: Mapping[str, Any] | None = None) -> list[str]:
    """What a person must see before the same is paid for again; at most the first two tries."""
    return [line for one in tries[:2] for line in _said(change, one, settings or {})]


def _said(change: Diff, one: Tried, settings: Mapping[str, Any]) -> list[str]:
    on = f" on {one.date}" if one.date else ""
    if one.verdict == OPEN:
        n = f"{one.seeds[0]} and {one.seeds[1]} seeds"
        head = f"tried before{on}, not answered ({OPEN} with {n}): {diff_text(change)}"
    else:
        head = f"tried before{on}, answered {one.verdict}: {diff_text(change)}"
    gone = [f"  superseded: {one.superseded}"] if one.superseded else []
    return [head, *gone, f"  {one.text}", f"  {one.where}{_otherwise(one, settings)}"]


def _otherwise(one: Tried, settings: Mapping[str, Any]) -> str:
    """Which other settings were different then, the budget among them: that may be a reason to try again."""
    other = unlike(one, settings)
    if not other:
        return ""
    named = ", ".join(f"{c.key} {shown(c.a)} then, {shown(c.b)} now" for c in other[:UNLIKE])
    return f" (but {named}{f' and {len(other) - UNLIKE} more' if len(other) > UNLIKE else ''})"


def unlike(one: Tried, settings: Mapping[str, Any]) -> list[Any]:
    if not one.settings or not settings:
        return []
    quiet = ("seed", "save.", "device", "threads")
    changed = diff(one.settings, flatten(settings))
    return [c for c in changed if c.key not in one.diff and not c.key.startswith(quiet) and MISSING not in (c.a, c.b)]
