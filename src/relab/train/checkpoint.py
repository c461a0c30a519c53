"""Can a run go on exactly where it stood? A checkpoint is a folder of safetensors and JSON, never a pickle.

    checkpoints/step-000000065536/   weights.safetensors (the policy), state.safetensors (all other arrays), state.json
    checkpoints/latest.json          {"folder": ..., "step": ...}: where `resume` goes on
    checkpoints/best.json            the same, with the evidence for "best": metric, value, n, protocol

A folder is written under a temporary name, synced, then renamed, and only then pointed to: killed at any moment, the
last complete checkpoint is the one that counts.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load_file, save_file

from relab.base import blame, limits
from relab.base.documents import Document, Tree
from relab.base.enclosed import RecordError, open_plain, own
from relab.base.errors import UserError
from relab.base.jsonl import decode, encode, write_atomic, writing

SCHEMA = 1
ARRAYS = ("weights.safetensors", "state.safetensors")
# What a killed process of relab's may leave beside the checkpoints; anything else there is somebody's own.
LEFT = re.compile(r"\.writing-[0-9]+|\.going-step-[0-9]{12,15}|\.(?:latest|best)\.json\.tmp")


class DamagedError(ValueError):
    """A file of a checkpoint that its reader could not read."""


class CheckpointError(UserError):
    """A checkpoint that is missing, incomplete or from another schema."""


def save(root: Path, step: int, tree: Tree, progress: Document) -> str:
    """Write `tree` (nested dicts of arrays and plain values) and the run's `progress`; returns the folder's name."""
    name, tmp = f"step-{step:012d}", _own(root, f".writing-{os.getpid()}")
    if _own(root, name).exists():
        return name
    arrays, plain = split(tree)
    shutil.rmtree(tmp, ignore_errors=True)
    try:
        with writing(root / name):
            tmp.mkdir(parents=True)
        write(tmp, root / name, arrays, {"schema": SCHEMA, "step": step, "plain": plain, "progress": progress})
    except BaseException:
        shutil.rmtree(tmp, ignore_errors=True)  # half a checkpoint is of no use, and its room may be what is missing
        raise
    os.rename(tmp, root / name)
    sync(root)
    return name


def write(tmp: Path, folder: Path, arrays: dict[str, np.ndarray], body: Document) -> None:
    """The files of a checkpoint, safe on the disk; `folder` is what they will be called."""
    weights = {key.removeprefix("params."): a for key, a in arrays.items() if key.startswith("params.")}
    others = {key: a for key, a in arrays.items() if not key.startswith("params.")}
    for name, part in zip(ARRAYS, (weights, others)):
        with writing(folder / name, sum(array.nbytes for array in part.values())):
            save_file(part, tmp / name)
            sync(tmp / name)
    text = encode(body | {"sums": {name: digest(tmp / name) for name in ARRAYS}}, indent=True)
    with writing(folder / "state.json", len(text)):
        (tmp / "state.json").write_bytes(text)
        sync(tmp / "state.json")
        sync(tmp)


def load(root: Path, name: str) -> tuple[Tree, Document]:
    """(tree, progress) of one checkpoint folder; `name` is latest, best, a folder's name, or a step."""
    folder = locate(root, name)
    try:
        return read(folder)
    except (CheckpointError, RecordError):
        raise
    except Exception as error:  # each reader has its own kind of error for a damaged file
        raise CheckpointError(f"{folder} cannot be read ({_said(error)}); {instead(folder)}") from error


@contextlib.contextmanager
def taking(folder: Path) -> Iterator[None]:
    """Inside, what a checkpoint holds is put to use; what does not fit becomes an error that names the folder."""
    try:
        yield
    except (CheckpointError, RecordError):
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError) as error:
        if whose := blame.plugin(error):
            meant = isinstance(error, ValueError)  # how a plug-in refuses what it was given
            remedy = "" if meant else "; `load` and `load_agent` must take what `to_tree` gives"
            raise CheckpointError(f"{folder} could not be taken by {whose}: {_said(error)}{remedy}") from error
        raise CheckpointError(f"{folder} does not fit this run ({_said(error)}); {instead(folder)}") from error


