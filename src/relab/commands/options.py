"""Which options do several commands have? Each has one meaning and one description."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from relab.base.errors import NotFoundError
from relab.commands.parsing import named
from relab.record import names

TOOLS = {"sb3": "Stable-Baselines3", "cleanrl": "CleanRL", "rllib": "RLlib"}  # formats by the names of their tools
OneRun = Annotated[tyro.conf.Positional[str], tyro.conf.arg(help="name, part of a name, id or folder of the run")]
SomeRuns = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(help="runs: name, part of a name, id, folder, or a pattern like 'sweep-*'"),
]
RunsFolder = Annotated[Path, tyro.conf.arg(help="folder that holds the runs")]
Trust = Annotated[
    bool,
    tyro.conf.arg(help="run code that the record itself names (env or algo as package.module:Name, gym:module:Id)"),
]
AsJson = Annotated[bool, tyro.conf.arg(help="print as JSON")]
ProgressAsJson = Annotated[bool, tyro.conf.arg(help="print progress as JSON lines")]
DryRun = Annotated[bool, tyro.conf.arg(help="say what would be done and written, and do nothing")]
Quiet = Annotated[bool, tyro.conf.arg(help="print nothing while training")]
Checkpoint = Annotated[str, tyro.conf.arg(help="best, latest, or a step")]
EnvChanges = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(help="parameters of the environment to change for this (env.key=value)"),
]
Workers = Annotated[int | None, tyro.conf.arg(help="runs at a time; default: one per core")]
Unasked = Annotated[bool, tyro.conf.arg(help="do not ask")]
ResultAsJson = Annotated[
    bool, tyro.conf.arg(help="print the result as JSON; asks nothing (a file with a `command` then needs --yes)")
]


@dataclass(frozen=True)
class Planned:
    """Many runs that a file describes, in a folder of their own; a subclass says below which `root`."""

    file: tyro.conf.Positional[Path]
    """what to run: a YAML file"""
    name: str | None = None
    """name of its folder; default: the file's name"""
    root: Path = Path()
    workers: Workers = None
    on: str | None = None
    """local, ray, ray:ADDRESS or slurm; default: `execute` of the file, else this machine (docs/cluster.md)"""
    only: str | None = None
    """make this run alone, by its name, without an answer"""
    yes: bool = False
    """start without asking, the command of the file too"""
    dry_run: DryRun = False

    def folder(self) -> Path:
        return self.root / self.file.stem if self.name is None else named(self.root, self.name)


def own_run(word: str, root: Path) -> Path:
    """The folder of a run whose policy relab can act with; of another tool's run it cannot."""
    try:
        return names.find(word, root)
    except NotFoundError:
        if theirs := _format_of(Path(word)):
            raise NotFoundError(f"{word} holds what {theirs} wrote, and relab cannot act with another tool's policy: it"
                                " reads such runs (examine, report, compare), and trains, evaluates and films its own"
                                ) from None  # fmt: skip
        raise


def _format_of(path: Path) -> str:
    """The tool that wrote the first run at or below a path; empty where there is none."""
    from relab.formats.read import find

    source = next(find.find(path), None) if path.exists() else None
    return "" if source is None or source.format == "relab" else TOOLS.get(source.format, source.format)


@dataclass(frozen=True)
class OfCheckpoint:
    """One checkpoint of one run."""

    run: OneRun
    checkpoint: Checkpoint = "best"
    runs: RunsFolder = Path("runs")
    trust: Trust = False
    dry_run: DryRun = False

    def folder(self) -> Path:
        return own_run(self.run, self.runs)
