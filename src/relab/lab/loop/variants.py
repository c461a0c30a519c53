"""Are the files that say what each config is as the loop wrote them? By their hashes in the journal's sealed rows.

A run of relab's trainer starts from them, and every change is laid over its parent's. A run that rewrote them would
have a change measured and kept that nobody proposed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from relab.base import limits
from relab.base.documents import Document, Settings
from relab.base.enclosed import own
from relab.base.jsonl import write_atomic
from relab.config import layers
from relab.lab.loop.journal import State, Trial
from relab.lab.loop.lock import TamperedError
from relab.lab.loop.plan import BASE

FILES = "files"  # of a proposal's row: file -> hash
PROPOSED = ("parent", "diff", "rationale", "checks", "predicted", "cost", "resume_from")  # what its file holds

Hashes = Mapping[str, str]  # file -> hash


def of_config(config: str) -> str:
    return f"variants/{config}.yaml"


def of_proposal(config: str) -> str:
    return f"proposals/{config}.yaml"


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def written(settings: Settings) -> bytes:
    return layers.format_yaml(dict(settings)).encode()


def known(state: State, base: str) -> Hashes:
    """Every file that a sealed row names; `base`: the hash of the base's, which follows from loop.yaml."""
    files = {of_config(BASE): base} if base else {}
    for trial in state.trials:
        files |= trial.proposal.get(FILES) or {}  # none in a loop of an earlier relab
    return files


def other(folder: Path, name: str, files: Hashes) -> bool:
    return name in files and _hash_now(folder, name) != files[name]


def _hash_now(folder: Path, name: str) -> str:
    path = own(folder, name)
    return digest(limits.read_bytes(path, limits.JSON)) if path.is_file() else "missing"


def check(folder: Path, files: Hashes) -> None:
    for name in files:
        if other(folder, name, files):
            raise _tampered(folder, name, files[name], _hash_now(folder, name))


def _tampered(folder: Path, name: str, before: str, now: str) -> TamperedError:
    return TamperedError(
        f"{folder / name} must be as this loop wrote it, but is other ({before} -> {now}): another program wrote to it,"
        " a run of this loop perhaps; call the loop again, which writes it anew (what ran meanwhile is run again)"
    )


def read(folder: Path, config: str, files: Hashes) -> Settings:
    """The flat settings of a config, of the very bytes that were looked at."""
    name = of_config(config)
    if name not in files:
        return layers.flatten(layers.read_yaml(own(folder, name)))
    path = own(folder, name)
    data = limits.read_bytes(path, limits.JSON) if path.is_file() else b""
    if digest(data) != files[name]:
        raise _tampered(folder, name, files[name], digest(data))
    return layers.flatten(layers.parse_yaml(data.decode()))


def restore(folder: Path, trial: Trial, settings: Callable[[], Settings], tell: Callable[[str], None]) -> None:
    """Write anew what is other, where the journal says what it held."""
    body: Document = {key: trial.proposal[key] for key in PROPOSED if key in trial.proposal}
    files = trial.proposal.get(FILES) or {}
    for name, make in ((of_config(trial.name), lambda: written(settings())),
                       (of_proposal(trial.name), lambda: written(body))):  # fmt: skip
        if other(folder, name, files) and digest(data := make()) == files[name]:
            write_atomic(own(folder, name), data)
            tell(f"{folder / name} was other than this loop wrote it, and is written anew")
