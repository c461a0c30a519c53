"""Did it learn? Each verdict from made courses with known answers, and how often noise alone is taken for learning."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

from relab.health.render import outcome
from relab.health.rules.data import non_finite
from relab.health.view import View
from relab.health.words import meanings
from relab.record.history import Column, History
from relab.runs.apart import unkept
from relab.runs.course import course_of
from relab.record.evaluations import Estimate, Evaluation
from relab.runs.sentences import COUNTED, brief_sentence, sentence
from relab.runs.verdict_words import MEANS
from relab.runs.verdict import Verdict, verdict_of

CARTPOLE = {"env": "CartPole-v1", "reward_low": 1.0, "reward_high": 1.0, "horizon": 500,
            "random": {"return_mean": 22.2, "return_std": 11.3, "n": 1000}}  # fmt: skip


def evaluated(means: list[float], spread: float = 0.0, spec: dict | None = None, first: int = 0) -> History:
    """Ten episodes an evaluation, of which half lie `spread` above the mean and half below."""
    rows = [
        {"step": first + 1000 * i, "mode": "det",
         "episodes": [{"seed": k, "return": mean + (-1) ** k * spread, "length": 9} for k in range(10)]}
        for i, mean in enumerate(means)
    ]  # fmt: skip
    return History(Path("run"), evals=rows, meta={"spec": spec} if spec else {})


def trained(values: np.ndarray, metric: str = "return/mean", spec: dict | None = None, **columns) -> History:
    steps = 2048 * np.arange(1, len(values) + 1, dtype=np.int64)
    every = {metric: values} | {name.replace("_", "/", 1): x for name, x in columns.items()}
    made = {name: Column(steps, np.asarray(x, np.float64)) for name, x in every.items()}
    axes = dict.fromkeys(made, "env_steps")
    return History(Path("run"), made, axes, meta={"spec": spec} if spec else {}, source="sb3")


@pytest.mark.parametrize(
    ("means", "spread", "spec", "kind"),
    [
        ([9.4, 100, 400, 500], 3.0, CARTPOLE, "learned"),
        ([339.5, 420, 500, 500, 500], 180.0, CARTPOLE, "learned"),  # at the top, though not clear of its start
        ([500, 500, 500], 0.0, CARTPOLE, "top"),
        ([480, 476, 482], 40.0, CARTPOLE, "top"),  # solved throughout, though below the highest
        ([15, 18, 26, 25, 26, 26], 1.0, CARTPOLE, "not"),  # random earns 22: a rise to 26 is no learning
        ([9.3, 9.3, 9.4, 9.2], 0.7, CARTPOLE, "worse"),
        ([20, 300, 490, 60, 50], 10.0, CARTPOLE, "lost"),
        ([20, 100, 300, 480, 490, 500, 495, 500, 22, 21], 5.0, CARTPOLE, "lost"),
        ([20, 100, 300, 480, 490, 500, 495, 500, 21, 22], 5.0, CARTPOLE, "lost"),  # whichever of the two is the lower
        ([20, 150, 340, 390, 430, 174, 21], 10.0, CARTPOLE, "lost"),  # a fall that goes on is no noise
        ([20] * 5 + [500] * 86 + [20] * 9, 10.0, CARTPOLE, "lost"),
        ([22, 21, 29, 29, 30, 29, 23, 22, 23, 22, 23, 22], 0.5, CARTPOLE, "not"),  # of 453 to gain it gained 7
        ([20, 300, 490, 60], 10.0, CARTPOLE, "unstable"),  # one evaluation alone is no fall
        ([15, 18, 26], 1.0, CARTPOLE, "short"),  # at 3,000 steps, where the quickest took 50,000
        ([20, 300, 450, 320], 10.0, CARTPOLE, "part"),
        ([103, 95, 81], 25.0, CARTPOLE, "flat"),  # better than random since before the first value
        ([493, 500, 300, 170], 20.0, CARTPOLE, "lost"),  # learned before the first value, and lost since
        ([20, 30, 45], 30.0, CARTPOLE, "unclear"),  # 2.3 standard errors above random: neither
        ([5.0, 9.0, 20.0], 1.0, None, "learned"),
        ([5.0, 5.1, 4.9], 1.0, None, "flat"),
        ([5.0, 2.0, 1.0], 1.0, None, "not"),
        ([100.0], 1.0, CARTPOLE, "learned"),  # one evaluation, clear of random
        ([30.0], 30.0, CARTPOLE, "short"),
        ([100.0], 1.0, None, "short"),
    ],
)
def test_each_kind(means, spread, spec, kind):
    assert verdict_of(evaluated(means, spread, spec, first=1000)).kind == kind


@pytest.mark.parametrize(
    ("means", "spread", "head"),
    [
        ([20, 300, 490, 50, 45], 10.0, "Lost what it had learned, from step 4,000 on (best evaluation 490): "),
        ([20, 38, 45], 10.0, "Learned little, 5% of the way from random to solved: "),
        ([20, 30, 150, 45], 130.0, "Learned, but ends far below its best (best evaluation 150, after 3,000 steps), as far as"),
        ([20, 200, 300], 10.0, "Learned: "),
    ],
)
def test_a_run_that_ends_at_a_tenth_of_the_task_is_not_called_learned_alone(means, spread, head):
    """The last evaluation is exact, so that 45 is clear of random's 22."""
    run = evaluated(means, spread, CARTPOLE, first=1000)
    run.evals[-1]["episodes"] = [each | {"return": float(means[-1])} for each in run.evals[-1]["episodes"]]
    assert sentence(verdict_of(run)).startswith(head)


