"""Which weights does a run begin with, where `start_from` names another run? That run's weights, and nothing else.

    relab train ppo env=cartpole start_from=runs/a@best start_parts=actor

What fits by name and shape is taken, with the scale of observations, without which weights mean nothing; what does not
fit is told with both shapes, and stays fresh. Optimiser, counters, random streams and replay are the new run's own.
The weights are in the new run's first checkpoint, so that it goes on without the other one.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Document, Tree
from relab.base.enclosed import RecordError, inside, is_path
from relab.base.errors import NotFoundError, UserError
from relab.config.base import ConfigError, require
from relab.config.registry import UntrustedError
from relab.record import names
from relab.record.run_folder import read_meta
from relab.train import checkpoint

PARAMS, SCALE = "params", "obs_scale"  # of a checkpoint's tree: all that is taken
SHIPPED = "shipped:"  # shipped:pickcube-gantry@65536 is a checkpoint that relab brings with it
SHELF = Path(__file__).parent / "shipped"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Source:
    """A checkpoint of another run, as far as weights go."""

    run: str
    id: str
    config_hash: str
    checkpoint: str  # latest, best, or a step
    step: int
    arrays: dict[str, Arrays]  # params, and obs_scale where it has one
    env: str = ""  # that it was trained on

    @property
    def name(self) -> str:
        return f"{self.run}@{self.checkpoint}"


@dataclass(frozen=True)
class Inherited:
    """What a run takes over of it, and what not."""

    source: Source
    taken: dict[str, Arrays]
    other_shape: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = field(default_factory=dict)  # there, here
    left: tuple[str, ...] = ()  # there, but not asked for or unknown here
    fresh: tuple[str, ...] = ()  # here, and begun anew

    def facts(self) -> Document:
        """For meta.json."""
        s, shapes = self.source, {n: {"there": list(a), "here": list(b)} for n, (a, b) in self.other_shape.items()}
        about = {"run": s.run, "id": s.id, "checkpoint": s.checkpoint, "step": s.step, "config_hash": s.config_hash}
        return about | {"taken": sorted(self.taken[PARAMS]), "scale": SCALE in self.taken, "left": sorted(self.left),
                        "other_shape": shapes, "fresh": sorted(self.fresh)}  # fmt: skip

    def line(self) -> str:
        """One line for the screen."""
        n, own = len(self.taken[PARAMS]), len(self.taken[PARAMS]) + len(self.fresh)
        scale = " and its scale of observations" if SCALE in self.taken else ""
        wrong = [f"{name} ({shape_text(a)} there, {shape_text(b)} here)" for name, (a, b) in self.other_shape.items()]
        rest = [*wrong, *by_part([name for name in self.fresh if name not in self.other_shape], self.taken[PARAMS])]
        anew = f"; fresh: {', '.join(rest[:3])}{f' and {len(rest) - 3} more' if len(rest) > 3 else ''}" if rest else ""
        return f"starts from {self.source.name} (step {self.source.step:,}): {n} of {own} weights{scale}{anew}"


def by_part(names: list[str], taken: Arrays) -> list[str]:
    """Weights by the part of a network that they are, where nothing of it was taken: actor, critic."""
    heads = {head_of(name) for name in taken}
    return list(dict.fromkeys(name if head_of(name) in heads else head_of(name) for name in names))


def head_of(name: str) -> str:
    return re.split(r"[/.]", name)[0]


def shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape)) or "a number"


# ---- Finding the other run


def find(word: str, runs: Path, kept: Mapping[str, Any] | None = None) -> Source:
    """The checkpoint that `start_from` means; ConfigError where there is none.

    `kept`: run and step that it meant when the run began, which may have gone on since.
    """
    try:
        folder, name = locate(word, runs)
        where = checkpoint.locate(folder / "checkpoints", str(kept["step"]) if kept else name)
        tree, _ = checkpoint.load(folder / "checkpoints", where.name)
        meta = read_meta(folder)
    except (UserError, OSError) as error:
        raise ConfigError(f"`start_from` must name a run and one of its checkpoints (RUN, RUN@best, RUN@STEP), but"
                          f" {word!r:.200} does not: {error}") from None  # fmt: skip
    require(not kept or str(kept.get("id") or "") == str(meta.get("id") or ""), f"the run began with weights of the run"
            f" {kept and kept.get('id')}, but {folder} is now {meta.get('id')}; start it anew")  # fmt: skip
    parts = {part: tree[part] for part in (PARAMS, SCALE) if isinstance(tree.get(part), dict)}
    arrays = {part: {key: a for key, a in each.items() if isinstance(a, np.ndarray)} for part, each in parts.items()}
    about = folder.resolve().name, str(meta.get("id") or ""), str(meta.get("config_hash") or "")
    spec = meta.get("spec")
    trained_on = str(spec.get("env") or "") if isinstance(spec, dict) else ""
    return Source(*about, name, checkpoint.step_of(where.name), arrays, trained_on)


def locate(word: str, runs: Path) -> tuple[Path, str]:
    """runs/a@best -> the run's folder, best; a run whose own name holds an @ is found as well."""
    require(is_path(word), f"no folder can be called {word!r:.80}")
    run, at, name = word.rpartition("@")
    if word.startswith(SHIPPED):
        return shipped((run or word).removeprefix(SHIPPED)), name if at else "latest"
    if not at:
        return names.find(word, runs), "latest"
    require(bool(run), "there is no run before the @")
    try:
        return names.find(run, runs), name
    except NotFoundError:
        if (Path(word) / "meta.json").is_file() or (runs / word / "meta.json").is_file():
            return names.find(word, runs), "latest"
        raise


