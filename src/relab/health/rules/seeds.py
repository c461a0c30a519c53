"""Does the seed decide about a run, and about nothing else? Runs of one seed, of several, and evaluations."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import numpy as np

from relab.base.documents import Document
from relab.base.numbers import to_int
from relab.base.streams import world_of
from relab.formats.read import logged_settings
from relab.health.rule import Evidence, Finding, Missing, rule
from relab.health.view import View, ViewGroup, episodes
from relab.record.state import group_key, seed_of
from relab.runs.identity import ROUNDING, parting

MOST_WORLDS = 2**32  # beyond, a seed that was drawn elsewhere is one of them by chance
SEEDS = 2**64  # that a stream can give


@rule(
    "evaluation-on-training-seeds",
    about="evidence",
    algos=(),
    severity="warning",
    names=("evaluated-on-training-streams",),
)
def evaluation_on_training_seeds(view: View) -> Finding | None:
    """
    What: evaluation episodes begin with the seeds that the training worlds began with.
    Why: the policy is judged on what it was trained on; the score says nothing about new episodes.
    Known problems: only relab's own streams are known.
    Refuted by: training and evaluation being meant to share their episodes.
    Try: take the evaluation's seeds from a stream of its own.
    """
    seed, worlds = seed_of(view.history, view.name), view.config.get("algo.envs")
    if not view.history.trained_by_relab or not isinstance(seed, int) or not isinstance(worlds, int):
        raise Missing("relab's own seeds")
    rows = [(row, _begun(row)) for row in view.history.evals]
    if not rows:
        raise Missing("evaluations with their episodes")
    most = max(min(worlds, MOST_WORLDS), max(len(begun) for _, begun in rows))
    shared = [row for row, begun in rows if any(world_of(s, seed, "env") < most for s in begun)]
    if not shared:
        return None
    message = f"{len(shared)} of {len(rows)} evaluations begin from the training worlds' seeds"
    return Finding(message, float(len(shared)), to_int(shared[0].get("step")) or 0, confidence="high")


def _begun(row: Document) -> set[int]:
    """Seeds of an evaluation's episodes, those that a stream can have given."""
    return {s for e in episodes(row) if type(s := e.get("seed")) is int and 0 <= s < SEEDS}


@rule(
    "duplicated-seeds",
    about="evidence",
    algos=(),
    severity="warning",
    scope="folder",
    names=("seeds-duplicated",),
)
def duplicated_seeds(groups: list[ViewGroup]) -> Finding | None:
    """
    What: runs with different seeds are the same run: every metric of training equals in every row.
    Why: the seed does not reach the program; what looks like several runs is one, and its spread is 0.
    Known problems: a task without any randomness repeats itself rightly, and is rare.
    Refuted by: a program that has no random numbers.
    Try: check where the seed goes: networks, worlds, batches.
    """
    for group in [each for each in groups if len(each.views) > 1]:
        seen: dict[str, View] = {}
        for view in group.views:
            mark = _fingerprint(view)
            twin = seen.setdefault(mark, view) if mark else view
            if twin is not view and _seed(twin) != _seed(view):
                message = f"{twin.name} (seed {_seed(twin)}) and {view.name} (seed {_seed(view)}) are the same run"
                return Finding(message, 2.0, 0, [Evidence("all metrics of training", [], [], "equal in every row")],
                               confidence="high")  # fmt: skip
    if not any(len(group.views) > 1 for group in groups):
        raise Missing("two runs of one config")
    return None


@rule("same-seed-differs", about="evidence", algos=(), scope="folder")
def same_seed_differs(groups: list[ViewGroup], *, rounding: float = ROUNDING) -> Finding | None:
    """
    What: two runs of one config and one seed differ at a step that both have, by more than rounding.
    Why: the seed does not fix the run, so what is put down to a change may be what another try gives by itself; the
        difference between two tries is a first measure of that noise.
    Known problems: another machine, thread count or version changes the last digits, and training enlarges them; a GPU
        is not deterministic by itself. A config may leave out what was changed in the code.
    Refuted by: the same command giving the same numbers twice.
    Try: give every random stream the seed, or count such runs as samples and compare several seeds.
    """
    configs: dict[str, list[View]] = {}  # by settings alone: where such runs part, their names tell groups apart
    for view in (view for group in groups for view in group.views):
        settings = f"{group_key(view.history, view.name)} {logged_settings.of(view.history)}"
        configs.setdefault(settings, []).append(view)
    pairs = [(a, b) for views in configs.values() for a, b in itertools.combinations(views, 2)
             if _seed(a) is not None and _seed(a) == _seed(b)]  # fmt: skip
    if not pairs:
        raise Missing("two runs of one config and seed")
    partings = [(where, a, b) for a, b in pairs if (where := parting(a.history, b.history, rounding)) is not None]
    if not partings:
        return None
    where, a, b = max(partings, key=lambda each: each[0].size)
    message = (f"{a.name} and {b.name}: one config, one seed ({_seed(a)}), but {where.metric} is {where.a:.4g} and"
               f" {where.b:.4g} at {where.step:,}")  # fmt: skip
    shown = Evidence(where.metric, [where.step] * 2, [where.a, where.b],
                     f"{len(partings)} of {len(pairs)} pairs of tries differ")  # fmt: skip
    return Finding(message, where.size, where.step, [shown], confidence="high",
                   axis=a.history.axes.get(where.metric, "agent_steps"))  # fmt: skip


def _seed(view: View) -> Any:
    return seed_of(view.history, view.name)


def _fingerprint(view: View, rows: int = 5, values_above: int = 3, metrics: int = 3) -> str:
    """A hash of what training measured; empty where too little varies to tell runs apart."""
    digest = hashlib.blake2b(digest_size=8)
    varied = 0
    for name, (steps, values) in sorted(view.history.columns.items()):
        outcome = not name.startswith(("time/", "data/", "eval/", "optim/"))
        if outcome and len(values) >= rows and len(np.unique(values)) > values_above:
            varied += 1
            digest.update(name.encode() + steps.tobytes() + values.tobytes())
    return digest.hexdigest() if varied >= metrics else ""