def test_what_was_learned_before_the_first_evaluation_was_learned():
    run = evaluated([0.97, 0.97, 0.97, 0.96], 0.01, first=5000)
    assert verdict_of(run).kind == "flat"
    rising = np.concatenate((np.linspace(0.1, 0.95, 20), np.full(80, 0.95)))
    run.columns["return/mean"] = Column(100 * np.arange(1, 101), rising)
    assert verdict_of(run).kind == "learned"
    words = "Learned before the first evaluation, by the returns of training (0.3013 → 0.95), evaluations: 0.97 → 0.96"
    assert sentence(verdict_of(run)) == words
    run.columns["return/mean"] = Column(100 * np.arange(1, 101), np.full(100, 0.95))
    assert verdict_of(run).kind == "flat"


def test_training_speaks_for_evaluations_only_where_they_are_as_high():
    """An environment wrapped otherwise plays the policy of 500 for 9 a time: nothing was learned that evaluations see."""
    rising = np.concatenate((np.linspace(20, 500, 50), np.full(50, 500.0)))
    apart = evaluated([8.8, 9.2, 9.0, 8.8], 0.5, first=1000)
    apart.columns["return/mean_100"] = Column(100 * np.arange(1, 101), rising)
    assert verdict_of(apart).kind == "flat"
    assert sentence(verdict_of(apart)).startswith("No gain since the first value")


def test_learned_before_the_first_evaluation_means_before_it():
    """One lucky episode at step 100 and 500 at the end: training had 22 there, and rose afterwards."""
    run = evaluated([322.0, 170.0, 500.0, 400.0, 500.0, 500.0], 200.0, first=100)
    run.columns["return/mean_100"] = Column(100 * np.arange(1, 101), np.linspace(20, 500, 100))
    assert sentence(verdict_of(run)).startswith("Learned, by the returns of training (")


@pytest.mark.parametrize(
    ("means", "first", "kind"),
    [([285, 180, 240, 500, 500, 302], 5000, "part"),  # the first evaluation came late: the gain is that over random
     ([285, 180, 240, 500, 500, 90], 5000, "unstable"),  # it fell and came back before: one low point is no fall
     ([285, 400, 500, 302], 0, "unstable")],  # weights that began at 285: what was gained over them is gone
)  # fmt: skip
def test_what_is_left_is_held_against_random_where_the_start_was_not_seen(means, first, kind):
    verdict = verdict_of(evaluated(means, 60.0, CARTPOLE, first=first))
    assert verdict.kind == kind
    if kind == "part":
        lasting = [1000 * i + first for i, mean in enumerate(means) if mean == 500][-1]
        assert f"after {lasting:,} steps (best evaluation 500)" in sentence(verdict), "the last time it was at its best"


