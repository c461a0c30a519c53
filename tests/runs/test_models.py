"""Is a run in which the world model alone learned judged by the model, and not by a policy that never learned?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relab.record import history
from relab.runs.models import ModelFit, model_of, model_sentence
from relab.runs.sentences import sentence
from relab.runs.verdict import verdict_of
from report.made import write_run


def made(folder: Path, mode: str) -> history.History:
    """A run whose returns say nothing, with a model that learns."""
    write_run(folder, (15.0, 17.0, 14.0, 16.0))
    run = history.load(folder)
    run.config = run.config | {"algo": {"name": "dreamer", "mode": mode}}
    run.columns["model/loss"] = history.Column(run.columns["return/mean"].steps[:3], np.array([40.0, 12.0, 8.0]))
    return run


def test_a_model_that_learns_alone_is_not_said_not_to_have_learned(tmp_path: Path) -> None:
    run = made(tmp_path / "a", "model")
    assert sentence(verdict_of(run)).startswith("World model alone, its loss went from 40 to 8; how far it foresees was")
    assert verdict_of(run).learned
    run.probes = [{"probe": "open_loop", "metric": "open_loop_error", "value": 1.3, "noise": 0.1, "step": 512}]
    assert sentence(verdict_of(run)).endswith("it foresees with 1.3 ± 0.1 of the error of a constant")
    assert not verdict_of(run).learned
    assert verdict_of(made(tmp_path / "b", "full")).kind != "model"


def test_without_an_update_there_is_nothing_to_judge(tmp_path: Path) -> None:
    run = made(tmp_path / "a", "model")
    del run.columns["model/loss"]
    assert model_of(run) is None
    assert model_sentence(None) == "World model alone, without an update yet"


@pytest.mark.parametrize(("fit", "useful"), [(ModelFit(4, 2), True), (ModelFit(2, 4), False), (ModelFit(4, 2, 2.0), False)])
def test_a_model_is_of_use_where_it_foresees_better_than_a_constant(fit: ModelFit, useful: bool) -> None:
    assert fit.useful is useful
