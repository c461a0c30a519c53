"""What should be run next, and which numbers of the log no longer hold? As `relab next` and `relab note --check` say.

Called in the desk's process. Approving writes next_config.yaml, or adds the run to the queue; nothing else is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from relab.advise import proposal as proposals_
from relab.advise import propose, render
from relab.advise.proposal import Proposal
from relab.base import limits
from relab.base.documents import Document
from relab.base.enclosed import RecordError, own
from relab.base.errors import NotFoundError
from relab.comparison import build, declared, pairs
from relab.comparison.task import Options
from relab.config import layers
from relab.config.base import require
from relab.config.coerce import scalar
from relab.config.layers import Layer
from relab.formats.read.source import Source
from relab.health.examine import examine_loaded
from relab.notebook import log, references
from relab.notebook.words import words
from relab.report import words as names
from relab.runs import grouping, moves
from relab.runs.naming import shown
from relab.web.examining import loaded

MOST = 30  # experiments that are asked for what comes next


def advice(root: str, sources: Sequence[Source]) -> list[Document]:
    """One proposal for each experiment and one for the runs outside of any; without one, why there is none."""
    every = []
    for home, some in _homes(root, sources).items():
        proposal = _propose(home, root, some)
        body = proposal.to_dict() | {"home": str(home), "text": render.text(proposal)}
        body["id"] = id_of(proposal) if isinstance(proposal, Proposal) else ""
        body["predicted_text"] = (
            names.in_text(render.predicted(proposal.predicted)) if isinstance(proposal, Proposal) else ""
        )
        body["cost_text"] = render.spent(proposal) if isinstance(proposal, Proposal) else ""
        every.append(body)
    return every


def _homes(root: str, sources: Sequence[Source]) -> dict[Path, list[Source]]:
    homes: dict[Path, list[Source]] = {}
    for source in sources:
        homes.setdefault(moves.experiment_of(source.folder) or Path(root), []).append(source)
    return dict([*homes.items()][:MOST])


def _propose(home: Path, root: str, sources: Sequence[Source]) -> Proposal | proposals_.Nothing:
    report = examine_loaded(loaded(root, sources), home)
    logs = [path for path in (Path(root) / "LOG.md", home.parent / "LOG.md") if path.is_file()]
    return propose(report, home, log.earlier(home.parent, logs or [Path(root) / "LOG.md"]))


def id_of(proposal: Proposal) -> str:
    text = json.dumps([proposal.parent, proposal.folder, proposal.diff], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def title(root: str, sources: Sequence[Source], wanted: str) -> str:
    """A proposal in a line: its parent and what it changes."""
    return _title(_find(root, sources, wanted))


def _title(proposal: Proposal) -> str:
    changes = (f"{key} {shown(change['from'])} → {shown(change['to'])}" for key, change in proposal.diff.items())
    return f"{proposal.parent}: {', '.join(changes)}"


def approve(
    root: str, sources: Sequence[Source], wanted: str, edits: Mapping[str, str], queue: str | None
) -> tuple[str, str]:
    """Write the proposal, with other values where somebody edited it; with `queue`, also put its run in the line.

    -> the proposal in a line, and what became of it.
    """
    proposal = _find(root, sources, wanted)
    require(proposal.runs_here, "another tool's run is changed in its own program; relab does not start it")
    proposal = edited(proposal, edits)
    folder = Path(proposal.folder)
    require(
        folder.resolve().is_relative_to(Path(root).resolve()), f"{folder} lies outside of the folder that is served"
    )
    own(folder, proposals_.FILE)
    path = proposals_.write(proposal)
    text = f"written to {path.relative_to(root) if path.is_relative_to(root) else path}"
    return _title(proposal), f"{text}; {_queued(path, queue) if queue else f'relab train {path} runs it'}"


def _find(root: str, sources: Sequence[Source], wanted: str) -> Proposal:
    for home, some in _homes(root, sources).items():
        proposal = _propose(home, root, some)
        if isinstance(proposal, Proposal) and id_of(proposal) == wanted:
            return proposal
    raise NotFoundError("this proposal is no longer made: the runs have changed; load the page again")


def edited(proposal: Proposal, edits: Mapping[str, str]) -> Proposal:
    """Other values for keys of the diff; a value that no config can have is an error before anything is written."""
    unknown = [key for key in edits if key not in proposal.diff]
    require(not unknown, f"the proposal does not change {unknown[:1]}")
    diff = {key: {**change, "to": scalar(edits[key]) if key in edits else change["to"]}
            for key, change in proposal.diff.items()}  # fmt: skip
    if not edits or diff == proposal.diff:
        return proposal
    if "seeds" not in diff:
        parent = Path(proposal.folder)
        parent = parent if (parent / "config.yaml").is_file() else parent / proposal.parent
        had = layers.record_layer(parent)
        layers.resolve([had, Layer("proposal", {key: change["to"] for key, change in diff.items()})])
    nothing = proposals_.Predicted(proposal.predicted.metric, None, None, None, "edited by hand: no prediction")
    return replace(proposal, diff=diff, predicted=nothing, rationale=f"{proposal.rationale} (edited by hand)")


def _queued(path: Path, queue: str | None) -> str:
    from relab.lab.execute import submit
    from relab.lab.execute.queue import Queue

    name, runs = submit.new_run(), path.parent.parent
    words_ = ["train", str(path), "--runs", str(runs), "--name", name]
    item = Queue(Path(str(queue))).add(submit.relab(words_, runs / name))
    return f"queued as {item.id[:8]}; relab queue work runs it"


# ---- The log


def stale(root: str, logs: Sequence[str]) -> list[Document]:
    """Numbers of the log that are not what the records say now."""
    bases = [Path(root), *(Path(each).parent for each in logs)]
    records = references.Records(bases)
    rows = []
    for each in logs:
        for file in log.files(Path(each)):
            try:
                _, changes = references.refresh(limits.read_bytes(file, limits.TEXT), records, words("en"), file.name)
            except (RecordError, OSError, ValueError):
                continue
            rows += [{"log": str(file), "line": c.line, "entry": c.entry, "old": c.old, "new": c.new, "state": c.state,
                      "run": c.ref.run, "metric": c.ref.metric} for c in changes if c.stale]  # fmt: skip
    return rows


# ---- Who can be told apart


def apart(root: str, sources: Sequence[Source]) -> list[Document]:
    """Pairs of configs whose difference is clear of zero, declared or not; said as `relab compare` says them."""
    runs = [grouping.of_loaded(each, each.name) for each in loaded(root, sources).runs]
    result = build.compare(runs, Options(), declared.of_runs(runs))
    return [row for task in result.tasks for pair in task.pairs if (row := _clear(task.env, pair))]


def _clear(env: str, pair: pairs.Pair) -> Document | None:
    answer = pair.answer
    if not (answer.low > 0 or answer.high < 0):
        return None
    return {"env": env, "a": pair.a, "b": pair.b, "text": names.in_text(answer.text), "declared": pair.declared,
            "better": pair.b if answer.low > 0 else pair.a}  # fmt: skip
