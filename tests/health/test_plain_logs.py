"""Is what plain logs of other programs show named, and nothing else blamed? Evaluations, critics, signs, starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_rules_foreign import RULES, asked, made

from relab.advise.propose import propose
from relab.health import engine
from relab.health.examine import Examined, Report, _advise
from relab.health.rule import Finding
from relab.health.view import View
from relab.record.history import Column
from relab.runs.verdict import verdict_of

RNG = np.random.default_rng
CARTPOLE = {"spec": {"env": "CartPole-v1", "random": {"return_mean": 22.2, "return_std": 11.0, "n": 1000},
                     "horizon": 500, "reward_high": 1.0, "action": {"kind": "discrete", "n": 2}}}  # fmt: skip
PPO = {"algo": {"name": "ppo"}}


def played(view: View, levels: Any, every: int, n: int = 10, spread: float = 0.5) -> View:
    """Evaluations of n episodes each, beside what training logged."""
    for i, level in enumerate(levels):
        returns = level + spread * RNG(i).standard_normal(n)
        episodes = [{"seed": k, "return": float(r), "length": int(max(r, 1))} for k, r in enumerate(returns)]
        view.history.evals.append({"step": (i + 1) * every, "mode": "det", "episodes": episodes})
    return view


def told(view: View) -> dict[str, Finding]:
    """What all rules say of one run, with what to try."""
    fired, gone = engine.ask_run(list(RULES.values()), view)
    assert not [each for each in gone if each.missing.startswith(engine.FAILED)]
    _advise([view], [fired], list(RULES.values()))
    return {f.slug: f for f in fired if f.status == "fired" and not f.footer}


# ---- Evaluations in another wrapper


RISE = np.concatenate([np.linspace(20, 500, 30), np.full(30, 500.0)])


@pytest.mark.parametrize("length", [False, True])
def test_evaluations_that_play_something_else_are_named_whatever_the_lag(length):
    """A mean over 100 episodes of 500 steps lags by nearly the whole run: no policy so far earned more than 9."""
    columns = {"return/mean_100": RISE} | ({"return/length": RISE} if length else {})
    view = played(made(columns, PPO, CARTPOLE), 9 + 0.2 * (-1.0) ** np.arange(14), 4000)
    found = told(view)
    assert "evaluations play another policy" in found["training-apart-from-evaluation"].message
    assert found["evaluations-behind-training"].explained_by == "training-apart-from-evaluation"
    assert found["evaluations-behind-training"].suggest == [
        "mend training-apart-from-evaluation first: it explains this"
    ]
    assert "worse-than-random" not in found, "training has learned"
    assert "critic-not-learning" not in found


ACROBOT = {"spec": {"env": "Acrobot-v1", "random": {"return_mean": -497.4, "return_std": 18.4, "n": 200},
                    "horizon": 500, "reward_low": -1.0, "reward_high": 0.0,
                    "action": {"kind": "discrete", "n": 3}}}  # fmt: skip


@pytest.mark.parametrize(("end", "kind"), [(-300.0, "short"), (-500.0, "not")])
def test_evaluations_at_the_floor_are_not_worse_than_random(end, kind):
    """-500 is the time limit, 2.6 below random where -100 is solved; training that rises is said beside it."""
    training = np.concatenate([np.full(30, -500.0), np.linspace(-500, end, 30)])
    view = played(made({"return/mean": training}, PPO, ACROBOT), np.full(8, -500.0), 7000, spread=0)
    found = told(view)
    assert verdict_of(view.history).kind == kind
    assert "worse-than-random" not in found
    assert ("has-not-learned" in found) == (kind == "not")
    assert ("evaluations-behind-training" in found) == (kind == "short")
    if kind == "short":
        behind = found["evaluations-behind-training"]
        assert "the deterministic evaluations still earn -500, the floor of the time limit" in behind.message
        assert "more steps" in behind.suggest[0]


@pytest.mark.parametrize("evaluated", [RISE[4::4] + 100, np.minimum(RISE[4::4], 480), np.full(14, 500.0)])
def test_a_mean_that_lags_behind_its_evaluations_is_no_other_policy(evaluated):
    """Nor is one beside a late evaluation that is bad: an earlier one was as good as training."""
    view = played(made({"return/mean_100": RISE}, PPO), evaluated, 4000, spread=10)
    assert not isinstance(asked("training-apart-from-evaluation", view), Finding)
    view.history.evals[-1]["episodes"] = [{"return": 9.0, "length": 9}] * 10
    assert not isinstance(asked("training-apart-from-evaluation", View(view.history, "run")), Finding)


# ---- One evaluation, one episode, none


def few(levels: list[float], episodes: int, name: str) -> View:
    view = made({"return/mean": RISE, "policy/kl": np.full(60, 0.01), "policy/clip_share": np.full(60, 0.1),
                 "policy/entropy": np.linspace(0.69, 0.3, 60), "value/loss": np.full(60, 5.0), "value/q_mean": RISE,
                 "value/explained_variance": np.full(60, 0.6), "policy/exploration": np.linspace(1, 0.05, 60),
                 "eval/return_det": np.resize(levels or [1.0], 60)}, {"algo": {"name": name}}, CARTPOLE)  # fmt: skip
    return played(view, levels, 6000, n=episodes)


@pytest.mark.parametrize("name", ["ppo", "dqn", "sac"])
@pytest.mark.parametrize("episodes", [0, 1, 2])
@pytest.mark.parametrize("levels", [[], [20.0], [20.0, 500.0], [322.0, 151.0, 500.0, 170.0, 500.0, 500.0, 480.0]])
def test_no_rule_fails_on_few_evaluations_of_few_episodes(levels, episodes, name):
    told(few(levels, episodes, name))  # which asserts that none failed


def test_the_best_of_single_episodes_is_held_against_their_own_noise():
    swings = few([100.0, 120.0, 90.0, 110.0, 500.0, 105.0, 95.0, 100.0, 110.0, 105.0], 1, "ppo")
    assert not isinstance(asked("peak-selection", swings), engine.NotChecked)


# ---- Whose settings are a model


STEPS = np.arange(60) * 1000


def run(name: str, returns: Any, lr: float, **columns: Any) -> View:
    noise = RNG(len(name)).standard_normal(60)
    config = {"algo": {"name": "ppo", "lr": lr, "gamma": 0.99}, "total_steps": 59_000}
    return made({"return/mean": np.asarray(returns) + noise, **columns}, config, CARTPOLE, name=name)


def advised(*views: View) -> Report:
    answers = [engine.ask_run(list(RULES.values()), view)[0] for view in views]
    _advise(list(views), answers, list(RULES.values()))
    return Report("x", [Examined(v, v.name) for v in views], findings=[f for fired in answers for f in fired])


SOUND, LOW = 480 - 460 * np.exp(-np.arange(60) / 6), np.full(60, 9.0)


def keys_of(report: Report, name: str) -> dict[str, Any]:
    return {item["key"]: item["to"] for f in report.findings if f.run == name and f.status == "fired"
            for item in f.suggest if isinstance(item, dict)}  # fmt: skip


def test_a_value_that_is_warned_about_is_not_recommended():
    hasty, low = run("hasty", np.linspace(20, 200, 60), 0.1), run("low", LOW, 1e-3)
    low.reference = hasty
    report = advised(hasty, low)
    assert "steps-too-large" in {f.slug for f in report.findings if f.run == "hasty"}
    assert hasty.suspect
    assert keys_of(report, "low").get("algo.lr") != 0.1


def test_a_model_has_come_as_far_as_the_run_it_is_a_model_for():
    short, low = run("short", SOUND, 0.005), run("low", LOW, 1e-3)
    for column in short.history.columns.values():
        column.steps[:] //= 10
    short.state = "ended"
    low.reference = short
    assert keys_of(advised(short, low), "low").get("algo.lr") != 0.005


def test_a_setting_that_a_better_run_has_too_is_not_changed():
    low, sound = run("low", LOW, 1e-3), run("sound", SOUND, 1e-3)
    assert keys_of(advised(low), "low")["algo.lr"] == 3e-4  # a library's default, where nothing else is known
    low, low.reference = run("low", LOW, 1e-3), sound
    assert "algo.lr" not in keys_of(advised(low, sound), "low")


def test_a_number_of_the_reference_is_called_what_it_is():
    """Taken where this run ends, it is not of the reference's last quarter."""
    low, longer = run("low", LOW, 1e-3), run("longer", np.linspace(20, 480, 60), 3e-4)
    for column in longer.history.columns.values():
        column.steps[:] *= 4
    low.reference = longer
    fired, _ = engine.ask_run([RULES["worse-than-random"]], low)
    (reference,) = {f.reference for f in fired}
    assert reference.what == "return/mean, median of the quarter before step 59,000, where this run ends"
    assert reference.value < 140, "after a quarter of its steps it had not gone a quarter of its way"


