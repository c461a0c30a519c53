"""Is one point clearly above another? Hand numbers, and how often noise alone is taken for a fall."""

from __future__ import annotations

import math
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import relab
from relab.advise.rising import trend_of
from relab.health.view import View
from relab.record.evaluations import Estimate, Evaluation
from relab.record.history import Column, History
from relab.runs import identity
from relab.runs.apart import bound, clearly, pooled, steadied
from relab.runs.course import course_of
from relab.runs.sentences import brief_sentence, group_sentence, sentence, verdict_words
from relab.runs.verdict import verdict_of

CARTPOLE = {"env": "CartPole-v1", "reward_low": 1.0, "reward_high": 1.0, "horizon": 500,
            "random": {"return_mean": 22.2, "return_std": 11.3, "n": 1000}}  # fmt: skip


def test_the_noise_of_three_in_a_row_is_pooled_by_what_each_tells():
    """Variances of single episodes 5 * 4 = 20, 0 and 20, with four degrees of freedom each, of which eight count."""
    points = [Evaluation(0, 10.0, 2.0, 5), Evaluation(1, 20.0, 0.0, 5), Evaluation(2, 30.0, 2.0, 5)]
    first, middle, _ = steadied(points)
    assert first.se == pytest.approx(math.sqrt((4 * 20 + 4 * 0) / 8 / 5))
    assert middle.se == pytest.approx(math.sqrt((4 * 0 + 0.5 * 8 * 20) / 8 / 5))
    assert first.df == middle.df == 8
    assert steadied([Evaluation(0, 1.0, 0.5, 20)])[0].se == 0.5, "twenty episodes tell their own noise"


def test_few_episodes_and_many_looks_need_a_larger_difference():
    few, many = [Evaluation(0, 0.0, 1.0, 4)] * 2, [Estimate(0, 0.0, 1.0, 1000)] * 2
    assert clearly(4.3, *many) and not clearly(4.2, *many)  # 3 * sqrt(2) = 4.24
    assert not clearly(6.0, *few) and clearly(7.4, *few)  # t with 6 degrees of freedom: 4.90 * sqrt(2) = 6.93
    assert not clearly(4.6, *many, looks=20) and clearly(4.6, *many, looks=3)
    assert bound(8.0, 20) == pytest.approx(5.04, abs=0.01)


def test_several_points_as_one():
    whole = pooled([Evaluation(0, 1.0, 3.0, 5), Evaluation(1, 3.0, 4.0, 5)])
    assert (whole.mean, whole.se, whole.n, whole.df) == (2.0, 2.5, 10, 8)


def played(levels, n, rng) -> History:
    """Evaluations of n episodes whose returns spread as CartPole's do."""
    rows = [{"step": 5000 * (i + 1), "mode": "det",
             "episodes": [{"seed": k, "return": float(min(8 + x, 500)), "length": 9}
                          for k, x in enumerate(rng.exponential(level - 8, n))]}
            for i, level in enumerate(levels)]  # fmt: skip
    return History(Path("run"), evals=rows, meta={"spec": CARTPOLE})


@pytest.mark.parametrize(("k", "n"), [(10, 3), (20, 5), (50, 5), (50, 10)])
def test_the_best_of_many_is_high_by_chance(k, n):
    """With three standard errors for any pick, 10 to 25 % of these were called unstable or fallen."""
    rng = np.random.default_rng([k, n])
    kinds = Counter(verdict_of(played([200.0] * k, n, rng)).kind for _ in range(60))
    assert kinds["unstable"] + kinds["part"] + kinds["lost"] <= 2, kinds


@pytest.mark.parametrize("n", [5, 10])
def test_a_collapse_is_told_all_the_same(n):
    rng = np.random.default_rng(n)
    levels = [*np.linspace(22, 200, 8), *[200.0] * 7, *[22.0] * 5]
    kinds = Counter(verdict_of(played(levels, n, rng)).kind for _ in range(40))
    assert kinds["lost"] >= 32, kinds


def test_a_lucky_episode_at_the_end_of_a_collapse_is_not_learned():
    rng = np.random.default_rng(3)
    kinds = Counter[str]()
    for _ in range(60):
        run = played([*np.linspace(22, 200, 6), *[200.0] * 3, *[10.0] * 3], 5, rng)
        run.evals[-1]["episodes"][0]["return"] = 500.0
        kinds[verdict_of(run).kind] += 1
    assert kinds["learned"] + kinds["top"] == 0, kinds


