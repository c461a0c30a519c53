"""How are all runs below a path written in another format? One after the other; the target appears when all are there.

A finished target holds conversion.json: what was converted, and each file with its hash. Only such a target, unchanged,
is ever replaced, and only by a conversion of the same source to the same format.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from relab.base import blame
from relab.base.documents import Document
from relab.base.jsonl import RecordError, encode, read_json, writing
from relab.config.base import require
from relab.formats.read import common, find
from relab.formats.read.hints import Hints, of_folder
from relab.formats.read.source import Source
from relab.formats.read.unread import Unread
from relab.formats.write.naming import NAMES, folder_name

TARGETS: dict[str, str] = {
    "relab": "relab.formats.write.relab_run",
    "tensorboard": "relab.formats.write.tensorboard_files",
    "csv": "relab.formats.write.csv_tables",
    "mlflow": "relab.formats.write.mlflow_files",
    "wandb": "relab.formats.write.wandb_files",
    "loop": "relab.formats.write.loop_files",
}
MARK, SCHEMA = "conversion.json", 1
SAME = ("source", "to", "names")


@dataclass(frozen=True)
class Converted:
    """A run that was written, and how much of it there is."""

    run: str
    format: str
    folder: str
    metrics: int
    values: int
    evaluations: int
    problems: int

    def to_json(self) -> Document:
        return {("as" if key == "folder" else key): value for key, value in vars(self).items()}


@dataclass(frozen=True)
class Broken:
    """A run that could not be read."""

    run: str
    why: str


@dataclass
class Written:
    """What became of the runs."""

    source: str
    to: str
    names: str
    out: Path
    runs: list[Converted] = field(default_factory=list)
    broken: list[Broken] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)  # path below the target -> hash

    def to_json(self) -> Document:
        return {"schema": SCHEMA, "source": self.source, "to": self.to, "names": self.names,
                "runs": [run.to_json() for run in self.runs], "broken": [vars(gone) for gone in self.broken],
                "not_read": [gone._asdict() for gone in self.unread]}  # fmt: skip


def convert(
    path: str | os.PathLike[str],
    to: str,
    out: str | os.PathLike[str],
    names: str = "relab",
    hints: Hints | None = None,
    tell: find.Tell = lambda done, total, name: None,
) -> Written:
    """Every run at or below `path`, of any format, below `out`. The source is only read."""
    root, target = Path(path), Path(out)
    require(to in TARGETS, f"runs are converted to {', '.join(TARGETS)}, but not to {to!r}")
    require(names in NAMES, f"`names` must be relab or original, but is {names!r}")
    written = Written(str(root.resolve()), to, names, target)
    check_place(root, target, written)
    besides = of_folder(root) if hints is None else hints
    with common.also(besides.mapping):
        sources = list(find.find(root, written.unread))
    if not sources:
        raise find.nothing(root, written.unread)
    target.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}-"))
    try:
        part.chmod(0o755)
        _write_all(sources, part, written, besides, tell)
        _finish(part, target, written)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return written


def _write_all(sources: list[Source], part: Path, written: Written, hints: Hints, tell: find.Tell) -> None:
    """Run by run, so that memory holds one of them; one that cannot be read is named, and the others are written."""
    module, taken = importlib.import_module(TARGETS[written.to]), {MARK, "wide", "mlruns"}
    for number, source in enumerate(sources):
        tell(number, len(sources), source.name)
        try:
            run = find.Loaded(source, find.read(source, hints))
        except Exception as error:  # whatever a stranger's folder holds
            written.broken.append(Broken(source.name, blame.reason(error)))
            continue
        folder = part / (getattr(module, "PREFIX", "") + folder_name(_called(source), taken))
        with writing(written.out / folder.name):
            module.write(run, folder, written.names)
        written.runs.append(_converted(run, folder.name))


def _called(source: Source) -> str:
    """The run's name, without the ending of the one file that it is."""
    whole = source.path.is_file() and not source.key and source.name.endswith(source.path.suffix)
    return source.name.removesuffix(source.path.suffix) if whole else source.name


def _converted(run: find.Loaded, folder: str) -> Converted:
    history = run.history
    values = sum(len(column.steps) for column in history.columns.values())
    return Converted(run.name, run.source.format, folder, len(history.columns), values, len(history.evals),
                     len(history.problems))  # fmt: skip


def _finish(part: Path, target: Path, written: Written) -> None:
    if not written.runs:
        raise RecordError(f"no run could be read: {written.broken[0].run}: {written.broken[0].why}")
    written.files = hashes(part)
    with writing(target / MARK):
        (part / MARK).write_bytes(encode({**written.to_json(), "files": written.files}, indent=True))
    if target.exists():  # empty, or a finished conversion of the same, unchanged: check_place saw to it
        shutil.rmtree(target)
    os.replace(part, target)


def hashes(folder: Path) -> dict[str, str]:
    """What each file holds, in short; a link is none of relab's, and is not followed."""
    files = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or path.is_file()]
    return {path.relative_to(folder).as_posix(): _hash(path) for path in files if path != folder / MARK}


def _hash(path: Path) -> str:
    if path.is_symlink():
        return "link"
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


# ---- Where it may go


def check_place(root: Path, target: Path, written: Written) -> None:
    """Never into the source, never over something else."""
    here, there = root.resolve(), target.resolve()
    inside = there == here or here in there.parents
    require(not inside, f"`--out` must lie outside of what is converted, but {target} is in {root}")
    require(not target.is_symlink(), f"`--out` must be a folder, but {target} is a link")
    if not target.exists():
        return
    require(target.is_dir(), f"`--out` must be a folder, but {target} is a file")
    if any(target.iterdir()):
        _check_same(target, written)


def _check_same(target: Path, written: Written) -> None:
    try:
        before = read_json(target, MARK)
    except (RecordError, OSError):
        before = {}
    require(bool(before), f"`--out` must be new or empty, but {target} holds files of something else")
    now = {"source": written.source, "to": written.to, "names": written.names}
    other = [f"{key} {before.get(key)!r}, not {now[key]!r}" for key in SAME if before.get(key) != now[key]]
    require(not other, f"{target} holds another conversion ({'; '.join(other)}); give another `--out`")
    kept, here = before.get("files"), hashes(target)
    changed = sorted(set(here.items()) ^ set(kept.items())) if isinstance(kept, dict) else [("all files", "")]
    require(not changed, f"{target} was changed after its conversion ({changed[0][0] if changed else ''});"
            " give another `--out`, or move it away")  # fmt: skip