def _said(error: Exception) -> str:
    return str(error) if isinstance(error, DamagedError) else f"{type(error).__name__}: {error}"


def instead(folder: Path) -> str:
    """What to do about a checkpoint that is of no use: the newest one before it that can be read."""
    for name in reversed(steps(folder.parent)):
        with contextlib.suppress(Exception):  # it may be damaged as well
            if step_of(name) < step_of(folder.name) and read(_own(folder.parent, name)):
                return (f"move it away, and `relab resume` goes on from step {step_of(name)}; other commands take"
                        f" --checkpoint {step_of(name)}")  # fmt: skip
    return "no checkpoint before it can be read: move it away, and `relab resume` begins at step 0"


def check_like(tree: Tree, pattern: Tree, at: str = "") -> None:
    """A number, a text, a list or a mapping must be one again; arrays and what was null are left to whoever loads."""
    for key, wanted in pattern.items():
        if key not in tree:
            raise ValueError(f"`{at}{key}` is missing")
        kind = next((kind for kind in ((int, float), str, list, dict) if isinstance(wanted, kind)), object)
        if not isinstance(tree[key], kind):
            raise ValueError(f"`{at}{key}` must be like {wanted!r:.40}, but is {tree[key]!r:.40}")
        if isinstance(wanted, dict):
            check_like(tree[key], wanted, f"{at}{key}.")


def read(folder: Path) -> tuple[Tree, Document]:
    files = {name: own(folder, name) for name in ("state.json", "state.safetensors", "weights.safetensors")}
    with _naming("state.json"):
        body = decode(limits.read_bytes(files["state.json"], limits.JSON))
    if body["schema"] != SCHEMA:
        raise CheckpointError(f"{folder} has schema {body['schema']!r:.40}, this relab reads {SCHEMA}")
    check_like(body, {"plain": {}, "progress": {}})
    with _naming("state.safetensors"):
        arrays = load_checked(files["state.safetensors"], body)
    with _naming("weights.safetensors"):
        arrays |= {f"params.{key}": a for key, a in load_checked(files["weights.safetensors"], body).items()}
    return join(arrays, dict(body["plain"])), body["progress"]


def load_checked(file: Path, body: Document) -> dict[str, np.ndarray]:
    """A file's arrays; ValueError where it is not the one that was written. A flipped bit is a number all the same."""
    wanted = body.get("sums", {}).get(file.name)  # older checkpoints have none
    if wanted is not None and digest(file) != wanted:
        raise ValueError("it was changed after the run wrote it (its checksum differs)")
    return load_file(file)


def digest(file: Path) -> str:
    with open_plain(file) as content:
        return hashlib.blake2b(content.read(), digest_size=16).hexdigest()


def read_progress(root: Path, name: str) -> Document:
    """Where the run stood at one checkpoint, without its arrays."""
    return decode(limits.read_bytes(own(_own(root, name), "state.json"), limits.JSON))["progress"]


@contextlib.contextmanager
def _naming(file: str) -> Iterator[None]:
    """Inside, one file of a checkpoint is read; its readers' errors do not say which."""
    try:
        yield
    except Exception as error:
        raise DamagedError(f"its {file}: {type(error).__name__}: {error}") from error


def locate(root: Path, name: str) -> Path:
    """The folder that `name` means. Nothing outside of `root` is ever opened, and nothing that is half-written."""
    if name in ("latest", "best"):
        pointer = read_pointer(root, name)
        if pointer is None:
            have = ", ".join(steps(root)) or "none"
            raise CheckpointError(f"{root} has no `{name}` checkpoint (folders there: {have})")
        name = pointer["folder"]
    name = f"step-{int(name):012d}" if re.fullmatch(r"[0-9]{1,15}", name) else name
    if name not in steps(root):
        raise CheckpointError(f"{root} has no checkpoint {name!r}; it has: {', '.join(steps(root)) or 'none'}")
    return _own(root, name)


def _own(root: Path, name: str = "") -> Path:
    """A place in the folder of the checkpoints; neither it nor that folder is a link out of the run's."""
    return own(root.parent, os.path.join(root.name, name))