def shipped(name: str) -> Path:
    """The folder of checkpoints that relab brings with it."""
    there = sorted(path.parent.name for path in SHELF.glob("*/meta.json"))
    require(name in there, f"relab ships checkpoints of {', '.join(there)}, but none of {name!r:.80}")
    return SHELF / name


def check_record(word: str, record: str, runs: Path, typed: str = "") -> None:
    """A record that somebody sent may name runs of the current folder, or by name; others are read only with trust.

    `runs`: where names are looked up, too. `typed`: what the user himself has written, where he may name any run.
    """
    run = word.rpartition("@")[0] or word
    if word.startswith(SHIPPED):
        return
    try:
        here = is_path(run) and all(inside(place, run) is not None for place in (Path.cwd(), runs))
    except RecordError:
        here = False
    if not here and word not in typed:
        raise UntrustedError(
            f"the record ({record}) starts from a run outside of the current folder, {word!r:.200}; its weights are"
            " read only if you trust it (from Python: trust=True)"
        )


# ---- What fits


def fitting(source: Source, own: Tree, parts: tuple[str, ...], env: str = "") -> Inherited:
    """What a run on `env` whose state is `own` (a tree) takes of a checkpoint; ConfigError where that is nothing."""
    there, here = source.arrays.get(PARAMS, {}), checkpoint.split({PARAMS: own[PARAMS]})[0]
    here = {key.removeprefix(f"{PARAMS}."): array for key, array in here.items()}
    chosen = {key: array for key, array in there.items() if not parts or any(is_part(key, part) for part in parts)}
    for part in parts:
        known = ", ".join(dict.fromkeys(head_of(key) for key in there))
        require(any(is_part(key, part) for key in there),
                f"`start_parts` names {part!r}, but {source.name} has no such weights; it has {known}")  # fmt: skip
    both = {key: (array.shape, here[key].shape) for key, array in chosen.items() if key in here}
    taken = {key: chosen[key].astype(here[key].dtype) for key, (a, b) in both.items() if a == b}
    shapes = {key: pair for key, pair in both.items() if key not in taken}
    check_taken(source, taken, shapes, list(here), env)
    whole = {PARAMS: taken} | scale_of(source, own)
    left, fresh = (tuple(k for k in each if k not in taken) for each in (there, here))
    return Inherited(source, whole, shapes, left, fresh)


