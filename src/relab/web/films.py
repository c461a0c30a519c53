"""Which films and pictures does a run have? Those in its folder `media` that a browser shows and cannot run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from relab.base.enclosed import listed
from relab.base.errors import NotFoundError
from relab.runs.grouping import Run

KINDS = {".mp4": "video/mp4", ".webm": "video/webm", ".gif": "image/gif", ".png": "image/png", ".jpg": "image/jpeg",
         ".jpeg": "image/jpeg", ".webp": "image/webp"}  # fmt: skip
STEP = re.compile(r"step-0*(\d+)-?")
TITLE = re.compile(r"(?P<mode>det|sampled)-(?:seed-(?P<seed>\d+)|(?P<which>worst|best|median|\d+))")
LARGEST = 1 << 29  # bytes of a film that is served
MOST = 60


@dataclass(frozen=True)
class Film:
    """A file of a run's media."""

    run: str
    file: str
    kind: str  # video or image
    title: str  # without its step: films of one title are of one seed at several checkpoints
    step: int | None


def of_runs(runs: Sequence[Run]) -> list[tuple[str, list[Film]]]:
    """Films that belong side by side: of one kind of episode, by their checkpoints."""
    rows: dict[str, list[Film]] = {}
    for run in runs:
        for path in _files(run.history.folder)[:MOST]:
            match = STEP.search(path.name)
            title = said(STEP.sub("", path.stem).strip("-") or path.stem)
            kind = KINDS[path.suffix.lower()].partition("/")[0]
            film = Film(run.name, path.name, kind, title, int(match[1]) if match else None)
            rows.setdefault(f"{run.name}: {title}" if len(runs) > 1 else title, []).append(film)
    return [(title, sorted(films, key=lambda film: film.step or 0)) for title, films in sorted(rows.items())]


def said(title: str) -> str:
    """What a row of films shows; one world at several checkpoints has a seed, episodes of evaluations have not.

    >>> said("det-seed-0"), said("sampled-worst"), said("det-3"), said("curve")
    ('world of seed 0, deterministic actions', 'worst episode of each evaluation, sampled actions', 'episode 3 of each \
evaluation, deterministic actions', 'curve')
    """
    match = TITLE.fullmatch(title)
    if match is None:
        return title
    how = {"det": "deterministic actions", "sampled": "sampled actions"}[match["mode"]]
    what = f"world of seed {match['seed']}" if match["seed"] else (
        f"episode {match['which']} of each evaluation" if match["which"].isdigit() else
        f"{match['which']} episode of each evaluation")  # fmt: skip
    return f"{what}, {how}"


def _files(folder: Path) -> list[Path]:
    return [path for path in listed(folder, "media") if path.suffix.lower() in KINDS and path.is_file()]


def find(folder: Path, file: str) -> tuple[Path, str]:
    """A film by its name, out of the list of those that are there; nothing of the name is taken for a path."""
    for path in _files(folder):
        if path.name == file and path.stat().st_size <= LARGEST:
            return path, KINDS[path.suffix.lower()]
    raise NotFoundError("there is no such film in the run's media, or it is too large to be served")