@pytest.mark.parametrize(
    ("kinds", "said"),
    [(["learned", "top", "lost"], "learned on 2 of 3 seeds, learned and lost it on 1 of 3 seeds, ends at 2"),
     (["unstable", "learned", "unstable"], "learned on 1 of 3 seeds, unstable on 2 of 3 seeds, ends at 2"), (["not"] * 3, "did not learn on any of 3 seeds, ends at 2"),
     (["worse", "worse", "not"], "did not learn on 1 of 3 seeds, worse than random on 2 of 3 seeds, ends at 2"), (["learned"], "learned, ends at 1"),
     (["learned"] * 2, "learned on both seeds, ends at 1.5")],
)  # fmt: skip
def test_a_group_in_a_few_words(kinds, said):
    assert brief_sentence([Verdict(kind, "r", [Estimate(1, i + 1.0, 0.1, 9)]) for i, kind in enumerate(kinds)]) == said


def test_a_group_counts_as_worse_than_random_what_the_rule_does():
    """Runs that lost it and ended below random are counted by the rule worse-than-random as well."""
    below = {"lost": True, "worse": True, "learned": False}
    verdicts = [Verdict(kind, "r", [Estimate(1, 1.0, 0.1, 9)], below_random=below[kind])
                for kind in ("lost", "lost", "worse", "learned")]  # fmt: skip
    assert "learned and lost it on 2 of 4 seeds (2 of them down to worse than random), worse than random on 1" in (
        brief_sentence(verdicts)
    )


@pytest.mark.parametrize("means", [[339.5, 480, 500, 500], [500.0] * 5, [490, 495, 499, 478]])
def test_never_did_not_learn_at_the_top(means):
    for run in (evaluated(means, 200.0, CARTPOLE), trained(np.repeat(means, 10), spec=CARTPOLE)):
        assert "Did not learn" not in sentence(verdict_of(run))
        assert verdict_of(run).learned


def test_where_random_is_not_known_the_sentence_says_so():
    flat, fallen = (sentence(verdict_of(evaluated(m, 1.0))) for m in ([5.0, 5.1, 4.9], [5.0, 2.0, 1.0]))
    assert flat.startswith("No gain since the first value (what random earns is not known): 5")
    assert fallen.startswith("Did not learn, ends below where it began: 5 → 1")


def test_returns_outside_of_the_bounds_are_in_other_units():
    """Scaled rewards: what CartPole's random policy earns says nothing of them."""
    verdict = verdict_of(trained(np.linspace(0.2, 0.9, 60) + 0.01 * np.sin(np.arange(60)), spec=CARTPOLE))
    assert (verdict.kind, verdict.random) == ("learned", None)


def test_returns_of_the_sign_that_there_is_not_are_not_judged():
    """A minus before the reward: what rises from -22 to -9 is a policy that learns to fall."""
    fallen = np.linspace(-22.0, -9.3, 60) + 0.1 * np.sin(np.arange(60))
    verdict = verdict_of(trained(fallen, spec=CARTPOLE))
    assert (verdict.kind, verdict.learned) == ("opposite", False)
    assert sentence(verdict) == ("Not judged, the returns have another sign than the environment's own (1 to 500):"
                                 " training return -21.46 → -9.838")  # fmt: skip
    costs = verdict_of(trained(-fallen, spec={"reward_low": -16.3, "reward_high": 0.0, "horizon": 200}))
    assert costs.kind == "opposite"
    assert "(-3,260 to 0)" in sentence(costs)
    assert verdict_of(trained(-fallen, spec=CARTPOLE)).kind != "opposite"


def test_a_rate_that_rose_counts_where_the_return_stood_still():
    run = trained(np.full(60, 132.0) + np.sin(np.arange(60)), env_survived=np.linspace(0.38, 0.84, 60))
    assert sentence(verdict_of(run)).startswith("Learned by env/survived: 0.3995 → 0.8205")


def test_returns_of_several_stages_are_not_about_one_task():
    run = trained(np.r_[np.full(30, 50.0), np.full(30, 20.0)] + np.sin(np.arange(60)))
    run.events = [{"kind": "stage", "step": 0}, {"kind": "stage", "step": 60000}]
    assert sentence(verdict_of(run)).startswith("Cannot tell, because the task changed (2 stages)")