def point(root: Path, name: str, folder: str, step: int, **evidence: Any) -> None:
    """Let latest.json or best.json point to a folder, in one atomic move."""
    write_atomic(_own(root) / f"{name}.json", encode({"folder": folder, "step": step, **evidence}, indent=True))


def read_pointer(root: Path, name: str) -> Document | None:
    path = _own(root, f"{name}.json")
    if not path.exists():
        return None
    try:
        pointer = decode(limits.read_bytes(path, limits.SETTINGS))
        return pointer | {"folder": str(pointer["folder"])}
    except (OSError, ValueError, TypeError, KeyError) as error:
        what = f"{type(error).__name__}: {error}"
        raise CheckpointError(f"{path} cannot be read ({what}); delete it, or name a step instead") from error


def steps(root: Path) -> list[str]:
    """Names of the complete checkpoint folders, oldest first."""
    whole = re.compile(r"step-[0-9]{12,15}")
    there = (path for path in _own(root).glob("step-*") if path.is_dir() and not path.is_symlink())
    return sorted((path.name for path in there if whole.fullmatch(path.name)), key=step_of)


def prune(root: Path, keep: int) -> None:
    """Leave the newest `keep` folders, and those that latest and best point to."""
    pointed = {pointer["folder"] for name in ("latest", "best") if (pointer := read_pointer(root, name))}
    for name in steps(root)[: -keep or None]:
        if name not in pointed:
            remove(root, name)


def last(root: Path) -> str | None:
    """The folder to go on from: that of `latest`, or where somebody deleted it the newest before it; None without."""
    pointer = read_pointer(root, "latest")
    if pointer is None:
        return None
    there = steps(root)
    older = [name for name in there if step_of(name) <= int(pointer.get("step", 0))]
    return pointer["folder"] if pointer["folder"] in there else older[-1] if older else None


def clean(root: Path, step: int) -> None:
    """Before going on from `step` (-1: from the start): remove what a killed process left, and what points nowhere."""
    for path in [path for path in _own(root).glob(".*") if LEFT.fullmatch(path.name)]:
        shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
    for name in ("latest", "best"):
        pointer = read_pointer(root, name)
        if pointer is not None and (pointer["folder"] not in steps(root) or step_of(pointer["folder"]) > step):
            _own(root, f"{name}.json").unlink()
    for name in steps(root):
        if step_of(name) > step:
            remove(root, name)


def remove(root: Path, name: str) -> None:
    """Delete a folder: out of sight first, so that a kill in between leaves no half of a checkpoint under its name."""
    hidden = _own(root, f".going-{name}")
    os.rename(_own(root, name), hidden)
    shutil.rmtree(hidden)


def step_of(name: str) -> int:
    return int(name.removeprefix("step-"))


def split(tree: Tree, prefix: str = "") -> tuple[dict[str, np.ndarray], Document]:
    """A nested tree as (arrays by dotted path, the rest as nested plain values)."""
    arrays: dict[str, np.ndarray] = {}
    plain: Document = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            inner, rest = split(value, f"{prefix}{key}.")
            arrays |= inner
            if rest or not inner:
                plain[key] = rest
        elif hasattr(value, "__array__"):
            if prefix.count(".") > 1 or (not prefix and "." in key):  # `join` could not tell where to put it
                raise ValueError(f"arrays lie one or two levels deep, below a name without dots, but got {prefix}{key}")
            arrays[prefix + key] = np.asarray(value.detach().cpu() if hasattr(value, "cpu") else value, order="C")
        else:
            plain[key] = value
    return arrays, plain


def join(arrays: dict[str, np.ndarray], plain: Document) -> Tree:
    """The inverse of `split` for trees with arrays one or two levels deep; names on the second may hold dots."""
    tree = dict(plain)
    for path, array in arrays.items():
        head, dot, tail = path.partition(".")
        owner = tree.setdefault(head, {}) if dot else tree
        owner[tail if dot else head] = array
    return tree


def fingerprint(arrays: Tree) -> str:
    """A hash of named arrays: runs that begin with the same weights have the same one."""
    digest = hashlib.blake2b(digest_size=8)
    for name, array in sorted(split(arrays)[0].items()):
        digest.update(name.encode() + array.tobytes())
    return digest.hexdigest()


def sync(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