# ---- A sign, a critic


def test_a_policy_that_is_sure_of_bad_actions_points_to_a_sign():
    sure = np.maximum(0.69 * np.exp(-np.arange(60) / 3), 0.02)
    found = told(run("turned", LOW, 1e-3, **{"policy/entropy": sure}))
    assert "an advantage or a reward of the wrong sign does that" in found["worse-than-random"].message
    assert all("sign" in str(found[slug].suggest) for slug in ("worse-than-random", "entropy-collapse"))
    assert found["entropy-collapse"].explained_by is None, "what it earns does not explain how it acts"
    open_ = told(run("open", LOW, 1e-3, **{"policy/entropy": np.full(60, 0.69)}))
    assert "sign" not in open_["worse-than-random"].message


FALLS = [44, 326, 253, 257, 409, 205, 138, 136, 117, 122]


def swinging(name: str, **columns: Any) -> View:
    """Evaluations that go up and down; training stands still."""
    return played(run(name, np.full(60, 200.0), 1e-3, **columns), [44, 400, 90, 410, 95, 405, 100, 420, 110, 105], 6000)


def blocks(means: list[float], name: str = "falls") -> View:
    """Training whose tenths have these means."""
    return run(name, np.repeat(means, 6), 1e-3)


def test_a_run_that_rose_once_fell_and_stayed_down_has_lost_it():
    assert verdict_of(blocks(FALLS).history).kind == "lost"
    assert verdict_of(swinging("swings").history).kind == "unstable"


