"""What should be run next, and which numbers of the log no longer hold? As `relab next` and `relab note --check` say.

Called in the desk's process. Approving writes next_config.yaml, or adds the run to the queue; nothing else is written.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from relab.advise import proposal as proposals_
from relab.advise import propose, render
from relab.advise.proposal import Proposal
from relab.advise.propose import with_values
from relab.advise.tried import Tried
from relab.base import limits
from relab.base.documents import Document
from relab.base.enclosed import RecordError, own
from relab.base.errors import NotFoundError
from relab.base.jsonl import write_atomic
from relab.base.places import address
from relab.comparison import build, declared, pairs
from relab.comparison.task import Options
from relab.config import layers
from relab.config.base import ConfigError, require
from relab.config.coerce import scalar
from relab.config.views import flatten
from relab.formats.read.source import Source
from relab.health.examine import Report, examine_loaded
from relab.notebook import log, references
from relab.notebook.words import words
from relab.record.state import seedless
from relab.report import words as names
from relab.runs import grouping, moves
from relab.runs.naming import shown
from relab.web.examining import loaded

GONE = "this proposal is no longer made: the runs have changed; load the page again"
MOST = 30  # experiments that are asked for what comes next


def advice(root: str, sources: Sequence[Source]) -> list[Document]:
    """One proposal for each experiment and one for the runs outside of any; without one, why there is none."""
    every = []
    earlier = _Earlier(root)
    for home, some in _homes(root, sources).items():
        proposal, _ = _propose(home, root, some, earlier)
        body = proposal.to_dict() | {"home": str(home), "text": render.text(proposal)}
        body["id"] = id_of(proposal) if isinstance(proposal, Proposal) else ""
        body["title"] = _title(proposal) if isinstance(proposal, Proposal) else ""
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


def _propose(
    home: Path, root: str, sources: Sequence[Source], earlier: _Earlier
) -> tuple[Proposal | proposals_.Nothing, Report]:
    report = examine_loaded(loaded(root, sources), home)
    return propose(report, home, earlier.of(home)), report


class _Earlier:
    """What was tried before, read once for all experiments that lie beside each other."""

    def __init__(self, root: str):
        self.root, self.known = Path(root), dict[Path, list[Tried]]()

    def of(self, home: Path) -> list[Tried]:
        if home.parent not in self.known:
            logs = [path for path in (self.root / "LOG.md", home.parent / "LOG.md") if path.is_file()]
            self.known[home.parent] = log.earlier(home.parent, logs or [self.root / "LOG.md"])
        return self.known[home.parent]


def id_of(proposal: Proposal) -> str:
    """The same for the same change of the same config, whichever of its seeds stands for it."""
    text = json.dumps([_settings_of(proposal), proposal.diff], sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=6).hexdigest()


def _settings_of(proposal: Proposal) -> object:
    folder = Path(proposal.folder)
    try:
        parent = folder if (folder / "config.yaml").is_file() else folder / proposal.parent
        return {key: value for key, value in flatten(layers.record_layer(parent).values).items() if key != "seed"}
    except (ConfigError, RecordError, OSError):  # of another tool: what its name says without the seed
        return [str(folder.parent), seedless(proposal.parent)]


def _title(proposal: Proposal) -> str:
    changes = (f"{key} {shown(change['from'])} → {shown(change['to'])}" for key, change in proposal.diff.items())
    return f"{proposal.parent}: {', '.join(changes)}"


@dataclass(frozen=True)
class Approved:
    """What an approval did: in words, and what taking it back needs."""

    title: str
    text: str
    path: Path
    before: bytes | None  # what the file held; None: there was none
    written: bytes
    queued: str = ""  # id of the queue's entry


def approve(
    root: str, sources: Sequence[Source], home: str, wanted: str, edits: Mapping[str, str], queue: str | None
) -> Approved:
    """Write the proposal of the runs at home, with other values where somebody edited it; with `queue`, also put its
    run in the line."""
    earlier = _Earlier(root)
    proposal, report = _find(root, sources, Path(home), wanted, earlier)
    require(proposal.runs_here, _elsewhere(proposal))
    values = new_values(proposal, edits)
    if values:
        proposal = with_values(proposal, values, report, Path(home), earlier.of(Path(home)))
    folder, top = Path(proposal.folder).resolve(), Path(root).resolve()
    require(folder.is_relative_to(top), f"{folder} lies outside of the folder that is served")
    command = f"relab train {address(folder / proposals_.FILE)}{_rest(proposal)}"
    require(not (queue and "--trust" in _rest(proposal)), f"its code is the run's own: start it by hand, {command}")
    path = own(folder, proposals_.FILE)
    before = limits.read_bytes(path, limits.TEXT) if path.is_file() else None
    proposals_.write(replace(proposal, folder=str(folder)))
    item = _queued(path, proposal, queue) if queue else ""
    sentence = [
        f"written to {path.relative_to(top)}",
        *([proposal.checks["step"]] if "step" in proposal.checks else []),
    ]
    sentence.append(f"queued as {item[:8]}; relab queue work{_of(queue)} runs it" if item else f"{command} runs it")
    return Approved(_title(proposal), "; ".join(sentence), path, before, limits.read_bytes(path, limits.TEXT), item)


def _elsewhere(proposal: Proposal) -> str:
    """Why a proposal cannot be approved here, and what to do."""
    if "seeds" in proposal.diff:
        return f"more seeds of an experiment are asked for in its file: {proposal.command}"
    return "another tool's run is changed in its own program; relab does not start it"


def _of(queue: str | None) -> str:
    """The option that names a queue, where it is not the one that commands take here by themselves."""
    return "" if Path(str(queue)).absolute() == Path.cwd() / "queue" else f" --queue {address(Path(str(queue)))}"


def _rest(proposal: Proposal) -> str:
    """What stands behind the file in the proposal's command: the seed, and whether its code must be trusted."""
    return proposal.command.partition(proposals_.FILE)[2]


