"""Was a variant tried before? Another experiment, or an entry of a log, may have told the outcome of its change."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relab.advise import tried
from relab.base.documents import Document, Settings
from relab.config import lineage
from relab.lab.experiment.question import Experiment

LOG = "LOG.md"  # in the folder of the experiments


@dataclass(frozen=True)
class Repeat:
    """A variant whose change against the control was tried before."""

    variant: str
    change: tried.Diff
    hits: list[tried.Tried]
    settings: Settings

    def to_dict(self) -> Document:
        return {"variant": self.variant, "change": self.change, "tried": [one.to_dict() for one in self.hits]}


def tried_before(experiment: Experiment, folder: Path, root: Path, log: Path | None) -> list[Repeat]:
    """The variants that another experiment or an entry of a log has told the outcome of."""
    from relab.notebook.log import default_logs, earlier  # not for every import of an experiment

    logs = [*([log] if log is not None else []), *default_logs(), root / LOG]
    known = earlier(root, logs, without=folder)
    settings = {name: tried.variant(folder, experiment.to_dict(), name) for name in experiment.variants}
    control, *others = settings
    of = tried.subject(settings[control], str(experiment.to_dict().get("command") or ""))
    repeats = []
    for name in others:
        change = lineage.changes(settings[control], settings[name])
        hits = tried.matching(change, of, known) if change else []
        repeats += [Repeat(name, change, hits, settings[name])] if hits else []
    return repeats
