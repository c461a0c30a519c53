"""Are Dreamer's faults planted where they say? Tiny real runs beside a healthy one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from relab.config.base import ConfigError
from relab.config.dreamer import Dreamer
from relab.lab.faults import hide, run, seams
from relab.lab.faults.catalogue import FAULTS
from relab.record import history
from relab.train.algos.dreamer import agent, make_agent
from relab.train.algos.dreamer.world_model import Batch
from relab.train.envs.cartpole import CartPole
from relab.train.kernels import blas
from small_runs import DREAMS

pytestmark = pytest.mark.skipif(not blas.AVAILABLE, reason="some faults are planted in kernels, which need a BLAS")


class Numbers:
    """The columns of a run by their short names."""

    def __init__(self, folder: Path):
        self.run = history.load(folder)

    def __getitem__(self, name: str) -> np.ndarray:
        return self.run.columns[name].values


MARKS = {  # what the fault does to numbers of the run (a), and what a healthy one has (b)
    "kl-averaged": lambda a, b: a["model/kl"][0] < 0.5 * b["model/kl"][0],  # before the latents could grow
    "lambda-off-by-one": lambda a, b: a["value/return_residual"].min() > 1e-3 > b["value/return_residual"].max(),
    "live-targets": lambda a, b: abs(a["value/pull"] / a["value/pull_due"] - 1).max() > 0.05,
    "rep-scale-099": lambda a, b: a["model/rep_loss"].min() > 5 * b["model/rep_loss"].max(),
    "no-unimix": lambda a, b: max(*a["model/prior_mix"], *a["model/post_mix"]) < 1e-4 < min(b["model/post_mix"]),
    "unimix-on-prior-only": lambda a, b: max(a["model/post_mix"]) < 1e-4 < 0.009 < min(a["model/prior_mix"]),
    "posterior-without-memory": lambda a, b: not a["model/post_memory"].any() and b["model/post_memory"].all(),
    "no-reset-mask": lambda a, b: min(a["model/start_memory"]) > 1e-3 > max(b["model/start_memory"]),
    "last-action-not-reset": lambda a, b: min(a["model/start_memory"]) > 1e-3 and min(a["model/start_action"]) > 0.9,
    "focus-always-on": lambda a, b: set(a["optim/actor_updates"][2:]) == {1.0},
    "focus-never-on": lambda a, b: not a["model/focus"].any(),
    "starved-collector": lambda a, b: a["data/replay_ratio"][-1] == 8 * b["data/replay_ratio"][-1],
}


def trained(folder: Path, name: str | None, **more: str) -> Numbers:
    fault = FAULTS[name] if name else None
    settings = DREAMS | (fault.settings.get("", {}) if fault else {}) | more
    settings["total_steps"] = "192" if name == "starved-collector" else DREAMS["total_steps"]
    run.one(run.Member("", settings, 3), folder, fault.seams if fault else {}, fault.kind if fault else "run")
    return Numbers(folder)


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Numbers:
    return trained(tmp_path_factory.mktemp("healthy") / "run", None)


@pytest.mark.parametrize("name", MARKS)
@pytest.mark.some(2)
def test_a_fault_leaves_its_mark(tmp_path: Path, healthy: Numbers, name: str):
    faulty = trained(tmp_path / "run", name)
    assert faulty.run.meta["status"] == "finished"
    assert hide.leaks_in(tmp_path / "run", FAULTS) == []
    assert MARKS[name](faulty, healthy)


@pytest.mark.slow
def test_a_resume_makes_the_actor_anew(tmp_path: Path):
    assert (np.diff(trained(tmp_path / "run", "resume-resets-actor")["optim/actor_updates"]) < 0).sum() == 1


@pytest.mark.parametrize(
    ("name", "bare"), [(None, ()), ("no-unimix", ("post", "prior")), ("unimix-on-prior-only", ("post",))]
)
def test_what_is_not_mixed(name: str | None, bare: tuple[str, ...]):
    """Of weights fifty times their first size, so that latents are certain."""
    cfg = Dreamer(deter=16, hidden=8, units=8, stoch=4, bins=11, learning_starts=64)
    with seams.planted(FAULTS[name].seams if name else {}), torch.no_grad():
        made = make_agent(cfg, CartPole().spec, 0)
        made.params.flat.mul_(50)
        rows, generator = (12, 6), torch.Generator().manual_seed(0)
        blank = [torch.zeros(*rows) for _ in range(6)]
        batch = Batch(torch.randn(*rows, 4, generator=generator), torch.zeros(*rows, 2), *blank)
        course = made.model.observe(batch, torch.rand(*rows, 4, generator=generator))
    least = {"post": float(course.post.min()), "prior": float(course.prior.min())}
    assert tuple(side for side, x in least.items() if x < 0.9 * cfg.unimix / cfg.classes) == bare


def test_a_narrow_support_is_refused_unless_it_is_planted():
    spec, narrow = CartPole().spec, Dreamer(gamma=0.997, support=147.4)
    with pytest.raises(ConfigError, match="333"):
        agent.support_of(narrow, spec)
    with seams.planted(FAULTS["support-too-small"].seams):
        assert agent.support_of(narrow, spec).high == pytest.approx(147.41, abs=0.01)


def test_a_run_stops_for_its_training_return(tmp_path: Path):
    faulty = trained(tmp_path / "run", "stop-on-training", **{"eval.every": "64", "eval.stop_at": "12"})
    (stop,) = [event for event in faulty.run.events if event["kind"] == "stop"]
    assert stop["best"]["metric"] == "return/mean_100"