def test_gaps_at_the_end_are_no_divergence_where_the_log_has_gaps_between():
    values = np.tile([5.0, np.nan, np.nan, np.nan], 20)
    assert verdict_of(trained(values)).kind == "flat"
    assert verdict_of(trained(np.r_[np.full(70, 5.0), np.full(10, np.nan)])).kind == "broken"


# ---- The error of training returns


def rolling(rng: np.random.Generator, rows: int, new: int, mean: float = 22.0, sd: float = 12.0) -> np.ndarray:
    """Means over the last 100 of independent episodes, `new` of them between two rows: a policy that stands still."""
    episodes = rng.gamma((mean / sd) ** 2, sd**2 / mean, 100 + rows * new)
    sums = np.r_[0.0, np.cumsum(episodes)]
    ends = 100 + new * np.arange(1, rows + 1)
    return (sums[ends] - sums[ends - 100]) / 100


def z(verdict: Verdict) -> float:
    first, last = verdict.points[0], verdict.points[-1]
    return (last.mean - first.mean) / float(np.hypot(first.se, last.se))


@pytest.mark.parametrize(("rows", "new"), [(200, 1), (100, 4), (25, 4), (50, 20), (50, 100)])
@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.some(2)
def test_a_rolling_mean_that_stands_still_did_not_learn(rows, new, lengths):
    """Neighbours share most of their episodes: with their differences as noise, |z| > 3 comes in 45 to 95 %."""
    rng = np.random.default_rng(0)
    more = {"return_length": np.full(rows, 2048 / new)} if lengths else {}
    verdicts = [verdict_of(trained(rolling(rng, rows, new), "return/mean_100", **more)) for _ in range(200)]
    assert np.mean([abs(z(v)) > 3 for v in verdicts]) <= 0.025
    assert sum(v.kind in ("learned", "lost", "part") for v in verdicts) <= 5
    assert sum(v.kind in ("flat", "unclear") for v in verdicts) >= 190


@pytest.mark.parametrize("tie", [0.0, 0.8])
@pytest.mark.some(1)
def test_rows_of_single_episodes_that_stand_still(tie):
    """Also where each episode is like the one before: batch means see it."""
    rng, kinds = np.random.default_rng(1), []
    for _ in range(150):
        noise = rng.normal(0, 6, 200)
        for i in range(1, 200):
            noise[i] += tie * noise[i - 1]
        kinds.append(verdict_of(trained(30 + noise)).kind)
    assert sum(kind in ("learned", "lost", "part") for kind in kinds) <= 6


def test_a_curve_that_learns_is_seen_through_the_same_error():
    rng, kinds = np.random.default_rng(2), []
    for _ in range(50):
        level = 22 + 300 / (1 + np.exp(-(np.arange(100) - 50) / 8))
        kinds.append(verdict_of(trained(level + rolling(rng, 100, 4) - 22, "return/mean_100")).kind)
    assert kinds == ["learned"] * 50


def test_the_outcome_is_the_mean_of_the_last_tenth():
    course = course_of(trained(np.arange(200.0)))
    assert course.outcome is not None
    assert course.outcome.mean == np.arange(180, 200).mean()
    assert len(course.points) == 10


# ---- Swings, falls, and what one number is everywhere


def test_a_last_evaluation_that_is_high_among_low_ones_is_not_solved():
    run = evaluated([492.5, 183, 168, 151, 112.5, 481], 20.0, CARTPOLE, first=2000)
    assert sentence(verdict_of(run)) == (
        "Unstable: evaluations from step 2,000 on spread from 112.5 to 492.5, the last is 481 (random 22.2)"
    )


def test_a_lucky_first_value_that_was_not_kept_is_no_base_of_a_gain():
    """344 ± 64 before any update, then 152 to 468: it had "no gain beyond the noise (+123.9 ± 150)"."""
    means = [344, 152, 251, 205, 393, 437, 468]
    run = evaluated(means, 120.0, CARTPOLE, first=2000)
    assert sentence(verdict_of(run)) == "Learned, from 202.7 on, to which its first value fell: 344 → 468 (random 22.2)"
    run.meta["parent"] = "another"  # whose weights were that good
    assert verdict_of(run).kind == "gained"
    assert verdict_of(evaluated([344, 300, 251, 305, 293, 337, 348], 120.0, CARTPOLE, first=2000)).kind == "flat"


