"""What is to be run next, as a file? A diff against a parent run, with its reasons and a prediction: next_config.yaml.

    parent: lr100                                  a run: its name, or its path below the folder of the file
    diff: {algo.lr: {from: 0.3, to: 0.003}}        `from` must be what the parent had when it is run
    rationale, checks, predicted {metric, delta, low, high, how, at, direction}, cost
    resume_from: lr100@best                        the weights it starts from: RUN@checkpoint, or latest, best or a step
                                                   of the parent; null: fresh ones

`relab next` makes proposals (relab.advise), `relab train next_config.yaml` runs them. Files may come from strangers:
only the keys above are taken, and the parent is looked for in the file's folder, beside it, and below --runs.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from relab.advise import trust
from relab.base.documents import Document
from relab.base.enclosed import is_path
from relab.base.errors import NotFoundError
from relab.base.jsonl import write_atomic
from relab.config import layers as config
from relab.config.base import require
from relab.config.layers import Layer
from relab.record import names

FILE = "next_config.yaml"
NEEDED = {"parent", "diff"}
KEYS = NEEDED | {"rationale", "checks", "predicted", "cost", "resume_from"}
LONGEST = 2000  # characters of a rationale that go into a record


@dataclass(frozen=True)
class Predicted:
    """What the change is expected to do to a metric, + is better where the metric is a return."""

    metric: str | None
    delta: float | None  # None: no data
    low: float | None
    high: float | None
    how: str  # where the numbers come from, or why there are none
    at: str = "final"  # which number of a run it is about, as in an experiment
    direction: str = "higher"  # which is better


@dataclass(frozen=True)
class Cost:
    """What it takes, from the parent's own timing."""

    steps: int | None
    seconds: float | None
    how: str


@dataclass(frozen=True)
class Proposal:
    """The next config as a diff against its parent."""

    parent: str  # the run's name; for an experiment, its path below the experiment's folder
    diff: dict[str, Document]  # key -> {from, to}
    rationale: str
    checks: dict[str, str]
    predicted: Predicted
    cost: Cost
    source: str = ""  # slug of the finding, `answer` or `still-improving`
    resume_from: str | None = None  # RUN@checkpoint whose weights it starts from; foreign runs: what it had loaded
    seeds: list[int] = field(default_factory=list)  # that have not run with this config
    folder: str = ""  # where --write puts it
    command: str = ""  # what runs it; for other tools' runs, the change in their words
    runs_here: bool = True  # False: another tool's command, which relab does not start
    passed_over: list[str] = field(default_factory=list)  # what came first, and what spoke against it
    tried: list[Document] = field(default_factory=list)  # earlier tries of this change that gave no answer
    names: dict[str, str] = field(default_factory=dict)  # key -> what the program that made the run calls it

    def to_dict(self) -> Document:
        """Plain data for JSON; the first six keys are those of next_config.yaml."""
        return self.file_keys() | {"source": self.source, "seeds": list(self.seeds), "folder": self.folder,
                                   "command": self.command, "runs_here": self.runs_here,
                                   "passed_over": list(self.passed_over), "tried": list(self.tried),
                                   "names": dict(self.names)}  # fmt: skip

    def file_keys(self) -> Document:
        return {
            "parent": self.parent, "diff": {key: dict(change) for key, change in self.diff.items()},
            "rationale": self.rationale, "checks": dict(self.checks), "predicted": vars(self.predicted).copy(),
            "cost": vars(self.cost).copy(), "resume_from": self.resume_from,
        }  # fmt: skip


NOTHING, BY_HAND = "nothing worth proposing: ", "no run can be proposed: "  # how a proposal that is none begins


@dataclass(frozen=True)
class Nothing:
    """There is nothing worth proposing, and why."""

    why: str
    passed_over: list[str] = field(default_factory=list)  # changes that were looked at, each with what spoke against it
    mend: str = ""  # what a finding names as its remedy, which is no change of a known setting

    @property
    def text(self) -> str:
        """A sentence without its end; where a finding names a remedy, there is something worth doing."""
        return f"{BY_HAND}{self.why}; by hand, for {self.mend}" if self.mend else f"{NOTHING}{self.why}"

    def to_dict(self) -> Document:
        return {"diff": {}, "why": self.why, "passed_over": list(self.passed_over), "mend": self.mend}


