"""Is the Dreamer study in order: are its questions askable, is solved and kept judged right, is its page readable?"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from relab.config import layers
from relab.config.layers import Layer
from relab.lab import experiment, studies
from relab.lab.studies import StepResult, making
from relab.lab.studies.dreamer import page, plan, steps

ALONE = [steps.HERE / f"{name}.yaml" for name in ("pixels", "size1m")]  # runs, not questions
QUESTIONS = sorted(path.stem for path in steps.HERE.glob("*.yaml") if path not in ALONE)
SETTINGS = [*sorted(steps.HERE.glob("log/*.yaml")), *ALONE]
TINY = {"total_steps": 256, "eval.every": 64, "eval.episodes": 2, "algo.envs": 2, "algo.steps": 16, "algo.sequences": 2,
        "algo.learning_starts": 64, "algo.length": 8, "algo.deter": 8, "algo.hidden": 8, "algo.stoch": 4,
        "algo.units": 8, "algo.imagine": 3, "algo.updates_per_step": 0.1, "algo.bins": 11}  # fmt: skip


def test_every_question_belongs_to_a_step() -> None:
    assert studies.STUDIES["dreamer"] == "relab.lab.studies.dreamer"
    names = [step.name for step in plan(full=True)]
    assert set(QUESTIONS) == set(names) - {"seeds"}
    assert sum(step.seconds for step in plan(full=False)) <= 3 * 2 * 3600, "three hours of two cores"


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_can_be_asked(name: str, tmp_path: Path) -> None:
    question = experiment.load(steps.HERE / f"{name}.yaml")
    cells = experiment.prepare(question, tmp_path / name)
    assert len(cells) == len(question.seeds) * len(question.variants)


def test_questions_are_asked_of_the_shipped_step_sizes() -> None:
    """Their runs are shorter; the step size is to be the same at every step all the same."""
    shipped = layers.resolve([Layer("shipped", steps.RECIPE)]).config
    asked = layers.resolve([Layer("question", experiment.load(steps.HERE / "parts.yaml").base)]).config
    slopes = [(1 - cfg.algo.lr_final) / (cfg.algo.lr_until * cfg.total_steps) for cfg in (shipped, asked)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-5)
    assert (shipped.algo.lr, shipped.algo.imagine) == (asked.algo.lr, asked.algo.imagine)


def test_the_shipped_average_is_the_one_that_the_table_is_of() -> None:
    algo = layers.resolve([Layer("shipped", steps.RECIPE)]).config.algo
    assert (algo.acting_rate, algo.collects) == (0.002, "learned")
    assert (algo.lr, algo.lr_final, algo.lr_until, algo.entropy) == (1e-3, 0.05, 0.375, 3e-4)


LATEST = ("parts", "replay_critic")  # asked when the newest weights collected


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "average"])  # which is about it
def test_questions_keep_the_average_that_they_were_asked_with(name: str) -> None:
    """What is shipped has changed since; their tables have not."""
    algo = layers.resolve([Layer("question", experiment.load(steps.HERE / f"{name}.yaml").base)]).config.algo
    assert (algo.acting_rate, algo.collects) == ((0.005, "learned") if name in LATEST else (0.01, "acting"))


@pytest.mark.parametrize("path", SETTINGS, ids=lambda path: path.stem)
def test_settings_of_the_log_can_be_trained(path: Path) -> None:
    cfg = layers.resolve([Layer(path.stem, layers.read_yaml(path))]).config
    cfg.algo.check()
    assert cfg.algo.name == "dreamer"


@pytest.mark.parametrize("path", sorted(steps.HERE.glob("log/*.yaml")), ids=lambda path: path.stem)
def test_settings_of_the_log_take_nothing_over_from_the_recipe(path: Path) -> None:
    algo = layers.resolve([Layer(path.stem, layers.read_yaml(path))]).config.algo
    early = path.stem in ("state_only", "bootstrap", "pixels")  # before the log's gamma was changed
    assert (algo.latents, algo.acting_rate, algo.lr_until, algo.lr_final) == ("none", 1.0, 1.0, 1.0)
    assert not algo.norm_obs
    assert (algo.obs_scale, algo.ends) == (1.0, 0.0)
    assert (algo.lam, algo.slow_scale, algo.free_bits) == (0.95, 1.0, "clamp" if early else "straight")
    assert algo.imagine <= 15
    assert algo.gamma == (0.99 if early else 0.997)


LARGE = {"size1m", "large_model_256", "pixels"}  # `make test` learns with the small ones
MARKED = [pytest.param(path, marks=[pytest.mark.slow] * (path.stem in LARGE), id=path.stem) for path in SETTINGS]


@pytest.mark.parametrize("path", MARKED)
@pytest.mark.some(2)
def test_settings_of_the_log_learn_for_a_few_updates(path: Path, tmp_path: Path) -> None:
    """All but how long it takes until something is learned is as in the file."""
    values = layers.read_yaml(path)
    envs = int(values.get("envs", 1))
    starts = envs * (int(values["length"]) + 8)
    updates = max(3, 2 * int(values.get("model_updates", 1)))  # two of them the actor's
    short = {
        "total_steps": starts + updates * envs,
        "eval.every": 0,
        "steps": 1,
        "learning_starts": starts,
        "updates_per_step": 1 / envs,
    }
    short |= {"warmup_updates": 1} if "warmup_updates" in values else {}
    run = making.one(tmp_path / path.stem, values | short, "does it run?", "dreamer")
    assert run.meta["status"] == "finished"
    assert run.columns["data/updates"].values[-1] == updates
    behaviour = () if values.get("mode") == "model" else ("policy/actor_loss", "value/critic_loss")
    for name in ("model/loss", *behaviour):
        assert np.isfinite(run.columns[name].values).all(), name


@pytest.mark.parametrize(
    ("returns", "solved", "lowest", "kept"),
    [
        ([20, 480, 490, 460, 451, 500, 500, 500], 100, 451, True),
        ([20, 480, 490, 449, 500, 500, 500, 500], 100, 449, False),
        ([20, 470, 474, 460, 450, 400, 400, 400], None, None, False),
        ([20, 20, 20, 480, 500, 500, 500, 500], 300, 480, False),  # watched for 400 of 900 updates
    ],
)
def test_solved_and_kept(returns: list[float], solved: int | None, lowest: float | None, kept: bool) -> None:
    updates = [100 * i for i in range(8)]
    verdict = steps.judged(updates, returns, [4 * u for u in updates])
    assert (verdict["solved_at_update"], verdict["lowest"], verdict["kept"]) == (solved, lowest, kept)


def test_seeds_are_trained_kept_and_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "RECIPE", steps.RECIPE | TINY)
    monkeypatch.setattr(steps, "SEEDS", range(2))
    first = steps.seeds(tmp_path, 1, lambda text: None)
    assert first == steps.seeds(tmp_path, 1, lambda text: None)  # nothing is trained again
    rows = first["runs"]
    assert [row["seed"] for row in rows] == [0, 1]
    assert rows[0]["steps"][0] == 0
    assert rows[0]["steps"][-1] >= 256
    assert 0 < rows[0]["updates"][-1] <= 20
    text = page({"seeds": StepResult(first, 60.0, "abc")})
    assert "0 of 2 seeds solved, 0 kept" in text
    assert "Not run: slow_critic, average, parts" in text


def test_runs_of_the_steps_before_are_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same settings and seed at the same commit would leave the same bytes."""
    monkeypatch.setattr(steps, "RECIPE", steps.RECIPE | TINY)
    monkeypatch.setattr(steps, "SEEDS", [1])
    steps.seeds(tmp_path / "seeds", 1, lambda text: None)
    base = "\n".join(f"  {key}: {value}" for key, value in steps.RECIPE.items())
    question = tmp_path / "question.yaml"
    arms = "variants: {as_shipped: {}, other: {algo.lam: 0.9}}"
    question.write_text(f"question: which?\nbase:\n{base}\n{arms}\nseeds: [1, 2]\n")
    declared, folder, told = experiment.load(question), tmp_path / "ask", list[str]()
    cells = experiment.prepare(declared, folder)
    making.borrow(cells, folder, steps.trained(tmp_path), told.append)
    assert [experiment.finished(cell) for cell in cells] == [True, False, False, False]
    assert told == ["  as_shipped-s1 is seeds/s1, which is there"]
    monkeypatch.setattr(making, "read_meta", lambda path: {"status": "finished", "commit": "another"})
    making.borrow(cells, tmp_path / "ask", steps.trained(tmp_path), told.append)
    assert len(told) == 1