@pytest.mark.parametrize(("variance", "named"), [(0.02, True), (0.7, False)])
def test_a_critic_that_never_explained_anything_is_named_by_that_alone(variance, named):
    view = blocks(FALLS)
    view.history.columns["value/explained_variance"] = Column(STEPS, variance * np.cos(np.arange(60)))
    found = told(view)
    assert ("critic-not-learning" in found) == named
    assert (found["peak-then-collapse"].explained_by == "critic-not-learning") == named


MOUNTAIN = {"spec": {"env": "MountainCar-v0", "random": {"return_mean": -200.0, "return_std": 0.0, "n": 200},
                     "horizon": 200, "reward_low": -1.0, "reward_high": -1.0,
                     "action": {"kind": "discrete", "n": 3}}}  # fmt: skip


@pytest.mark.parametrize("spec", [MOUNTAIN, ACROBOT])
def test_returns_that_are_all_the_floor_lead_and_explain_the_critic(spec):
    floor = -200.0 if spec is MOUNTAIN else -500.0
    columns = {"return/mean": np.full(15, floor), "policy/entropy": np.full(15, 1.09),
               "value/explained_variance": (STEPS[1:15], np.full(14, 0.001))}  # fmt: skip
    found = told(made(columns, PPO, spec))
    assert "no reward signal was ever seen" in found["returns-all-alike"].message
    assert all(word in found["returns-all-alike"].suggest[0] for word in ("exploration", "reward", "time limit"))
    assert found["returns-all-alike"].explained_by is None
    for slug in ("critic-not-learning", "no-policy-signal", "has-not-learned"):
        assert found[slug].explained_by == "returns-all-alike"
    paid = made(columns | {"return/mean": np.r_[np.full(14, floor), floor + 3]}, PPO, spec)
    assert "returns-all-alike" not in told(paid)


@pytest.mark.parametrize(("planned", "named"), [(30_000, False), (20_000, True), (None, False)])
def test_a_run_that_goes_on_may_still_see_its_first_reward(planned, named):
    config = PPO | ({"total_steps": planned} if planned else {})
    view = made({"return/mean": np.full(15, -200.0)}, config, MOUNTAIN, state="running")
    assert isinstance(asked("returns-all-alike", view), Finding) == named


# ---- Learning that begins when the run is nearly over