def write(proposal: Proposal) -> Path:
    """next_config.yaml in the run's or the experiment's folder; an older one is replaced, a link is not followed."""
    path = Path(proposal.folder) / FILE
    write_atomic(path, config.format_yaml(proposal.file_keys()).encode())
    return path


# ---- Reading one back, to run it


@dataclass(frozen=True)
class Loaded:
    """A next_config.yaml whose `from` values hold: the layers it stands for, and what its run must remember."""

    parent: Path
    layers: tuple[Layer, Layer]  # parent, proposal
    rationale: str
    predicted: Document
    diff: dict[str, Document]
    resume_from: str | None = None  # the start_from of its run


def is_proposal(path: str | os.PathLike[str]) -> bool:
    """Whether a YAML file has the keys of a proposal, which no config has."""
    return Path(path).is_file() and set(config.read_yaml(config.named_file(path))) >= NEEDED


def load(path: str | os.PathLike[str], runs: Path, trust: bool = False) -> Loaded:
    """Read and check a proposal; ConfigError where it cannot be run as it stands. `trust`: it may name code."""
    path, values = Path(path), config.read_yaml(config.named_file(path))
    for key in values:
        known = f"known are {', '.join(sorted(KEYS))}"
        require(key in KEYS, f"unknown key `{key}` in the proposal {path}; {known}")
    changes = changes_of(values["diff"], path)
    require(
        "seeds" not in changes, f"{path} adds seeds to an experiment: `relab experiment` runs it, not `relab train`"
    )
    parent = find_parent(values["parent"], path, runs)
    had = config.record_layer(parent, trust=trust)
    check_from(changes, config.flatten(had.values), parent, path)
    word = of_parent(values.get("resume_from"), values["parent"])
    start = start_of(word, path, runs)
    weights: Document = {} if start is None else {"start_from": start}
    if start is not None and word.rpartition("@")[0] == values["parent"]:
        weights["start_parts"] = None  # all of the parent's own; of another run's, those that the parent took
    proposed = Layer("proposal", {key: change["to"] for key, change in changes.items()} | weights, trust)
    return Loaded(parent, (had, proposed), text_of(values, path), mapping_of(values, "predicted", path), changes, start)


def of_parent(word: Any, parent: str) -> Any:
    """`best` alone is the parent's: lr100@best.

    >>> of_parent("best", "lr100"), of_parent("other@64", "lr100"), of_parent(None, "lr100")
    ('lr100@best', 'other@64', None)
    """
    bare = isinstance(word, str) and (word in ("latest", "best") or word.isdecimal())
    return f"{parent}@{word}" if bare else word


def start_of(word: Any, path: Path, runs: Path) -> str | None:
    """`resume_from` as the setting start_from of the new run: RUN@checkpoint, found where a parent is."""
    if word is None:
        return None
    form = f"`resume_from` in {path} must be RUN@checkpoint (latest, best or a step), or null"
    run, _, name = word.rpartition("@") if isinstance(word, str) else ("", "", "")
    known = bool(run) and (name in ("latest", "best") or name.isdecimal())
    require(known, f"{form}, but got {word!r:.80}")
    folder = find_parent(run, path, runs, "resume_from")
    untrusted = trust.ledger(folder).refusal(strict=False) if name == "best" else ""
    require(not untrusted, f"`resume_from` in {path} cannot be used: {untrusted}")
    with contextlib.suppress(NotFoundError):
        if names.find(run, runs).resolve() == folder.resolve():
            return f"{run}@{name}"
    return f"{os.path.relpath(folder)}@{name}"