def test_courses_that_stand_still_are_not_said_to_have_come_back_from_a_lucky_start():
    rng = np.random.default_rng(0)
    made = [[Evaluation(i, x.mean(), x.std(ddof=1) / n**0.5, n) for i, x in enumerate(rng.normal(100, 40, (k, n)))]
            for n in (3, 5, 10) for k in (7, 10, 20) for _ in range(200)]  # fmt: skip
    assert not any(unkept(points) for points in made)


@pytest.mark.parametrize(
    ("means", "spread", "said"),
    [
        ([20, 100, 200, 300, 450, 500], 5.0, "solved (475) after 5,000 steps"),
        ([20, 100, 200, 300, 450, 482], 130.0, "reached 475 once, at 5,000 steps"),  # 482 ± 43
        ([20, 100, 200, 480, 490, 485, 490], 130.0, "solved (475) after 3,000 steps"),  # three in a row
        ([127, 500, 439, 344, 369, 422, 385], 100.0, "reached 475 once, at 1,000 steps"),
        ([20, 500, 439, 480, 369, 422, 385], 100.0, "reached 475 2 times, first at 1,000 steps"),
        ([20, 300, 500, 499, 470], 10.0, "solved (475) after 2,000 steps"),  # an end as good as at the level
    ],
)
def test_solved_is_said_of_what_is_sure_and_lasts(means, spread, said):
    assert sentence(verdict_of(evaluated(means, spread, CARTPOLE))).endswith(f", {said}")


@pytest.mark.parametrize(
    ("means", "kind"),
    [
        ([300, 160, 277, 134, 103, 147], "unstable"),  # it has fallen as far before, and came back
        ([20, 100, 300, 290, 310, 60, 40, 50], "lost"),
        ([20, 480, 500, 100, 490, 500, 480, 9, 9, 9, 9, 9, 9, 9], "lost"),  # one dip before, and low for good
        ([500, 500, 120, 500, 500, 500, 500, 500, 500, 500], "learned"),  # a dip long ago
        ([40, 200, 400, 300, 380, 450], "learned"),  # no dip to half of its gain
    ],
)
def test_a_fall_is_held_against_the_swings_of_the_run_itself(means, kind):
    assert verdict_of(evaluated(means, 10.0, CARTPOLE, first=2000)).kind == kind


def test_a_log_of_single_episodes_is_cut_by_its_steps():
    """Half of the steps hold 200 long episodes, the other half thousands of short ones: rows would hide the peak."""
    lengths = np.r_[np.linspace(20, 480, 200), np.full(5000, 9.0)].round()
    steps = np.cumsum(lengths).astype(np.int64)
    run = History(Path("run"), {"return/mean": Column(steps, lengths)}, {"return/mean": "env_steps"}, source="sb3")
    run.meta = {"spec": CARTPOLE}
    verdict = verdict_of(run)
    assert verdict.kind == "lost"
    assert verdict.below_random
    assert verdict.best.mean > 400
    assert verdict.fall.step == steps[200], "the first episode after it fell"
    assert f"from step {steps[200]:,} on (best tenth of training {verdict.best.mean:.1f})" in sentence(verdict)


@pytest.mark.parametrize(("means", "worse"), [([30, 9], False), ([30, 9.4, 9.3], True), ([30, 9.4, 21.8], False)])
def test_worse_than_random_takes_two_points_of_three(means, worse):
    """As the rule of that name has it, which asks the verdict."""
    verdict = verdict_of(evaluated(means, 0.7, CARTPOLE, first=10_000))
    assert verdict.below_random == worse
    assert (verdict.kind == "worse") == worse


def test_a_task_that_declares_success_is_judged_by_it():
    """Success 0, .5, 1 at returns 3, 19, 6: learned, best at the end; by the return it would be lost."""
    rows = [
        {"step": 1000 * i, "mode": "det",
         "episodes": [{"seed": k, "return": r, "length": 9, "success": k < wins} for k in range(20)]}
        for i, (r, wins) in enumerate([(3.0, 0), (19.0, 10), (6.0, 20)])
    ]  # fmt: skip
    random = {"return_mean": 2.6, "return_std": 1.0, "success": 0.0, "n": 100}
    spec = {"env": "pickcube-v1", "reward_low": 0.0, "reward_high": 1.0, "horizon": 50, "random": random}
    judged = verdict_of(History(Path("run"), evals=rows, meta={"spec": spec | {"outcome": "success"}}))
    assert (judged.kind, judged.metric, judged.final) == ("learned", "eval/success_det", 1.0)
    assert judged.best is not None
    assert judged.best.step == 2000
    assert verdict_of(History(Path("run"), evals=rows, meta={"spec": spec})).kind == "unstable"