def take_back(approved: Approved, queue: str) -> None:
    """As it was before the approval; a run that has begun, and a file that was changed since, stay."""
    if approved.queued:
        from relab.lab.execute import control
        from relab.lab.execute.queue import Queue

        line = Queue(Path(queue))
        line.find(approved.queued, ("waiting", "paused"))
        control.cancel(line, approved.queued)
    changed = not approved.path.is_file() or limits.read_bytes(approved.path, limits.TEXT) != approved.written
    require(not changed, f"{approved.path.name} was changed since, and stays as it is")
    if approved.before is None:
        approved.path.unlink()
    else:
        write_atomic(approved.path, approved.before)


def _find(root: str, sources: Sequence[Source], home: Path, wanted: str, earlier: _Earlier) -> tuple[Proposal, Report]:
    """The proposal as it is made now, of the runs at home alone: the others have proposals of their own."""
    some = _homes(root, sources).get(home)
    if some:
        proposal, report = _propose(home, root, some, earlier)
        if isinstance(proposal, Proposal) and id_of(proposal) == wanted:
            return proposal, report
    raise NotFoundError(GONE)


def new_values(proposal: Proposal, edits: Mapping[str, str]) -> dict[str, object]:
    """The values that differ from those proposed, as the config would read them."""
    unknown = [key for key in edits if key not in proposal.diff]
    require(not unknown, f"the proposal does not change {unknown[:1]}")
    empty = [key for key, text in edits.items() if not text.strip()]
    require(not empty, f"`{empty[0] if empty else ''}` needs a value")
    values = {key: scalar(text.strip()) for key, text in edits.items()}
    return {key: value for key, value in values.items() if value != proposal.diff[key]["to"]}


def _queued(path: Path, proposal: Proposal, queue: str | None) -> str:
    from relab.lab.execute import submit
    from relab.lab.execute.queue import Queue

    name, runs = submit.new_run(), path.parent.parent
    words_ = ["train", str(path), *_rest(proposal).split(), "--runs", str(runs), "--name", name]
    return Queue(Path(str(queue))).add(submit.relab(words_, runs / name)).id


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