def changes_of(diff: Any, path: Path) -> dict[str, Document]:
    shape = "`diff` must hold `key: {from: old, to: new}`"
    require(isinstance(diff, Mapping) and bool(diff), f"{shape}, but {path} has {diff!r:.80}")
    for key, change in diff.items():
        good = isinstance(change, Mapping) and set(change) == {"from", "to"}
        require(good, f"{shape}, but `{key}` in {path} is {change!r:.80}")
    return {str(key): dict(change) for key, change in diff.items()}


def text_of(values: Mapping[str, Any], path: Path) -> str:
    text = values.get("rationale", "")
    require(isinstance(text, str), f"`rationale` in {path} must be text, but got {text!r:.80}")
    return " ".join(text.split())[:LONGEST]


def mapping_of(values: Mapping[str, Any], key: str, path: Path) -> Document:
    mapping = values.get(key) or {}
    require(isinstance(mapping, Mapping), f"`{key}` in {path} must be a mapping, but got {mapping!r:.80}")
    return dict(mapping)


def find_parent(word: Any, path: Path, runs: Path, key: str = "parent") -> Path:
    """The folder of the run that a key names: the file's own, one below or beside it, else a name below --runs."""
    require(isinstance(word, str) and bool(word), f"`{key}` in {path} must be a run's name, but got {word!r:.80}")
    require(is_path(word), f"`{key}` in {path} must be a run's name, but no folder can be called {word!r:.80}")
    parts, home = PurePosixPath(word).parts, path.resolve().parent
    inside = not PurePosixPath(word).is_absolute() and ".." not in parts and "\\" not in word
    require(inside, f"`{key}` in {path} must be a name, or a path below its folder, but got {word!r:.80}")
    near = [home] if home.name == word else []
    near += [home / word, *([home.parent / word] if len(parts) == 1 else [])]
    for folder in near:
        if (folder / "config.yaml").is_file() and folder.resolve().is_relative_to(home.parent):
            return folder
    try:
        require(len(parts) == 1, f"the run {word} that `{key}` in {path} names is not there")
        return names.find(word, runs)
    except NotFoundError as error:
        raise config.ConfigError(
            f"the run that `{key}` in {path} names is not beside it, and {error}; give --runs"
        ) from None


def check_from(changes: Mapping[str, Any], had: Mapping[str, Any], parent: Path, path: Path) -> None:
    """Each `from` must be what the parent had: a proposal for another config must not run unseen."""
    for key, change in changes.items():
        where = (
            f"in {path}; {parent.name} is not the run this was made for, or was changed: `relab next` makes a new one"
        )
        require(key in had, f"`{key}` is no setting of the parent {parent.name} ({where})")
        same = not config.diff({"x": had[key]}, {"x": change["from"]})
        require(same, f"`{key}` must be {change['from']!r:.80} in the parent, but {parent.name} has {had[key]!r:.80}"
                f" ({where})")  # fmt: skip
        moved = config.diff({"x": change["from"]}, {"x": change["to"]})
        require(bool(moved), f"`{key}` goes from {change['from']!r:.80} to itself in {path}: nothing would change")


def diff_text(diff: Mapping[str, Mapping[str, Any]], names: Mapping[str, str] | None = None) -> str:
    """algo.lr 0.3 -> 0.003, eval.episodes 4 -> 20; `names` are those of another program's settings"""
    called = {key: (names or {}).get(key, key) for key in diff}
    return ", ".join(f"{called[key]} {shown(each['from'])} -> {shown(each['to'])}" for key, each in diff.items())


def new_values(diff: Mapping[str, Mapping[str, Any]], names: Mapping[str, str] | None = None) -> str:
    """algo.lr 0.003, eval.episodes 20"""
    return ", ".join(f"{(names or {}).get(key, key)} {shown(change['to'])}" for key, change in diff.items())


def typed(value: Any) -> str:
    """A value as one would type it into a command, in full."""
    return "null" if value is None else str(value)


def shown(value: Any) -> str:
    """A value for the eye."""
    if isinstance(value, list) and len(value) > 8:
        return f"[{shown(value[0])} ... {shown(value[-1])}] ({len(value)})"
    return "null" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