@pytest.mark.parametrize(("rows", "fall"), [(20, 12), (20, 16), (25, 21), (50, 40), (100, 90)])
def test_the_error_after_a_fall_is_that_of_what_came_after_it(rows, fall):
    """Rows of 300 ± 34, then 9.3 ± 0.2: the last tenth was told as 9.3 ± 4 to ± 57."""
    rng, errors = np.random.default_rng(rows), []
    for _ in range(20):
        high, low = rng.normal(300, 34, fall), rng.normal(9.3, 0.2, rows - fall)
        column = Column(2048 * np.arange(1, rows + 1), np.concatenate([high, low]))
        run = History(Path("run"), {"return/mean": column}, {"return/mean": "env_steps"}, source="sb3")
        errors.append(course_of(run).points[-1].se)
    true = 0.2 / math.sqrt(rows / 10)
    assert true / 3 < np.median(errors) < 3 * true
    assert max(errors) < 2


def test_a_slow_fall_is_no_noise_of_what_came_after_it():
    fall, low = [468.0, 441, 432, 365, 304, 284, 208, 124, 57], [9.8, 10.0, 8.6, 9.3, 9.5, 9.6, 9.8, 9.4]
    values = np.array([*np.linspace(36, 468, 33), *fall, *low])
    steps = np.arange(1024, 1024 * (len(values) + 1), 1024)
    columns = {name: Column(steps, values) for name in ("return/mean_100", "return/length")}
    axes = dict.fromkeys(columns, "env_steps")
    end = course_of(History(Path("run"), columns=columns, axes=axes)).points[-1]
    assert end.mean == pytest.approx(9.52, abs=0.01) and end.se < 0.5


def test_a_fall_just_before_the_end_still_counts_as_noise():
    """A single low row says nothing of its own noise."""
    values = np.r_[np.random.default_rng(0).normal(300, 34, 19), 9.3]
    run = History(Path("run"), {"return/mean": Column(np.arange(1, 21), values)}, {"return/mean": "env_steps"})
    assert course_of(run).points[-1].se > 10


def course(means, spread=20.0):
    rows = [{"step": 1000 * (i + 1), "mode": "det",
             "episodes": [{"seed": k, "return": mean + (-1) ** k * spread, "length": 9} for k in range(10)]}
            for i, mean in enumerate(means)]  # fmt: skip
    return History(Path("run"), evals=rows, meta={"spec": CARTPOLE})


def test_a_run_that_came_back_no_longer_rises():
    """Its second half holds the way back, so that whether it still rises could not be told from its noise."""
    back = [20, 200, 400, 420, 50, 40, 300, 400, 430, 420, 425, 430]
    rising = [20, 40, 60, 90, 120, 150, 190, 230, 270, 310, 350, 390]
    kinds = [trend_of(View(course(means), "run", state="finished")).kind for means in (back, rising)]
    assert kinds == ["stays", "rises"]


def test_a_group_counts_a_run_as_its_own_sentence_does():
    """Of 53 it was said alone that it learned little, and in a group that it learned."""
    little, well, hardly = (verdict_of(course(m, 1.0)) for m in ([20, 30, 40, 53], [20, 200, 300, 480], [15, 18, 40, 40, 40, 40]))
    assert sentence(little).startswith("Learned little")
    assert group_sentence([little, well]).startswith("Learned on 1 of 2 seeds, learned little on 1 of 2 seeds")
    assert brief_sentence([little, little]).startswith("learned little on both seeds")
    assert sentence(hardly).startswith("Hardly learned")
    assert group_sentence([hardly, well]).startswith("Learned on 1 of 2 seeds, hardly learned on 1 of 2 seeds")
    assert verdict_words(little) == "learned little"


def scaled(factor: float) -> History:
    values = factor * np.array([25.0, 40.0, 66.0, 130.0, 160.0, 230.0])
    column = Column(2048 * np.arange(1, 7), values)
    return History(Path("run"), {"return/mean": column}, {"return/mean": "env_steps"}, config={"seed": 0}, source="sb3")


def test_numbers_in_names_are_no_tries_where_rewards_are_paid_in_other_units():
    """scale_1, scale_2 and scale_3 with one seed were three tries of one config; try-1 and try-2 are still."""
    runs = [(scaled(factor), f"scale_{i}") for i, factor in enumerate((1, 10, 100), 1)]
    assert len(set(identity.keys(runs))) == 3
    tries = [(scaled(factor), f"try_{i}") for i, factor in enumerate((1, 1.1, 0.9), 1)]
    assert len(set(identity.keys(tries))) == 1


def test_a_log_that_says_spread_and_count_needs_no_episodes(tmp_path: Path) -> None:
    """As a converted run has them: the error is that of the episodes, not of how far evaluations lie apart."""
    rows = [(1000 * i, value, 18.0, 10) for i, value in enumerate((20.0, 400.0, 30.0, 410.0, 25.0, 390.0), 1)]
    lines = ["step,eval/return_det,eval/std_det,eval/episodes", *(",".join(map(str, row)) for row in rows)]
    (tmp_path / "progress.csv").write_text("\n".join(lines) + "\n")
    (run,) = relab.load(tmp_path)
    points = course_of(run.history).points
    assert [point.n for point in points] == [10] * 6
    assert points[-1].se == pytest.approx(18 / 3)