def is_part(name: str, part: str) -> bool:
    """actor/0/weight belongs to actor, and is a part of its own as well."""
    return name == part or name.startswith((f"{part}/", f"{part}."))


def other_env(source: Source, env: str) -> str:
    """Said where another run was trained on something else, which is why its weights do not fit."""
    apart = source.env and env and source.env != env
    return f" (it was trained on {source.env}, and this run is on {env})" if apart else ""


def check_taken(source: Source, taken: Arrays, shapes: Document, here: list[str], env: str = "") -> None:
    some = list(shapes.items())[:3]
    wrong = "; ".join(f"{name} is {shape_text(a)} there and {shape_text(b)} here" for name, (a, b) in some)
    named = f"it has {', '.join(list(source.arrays.get(PARAMS, {}))[:4])} ..., and this run {', '.join(here[:4])} ..."
    require(bool(taken), f"nothing of {source.name} fits this run{other_env(source, env)}: {wrong or named}; weights"
            " fit by name and shape: use the same algorithm, layers and observation, or leave `start_from` out"
            )  # fmt: skip
    bad = [name for name, array in taken.items() if not np.isfinite(array).all()]
    require(not bad, f"the weights of {source.name} are not finite ({', '.join(bad[:3])}): the run had diverged; start"
            f" from an earlier checkpoint, e.g. {source.run}@best")  # fmt: skip


def require_whole(inherited: Inherited, parts: tuple[str, ...] = (), env: str = "") -> None:
    """ConfigError where some of what was asked for is of another size: what is left would be half a network.

    `parts`: those that this is asked of; all without. `env`: what this run is on.
    """
    wrong_size = inherited.other_shape.items()
    some = [(k, v) for k, v in wrong_size if not parts or any(is_part(k, part) for part in parts)]
    n = len(inherited.taken[PARAMS])
    wrong = "; ".join(f"{name} is {shape_text(a)} there and {shape_text(b)} here" for name, (a, b) in some[:3])
    apart = other_env(inherited.source, env)
    why = f"does not fit{apart}" if apart else "is of another size"
    remedy = (f"start from a run on {env}" if apart else "use the sizes of that run (`--parent` takes its settings"
              " over)")  # fmt: skip
    require(not some, f"{inherited.source.name} {why}: {len(some)} of the {len(some) + n} weights that would be taken"
            f" do not fit ({wrong}), and a part of a network means nothing; {remedy}, or leave `start_from` out"
            )  # fmt: skip


def require_borrowed(parts: tuple[str, ...], fresh: tuple[str, ...]) -> None:
    """ConfigError where weights that never learn in this run would stay as they were drawn."""
    drawn = [name for name in fresh if any(is_part(name, part) for part in parts)]
    require(not drawn, f"nothing learns {' and '.join(parts)} in this run, so all of it must come from another, but"
            f" {', '.join(drawn[:3])}{f' and {len(drawn) - 3} more' if len(drawn) > 3 else ''} would stay as drawn:"
            f" give `start_from=RUN` of the same sizes and kind of observations, and let `start_parts` name"
            f" {' and '.join(parts)} or nothing")  # fmt: skip


def scale_of(source: Source, own: Tree) -> dict[str, Arrays]:
    """The scale of observations, where both have one of the same shape."""
    there, here = source.arrays.get(SCALE, {}), own.get(SCALE, {})
    same = bool(there) and {k: a.shape for k, a in there.items()} == {k: np.shape(a) for k, a in here.items()}
    return {SCALE: there} if same else {}


# ---- Putting it in


def put(algo: Any, state: Any, inherited: Inherited) -> None:
    """Give a state the weights. It is asked as `to_tree` and `load` let everybody; slow copies then follow."""
    arrays, plain = checkpoint.split(state.to_tree())
    tree = checkpoint.join({key: array.copy() for key, array in arrays.items()}, copy.deepcopy(plain))
    for part, values in inherited.taken.items():
        tree[part] |= values
    state.load(tree)
    getattr(algo, "follow_weights", lambda state: None)(state)  # optional in the contract
