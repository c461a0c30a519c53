"""Is the pickcube study in order: are its questions askable, are its critics fitted, is its page readable?"""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from relab.commands.train import layers as typed_layers
from relab.config import layers
from relab.lab import experiment, studies
from relab.lab.studies import StepResult
from relab.lab.studies.pickcube import full, page, plan, steps
from where import ROOT

QUESTIONS = sorted(path.stem for path in steps.HERE.glob("*.yaml"))
PAGE = ROOT / "docs" / "studies" / "pickcube.md"
COMMANDS = re.findall(r"^relab train .*$", PAGE.read_text(encoding="utf-8"), re.M)


def test_every_question_belongs_to_a_step() -> None:
    assert studies.STUDIES["pickcube"] == "relab.lab.studies.pickcube"
    assert set(QUESTIONS) == {step.name for step in plan(full=False)} - {"standard", "rank"}
    whole = {step.name.removeprefix("full_") for step in plan(full=True) if step.name.startswith("full_")}
    assert whole == set(full.SIZES) == set(QUESTIONS) - {"panda", "vstar"}, "vstar has no runs of its own"
    assert sum(step.seconds for step in plan(full=False)) <= 3 * 2 * 3600, "three hours of two cores"


@pytest.mark.parametrize("name", QUESTIONS)
def test_questions_can_be_asked(name: str, tmp_path: Path) -> None:
    question = experiment.load(steps.HERE / f"{name}.yaml")
    assert question.metric == "eval/success_det"
    assert len(question.seeds) == 5
    cells = experiment.prepare(question, tmp_path / name)
    assert len(cells) == len(question.seeds) * len(question.variants)


def test_the_critics_stand_in_the_question_before_it_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fitted = []
    monkeypatch.setattr(steps.making, "one", lambda folder, settings, *more: fitted.append((folder, settings)))
    file = steps.with_critics("critic", tmp_path / "critic", lambda words: None, full=False)
    assert [settings["start_from"] for _, settings in fitted] == list(steps.CRITICS.values())
    named = [each.get("critic_from") for each in experiment.load(file).variants.values()]
    assert named == [None, *(str(folder) for folder, _ in fitted)]
    assert steps.with_critics("gamma", tmp_path / "gamma", lambda words: None, full=False) == steps.HERE / "gamma.yaml"


@pytest.mark.parametrize("name", sorted(full.SIZES))
def test_questions_can_be_asked_at_the_sizes_of_the_log(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps.making, "one", lambda folder, settings, *more: None)
    question = experiment.load(steps.with_critics(name, tmp_path / name, lambda words: None, full=True))
    small = experiment.load(steps.HERE / f"{name}.yaml")
    assert list(question.variants) == list(small.variants)
    assert question.base["total_steps"] > small.base["total_steps"]
    assert experiment.prepare(question, tmp_path / "folder")


def test_rank_correlation_is_held_against_gains_within_seeds() -> None:
    """What helps within each seed is seen although seeds differ by more; what is shuffled is not."""
    rows = [{"seed": seed, "rank": 0.1 * k, "snr": (7 * k) % 5, "gain": 10.0 * seed + k} for seed in range(5)
            for k in range(6)]  # fmt: skip
    told = steps.correlation(rows, "rank")
    assert (told["rho"], told["low"], told["n"], told["seeds"]) == (1.0, 1.0, 30, 5)
    assert abs(steps.correlation(rows, "snr")["rho"]) < 0.5


def test_the_page_shows_every_seed_and_names_what_is_missing() -> None:
    run = {"seed": 10, "det": [0.5, 0.8, 1.0], "sampled": [0.5, 0.6, 0.8], "data/env_steps": 2000,
           "data/sim_steps": 90_000}  # fmt: skip
    numbers = {"question": "Does it?", "answers": [{"text": "cannot tell yet"}], "arms": {"a": [run, run]}}
    made = {
        "gamma": StepResult(numbers, 60.0, "abc"),
        "standard": StepResult({"standardised": 1e-7, "raw": 0.1}, 1, "abc"),
    }
    text = page(made)
    assert "| `a` | 90, 90 | 90.0 % | 50.0 % | 100.0 % | 70.0 % | 2,000 | 90,000 |" in text
    assert "no weight by more than 1e-07" in text
    assert "Not run: advantage" in text
    assert "Not run: any question at the log's own sizes" in text
    told = {"rho": 0.3, "low": -0.1, "high": 0.6, "n": 40, "seeds": 5}
    more = page({**made, "rank": StepResult({"runs": [], "rank": told, "snr": told}, 1, "abc")})
    assert "rank correlation of two halves: Spearman's +0.30 [-0.10, +0.60]" in more


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_page_can_be_run(command: str) -> None:
    """As far as settings go: what cannot be resolved cannot be trained."""
    words = shlex.split(command.partition(" --name")[0])[2:]
    resolved = layers.resolve(typed_layers(words))
    assert resolved.config.env.name.startswith("pickcube")


def test_the_page_has_a_command_for_each_of_the_log() -> None:
    assert len(COMMANDS) >= 25
