"""What is a run called beside the others of its config? By its seed where that tells them apart, else by its name."""

from __future__ import annotations

from collections.abc import Sequence

from relab.runs.grouping import Run


def called(runs: Sequence[Run]) -> dict[str, str]:
    """Name of a run -> what it is called here.

    Seeds that nobody knows, or that ran twice, tell nothing; then it is the part of the name in which they differ.
    """
    seeds = [run.seed_name for run in runs]
    if "?" not in seeds and len(set(seeds)) == len(seeds):
        return {run.name: f"seed {seed}" for run, seed in zip(runs, seeds)}
    lasts = [run.name.rpartition("/")[2] for run in runs]
    return dict(zip((run.name for run in runs), lasts if len(set(lasts)) == len(lasts) else (r.name for r in runs)))
