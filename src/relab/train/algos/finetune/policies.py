"""Whose policy is it? Those of other runs and of the package's checkpoints, by name, if they fit the environment."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from relab.base.documents import Tree
from relab.base.errors import UserError
from relab.config import layers, registry
from relab.config.base import ConfigError, require
from relab.record.run_folder import read_meta
from relab.record.spec import Spec
from relab.train import checkpoint, weights

OWN = ("current", "start")  # words that mean policies of the run itself


def tree_of(word: str, runs: Path, key: str) -> tuple[Path, Tree]:
    """A checkpoint of another run; ConfigError that names the setting where there is none."""
    try:
        folder, name = weights.locate(word, runs)
        return folder, checkpoint.load(folder / "checkpoints", name)[0]
    except (UserError, OSError) as error:
        raise ConfigError(f"`{key}` must name a run and one of its checkpoints (RUN, RUN@STEP, shipped:NAME@STEP), but"
                          f" {word!r:.200} does not: {error}") from None  # fmt: skip


def load(word: str, spec: Spec, runs: Path, key: str) -> Any:
    """An agent that acts as that checkpoint does."""
    folder, tree = tree_of(word, runs, key)
    check_env(folder, spec, f"`{key}` must be a policy for {spec.env}, but {word}")
    cfg = layers.from_record(folder)
    algo = registry.algo_module(cfg.algo.name)
    agent = algo.make_agent(cfg.algo, spec, cfg.seed)
    with checkpoint.taking(folder):
        algo.load_agent(agent, tree)
    require(agent.memory_dim == 0, f"`{key}` must be a policy without memory, but {word} has a recurrent layer")
    return agent


def check_env(folder: Path, spec: Spec, what: str) -> None:
    theirs = read_meta(folder).get("spec", {}).get("env")
    require(theirs == spec.env, f"{what} was trained for {theirs}")


def critic_of(word: str, spec: Spec, runs: Path, shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray]:
    """The critic's weights of a checkpoint; ConfigError where they are of another environment or size."""
    folder, tree = tree_of(word, runs, "critic_from")
    check_env(folder, spec, f"`critic_from` must be a critic for {spec.env}, but {word}")
    there = {name: array for name, array in tree["params"].items() if weights.is_part(name, "critic")}
    wrong = [f"{name} is {there[name].shape if name in there else 'missing'} there and {shape} here"
             for name, shape in shapes.items() if name not in there or there[name].shape != shape]  # fmt: skip
    require(not wrong, f"the critic of {word} does not fit: {'; '.join(wrong[:3])}; set `critic_hidden` to its layers")
    return {name: there[name] for name in shapes}