def test_a_row_of_a_rolling_mean_holds_no_more_than_its_window():
    """5,000 episodes may lie between two rows; each row is the mean of the last hundred of them."""
    draw = np.random.default_rng(1)
    steps = 50 * 5_000 * np.arange(1, 41, dtype=np.int64)
    values = {"return/mean_100": 50 + 2.5 * draw.normal(size=40), "return/length": np.full(40, 50.0)}
    made = {name: Column(steps, x) for name, x in values.items()}
    run = History(Path("run"), made, dict.fromkeys(made, "env_steps"), source="sb3")
    assert verdict_of(run).points[-1].se > 2.5 / math.sqrt(4) / 2, "four rows of 2.5"
    assert verdict_of(run).kind in ("flat", "unclear")


PICKCUBE = {"env": "pickcube-gantry-v1", "outcome": "success", "random": {"return_mean": 0.0, "return_std": 0.0, "success": 0.0, "n": 100}}


def of_successes(*shares: float, n: int = 100, parent: str = "") -> History:
    """Evaluations from step 0 on, of n episodes each, of which a share succeeded."""
    rows = [{"step": i, "mode": "det", "episodes": [{"seed": k, "return": 1.0, "length": 9, "success": k < round(share * n)} for k in range(n)]}
            for i, share in enumerate(shares)]  # fmt: skip
    return History(Path("run"), evals=rows, meta={"spec": PICKCUBE} | ({"parent": parent} if parent else {}))


@pytest.mark.parametrize(
    ("shares", "n", "kind", "head"),
    [
        ((0.55, 0.69, 0.65, 0.75), 100, "gained", "Better than random, and gained 0.2 ± 0.13 since the first value (95 % interval): "),
        ((0.86, 0.7, 0.68), 50, "fell", "Fell by 0.18 ± "),
        ((0.55, 0.6), 100, "flat", "Better than random, too short to tell a gain (+0.05 ± 0.14 since the first value): "),
        ((0.55, 0.6, 0.5, 0.6, 0.52), 100, "flat", "Better than random, but no gain beyond the noise (−0.03 ± 0.14 since"),
        ((0.9, 0.5, 0.02), 100, "fell", "Fell by 0.88 ± 0.066"),  # of what it began with, to as good as nothing
        ((0.4, 0.6, 0.8), 100, "learned", "Learned: "),
    ],
)  # fmt: skip
def test_a_few_evaluations_of_a_fine_tuned_policy_are_held_against_its_start(shares, n, kind, head):
    verdict = verdict_of(of_successes(*shares, n=n, parent="start"))
    assert (verdict.kind, sentence(verdict)[: len(head)]) == (kind, head)


def test_noise_alone_is_seldom_a_gain_or_a_fall():
    """Policies that stand still at 60 %: the first against the last of six evaluations is beyond 95 % in 5 of a hundred."""
    rng = np.random.default_rng(0)
    kinds = [verdict_of(of_successes(*(rng.binomial(50, 0.6, 6) / 50), n=50)).kind for _ in range(300)]
    assert sum(kind in ("gained", "fell") for kind in kinds) <= 24
    assert kinds.count("learned") <= 3


def test_every_word_of_a_verdict_is_explained():
    assert set(MEANS) == set(COUNTED), "each verdict that is printed has its meaning, and no other"
    for kind, said in COUNTED.items():
        assert any("verdict about a run" in text for text in meanings(said)), said
        assert any("verdict about a run" in text for text in meanings(kind)), kind


def test_a_critic_that_ended_before_its_first_row_has_no_result(tmp_path):
    run = History(tmp_path, source="relab", config={"algo": {"name": "critic"}}, meta={"spec": {"env": "cartpole-v1"}})
    assert run.trained_by_relab
    verdict = verdict_of(run)
    assert (verdict.kind, verdict.points) == ("fit", [])