def dqn(starts: int, returns: Any = LOW) -> View:
    """Returns from the first row on, updates from a later step on."""
    late = starts <= STEPS
    columns = {"return/mean_100": np.asarray(returns) + 0.1 * RNG(0).standard_normal(60),
               "return/length": LOW + RNG(1).random(60) * 3, "policy/exploration": np.linspace(1, 0.05, 60),
               "data/updates": (STEPS[late], np.arange(late.sum()) + 1),
               "value/loss": (STEPS[late], np.full(late.sum(), 0.1))}  # fmt: skip
    view = made(columns, {"algo": {"name": "dqn", "lr": 1e-3}}, CARTPOLE)
    return played(view, np.full(29, 9.0), 2000)


def test_the_first_update_late_in_a_log_is_named_and_nothing_before_it():
    found = told(dqn(55_000))
    late = found["learning-never-started"]
    assert "the first update is logged at step 55,000 of 59,000" in late.message
    assert late.severity == "warning"
    low = found["worse-than-random"]
    assert low.onset > 55_000
    assert low.explained_by == "learning-never-started"
    assert low.suggest == ["mend learning-never-started first: it explains this"]
    assert low.remedy is None


def test_learning_that_begins_early_is_left_alone():
    assert not isinstance(asked("learning-never-started", dqn(5_000)), Finding)
    sparse = dqn(55_000)
    sparse.history.columns["return/mean_100"] = Column(STEPS[-8:], np.full(8, 9.0))
    sparse.history.columns["return/length"] = Column(STEPS[-8:], np.full(8, 9.0))
    assert not isinstance(asked("learning-never-started", sparse), Finding), "its log began with its updates"


# ---- What a finding is not explained by, and what it must not advise


def test_what_somebody_set_is_not_explained_by_what_it_did():
    explore = Finding("m", slug="exploration-never-ends", about="policy", severity="warning")
    blown = Finding("m", slug="critic-loss-blow-up", about="critic", severity="warning")
    engine.explain(list(RULES.values()), [explore, blown])
    assert explore.explained_by is None


def test_a_uniform_policy_that_earns_much_does_not_hear_of_a_turned_sign():
    entropy = {"policy/entropy": np.full(60, 0.69)}
    good = played(run("good", np.full(60, 60.0), 1e-3, **entropy), np.full(14, 400.0), 4000, spread=40)
    bad = played(run("bad", np.full(60, 22.0), 1e-3, **entropy), np.full(14, 22.0), 4000, spread=4)
    assert "sign" not in str(asked("no-policy-signal", good).suggest)
    assert "sign" in str(asked("no-policy-signal", bad).suggest)


def test_updates_that_a_run_at_the_ceiling_survived_are_a_remark():
    wild = {"policy/kl": np.where(np.arange(60) < 5, 3.0, 0.01), "policy/clip_share": np.full(60, 0.1)}
    top = asked("diverged", run("top", np.concatenate([np.linspace(20, 500, 20), np.full(40, 500.0)]), 1e-3, **wild))
    assert top.severity == "info"
    assert "restart" not in str(top.suggest)
    assert asked("diverged", run("low", LOW, 1e-3, **wild)).severity == "warning"


# ---- What to run next, where the log holds no such setting


def proposed(view: View) -> str:
    view.history.config["algo"].pop("lr", None)
    return str(propose(advised(view)).why)


def test_next_does_not_deny_the_finding_that_says_why():
    why = proposed(swinging("hasty", **{"optim/lr": np.where(np.arange(60) < 20, 1e-3, 0.05)}))
    assert "no finding says why" not in why
    assert "no setting is known" not in why
    assert "the log does not hold a setting that may mend steps-too-large (lr lower" in why
    calm = proposed(swinging("calm"))
    assert "no finding says why: evaluate more often near its end, or run another seed before" in calm  # it has no seed


def test_next_names_the_first_mend_of_a_finding_and_not_the_one_that_the_log_holds():
    """It said that clip_range may mend steps-too-large, where the finding says a learning rate of 3e-4 to 1e-3."""
    hasty = swinging("hasty", **{"optim/lr": np.where(np.arange(60) < 20, 1e-3, 0.05)})
    hasty.history.config["algo"]["clip"] = 0.2
    why = proposed(hasty)
    assert "does not hold the setting that mends steps-too-large first (lr lower)" in why
    assert "clip" not in why


def test_evaluations_without_episodes_are_no_means_of_rows():
    at = (np.arange(1, 13) * 3000, np.linspace(266, 150, 12))
    view = made({"eval/return_det": at, "return/mean": RISE}, PPO, CARTPOLE)
    assert view.evidence(view.course()).formula.startswith(
        "evaluations without their episodes, standard error of the last "
    )
