"""Is the table of common names sound: every target in the glossary, no name with two meanings, traps left foreign?"""

from __future__ import annotations

import doctest

import numpy as np
import pytest

from relab import logger
from relab.formats.read import common, find, source
from relab.record import glossary
from where import ROOT


def test_examples():
    assert doctest.testmod(common).failed == 0
    assert doctest.testmod(common).attempted >= 2
    assert doctest.testmod(source).attempted >= 1
    assert not doctest.testmod(source).failed


def test_every_target_is_in_the_glossary_and_every_axis_known():
    assert set(common.KNOWN.values()) <= set(glossary.METRICS)
    assert set(common.GROUPED.values()) | set(common.JUDGED.values()) <= set(glossary.METRICS)
    assert set(common.STEP_AXES.values()) <= set(glossary.AXES)


@pytest.mark.parametrize("text", [common.METRICS, common.STEPS])
def test_a_name_has_one_meaning(text):
    words = [word.strip() for line in text.strip().splitlines() for word in line.split("|")[1].split(",")]
    assert len(words) == len(set(words))
    assert all(word == common.plain(word) for word in words)


@pytest.mark.parametrize(
    "name",
    [
        "entropy_loss",  # minus the entropy in one tool, the entropy in another
        "loss",
        "score",
        "std",  # of what, in which unit?
        "td_error",  # signed or absolute?
        "timers/training_iteration",
        "eval/entropy",  # of another policy than the one that learns
        "time",
        "value",
    ],
)
def test_names_that_could_mean_two_things_stay_foreign(name):
    assert common.meaning(name) is None


@pytest.mark.parametrize(
    ("name", "ours"),
    [
        ("Train/Mean Reward", "return/mean"),
        ("charts/SPS", "time/sps"),
        ("test/episode-return", "eval/return_det"),
        ("evaluation/success_rate", "eval/success_det"),
        ("losses/clipfrac", "policy/clip_share"),
        ("eval_reward", "eval/return_det"),
    ],
)
def test_names_are_read_in_any_dress(name, ours):
    assert common.meaning(name) == ours


def test_of_many_restarts_the_last_wins_everywhere():
    rng = np.random.default_rng(1)
    for _ in range(200):
        parts = [np.arange(a, a + rng.integers(1, 9)) for a in rng.integers(0, 12, 4)]
        steps = np.concatenate(parts)
        kept = np.flatnonzero(common.newest(steps))
        slow = [i for i in range(len(steps)) if not superseded(steps, i)]
        assert kept.tolist() == slow
        assert (np.diff(steps[kept]) >= 0).all()


def superseded(steps: np.ndarray, i: int) -> bool:
    """By definition: a later row goes back to this step or before it."""
    return any(steps[k] < steps[k - 1] and steps[k] <= steps[i] for k in range(i + 1, len(steps)))


def test_the_page_lists_every_name():
    page = (ROOT / "docs" / "importers.md").read_text()
    for ours, words in grouped({**common.KNOWN}).items():
        assert f"| `{ours}` | {', '.join(f'`{word}`' for word in words)} |" in page
    for axis, words in grouped({**common.STEP_AXES}).items():
        assert f"| `{axis}` | {', '.join(f'`{word}`' for word in words)} |" in page
    for key, words in grouped({**logger.KEYS}).items():
        assert f"| `{key}` | {', '.join(f'`{word}`' for word in words)} |" in page


def test_the_page_lists_every_format():
    page = (ROOT / "docs" / "importers.md").read_text()
    assert [name for name in find.FORMATS if f"\n| `{name}` |" not in page] == []


def grouped(names: dict[str, str]) -> dict[str, list[str]]:
    words_by_name: dict[str, list[str]] = {}
    for word, ours in names.items():
        words_by_name.setdefault(ours, []).append(word)
    return words_by_name


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("State/kl", "model/kl"), ("kl", "policy/kl"), ("Loss/world_model_loss", "model/loss"),
        ("Rewards/rew_avg", "return/mean"), ("train/loss/dyn", "model/dyn_loss"),
        ("adv/adv_weight/max", "policy/weight_max"),
        ("WORLD_MODEL_L_total", "model/loss"), ("Advantage Weights Mean", "policy/weight_mean"),
        ("vf/q_pred/mean", "value/q_mean"), ("State/post_entropy", "model/post_entropy"), ("loss/value", "value/loss"),
    ],
)  # fmt: skip
def test_names_of_world_models_and_offline_methods(theirs, ours):
    assert common.meaning(theirs) == ours