def test_a_success_rate_is_called_that_and_not_by_its_column(tmp_path):
    run = History(tmp_path, source="csv", config={"env": {"name": "x"}})
    run.columns["eval/success_det"] = Column(np.arange(1, 11) * 1000, np.linspace(0.1, 0.9, 10))
    assert "success rate 0.1 → 0.9" in sentence(verdict_of(run))


def broken(*bad: tuple[slice, float], metric: str = "return/mean") -> History:
    values = np.linspace(1.0, 60.0, 100) + np.random.default_rng(0).normal(0, 1, 100)
    for rows, value in bad:
        values[rows] = value
    return trained(values, metric)


@pytest.mark.parametrize(
    ("bad", "when"),
    [
        ([(slice(12, None), math.nan)], f"(nan) from step {13 * 2048:,} on"),
        ([(slice(97, None), math.nan)], f"(nan) from step {98 * 2048:,} on"),
        ([(slice(95, 97), math.inf)], "(inf) at its end, 2 of its last 10 values not finite"),  # numbers came after it
    ],
)
def test_a_return_breaks_at_the_row_after_which_no_number_comes(bad, when):
    run = broken(*bad)
    assert sentence(verdict_of(run)) == f"Broke: the return is not a number {when}"
    found = non_finite(View(run, "run"))
    assert found is not None
    assert "from step" not in when or when.partition(" ")[2] in found.message


def test_what_passed_is_not_where_a_return_broke():
    run = broken((slice(4, 6), math.nan), (slice(12, None), math.nan), metric="eval/return_det")
    assert sentence(verdict_of(run)).endswith(f"from step {13 * 2048:,} on")
    found = non_finite(View(run, "run"))
    assert found is not None
    assert f"first at step {5 * 2048:,}, from step {13 * 2048:,} on" in found.message


def test_a_point_stands_at_a_row_that_has_a_number_and_none_has_an_error_without_one():
    run = broken((slice(81, None), math.nan))
    column, points = run.columns["return/mean"], course_of(run).points
    finite = dict(zip(column.steps.tolist(), np.isfinite(column.values).tolist()))
    known = [p for p in points if math.isfinite(p.mean)]
    assert all(finite[p.step] for p in known)
    assert known[-1].step == 81 * 2048
    assert all(math.isnan(p.se) for p in points if not math.isfinite(p.mean))
    evaluations = trained(np.array([1.0, 2.0, 4.0, 3.0, 5.0, math.nan]), "eval/return_det")
    assert math.isnan(course_of(evaluations).points[-1].se)


def with_tail(gap: list[int], tail: int, rows: int = 100, empty: bool = False) -> History:
    """A course that learns, without numbers at these rows and at its end; the critic's loss goes on."""
    returns = np.linspace(20.0, 450.0, rows)
    returns[[*gap, *range(rows - tail, rows)]] = np.nan
    run = trained(returns, spec=CARTPOLE, value_loss=np.ones(rows))
    if empty:  # nothing was written there, in place of NaN
        steps, values = run.columns["return/mean"]
        run.columns["return/mean"] = Column(steps[np.isfinite(values)], values[np.isfinite(values)])
    return run


@pytest.mark.parametrize("empty", [False, True])
@pytest.mark.parametrize("gap", [[], [3, 4]])
def test_a_log_without_a_return_at_its_end_says_so_wherever_it_is_judged(gap, empty):
    v = verdict_of(with_tail(gap, 40, empty=empty))
    assert v.silent == 60 * 2048
    assert sentence(v).endswith(", but the log has no return after step 122,880")
    whole = verdict_of(with_tail(gap, 0))
    assert brief_sentence([v, whole]).endswith("; 1 of 2 logs have no return at their end (after step 122,880)")
    assert outcome(View(with_tail(gap, 40), "run", state="ended")).endswith("no return after step 122,880")


@pytest.mark.parametrize(("gap", "tail"), [([3, 40, 41], 0), ([3], 5), (list(range(10, 25)), 20)])
def test_gaps_and_a_short_end_without_episodes_are_no_silence(gap, tail):
    assert verdict_of(with_tail(gap, tail)).silent is None
